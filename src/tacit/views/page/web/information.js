"use strict";
// What to ask next: how much each observation would tell about the query.

const MANY_QUESTIONS = 25;
const LEAST = 0.0005; // what is less reads 0.000

class InformationPanel {
  constructor(session) {
    Object.assign(this, { session, id: "information", label: "Ask next", bits: true });
    this.newest = latest(this);
  }

  make(host) {
    const unit = chooser(
      "Unit",
      [
        [1, "bits"],
        [0, "nats"],
      ],
      1,
      (bits) => {
        this.bits = Boolean(bits);
        this.update();
      },
    );
    this.head = element("p", { class: "quiet" });
    this.list = element("ol", { class: "ranking" });
    host.append(this.head, element("div", { class: "line" }, element("span", {}, "Unit"), unit), this.list);
  }

  update() {
    const { engine, evidence, query, model } = this.session;
    setText(
      this.head,
      `How much an observation would lower the uncertainty about ${model.variables[query].label}, on average.`,
    );
    const nothing = this.session.unanswerable ?? this.session.fixed;
    if (nothing) this.list.replaceChildren(element("li", { class: "quiet" }, nothing));
    else this.newest(engine.information(evidence, query), (nats) => this.show(nats));
  }

  show(nats) {
    const unit = this.bits ? Math.LN2 : 1;
    const posterior = this.session.answer.posteriors[this.session.query];
    const entropy = posterior.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
    const order = nats
      .map((_, i) => i)
      .filter((i) => nats[i] / unit >= LEAST)
      .sort((a, b) => nats[b] - nats[a]);
    const lines = order.slice(0, MANY_QUESTIONS).map((i) => this.line(i, nats[i] / unit, nats[i] / entropy));
    const { label } = this.session.model.variables[this.session.query];
    const none = element(
      "li",
      { class: "quiet" },
      entropy < 1e-9
        ? `${label} is certain already.`
        : `Nothing that is left to observe would tell more about ${label}.`,
    );
    this.list.replaceChildren(...(lines.length ? lines : [none]));
    const shown = `${brief(entropy / unit)} ${this.bits ? "bits" : "nats"}`;
    if (lines.length)
      this.list.append(
        element(
          "li",
          { class: "quiet" },
          `A full bar would settle it: ${shown}. What would tell next to nothing is left out.`,
        ),
      );
  }

  line(i, amount, part) {
    const bar = element("i", { class: "bar", style: `width: ${Math.min(100, 100 * part).toFixed(1)}%` });
    return element(
      "li",
      {},
      link(this.session, i),
      element("span", { class: "track", "aria-hidden": "true" }, bar),
      element("span", { class: "number" }, amount.toFixed(3)),
    );
  }
}

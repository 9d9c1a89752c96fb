"use strict";
// What to ask next: how much each observation would tell about the query.

const MANY_QUESTIONS = 25;
const MIN_SHOWN = 0.0005; // what is less reads 0.000

class InformationPanel {
  constructor(session) {
    Object.assign(this, { session, id: "information", label: "Ask next", bits: true });
    this.newest = latest(this);
  }

  make(host) {
    const units = [[1, "bits"], [0, "nats"]];
    const unit = chooser("Unit", units, 1, (bits) => ((this.bits = Boolean(bits)), this.update()));
    this.head = quiet("p");
    this.list = element("ol", { class: "ranking" });
    host.append(this.head, element("div", { class: "line" }, element("span", {}, "Unit"), unit), this.list);
  }

  update() {
    const { engine, query, model, unexplained, aside } = this.session;
    setText(
      this.head,
      `${aside.note}How much an observation would lower the uncertainty about ${model.variables[query].label}, on average.`,
    );
    if (unexplained) this.list.replaceChildren(quiet("li", unexplained));
    else this.newest(together(engine.information(aside.evidence, query), this.session.posteriorAside), (found) => this.show(...found));
  }

  show(nats, posterior) {
    const unit = this.bits ? Math.LN2 : 1;
    const entropy = posterior.reduce((sum, p) => sum - (p > 0 ? p * Math.log(p) : 0), 0);
    const order = nats
      .map((_, i) => i)
      .filter((i) => nats[i] / unit >= MIN_SHOWN && this.session.model.variables[i].asked)
      .sort((a, b) => nats[b] - nats[a]);
    const lines = order.slice(0, MANY_QUESTIONS).map((i) => this.line(i, nats[i] / unit, nats[i] / entropy));
    const { label } = this.session.model.variables[this.session.query];
    const none = entropy < 1e-9 ? `${label} is certain already.` : `Nothing that is left to observe would tell more about ${label}.`;
    this.list.replaceChildren(...(lines.length ? lines : [quiet("li", none)]));
    const shown = `${brief(entropy / unit)} ${this.bits ? "bits" : "nats"}`;
    const full = `A full bar would settle it: ${shown}. What would tell next to nothing is left out.`;
    if (lines.length) this.list.append(quiet("li", full));
    const dense = this.session.model.variables.filter(({ density }, i) => density && !this.session.evidence[i]).length;
    if (dense) this.list.append(quiet("li", `Left out, too: ${dense} whose values are numbers.`));
    const never = this.session.model.variables.filter(({ asked }) => !asked).length;
    if (never) this.list.append(quiet("li", `Left out, too: ${never} that cannot be observed, as the captions say.`));
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

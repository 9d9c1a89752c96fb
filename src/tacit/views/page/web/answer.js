"use strict";
// On narrow screens: the query and its answer below the list and the map, where one sees them change.

const STATES_IN_STRIP = 3;

class AnswerStrip {
  constructor(session, open) {
    this.session = session;
    this.name = element("b", {});
    this.states = element("span", { class: "strip-states" });
    this.hint = quiet("span");
    this.host = document.getElementById("answer");
    this.host.append(element("span", { class: "strip-head" }, this.name, this.hint), this.states);
    this.host.addEventListener("click", open);
    this.narrow = matchMedia("(max-width: 720px)");
    this.narrow.addEventListener("change", () => session.answer && this.update());
  }

  update() {
    if (!this.narrow.matches) return;
    const { query, model, answer, evidence, kept, live } = this.session;
    const { label, states, density } = model.variables[query];
    const posterior = answer.posteriors[query];
    const best = density ? [] : mostProbable(posterior, STATES_IN_STRIP);
    setText(this.name, label);
    const count = findingsIn(evidence).length;
    const findings = `${count} finding${count === 1 ? "" : "s"}`;
    const hint = count || kept ? findings : "tap a state, and this answer follows";
    setText(this.hint, `${kept ? `Case ${live}: ` : ""}${hint} ▸`);
    const numbers = density ? spokenNumbers(this.session, query) : null;
    this.states.replaceChildren(...(numbers ? [numbers] : best.map((k) => this.state(states[k], posterior[k]))));
    const text = numbers ?? best.map((k) => `${states[k]} ${spokenPercent(posterior[k])}`).join(", ");
    setAttribute(this.host, "aria-label", `${kept ? `Case ${live}, query` : "Query"} ${label}: ${text}. Show details`);
  }

  state(name, p) {
    const bar = element("i", { class: "bar", style: `width: ${(100 * share01(p)).toFixed(1)}%` });
    const words = element("span", { class: "strip-words" }, element("span", {}, name), element("span", {}, percent(p)));
    return element("span", { class: "strip-state" }, words, element("span", { class: "track" }, bar));
  }
}

// The places of the largest numbers, in their own order.
function mostProbable(posterior, count) {
  const order = posterior.map((_, k) => k).sort((a, b) => posterior[b] - posterior[a] || a - b);
  return order.slice(0, count).sort((a, b) => a - b);
}

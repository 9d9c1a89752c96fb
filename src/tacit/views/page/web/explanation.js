"use strict";
// The most probable explanation: one state for every variable, most probable together.

class ExplanationPanel {
  constructor(session) {
    Object.assign(this, { session, id: "explanation", label: "Likeliest" });
    this.newest = latest(this);
  }

  make(host) {
    this.head = element("p", {});
    const column = (text, attributes = {}) => element("th", { scope: "col", ...attributes }, text);
    const heads = [column("Variable"), column("State"), column("On its own", { class: "number" })];
    this.table = element("table", {}, element("thead", {}, element("tr", {}, ...heads)));
    this.body = this.table.appendChild(element("tbody"));
    const what =
      "The states that are most probable together, given the findings. " +
      "A marked one is not the most probable state of its variable alone.";
    const take = button("Observe all of it", () => this.take());
    host.append(quiet("p", what), this.head, this.table, element("div", { class: "buttons" }, take));
  }

  update() {
    const { limited } = this.session.model;
    if (limited) return this.show({ possible: false, limited });
    return this.newest(this.session.engine.mpe(this.session.evidence), (found) => this.show(found));
  }

  show({ possible, states, logProbability, limited = null }) {
    this.found = possible ? states : null;
    this.table.hidden = !possible;
    const why = limited ?? `${this.session.unanswerable ?? "The findings have probability 0."} So there is no explanation.`;
    this.head.replaceChildren(...(possible ? probability("p(all states, findings)", logProbability, this.session.evidence.some(numbersIn)) : [why]));
    if (possible) this.body.replaceChildren(...states.map((state, i) => this.row(i, state)));
  }

  row(i, state) {
    const { answer, evidence, model } = this.session;
    if (model.variables[i].density) return this.numbers(i, evidence[i]);
    const posterior = answer.posteriors[i];
    const kind =
      knownState(evidence[i]) >= 0 ? "hard" : posterior[state] < posterior[largest(posterior)] ? "differs" : "";
    return element(
      "tr",
      { class: kind },
      element("th", { scope: "row" }, link(this.session, i)),
      element("td", {}, model.variables[i].states[state]),
      element("td", { class: "number" }, percent(posterior[state])),
    );
  }

  // What was observed, or the mean given the likeliest states of the parents.
  numbers(i, finding) {
    const { density, parents } = this.session.model.variables[i];
    const cards = parents.map((p) => this.session.model.variables[p].states.length);
    const component = parents.reduce((place, p, k) => place * cards[k] + this.found[p], 0);
    const weights = Array.from({ length: this.session.model.variables[i].card }, (_, c) => (c === component ? 1 : 0));
    const means = distributions({ density }, finding, weights);
    const text = density.columns.map((name, j) => {
      const own = means[j] ? `mean ${inSteps(means[j].mean, means[j].sd)}` : plainNumber(numbersIn(finding)[j]);
      return density.columns.length > 1 ? `${name} ${own}` : own;
    });
    const cells = [element("td", {}, text.join(", ")), element("td", { class: "number" }, "")];
    return element("tr", { class: finding ? "hard" : "" }, element("th", { scope: "row" }, link(this.session, i)), ...cells);
  }

  // All of it is observed, but for what is set.
  take() {
    const { model, evidence } = this.session;
    const seen = (state, i) => observed(model.variables[i].states.length, state);
    const kept = (i) => stateSet(evidence[i]) >= 0 || model.variables[i].density;
    const made = this.found?.map((state, i) => (kept(i) ? evidence[i] : seen(state, i)));
    if (made) this.session.replace(made);
  }
}

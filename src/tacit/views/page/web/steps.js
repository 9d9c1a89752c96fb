"use strict";
// Why two cases have different answers: the findings that differ, set in turn from those of case A to those of case B.

const MANY_STEPS = 12;

class StepsTable {
  constructor(session) {
    this.session = session;
    this.slowly = later(() => this.ask(), 120);
  }

  make() {
    this.title = element("h4", {});
    this.body = element("tbody", {});
    const heads = comparedHeads("Finding, set in turn", "Then", "Change");
    const what =
      "The findings of case A become those of case B one after the other, first those that move the answer most by " +
      "themselves. The changes, in percentage points, add up to the whole difference.";
    this.note = quiet("p", what);
    this.host = element("section", { class: "steps", hidden: true }, this.title, this.table(heads), this.note);
    this.newest = latest(this);
    return this.host;
  }

  table(heads) {
    return element("table", { class: "columns" }, heads, this.body);
  }

  // The cases as A and B, whichever of them is kept.
  get cases() {
    const { kept, evidence, answer } = this.session;
    const own = { evidence, answer };
    return kept.name === "A" ? [kept, own] : [own, kept];
  }

  update() {
    const { model, query } = this.session;
    const kept = model.variables[query].density ? null : this.session.kept;
    const [a, b] = kept ? this.cases : [];
    const apart = kept ? findingsApart(a.evidence, b.evidence) : [];
    this.host.hidden = !apart.length || !a.answer.possible || !b.answer.possible;
    if (!this.host.hidden) this.slowly();
  }

  ask() {
    const { kept, engine, query } = this.session;
    if (!kept) return null;
    const [a, b] = this.cases;
    const state = this.session.firstState(a.answer.posteriors[query]);
    const steps = engine.steps(a.evidence, b.evidence, query, state);
    return this.newest(steps, (found) => this.show(found, query, state, a, b));
  }

  show(steps, query, state, a, b) {
    const { label, states } = this.session.model.variables[query];
    setText(this.title, `Why ${stateText(label, states[state])} differs`);
    const before = [a.answer.posteriors[query], ...steps.map(({ posterior }) => posterior)];
    const rows = steps.map(({ i, posterior }, k) =>
      this.line(this.name(i, a, b), posterior[state], posterior[state] - before[k][state]),
    );
    const hidden = rows.length - MANY_STEPS;
    const rest = hidden > 0 ? [this.line(element("th", { scope: "row", class: "quiet" }, `${hidden} more`), NaN, NaN)] : [];
    const start = element("th", { scope: "row", class: "quiet" }, "Case A");
    this.body.replaceChildren(this.line(start, before[0][state], null), ...rows.slice(0, MANY_STEPS), ...rest);
  }

  name(i, a, b) {
    const variable = this.session.model.variables[i];
    const [from, to] = [a, b].map(({ evidence }) => (evidence[i] ? findingText(variable, evidence[i]) : "–"));
    return element("th", { scope: "row" }, link(this.session, i), `: ${from} → ${to}`);
  }

  line(name, p, difference) {
    const cells = [percent(p), difference === null ? "" : signed(difference)];
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  }
}

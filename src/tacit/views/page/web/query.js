"use strict";
// The query above the panels, with its states.
class QueryBox {
  constructor(session) {
    this.session = session;
    this.host = document.querySelector(".query");
    this.select = document.getElementById("query");
    namesOf(session.model).forEach(([i, label]) => this.select.append(element("option", { value: i }, label)));
    this.select.addEventListener("change", () => session.choose(Number(this.select.value)));
    this.rows = [];
    this.number = null; // the field of an interval variable
  }

  choose() {
    const { query, model } = this.session;
    this.select.value = query;
    this.rows = model.variables[query].states.map((state, k) => stateRow(query, k, state));
    this.rows[0].control.tabIndex = 0;
    this.number = model.variables[query].bins ? new NumberField(this.session, query) : null;
    const field = this.number ? [this.number.form] : [];
    document.getElementById("query-states").replaceChildren(...this.rows.map(({ control }) => control), ...field);
    this.update();
  }

  update() {
    const { query, evidence } = this.session;
    markEvidence(this.host, evidence[query]);
    if (this.rows.length) updateRows(this.session, this.rows, query);
    this.number?.update();
  }

  track(i, k) {
    return this.rows[k].track.getBoundingClientRect();
  }
}

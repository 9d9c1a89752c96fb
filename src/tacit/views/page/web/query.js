"use strict";
// The query above the panels, with its states.
class QueryBox {
  constructor(session) {
    this.session = session;
    this.host = document.querySelector(".query");
    this.select = document.getElementById("query");
    namesOf(session.model).forEach(([i, label]) => this.select.append(element("option", { value: i }, label)));
    this.select.addEventListener("change", () => session.choose(Number(this.select.value)));
    this.list = null;
    this.number = null; // the field of an interval variable
  }

  choose() {
    const { query, model } = this.session;
    this.select.value = query;
    const { bins, density } = model.variables[query];
    this.list = density ? new NumbersView(this.session, query) : new StateList(this.session, query);
    const tabs = density ? "The tabs below explain variables that have states" : "The tabs below explain it";
    setText(document.getElementById("query-hint"), `${tabs}. Click a name to choose another.`);
    this.number = bins ? new NumberField(this.session, query) : null;
    const field = this.number ? [this.number.form] : [];
    document.getElementById("query-states").replaceChildren(...this.list.nodes, ...field);
    this.update();
  }

  update() {
    const { query, evidence } = this.session;
    markEvidence(this.host, evidence[query]);
    this.list?.update();
    this.number?.update();
  }

  track(i, k) {
    return this.list.rows[k].track.getBoundingClientRect();
  }
}

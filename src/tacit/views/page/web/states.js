"use strict";
// Which states of a variable are shown, and in which order: of many, the most probable ones.

const MOST_STATES = 12; // lines of a box, as the layout has room for
const numbered = new Intl.Collator("en", { numeric: true });

// States that were sorted as text come in the order of their numbers: "2" before "10".
function stateOrder({ names, bins }) {
  const order = names.map((_, k) => k);
  const sorted = order.every((k) => k === 0 || names[k - 1] < names[k]);
  if (!sorted || bins || !names.some((name) => /\d/.test(name))) return order;
  if (names.every((name) => name.trim() && Number.isFinite(Number(name)))) return order.sort((a, b) => names[a] - names[b]);
  return names.some((name) => /\d\.\d/.test(name)) ? order : order.sort((a, b) => numbered.compare(names[a], names[b]));
}

function isLong({ states }) {
  return states.length > MOST_STATES;
}

// The states that have a line; the last line of many is that of the others.
function shownStates({ states, order }, posterior) {
  if (states.length <= MOST_STATES) return order;
  const ranked = [...order].sort((a, b) => (posterior[b] || 0) - (posterior[a] || 0));
  const best = new Set(ranked.slice(0, MOST_STATES - 1));
  return order.filter((k) => best.has(k));
}

// How probable the states are that have no line of their own.
function shareOfOthers(posterior, shown) {
  const own = new Set(shown);
  return sumOf(posterior.filter((_, k) => !own.has(k)));
}

// The states of a variable as lines of HTML, of which those that matter little can be folded away.
class StateList {
  constructor(session, i) {
    const variable = session.model.variables[i];
    Object.assign(this, { session, i, variable, open: !isLong(variable), shown: variable.order });
    this.rows = variable.states.map((state, k) => stateRow(i, k, state));
    this.more = button("", () => this.turn(), { class: "link more-states", hidden: this.open });
    this.nodes = [...variable.order.map((k) => this.rows[k].control), this.more];
    this.rows[variable.order[0]].control.tabIndex = 0;
  }

  turn() {
    this.open = !this.open;
    this.update();
  }

  update() {
    updateRows(this.session, this.rows, this.i);
    if (!isLong(this.variable)) return;
    const posterior = this.session.answer.posteriors[this.i];
    if (!this.session.before) this.shown = shownStates(this.variable, posterior); // a bar that is dragged stays
    const seen = new Set(this.open ? this.variable.order : this.shown);
    this.rows.forEach(({ control }, k) => (control.hidden = !seen.has(k)));
    if (!this.rows.some(({ control }) => control.tabIndex === 0 && !control.hidden))
      this.rows[this.shown[0]].control.tabIndex = 0;
    const hidden = this.rows.length - this.shown.length;
    const others = `${hidden} more, ${percent(shareOfOthers(posterior, this.shown))} together`;
    setText(this.more, this.open ? "Show the most probable ones only" : others);
    setAttribute(this.more, "aria-expanded", this.open);
  }
}

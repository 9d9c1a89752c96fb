"use strict";
// Sensitivity: how far the posterior moves if single numbers of the network do.

const CHANGE = 0.1;
const BARS = 10;
const CANDIDATES = 30;
const TOO_IMPROBABLE = "The findings are so improbable that the page cannot follow the tests. In Python, tac.sensitivity does.";

class TornadoPanel {
  constructor(session) {
    Object.assign(this, { session, id: "sensitivity", label: "Sensitivity", query: null, state: 0 });
    this.newest = latest(this);
  }

  make(host) {
    this.choice = element("div", { class: "line" });
    this.head = quiet("p");
    this.list = element("ol", { class: "tornado" });
    const swatch = (kind) => element("i", { class: `swatch ${kind}` });
    this.key = quiet("p", swatch("less"), "lowered", swatch("more"), "raised");
    host.append(this.choice, this.head, this.key, this.list);
  }

  update() {
    const { engine, query, model, unexplained, aside } = this.session;
    this.choice.hidden = Boolean(model.variables[query].density);
    if (query !== this.query && !this.choice.hidden) this.ask(query, model.variables[query]);
    const nothing = model.limited ?? unexplained;
    if (nothing) return this.empty(nothing);
    const asked = together(engine.sensitivity(aside.evidence, query, this.state), this.session.posteriorAside);
    return this.newest(asked, ([found, posterior]) => {
      if (!found) return this.empty(TOO_IMPROBABLE);
      this.describe(aside.note, posterior[this.state]);
      return this.show(found, posterior[this.state], aside.evidence);
    });
  }

  describe(note, value) {
    const { engine, query, model, answer } = this.session;
    const what = `P(${stateText(model.variables[query].label, model.variables[query].states[this.state])})`;
    this.key.hidden = false;
    setText(
      this.head,
      `${note}What becomes of ${what}, now ${percent(value)}, if one number of the network is lowered or raised by 0.1 ` +
        "(within 0 and 1). The others of its row change in proportion" +
        (answer.tests.length ? (engine.local ? ", and tests may flip." : ", and tests stay as they are.") : "."),
    );
  }

  // Another query: the state that is explained first, unless one chooses.
  ask(query, variable) {
    this.query = query;
    this.state = this.session.firstState();
    const select = stateChooser(variable, this.state, (state) => ((this.state = state), this.update()));
    this.choice.replaceChildren(element("span", {}, `${variable.label}\u00a0=`), select);
  }

  empty(text) {
    setText(this.head, text);
    this.key.hidden = true;
    this.list.replaceChildren();
  }

  show(found, value, evidence) {
    const ranges = widestFirst(this.distinct(found).map((one) => ({ ...one, ...moved(one, value) })));
    const { engine, answer } = this.session;
    const exact = engine.local && answer.tests.length > 0;
    const candidates = exact ? ranges.slice(0, CANDIDATES).map((one) => ({ ...one, ...this.again(one, evidence) })) : ranges;
    const top = widestFirst(candidates)
      .slice(0, BARS)
      .filter(({ low, high }) => high - low > 1e-9);
    if (!top.length) return this.empty("With these findings, no single number of the network changes it.");
    const reach = Math.max(...top.map(({ low, high }) => Math.max(high - value, value - low)));
    this.list.replaceChildren(...top.map((one) => this.line(one, value, reach)));
    return undefined;
  }

  // Where tests take part, the posterior is no quotient of two lines: it is computed again.
  again(one, evidence) {
    const { engine, query } = this.session;
    return range((number) => engine.changed(evidence, query, this.state, one, number), one.value);
  }

  // Of two numbers that sum to 1, the one with the larger effect speaks for both.
  distinct(found) {
    const said = new Set();
    return found.filter(({ node, part, row, state }) => {
      if (state === null || this.session.model.variables[node].states.length !== 2) return true;
      const key = [node, part, row].join(" ");
      return !said.has(key) && said.add(key);
    });
  }

  line(one, value, reach) {
    const at = (x) => 50 + (50 * (x - value)) / reach;
    const side = (from, to, kind) =>
      element("i", {
        class: kind,
        style: `left: ${Math.min(at(from), at(to)).toFixed(2)}%; width: ${Math.abs(at(to) - at(from)).toFixed(2)}%`,
      });
    const track = element(
      "span",
      { class: "track", "aria-hidden": "true" },
      side(value, one.less, "less"),
      side(value, one.more, "more"),
      element("i", { class: "middle" }),
    );
    const range = `${percent(one.low)} to ${percent(one.high)}`;
    return element(
      "li",
      {},
      element("span", { class: "label" }, link(this.session, one.node, `${this.title(one)} = ${brief(one.value)}`)),
      track,
      element("span", { class: "number" }, range),
    );
  }

  // "P(CVP = LOW | LVEDVOLUME = HIGH)"
  title({ node, part, row, state }) {
    const { model } = this.session;
    const { label, states, tests } = model.variables[node];
    const which = tests > 1 && state === null ? ` ${row.at(-1) + 1}` : "";
    const own = state === null ? `${label}: threshold${which}` : stateText(label, states[state]);
    const given = row && row.length ? ` | ${stateNames(model, node, row)}` : "";
    const table = part === "table" ? "" : ` (${part})`;
    return state === null ? own + given : `P(${own}${given})${table}`;
  }
}

// The posterior if a number is lowered and raised: a quotient of two lines in it, while tests stay as they are.
function moved({ value, derivative, growth }, posterior) {
  return range((number) => share01(posterior + ((number - value) * derivative) / (1 + (number - value) * growth)), value);
}

function range(posteriorAt, value) {
  const [less, more] = [Math.max(value - CHANGE, 0), Math.min(value + CHANGE, 1)].map(posteriorAt);
  return { less, more, low: Math.min(less, more), high: Math.max(less, more) };
}

function widestFirst(ranges) {
  return ranges.sort((a, b) => b.high - b.low - (a.high - a.low));
}

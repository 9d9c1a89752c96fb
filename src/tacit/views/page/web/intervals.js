"use strict";
// Interval variables: a number in place of a state, and the mean of the numbers behind the states.

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;

// The edges of a variable's intervals; null if its states are no intervals. JSON has no infinite numbers.
function edgesOf({ bins }) {
  return bins && bins.map((edge) => ({ "-inf": -Infinity, inf: Infinity })[edge] ?? edge);
}

// The state of a number: an interval has its lower edge, the last one both. -1 outside of all.
function stateOfNumber(edges, x) {
  if (!(x >= edges[0] && x <= edges.at(-1))) return -1;
  const above = edges.findIndex((edge) => edge > x);
  return (above < 0 ? edges.length - 1 : above) - 1;
}

// The state of a number that somebody has typed. What is wrong with it is thrown, as a sentence.
function stateOfText(edges, text) {
  const clean = text.trim();
  if (!clean) throw new Error(`Type a number${rangeText(edges)}.`);
  if (!NUMBER.test(clean)) throw new Error(`“${clean}” is not a number. Write it with a point, as in 2.5.`);
  const state = stateOfNumber(edges, Number(clean));
  if (state < 0) throw new Error(`${clean} is out of range. Type a number${rangeText(edges)}.`);
  return state;
}

// What comes after "a number": " from 0 to 120", " from 0", " up to 120", or nothing.
function rangeText(edges) {
  const text = (word, edge) => (Number.isFinite(edge) ? ` ${word} ${String(edge).replace("-", "−")}` : "");
  const [low, high] = [edges[0], edges.at(-1)];
  return text("from", low) + text(low === -Infinity ? "up to" : "to", high);
}

// The mean of the numbers, uniform within intervals; a half-infinite one counts as its finite edge. NaN if there is none.
function meanOf(edges, posterior) {
  const finite = (edge, other) => (Number.isFinite(edge) ? edge : other);
  return sumOf(
    posterior.map((p, k) => {
      const [low, high] = [finite(edges[k], edges[k + 1]), finite(edges[k + 1], edges[k])];
      return p * (low / 2 + high / 2);
    }),
  );
}

// "mean 37.2", and what stands for intervals without an end.
function meanText(edges, posterior) {
  const mean = meanOf(edges, posterior);
  if (!Number.isFinite(mean)) return "";
  const open = [];
  if (edges[0] === -Infinity) open.push(`below ${edges[1]} counts as ${edges[1]}`);
  if (edges.at(-1) === Infinity) open.push(`above ${edges.at(-2)} counts as ${edges.at(-2)}`);
  return `mean ${brief(mean, 4)}${open.length ? ` (${open.join(", ")})` : ""}`;
}

// Whether the name of a state is a bound, such as "≥ 65".
function isBound(state) {
  return /^[<≥] /.test(state);
}

// "Age = 18 – 65", "Age ≥ 65"
function stateText(label, state) {
  return `${label} ${isBound(state) ? "" : "= "}${state}`;
}

// A field for a number of one variable, with its mean. Enter observes the number, or sets it if clicks set.
class NumberField {
  constructor(session, i) {
    const { label } = session.model.variables[i];
    Object.assign(this, { session, i, edges: edgesOf(session.model.variables[i]), state: -1 });
    this.input = element("input", {
      type: "text",
      inputmode: this.edges[0] < 0 ? "text" : "decimal", // keypads for decimals have no minus
      autocomplete: "off",
      placeholder: `a number${rangeText(this.edges)}`,
      "aria-label": `${label} as a number${rangeText(this.edges)}`,
      input: () => this.say(""),
    });
    this.enter = element("button", { type: "submit" }, "Observe");
    this.mean = quiet("p");
    this.mean.title = "Within each interval, numbers are taken to be uniform.";
    this.told = element("p", { class: "told", role: "status" });
    const submit = (event) => (event.preventDefault(), this.take());
    const line = element("div", { class: "line" }, this.input, this.enter);
    this.form = element("form", { class: "number-field", submit, novalidate: true }, this.mean, line, this.told);
  }

  take() {
    try {
      this.state = stateOfText(this.edges, this.input.value);
    } catch (error) {
      return this.say(error.message, true);
    }
    const number = this.input.value.trim();
    this.session.know(this.i, this.state, this.session.setting, number);
    return this.sayState(number);
  }

  sayState(number) {
    const state = this.session.model.variables[this.i].states[this.state];
    return this.say(`${number} is ${isBound(state) ? "" : "in "}${state}.`);
  }

  // What was typed before, elsewhere, or in the address.
  recall(state, number) {
    this.state = state;
    this.input.value = number;
    this.sayState(number);
  }

  say(text, wrong = false) {
    setText(this.told, text);
    this.told.classList.toggle("wrong", wrong);
    setAttribute(this.input, "aria-invalid", wrong);
  }

  // What was typed goes when it is no longer what is known. The mean of a known interval would say nothing.
  update() {
    const { answer, evidence, setting } = this.session;
    const known = knownState(evidence[this.i]);
    setText(this.mean, known < 0 ? meanText(this.edges, answer.posteriors[this.i]) : "");
    this.mean.hidden = known >= 0;
    setText(this.enter, setting ? "Set" : "Observe");
    const number = typedNumbers.get(evidence[this.i] ?? this);
    if (number && this.state < 0) this.recall(known, number);
    if (this.state < 0 || known === this.state) return;
    this.state = -1;
    this.input.value = "";
    this.say("");
  }
}

// The same for any variable of numbers or intervals, whatever the query is: the one that was observed last, or one that
// is chosen.
class NumberEntry {
  constructor(session) {
    const { model } = session;
    const own = namesOf(model, (i) => this.takes(model.variables[i]));
    Object.assign(this, { session, last: null, fields: [], i: own[0]?.[0] });
    this.host = element("div", { class: "number-entry", hidden: !own.length });
    if (!own.length) return;
    this.select = chooser("Variable to type a number for", own, this.i, (i) => this.choose(i));
    const choice = element("div", { class: "line" }, element("span", {}, "Type a number for"), this.select);
    this.place = element("div", {});
    this.host.append(choice, this.place);
    this.choose(this.i);
  }

  choose(i) {
    this.i = i;
    this.select.value = i;
    const { density } = this.session.model.variables[i];
    this.fields = density ? density.columns.map((_, j) => new ColumnField(this.session, i, j)) : [new NumberField(this.session, i)];
    if (!density) this.fields[0].mean.remove(); // it is below the query
    this.place.replaceChildren(...this.fields.flatMap(({ form }, j) => [...this.named(density, j), form]));
    if (this.session.answer) this.fields.forEach((field) => field.update());
  }

  takes({ bins, density }) {
    return Boolean(bins || density);
  }

  // Of several columns, each has its name above its field.
  named(density, j) {
    return density?.columns.length > 1 ? [quiet("p", density.columns[j])] : [];
  }

  update() {
    const { last, model } = this.session;
    const other = last !== this.last && last !== null && last !== this.i && this.takes(model.variables[last]);
    this.last = last;
    if (other) this.choose(last);
    else this.fields.forEach((field) => field.update());
  }
}

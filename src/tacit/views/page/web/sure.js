"use strict";
// How sure the answers are: intervals of all posteriors under networks with other numbers, which the page may bring along.

const SLICE = 30; // milliseconds of work between two looks at what the user does
const UNSURE = 250; // milliseconds without a change until the work begins

// All that the page has of an ensemble: the numbers of its networks, one after the other.
class Draws {
  constructor(model) {
    const { count, level, tables, values, digits, densities } = model.draws;
    const bytes = Uint8Array.from(atob(values), (c) => c.charCodeAt(0));
    Object.assign(this, { model, count, level, tables, densities, numbers: new (digits === "double" ? Float64Array : Float32Array)(bytes.buffer) });
    this.size = sumOf(tables.map((t) => model.tables[t].values.length));
    this.engine = new LocalEngine({ ...model, variables: model.variables.map((own) => ({ ...own })) });
  }

  // The posteriors of all variables under one of the networks.
  posteriors(evidence, d) {
    const { model, engine } = this;
    let start = d * this.size;
    const given = [...model.tables];
    for (const t of this.tables) {
      const end = start + given[t].values.length;
      given[t] = { ...given[t], values: this.numbers.subarray(start, end) };
      start = end;
    }
    for (const [i, own] of Object.entries(this.densities)) engine.variables[i].density = own[d];
    engine.replace(given);
    return engine.ask(evidence).posteriors;
  }
}

// The ends of the intervals of each state, from its posteriors under all networks; NaN where one of them has none.
function intervalsOf(answers, level) {
  return answers[0].map((states, i) =>
    states.map((_, k) => {
      const found = Float64Array.from(answers, (own) => own[i][k]).sort();
      return [(1 - level) / 2, (1 + level) / 2].map((share) => quantileOf(found, share));
    }),
  );
}

// Between the two numbers around that place, as NumPy has it. NaN is sorted to the end.
function quantileOf(sorted, share) {
  const place = (sorted.length - 1) * share;
  const k = Math.min(Math.floor(place), sorted.length - 2);
  if (sorted.length === 1 || Number.isNaN(sorted.at(-1))) return sorted.at(-1);
  return sorted[k] + (sorted[k + 1] - sorted[k]) * (place - k);
}

// Computes intervals for what is known, once nothing has changed for a while, and tells the session.
class Surety {
  constructor(session) {
    this.session = session;
    this.draws = session.model.draws ? new Draws(session.model) : null;
    this.turn = 0;
    if (!this.draws) return;
    const begin = later(() => this.begin(), UNSURE);
    session.listen((what) => {
      if (what !== "answer") return;
      this.turn++; // older work is pointless
      session.intervals = null;
      begin();
    });
  }

  begin() {
    if (this.session.before || !this.session.answer.possible) return;
    this.go(++this.turn, this.session.evidence, []);
  }

  // Some of the networks, then the rest after a break.
  go(turn, evidence, answers) {
    const start = performance.now();
    while (answers.length < this.draws.count && performance.now() - start < SLICE)
      answers.push(this.draws.posteriors(evidence, answers.length));
    if (turn !== this.turn) return;
    if (answers.length < this.draws.count) setTimeout(() => turn === this.turn && this.go(turn, evidence, answers), 0);
    else {
      this.session.intervals = intervalsOf(answers, this.draws.level);
      this.session.tell("intervals");
    }
  }
}

// What the lines on bars are, below the query.
function hintOnIntervals(session) {
  const host = document.getElementById("intervals");
  const { draws } = session.model;
  host.hidden = !draws;
  if (draws) setText(host, `Lines on bars: ${100 * draws.level}% intervals, under ${draws.count} networks with other numbers.`);
}

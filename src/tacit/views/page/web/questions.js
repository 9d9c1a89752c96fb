"use strict";
// What the page asks of a query: posteriors, best states, information, sensitivity, curves and surfaces.

const MIN_POWER = -1000; // of two, of a likelihood
const NOISE = 1e-14; // what rounding leaves of a difference of equals, relative to them

function difference(a, b) {
  const made = a - b;
  return Math.abs(made) <= NOISE * (Math.abs(a) + Math.abs(b)) ? 0 : made;
}

function normalised(likelihoods) {
  if (!likelihoods) return null;
  const total = sumOf(likelihoods);
  return likelihoods.map((x) => x / total);
}

// Evidence on a variable is null, a likelihood for each state, the state that it is set to: { do: 1 }, or its numbers:
// { numbers: [78.2] }.
function stateSet(finding) {
  return finding?.do ?? -1;
}

function isKnown(finding) {
  if (stateSet(finding) >= 0) return true;
  return Array.isArray(finding) && finding.length > 1 && finding.filter((x) => x > 0).length === 1;
}

// What floats alone would lose: of likelihoods with powers, those that are too small beside the largest.
function isLost(likelihoods) {
  return Boolean(likelihoods?.powers?.some((power, c) => power < MIN_POWER && likelihoods.array[c] > 0));
}

class LocalEngine {
  constructor(model) {
    this.local = true;
    this.variables = model.variables;
    this.given = model.tables;
    this.tables = model.tables.map((table) => ({ ...table, values: Float64Array.from(table.values) }));
    this.set = model.variables.map(() => -1); // the states that variables are set to in these tables
    this.tests = model.tests;
    this.program = model.programs.sum;
    this.best = model.programs.max ?? withMaxima(model.programs.sum);
    this.plain = this.runs(Run);
    this.wide = null; // made when floats do not do
    this.use(this.plain);
  }

  runs(kind) {
    const sum = new kind(this.program, this.tables);
    const other = new kind(this.program, this.tables); // the same query with other evidence, selected as `sum` is
    return { sum, other, max: new kind(this.best, this.tables) };
  }

  use({ sum, other, max }) {
    Object.assign(this, { sum, other, max });
  }

  // Other numbers, in tables of the same shapes.
  replace(tables) {
    this.given = tables;
    this.tables.forEach((table, t) => fillTable(table, tables[t].values, table.own ? this.set[table.node] : -1));
    this.refresh();
  }

  refresh() {
    for (const runs of [this.plain, this.wide ?? {}]) for (const run of Object.values(runs)) run.refresh();
  }

  // The likelihoods in some evidence, and its probability, computed with exponents for all numbers where floats do not do.
  begin(evidence) {
    const exact = this.prepare(evidence);
    const floats = exact.map((own) => (own?.powers ? own.array.map((x, c) => x * 2 ** own.powers[c]) : own));
    this.use(this.plain);
    if (!exact.some(isLost)) {
      const whole = this.sum.forward(floats);
      if (!this.sum.faint) return { known: floats, whole, scale: scaleOf(exact) };
    }
    this.use((this.wide ??= this.runs(WideRun)));
    return { known: exact, whole: this.sum.forward(exact), scale: scaleOf(exact) };
  }

  // The likelihoods in some evidence; the tables become those of a network in which variables are set as it says.
  prepare(evidence) {
    const before = this.set;
    this.set = evidence.map(stateSet);
    if (this.set.some((state, i) => state !== before[i])) {
      this.tables.forEach((table, t) => {
        const state = this.set[table.node];
        if (table.own && state !== before[table.node]) fillTable(table, this.given[t].values, state);
      });
      this.refresh();
    }
    return evidence.map((finding, i) => {
      if (stateSet(finding) >= 0) return null;
      const numbers = numbersIn(finding);
      return numbers ? densityLikelihoods(this.variables[i].density, numbers) : normalised(finding);
    });
  }

  // log p*(evidence), the posteriors of all variables, and how tests came out: one sweep up and one down.
  ask(evidence) {
    const { known, whole: { mantissa, exponent }, scale } = this.begin(evidence);
    const possible = mantissa > 0;
    const posteriors = this.marginals(this.sum, known, possible ? 1 / mantissa : NaN);
    return {
      possible,
      logEvidence: possible ? Math.log(mantissa) + exponent * Math.LN2 + scale : -Infinity,
      posteriors,
      numbers: this.variables.map((own, i) => own.density && distributions(own, evidence[i], posteriors[i])),
      expected: this.variables.map((own, i) => (possible && numbersIn(evidence[i]) ? this.expected(own, i) : null)),
      tests: this.tests.filter(({ node }) => this.set[node] < 0).map((test) => this.tested(test)),
    };
  }

  // How the numbers of a variable would be distributed, given the other findings alone, and the tests as they are.
  expected(variable, i) {
    return distributions(variable, null, normalised(this.sum.otherwise(i)));
  }

  posterior(evidence, query) {
    return this.ask(evidence).posteriors[query];
  }

  // p*(state, evidence) of all states of all variables, of continuous ones those of their parents, times a factor; NaN
  // where that is.
  marginals(run, known, factor) {
    if (Number.isNaN(factor)) return this.variables.map(({ card }) => Array(card).fill(NaN));
    run.reverse(factor);
    return this.variables.map(({ card }, i) => {
      const likelihoods = known[i] ?? Array(card).fill(1);
      if (!run.likelihoods[i].length) return [...(likelihoods.array ?? likelihoods)]; // a single state
      return run.joints(i, likelihoods);
    });
  }

  // How one testing node was decided: a row for every test of every state of its parents.
  tested({ node, operations, gamma, places, thresholds, operators }) {
    const selects = operations.map((i) => this.sum.operations[i]);
    const marginal = this.sum.relative(this.sum.operations[selects[0].inputs[0]]);
    const total = sumOf(marginal);
    const cards = this.variables[node].parents.map((p) => this.variables[p].states.length);
    const rows = places.flatMap((place, u) => {
      const parents = digits(u, cards);
      const operator = operators[u];
      const posterior = total > 0 ? (place < 0 ? 0 : marginal[place]) / total : NaN;
      return selects.map((op, j) => {
        const threshold = thresholds[u * selects.length + j];
        const weight = place < 0 ? weightOfPlus(gamma, operator, 0, 1, threshold) : op.weight[place];
        return { parents, posterior, threshold, operator, weight, table: selects.length > 1 ? j + 1 : null };
      });
    });
    return { node, gamma, rows };
  }

  // The states that are jointly most probable, and log p*(states, evidence). Continuous variables have none.
  mpe(evidence) {
    const { known, scale } = this.begin(evidence);
    const { mantissa, exponent } = this.max.forward(known, this.best.borrowed ? this.sum : null);
    if (!(mantissa > 0)) return { possible: false, states: this.variables.map(() => null), logProbability: -Infinity };
    const found = this.max.decide(this.best.decisions);
    const states = this.best.axes.map((own) => own && own.possible[own.axis === null ? 0 : found.get(own.axis)]);
    return { possible: true, states, logProbability: Math.log(mantissa) + exponent * Math.LN2 + scale };
  }

  // By how much, in nats, the entropy of the query is expected to drop if a variable's state were observed.
  information(evidence, query) {
    const { known, whole } = this.begin(evidence);
    if (!(whole.mantissa > 0)) return this.variables.map(() => NaN);
    // P*(state of the query, state of a variable) for all variables, with the tables that `sum` selected
    const pairs = this.variables[query].states.map((_, state) => {
      const { masked, factor } = this.fixed(known, query, state, whole);
      return this.marginals(this.other, masked, factor);
    });
    return this.variables.map((_, i) => {
      const unasked = i === query || isKnown(evidence[i]) || this.variables[i].density;
      return unasked ? NaN : mutualInformation(pairs.map((of) => of[i]));
    });
  }

  // Runs the query with one of its states only; the factor makes probabilities given the evidence of derivatives.
  fixed(known, query, state, whole) {
    const masked = known.slice();
    masked[query] = this.variables[query].states.map((_, k) => (k === state ? (known[query] ? known[query][k] : 1) : 0));
    const part = this.other.forward(masked, this.sum);
    return { masked, factor: part.mantissa > 0 ? 2 ** (part.exponent - whole.exponent) / whole.mantissa : 0 };
  }

  // The posterior of the query without any finding, and without each finding alone.
  without(evidence, query) {
    const [none, ...each] = leftOut(evidence).map((rest) => this.posterior(rest, query));
    return { none, each };
  }

  // What the posterior of the query becomes while findings are set in turn to those of a second case.
  steps(first, second, query, state) {
    const at = (rows) => rows.map((row) => this.posterior(row, query));
    const order = inTurn(first, second, state, at(oneByOne(first, second)));
    const found = at(order.map((_, k) => taken(first, second, order.slice(0, k + 1))));
    return order.map((i, k) => ({ i, posterior: found[k] }));
  }

  // How the posterior of a state depends on every number, the rest of its row co-varied; the largest effects first.
  // `growth` is how much p*(evidence) grows with the number, relative to what it is. Null where that would take
  // derivatives through tests that are beyond floats.
  sensitivity(evidence, query, state) {
    const { known, whole } = this.begin(evidence);
    if (!(whole.mantissa > 0)) return [];
    if (this.sum instanceof WideRun && this.sum.selects.length) return null;
    const posterior = this.marginals(this.sum, known, 1 / whole.mantissa)[query][state];
    const own = this.slopes(this.fixed(known, query, state, whole).factor);
    this.other.forward(known, this.sum);
    const all = this.slopes(1 / whole.mantissa);
    const found = [];
    this.tables.forEach((table, t) => {
      if (!table.varies || this.set[table.node] >= 0) return;
      const [a, b] = [own[t], all[t]].map((slopes) => (table.part === "thresholds" ? slopes : covaried(table, slopes)));
      table.values.forEach((value, k) => {
        if (value === 0 || value === 1) return;
        const derivative = difference(a[k], posterior * b[k]);
        if (derivative !== 0) found.push({ ...this.entry(table, k), table: t, place: k, value, derivative, growth: b[k] });
      });
    });
    return byEffect(found);
  }

  // Derivatives of what `other` computed by all tables, also through sigmoids, by which `sum` selected.
  slopes(factor) {
    const found = this.tables.map((table) => new Float64Array(table.values.length));
    const add = (run) => run.parameters.forEach((op) => op.adjoint.forEach((x, k) => (found[op.table][k] += x)));
    this.other.reverse(factor, true);
    add(this.other);
    if (this.sum.selects.length) {
      this.sum.reverseSelections(this.other);
      add(this.sum);
    }
    return found;
  }

  // The posterior of a state if a number had another value, the rest of its row co-varied; tests may flip.
  changed(evidence, query, state, { table, place }, value) {
    this.prepare(evidence);
    const { values, shape, part, node } = this.tables[table];
    const before = values.slice();
    if (part === "thresholds") {
      value = betweenNeighbours(values, place, this.variables[node].tests, value);
    } else {
      const first = place - (place % shape[shape.length - 1]);
      const factor = (1 - value) / (1 - before[place]);
      for (let k = first; k < first + shape[shape.length - 1]; k++) values[k] *= factor;
    }
    values[place] = value;
    this.refresh();
    const found = this.ask(evidence).posteriors[query][state];
    before.forEach((x, k) => (values[k] = x));
    this.refresh();
    return found;
  }

  entry(table, k) {
    const made = { node: table.node, part: table.part, row: null, state: null };
    const cards = this.variables[table.node].parents.map((p) => this.variables[p].states.length);
    if (table.part === "thresholds") return { ...made, row: digits(k, table.shape) };
    const card = this.variables[table.node].states.length;
    return { ...made, row: digits(Math.floor(k / card), cards), state: k % card };
  }

  // The posterior of the query as the likelihood of one state of an input goes from 0 to 1.
  curve(evidence, query, input, steps = 100) {
    const at = (x) => along(this.variables, evidence, [[input, x]]);
    const points = grid(steps).map((x) => ({ x, ...this.seen(at(x), query) }));
    return {
      x: points.map(({ x }) => x),
      posteriors: points.map(({ posterior }) => posterior),
      breaks: this.breaks(points, at, query),
    };
  }

  // Where tests flip between points: nothing else lets the answer jump.
  breaks(points, at, query) {
    const found = [];
    for (let k = 1; k < points.length; k++) {
      let left = points[k - 1];
      while (left.pieces !== points[k].pieces && found.length < 1000) {
        let [low, high] = [left.x, points[k].x];
        let beyond = points[k];
        for (let halving = 0; halving < 50; halving++) {
          const x = (low + high) / 2;
          if (x <= low || x >= high) break;
          const middle = { x, ...this.seen(at(x), query) };
          if (middle.pieces === left.pieces) low = x;
          else [high, beyond] = [x, middle];
        }
        found.push(high);
        left = beyond;
      }
    }
    return found;
  }

  surface(evidence, query, first, second, steps = 40) {
    const [x, y] = [grid(steps), grid(steps)];
    const values = this.variables[query].states.map(() => []);
    const pieces = [];
    const number = numbering();
    for (const v of y) {
      const row = x.map((u) => this.seen(along(this.variables, evidence, [[first, u], [second, v]]), query));
      values.forEach((rows, state) => rows.push(row.map(({ posterior }) => posterior[state])));
      pieces.push(row.map(({ pieces: piece }) => number(piece)));
    }
    return { x, y, values, pieces };
  }

  // The posterior of one variable, and which tests hold.
  seen(evidence, query) {
    const { posteriors, tests } = this.ask(evidence);
    const pieces = tests.flatMap(({ gamma, rows }) => (gamma === null ? rows.map(({ weight }) => weight) : [])).join("");
    return { posterior: posteriors[query], pieces };
  }
}

// The logarithm of what the densities in some likelihoods were divided by.
function scaleOf(likelihoods) {
  return sumOf(likelihoods.map((own) => own?.scale ?? 0));
}

// The places of findings, in the order of the variables.
function findingsIn(evidence) {
  return evidence.flatMap((finding, i) => (finding ? [i] : []));
}

// No evidence at all, and the evidence without each of its findings.
function leftOut(evidence) {
  const none = evidence.map(() => null);
  return [none, ...findingsIn(evidence).map((i) => evidence.map((finding, k) => (k === i ? null : finding)))];
}

// Whether two findings differ in what they say.
function isApart(finding, other) {
  const text = (own) => JSON.stringify(Array.isArray(own) ? normalised(own).map((x) => Number(x.toPrecision(6))) : own);
  return text(finding) !== text(other);
}

// The variables about which two cases say different things.
function findingsApart(first, second) {
  return first.flatMap((finding, i) => (isApart(finding, second[i]) ? [i] : []));
}

// A case with some findings of another one.
function taken(first, second, places) {
  return first.map((finding, i) => (places.includes(i) ? second[i] : finding));
}

// A case, and the same with each finding of another one alone.
function oneByOne(first, second) {
  return [first, ...findingsApart(first, second).map((i) => taken(first, second, [i]))];
}

// The findings that differ, first those that move the log-odds of a state most by themselves.
function inTurn(first, second, state, [before, ...alone]) {
  const moved = (after) => Math.abs(logOdds(after, state) - logOdds(before, state)) || 0;
  const moves = alone.map(moved);
  return findingsApart(first, second).map((i, k) => [i, moves[k]]).sort((a, b) => b[1] - a[1]).map(([i]) => i);
}

// Of the state of a variable; what is left of 1 is summed, since a difference would lose digits.
function logOdds(posterior, state) {
  return Math.log(posterior[state]) - Math.log(sumOf(posterior.filter((_, k) => k !== state)));
}

// Every row is sure of one state, whatever the parents are; without a state, the numbers of the network.
function fillTable({ values, shape }, given, state) {
  const card = shape[shape.length - 1];
  for (let k = 0; k < values.length; k++) values[k] = state < 0 ? given[k] : k % card === state ? 1 : 0;
}

// The largest effects first, as far as numbers have room to change.
function byEffect(entries) {
  const room = ({ value, derivative }) => Math.abs(derivative) * Math.min(value, 1 - value);
  return entries.sort((x, y) => room(y) - room(x));
}

// A program of sums with maxima in their place; how tests come out, it borrows from the one with sums.
function withMaxima(program) {
  return { ...program, borrowed: true, operations: program.operations.map((op) => ({ ...op, largest: true })) };
}

// A threshold stays between its neighbours, where a state of the parents has several.
function betweenNeighbours(thresholds, place, count, value) {
  const rank = place % count;
  const low = rank > 0 ? thresholds[place - 1] : 0;
  const high = rank < count - 1 ? thresholds[place + 1] : 1;
  return Math.min(Math.max(value, low), high);
}

// A flat place as one state for each of some variables, the last fastest.
function digits(place, cards) {
  const found = [];
  for (let k = cards.length - 1; k >= 0; k--) {
    found.unshift(place % cards[k]);
    place = Math.floor(place / cards[k]);
  }
  return found;
}

// Several answers at once; a promise if one of them is.
function together(...answers) {
  return answers.some((answer) => answer instanceof Promise) ? Promise.all(answers) : answers;
}

// Numbers things in the order in which they come.
function numbering() {
  const found = new Map();
  return (thing) => found.get(thing) ?? (found.set(thing, found.size), found.size - 1);
}

function shares(finding, count) {
  const state = stateSet(finding);
  if (state >= 0) return Array.from({ length: count }, (_, k) => (k === state ? 1 : 0));
  return normalised(finding) ?? Array(count).fill(1 / count);
}

// The share of one state becomes x; the others keep their proportions.
function withShare(likelihoods, count, state, x) {
  const old = shares(likelihoods, count);
  const rest = 1 - old[state];
  return old.map((share, k) => (k === state ? x : rest > 0 ? (share / rest) * (1 - x) : (1 - x) / (count - 1)));
}

// Evidence with the shares of some states set, or with numbers between the ends of a range. It comes by the evidence
// itself, where a share is what it is now.
function along(variables, evidence, inputs) {
  const made = evidence.slice();
  for (const [input, x] of inputs) {
    const { states, density } = variables[input.variable];
    const before = evidence[input.variable];
    if (density) made[input.variable] = withColumn(before, density, input.state, numberAt(density, input.range, x));
    else made[input.variable] = withShare(before, states.length, input.state, x);
  }
  return made;
}

// The number at a share of a range; a count, where only these are possible.
function numberAt({ kind }, [low, high], x) {
  const number = low + (high - low) * x;
  if (kind === "poisson") return Math.max(0, Math.round(number));
  return kind === "log-normal" ? Math.max(number, 1e-6 * high) : number;
}

function grid(steps) {
  return Array.from({ length: steps + 1 }, (_, k) => k / steps);
}

// If an entry grows, the others of its row shrink in proportion.
function covaried({ values, shape }, slopes) {
  const card = shape[shape.length - 1];
  return slopes.map((slope, k) => {
    const first = k - (k % card);
    let [rest, moved] = [0, 0];
    for (let j = first; j < first + card; j++) {
      if (j === k) continue;
      rest += values[j];
      moved += values[j] * slopes[j];
    }
    return difference(slope, moved / rest);
  });
}

// Of two variables whose joint distribution is both[state of the one][state of the other], in nats.
function mutualInformation(both) {
  const rows = both.map(sumOf);
  const columns = both[0].map((_, k) => both.reduce((sum, row) => sum + row[k], 0));
  let sum = 0;
  // divided twice: the product of two tiny sums may be too small for a float
  both.forEach((row, i) => row.forEach((p, k) => (sum += p > 0 ? p * Math.log(p / rows[i] / columns[k]) : 0)));
  return Math.max(sum, 0);
}

function localEngine(model) {
  return new LocalEngine(model);
}

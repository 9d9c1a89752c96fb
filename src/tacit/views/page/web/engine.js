"use strict";
// The query, evaluated in the page: the programs that tacit compiled, run for one row of evidence.
//
// A program is a list of operations on small tables, each made of earlier ones; see `tacit.compiler.operations`, whose rules these
// are, for one row. A value is an array and an exponent: the number is array * 2 ** exponent.

// One program with its numbers ------------------------------------------------------------------------------

function strides(axes, sizes) {
  const found = new Map();
  let stride = 1;
  for (let k = axes.length - 1; k >= 0; k--) {
    found.set(axes[k], stride);
    stride *= sizes[axes[k]];
  }
  return found;
}

// Where the entries over some axes, the last one fastest, are in a table with its own axes.
function offsets(over, axes, sizes) {
  const own = strides(axes, sizes);
  let found = [0];
  for (const axis of over) {
    const step = own.get(axis) ?? 0;
    const longer = [];
    for (const start of found) for (let k = 0; k < sizes[axis]; k++) longer.push(start + k * step);
    found = longer;
  }
  return Int32Array.from(found);
}

function size(axes, sizes) {
  return axes.reduce((product, axis) => product * sizes[axis], 1);
}

const FAINTEST = 2 ** -1000; // below, numbers lose digits

const TESTS = {
  ">=": (a, b) => a >= b,
  ">": (a, b) => a > b,
  "<=": (a, b) => a <= b,
  "<": (a, b) => a < b,
};

// Each kind of operation: `plan` settles once which entries meet, `forward` makes the value, and `reverse` hands the
// derivative by the value on to what it was made of.
const KINDS = {
  parameter: {
    plan: () => null,
    forward(run, op) {
      op.array.set(run.tables[op.table].values);
    },
    reverse() {},
  },

  constant: {
    plan: () => null,
    forward(run, op) {
      op.array.set(op.values);
    },
    reverse() {},
  },

  likelihood: {
    plan: () => null,
    forward(run, op, evidence) {
      const given = evidence[op.variable];
      if (given) op.array.set(given);
      else op.array.fill(1);
    },
    reverse() {},
  },

  gather: {
    plan: () => null,
    forward(run, op) {
      const source = run.operations[op.inputs[0]];
      op.exponent = source.exponent;
      for (let k = 0; k < op.array.length; k++) {
        const from = op.index[k];
        op.array[k] = from >= 0 ? source.array[from] : from === -2 ? 1 : 0;
      }
    },
    reverse(run, op) {
      const below = run.operations[op.inputs[0]].adjoint;
      for (let k = 0; k < op.array.length; k++) if (op.index[k] >= 0) below[op.index[k]] += op.adjoint[k];
    },
  },

  contract: {
    plan(op, operations, sizes) {
      const gone = new Set(op.inputs.flatMap((i) => operations[i].axes));
      op.axes.forEach((axis) => gone.delete(axis));
      return op.inputs.map((i) => ({
        out: offsets(op.axes, operations[i].axes, sizes),
        summed: offsets([...gone], operations[i].axes, sizes),
      }));
    },
    forward(run, op) {
      const [a, b] = op.inputs.map((i) => run.operations[i]);
      op.exponent = a.exponent + (b ? b.exponent : 0);
      (op.largest ? KINDS.contract.maxima : KINDS.contract.sums)(op.array, op.plan, a.array, b && b.array);
    },
    sums(made, [p, q], a, b) {
      const terms = p.summed.length;
      for (let k = 0; k < made.length; k++) {
        let sum = 0;
        const i = p.out[k];
        if (b) {
          const j = q.out[k];
          for (let t = 0; t < terms; t++) sum += a[i + p.summed[t]] * b[j + q.summed[t]];
        } else {
          for (let t = 0; t < terms; t++) sum += a[i + p.summed[t]];
        }
        made[k] = sum;
      }
    },
    maxima(made, [p, q], a, b) {
      for (let k = 0; k < made.length; k++) {
        let largest = 0;
        for (let t = 0; t < p.summed.length; t++) {
          const term = a[p.out[k] + p.summed[t]] * (b ? b[q.out[k] + q.summed[t]] : 1);
          if (term > largest) largest = term;
        }
        made[k] = largest;
      }
    },
    reverse(run, op) {
      const [a, b] = op.inputs.map((i) => run.operations[i]);
      const [p, q] = op.plan;
      const terms = p.summed.length;
      for (let k = 0; k < op.array.length; k++) {
        const by = op.adjoint[k];
        if (by === 0) continue;
        const i = p.out[k];
        if (!b) {
          for (let t = 0; t < terms; t++) a.adjoint[i + p.summed[t]] += by;
          continue;
        }
        const j = q.out[k];
        for (let t = 0; t < terms; t++) {
          const x = i + p.summed[t];
          const y = j + q.summed[t];
          a.adjoint[x] += by * b.array[y];
          b.adjoint[y] += by * a.array[x];
        }
      }
    },
  },

  // The table that the evidence selects, from the marginal of the parents, the tables plus and minus, and thresholds.
  select: {
    plan(op, operations, sizes) {
      const parents = operations[op.inputs[0]].axes;
      return {
        marginal: offsets(op.axes, parents, sizes),
        tables: op.inputs.slice(1, 3).map((i) => offsets(op.axes, operations[i].axes, sizes)),
        thresholds: offsets(parents, operations[op.inputs[3]].axes, sizes),
      };
    },
    weights(run, op) {
      const [marginal, , , limits] = op.inputs.map((i) => run.operations[i]);
      const total = marginal.array.reduce((sum, x) => sum + x, 0);
      op.weight ??= new Float64Array(marginal.array.length);
      op.rest ??= new Float64Array(marginal.array.length);
      for (let u = 0; u < op.weight.length; u++) {
        const compared = [marginal.array[u], total, limits.array[op.plan.thresholds[u]]];
        op.weight[u] = weightOfPlus(op.gamma, op.tests[u], ...compared);
        op.rest[u] = op.gamma === null ? 1 - op.weight[u] : weightOfPlus(-op.gamma, op.tests[u], ...compared);
      }
    },
    forward(run, op) {
      KINDS.select.weights(run, op);
      const [plus, minus] = op.inputs.slice(1, 3).map((i) => run.operations[i].array);
      const [p, m] = op.plan.tables;
      for (let k = 0; k < op.array.length; k++) {
        const u = op.plan.marginal[k];
        op.array[k] = op.weight[u] * plus[p[k]] + op.rest[u] * minus[m[k]];
      }
    },
    reverse(run, op) {
      const [marginal, plus, minus, limits] = op.inputs.map((i) => run.operations[i]);
      const [p, m] = op.plan.tables;
      const byWeight = new Float64Array(op.weight.length);
      for (let k = 0; k < op.array.length; k++) {
        const u = op.plan.marginal[k];
        plus.adjoint[p[k]] += op.adjoint[k] * op.weight[u];
        minus.adjoint[m[k]] += op.adjoint[k] * op.rest[u];
        byWeight[u] += op.adjoint[k] * (plus.array[p[k]] - minus.array[m[k]]);
      }
      const total = marginal.array.reduce((sum, x) => sum + x, 0);
      if (op.gamma === null || total === 0) return;
      const byPosterior = byWeight.map((by, u) => slope(op.gamma, op.tests[u]) * by * op.weight[u] * op.rest[u]);
      const shared = byPosterior.reduce((sum, by, u) => sum + (by * marginal.array[u]) / total, 0);
      byPosterior.forEach((by, u) => {
        marginal.adjoint[u] += (by - shared) / total;
        limits.adjoint[op.plan.thresholds[u]] -= by;
      });
    },
  },

  // A table in (1 - e) * table + e * another, where e tells how near its threshold is to the next: its own share, or e.
  share: {
    plan(op, operations, sizes) {
      return op.inputs.map((i) => offsets(op.axes, operations[i].axes, sizes));
    },
    apart(run, op, k) {
      const [lower, upper] = op.inputs.map((i, t) => run.operations[i].array[op.plan[t][k]]);
      return op.gamma === null ? Infinity : op.gamma * (upper - lower);
    },
    forward(run, op) {
      const table = run.operations[op.inputs[2]].array;
      for (let k = 0; k < op.array.length; k++) {
        const apart = KINDS.share.apart(run, op, k);
        op.array[k] = op.own ? -Math.expm1(-apart) * table[op.plan[2][k]] : Math.exp(-apart);
      }
    },
    reverse(run, op) {
      const [lower, upper, table] = op.inputs.map((i) => run.operations[i]);
      for (let k = 0; k < op.array.length; k++) {
        const apart = KINDS.share.apart(run, op, k);
        const place = op.plan[2][k];
        if (op.own) table.adjoint[place] += op.adjoint[k] * -Math.expm1(-apart);
        if (op.gamma === null) continue;
        const by = op.adjoint[k] * (op.own ? table.array[place] : -1) * Math.exp(-apart) * op.gamma;
        upper.adjoint[op.plan[1][k]] += by;
        lower.adjoint[op.plan[0][k]] -= by;
      }
    },
  },

  add: {
    plan(op, operations, sizes) {
      return op.inputs.map((i) => offsets(op.axes, operations[i].axes, sizes));
    },
    forward(run, op) {
      const [a, b] = op.inputs.map((i) => run.operations[i].array);
      for (let k = 0; k < op.array.length; k++) op.array[k] = a[op.plan[0][k]] + b[op.plan[1][k]];
    },
    reverse(run, op) {
      op.inputs.forEach((i, t) => {
        const below = run.operations[i].adjoint;
        for (let k = 0; k < op.array.length; k++) below[op.plan[t][k]] += op.adjoint[k];
      });
    },
  },

  rescale: {
    plan: () => null,
    forward(run, op) {
      const source = run.operations[op.inputs[0]];
      let largest = 0;
      for (const x of source.array) if (x > largest) largest = x;
      run.faint ||= largest > 0 && largest < FAINTEST;
      const power = largest > 0 ? Math.max(-1000, Math.min(1000, Math.floor(Math.log2(largest)) + 1)) : 0;
      op.exponent = source.exponent + power;
      const factor = 2 ** -power;
      for (let k = 0; k < op.array.length; k++) op.array[k] = source.array[k] * factor;
    },
    reverse(run, op) {
      const source = run.operations[op.inputs[0]];
      const factor = 2 ** (source.exponent - op.exponent);
      for (let k = 0; k < op.array.length; k++) source.adjoint[k] += op.adjoint[k] * factor;
    },
  },
};

// How much `plus` counts: 0 or 1 by a test; with a slope, by a sigmoid of how far a share of a total is above its limit.
function weightOfPlus(gamma, test, share, total, limit) {
  if (gamma === null) return TESTS[test](share, total * limit) ? 1 : 0;
  return total > 0 ? sigmoid(slope(gamma, test) * (share / total - limit)) : 0.5;
}

// Far below 0 it is exp(x), which is a number where exp(-x) is infinite.
function sigmoid(x) {
  const small = Math.exp(-Math.abs(x));
  return (x >= 0 ? 1 : small) / (1 + small);
}

// The slope of a sigmoid: a test of "<=" holds where the parent state is improbable.
function slope(gamma, test) {
  return test.startsWith("<") ? -gamma : gamma;
}

// Whether a weight is too small for a float: what is 0 then only seems to be impossible.
function vanished({ kind, gamma, weight, rest, own, array }) {
  if (gamma === null) return false;
  if (kind === "share") return !own && array.includes(0);
  return kind === "select" && Boolean(weight?.includes(0) || rest?.includes(0)); // unless another run has selected
}

// A program ready to run: room for every value, planned once. Values without evidence are made once.
class Run {
  constructor(program, tables) {
    this.tables = tables;
    this.sizes = program.sizes;
    this.joint = program.joint;
    this.operations = program.operations.map((op) => ({ ...op, exponent: 0 }));
    for (const op of this.operations) {
      op.rules = KINDS[op.kind];
      op.inputs ??= [];
      op.array = new Float64Array(size(op.axes, this.sizes));
      op.adjoint = new Float64Array(op.array.length);
      op.plan = op.rules.plan(op, this.operations, this.sizes);
    }
    this.refresh();
    this.moving = this.operations.filter((op) => op.rows);
    this.selects = this.operations.filter((op) => op.kind === "select");
    this.likelihoods = program.cards.map((_, i) => this.operations.filter((op) => op.variable === i));
    this.parameters = this.operations.filter((op) => op.kind === "parameter");
  }

  // Make again what depends on numbers alone.
  refresh() {
    for (const op of this.operations) if (!op.rows) op.rules.forward(this, op);
  }

  // p*(evidence) as mantissa and exponent. `frozen`: another run, whose selected tables stay as they are.
  forward(evidence, frozen = null) {
    this.faint = false;
    for (const op of this.moving) {
      if (frozen && op.kind === "select") op.array.set(frozen.operations[this.operations.indexOf(op)].array);
      else op.rules.forward(this, op, evidence);
    }
    const { array: [mantissa], exponent } = this.operations[this.joint];
    this.faint ||= mantissa < FAINTEST && (mantissa > 0 || this.operations.some(vanished));
    return { mantissa, exponent };
  }

  // Derivatives, in the `adjoint` of every value. They stop at selected tables, where they are kept.
  reverse(seed, tables = false) {
    for (const op of this.operations) op.adjoint.fill(0);
    this.operations[this.joint].adjoint[0] = seed;
    this.descend(tables, false);
  }

  // From selected tables on down: derivatives of another run by them, through what they were selected by.
  reverseSelections(other) {
    for (const op of this.operations) op.adjoint.fill(0);
    this.operations.forEach((op, k) => {
      if (op.kind === "select") op.adjoint.set(other.operations[k].adjoint);
    });
    this.descend(true, true);
  }

  descend(tables, through) {
    for (let k = this.operations.length - 1; k >= 0; k--) {
      const op = this.operations[k];
      if ((op.rows || tables) && (through || op.kind !== "select")) op.rules.reverse(this, op);
    }
  }

  // For every decision on the way down from a maximum, the states that it belongs to.
  decide(decisions) {
    const states = new Map();
    for (const { inputs, chosen } of decisions) {
      const places = inputs.map((i) => {
        const { array, axes } = this.operations[i];
        const own = strides(axes, this.sizes);
        let start = 0;
        for (const axis of axes) if (!chosen.includes(axis)) start += states.get(axis) * own.get(axis);
        return { array, start, along: offsets(chosen, axes, this.sizes) };
      });
      let best = 0;
      let largest = -1;
      for (let t = 0; t < places[0].along.length; t++) {
        const term = places.reduce((product, { array, start, along }) => product * array[start + along[t]], 1);
        if (term > largest) [best, largest] = [t, term];
      }
      for (let k = chosen.length - 1; k >= 0; k--) {
        states.set(chosen[k], best % this.sizes[chosen[k]]);
        best = Math.floor(best / this.sizes[chosen[k]]);
      }
    }
    return states;
  }
}

// What the page asks ----------------------------------------------------------------------------------------

const NOISE = 1e-14; // what rounding leaves of a difference of equals, relative to them

function difference(a, b) {
  const made = a - b;
  return Math.abs(made) <= NOISE * (Math.abs(a) + Math.abs(b)) ? 0 : made;
}

function normalised(likelihoods) {
  if (!likelihoods) return null;
  const total = likelihoods.reduce((sum, x) => sum + x, 0);
  return likelihoods.map((x) => x / total);
}

function isObserved(likelihoods) {
  return Boolean(likelihoods) && likelihoods.length > 1 && likelihoods.filter((x) => x > 0).length === 1;
}

class LocalEngine {
  constructor(model) {
    this.local = true;
    this.variables = model.variables;
    this.tables = model.tables;
    this.tests = model.tests;
    this.sum = new Run(model.programs.sum, model.tables);
    this.other = new Run(model.programs.sum, model.tables); // the same query with other evidence, selected as `sum` is
    this.best = model.programs.max ?? withMaxima(model.programs.sum);
    this.max = new Run(this.best, model.tables);
  }

  // log p*(evidence), the posteriors of all variables, and how tests came out: one sweep up and one down.
  ask(evidence) {
    const known = evidence.map(normalised);
    const { mantissa, exponent } = this.sum.forward(known);
    const beyond = this.sum.faint; // findings that are too improbable for floats
    const possible = mantissa > 0 && !beyond;
    return {
      possible,
      beyond,
      logEvidence: possible ? Math.log(mantissa) + exponent * Math.LN2 : -Infinity,
      posteriors: this.marginals(this.sum, known, possible ? 1 / mantissa : NaN),
      tests: this.tests.map((test) => this.tested(test)),
    };
  }

  // p*(state, evidence) of all states of all variables, times a factor; NaN where that is.
  marginals(run, known, factor) {
    run.reverse(Number.isNaN(factor) ? 0 : factor);
    return this.variables.map(({ states }, i) => {
      const likelihoods = known[i] ?? states.map(() => 1);
      if (Number.isNaN(factor)) return states.map(() => NaN);
      if (!run.likelihoods[i].length) return [...likelihoods]; // a single state
      return likelihoods.map((x, k) => x * run.likelihoods[i].reduce((sum, op) => sum + op.adjoint[k], 0));
    });
  }

  // How one testing node was decided: a row for every test of every state of its parents.
  tested({ node, operations, gamma, places, thresholds, operators }) {
    const selects = operations.map((i) => this.sum.operations[i]);
    const marginal = this.sum.operations[selects[0].inputs[0]].array;
    const total = marginal.reduce((sum, x) => sum + x, 0);
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

  // The states that are jointly most probable, and log p*(states, evidence).
  mpe(evidence) {
    const known = evidence.map(normalised);
    if (this.best.borrowed) this.sum.forward(known);
    const { mantissa, exponent } = this.max.forward(known, this.best.borrowed ? this.sum : null);
    if (!(mantissa > 0)) return { possible: false, states: this.variables.map(() => null), logProbability: -Infinity };
    const found = this.max.decide(this.best.decisions);
    const states = this.best.axes.map(({ axis, possible }) => possible[axis === null ? 0 : found.get(axis)]);
    return { possible: true, states, logProbability: Math.log(mantissa) + exponent * Math.LN2 };
  }

  // By how much, in nats, the entropy of the query is expected to drop if a variable's state were observed.
  information(evidence, query) {
    const known = evidence.map(normalised);
    const whole = this.sum.forward(known);
    const nothing = this.variables.map(() => NaN);
    if (!(whole.mantissa > 0)) return nothing;
    const pairs = this.variables[query].states.map((_, state) => this.jointly(known, query, state, whole));
    return this.variables.map((variable, i) => {
      if (i === query || isObserved(evidence[i])) return NaN;
      return mutualInformation(pairs.map((of) => of[i]));
    });
  }

  // P*(state of the query, state of a variable) for all variables, with the tables that `sum` selected.
  jointly(known, query, state, whole) {
    const { masked, factor } = this.fixed(known, query, state, whole);
    return this.marginals(this.other, masked, factor);
  }

  // Runs the query with one of its states only; the factor makes probabilities given the evidence of derivatives.
  fixed(known, query, state, whole) {
    const masked = known.slice();
    masked[query] = this.variables[query].states.map((_, k) => (k === state ? (known[query] ? known[query][k] : 1) : 0));
    const part = this.other.forward(masked, this.sum);
    return { masked, factor: 2 ** (part.exponent - whole.exponent) / whole.mantissa };
  }

  // How the posterior of a state depends on every number, the rest of its row co-varied; the largest effects first.
  // `growth` is how much p*(evidence) grows with the number, relative to what it is.
  sensitivity(evidence, query, state) {
    const known = evidence.map(normalised);
    const whole = this.sum.forward(known);
    if (!(whole.mantissa > 0)) return [];
    const posterior = this.marginals(this.sum, known, 1 / whole.mantissa)[query][state];
    const own = this.slopes(this.fixed(known, query, state, whole).factor);
    this.other.forward(known, this.sum);
    const all = this.slopes(1 / whole.mantissa);
    const found = [];
    this.tables.forEach((table, t) => {
      if (!table.varies) return;
      const [a, b] = [own[t], all[t]].map((slopes) => (table.part === "thresholds" ? slopes : covaried(table, slopes)));
      table.values.forEach((value, k) => {
        if (value === 0 || value === 1) return;
        const derivative = difference(a[k], posterior * b[k]);
        if (derivative !== 0) found.push({ ...this.entry(table, k), table: t, place: k, value, derivative, growth: b[k] });
      });
    });
    const room = ({ value, derivative }) => Math.abs(derivative) * Math.min(value, 1 - value);
    return found.sort((x, y) => room(y) - room(x));
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
    this.sum.refresh();
    const found = this.ask(evidence).posteriors[query][state];
    before.forEach((x, k) => (values[k] = x));
    this.sum.refresh();
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

// The same program with maxima in place of sums; how tests come out, it borrows from the one with sums.
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

// Numbers things in the order in which they come.
function numbering() {
  const found = new Map();
  return (thing) => found.get(thing) ?? (found.set(thing, found.size), found.size - 1);
}

function shares(likelihoods, count) {
  return normalised(likelihoods) ?? Array(count).fill(1 / count);
}

// The share of one state becomes x; the others keep their proportions.
function withShare(likelihoods, count, state, x) {
  const old = shares(likelihoods, count);
  const rest = 1 - old[state];
  return old.map((share, k) => (k === state ? x : rest > 0 ? (share / rest) * (1 - x) : (1 - x) / (count - 1)));
}

// Evidence with the shares of some states set. It comes by the evidence itself, where a share is what it is now.
function along(variables, evidence, inputs) {
  const made = evidence.slice();
  for (const [{ variable, state }, x] of inputs)
    made[variable] = withShare(evidence[variable], variables[variable].states.length, state, x);
  return made;
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
  const rows = both.map((row) => row.reduce((sum, x) => sum + x, 0));
  const columns = both[0].map((_, k) => both.reduce((sum, row) => sum + row[k], 0));
  let sum = 0;
  // divided twice: the product of two tiny sums may be too small for a float
  both.forEach((row, i) => row.forEach((p, k) => (sum += p > 0 ? p * Math.log(p / rows[i] / columns[k]) : 0)));
  return Math.max(sum, 0);
}

function localEngine(model) {
  return new LocalEngine(model);
}

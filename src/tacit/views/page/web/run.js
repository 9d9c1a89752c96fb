"use strict";
// The programs that tacit compiled, run in the page for one row of evidence.
//
// A program is a list of operations on small tables, each made of earlier ones; see `tacit.compiler.operations`, whose rules these
// are, for one row. A value is an array and an exponent: the number is array * 2 ** exponent.

function sumOf(numbers) {
  return numbers.reduce((sum, x) => sum + x, 0);
}

function strides(axes, sizes) {
  const steps = new Map();
  let stride = 1;
  for (let k = axes.length - 1; k >= 0; k--) {
    steps.set(axes[k], stride);
    stride *= sizes[axes[k]];
  }
  return steps;
}

// Where the entries over some axes, the last one fastest, are in a table with its own axes.
function offsets(over, axes, sizes) {
  const steps = strides(axes, sizes);
  let places = [0];
  for (const axis of over) {
    const step = steps.get(axis) ?? 0;
    const longer = [];
    for (const start of places) for (let k = 0; k < sizes[axis]; k++) longer.push(start + k * step);
    places = longer;
  }
  return Int32Array.from(places);
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

// Where the entries of a result are in each of the inputs.
function everyInput(op, operations, sizes) {
  return op.inputs.map((i) => offsets(op.axes, operations[i].axes, sizes));
}

// Each kind of operation: `plan` settles once which entries meet, `forward` makes the value, and `reverse` hands the
// derivative by the value on to what it was made of.
const KINDS = {
  parameter: {
    forward(run, op) {
      op.array.set(run.tables[op.table].values);
    },
  },

  constant: {
    forward(run, op) {
      op.array.set(op.values);
    },
  },

  likelihood: {
    forward(run, op, evidence) {
      const given = evidence[op.variable];
      if (given) op.array.set(given);
      else op.array.fill(1);
    },
  },

  gather: {
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
      const total = sumOf(marginal.array);
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
      const total = sumOf(marginal.array);
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
    plan: everyInput,
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
    plan: everyInput,
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

  // A list of instructions, each a sum of products of two numbers: of the inputs, literals, and earlier instructions.
  structured: {
    plan(op, operations) {
      let first = 0;
      const starts = op.inputs.map((i) => [i, (first += operations[i].array.length) - operations[i].array.length]);
      const numbers = new Float64Array(first + op.literals.length + op.bounds.length - 1);
      numbers.set(op.literals, first);
      return { starts, numbers, results: first + op.literals.length, terms: Int32Array.from(op.terms) };
    },
    forward(run, op) {
      const { starts, numbers, results, terms } = op.plan;
      for (const [i, start] of starts) numbers.set(run.operations[i].array, start);
      op.exponent = op.inputs.reduce((sum, i) => sum + run.operations[i].exponent, 0);
      for (let k = 0; k + 1 < op.bounds.length; k++) {
        let sum = 0;
        const end = 2 * op.bounds[k + 1];
        for (let t = 2 * op.bounds[k]; t < end; t += 2) sum += numbers[terms[t]] * numbers[terms[t + 1]];
        numbers[results + k] = sum;
      }
      op.index.forEach((from, k) => (op.array[k] = from >= 0 ? numbers[from] : from === -2 ? 1 : 0));
    },
    reverse(run, op) {
      const { starts, numbers, results, terms } = op.plan;
      const adjoints = new Float64Array(numbers.length);
      op.index.forEach((from, k) => from >= 0 && (adjoints[from] += op.adjoint[k]));
      for (let k = op.bounds.length - 2; k >= 0; k--) {
        const by = adjoints[results + k];
        if (by === 0) continue;
        for (let t = 2 * op.bounds[k]; t < 2 * op.bounds[k + 1]; t += 2) {
          adjoints[terms[t]] += by * numbers[terms[t + 1]];
          adjoints[terms[t + 1]] += by * numbers[terms[t]];
        }
      }
      for (const [i, start] of starts) {
        const below = run.operations[i].adjoint;
        for (let k = 0; k < below.length; k++) below[k] += adjoints[start + k];
      }
    },
  },

  rescale: {
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
      op.rules = this.rules[op.kind];
      op.inputs ??= [];
      op.array = new Float64Array(size(op.axes, this.sizes));
      op.adjoint = new Float64Array(op.array.length);
      op.plan = KINDS[op.kind].plan?.(op, this.operations, this.sizes);
      this.prepare(op);
    }
    this.refresh();
    this.moving = this.operations.filter((op) => op.rows);
    this.selects = this.operations.filter((op) => op.kind === "select");
    this.likelihoods = program.cards.map((_, i) => this.operations.filter((op) => op.variable === i));
    this.parameters = this.operations.filter((op) => op.kind === "parameter");
  }

  get rules() {
    return KINDS;
  }

  // More that an operation needs.
  prepare() {}

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
      if ((op.rows || tables) && (through || op.kind !== "select")) op.rules.reverse?.(this, op);
    }
  }

  // Derivatives by the logarithms of the likelihoods of a variable, once they are known.
  joints(i, likelihoods) {
    return likelihoods.map((x, k) => x * this.likelihoods[i].reduce((sum, op) => sum + op.adjoint[k], 0));
  }

  // The same as if nothing were known of that variable itself, but for a common factor.
  otherwise(i) {
    const [first, ...more] = this.likelihoods[i];
    return first ? [...first.adjoint].map((x, k) => more.reduce((sum, op) => sum + op.adjoint[k], x)) : [1];
  }

  // The value of an operation, but for a common factor.
  relative(op) {
    return op.array;
  }

  // The traceback from a maximum: for every decision, the states that it belongs to.
  decide(decisions) {
    const states = new Map();
    for (const { inputs, chosen } of decisions) {
      const places = inputs.map((i) => {
        const { axes } = this.operations[i];
        const own = strides(axes, this.sizes);
        let start = 0;
        for (const axis of axes) if (!chosen.includes(axis)) start += states.get(axis) * own.get(axis);
        return { op: this.operations[i], start, along: offsets(chosen, axes, this.sizes) };
      });
      let best = this.best(places);
      for (let k = chosen.length - 1; k >= 0; k--) {
        states.set(chosen[k], best % this.sizes[chosen[k]]);
        best = Math.floor(best / this.sizes[chosen[k]]);
      }
    }
    return states;
  }

  // Of products of entries of several tables, the place of the largest.
  best(places) {
    let [best, largest] = [0, -1];
    for (let t = 0; t < places[0].along.length; t++) {
      const term = places.reduce((product, { op, start, along }) => product * op.array[start + along[t]], 1);
      if (term > largest) [best, largest] = [t, term];
    }
    return best;
  }
}

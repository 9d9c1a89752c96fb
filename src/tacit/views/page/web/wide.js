"use strict";
// The same programs with an exponent for every number, for findings so improbable that floats would lose some: numbers far
// from all means, or very many findings. It is slower, and used where a plain run has to give up. Derivatives stop at
// selected tables.

const RESCALED = 2 ** 300; // no number of an array is further from 1 for long

// Numbers array[k] * 2 ** powers[k].
class WideTable {
  constructor(length) {
    Object.assign(this, { array: new Float64Array(length), powers: new Float64Array(length) });
  }

  clear() {
    this.array.fill(0);
    this.powers.fill(0);
  }

  put(k, x, power) {
    const own = x === 0 ? 0 : Math.floor(Math.log2(Math.abs(x)));
    this.array[k] = timesPower(x, -own);
    this.powers[k] = x === 0 ? 0 : power + own;
  }

  add(k, x, power) {
    if (x === 0) return;
    const before = this.array[k];
    const gap = power - this.powers[k];
    if (before === 0) this.put(k, x, power);
    else if (gap > 0) this.put(k, before * 2 ** -gap + x, power);
    else {
      this.array[k] = before + x * 2 ** gap;
      const size = Math.abs(this.array[k]);
      if (!(size < RESCALED && size > 1 / RESCALED)) this.put(k, this.array[k], this.powers[k]);
    }
  }

  // The number there becomes x, if that is larger.
  raise(k, x, power) {
    if (x > 0 && (this.array[k] === 0 || isLess(this.array[k], this.powers[k], x, power))) this.put(k, x, power);
  }

  take(k, other, j) {
    this.array[k] = other.array[j];
    this.powers[k] = other.powers[j];
  }

  fill(numbers) {
    numbers.forEach((x, k) => this.put(k, x, 0));
  }

  copy({ array, powers }) {
    array.forEach((x, k) => this.put(k, x, powers[k]));
  }

  // As floats, which may be 0 or infinite.
  plain() {
    return this.array.map((x, k) => timesPower(x, this.powers[k]));
  }

  // As floats that have lost a common factor; small ones may be 0.
  relative() {
    const most = this.powers.reduce((best, power, k) => (this.array[k] !== 0 && power > best ? power : best), -Infinity);
    return this.array.map((x, k) => (x === 0 ? 0 : x * 2 ** (this.powers[k] - most)));
  }
}

function isLess(x, power, y, other) {
  return Math.abs(power - other) > 1100 ? power < other : x * 2 ** (power - other) < y;
}

// Adds a[i] * b[j].
function addProduct(into, k, a, i, b, j) {
  into.add(k, a.array[i] * b.array[j], a.powers[i] + b.powers[j]);
}

// Puts factor * exp(x) there, also where that exponential alone is no float.
function putExponential(table, k, x, factor) {
  const power = x === -Infinity ? 0 : Math.round(x / Math.LN2);
  table.put(k, factor * Math.exp(x - power * Math.LN2), power);
}

const WIDE = {
  parameter: { forward: (run, op) => op.value.fill(run.tables[op.table].values) },
  constant: { forward: (run, op) => op.value.fill(op.values) },

  likelihood: {
    forward(run, op, evidence) {
      const given = evidence[op.variable];
      if (given?.powers) op.value.copy(given);
      else op.value.fill(given ?? op.array.fill(1));
    },
  },

  gather: {
    forward(run, op) {
      const source = run.operations[op.inputs[0]].value;
      op.index.forEach((from, k) => (from >= 0 ? op.value.take(k, source, from) : op.value.put(k, from === -2 ? 1 : 0, 0)));
    },
    reverse(run, op) {
      const below = run.operations[op.inputs[0]].slope;
      op.index.forEach((from, k) => from >= 0 && below.add(from, op.slope.array[k], op.slope.powers[k]));
    },
  },

  contract: {
    forward(run, op) {
      const [a, b = ONE] = op.inputs.map((i) => run.operations[i].value);
      op.value.clear();
      everyTerm(op, (k, i, j) => {
        if (op.largest) op.value.raise(k, a.array[i] * b.array[j], a.powers[i] + b.powers[j]);
        else addProduct(op.value, k, a, i, b, j);
      });
    },
    reverse(run, op) {
      const [a, b] = op.inputs.map((i) => run.operations[i]);
      everyTerm(op, (k, i, j) => {
        addProduct(a.slope, i, op.slope, k, b?.value ?? ONE, j);
        if (b) addProduct(b.slope, j, op.slope, k, a.value, i);
      });
    },
  },

  select: {
    weights(run, op) {
      const marginal = run.operations[op.inputs[0]].value.relative();
      const limits = run.operations[op.inputs[3]].value.plain();
      const total = sumOf(marginal);
      op.weights ??= [new WideTable(marginal.length), new WideTable(marginal.length)];
      marginal.forEach((share, u) => {
        const limit = limits[op.plan.thresholds[u]];
        if (op.gamma === null) {
          const holds = weightOfPlus(null, op.tests[u], share, total, limit);
          op.weights.forEach((table, t) => table.put(u, t ? 1 - holds : holds, 0));
        } else {
          const x = total > 0 ? slope(op.gamma, op.tests[u]) * (share / total - limit) : 0;
          op.weights.forEach((table, t) => putExponential(table, u, Math.min(t ? -x : x, 0), 1 / (1 + Math.exp(-Math.abs(x)))));
        }
      });
      op.weight = op.weights[0].plain();
    },
    forward(run, op) {
      WIDE.select.weights(run, op);
      const [plus, minus] = op.inputs.slice(1, 3).map((i) => run.operations[i].value);
      const [p, m] = op.plan.tables;
      op.value.clear();
      op.plan.marginal.forEach((u, k) => {
        addProduct(op.value, k, plus, p[k], op.weights[0], u);
        addProduct(op.value, k, minus, m[k], op.weights[1], u);
      });
    },
  },

  share: {
    apart(run, op, k) {
      const [lower, upper] = op.inputs.slice(0, 2).map((i, t) => {
        const { array, powers } = run.operations[i].value;
        return timesPower(array[op.plan[t][k]], powers[op.plan[t][k]]);
      });
      return op.gamma === null ? Infinity : op.gamma * (upper - lower);
    },
    forward(run, op) {
      const table = run.operations[op.inputs[2]].value;
      op.plan[2].forEach((place, k) => {
        const apart = WIDE.share.apart(run, op, k);
        if (op.own) op.value.put(k, -Math.expm1(-apart) * table.array[place], table.powers[place]);
        else putExponential(op.value, k, -apart, 1);
      });
    },
  },

  add: {
    forward(run, op) {
      op.value.clear();
      op.inputs.forEach((i, t) => {
        const { array, powers } = run.operations[i].value;
        op.plan[t].forEach((place, k) => op.value.add(k, array[place], powers[place]));
      });
    },
    reverse(run, op) {
      op.inputs.forEach((i, t) => {
        const below = run.operations[i].slope;
        op.plan[t].forEach((place, k) => below.add(place, op.slope.array[k], op.slope.powers[k]));
      });
    },
  },

  structured: {
    forward(run, op) {
      const { starts, numbers, results, terms } = op.plan;
      op.numbers ??= new WideTable(numbers.length);
      op.numbers.fill(numbers.fill(0, results)); // literals, and room
      for (const [i, start] of starts) {
        const { value } = run.operations[i];
        value.array.forEach((_, k) => op.numbers.take(start + k, value, k));
      }
      everyPair(op, (k, a, b) => addProduct(op.numbers, results + k, op.numbers, terms[a], op.numbers, terms[b]));
      op.index.forEach((from, k) => (from >= 0 ? op.value.take(k, op.numbers, from) : op.value.put(k, from === -2 ? 1 : 0, 0)));
    },
    reverse(run, op) {
      const { starts, numbers, results, terms } = op.plan;
      const slopes = new WideTable(numbers.length);
      op.index.forEach((from, k) => from >= 0 && slopes.add(from, op.slope.array[k], op.slope.powers[k]));
      for (let k = op.bounds.length - 2; k >= 0; k--)
        for (let t = 2 * op.bounds[k]; t < 2 * op.bounds[k + 1]; t += 2) {
          addProduct(slopes, terms[t], slopes, results + k, op.numbers, terms[t + 1]);
          addProduct(slopes, terms[t + 1], slopes, results + k, op.numbers, terms[t]);
        }
      for (const [i, start] of starts) {
        const below = run.operations[i].slope;
        below.array.forEach((_, k) => below.add(k, slopes.array[start + k], slopes.powers[start + k]));
      }
    },
  },

  rescale: {
    forward: (run, op) => op.value.copy(run.operations[op.inputs[0]].value),
    reverse(run, op) {
      const below = run.operations[op.inputs[0]].slope;
      op.slope.array.forEach((x, k) => below.add(k, x, op.slope.powers[k]));
    },
  },
};

const ONE = { array: [1], powers: [0] };

// Calls f(place in the result, place in the first input, place in the second one) for all products of a contraction.
function everyTerm({ plan: [p, q], array }, f) {
  for (let k = 0; k < array.length; k++)
    for (let t = 0; t < p.summed.length; t++) f(k, p.out[k] + p.summed[t], q ? q.out[k] + q.summed[t] : 0);
}

// Calls f(instruction, place of the first factor, place of the second one) for all products of a list of instructions.
function everyPair({ bounds }, f) {
  for (let k = 0; k + 1 < bounds.length; k++) for (let t = 2 * bounds[k]; t < 2 * bounds[k + 1]; t += 2) f(k, t, t + 1);
}

// A run that no finding is too improbable for. `array` and `adjoint` of its operations are floats, where these are asked for.
class WideRun extends Run {
  get rules() {
    return WIDE;
  }

  prepare(op) {
    op.value = new WideTable(op.array.length);
    op.slope = new WideTable(op.array.length);
  }

  forward(evidence, frozen = null) {
    for (const op of this.moving) {
      if (frozen && op.kind === "select") op.value.copy(frozen.operations[this.operations.indexOf(op)].value);
      else op.rules.forward(this, op, evidence);
    }
    const { array: [mantissa], powers: [exponent] } = this.operations[this.joint].value;
    return { mantissa, exponent };
  }

  reverse(seed, tables = false) {
    for (const op of this.operations) op.slope.clear();
    const { slope: own, value } = this.operations[this.joint];
    own.put(0, seed, -value.powers[0]);
    this.descend(tables, false);
    for (const op of this.parameters) op.adjoint.set(op.slope.plain());
  }

  joints(i, likelihoods) {
    const table = new WideTable(likelihoods.array?.length ?? likelihoods.length);
    const own = new WideTable(table.array.length);
    if (likelihoods.powers) own.copy(likelihoods);
    else own.fill(likelihoods);
    this.likelihoods[i].forEach((op) => table.array.forEach((_, k) => addProduct(table, k, own, k, op.slope, k)));
    return [...table.plain()];
  }

  otherwise(i) {
    const [first, ...more] = this.likelihoods[i];
    if (!first) return [1];
    const table = new WideTable(first.slope.array.length);
    for (const { slope: own } of [first, ...more]) own.array.forEach((x, k) => table.add(k, x, own.powers[k]));
    return [...table.relative()];
  }

  relative(op) {
    return op.value.relative();
  }

  // Of products of entries of several tables, the place of the largest.
  best(places) {
    const table = new WideTable(2);
    let best = 0;
    places[0].along.forEach((_, t) => {
      table.put(1, 1, 0);
      for (const { op, start, along } of places) {
        const { array, powers } = op.value;
        table.put(1, table.array[1] * array[start + along[t]], table.powers[1] + powers[start + along[t]]);
      }
      if (table.array[1] === 0 || (table.array[0] !== 0 && !isLess(table.array[0], table.powers[0], table.array[1], table.powers[1]))) return;
      table.take(0, table, 1);
      best = t;
    });
    return best;
  }
}

"use strict";
// Continuous variables: what their numbers say about the states of their parents, and how unobserved ones are distributed.
//
// A density has a component for each joint state of the parents. Evidence on it is { numbers }: one for each column, null
// where it is missing.

const ROOT_TAU = Math.sqrt(2 * Math.PI);
const LOG_ROOT_TAU = 0.9189385332046728;
const FEW_COUNTS = 16; // from here on, Stirling's series has all digits
const STIRLING = [1 / 156, -691 / 360360, 1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12]; // by powers of 1/k²
const TAIL = 0.002; // of the probability that curves leave out at either end
const NEGLIGIBLE = 1e-18; // weight of a component beside the largest one

// The numbers of a finding; null if it is none of numbers.
function numbersIn(finding) {
  return finding?.numbers ?? null;
}

// The finding on a continuous variable once one of its columns has this number, or none; null if none is left.
function withColumn(finding, { columns }, j, x) {
  const numbers = columns.map((_, k) => (k === j ? x : (numbersIn(finding)?.[k] ?? null)));
  return numbers.some((own) => own !== null) ? { numbers } : null;
}

// The log-densities of numbers, one for each component.
const LOG_DENSITIES = {
  gaussian: ({ mean, sd }, [x]) => mean.map((m, c) => normalLog(Twofold.sum(x, -m).over(sd[c]), sd[c])),
  "log-normal": ({ mean, sd }, [x]) => {
    const log = new Twofold(x).log();
    return mean.map((m, c) => normalLog(log.minus(m).over(sd[c]), sd[c]).minus(log));
  },
  poisson: ({ rate }, [k]) => {
    const log = new Twofold(Math.max(k, 1)).log();
    const saturated = -logExcess(k);
    return rate.map((r) => Twofold.sum(k, -r).minus(log.minus(new Twofold(r).log()).times(k)).plus(saturated));
  },
  joint: ({ mean, cov, columns }, numbers) => {
    const seen = columns.flatMap((_, j) => (numbers[j] === null ? [] : [j]));
    return components(mean, columns.length).map((_, c) => {
      const { left, pivots } = eliminated({ mean, cov, columns }, c, seen, numbers);
      return left.reduce((log, own, i) => {
        return log.minus(own.times(own).over(pivots[i]).plus(pivots[i].log()).times(0.5)).minus(LOG_ROOT_TAU);
      }, new Twofold(0));
    });
  },
};

function normalLog(off, sd) {
  return off.times(off).times(-0.5).minus(new Twofold(sd).log()).minus(LOG_ROOT_TAU);
}

function components(numbers, each) {
  return Array.from({ length: numbers.length / each }, (_, c) => c);
}

// Columns of one component, the earlier ones taken out of the later ones: what is left of each, and its variance.
function eliminated({ mean, cov, columns }, c, places, numbers) {
  const d = columns.length;
  const left = places.map((j) => Twofold.sum(numbers[j] ?? 0, -mean[c * d + j]));
  const rest = places.map((i) => places.map((j) => new Twofold(cov[(c * d + i) * d + j])));
  places.forEach((_, i) => {
    for (let j = i + 1; j < places.length; j++) {
      const factor = rest[i][j].over(rest[i][i]);
      left[j] = left[j].minus(factor.times(left[i]));
      for (let k = j; k < places.length; k++) rest[j][k] = rest[j][k].minus(factor.times(rest[i][k]));
    }
  });
  return { left, pivots: places.map((_, i) => rest[i][i]) };
}

// The likelihoods of the components as numbers * 2 ** powers, of which the largest is 1, and the logarithm of what they
// were divided by. Differences are taken before the exponential, so that numbers may be far off.
function densityLikelihoods(density, numbers) {
  const logs = LOG_DENSITIES[density.kind](density, numbers).map((log) => (Number.isNaN(log.high) ? new Twofold(-Infinity) : log));
  const top = logs.reduce((best, log) => (log.high > best.high ? log : best));
  if (top.high === -Infinity) return { array: logs.map(() => 0), powers: logs.map(() => 0), scale: 0 };
  const apart = logs.map((log) => (log.high === -Infinity ? log : log.minus(top)));
  const powers = apart.map(({ high }) => (high === -Infinity ? 0 : Math.round(high / Math.LN2)));
  const array = apart.map((log, c) => {
    const { high, low } = log.minus(LOG_2.times(powers[c]));
    return log.high === -Infinity ? 0 : Math.exp(high) * (1 + low);
  });
  return { array, powers, scale: top.high };
}

// What is known of each column that was not observed, from the weights of the components; null for those observed.
function distributions({ density }, finding, weights) {
  const numbers = numbersIn(finding) ?? density.columns.map(() => null);
  return density.columns.map((_, j) => (numbers[j] === null ? new Mixture(componentsOf(density, numbers, j), weights) : null));
}

// The components of a column, given the numbers of the others.
function componentsOf(density, numbers, j) {
  if (density.kind !== "joint") return density;
  const places = [...density.columns.flatMap((_, i) => (i !== j && numbers[i] !== null ? [i] : [])), j];
  const last = components(density.mean, density.columns.length).map((_, c) => {
    const { left, pivots } = eliminated(density, c, places, numbers);
    return { mean: -left.at(-1).high, sd: Math.sqrt(pivots.at(-1).high) };
  });
  return { kind: "gaussian", mean: last.map(({ mean }) => mean), sd: last.map(({ sd }) => sd) };
}

// Densities that are weighted and added: the distribution of a number. Without weights, of impossible evidence, all is NaN.
class Mixture {
  constructor({ kind, mean, sd, rate }, weights) {
    const most = Math.max(...weights);
    const heavy = weights.flatMap((w, c) => (w > NEGLIGIBLE * most ? [c] : []));
    const own = (numbers) => numbers && heavy.map((c) => numbers[c]);
    Object.assign(this, { kind, weights: own(weights), centres: own(rate ?? mean), sds: own(rate?.map(Math.sqrt) ?? sd) });
    Object.assign(this, { counted: kind === "poisson", possible: heavy.length > 0 });
  }

  // The weighted sum of what `f` makes of the components.
  total(f) {
    return this.possible ? sumOf(this.weights.map((w, c) => w * f(this.centres[c], this.sds[c]))) : NaN;
  }

  get mean() {
    return this.total(MOMENTS[this.kind].mean);
  }

  get sd() {
    const { mean, variance } = MOMENTS[this.kind];
    const middle = this.mean;
    return Math.sqrt(this.total((m, s) => variance(m, s) + (mean(m, s) - middle) ** 2));
  }

  // Almost all of the distribution, and nine tenths of it: what lies between two quantiles, computed once.
  get span() {
    return (this.spanned ??= [TAIL, 1 - TAIL].map((share) => this.quantile(share)));
  }

  get interval() {
    return (this.between ??= [0.05, 0.95].map((share) => this.quantile(share)));
  }

  // The density at x; of counts, their probability.
  pdf(x) {
    if (this.kind === "log-normal") {
      if (x <= 0) return 0;
      const log = Math.log(x);
      return this.total((m, s) => Math.exp(-0.5 * ((log - m) / s) ** 2 - Math.log(s) - LOG_ROOT_TAU - log));
    }
    if (this.counted) return x >= 0 && Number.isInteger(x) ? this.total((rate) => poisson(x, rate)) : 0;
    return this.total((m, s) => Math.exp(-0.5 * ((x - m) / s) ** 2 - Math.log(s) - LOG_ROOT_TAU));
  }

  // The probability of at most x, of its logarithm where that is what is normal.
  below(x) {
    return this.total((m, s) => (this.counted ? poissonBelow(x, m) : normalBelow((x - m) / s)));
  }

  // The number below which a share lies: by halving, and by Newton's method where it stays inside.
  quantile(share) {
    if (!this.possible) return NaN;
    if (this.counted) return this.countAt(share);
    let [low, high] = [Math.min(...this.ends(-9)), Math.max(...this.ends(9))];
    let x = low / 2 + high / 2;
    for (let tries = 0; tries < 200 && high - low > 1e-14 * Math.max(Math.abs(low), Math.abs(high)); tries++) {
      const off = this.below(x) - share;
      if (off === 0) break;
      if (off > 0) high = x;
      else low = x;
      const next = x - off / this.total((m, s) => Math.exp(-0.5 * ((x - m) / s) ** 2) / (s * ROOT_TAU));
      const inside = next > low && next < high;
      if (inside && Math.abs(next - x) <= 1e-15 * Math.abs(next)) break;
      x = inside ? next : low / 2 + high / 2;
    }
    return this.kind === "log-normal" ? Math.exp(x) : x;
  }

  countAt(share) {
    let [low, high] = [-1, Math.ceil(Math.max(...this.ends(10))) + 50];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.below(middle) >= share) high = middle;
      else low = middle;
    }
    return high;
  }

  // So many standard deviations from the middle of each component.
  ends(off) {
    return this.centres.map((m, c) => m + off * this.sds[c]);
  }
}

const MOMENTS = {
  gaussian: { mean: (m) => m, variance: (_, s) => s * s },
  "log-normal": {
    mean: (m, s) => Math.exp(m + (s * s) / 2),
    variance: (m, s) => Math.expm1(s * s) * Math.exp(2 * m + s * s),
  },
  poisson: { mean: (rate) => rate, variance: (rate) => rate },
};

// P(Z ≤ z) of a standard normal number.
function normalBelow(z) {
  const tail = normalTail(Math.abs(z));
  return z > 0 ? 1 - tail : tail;
}

function normalTail(z) {
  const density = Math.exp(-0.5 * z * z) / ROOT_TAU;
  if (z < 3) {
    let [term, sum] = [z, z];
    for (let n = 3; term > 1e-17 * sum; n += 2) sum += term *= (z * z) / n;
    return 0.5 - density * sum;
  }
  let fraction = 0;
  for (let n = 80; n > 0; n--) fraction = n / (z + fraction);
  return density / (z + fraction);
}

// log(k!) - (k log k - k)
function logExcess(k) {
  if (k >= FEW_COUNTS) {
    const square = 1 / (k * k);
    return STIRLING.reduce((sum, own) => sum * square + own, 0) / k + 0.5 * Math.log(k) + LOG_ROOT_TAU;
  }
  let factorial = 1;
  for (let j = 2; j <= k; j++) factorial *= j;
  return Math.log(factorial) - (k > 0 ? k * Math.log(k) - k : 0);
}

// The probability of a count.
function poisson(k, rate) {
  if (k === 0) return Math.exp(-rate);
  return Math.exp(k - rate - k * Math.log1p((k - rate) / rate) - logExcess(k));
}

// The probability of at most a count: the tail that is short is summed.
function poissonBelow(x, rate) {
  const k = Math.floor(x);
  if (k < 0) return 0;
  let sum = 0;
  if (k < rate) {
    for (let [j, term] = [k, poisson(k, rate)]; j >= 0 && term > 1e-18 * sum; j--, term *= (j + 1) / rate) sum += term;
    return sum;
  }
  for (let [j, term] = [k + 1, poisson(k + 1, rate)]; term > 1e-18 * sum; j++, term *= rate / j) sum += term;
  return 1 - sum;
}

"use strict";
// Arithmetic with twice the digits of floats, for differences of log-densities; see `tacit.base.double_double`.

const SPLITTER = 2 ** 27 + 1; // a product with it tells the upper half of a float's digits from the lower one
const LOG_TERMS = 21; // of the series of the logarithm, whose arguments are at most 0.172

// A number as a sum of two floats, which is not carried out. Where floats overflow, it is what floats alone give.
class Twofold {
  constructor(high, low = 0) {
    Object.assign(this, { high, low: Number.isFinite(low) ? low : 0 });
  }

  static of(x) {
    return x instanceof Twofold ? x : new Twofold(x);
  }

  // A sum whose second part is smaller than the first one.
  static settled(high, low) {
    const error = Number.isFinite(low) ? low : 0;
    const total = high + error;
    return new Twofold(total, error - (total - high));
  }

  static sum(a, b) {
    const total = a + b;
    const part = total - a;
    return new Twofold(total, a - (total - part) + (b - part));
  }

  static product(a, b) {
    const product = a * b;
    const [aHigh, bHigh] = [upperHalf(a), upperHalf(b)];
    const [aLow, bLow] = [a - aHigh, b - bHigh];
    return new Twofold(product, aHigh * bHigh - product + aHigh * bLow + aLow * bHigh + aLow * bLow);
  }

  plus(other) {
    const { high, low } = Twofold.of(other);
    const upper = Twofold.sum(this.high, high);
    const lower = Twofold.sum(this.low, low);
    const total = Twofold.settled(upper.high, upper.low + lower.high);
    return Twofold.settled(total.high, total.low + lower.low);
  }

  minus(other) {
    const { high, low } = Twofold.of(other);
    return this.plus(new Twofold(-high, -low));
  }

  times(other) {
    const { high, low } = Twofold.of(other);
    const product = Twofold.product(this.high, high);
    return Twofold.settled(product.high, product.low + (this.high * low + this.low * high));
  }

  over(other) {
    const divisor = Twofold.of(other);
    const first = this.high / divisor.high;
    const rest = this.minus(divisor.times(first));
    const second = rest.high / divisor.high;
    const third = rest.minus(divisor.times(second)).high / divisor.high;
    return Twofold.settled(first, second).plus(Number.isFinite(third) ? third : 0);
  }

  // The natural logarithm.
  log() {
    if (this.low) return new Twofold(this.high).log().plus(this.low / this.high);
    if (!(this.high > 0) || this.high === Infinity) return new Twofold(Math.log(this.high));
    let power = Math.round(Math.log2(this.high));
    let mantissa = timesPower(this.high, -power);
    if (mantissa < Math.SQRT1_2) [mantissa, power] = [2 * mantissa, power - 1];
    const ratio = Twofold.of(mantissa - 1).over(Twofold.sum(mantissa, 1));
    const square = ratio.times(ratio);
    let series = new Twofold(0);
    for (let degree = 2 * LOG_TERMS - 1; degree > 0; degree -= 2) series = series.times(square).plus(Twofold.of(1).over(degree));
    return LOG_2.times(power).plus(series.times(ratio).times(2));
  }
}

const LOG_2 = new Twofold(0.6931471805599453, 2.3190468138462996e-17);

function upperHalf(x) {
  const scaled = x * SPLITTER;
  return scaled - (scaled - x);
}

// x * 2 ** power, where that power alone may be no float.
function timesPower(x, power) {
  const half = Math.trunc(Math.max(-2200, Math.min(2200, power)) / 2);
  return x * 2 ** half * 2 ** (Math.max(-2200, Math.min(2200, power)) - half);
}

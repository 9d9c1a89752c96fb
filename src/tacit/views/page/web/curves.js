"use strict";
// The distribution of a number as a curve: dark where nine tenths of it lie, with a line at its mean. What was observed is
// a line, beside the thin curve of what the other findings suggest.

const CURVE_POINTS = 121;
const FLANKS = [-2, -1, -0.5, 0, 0.5, 1, 2]; // standard deviations from the mean of a component, to see narrow ones
const MANY_BARS = 200; // counts that are drawn one by one
const FARTHEST = 1.5; // widths of an axis: a number further off is shown at its end

// Where the axis of a column begins and ends: where its numbers are without findings, now and before.
function axisOf(session, i, j) {
  const { first, answer, evidence, kept } = session;
  const mixtures = [first?.numbers[i]?.[j], answer.numbers[i]?.[j], session.ghostOf(i, j)].filter((own) => own?.possible);
  let [low, high] = [Math.min(...mixtures.map(({ span }) => span[0])), Math.max(...mixtures.map(({ span }) => span[1]))];
  const numbers = [evidence, kept?.evidence].map((own) => numbersIn(own?.[i])?.[j] ?? null).filter((x) => x !== null);
  if (!mixtures.length) [low, high] = [Math.min(...numbers), Math.max(...numbers)];
  const width = high - low || Math.abs(low) || 1;
  const near = numbers.map((x) => Math.max(low - FARTHEST * width, Math.min(high + FARTHEST * width, x)));
  const least = session.model.variables[i].density.kind === "log-normal" ? 0 : -Infinity;
  low = Math.max(least, Math.min(low, ...near.map((x) => x - width / 30)));
  high = Math.max(high, ...near.map((x) => x + width / 30));
  return [low, high];
}

// Where to look at a mixture between two ends, in ascending order.
function curveNumbers({ centres, sds, counted, kind }, low, high) {
  const even = Array.from({ length: CURVE_POINTS }, (_, k) => low + ((high - low) * k) / (CURVE_POINTS - 1));
  if (counted) return countsBetween(low, high, even);
  const exact = kind === "log-normal" ? Math.exp : (x) => x;
  const flanks = centres.flatMap((m, c) => FLANKS.map((flank) => exact(m + flank * sds[c])));
  return [...even, ...flanks.filter((x) => x > low && x < high)].sort((a, b) => a - b);
}

function countsBetween(low, high, even) {
  const [first, last] = [Math.max(0, Math.ceil(low)), Math.floor(high)];
  if (last - first < MANY_BARS) return Array.from({ length: Math.max(last - first + 1, 0) }, (_, k) => first + k);
  return [...new Set(even.map(Math.round))].filter((k) => k >= first && k <= last);
}

// A distribution as points [x, density]; counts as steps.
function curvePoints(mixture, low, high) {
  const numbers = curveNumbers(mixture, low, high);
  const points = numbers.map((x) => [x, mixture.pdf(x)]);
  if (!mixture.counted) return points;
  const edge = (k) => (k <= 0 ? low : k >= points.length ? high : (points[k - 1][0] + points[k][0]) / 2);
  return points.flatMap(([, y], k) => [[Math.max(low, edge(k)), y], [Math.min(high, edge(k + 1)), y]]);
}

// The part of a curve between two ends, down to the axis.
function between(points, low, high) {
  const inside = points.filter(([x]) => x > low && x < high);
  return [[low, heightAt(points, low)], ...inside, [high, heightAt(points, high)]];
}

function heightAt(points, x) {
  const k = points.findIndex(([own]) => own >= x);
  if (k <= 0) return points.at(k)[1];
  const [[a, y], [b, z]] = [points[k - 1], points[k]];
  return b > a ? y + ((z - y) * (x - a)) / (b - a) : z;
}

// The curve of one column in a rectangle of an SVG.
class Curve {
  constructor(session, i, j, place) {
    Object.assign(this, { session, i, j, place });
    const path = (kind) => svgElement("path", { class: kind });
    this.parts = { tails: path("tails"), body: path("body"), outline: path("outline"), mean: path("mean"), other: path("other"), mark: path("mark") };
    const { x, y, width, height } = place;
    const ground = svgElement("rect", { class: "curve-ground", x, y, width, height, rx: 1 });
    this.group = svgElement("g", { class: "curve", "aria-hidden": "true" }, ground, ...Object.values(this.parts));
  }

  update() {
    const { session, i, j } = this;
    const mixture = session.answer.numbers[i][j];
    const ghost = session.ghostOf(i, j);
    const [low, high] = (this.axis = axisOf(session, i, j));
    const shown = [mixture, ghost].map((own) => (own?.possible ? curvePoints(own, low, high) : []));
    const top = Math.max(...shown.flat().map(([, y]) => y), Number.MIN_VALUE);
    const at = this.scale(low, high, top);
    const [points, thin] = shown;
    const lines = (own) => own.map((point) => at(point).map((z) => z.toFixed(2)).join(" ")).join("L");
    const area = (own) => (own.length ? `M${lines([[own[0][0], 0], ...own, [own.at(-1)[0], 0]])}z` : "");
    const upright = (x, inset = 0) => `M${at([x, 0])[0].toFixed(2)} ${this.place.y + inset}v${this.place.height - inset}`;
    const known = numbersIn(session.evidence[i])?.[j] ?? null;
    const other = numbersIn(session.kept?.evidence[i])?.[j] ?? null;
    const draw = {
      tails: area(points),
      body: points.length ? area(between(points, ...this.middle(mixture, low, high))) : "",
      outline: thin.length ? `M${lines(thin)}` : "",
      mean: points.length ? upright(clamped(mixture.mean, low, high), 4) : "",
      other: other === null ? "" : upright(clamped(other, low, high)),
      mark: known === null ? "" : upright(clamped(known, low, high)),
    };
    for (const [part, d] of Object.entries(draw)) setAttribute(this.parts[part], "d", d);
  }

  scale(low, high, top) {
    const { x, y, width, height } = this.place;
    return ([u, v]) => [x + (width * (u - low)) / (high - low || 1), y + height - (height - 2) * (v / top)];
  }

  // Where nine tenths are; counts as whole steps.
  middle({ interval, counted }, low, high) {
    const half = counted ? 0.5 : 0;
    return [clamped(interval[0] - half, low, high), clamped(interval[1] + half, low, high)];
  }
}

function clamped(x, low, high) {
  return Math.max(low, Math.min(high, x));
}

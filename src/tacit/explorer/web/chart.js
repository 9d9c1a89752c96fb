"use strict";
// The query against the likelihood of one input, as lines, or of two, as a map. Where a test flips, the answer may jump.

const PLOT = { width: 344, height: 236, left: 38, right: 10, top: 22, bottom: 36 };
const POINTS = 100;
const MANY_BREAKS = 40;
const ROUGH = 12; // first a rough map; then as fine a one as a second allows
const FINE = 48;
const PATIENCE = 1000; // milliseconds
const LEAST_SPAN = 0.05;
const RAMP = [[243, 246, 250], [178, 208, 236], [92, 152, 210], [38, 98, 165], [15, 48, 96]];

class ChartPanel {
  constructor(session) {
    Object.assign(this, { session, id: "chart", label: "Chart", first: null, second: null, state: 0, query: null });
    this.newest = latest(this);
  }

  make(host) {
    this.choices = element("div", { class: "choices" });
    this.figure = element("figure", {});
    this.read = element("p", { class: "readout" });
    this.key = element("ul", { class: "key" });
    this.note = element("p", { class: "quiet" });
    host.append(this.choices, this.figure, this.read, this.key, this.note);
  }

  update() {
    if (this.query !== this.session.query) this.restart();
    const { engine, evidence, query, answer } = this.session;
    setText(this.read, "");
    if (this.first === null) return this.empty("A network of one variable has nothing to vary.");
    if (!answer.possible) return this.empty("The findings have probability 0.");
    if (!this.second) return this.newest(engine.curve(evidence, query, this.first, POINTS), (curve) => this.lines(curve));
    const start = performance.now();
    return this.newest(engine.surface(evidence, query, this.first, this.second, ROUGH), (surface) => {
      this.surface(surface);
      this.refine((performance.now() - start) / (ROUGH + 1) ** 2);
    });
  }

  empty(text) {
    this.figure.replaceChildren();
    this.key.replaceChildren();
    setText(this.note, text);
  }

  refine(each) {
    const steps = Math.min(FINE, Math.floor(Math.sqrt(PATIENCE / Math.max(each, 0.01))) - 1);
    if (steps < 1.5 * ROUGH) return;
    clearTimeout(this.timer);
    const { evidence, query } = this.session;
    this.timer = setTimeout(() => {
      const same = evidence === this.session.evidence && query === this.session.query && this.second && !this.host.hidden;
      if (same) this.newest(this.session.engine.surface(evidence, query, this.first, this.second, steps), (surface) => this.surface(surface));
    }, 60);
  }

  // Another query: vary what was observed last, else a parent, else anything.
  restart() {
    const { query, model, evidence, last, answer } = this.session;
    const others = model.variables.map((_, i) => i).filter((i) => i !== query);
    const seen = [last, ...others.filter((i) => evidence[i])].filter((i) => i !== null && i !== query);
    const roots = others.filter((i) => !model.variables[i].parents.length);
    const best = [...seen, ...model.variables[query].parents, ...roots, ...others][0];
    if (this.first === null || this.first.variable === query) this.first = best === undefined ? null : { variable: best, state: 0 };
    if (this.second?.variable === query) this.second = null;
    this.query = query;
    this.state = largest(answer.posteriors[query].map((p) => p || 0));
    this.choose();
  }

  choose() {
    const { model, query } = this.session;
    const again = () => {
      this.choose();
      this.update();
    };
    const input = (key, text, optional) => {
      const taken = key === "first" ? this.second?.variable : this.first?.variable;
      const options = namesOf(model, (i) => i !== query && i !== taken);
      if (optional) options.unshift([-1, "none"]);
      const chosen = this[key]?.variable ?? -1;
      const variable = chooser(text, options, chosen, (i) => {
        this[key] = i < 0 ? null : { variable: i, state: 0 };
        again();
      });
      const states = this[key] ? [chooser(`State of ${model.variables[chosen].label}`, model.variables[chosen].states.map((one, k) => [k, one]), this[key].state, (state) => ((this[key].state = state), again()))] : [];
      return element("div", { class: "line" }, element("span", {}, text), variable, ...states);
    };
    if (this.first === null) return;
    const made = [input("first", "Input", false), input("second", "Second input", true)];
    if (this.second) made.push(element("div", { class: "line" }, element("span", {}, "Shown"), chooser("State shown", model.variables[query].states.map((one, k) => [k, one]), this.state, (state) => ((this.state = state), this.update()))));
    const used = this.choices.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.choices.replaceChildren(...made);
    this.choices.querySelectorAll("select").forEach((select) => select.getAttribute("aria-label") === used && select.focus());
  }

  axis({ variable, state }) {
    const { label, states } = this.session.model.variables[variable];
    return `likelihood of ${label} = ${states[state]}`;
  }

  frame(kind) {
    const { width, height, left, right, top, bottom } = PLOT;
    const [w, h] = [width - left - right, height - top - bottom];
    const plot = svgElement("svg", { class: `plot ${kind}`, viewBox: `0 0 ${width} ${height}`, role: "img" });
    const at = (x, y) => [left + w * x, top + h * (1 - y)];
    for (const x of [0, 0.25, 0.5, 0.75, 1]) {
      const [px, py] = at(x, x);
      plot.append(svgElement("path", { class: "grid", d: `M${px} ${top}v${h}M${left} ${py}h${w}` }));
      plot.append(svgElement("text", { class: "tick", x: px, y: top + h + 13, "text-anchor": "middle" }, String(x)));
      plot.append(svgElement("text", { class: "tick", x: left - 5, y: py + 3.5, "text-anchor": "end" }, kind === "lines" ? `${100 * x}%` : String(x)));
    }
    plot.append(svgElement("text", { class: "axis", x: left + w / 2, y: height - 5, "text-anchor": "middle" }, fitted(this.axis(this.first), w, 11)));
    return { plot, at, w, h, left, top };
  }

  lines({ x, posteriors, breaks }) {
    const { model, query, evidence } = this.session;
    const { label, states } = model.variables[query];
    const { plot, at, left, top, w, h } = this.frame("lines");
    plot.append(svgElement("text", { class: "axis", x: left, y: 12 }, fitted(`probability of ${label}`, w, 11)));
    const pieces = this.pieces(x, posteriors, breaks);
    for (const b of breaks) plot.append(svgElement("path", { class: "break", d: `M${at(b, 0)[0].toFixed(2)} ${top}v${h}` }));
    states.forEach((_, k) => {
      for (const piece of pieces) {
        const points = piece.filter(({ p }) => !Number.isNaN(p[k])).map(({ x: u, p }) => at(u, p[k]).map((z) => z.toFixed(2)).join(" "));
        if (points.length) plot.append(svgElement("path", { class: `line c${k % 8}`, d: `M${points.join("L")}${points.length === 1 ? "h0.01" : ""}` }));
      }
    });
    const now = evidence[this.first.variable] ? shares(evidence[this.first.variable])[this.first.state] : null;
    if (now !== null) plot.append(svgElement("path", { class: "now", d: `M${at(now, 0)[0]} ${top}v${h}` }));
    plot.setAttribute("aria-label", `${label} against the ${this.axis(this.first)}: ${states.map((one, k) => `${one} from ${percent(posteriors[0][k])} to ${percent(posteriors.at(-1)[k])}`).join("; ")}. ${breaks.length} jumps.`);
    this.pointable(plot, (u) => {
      const nearest = posteriors[Math.round(u * (x.length - 1))];
      return `${brief(u, 2)}: ${states.map((one, k) => `${one} ${percent(nearest[k])}`).join(", ")}`;
    });
    this.figure.replaceChildren(plot);
    this.key.replaceChildren(...states.map((one, k) => element("li", {}, element("i", { class: `c${k % 8}` }), one)));
    const jumps = breaks.length ? `Tests flip at ${breaks.slice(0, 6).map((b) => brief(b)).join(", ")}${breaks.length > 6 ? ", …" : ""}: the answer has ${breaks.length + 1} pieces. ` : "";
    setText(this.note, `${jumps}The other states of the input share the rest of the likelihood. Click to set it.`);
  }

  // Runs of points between breaks; in the page, each is drawn right up to its break.
  pieces(x, posteriors, breaks) {
    const { engine, evidence, model, query } = this.session;
    const count = model.variables[this.first.variable].states.length;
    const beside = (u) => engine.ask(evidence.map((one, i) => (i === this.first.variable ? withShare(null, count, this.first.state, u) : one))).posteriors[query];
    const exact = engine.local !== false && !model.remote && breaks.length <= MANY_BREAKS;
    const made = [[]];
    let next = 0;
    x.forEach((u, k) => {
      while (next < breaks.length && breaks[next] <= u) {
        const b = breaks[next++];
        if (exact) made.at(-1).push({ x: b, p: beside(Math.max(b - 1e-10, 0)) });
        made.push(exact ? [{ x: b, p: beside(Math.min(b + 1e-10, 1)) }] : []);
      }
      made.at(-1).push({ x: u, p: posteriors[k] });
    });
    return made;
  }

  surface({ x, y, values, pieces }) {
    const { model, query } = this.session;
    const { label, states } = model.variables[query];
    const { plot, at, left, top, w, h } = this.frame("surface");
    const shown = values[this.state];
    const all = shown.flat().filter((p) => !Number.isNaN(p));
    const [low, high] = spanOf(all);
    const image = svgElement("image", { x: left, y: top, width: w, height: h, preserveAspectRatio: "none", href: heat(shown, low, high), class: "heat" });
    const border = svgElement("path", { class: "border", d: borders(pieces, at) });
    plot.append(image, border, svgElement("text", { class: "axis", x: 0, y: 12 }, fitted(`↑ ${this.axis(this.second)}`, PLOT.width, 11)));
    const count = new Set(pieces.flat()).size;
    plot.setAttribute("aria-label", `P(${label} = ${states[this.state]}) against two likelihoods: from ${percent(low)} to ${percent(high)}, ${count} pieces.`);
    this.pointable(plot, (u, v) => `${brief(u, 2)}, ${brief(v, 2)}: ${states[this.state]} ${percent(shown[Math.round(v * (y.length - 1))][Math.round(u * (x.length - 1))])}`);
    this.figure.replaceChildren(plot);
    const ramp = element("i", { class: "ramp", style: `background: linear-gradient(to right, ${RAMP.map((c) => `rgb(${c})`).join(", ")})` });
    this.key.replaceChildren(element("li", {}, percent(low)), element("li", { class: "wide" }, ramp), element("li", {}, percent(high)));
    setText(this.note, `P(${label} = ${states[this.state]}).${count > 1 ? ` Lines part the ${count} pieces in which the same tests hold.` : ""} Click to set both likelihoods.`);
  }

  // Pointing reads values, a click sets the likelihoods.
  pointable(plot, text) {
    const { width, height, left, right, top, bottom } = PLOT;
    const place = ({ clientX, clientY }) => {
      const box = plot.getBoundingClientRect();
      const u = (((clientX - box.left) / box.width) * width - left) / (width - left - right);
      const v = 1 - (((clientY - box.top) / box.height) * height - top) / (height - top - bottom);
      return [share01(u), share01(v)];
    };
    plot.addEventListener("pointermove", (event) => setText(this.read, text(...place(event))));
    plot.addEventListener("pointerleave", () => setText(this.read, ""));
    plot.addEventListener("click", (event) => {
      const [u, v] = place(event).map((x) => Math.round(100 * x) / 100);
      const { session, first, second } = this;
      const made = session.evidence.slice();
      const count = (i) => session.model.variables[i].states.length;
      made[first.variable] = withShare(null, count(first.variable), first.state, u);
      if (second) made[second.variable] = withShare(null, count(second.variable), second.state, v);
      session.replace(made);
    });
  }
}

// From the least to the most, but never so little that noise looks like a landscape.
function spanOf(values) {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const more = Math.max(0, (LEAST_SPAN - (high - low)) / 2);
  return [Math.max(low - more, 0), Math.min(high + more, 1)];
}

// The values as a picture, a pixel each, the first row at the bottom.
function heat(values, low, high) {
  const [rows, columns] = [values.length, values[0].length];
  const canvas = element("canvas", { width: columns, height: rows });
  const context = canvas.getContext("2d");
  const pixels = context.createImageData(columns, rows);
  values.forEach((row, r) =>
    row.forEach((p, c) => {
      const t = high > low ? ((p - low) / (high - low)) * (RAMP.length - 1) : 0;
      const k = Math.min(Math.floor(t), RAMP.length - 2);
      const color = Number.isNaN(p) ? [128, 128, 128] : RAMP[k].map((a, j) => a + (t - k) * (RAMP[k + 1][j] - a));
      pixels.data.set([...color.map(Math.round), 255], 4 * ((rows - 1 - r) * columns + c));
    }),
  );
  context.putImageData(pixels, 0, 0);
  return canvas.toDataURL();
}

// Lines between neighbours of different pieces.
function borders(pieces, at) {
  const [rows, columns] = [pieces.length, pieces[0].length];
  const point = (c, r) => at(c / columns, r / rows).map((x) => x.toFixed(2)).join(" ");
  let path = "";
  for (let r = 0; r < rows; r++) {
    for (let c = 0; c < columns; c++) {
      if (c + 1 < columns && pieces[r][c] !== pieces[r][c + 1]) path += `M${point(c + 1, r)}L${point(c + 1, r + 1)}`;
      if (r + 1 < rows && pieces[r][c] !== pieces[r + 1][c]) path += `M${point(c, r + 1)}L${point(c + 1, r + 1)}`;
    }
  }
  return path;
}

"use strict";
// The query against the likelihood of one input, as lines, or of two, as a map. Where a test flips, the answer may jump.

const PLOT = { width: 344, height: 236, left: 38, right: 10, top: 22, bottom: 36 };
const POINTS = 100;
const MANY_BREAKS = 40;
const ROUGH = 12; // first a rough map; then as fine a one as a second allows
const FINE = 48;
const PATIENCE = 1000; // milliseconds

class ChartPanel {
  constructor(session) {
    Object.assign(this, { session, id: "chart", label: "Chart", first: null, second: null, state: 0, query: null });
    this.followed = null; // the newest evidence on the input that its state was taken from
    this.newest = latest(this);
  }

  make(host) {
    this.choices = element("div", { class: "choices" });
    this.figure = element("figure", {});
    this.read = element("p", { class: "readout" });
    this.key = element("ul", { class: "key" });
    this.note = quiet("p");
    host.append(this.choices, this.figure, this.read, this.key, this.note);
  }

  update() {
    const set = this.session.evidence.map(stateSet).join();
    if (this.first && !this.variable(this.first.variable)) this.first = null;
    if (this.second && !this.variable(this.second.variable)) this.second = null;
    if (this.query !== this.session.query || this.set !== set) this.restart();
    this.set = set;
    const { engine, query, unexplained, aside } = this.session;
    const { evidence } = aside;
    setText(this.read, "");
    if (this.first === null) return this.empty("There is nothing else to vary.");
    if (unexplained) return this.empty(unexplained);
    this.follow();
    if (!this.second)
      return this.newest(engine.curve(evidence, query, this.first, POINTS), (curve) => this.lines(curve));
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
    const { evidence, query, aside } = this.session;
    this.timer = setTimeout(() => {
      const same =
        evidence === this.session.evidence && query === this.session.query && this.second && !this.host.hidden;
      const { engine } = this.session;
      if (same) this.newest(engine.surface(aside.evidence, query, this.first, this.second, steps), (found) => this.surface(found));
    }, 60);
  }

  // Another query: vary what was observed last, else a parent, else anything.
  restart() {
    const { query, model, evidence, last } = this.session;
    const others = model.variables.map((_, i) => i).filter((i) => i !== query && this.variable(i));
    const seen = others.filter((i) => evidence[i]).sort((a, b) => (b === last) - (a === last));
    const roots = others.filter((i) => !model.variables[i].parents.length);
    const best = [...seen, ...model.variables[query].parents.filter((i) => this.variable(i)), ...roots, ...others][0];
    if (this.first === null || this.first.variable === query)
      this.first = best === undefined ? null : this.input(best);
    if (this.second?.variable === query) this.second = null;
    if (this.query !== query && !model.variables[query].density) this.state = this.session.firstState();
    this.query = query;
    this.choose();
  }

  // Whether a variable can be an input: what is set has no likelihood.
  variable(i) {
    return stateSet(this.session.evidence[i]) < 0;
  }

  // An input, by the state that its evidence speaks for; of a number, the column, and the range of its curve.
  input(variable, column = 0) {
    const likelihoods = this.session.evidence[variable];
    if (this.density(variable)) return { variable, state: column, range: axisOf(this.session, variable, column) };
    return { variable, state: likelihoods ? largest(likelihoods) : 0 };
  }

  density(i) {
    return this.session.model.variables[i].density;
  }

  // If another state of the input is observed on the map, that one is varied. A click in the chart moves no axis.
  follow() {
    const { evidence, last } = this.session;
    for (const key of ["first", "second"]) {
      const variable = this[key]?.variable;
      if (variable !== last || evidence[variable] === this.followed) continue;
      this.followed = evidence[variable];
      if (knownState(this.followed) < 0) continue;
      this[key] = this.input(variable);
      this.choose();
    }
  }

  choose() {
    const { model, query } = this.session;
    const again = () => {
      this.choose();
      this.update();
    };
    const input = (key, text, optional) => {
      const taken = key === "first" ? this.second?.variable : this.first?.variable;
      const fits = (i) => i !== query && i !== taken && this.variable(i) && !(optional && this.density(i));
      const options = namesOf(model, fits);
      if (optional) options.unshift([-1, "none"]);
      const chosen = this[key]?.variable ?? -1;
      const variable = chooser(text, options, chosen, (i) => {
        this[key] = i < 0 ? null : this.input(i);
        again();
      });
      const changed = (state) => ((this[key].state = state), again());
      const states = this[key] ? this.stateChoosers(key, changed, again) : [];
      return element("div", { class: "line" }, element("span", {}, text), variable, ...states);
    };
    if (this.first === null) return;
    const made = [input("first", "Input", false), input("second", "Second input", true)];
    if (this.second)
      made.push(
        element(
          "div",
          { class: "line" },
          element("span", {}, "Shown"),
          chooser(
            "State shown",
            model.variables[query].states.map((one, k) => [k, one]),
            this.state,
            (state) => ((this.state = state), this.update()),
          ),
        ),
      );
    const used = this.choices.contains(document.activeElement)
      ? document.activeElement.getAttribute("aria-label")
      : null;
    this.choices.replaceChildren(...made);
    this.choices
      .querySelectorAll("select")
      .forEach((select) => select.getAttribute("aria-label") === used && select.focus());
  }

  // What to choose beside a variable: its state, or one of several columns.
  stateChoosers(key, changed, again) {
    const { variable, state } = this[key];
    const { density, label } = this.session.model.variables[variable];
    if (!density) return [stateChooser(this.session.model.variables[variable], state, changed)];
    if (density.columns.length < 2) return [];
    const options = density.columns.map((name, j) => [j, name]);
    return [chooser(`Column of ${label}`, options, state, (j) => ((this[key] = this.input(variable, j)), again()))];
  }

  axis({ variable, state }) {
    const { label, states, density } = this.session.model.variables[variable];
    if (density) return density.columns.length > 1 ? density.columns[state] : label;
    return `likelihood of ${stateText(label, states[state])}`;
  }

  frame(kind) {
    const { width, height, left, right, top, bottom } = PLOT;
    const [w, h] = [width - left - right, height - top - bottom];
    const plot = svgElement("svg", { class: `plot ${kind}`, viewBox: `0 0 ${width} ${height}`, role: "img" });
    const at = (x, y) => [left + w * x, top + h * (1 - y)];
    for (const x of [0, 0.25, 0.5, 0.75, 1]) {
      const [px, py] = at(x, x);
      plot.append(svgElement("path", { class: "grid", d: `M${px} ${top}v${h}M${left} ${py}h${w}` }));
      const anchor = this.first.range && x === 1 ? "end" : "middle"; // numbers may be long
      plot.append(svgElement("text", { class: "tick", x: px, y: top + h + 13, "text-anchor": anchor }, this.at(x)));
      const beside = { class: "tick", x: left - 5, y: py + 3.5, "text-anchor": "end" };
      plot.append(svgElement("text", beside, kind === "lines" ? `${100 * x}%` : String(x)));
    }
    const below = { class: "axis", x: left + w / 2, y: height - 5, "text-anchor": "middle" };
    plot.append(svgElement("text", below, fitted(this.axis(this.first), w, 11)));
    return { plot, at, w, h, left, top };
  }

  // A place on the first axis in words: a likelihood, or a number.
  at(u, digits = 2) {
    const { variable, range } = this.first;
    if (!range) return digits === 2 ? String(u) : brief(u, 2);
    return inSteps(numberAt(this.density(variable), range, u), (range[1] - range[0]) / 10 ** (digits - 1));
  }

  // Where the finding on the first input is on its axis; nowhere if there is none in sight.
  here() {
    const { variable, state, range } = this.first;
    const now = this.session.evidence[variable];
    if (!now) return NaN;
    if (!range) return shares(now)[state];
    const x = numbersIn(now)[state];
    const u = x === null ? NaN : (x - range[0]) / (range[1] - range[0]);
    return u >= 0 && u <= 1 ? u : NaN;
  }

  lines({ x, posteriors, breaks }) {
    const { model, query } = this.session;
    const { label, states } = model.variables[query];
    const { plot, at, left, top, w, h } = this.frame("lines");
    const upright = (kind, u) => svgElement("path", { class: kind, d: `M${at(u, 0)[0].toFixed(2)} ${top}v${h}` });
    plot.append(svgElement("text", { class: "axis", x: left, y: 12 }, fitted(`probability of ${label}`, w, 11)));
    plot.append(...breaks.map((b) => upright("break", b)));
    for (const piece of this.pieces(x, posteriors, breaks)) {
      plot.append(...states.map((_, k) => svgElement("path", { class: `line c${k % 8}`, d: polyline(piece, k, at) })));
    }
    if (!Number.isNaN(this.here())) plot.append(upright("now", this.here()));
    const ends = states.map((one, k) => `${one} from ${percent(posteriors[0][k])} to ${percent(posteriors.at(-1)[k])}`);
    const text = `${label} against the ${this.axis(this.first)}: ${ends.join("; ")}. ${breaks.length} jumps.`;
    plot.setAttribute("aria-label", text);
    this.pointable(plot, (u) => {
      const here = nearest(posteriors, u);
      return `${this.at(u, 3)}: ${states.map((one, k) => `${one} ${percent(here[k])}`).join(", ")}`;
    });
    this.figure.replaceChildren(plot);
    this.key.replaceChildren(...states.map((one, k) => element("li", {}, element("i", { class: `c${k % 8}` }), one)));
    const more = this.session.model.variables[this.first.variable].states.length > 2;
    const others = more ? "The other states of the input share the rest in their proportions. " : "";
    const what = this.first.range ? "observe a number" : "set the likelihood";
    setText(this.note, `${this.session.aside.note}${this.flips(breaks)}${others}Click in the chart to ${what}.`);
  }

  // Runs of points between breaks; in the page, each is drawn right up to its break.
  pieces(x, posteriors, breaks) {
    const { engine, model, query } = this.session;
    const { evidence } = this.session.aside;
    const beside = (u) => engine.ask(along(model.variables, evidence, [[this.first, u]])).posteriors[query];
    const exact = engine.local && breaks.length <= MANY_BREAKS;
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

  surface({ values, pieces }) {
    const { label, states } = this.session.model.variables[this.session.query];
    const what = `P(${stateText(label, states[this.state])})`;
    const shown = values[this.state];
    const [low, high] = spanOf(shown.flat().filter((p) => !Number.isNaN(p)));
    const count = new Set(pieces.flat()).size;
    const { plot, at, left, top, w, h } = this.frame("surface");
    const place = { x: left, y: top, width: w, height: h, preserveAspectRatio: "none" };
    plot.append(
      svgElement("image", { ...place, class: "heat", href: heat(shown, low, high) }),
      svgElement("path", { class: "border", d: borders(pieces, at) }),
      svgElement("text", { class: "axis", x: 0, y: 12 }, fitted(`↑ ${this.axis(this.second)}`, PLOT.width, 11)),
    );
    const range = `from ${percent(low)} to ${percent(high)}`;
    plot.setAttribute("aria-label", `${what} against two likelihoods: ${range}, ${count} pieces.`);
    const read = (u, v) => `${states[this.state]} ${percent(nearest(nearest(shown, v), u))}`;
    this.pointable(plot, (u, v) => `${this.at(u, 3)}, ${brief(v, 2)}: ${read(u, v)}`);
    this.figure.replaceChildren(plot);
    this.key.replaceChildren(
      element("li", {}, percent(low)),
      element("li", { class: "wide" }, ramp()),
      element("li", {}, percent(high)),
    );
    const lines = count > 1 ? ` Lines separate the ${count} pieces in which the same tests hold.` : "";
    setText(this.note, `${this.session.aside.note}${what}.${lines} Click to set both.`);
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
      const inputs = second ? [[first, u], [second, v]] : [[first, u]];
      const made = along(session.model.variables, session.evidence, inputs);
      if (first.range) made[first.variable] = this.observedAt(place(event)[0]);
      session.replace(made);
    });
  }

  // A finding of the number at a place of the first axis, in as many digits as one can point at.
  observedAt(u) {
    const { session, first } = this;
    const density = this.density(first.variable);
    const digits = Math.max(0, Math.ceil(2 - Math.log10(first.range[1] - first.range[0])));
    const x = Number(numberAt(density, first.range, u).toFixed(Math.min(digits, 12)));
    return withColumn(session.evidence[first.variable], density, first.state, x);
  }

  // Where tests flip, and what that means.
  flips(breaks) {
    if (!breaks.length) return "";
    const shown = breaks.slice(0, 6).map((b) => (this.first.range ? this.at(b, 3) : brief(b)));
    const where = shown.join(", ") + (breaks.length > 6 ? ", …" : "");
    return `Tests flip at ${where}: the answer has ${breaks.length + 1} pieces. `;
  }
}

// Of values on an even grid from 0 to 1, the one at u.
function nearest(values, u) {
  return values[Math.round(u * (values.length - 1))];
}

// One state along one piece; a piece of one point is a dot.
function polyline(piece, state, at) {
  const known = piece.filter(({ p }) => !Number.isNaN(p[state]));
  const points = known.map(({ x, p }) => at(x, p[state]).map((z) => z.toFixed(2)));
  return points.length
    ? `M${points.map((point) => point.join(" ")).join("L")}${points.length === 1 ? "h0.01" : ""}`
    : "";
}

"use strict";
// The network as SVG. Boxes are made once; answers only change widths, numbers and classes.

const FAR_LETTERS = 11.1; // pixels on the screen: names from afar are no smaller
const FAR_LINE = 1.3; // the height of a line, in letters
const LEAST_NAME = 4; // letters: of a shorter beginning, nobody could guess the name

class NetworkMap {
  constructor(session, host) {
    this.session = session;
    this.model = session.model;
    this.m = this.model.layout.measures;
    this.before = null;
    const { width, height } = this.model.layout;
    this.flag = svgElement("text", { class: "flag", "aria-hidden": "true" });
    this.scene = svgElement("g", { class: "scene" }, this.edges(), ...this.boxes(), this.names(), this.flag);
    this.svg = svgElement(
      "svg",
      { class: "network", role: "group", "aria-label": "Network: arrow keys move, Enter observes" },
      this.definitions(),
      this.scene,
    );
    Object.assign(this, { width, height });
    host.prepend(this.svg);
  }

  definitions() {
    const tips = ["tip", "tip-near"].map((id) => {
      const marker = svgElement("marker", {
        id,
        viewBox: "0 0 8 8",
        refX: 7.5,
        refY: 4,
        markerWidth: 8,
        markerHeight: 8,
        orient: "auto",
        markerUnits: "userSpaceOnUse",
      });
      marker.append(svgElement("path", { d: "M0 0.6 8 4 0 7.4z", class: id }));
      return marker;
    });
    const stripes = svgElement("pattern", {
      id: "stripes",
      width: 5,
      height: 5,
      patternUnits: "userSpaceOnUse",
      patternTransform: "rotate(45)",
    });
    stripes.append(
      svgElement("rect", { width: 5, height: 5, class: "stripe-ground" }),
      svgElement("rect", { width: 2.4, height: 5, class: "stripe" }),
    );
    return svgElement("defs", {}, ...tips, stripes);
  }

  edges() {
    const looks = this.model.edge_looks ?? [];
    this.lines = this.model.layout.edges.map(({ from, to, points }, k) => ({
      from,
      to,
      path: svgElement("path", { d: smooth(points), class: edgeClasses(looks[k]) }),
    }));
    return svgElement("g", { class: "edges", "aria-hidden": "true" }, ...this.lines.map(({ path }) => path));
  }

  // Names from afar are equally large, as large as three quarters of them fit into their boxes.
  farSize() {
    const { variables, layout } = this.model;
    const fitting = variables.map(({ label }, i) => (11.5 * (layout.boxes[i][2] - 14)) / textWidth(label || "x", 12, 600));
    return Math.max(16, Math.min(24, fitting.sort((a, b) => a - b)[Math.floor(fitting.length / 4)]));
  }

  boxes() {
    this.far = this.farSize();
    this.parts = this.model.variables.map((variable, i) => this.box(variable, i));
    return readingOrder(this.model.layout.boxes).map((i) => this.parts[i].group);
  }

  box(variable, i) {
    const [x, y, w, h] = this.model.layout.boxes[i];
    const { title, pad, number } = this.m;
    const tests = gaugeLabels(this.model, variable, this.m.tests);
    const widest = Math.max(
      0,
      ...[...variable.states, ...tests].map((text) => textWidth(text, this.m.letters, 650)), // as where it is observed
    );
    const labels = Math.min(widest, this.m.label, w - 2 * pad - number - 48);
    const columns = { labels, bar: pad + labels + 7, length: w - 2 * pad - labels - 7 - number, right: w - pad };
    const shown = isLong(variable) ? variable.order.slice(0, MOST_STATES - 1) : variable.order;
    const part = { rows: [], shown, gauges: [], tests, w, h };
    const frame = svgElement("rect", { class: "frame", width: w, height: h, rx: 5 });
    part.title = this.title(variable, i, w);
    const full = svgElement("g", { class: "full" });
    part.rows = variable.states.map((state, k) => this.state(state, i, k, title, columns, w));
    full.append(...variable.order.map((k) => part.rows[k].control));
    part.lines = Math.min(variable.states.length, MOST_STATES);
    if (isLong(variable)) {
      part.more = this.more(i, title + (part.lines - 1) * this.m.row, columns, w);
      full.append(part.more.group);
    }
    this.arrange(part);
    part.curves = (variable.density?.columns ?? []).map((_, j) => this.curve(i, j, w));
    full.append(...part.curves.map(({ group }) => group));
    part.folded = this.folded(variable, w, h);
    part.group = svgElement(
      "g",
      { class: "box", "data-box": i, transform: `translate(${x} ${y})`, role: "group", "aria-label": variable.label },
      frame,
      svgElement("rect", { class: "lid", x: -3, y: -5.5, width: w + 6, height: 3, rx: 1.5 }),
      part.title,
      full,
      part.folded.group,
    );
    part.group.classList.add(...groupClasses(this.model, i));
    if (variable.testing) {
      part.group.classList.add("testing");
      part.columns = columns;
      part.full = full;
    }
    return part;
  }

  title(variable, i, w) {
    const { title, pad } = this.m;
    const shown = fitted(variable.label, w - 2 * pad - 16, 12, 600);
    const name = svgElement("g", {
      class: "title",
      role: "button",
      "data-variable": i,
      tabindex: -1,
      "aria-label": `${variable.label}: make it the query`,
      "aria-pressed": "false",
    });
    name.append(
      svgElement("title", {}, variable.label === variable.name ? variable.label : `${variable.label} (${variable.name})`),
      svgElement("path", { class: "hit", d: `M0 ${title}V5a5 5 0 0 1 5-5H${w - 5}a5 5 0 0 1 5 5V${title}z` }),
      svgElement("circle", { class: "group-dot", cx: w - pad - 4, cy: title / 2, r: 4 }),
      svgElement("text", { x: pad, y: title / 2 + 4.2 }, shown),
    );
    return name;
  }

  state(state, i, k, y, { labels, bar, length, right }, w) {
    const { row, pad } = this.m;
    const middle = y + row / 2;
    const label = svgElement("text", { class: "label", x: pad, y: middle + 4 }, fitted(state, labels + 0.5, this.m.letters));
    const made = {
      bar: svgElement("rect", { class: "bar", x: bar, y: middle - 4.5, height: 9, width: 0, rx: 1 }),
      likelihood: svgElement("rect", { class: "likelihood", x: bar, y: middle + 2.5, height: 3, width: 0 }),
      ghost: svgElement("rect", { class: "ghost", x: bar, y: middle - 6.5, height: 13, width: 0 }),
      whisker: svgElement("path", { class: "whisker" }),
      middle,
      number: svgElement("text", { class: "number", x: right, y: middle + 4, "text-anchor": "end" }),
      left: bar,
      length,
    };
    const hit = svgElement("rect", { class: "hit", x: 2, y, width: w - 4, height: row, rx: 2 });
    const track = svgElement("rect", { class: "track", x: bar, y: middle - 4.5, width: length, height: 9, rx: 1 });
    made.control = svgElement(
      "g",
      {
        class: "state",
        role: "button",
        "data-variable": i,
        "data-state": k,
        tabindex: -1,
        "aria-pressed": "false",
      },
      hit,
      label,
      track,
      made.bar,
      made.likelihood,
      made.ghost,
      made.whisker,
      made.number,
    );
    if (label.textContent !== state) made.control.prepend(svgElement("title", {}, state));
    made.track = track;
    return made;
  }

  // A column of numbers: its curve, and a line of words below it.
  curve(i, j, w) {
    const { title, pad, row, curve: height } = this.m;
    const { columns } = this.model.variables[i].density;
    const y = title + j * (height + row);
    const hit = svgElement("rect", { class: "hit", x: 2, y, width: w - 4, height: height + row, rx: 2 });
    const made = new Curve(this.session, i, j, { x: pad, y, width: w - 2 * pad, height: height - 2 });
    const text = (kind, x, anchor) => svgElement("text", { class: kind, x, y: y + height + row / 2 + 3, "text-anchor": anchor });
    const [mean, range] = [text("label", pad, "start"), text("number", w - pad, "end")];
    const name = columns.length > 1 ? [svgElement("text", { class: "column-name", x: pad + 3, y: y + 11 }, columns[j])] : [];
    const note = svgElement("title", {});
    const group = svgElement("g", { class: "more", "data-variable": i }, note, hit, made.group, ...name, mean, range);
    return { group, made, mean, range, note };
  }

  // The last line of a box with many states: the others, which the query above the panels has.
  more(i, y, { labels, right }, w) {
    const middle = y + this.m.row / 2;
    const label = svgElement("text", { x: this.m.pad, y: middle + 4 });
    const number = svgElement("text", { class: "number", x: right, y: middle + 4, "text-anchor": "end" });
    const hit = svgElement("rect", { class: "hit", x: 2, y, width: w - 4, height: this.m.row, rx: 2 });
    const note = svgElement("title", {}, "Choose this variable as the query to see all of its states");
    return { group: svgElement("g", { class: "more", "data-variable": i }, note, hit, label, number), label, number };
  }

  // The states that are shown, one below the other.
  arrange({ rows, shown, title }) {
    rows.forEach(({ control }) => control.setAttribute("visibility", "hidden"));
    shown.forEach((k, line) => {
      setAttribute(rows[k].control, "visibility", "visible");
      setAttribute(rows[k].control, "transform", `translate(0 ${line * this.m.row})`);
    });
    if (!shown.length) return;
    const reached = shown.some((k) => rows[k].control.getAttribute("tabindex") === "0");
    if (!reached && title.getAttribute("tabindex") !== "0") setAttribute(rows[shown[0]].control, "tabindex", 0);
  }

  // Of many states, the most probable ones; a bar that is dragged stays where it is.
  choose(part, variable, posterior) {
    if (!this.session.before) {
      part.shown = shownStates(variable, posterior);
      this.arrange(part);
    }
    setText(part.more.label, `${variable.states.length - part.shown.length} more`);
    setText(part.more.number, percent(shareOfOthers(posterior, part.shown)));
  }

  // What remains of a box from afar: its name and the most probable state.
  folded(variable, w, h) {
    const room = w - 14;
    const name = svgElement(
      "text",
      { class: "far-name", x: 7, y: h * 0.42, style: `font-size: ${this.far.toFixed(1)}px` },
      fitted(variable.label, room, this.far, 600),
    );
    const state = svgElement("text", { class: "far-state", x: 7, y: h * 0.42 + 20 });
    const bar = svgElement("rect", { class: "far-bar", x: 0, y: h - 6, height: 6, width: 0 });
    const names = variable.states.map((one) => fitted(one, room - textWidth(" >99.9%", 15), 15));
    return { group: svgElement("g", { class: "far", "aria-hidden": "true" }, name, state, bar), state, bar, names };
  }

  // Names that stand alone, where folded boxes could not be read; above all boxes, since they may be wider.
  names() {
    this.alone = this.model.variables.map(() => svgElement("text", { class: "alone", visibility: "hidden" }));
    return svgElement("g", { class: "names", "aria-hidden": "true" }, ...this.alone);
  }

  // How the boxes look at a scale: in full, folded, or as names only, where folded boxes could not be read.
  seenFrom(scale) {
    this.scale = scale;
    const far = scale < FOLD;
    const alone = far && this.far * scale < FAR_LETTERS;
    this.svg.classList.toggle("far-off", far);
    this.svg.classList.toggle("names-only", alone);
    if (alone) this.nameFromAfar();
  }

  // All names are equally large on the screen, and those are shown that have room: the query and findings first.
  nameFromAfar() {
    const letters = FAR_LETTERS / this.scale;
    const taken = new Map(); // from lines of the map to the names that they hold
    setAttribute(this.alone[0].parentNode, "style", letterStyle(letters));
    for (const i of this.byImportance()) {
      const text = this.alone[i];
      const places = this.farTexts(i).map((one) => this.placeFromAfar(i, one, letters));
      const place = places.find((one) => takeRoom(taken, one, FAR_LINE * letters));
      setAttribute(text, "visibility", place ? "visible" : "hidden");
      if (!place) continue;
      setText(text, place.text);
      setAttribute(text, "x", ((place.left + place.right) / 2).toFixed(1));
      setAttribute(text, "y", (place.middle + letters * 0.36).toFixed(1));
      markEvidence(text, this.session.evidence[i]);
      text.classList.toggle("chosen", i === this.session.query);
    }
  }

  // A name, and as much of it as its box holds.
  farTexts(i) {
    const { label } = this.model.variables[i];
    const short = fitted(label, this.model.layout.boxes[i][2] * this.scale, FAR_LETTERS, 600);
    return short.length > LEAST_NAME ? [label, short] : [label];
  }

  // In the middle of the box, but inside the map.
  placeFromAfar(i, text, letters) {
    const [x, y, w, h] = this.model.layout.boxes[i];
    const half = textWidth(text, FAR_LETTERS, 600) / this.scale / 2 + letters / 5;
    const center = Math.max(half, Math.min(x + w / 2, this.width - half));
    return { text, left: center - half, right: center + half, middle: y + h / 2 };
  }

  byImportance() {
    const { query, evidence } = this.session;
    const rank = (i) => (i === query ? 0 : evidence[i] ? 1 : 2);
    return readingOrder(this.model.layout.boxes).sort((a, b) => rank(a) - rank(b));
  }

  // The name of the box that is pointed at, and what is most probable there, if all of that is folded away.
  raiseFlag(i) {
    const shown = i >= 0 && this.svg.classList.contains("names-only");
    setText(this.flag, shown ? `${this.model.variables[i].label}: ${this.parts[i].folded.state.textContent}` : "");
    if (!shown) return;
    const [x, y, w] = this.model.layout.boxes[i];
    const letters = (1.15 * FAR_LETTERS) / this.scale;
    const half = textWidth(this.flag.textContent, FAR_LETTERS * 1.15, 600) / this.scale / 2;
    setAttribute(this.flag, "x", Math.max(half, Math.min(x + w / 2, this.width - half)).toFixed(1));
    setAttribute(this.flag, "y", Math.max(y - letters / 2, letters).toFixed(1));
    setAttribute(this.flag, "style", letterStyle(letters, 0.8));
  }

  gauges(part, node, { gamma, rows }) {
    const { columns, w } = part;
    const top = this.m.title + this.m.row * part.lines + 4;
    part.full.append(svgElement("path", { class: "rule", d: `M${this.m.pad} ${top - 2}H${w - this.m.pad}` }));
    if (!part.tests.length) return [this.gauge(part, "", top, columns, null)];
    return rows.map((row, k) => this.gauge(part, part.tests[k], top + k * this.m.gauge, columns, { row, gamma }));
  }

  gauge(part, text, y, { labels, bar, length, right }, test) {
    const middle = y + this.m.gauge / 2;
    const made = {
      fill: svgElement("rect", { class: "gauge-fill", x: bar, y: middle - 2.5, height: 5, width: 0 }),
      tick: svgElement("path", {
        class: "gauge-tick",
        d: test ? `M${bar + length * share01(test.row.threshold)} ${middle - 5}v10` : "",
      }),
      sign: svgElement("path", { class: "gauge-sign" }),
      number: svgElement("text", {
        class: "gauge-number",
        x: test ? right - 13 : right,
        y: middle + 4,
        "text-anchor": "end",
      }),
      note: svgElement("title"),
      bar,
      length,
      at: [right - 9, middle],
    };
    const label = svgElement(
      "text",
      { class: "gauge-label", x: this.m.pad, y: middle + 4 },
      test ? fitted(text, labels + 0.5, this.m.letters) : "",
    );
    const track = svgElement("rect", { class: "gauge-track", x: bar, y: middle - 2.5, width: length, height: 5 });
    if (!test) [track, made.fill].forEach((node) => node.setAttribute("visibility", "hidden"));
    const { note, fill, tick, sign, number } = made;
    made.group = svgElement("g", { class: "gauge" }, note, label, track, fill, tick, sign, number);
    part.full.append(made.group);
    return made;
  }

  // All that an answer changes.
  update() {
    const { answer, evidence } = this.session;
    this.parts.forEach((part, i) => this.updateBox(part, i, answer.posteriors[i], evidence[i]));
    this.lines.forEach(({ to, path }) => path.classList.toggle("cut", stateSet(evidence[to]) >= 0));
    if (this.svg.classList.contains("names-only")) this.nameFromAfar();
    for (const [node, tests] of testsByNode(answer, this.before)) this.updateTests(this.parts[node], node, tests);
    this.before = answer;
  }

  updateBox(part, i, posterior, likelihoods) {
    const seen = knownState(likelihoods);
    markEvidence(part.group, likelihoods);
    const soft = Array.isArray(likelihoods) && seen < 0 ? shares(likelihoods) : null;
    part.rows.forEach((row, k) => {
      setAttribute(row.bar, "width", (row.length * share01(posterior[k])).toFixed(2));
      setAttribute(row.likelihood, "width", soft ? (row.length * soft[k]).toFixed(2) : 0);
      const ghost = this.session.ghost(i, k);
      setAttribute(row.ghost, "width", Number.isNaN(ghost) ? 0 : 1.6);
      if (!Number.isNaN(ghost)) setAttribute(row.ghost, "x", (row.left + row.length * ghost - 0.8).toFixed(2));
      setText(row.number, percent(posterior[k]));
      setAttribute(row.control, "aria-pressed", seen === k);
      this.updateWhisker(row, i, k);
    });
    if (part.curves.length) {
      this.updateCurves(part, i);
      return;
    }
    if (part.more) this.choose(part, this.model.variables[i], posterior);
    const best = largest(posterior);
    const { state, names } = part.folded;
    setText(state, Number.isNaN(posterior[best]) ? "impossible" : `${names[best]} ${percent(posterior[best])}`);
    setAttribute(part.folded.bar, "width", (part.w * share01(posterior[best])).toFixed(1));
  }

  updateWhisker({ whisker, control, left, length, middle }, i, k) {
    const ends = this.session.intervalOf(i, k)?.map((p) => (left + length * share01(p)).toFixed(2));
    setAttribute(whisker, "d", ends ? `M${ends[0]} ${middle}H${ends[1]}M${ends[0]} ${middle - 3}v6M${ends[1]} ${middle - 3}v6` : "");
    setAttribute(control, "aria-label", this.session.spoken(i, k));
  }

  // The intervals alone, which come later than the answer.
  updateWhiskers() {
    this.parts.forEach(({ rows }, i) => rows.forEach((row, k) => this.updateWhisker(row, i, k)));
  }

  updateCurves(part, i) {
    const { answer, evidence } = this.session;
    part.curves.forEach(({ made, mean, range, note }, j) => {
      const mixture = answer.numbers[i][j];
      made.update();
      const room = part.w - 2 * this.m.pad;
      const known = () => [`= ${plainNumber(numbersIn(evidence[i])[j])}`, ""];
      const words = mixture ? numberWordsWithin(mixture, room, this.m.letters) : known();
      setText(mean, words[0]);
      setText(range, words[1]);
      setText(note, mixture ? numberSentence(mixture) : `observed ${words[0]}`);
      mean.classList.toggle("known", !mixture);
    });
    setText(part.folded.state, fitted(spokenNumbers(this.session, i), part.w - 14, 15));
  }

  updateTests(part, node, tests) {
    if (!part.gauges.length) part.gauges = this.gauges(part, node, tests);
    const changed = tests.flipped.some((flip) => flip);
    if (!part.tests.length) {
      const [only] = part.gauges;
      setText(only.number, countOfTests(tests.holding, tests.rows.length));
      if (changed) flash(only.group);
    } else {
      part.gauges.forEach((gauge, k) => this.updateGauge(gauge, node, tests, k));
    }
    if (changed) flash(part.group.querySelector(".frame"));
  }

  updateGauge(gauge, node, { gamma, rows, flipped }, k) {
    const row = rows[k];
    const held = row.weight >= 0.5;
    setAttribute(gauge.fill, "width", (gauge.length * share01(row.posterior)).toFixed(2));
    setText(gauge.number, Number.isNaN(row.posterior) ? "–" : row.posterior.toFixed(2));
    setText(gauge.note, testText(this.model, node, row, gamma));
    setAttribute(gauge.sign, "d", signPath(held, ...gauge.at));
    gauge.group.classList.toggle("holds", held);
    if (flipped[k]) flash(gauge.group);
  }

  // The query is ringed, and the edges of a box light up with it.
  mark() {
    this.parts.forEach((part, i) => {
      const chosen = i === this.session.query;
      part.group.classList.toggle("chosen", chosen);
      setAttribute(part.title, "aria-pressed", chosen);
    });
    if (this.svg.classList.contains("names-only")) this.nameFromAfar();
  }

  point(i) {
    this.lines.forEach(({ from, to, path }) => path.classList.toggle("near", i === from || i === to));
    this.raiseFlag(i);
  }

  // Where the state's bar is on the screen.
  track(i, k) {
    return this.parts[i].rows[k].track.getBoundingClientRect();
  }
}

// Letters of a size in the map's own pixels, and the rim that keeps them legible on lines and boxes.
function letterStyle(size, rim = 0.3) {
  return `font-size: ${size.toFixed(1)}px; stroke-width: ${(size * rim).toFixed(1)}px`;
}

// Whether a place on a line is free; if so, it is taken. Places by the lines of this height that they may touch.
function takeRoom(taken, place, height) {
  const line = Math.floor(place.middle / height);
  const near = [line - 1, line, line + 1].flatMap((own) => taken.get(own) ?? []);
  const apart = ({ left, right, middle }) =>
    left >= place.right || right <= place.left || Math.abs(middle - place.middle) >= height;
  if (!near.every(apart)) return false;
  taken.set(line, [...(taken.get(line) ?? []), place]);
  return true;
}

// Row by row, from left to right.
function readingOrder(boxes) {
  return boxes.map((_, i) => i).sort((a, b) => boxes[a][1] - boxes[b][1] || boxes[a][0] - boxes[b][0]);
}

// A line through points that leaves and enters boxes, and passes rows, vertically.
function smooth(points) {
  let path = `M${points[0][0]} ${points[0][1]}`;
  for (let k = 1; k < points.length; k++) {
    const [[x0, y0], [x1, y1]] = [points[k - 1], points[k]];
    const last = k === points.length - 1 ? 1.5 : 0;
    if (Math.abs(x0 - x1) < 0.5) path += `L${x1} ${y1 - last}`;
    else {
      const reach = 0.8 * (y1 - y0);
      path += `C${x0} ${y0 + reach} ${x1} ${y1 - reach} ${x1} ${y1 - last}`;
    }
  }
  return path;
}

function signPath(held, x, y) {
  return held ? `M${x} ${y + 0.5}l2.6 3 5-6.5` : `M${x + 1} ${y - 3}l6 6m0-6l-6 6`;
}

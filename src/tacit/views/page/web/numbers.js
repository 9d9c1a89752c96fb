"use strict";
// Continuous variables in words, and as fields for numbers.

const MOST_PLAIN = 1e7; // up to where numbers are written without a power of ten

// A number as it was typed, with a minus that reads well.
function plainNumber(x) {
  return String(x).replace("-", "−");
}

// A number in as many digits as matter beside a standard deviation, or in fewer.
function inSteps(x, sd, fewer = 0) {
  if (!Number.isFinite(x)) return "–";
  if (Math.abs(x) >= MOST_PLAIN || (x !== 0 && Math.abs(x) < 1e-4 && !(sd > 1e-3))) return brief(x, 3);
  const digits = sd > 0 ? Math.max(0, Math.min(8, Math.ceil(-Math.log10(sd)) + 1 - fewer)) : 3;
  return x.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");
}

function signedIn(x, sd) {
  return `${x > 0 ? "+" : ""}${inSteps(x, sd)}`;
}

// The mean, and what lies around it: ["mean 62.1", "90%: 48.2 – 77.0"].
function numberWords(mixture, fewer = 0) {
  if (!mixture.possible) return ["impossible", ""];
  const [low, high] = mixture.interval.map((x) => (mixture.counted ? plainNumber(x) : inSteps(x, mixture.sd, fewer)));
  return [`mean ${inSteps(mixture.mean, mixture.sd, fewer)}`, `90%: ${low} – ${high}`];
}

// The same side by side in a room, with one digit less if need be; then without "mean", and cut at last.
function numberWordsWithin(mixture, room, letters) {
  const gap = 6;
  const wide = (words) => textWidth(words[0], letters) + gap + textWidth(words[1], letters);
  const tried = [0, 1].map((fewer) => numberWords(mixture, fewer));
  tried.push([tried[1][0].replace("mean ", ""), tried[1][1]]);
  const words = tried.find((own) => wide(own) <= room) ?? tried[2];
  return [words[0], fitted(words[1], room - gap - textWidth(words[0], letters), letters)];
}

function numberSentence(mixture) {
  const [mean, range] = numberWords(mixture);
  return range ? `${mean}; from ${range.slice("90%: ".length).replace(" – ", " to ")} with a probability of 90%` : mean;
}

// A variable's columns for those who listen, and where there is no room for a curve.
function spokenNumbers({ model, answer, evidence }, i) {
  const { density } = model.variables[i];
  const text = density.columns.map((name, j) => {
    const mixture = answer.numbers[i][j];
    const own = mixture ? numberWords(mixture).join(", ") : `= ${plainNumber(numbersIn(evidence[i])[j])}`;
    return density.columns.length > 1 ? `${name} ${own}` : own;
  });
  return text.join("; ");
}

// The columns of a continuous variable below each other: curves, words, and fields to type numbers into.
class NumbersView {
  constructor(session, i) {
    const { density } = session.model.variables[i];
    this.columns = density.columns.map((_, j) => new ColumnView(session, i, j));
    this.nodes = this.columns.map(({ host }) => host);
  }

  update() {
    this.columns.forEach((column) => column.update());
  }
}

class ColumnView {
  constructor(session, i, j) {
    Object.assign(this, { session, i, j });
    const { density } = session.model.variables[i];
    this.curve = new Curve(session, i, j, { x: 0, y: 2, width: 340, height: 66 });
    const end = (anchor, x) => svgElement("text", { class: "curve-end", x, y: 82, "text-anchor": anchor });
    this.ends = [end("start", 0), end("end", 340)];
    const picture = svgElement("svg", { class: "curve-picture", viewBox: "0 0 340 86", role: "img" }, this.curve.group, ...this.ends);
    this.picture = picture;
    this.words = element("p", { class: "number-words" });
    this.more = quiet("p");
    this.field = new ColumnField(session, i, j);
    const name = density.columns.length > 1 ? [element("h4", {}, density.columns[j])] : [];
    this.host = element("div", { class: "column" }, ...name, picture, this.words, this.more, this.field.form);
  }

  update() {
    const { session, i, j } = this;
    const mixture = session.answer.numbers[i][j];
    const expected = session.answer.expected[i]?.[j];
    this.curve.update();
    const [low, high] = this.curve.axis;
    this.ends.forEach((end, k) => setText(end, inSteps([low, high][k], (high - low) / 10)));
    setText(this.words, mixture ? numberSentence(mixture) : `observed: ${plainNumber(numbersIn(session.evidence[i])[j])}`);
    this.words.classList.toggle("hard", !mixture);
    setText(this.more, mixture || !expected?.possible ? "" : `The other findings suggest: ${numberSentence(expected)}.`);
    this.more.hidden = !this.more.textContent;
    setAttribute(this.picture, "aria-label", `${session.model.variables[i].density.columns[j]}: ${this.words.textContent}`);
    this.field.update();
  }
}

// A field for a number of one column; Enter observes it.
class ColumnField {
  constructor(session, i, j) {
    const { label, density } = session.model.variables[i];
    Object.assign(this, { session, i, j, density, shown: null });
    const name = density.columns.length > 1 ? `${label}, ${density.columns[j]},` : label;
    this.input = element("input", {
      type: "text",
      inputmode: density.kind === "poisson" ? "numeric" : density.kind === "log-normal" ? "decimal" : "text", // keypads have no minus
      autocomplete: "off",
      placeholder: density.kind === "poisson" ? "a count" : density.kind === "log-normal" ? "a number above 0" : "a number",
      "aria-label": `${name} as a number`,
      input: () => this.say(""),
    });
    this.clear = button("Clear", () => this.observe(null), { "aria-label": `Clear ${name.replace(/,$/, "")}` });
    this.told = element("p", { class: "told", role: "status" });
    const submit = (event) => (event.preventDefault(), this.take());
    const line = element("div", { class: "line" }, this.input, element("button", { type: "submit" }, "Observe"), this.clear);
    this.form = element("form", { class: "number-field", submit, novalidate: true }, line, this.told);
  }

  take() {
    try {
      this.observe(numberOfText(this.density, this.input.value));
    } catch (error) {
      this.say(error.message, true);
    }
  }

  observe(x) {
    const { session, i, j } = this;
    return session.observe(i, withColumn(session.evidence[i], this.density, j, x));
  }

  say(text, wrong = false) {
    setText(this.told, text);
    this.told.classList.toggle("wrong", wrong);
    setAttribute(this.input, "aria-invalid", wrong);
  }

  // What was typed goes when it is no longer what is known.
  update() {
    const x = numbersIn(this.session.evidence[this.i])?.[this.j] ?? null;
    this.clear.hidden = x === null;
    if (x === this.shown) return;
    this.shown = x;
    this.input.value = x === null ? "" : String(x);
    this.say("");
  }
}

"use strict";
// What is observed, how probable it is, and ways to take it along.

class FindingsPanel {
  constructor(session) {
    Object.assign(this, { session, id: "findings", label: "Findings", light: true });
  }

  make(host) {
    this.likely = element("p", { class: "likely" });
    this.list = element("ul", { class: "findings" });
    this.none = quiet("p", this.howTo());
    this.undo = button("Undo", () => this.session.undo());
    this.redo = button("Redo", () => this.session.redo());
    this.clear = button("Clear all", () => this.session.clear());
    this.told = element("p", { class: "told", role: "status" });
    this.steps = element("div", { class: "buttons" }, this.undo, this.redo, this.clear);
    this.comparison = new Comparison(this.session);
    const comparing = { title: "Keep these findings as case A, then change them: that is case B" };
    this.compare = element("div", { class: "buttons" }, button("Compare two cases", () => this.session.keep(), comparing));
    this.head = element("h4", { hidden: true });
    this.entry = new NumberEntry(this.session);
    this.live = element("section", { class: "case" }, this.head, this.none, this.list, this.entry.host, this.likely, this.steps);
    this.session.listen((what) => ["settled", "query", "cases"].includes(what) && this.say(""));
    const { comparison } = this;
    host.append(comparison.makeTop(), comparison.makeTable(), comparison.makeKept(), this.live, this.compare, this.carry());
  }

  howTo() {
    const number = this.session.model.variables.find(({ bins }) => bins);
    const typed = number ? ` For a variable such as ${number.label}, you can type a number.` : "";
    return `Nothing is observed yet. Click a state to observe it, or drag its bar for soft evidence.${typed}`;
  }

  carry() {
    const { model } = this.session;
    this.text = element("textarea", {
      rows: 3,
      spellcheck: "false",
      "aria-label": "Findings as text",
      title: "Lines NAME = STATE, a Python dictionary, a JSON object, a link, or CSV with a header and a row",
      placeholder: `${model.variables[0].name} = ${model.variables[0].names[0]}`,
    });
    return element(
      "details",
      { class: "carry", open: true },
      element("summary", {}, "Share and save"),
      element(
        "div",
        { class: "buttons" },
        button("Copy link", () => this.copy(address(this.session))),
        button("Copy as text", () => this.copy(toLines(this.session))),
        button("Posteriors as CSV", () => downloadTable(this.session)),
        button("Picture as PNG", () => this.session.tell({ picture: true })),
      ),
      this.told,
      element("label", { class: "paste" }, "Paste findings or a link", this.text),
      element("div", { class: "buttons" }, button("Observe these", () => this.paste())),
    );
  }

  async copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      this.say("Copied.");
    } catch {
      this.text.value = text; // frames may not use the clipboard
      this.text.select();
      this.say("The clipboard is out of reach here: copy the text from the field.");
    }
  }

  say(text, wrong = false) {
    setText(this.told, text);
    this.told.classList.toggle("wrong", wrong);
  }

  async paste() {
    if (!this.text.value.trim()) return this.say("Type or paste findings first.", true);
    const { query, problems, ...cases } = fromText(this.session.model, this.text.value);
    if (query !== null) this.session.choose(query);
    if (cases.kept) await this.session.restore(cases);
    else if (!problems.length || cases.evidence.some((one) => one)) this.session.replace(cases.evidence);
    return this.say(problems.join(" "), problems.length > 0); // until the next change
  }

  update() {
    const { model, evidence, answer, past, future } = this.session;
    const found = findingsIn(evidence).map((i) => findingLine(this.session, i, evidence[i], this.apart(i), this.clearer(i)));
    this.list.replaceChildren(...found);
    this.none.hidden = found.length > 0;
    this.entry.update();
    this.compare.hidden = this.session.kept !== null;
    this.head.hidden = !this.session.kept;
    if (this.session.kept) setText(this.head, `Case ${this.session.live}, on the map: clicks change it`);
    this.comparison.update(this.live);
    this.steps.hidden = !found.length && !past.length && !future.length;
    [this.undo.disabled, this.redo.disabled, this.clear.disabled] = [!past.length, !future.length, !found.length];
    this.likely.replaceChildren();
    const set = evidence.filter((finding) => stateSet(finding) >= 0).length;
    if (found.length === set || !answer.possible) return;
    this.likely.append(...probability(`p(findings${set ? " | what is set" : ""})`, answer.logEvidence));
    if (model.variables.some(({ testing }) => testing)) this.likely.append(" (p* of the selected network)");
  }

  // What this finding is beside that of the other case.
  apart(i) {
    const { kept, evidence } = this.session;
    return kept ? apartMark(evidence[i], kept.evidence[i], this.session.live) : "";
  }

  // The button goes with the finding: the keyboard stays in the panel.
  forget(i) {
    this.session.observe(i, null);
    this.host.focus();
  }

  clearer(i) {
    const { label } = this.session.model.variables[i];
    return button("×", () => this.forget(i), { class: "icon", "aria-label": `Clear ${label}`, title: "Clear" });
  }
}

// A finding as a line of a list: the variable, what is known of it, how it differs, and a way to clear it.
function findingLine(session, i, finding, ...marks) {
  const { states } = session.model.variables[i];
  const soft = knownState(finding) < 0;
  const kind = stateSet(finding) >= 0 ? "hard set" : soft ? "soft" : "hard";
  const likelihoods = () => states.map((one, k) => `${one} ${brief(shares(finding)[k])}`).join(", ");
  const text = soft ? `likelihoods ${likelihoods()}` : findingText(states, finding);
  return element("li", { class: kind }, link(session, i), element("span", {}, text), ...marks);
}

// "p(findings) = 0.0008 (1 in 1,250)", with the logarithm for those who point at it.
function probability(what, log) {
  const title = `log ${what} = ${brief(log, 5)} (natural logarithm)`;
  const times = Math.exp(-log);
  const one = `1 in ${Number(times.toPrecision(3)).toLocaleString("en")}`;
  const [text, rest] = times < 10 || times > 1e9 ? [briefExp(log), ""] : times > 1e4 ? [one, ""] : [briefExp(log), ` (${one})`];
  return [`${what} = `, element("b", { title }, text), rest];
}

// e to a power, in few digits, also below the range of floats.
function briefExp(log) {
  const power = Math.floor(log / Math.LN10);
  if (power > -5) return String(Number(Math.exp(log).toPrecision(3)));
  return `${(10 ** (log / Math.LN10 - power)).toFixed(2)}e−${-power}`;
}

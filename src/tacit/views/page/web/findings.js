"use strict";
// What is observed, how probable it is, and ways to take it along.

const FEW_LIKELIHOODS = 3; // that are listed of soft evidence on a variable of many states

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
    this.session.listen((what) => ["settled", "query", "cases"].includes(what) && this.say(""));
    const { comparison } = this;
    const parts = [this.head, this.none, this.list, comparison.makeFindings((i) => this.clearer(i)), this.entry.host];
    this.live = element("section", {}, ...parts, this.likely, this.steps);
    host.append(comparison.makeTop(), comparison.makeTable(), this.live, this.compare, this.carry());
  }

  howTo() {
    const number = this.session.model.variables.find(({ bins, density }) => bins || density);
    const typed = number ? ` For a variable such as ${number.label}, you can type a number.` : "";
    return `Nothing is observed yet. Click a state to observe it, or drag its bar for soft evidence.${typed}`;
  }

  carry() {
    const { model } = this.session;
    const example = model.variables.find(({ density }) => !density);
    this.text = element("textarea", {
      rows: 3,
      spellcheck: "false",
      "aria-label": "Findings as text",
      title: "Lines NAME = STATE, a Python dictionary, a JSON object, a link, or CSV with a header and a row",
      placeholder: example ? `${example.name} = ${example.names[0]}` : `${model.variables[0].density.columns[0]} = 2.5`,
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
    const { query, problems, notes, ...cases } = fromText(this.session.model, this.text.value);
    if (problems.length) return this.say(`${problems.join(" ")} Nothing was changed.`, true); // until the next change
    if (query !== null) this.session.choose(query);
    if (cases.kept) await this.session.restore(cases);
    else this.session.replace(cases.evidence);
    return this.say(notes.join(" "));
  }

  update() {
    const { model, evidence, answer, past, future, kept, live } = this.session;
    const found = findingsIn(evidence);
    this.list.replaceChildren(...(kept ? [] : found).map((i) => findingLine(this.session, i, this.clearer(i))));
    this.none.hidden = found.length > 0 || kept !== null;
    this.entry.update();
    this.compare.hidden = kept !== null;
    this.head.hidden = !kept;
    if (kept) setText(this.head, `Findings of both: clicks change case ${live}`);
    this.comparison.update();
    this.steps.hidden = !found.length && !past.length && !future.length;
    [this.undo.disabled, this.redo.disabled, this.clear.disabled] = [!past.length, !future.length, !found.length];
    this.likely.replaceChildren();
    const set = evidence.filter((finding) => stateSet(finding) >= 0).length;
    if (found.length === set || !answer.possible) return;
    if (kept) this.likely.append(`Case ${live}: `);
    const dense = evidence.some(numbersIn);
    this.likely.append(...probability(`p(findings${set ? " | what is set" : ""})`, answer.logEvidence, dense));
    if (model.variables.some(({ testing }) => testing)) this.likely.append(" (p* of the selected network)");
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

// A finding as a line of a list: the variable, what is known of it, and a way to clear it.
function findingLine(session, i, clearer) {
  const finding = session.evidence[i];
  const text = knownText(session.model.variables[i], finding);
  return element("li", { class: kindOf(finding) }, link(session, i), element("span", {}, text), clearer);
}

// How a finding looks.
function kindOf(finding) {
  return stateSet(finding) >= 0 ? "hard set" : knownState(finding) < 0 && !numbersIn(finding) ? "soft" : "hard";
}

// A finding in words.
function knownText(variable, finding) {
  if (knownState(finding) >= 0 || numbersIn(finding)) return findingText(variable, finding);
  const { states } = variable;
  const own = shares(finding);
  const shown = states.length > MOST_STATES ? mostProbable(own, FEW_LIKELIHOODS) : states.map((_, k) => k);
  const rest = states.length - shown.length;
  const likelihoods = shown.map((k) => `${states[k]}: ${brief(own[k])}`).join(", ");
  return `likelihoods ${likelihoods}${rest ? ` and ${rest} more` : ""}`;
}

// "p(findings) = 0.0008 (1 in 1,250)", with the logarithm for those who point at it.
function probability(what, log, dense = false) {
  if (dense) return [`log ${what} = `, element("b", { title: "A density: numbers are among the findings" }, brief(log, 5))];
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

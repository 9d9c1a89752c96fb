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
    this.live = element("section", { class: "case" }, this.head, this.none, this.list, this.steps, this.likely);
    const { comparison } = this;
    host.append(comparison.makeTop(), comparison.makeKept(), this.live, this.compare, comparison.makeTable(), this.carry());
  }

  howTo() {
    const number = this.session.model.variables.find(({ bins }) => bins);
    const typed = number ? ` To type a number, click the name of a variable such as ${number.label}.` : "";
    return `Nothing is observed yet. Click a state to observe it, or drag its bar for soft evidence.${typed}`;
  }

  carry() {
    const { model } = this.session;
    this.text = element("textarea", {
      rows: 3,
      spellcheck: "false",
      "aria-label": "Findings as text",
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
        button("Copy as text", () => this.copy(toLines(model, this.session.evidence))),
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
      setText(this.told, "Copied.");
    } catch {
      this.text.value = text; // frames may not use the clipboard
      this.text.select();
      setText(this.told, "The clipboard is out of reach here: copy the text from the field.");
    }
  }

  paste() {
    const { evidence, query, problems } = fromText(this.session.model, this.text.value);
    setText(this.told, problems.join(" "));
    if (query !== null) this.session.choose(query);
    if (!problems.length || evidence.some((one) => one)) this.session.replace(evidence);
  }

  update() {
    const { model, evidence, answer, past, future } = this.session;
    const found = findingsIn(evidence).map((i) => findingLine(this.session, i, evidence[i], this.clearer(i)));
    this.list.replaceChildren(...found);
    this.none.hidden = found.length > 0;
    this.compare.hidden = this.session.kept !== null;
    this.head.hidden = !this.session.kept;
    if (this.session.kept) setText(this.head, `Case ${this.session.live}, on the map: clicks change it`);
    this.comparison.update(this.live);
    this.steps.hidden = !found.length && !past.length && !future.length;
    [this.undo.disabled, this.redo.disabled, this.clear.disabled] = [!past.length, !future.length, !found.length];
    const log = answer.logEvidence;
    this.likely.replaceChildren();
    const set = evidence.filter((finding) => stateSet(finding) >= 0).length;
    if (found.length === set || !answer.possible) return;
    const what = `p(findings${set ? " | what is set" : ""}) = `;
    this.likely.append(what, element("b", {}, brief(Math.exp(log))), `, log ${what}${brief(log, 5)}`);
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

// A finding as a line of a list: the variable, what is known of it, and a way to clear it, if there is one.
function findingLine(session, i, finding, ...clear) {
  const { states } = session.model.variables[i];
  const soft = knownState(finding) < 0;
  const kind = stateSet(finding) >= 0 ? "hard set" : soft ? "soft" : "hard";
  const likelihoods = () => states.map((one, k) => `${one} ${brief(shares(finding)[k])}`).join(", ");
  const text = soft ? `likelihoods ${likelihoods()}` : findingText(states, finding);
  return element("li", { class: kind }, link(session, i), element("span", {}, text), ...clear);
}

// A frame without an address of its own still gives the part that counts.
function address({ model, evidence, query }) {
  const page = location.protocol === "about:" ? "" : location.href.split("#")[0];
  return `${page}#${toFragment(model, evidence, query)}`;
}

// The part of the address after "#" follows the findings and the query, and these follow it.
function followAddress(session, complain) {
  const fragment = () => toFragment(session.model, session.evidence, session.query);
  const read = async () => {
    const text = location.hash.slice(1);
    if (text === fragment()) return;
    const { evidence, query, problems } = fromText(session.model, `#${text}`);
    if (query !== null) session.choose(query);
    await session.replace(evidence);
    if (problems.length) complain(`Not everything in the address could be read. ${problems.join(" ")}`);
  };
  const write = later(() => {
    const text = fragment();
    if (text === location.hash.slice(1)) return;
    try {
      history.replaceState(null, "", text ? `#${text}` : location.pathname + location.search);
    } catch {
      // a frame without an address of its own
    }
  }, 50); // browsers are slow at this
  addEventListener("hashchange", read);
  session.listen((what) => ["settled", "query"].includes(what) && write());
  if (location.hash.length > 1) read();
}

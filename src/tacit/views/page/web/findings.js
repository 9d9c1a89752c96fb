"use strict";
// What is observed, how probable it is, and ways to take it along.

class FindingsPanel {
  constructor(session) {
    Object.assign(this, { session, id: "findings", label: "Findings", light: true });
  }

  make(host) {
    this.likely = element("p", { class: "likely" });
    this.list = element("ul", { class: "findings" });
    this.none = quiet("p", "Nothing is observed yet. Click a state to observe it, or drag its bar for soft evidence.");
    this.undo = button("Undo", () => this.session.undo());
    this.redo = button("Redo", () => this.session.redo());
    this.clear = button("Clear all", () => this.session.clear());
    this.told = element("p", { class: "told", role: "status" });
    this.steps = element("div", { class: "buttons" }, this.undo, this.redo, this.clear);
    this.comparison = new Comparison(this.session);
    this.compare = element("div", { class: "buttons" }, button("Keep for comparison", () => this.session.keep()));
    const parts = [this.none, this.list, this.steps, this.likely, this.compare, this.comparison.make()];
    host.append(...parts, this.carry(), this.told);
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
    const found = evidence.flatMap((likelihoods, i) => (likelihoods ? [this.finding(i, likelihoods)] : []));
    this.list.replaceChildren(...found);
    this.none.hidden = found.length > 0;
    this.compare.hidden = this.session.kept !== null || !found.length;
    this.comparison.update();
    this.steps.hidden = !found.length && !past.length && !future.length;
    [this.undo.disabled, this.redo.disabled, this.clear.disabled] = [!past.length, !future.length, !found.length];
    const log = answer.logEvidence;
    this.likely.replaceChildren();
    const set = evidence.filter((finding) => stateSet(finding) >= 0).length;
    if (found.length === set || !answer.possible) return;
    const what = `log p(findings${set ? " | what is set" : ""}) = `;
    this.likely.append(what, element("b", {}, brief(log, 5)), `, p = ${brief(Math.exp(log))}`);
    if (model.variables.some(({ testing }) => testing)) this.likely.append(" (p* of the selected network)");
  }

  // The button goes with the finding: the keyboard stays in the panel.
  forget(i) {
    this.session.observe(i, null);
    this.host.focus();
  }

  finding(i, likelihoods) {
    const { model } = this.session;
    const { label, states } = model.variables[i];
    const state = knownState(likelihoods);
    const set = stateSet(likelihoods) >= 0;
    const clear = button("×", () => this.forget(i), { class: "icon", "aria-label": `Clear ${label}`, title: "Clear" });
    const what =
      state >= 0 ? states[state] : states.map((one, k) => `${one} ${brief(shares(likelihoods)[k])}`).join(", ");
    return element(
      "li",
      { class: set ? "hard set" : state >= 0 ? "hard" : "soft" },
      link(this.session, i),
      element("span", {}, set ? `set to ${what}` : state >= 0 ? what : `likelihoods ${what}`),
      clear,
    );
  }
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

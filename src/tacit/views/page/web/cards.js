"use strict";
// The variables as a list of cards, for narrow screens: made when first shown.

class Cards {
  constructor(session, host) {
    Object.assign(this, { session, host, model: session.model, parts: null, before: null, introduced: false });
    this.narrow = matchMedia("(max-width: 720px)");
  }

  // By what decides it, not by asking where the cards are: that would lay out the whole page.
  get visible() {
    return this.narrow.matches && document.body.dataset.view === "list";
  }

  make() {
    this.nothing = element("p", { class: "quiet", hidden: true }, "No variable has such a name.");
    this.parts = this.model.variables.map((variable, i) => this.card(variable, i));
    this.hint = quiet("p");
    this.findings = element("ul", { class: "findings" });
    this.found = element("section", { class: "card observed", "aria-label": "Findings", hidden: true }, this.findings);
    this.host.append(this.found, this.hint, this.nothing, ...this.parts.map(({ card }) => card));
    this.mark();
  }

  card(variable, i) {
    const title = element(
      "button",
      {
        type: "button",
        class: "title",
        "data-variable": i,
        "aria-pressed": "false",
        "aria-label": `${variable.label}: make it the query`,
      },
      element("span", {}, variable.label),
      element("i", { class: "group-dot" }),
    );
    const list = variable.density ? new NumbersView(this.session, i) : new StateList(this.session, i);
    const first = variable.density ? title : list.rows[list.shown[0]].control;
    const number = variable.bins ? new NumberField(this.session, i) : null;
    const tests = element("p", { class: "card-tests", hidden: !variable.testing });
    const card = element(
      "article",
      { class: "card", "data-card": i, "aria-label": variable.label },
      title,
      ...list.nodes,
      ...(number ? [number.form] : []),
      tests,
    );
    card.classList.toggle("testing", variable.testing);
    card.classList.add(...groupClasses(this.model, i));
    return { card, title, list, tests, number, first };
  }

  update() {
    if (!this.visible) return;
    if (!this.parts) this.make();
    const { answer, evidence } = this.session;
    this.showFindings();
    this.parts.forEach((part, i) => {
      markEvidence(part.card, evidence[i]);
      part.list.update();
      part.number?.update();
    });
    for (const [node, { rows, holding, flipped }] of testsByNode(answer, this.before)) {
      if (flipped.includes(true)) flash(this.parts[node].tests);
      setText(this.parts[node].tests, countOfTests(holding, rows.length));
    }
    this.before = answer;
  }

  // Findings that came with the address are above the cards: theirs may be far down.
  introduce() {
    this.introduced = this.session.evidence.some((finding) => finding);
    this.update();
  }

  showFindings() {
    const found = this.introduced ? findingsIn(this.session.evidence) : [];
    this.introduced = found.length > 0; // once they are cleared, what one taps moves no card
    this.found.hidden = !this.introduced;
    this.findings.replaceChildren(...found.map((i) => findingLine(this.session, i, this.clearer(i))));
  }

  clearer(i) {
    const what = { class: "icon", "aria-label": `Clear ${this.model.variables[i].label}`, title: "Clear" };
    return button("×", () => this.session.observe(i, null), what);
  }

  mark() {
    if (!this.parts) return;
    const { label } = this.model.variables[this.session.query];
    const act = this.session.setting ? "set it from outside" : "observe it, drag along its bar for soft evidence";
    setText(this.hint, `Tap a state to ${act}, or tap a name to make it the query, which is ${label} now.`);
    this.parts.forEach(({ card, title }, i) => {
      card.classList.toggle("chosen", i === this.session.query);
      setAttribute(title, "aria-pressed", i === this.session.query);
    });
  }

  // Show only cards whose variables pass.
  filter(passes) {
    if (!this.parts) return;
    this.parts.forEach(({ card }, i) => (card.hidden = !passes(i)));
    this.nothing.hidden = this.parts.some(({ card }) => !card.hidden);
  }

  reveal(i) {
    this.parts[i].card.scrollIntoView({ block: "center", behavior: calm() ? "auto" : "smooth" });
  }

  track(i, k) {
    return this.parts[i].list.rows[k].track.getBoundingClientRect();
  }
}

// A state as a line of HTML: label, bar, percentage. The query above the panels uses it, too.
function stateRow(i, k, state) {
  const made = {
    bar: element("i", { class: "bar" }),
    likelihood: element("i", { class: "likelihood" }),
    ghost: element("i", { class: "ghost" }),
    whisker: element("i", { class: "whisker", hidden: true }),
    number: element("span", { class: "number" }),
  };
  made.track = element("span", { class: "track" }, made.bar, made.likelihood, made.ghost, made.whisker);
  made.control = element(
    "div",
    { class: "state", role: "button", tabindex: -1, "data-variable": i, "data-state": k, "aria-pressed": "false" },
    element("span", { class: "label", title: state }, state),
    made.track,
    made.number,
  );
  return made;
}

function updateRows(session, rows, i) {
  const posterior = session.answer.posteriors[i];
  const seen = knownState(session.evidence[i]);
  const soft = session.evidence[i] && seen < 0 ? shares(session.evidence[i]) : null;
  rows.forEach((row, k) => {
    row.bar.style.width = `${(100 * share01(posterior[k])).toFixed(2)}%`;
    row.likelihood.style.width = soft ? `${(100 * soft[k]).toFixed(2)}%` : "0";
    const ghost = session.ghost(i, k);
    row.ghost.hidden = Number.isNaN(ghost);
    row.ghost.style.left = `${(100 * share01(ghost)).toFixed(2)}%`;
    const interval = session.intervalOf(i, k);
    row.whisker.hidden = !interval;
    if (interval) {
      row.whisker.style.left = `${(100 * interval[0]).toFixed(2)}%`;
      row.whisker.style.width = `${(100 * (interval[1] - interval[0])).toFixed(2)}%`;
    }
    setAttribute(row.track, "title", interval ? `${percent(interval[0])} to ${percent(interval[1])}` : "");
    setText(row.number, percent(posterior[k]));
    setAttribute(row.control, "aria-pressed", seen === k);
    setAttribute(row.control, "aria-label", session.spoken(i, k));
  });
}

"use strict";
// Why the answer is what it is: how much each finding changes the posterior of the query.

class WeightsPanel {
  constructor(session) {
    Object.assign(this, { session, id: "weights", label: "Why", query: null, state: 0, taken: null, odds: false });
    this.newest = latest(this);
  }

  make(host) {
    this.choice = element("div", { class: "line" });
    this.head = element("p", {});
    this.list = element("ol", { class: "tornado weights" });
    this.note = quiet("p");
    host.append(this.choice, this.head, this.list, this.note);
  }

  update() {
    const { engine, query, unexplained, aside } = this.session;
    this.choice.hidden = Boolean(this.session.model.variables[query].density);
    if (!this.choice.hidden) this.ask(query);
    if (unexplained) return this.empty(`${this.which()}${unexplained}`);
    if (!findingsIn(aside.evidence).length)
      return this.empty(
        `${this.which()}${aside.note}Nothing ${aside.note ? "else " : ""}is observed. Observe something to see how much it changes the answer.`,
      );
    const asked = together(engine.without(aside.evidence, query), this.session.posteriorAside);
    return this.newest(asked, ([without, posterior]) => this.show(without, posterior));
  }

  // The state that is explained: the one that somebody took, or the first one, which follows the findings.
  ask(query) {
    const { model } = this.session;
    if (query !== this.query) this.taken = null;
    const state = this.taken ?? this.session.firstState();
    if (query === this.query && state === this.state) return;
    Object.assign(this, { query, state });
    const states = stateChooser(model.variables[query], state, (own) => ((this.taken = own), this.update()));
    const units = [[0, "points"], [1, "log-odds"]];
    const unit = chooser("Unit", units, Number(this.odds), (odds) => ((this.odds = Boolean(odds)), this.update()));
    this.choice.replaceChildren(element("span", {}, `${model.variables[query].label}\u00a0=`), states, unit);
  }

  empty(text) {
    setText(this.head, text);
    setText(this.note, "");
    this.list.replaceChildren();
  }

  show({ none, each }, posterior) {
    const { model, query, aside } = this.session;
    const what = `P(${stateText(model.variables[query].label, model.variables[query].states[this.state])})`;
    const [now, before] = [posterior, none].map((own) => percent(own[this.state]));
    setText(this.head, `${this.which()}${aside.note}${what} is ${now}${this.why(posterior)}. Without any finding it would be ${before}.`);
    const lines = findingsIn(aside.evidence).map((i, k) => ({ i, rest: each[k], weight: this.weight(posterior, each[k]) }));
    const sizes = lines.map(({ weight }) => Math.abs(weight)).filter(Number.isFinite);
    const reach = Math.max(...sizes, 1e-9);
    lines.sort((a, b) => Math.abs(b.weight) - Math.abs(a.weight));
    this.list.replaceChildren(...lines.map((one) => this.line(one, reach)));
    setText(
      this.note,
      "How much each finding changes the answer, compared with all other findings but without this one. A bar to the " +
        "right raises the answer, one to the left lowers it. The changes need not add up: findings that tell the same " +
        "share their effect.",
    );
  }

  // Of two cases, the one that is explained.
  which() {
    return this.session.kept ? `Case ${this.session.live}: ` : "";
  }

  // Why this state and no other is explained, where nobody chose it.
  why(posterior) {
    return this.taken === null && this.state === largest(posterior) ? ", the most probable state" : "";
  }

  // By how much a finding raises the state.
  weight(posterior, rest) {
    if (this.odds) return change(logOdds(posterior, this.state), logOdds(rest, this.state));
    return posterior[this.state] - rest[this.state];
  }

  line({ i, rest, weight }, reach) {
    const { model, evidence } = this.session;
    const { label } = model.variables[i];
    const said = findingText(model.variables[i], evidence[i]);
    const known = knownState(evidence[i]) >= 0 || numbersIn(evidence[i]);
    const text = stateSet(evidence[i]) >= 0 ? `${label} ${said}` : known ? stateText(label, said) : `${label} likelihoods ${said}`;
    return element(
      "li",
      {},
      element("span", { class: "finding" }, link(this.session, i, text), quiet("span", `${percent(rest[this.state])} without it`)),
      signedTrack(weight / reach),
      element("span", { class: "number" }, this.odds ? signedNumber(weight) : signed(weight)),
    );
  }
}

// A difference of numbers that may both be infinite.
function change(now, before) {
  return now === before ? 0 : now - before;
}

// "+1.25", "−∞"
function signedNumber(x) {
  if (Number.isNaN(x)) return "–";
  const size = Math.abs(x) === Infinity ? "∞" : Math.abs(x).toFixed(2);
  return `${size === "0.00" ? "" : x > 0 ? "+" : "−"}${size}`;
}

// A bar from the middle, to the right for what is raised and to the left for what is lowered.
function signedTrack(part) {
  const width = 50 * Math.min(Math.abs(part) || 0, 1);
  const place = `left: ${(part < 0 ? 50 - width : 50).toFixed(2)}%; width: ${width.toFixed(2)}%`;
  const bar = element("i", { class: part < 0 ? "less" : "more", style: place });
  return element("span", { class: "track", "aria-hidden": "true" }, bar, element("i", { class: "middle" }));
}

"use strict";
// What the page knows at a moment: the evidence, its past, the query, and the answer of the engine.

const SAME = 0.005; // a difference of posteriors that nobody would see

class Session {
  constructor(model, engine) {
    Object.assign(this, { model, engine, query: model.query, answer: null, earlier: null, kept: null, last: null });
    this.intervals = null; // of the posteriors, once they are known
    this.first = null; // the answer without findings
    this.setting = false; // whether a click sets a variable, or observes it
    this.evidence = model.variables.map(() => null);
    this.past = [];
    this.future = [];
    this.listeners = [];
    this.asked = 0;
  }

  // `f(what)` with "answer" after every answer, "query" after the choice of another query.
  listen(f) {
    this.listeners.push(f);
  }

  tell(what) {
    this.listeners.forEach((f) => f(what));
  }

  // Evidence on one variable. While a bar is dragged (`settled` false), the steps between leave no trace.
  observe(i, likelihoods, settled = true) {
    if (!this.before) this.begin();
    this.evidence = this.evidence.map((old, k) => (k === i ? likelihoods : old));
    this.last = i;
    if (settled) this.settle();
    return this.ask();
  }

  // A change begins: what is known and shown now is what was before it.
  begin() {
    this.before = this.evidence;
    this.earlier = this.answer;
  }

  settle() {
    if (!this.before) return;
    this.past.push(this.before);
    this.future = [];
    this.before = null;
    this.tell("settled");
  }

  replace(evidence) {
    this.begin();
    this.evidence = evidence;
    this.last = null;
    this.settle();
    return this.ask();
  }

  // Observe a state, or set it; `number` is what was typed for an interval.
  know(i, state, set = this.setting, number = null) {
    const problem = set ? whyNotSet(this.model, i) : null;
    if (problem) return this.tell({ problem });
    const found = set ? { do: state } : observed(this.model.variables[i].states.length, state);
    return this.observe(i, withNumber(found, number));
  }

  // The same, but clear it, if that is done already.
  toggle(i, state, set = this.setting) {
    const again = knownState(this.evidence[i]) === state && stateSet(this.evidence[i]) >= 0 === set;
    return again ? this.observe(i, null) : this.know(i, state, set);
  }

  // Whether a click sets a variable from now on.
  use(setting) {
    this.setting = setting;
    this.tell("mode");
  }

  share(i, state, x, settled = true) {
    const count = this.model.variables[i].states.length;
    const made = x >= 1 ? observed(count, state) : withShare(this.evidence[i], count, state, Math.max(x, 0));
    return this.observe(i, made, settled);
  }

  clear() {
    return this.evidence.some((one) => one) ? this.replace(this.evidence.map(() => null)) : null;
  }

  undo() {
    return this.step(this.past, this.future);
  }

  redo() {
    return this.step(this.future, this.past);
  }

  step(from, to) {
    if (!from.length) return null;
    to.push(this.evidence);
    this.earlier = this.answer;
    this.evidence = from.pop();
    this.last = null;
    this.tell("settled");
    return this.ask();
  }

  choose(query) {
    this.query = query;
    this.tell("query");
  }

  // The engine in the page answers at once; of a server's answers, only the newest counts.
  ask() {
    const number = ++this.asked;
    const answer = this.engine.ask(this.evidence);
    if (!(answer instanceof Promise)) return this.take(answer);
    return answer.then(
      (found) => number === this.asked && this.take(found),
      (error) => number === this.asked && error.name !== "AbortError" && this.tell({ error }),
    );
  }

  take(answer) {
    this.first ??= answer;
    this.answer = answer;
    this.tell("answer");
  }

  // Why there is no answer; null if there is one.
  get unanswerable() {
    return this.answer.possible ? null : "The findings have probability 0.";
  }

  // Why panels about the states of the query have nothing to say; null if they do.
  get unexplained() {
    const { label, density } = this.model.variables[this.query];
    if (!density) return this.unanswerable;
    return `${label} is a number. This explains variables that have states: choose one as the query.`;
  }

  // Keep what is known as case A; changes from now on make case B. With null, there is one case again.
  keep(kept = this.asCase("A")) {
    this.kept = kept;
    this.tell("answer");
    this.tell("cases");
  }

  // Findings that were read, and the case beside them, if there is one.
  async restore({ evidence, kept }) {
    const answer = kept && (await this.engine.ask(kept.evidence));
    this.kept = kept && { ...kept, answer, past: [], future: [] };
    await this.replace(evidence);
    this.tell("cases");
    this.tell("restored");
  }

  // What is known now and its history, under a name.
  asCase(name) {
    const { evidence, answer, past, future } = this;
    return { name, evidence, answer, past: [...past], future: [...future] };
  }

  // The name of the case that clicks change, where two are compared.
  get live() {
    return this.kept?.name === "A" ? "B" : "A";
  }

  // The case that was kept becomes the one that clicks change, and the other way round.
  swap() {
    const { evidence, past, future } = this.kept;
    this.kept = this.asCase(this.live);
    Object.assign(this, { evidence, past, future, last: null });
    this.tell("settled");
    return this.ask();
  }

  // The state of the query that panels begin with: the one that the page names, or the most probable one.
  firstState(posterior = this.answer.posteriors[this.query]) {
    const named = this.query === this.model.query ? this.model.variables[this.query].names.indexOf(this.model.state) : -1;
    return named >= 0 ? named : largest(posterior.map((p) => p || 0));
  }

  // The evidence without a finding that fixes the query, with which nothing could be told, and a sentence about it.
  get aside() {
    const { evidence, query, model } = this;
    const state = knownState(evidence[query]);
    if (state < 0) return { evidence, note: "" };
    const { label, states } = model.variables[query];
    const how = stateSet(evidence[query]) >= 0 ? "is set" : "is a finding";
    const note = `${stateText(label, states[state])} ${how}. This is how things would be without it. `;
    return { evidence: evidence.map((finding, i) => (i === query ? null : finding)), note };
  }

  // The posterior of the query in that case; a promise where a server answers.
  get posteriorAside() {
    const { evidence, note } = this.aside;
    return note ? this.engine.posterior(evidence, this.query) : this.answer.posteriors[this.query];
  }

  // Where the posterior of a state was before the last change, or what was kept, if that can be told from what it is.
  ghost(i, state) {
    const answers = [this.kept?.answer ?? this.earlier, this.answer];
    const [before, now] = answers.map((answer) => answer?.posteriors[i][state] ?? NaN);
    return Math.abs(now - before) > SAME ? before : NaN;
  }

  // The same of a column of numbers: its distribution, if it looks different from the one now; null otherwise.
  ghostOf(i, j) {
    const expected = this.answer.expected[i]?.[j];
    if (numbersIn(this.evidence[i])?.[j] != null) return expected ?? null;
    const [before, now] = [this.kept?.answer ?? this.earlier, this.answer].map((answer) => answer?.numbers[i]?.[j]);
    if (!before?.possible || !now?.possible) return null;
    const apart = Math.abs(before.mean - now.mean) + Math.abs(before.sd - now.sd);
    return apart > 4 * SAME * now.sd ? before : null;
  }

  // The interval of a state; null if there is none, or nothing to see of it.
  intervalOf(i, state) {
    const interval = this.intervals?.[i]?.[state];
    return interval && interval[1] - interval[0] > SAME / 10 ? interval : null;
  }

  // How a state is read out.
  spoken(i, state) {
    const { label, states } = this.model.variables[i];
    const likelihoods = this.evidence[i];
    const seen = knownState(likelihoods);
    const finding = !likelihoods
      ? "not observed"
      : seen === state
        ? stateSet(likelihoods) >= 0 ? "set" : "observed"
        : seen >= 0
          ? "excluded"
          : `soft evidence, likelihood ${brief(shares(likelihoods)[state])}`;
    const interval = this.intervalOf(i, state);
    const sure = interval ? ` (from ${spokenPercent(interval[0])} to ${spokenPercent(interval[1])})` : "";
    return `${label}: ${states[state]}, ${spokenPercent(this.answer.posteriors[i][state])}${sure}, ${finding}`;
  }
}

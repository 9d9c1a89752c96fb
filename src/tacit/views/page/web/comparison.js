"use strict";
// Two cases side by side: the one that clicks change, and the one that was kept.

const FEW_COMPARED = 6; // variables beside the query, so that the findings of both cases are near
const MANY_COMPARED = 60;

class Comparison {
  constructor(session) {
    Object.assign(this, { session, all: false, steps: new StepsTable(session) });
  }

  // Above the findings: what goes on, and the ways out.
  makeTop() {
    this.change = button("", () => this.session.swap());
    const stop = button("Stop comparing", () => this.session.keep(null));
    this.top = element(
      "section",
      { class: "comparison", "aria-label": "Comparison", hidden: true },
      element("h3", {}, "Comparing two cases"),
      element("div", { class: "buttons" }, this.change, stop),
    );
    return this.top;
  }

  // The findings of both cases. `clearer(i)` is a button that clears one of the case that clicks change.
  makeFindings(clearer) {
    this.clearer = clearer;
    this.known = element("tbody", {});
    const heads = ["Finding", "Case A", "Case B"].map((text) => element("th", { scope: "col" }, text));
    const head = element("thead", {}, element("tr", {}, ...heads));
    this.findings = element("table", { class: "known", hidden: true }, head, this.known);
    return this.findings;
  }

  makeTable() {
    this.posteriors = element("tbody", {});
    this.more = button("", () => ((this.all = !this.all), this.showPosteriors(this.session.kept)), { class: "link" });
    this.note = quiet("p");
    const heads = comparedHeads("Probability", "Case A", "Case B", "Change");
    this.table = element("table", { class: "compared columns" }, heads, this.posteriors);
    this.result = element("div", { class: "comparison", hidden: true }, this.table, this.more, this.note, this.steps.make());
    return this.result;
  }

  update() {
    const { kept, evidence } = this.session;
    for (const part of [this.top, this.result]) part.hidden = !kept;
    const found = kept ? evidence.flatMap((own, i) => (own || kept.evidence[i] ? [i] : [])) : [];
    this.findings.hidden = !found.length;
    this.known.replaceChildren(...found.map((i) => this.finding(i)));
    this.steps.update();
    if (!kept) return;
    setText(this.change, `Switch to case ${kept.name}`);
    this.showPosteriors(kept);
  }

  finding(i) {
    const { kept, evidence, live, model } = this.session;
    const cell = (own, ...more) => {
      const text = own ? knownText(model.variables[i], own) : "–";
      return element("td", { class: own ? kindOf(own) : "quiet" }, element("div", {}, element("span", {}, text), ...more));
    };
    const [here, other] = [cell(evidence[i], ...(evidence[i] ? [this.clearer(i)] : [])), cell(kept.evidence[i])];
    const cells = live === "A" ? [here, other] : [other, here];
    const name = element("th", { scope: "row" }, link(this.session, i));
    return element("tr", { class: isApart(evidence[i], kept.evidence[i]) ? "apart" : "" }, name, ...cells);
  }

  showPosteriors({ name, answer: kept }) {
    const { answer, query, live, model } = this.session;
    const [a, b] = name === "A" ? [kept, answer] : [answer, kept];
    const changed = byDifference(model.variables, a, b).filter(([i]) => i !== query);
    const others = changed.filter(([i]) => !this.isObserved(i));
    const most = this.all ? MANY_COMPARED : FEW_COMPARED;
    const { density, states } = model.variables[query];
    const first = (density?.columns ?? states).map((_, k) => [query, k]);
    const lines = [...first, ...others.slice(0, most)].map(([i, k]) =>
      model.variables[i].density ? this.number(i, k, a, b) : this.posterior(i, k, a.posteriors[i][k], b.posteriors[i][k]),
    );
    this.posteriors.replaceChildren(...lines);
    const rest = Math.min(others.length, MANY_COMPARED) - FEW_COMPARED;
    this.more.hidden = rest <= 0;
    setText(this.more, this.all ? "Show fewer" : `Show ${rest} more that change${rest === 1 ? "s" : ""} less`);
    const what =
      "Changes are in percentage points: first the query, then the other variables, each by its state that changes " +
      `most. The thin lines on bars are case ${name}.`;
    const same = `Both cases are the same so far. Click states: that changes case ${live}, and case ${name} stays as it is.`;
    setText(this.note, changed.length ? what : same);
  }

  // Whether one of the findings says it all.
  isObserved(i) {
    const { kept, evidence } = this.session;
    const whole = (own) => knownState(own) >= 0 || (numbersIn(own)?.every((x) => x !== null) ?? false);
    return whole(evidence[i]) || whole(kept.evidence[i]);
  }

  // The mean of a column, or what was observed.
  number(i, j, a, b) {
    const { density, label } = this.session.model.variables[i];
    const { kept, evidence } = this.session;
    const [first, second] = this.session.live === "A" ? [evidence, kept.evidence] : [kept.evidence, evidence];
    const [before, after] = [[a, first], [b, second]].map(([answer, own]) => answer.numbers[i][j]?.mean ?? numbersIn(own[i])?.[j] ?? NaN);
    const sd = (a.numbers[i][j] ?? b.numbers[i][j])?.sd || Math.abs(before);
    const column = density.columns.length > 1 ? ` of ${density.columns[j]}` : "";
    const name = element("th", { scope: "row" }, link(this.session, i, label), ` mean${column}`);
    const cells = [inSteps(before, sd), inSteps(after, sd), signedIn(after - before, sd)];
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  }

  posterior(i, k, a, b) {
    const { states } = this.session.model.variables[i];
    const name = element("th", { scope: "row" }, link(this.session, i), stateText("", states[k]));
    const cells = [percent(a), percent(b), signed(b - a)];
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  }
}

function comparedHeads(first, ...others) {
  const heads = others.map((text) => element("th", { scope: "col", class: "number" }, text));
  return element("thead", {}, element("tr", {}, element("th", { scope: "col" }, first), ...heads));
}

// A difference of probabilities in percentage points: "+12.3".
function signed(difference) {
  if (Number.isNaN(difference)) return "–";
  const sign = difference > 0.0005 ? "+" : difference < -0.0005 ? "−" : "";
  return `${sign}${Math.abs(100 * difference).toFixed(1)}`;
}

// A finding in few words.
function findingText({ states, density }, finding) {
  const numbers = numbersIn(finding);
  if (numbers) return density.columns.flatMap((name, j) => numberText(density, name, numbers[j])).join(", ");
  const state = knownState(finding);
  if (state < 0) return shares(finding).map((x) => brief(x, 2)).join(", ");
  const number = typedNumbers.get(finding);
  const text = number ? `${number} (${states[state]})` : states[state];
  return stateSet(finding) >= 0 ? `set to ${text}` : text;
}

// "78.2", or where a variable has several columns: "x 1.5"; nothing of one that is not known.
function numberText({ columns }, name, x) {
  if (x === null) return [];
  return [columns.length > 1 ? `${name} ${plainNumber(x)}` : plainNumber(x)];
}

// The variables whose posteriors differ to be seen, the most different first, each with its state that differs most.
function byDifference(variables, one, other) {
  const found = variables.map(({ density }, i) => {
    const apart = density ? meansApart(one, other, i) : one.posteriors[i].map((p, k) => Math.abs(p - other.posteriors[i][k]) || 0);
    return [i, largest(apart), Math.max(...apart)];
  });
  return found.filter(([, , most]) => most > SAME / 10).sort((a, b) => b[2] - a[2]);
}

// How far the means of a variable's columns are apart, in standard deviations: as far as one, they count as a certain change.
function meansApart(one, other, i) {
  return one.numbers[i].map((own, j) => {
    const theirs = other.numbers[i][j];
    return own && theirs ? Math.min(Math.abs(own.mean - theirs.mean) / Math.max(own.sd, theirs.sd), 1) || 0 : 0;
  });
}

"use strict";
// Two sets of findings side by side: those that were kept, and those of now.

const MANY_COMPARED = 30;

class Comparison {
  constructor(session) {
    this.session = session;
  }

  make() {
    this.findings = element("tbody", {});
    this.posteriors = element("tbody", {});
    this.more = quiet("p");
    const swapping = { title: "Keep the findings of now, and go back to those that were kept" };
    this.section = element(
      "section",
      { class: "comparison", "aria-label": "Comparison", hidden: true },
      element("h3", {}, "Kept and now"),
      element("table", { class: "compared" }, comparedHeads("Finding", "Kept", "Now"), this.findings),
      element("table", { class: "compared" }, comparedHeads("Posterior", "Kept", "Now", "±"), this.posteriors),
      this.more,
      element(
        "div",
        { class: "buttons" },
        button("Swap", () => this.session.swap(), swapping),
        button("Stop comparing", () => this.session.keep(null)),
      ),
    );
    return this.section;
  }

  update() {
    const { kept, evidence, answer, query } = this.session;
    this.section.hidden = !kept;
    if (!kept) return;
    const either = evidence.flatMap((finding, i) => (finding || kept.evidence[i] ? [i] : []));
    this.findings.replaceChildren(...either.map((i) => this.finding(i, kept.evidence[i], evidence[i])));
    const others = byDifference(kept.answer.posteriors, answer.posteriors).filter(([i]) => i !== query);
    const shown = [...answer.posteriors[query].map((_, k) => [query, k]), ...others.slice(0, MANY_COMPARED)];
    const posteriors = ({ posteriors }, i, k) => posteriors[i][k];
    this.posteriors.replaceChildren(
      ...shown.map(([i, k]) => this.posterior(i, k, posteriors(kept.answer, i, k), posteriors(answer, i, k))),
    );
    const rest = others.length > MANY_COMPARED ? ` ${others.length - MANY_COMPARED} more differ less.` : "";
    setText(
      this.more,
      `The query, then each variable that differs, by its state that differs most.${rest} ` +
        "Thin lines on bars are at the values that were kept.",
    );
  }

  finding(i, kept, now) {
    const { states } = this.session.model.variables[i];
    return this.row(i, "", findingText(states, kept), findingText(states, now));
  }

  posterior(i, k, kept, now) {
    return this.row(i, ` = ${this.session.model.variables[i].states[k]}`, percent(kept), percent(now), signed(now - kept));
  }

  row(i, text, ...cells) {
    const name = element("th", { scope: "row" }, link(this.session, i), text);
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
function findingText(states, finding) {
  if (!finding) return "–";
  const state = knownState(finding);
  if (state < 0) return shares(finding).map((x) => brief(x, 2)).join(", ");
  return stateSet(finding) >= 0 ? `set to ${states[state]}` : states[state];
}

// The variables whose posteriors differ to be seen, the most different first, each with its state that differs most.
function byDifference(kept, now) {
  const found = kept.map((before, i) => {
    const apart = before.map((p, k) => Math.abs(p - now[i][k]) || 0);
    return [i, largest(apart), Math.max(...apart)];
  });
  return found.filter(([, , most]) => most > SAME / 10).sort((a, b) => b[2] - a[2]);
}

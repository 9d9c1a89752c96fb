"use strict";
// Two sets of findings side by side: those that were kept, and those of now.

const MANY_COMPARED = 30;

class Comparison {
  constructor(session) {
    this.session = session;
  }

  make() {
    const heads = (...texts) => element("thead", {}, element("tr", {}, ...texts.map(([text, kind]) => element("th", { scope: "col", class: kind }, text))));
    const [kept, now] = [["Kept", "number"], ["Now", "number"]];
    this.findings = element("tbody", {});
    this.posteriors = element("tbody", {});
    this.more = quiet("p");
    this.section = element(
      "section",
      { class: "comparison", "aria-label": "Comparison", hidden: true },
      element("h3", {}, "Kept and now"),
      element("table", { class: "compared" }, heads(["Finding", ""], kept, now), this.findings),
      element("table", { class: "compared" }, heads(["Posterior", ""], kept, now, ["±", "number"]), this.posteriors),
      this.more,
      element(
        "div",
        { class: "buttons" },
        button("Swap", () => this.session.swap(), { title: "Keep the findings of now, and go back to those that were kept" }),
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
    const rows = either.map((i) => this.row(i, "", findingText(this.session.model, i, kept.evidence[i]), findingText(this.session.model, i, evidence[i])));
    this.findings.replaceChildren(...(rows.length ? rows : [element("tr", {}, element("td", { colspan: 3 }, "Nothing is observed in either."))]));
    const others = byDifference(kept.answer.posteriors, answer.posteriors).filter(([i]) => i !== query);
    const shown = [...answer.posteriors[query].map((_, k) => [query, k]), ...others.slice(0, MANY_COMPARED)];
    this.posteriors.replaceChildren(...shown.map(([i, k]) => this.posterior(i, k, kept.answer.posteriors[i][k], answer.posteriors[i][k])));
    const rest = others.length > MANY_COMPARED ? ` ${others.length - MANY_COMPARED} more differ less.` : "";
    setText(this.more, `The query, then each variable that differs, by its state that differs most.${rest} Thin lines on bars are at the values that were kept.`);
  }

  posterior(i, k, kept, now) {
    const change = 100 * (now - kept);
    const text = Number.isNaN(change) ? "–" : `${change > 0.05 ? "+" : change < -0.05 ? "−" : ""}${Math.abs(change).toFixed(1)}`;
    return this.row(i, ` = ${this.session.model.variables[i].states[k]}`, percent(kept), percent(now), text);
  }

  row(i, text, ...cells) {
    const name = element("th", { scope: "row" }, link(this.session, i), text);
    return element("tr", {}, name, ...cells.map((cell) => element("td", { class: "number" }, cell)));
  }
}

// A finding in few words.
function findingText({ variables }, i, finding) {
  const { states } = variables[i];
  const state = knownState(finding);
  if (!finding) return "–";
  if (stateSet(finding) >= 0) return `set to ${states[state]}`;
  return state >= 0 ? states[state] : shares(finding).map((x) => brief(x, 2)).join(", ");
}

// The variables whose posteriors differ to be seen, the most different first, each with its state that differs most.
function byDifference(kept, now) {
  const found = kept.map((before, i) => {
    const apart = before.map((p, k) => Math.abs(p - now[i][k]) || 0);
    return [i, largest(apart), Math.max(...apart)];
  });
  return found.filter(([, , most]) => most > SAME / 10).sort((a, b) => b[2] - a[2]);
}

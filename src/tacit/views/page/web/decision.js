"use strict";
// The best action, by what outcomes are worth: it follows every finding.

// What is expected of actions. The program has a hidden variable that is the more probable good, the more all is worth.
class Decider {
  constructor({ variables, tables, programs, decision }) {
    Object.assign(this, { decision, hidden: variables.length });
    this.engine = new LocalEngine({
      variables: [...variables, ...decision.hidden],
      tables,
      tests: decision.tests,
      programs: { sum: programs.decision },
    });
  }

  // What is known before the decision: nothing that it changes, nor what was decided.
  before(evidence) {
    const { variable, late } = this.decision;
    return evidence.map((finding, i) => (i === variable || late.includes(i) ? null : finding));
  }

  // What each action is expected to be worth; NaN where the findings are impossible.
  expected(evidence) {
    const { variable, node, hidden, low, width } = this.decision;
    const known = [...this.before(evidence), ...hidden.map(() => null)];
    return this.engine.variables[variable].states.map((_, state) => {
      known[variable] = { do: state };
      const { known: masked, whole } = this.engine.begin(known);
      if (!(whole.mantissa > 0)) return NaN;
      masked[node] = [1, 0];
      const good = this.engine.other.forward(masked, this.engine.sum); // with the tables selected without it
      return low + width * (good.mantissa / whole.mantissa) * 2 ** (good.exponent - whole.exponent);
    });
  }
}

class DecisionBox {
  constructor(session) {
    const { model } = session;
    this.session = session;
    this.host = document.getElementById("decision");
    this.host.hidden = !model.decision;
    if (!model.decision) return;
    this.decider = new Decider(model);
    this.variable = model.variables[model.decision.variable];
    this.rows = this.variable.states.map((state) => this.row(state));
    this.said = quiet("p");
    this.host.append(
      element("h2", {}, "Best action: ", link(session, model.decision.variable)),
      element("div", {}, ...this.variable.order.map((k) => this.rows[k].node)),
      this.said,
    );
  }

  row(state) {
    const bar = element("i", { class: "bar" });
    const value = element("span", { class: "number" });
    const mark = element("span", { class: "mark", "aria-hidden": "true" }, "✓");
    const track = element("span", { class: "track", "aria-hidden": "true" }, bar);
    return { bar, value, node: element("div", { class: "action" }, mark, element("span", { class: "label" }, state), track, value) };
  }

  update() {
    if (!this.decider) return;
    const { evidence } = this.session;
    const { low, width, variable } = this.session.model.decision;
    const expected = this.decider.expected(evidence);
    const possible = !expected.some(Number.isNaN);
    const best = possible ? largest(expected) : -1;
    this.rows.forEach(({ bar, value, node }, k) => {
      const share = possible ? 2 * ((expected[k] - low) / width - 0.25) : 0; // between the worst and the best outcome
      bar.style.width = `${(100 * share01(share)).toFixed(1)}%`;
      setText(value, possible ? brief(expected[k], 4) : "");
      node.classList.toggle("best", k === best);
    });
    setText(this.said, possible ? this.words(expected, best, stateOf(evidence[variable])) : "The findings contradict each other.");
  }

  words(expected, best, chosen) {
    const { states } = this.variable;
    const second = largest(expected.map((x, k) => (k === best ? -Infinity : x)));
    const better = `${states[best]} is worth ${brief(expected[best] - expected[second])} more than ${states[second]}`;
    const more = chosen !== second ? `, and ${brief(expected[best] - expected[chosen])} more than ${states[chosen]}` : "";
    const loss = chosen >= 0 && chosen !== best ? `${more}, which was chosen` : "";
    const { late } = this.session.model.decision;
    const left = late.filter((i) => this.session.evidence[i]).map((i) => this.session.model.variables[i].label);
    const later = left.length ? ` What is below the decision is not known yet: ${left.join(", ")}.` : "";
    return `${better}${loss}.${later}`;
  }
}

// The state that a variable is set to or observed in; -1 without any.
function stateOf(finding) {
  return isKnown(finding) ? (stateSet(finding) >= 0 ? stateSet(finding) : finding.findIndex((x) => x > 0)) : -1;
}

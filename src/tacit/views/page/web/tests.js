"use strict";
// All tests of all testing nodes, with their gauges.

const MANY_TESTS = 64;

class TestsPanel {
  constructor(session) {
    Object.assign(this, { session, id: "tests", label: "Tests", light: true, before: null });
  }

  make(host) {
    const what =
      "A testing node compares the probability of each state of its parents, P*, given the evidence that it sees, " +
      "with a threshold. Where the test holds, the row comes from the first table (plus), otherwise from the " +
      "second (minus). Where there are more tables, the row comes from table i if i of the tests hold.";
    host.append(quiet("p", what));
    this.host = host;
    this.nodes = new Map();
  }

  update() {
    const { answer } = this.session;
    const found = testsByNode(answer, this.before);
    for (const [node, { section, count }] of this.nodes) {
      section.classList.toggle("idle", !found.has(node));
      if (!found.has(node)) setText(count, "set, so its tests do not count");
    }
    for (const [node, tests] of found) {
      if (!this.nodes.has(node)) this.nodes.set(node, this.node(node, tests));
      this.show(this.nodes.get(node), node, tests);
    }
    this.before = answer;
  }

  node(node, { gamma, rows }) {
    const count = element("span", { class: "count" });
    const slope = gamma === null ? "" : `slope ${brief(gamma)}`;
    const gauges = rows.slice(0, MANY_TESTS).map((row) => this.gauge(node, row));
    const more = rows.length > MANY_TESTS ? [quiet("p", `… and ${rows.length - MANY_TESTS} more`)] : [];
    const head = element("h3", {}, link(this.session, node), count, element("small", {}, slope));
    const section = element("div", { class: "tests" }, head, ...gauges.map(({ line }) => line), ...more);
    this.host.append(section);
    return { section, count, gauges };
  }

  gauge(node, row) {
    const fill = element("i", { class: "gauge-fill" });
    const tick = element("i", { class: "gauge-tick", style: `left: ${100 * share01(row.threshold)}%` });
    const verdict = element("span", { class: "verdict" });
    const label = stateNames(this.session.model, node, row.parents);
    const line = element(
      "div",
      { class: "gauge" },
      element("span", { class: "label", title: label }, label),
      element("span", { class: "gauge-track", "aria-hidden": "true" }, fill, tick),
      verdict,
    );
    return { line, fill, verdict };
  }

  show({ count, gauges }, node, { gamma, rows, holding, flipped }) {
    setText(count, countOfTests(holding, rows.length));
    gauges.forEach(({ line, fill, verdict }, k) => {
      const { posterior, threshold, operator, weight, table } = rows[k];
      const held = weight >= 0.5;
      fill.style.width = `${100 * share01(posterior)}%`;
      const sign = comparison(operator, held);
      const much = gamma === null ? (held ? "holds" : "does not hold") : `${percent(weight)} ${table === null ? "plus" : `table ≥ ${table}`}`;
      setText(
        verdict,
        Number.isNaN(posterior) ? "impossible" : `${posterior.toFixed(3)} ${sign} ${brief(threshold)}, ${much}`,
      );
      line.classList.toggle("holds", held);
      if (flipped[k]) flash(line);
    });
  }
}

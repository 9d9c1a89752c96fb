"use strict";
// The CPT of the query as it is in the network: its tables, and the tests of a testing node.

const MANY_ROWS = 150;
const MANY_ENTRIES = 1200;

class TablePanel {
  constructor(session) {
    Object.assign(this, { session, id: "table", label: "Table", light: true, query: null, rows: [], chosen: [] });
  }

  make(host) {
    this.head = element("h3", {});
    this.size = quiet("p");
    this.cut = element("p", {}, "The variable is set, so this table does not count now.");
    this.choices = element("div", { class: "choices" });
    this.body = element("div", {});
    host.append(this.head, this.size, this.cut, this.choices, this.body);
  }

  update() {
    const { query, model, evidence } = this.session;
    if (query !== this.query) this.show(query, model.variables[query]);
    this.cut.hidden = stateSet(evidence[query]) < 0;
    for (const { node, parents, weight } of this.rows) {
      const against = this.excluded(parents);
      const used = weight === null || weight(this.session.answer);
      node.classList.toggle("quiet", against || !used);
    }
  }

  // Whether the findings rule out these states of the parents.
  excluded(states) {
    const { model, evidence } = this.session;
    const { parents } = model.variables[this.query];
    return parents.some((p, k) => evidence[p] && !(shares(evidence[p], this.cards[k])[states[k]] > 0));
  }

  show(query, variable) {
    this.query = query;
    this.rows = [];
    this.heads = variable.density ? densityHeads(variable.density) : variable.states;
    const { model } = this.session;
    const names = variable.parents.map((p) => model.variables[p].label);
    const what = `(${variable.label}${names.length ? ` | ${names.join(", ")}` : ""})`;
    setText(this.head, variable.density ? `p${what}, ${DENSITY_NAMES[variable.density.kind]}` : `P${what}`);
    this.cards = variable.parents.map((p) => model.variables[p].states.length);
    const count = this.cards.reduce((product, card) => product * card, 1);
    const entries = count * this.heads.length;
    const known = variable.density ? densityTable(variable) : tablesOf(model, query);
    const small = count <= MANY_ROWS && entries <= MANY_ENTRIES;
    const more = small ? "" : " That is too long to be shown in full: choose states of the parents to see their row.";
    const size = tableSize(count, this.heads.length, known.tables.length);
    setText(this.size, size + (known.tables.length ? more : " They are not on this page."));
    this.choices.replaceChildren(...(small || !known.tables.length ? [] : this.chooseRow(variable)));
    this.shown = small ? Array.from({ length: count }, (_, u) => u) : null;
    this.known = known;
    this.fill();
  }

  // Of a large table, the row for some states of the parents.
  chooseRow(variable) {
    const { model, answer } = this.session;
    this.chosen = variable.parents.map((p) => largest(answer.posteriors[p].map((x) => x || 0)));
    return variable.parents.map((p, k) => {
      const parent = model.variables[p];
      const select = stateChooser(parent, this.chosen[k], (state) => {
        this.chosen[k] = state;
        this.rows = [];
        this.fill();
        this.update();
      });
      return element("div", { class: "line" }, element("span", {}, `${parent.label}\u00a0=`), select);
    });
  }

  fill() {
    const { tables, thresholds } = this.known;
    const rows = this.shown ?? [this.chosen.reduce((place, state, k) => place * this.cards[k] + state, 0)];
    const tests = this.session.answer.tests.find(({ node }) => node === this.query);
    const parts = thresholds && tests ? [this.tests(rows, tests)] : [];
    tables.forEach((table, t) => parts.push(...this.table(table, t, rows)));
    this.body.replaceChildren(...parts);
  }

  tests(rows, { gamma, rows: all }) {
    const { tests } = this.session.model.variables[this.query];
    const lines = rows.flatMap((u) =>
      all.slice(u * tests, (u + 1) * tests).map(({ operator, threshold }) => {
        return [digits(u, this.cards), [`P* ${comparison(operator, true)} ${brief(threshold, 5)}`]];
      }),
    );
    const slope = gamma === null ? "" : `The tests are sigmoids of slope ${brief(gamma)}. `;
    const what =
      "The row comes from one of these tables, chosen by a test: P* is the probability of the parents' states, " +
      `given the evidence that the node sees. ${slope}Rows that are not used now are pale.`;
    return element("div", {}, quiet("p", what), this.grid("Tests", ["test holds if"], lines, null));
  }

  table({ values }, t, rows) {
    const states = this.heads;
    const count = this.known.tables.length;
    const lines = rows.map((u) => [digits(u, this.cards), values.slice(u * states.length, (u + 1) * states.length)]);
    const title = tableTitle(t, count);
    const used = count === 1 ? null : (u) => (answer) => tableInUse(answer, this.query, u, t, count);
    const grid = this.shown ? this.grid(title, states, lines, used, rows) : this.column(title, states, lines[0][1]);
    return count === 1 ? [grid] : [element("h4", {}, title), grid];
  }

  // A single row, from top to bottom: it may be long.
  column(label, states, numbers) {
    const head = (state) => element("th", { scope: "row" }, state);
    const lines = states.map((state, k) => element("tr", {}, head(state), numberCell(numbers[k])));
    return element("table", { class: "cpt", "aria-label": label }, element("tbody", {}, ...lines));
  }

  // A line for each of some states of the parents: the states, then the cells.
  grid(label, heads, lines, used, places = []) {
    const { model } = this.session;
    const parents = model.variables[this.query].parents.map((p) => model.variables[p]);
    const column = (text, kind) => element("th", { scope: "col", class: kind }, text);
    const above = [...parents.map(({ label: name }) => column(name, "")), ...heads.map((text) => column(text, "number"))];
    const body = element("tbody", {});
    lines.forEach(([states, cells], k) => {
      const given = parents.map((parent, j) => element("th", { scope: "row" }, parent.states[states[j]]));
      const line = element("tr", {}, ...given, ...cells.map(numberCell));
      body.append(line);
      this.rows.push({ node: line, parents: states, weight: used && used(places[k]) });
    });
    const table = element("table", { class: "cpt" }, element("thead", {}, element("tr", {}, ...above)), body);
    return element("div", { class: "wide-table", role: "region", tabindex: 0, "aria-label": label }, table);
  }
}

const DENSITY_NAMES = { gaussian: "normal", joint: "normal", "log-normal": "log-normal", poisson: "Poisson" };

// What the numbers of a density are called: of several columns, their means and covariances.
function densityHeads({ kind, columns }) {
  if (kind === "poisson") return ["rate"];
  if (kind === "log-normal") return ["mean of log", "sd of log"];
  if (kind === "gaussian") return ["mean", "sd"];
  const pairs = columns.flatMap((one, i) => columns.slice(i).map((other) => (one === other ? `var ${one}` : `cov ${one}, ${other}`)));
  return [...columns.map((name) => `mean ${name}`), ...pairs];
}

// The numbers of a density as those of a table: a row for each component.
function densityTable({ density, card }) {
  const { kind, columns, mean, sd, rate, cov } = density;
  const d = columns.length;
  const row = (c) => {
    if (kind === "poisson") return [rate[c]];
    if (kind !== "joint") return [mean[c], sd[c]];
    const pairs = columns.flatMap((_, i) => columns.slice(i).map((_own, j) => cov[(c * d + i) * d + i + j]));
    return [...mean.slice(c * d, (c + 1) * d), ...pairs];
  };
  const rows = Array.from({ length: card }, (_, c) => row(c));
  return { tables: [{ values: rows.flat().map((x) => brief(x, 4)) }], thresholds: false };
}

function numberCell(cell) {
  if (typeof cell === "string") return element("td", { class: "number" }, cell);
  const filled = `background-size: ${(100 * share01(cell)).toFixed(1)}% 100%`;
  return element("td", { class: "number filled", style: filled, title: String(cell) }, brief(cell, 4));
}

// The tables of a node, in the order of its tests, and whether it has thresholds.
function tablesOf(model, node) {
  const { table } = model.variables[node];
  if (table) return { tables: [{ values: table }], thresholds: false };
  const own = model.tables.filter((one) => one.node === node && /^(table|plus|minus|thresholds)/.test(one.part));
  const tables = own.filter(({ part }) => part !== "thresholds").sort((a, b) => tableRank(a.part) - tableRank(b.part));
  return { tables, thresholds: own.length > tables.length };
}

// "plus" before "minus"; "table 2" before "table 10".
function tableRank(part) {
  return { plus: 0, minus: 1, table: 0 }[part] ?? Number(part.split(" ")[1]);
}

function tableTitle(t, count) {
  if (count === 1) return "Table";
  if (count === 2) return t === 0 ? "Plus: where the test holds" : "Minus: where it does not";
  return t === 0 ? "Where no test holds" : `Where ${t} test${t === 1 ? " holds" : "s hold"}`;
}

// Whether a row comes from this table, or mostly does.
function tableInUse(answer, node, u, t, count) {
  const { rows } = answer.tests.find((test) => test.node === node) ?? { rows: [] };
  const holding = rows.slice(u * (count - 1), (u + 1) * (count - 1)).filter(({ weight }) => weight >= 0.5).length;
  return count === 2 ? (t === 0) === (holding === 1) : holding === t;
}

// "9 rows of 3 numbers."
function tableSize(rows, states, count) {
  const many = (n, word) => `${n.toLocaleString("en")} ${word}${n === 1 ? "" : "s"}`;
  const each = `${many(rows, "row")} of ${many(states, "number")}`;
  return count > 1 ? `${count} tables, each with ${each}.` : `${each}.`;
}

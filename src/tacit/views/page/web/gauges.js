"use strict";
// The tests of testing nodes: what each says, and whether it changed since the last answer.

function stateNames(model, node, row) {
  return model.variables[node].parents
    .map((p, k) => stateText(model.variables[p].label, model.variables[p].states[row[k]]))
    .join(", ");
}

// The tests in a box, in the order of the engine's rows; none where they are too many to be shown one by one.
function gaugeLabels(model, { testing, parents, tests }, most) {
  if (!testing) return [];
  let made = [[]];
  for (const p of parents) {
    const { label, states } = model.variables[p];
    made = made.flatMap((row) => states.map((state) => [...row, `${label}=${state}`]));
  }
  if (made.length * tests > most) return [];
  const labels = made.map((row) => row.join(", "));
  return tests === 1 ? labels : labels.flatMap((row) => Array.from({ length: tests }, (_, j) => `${row} (${j + 1})`));
}

// How a posterior compares with its threshold, where a test holds and where it does not.
function comparison(operator, held) {
  const [yes, no] = { ">=": ["≥", "<"], ">": [">", "≤"], "<=": ["≤", ">"], "<": ["<", "≥"] }[operator];
  return held ? yes : no;
}

// "P*(A = yes) = 0.42 ≥ 0.3: holds"
function testText(model, node, test, gamma) {
  const held = test.weight >= 0.5;
  const sign = comparison(test.operator, held);
  const verdict = gamma === null ? (held ? "holds" : "does not hold") : `holds to ${percent(test.weight)}`;
  const what = `P*(${stateNames(model, node, test.parents)})`;
  return `${what} = ${brief(test.posterior)} ${sign} ${brief(test.threshold)}: ${verdict}`;
}

// The tests of an answer by node, and which of them changed sides since `before`.
function testsByNode(answer, before) {
  const old = new Map((before?.tests ?? []).map((test) => [test.node, test.rows]));
  return new Map(
    answer.tests.map(({ node, gamma, rows }) => [
      node,
      {
        gamma,
        rows,
        holding: rows.filter(({ weight }) => weight >= 0.5).length,
        flipped: rows.map((row, k) => old.has(node) && old.get(node)[k].weight >= 0.5 !== row.weight >= 0.5),
      },
    ]),
  );
}

// "1 of 4 tests holds"
function countOfTests(holding, count) {
  return `${holding} of ${count} test${count === 1 ? "" : "s"} hold${holding === 1 ? "s" : ""}`;
}

function share01(x) {
  return Number.isNaN(x) ? 0 : Math.min(Math.max(x, 0), 1);
}

"use strict";
// What is known, as text that `reading.js` reads: in addresses, and as lines for people.

// "CVP=LOW&HR=0.2,0.5,0.3&do(BP)=LOW&query=CO": the network's own names, encoded for addresses. The query is there if it
// is not the one that the page opens with. Of two cases, each begins with its name, and the one that clicks change is the
// last: "A:CVP=LOW&B:CVP=HIGH&HR=LOW".
function toFragment({ model, evidence, query, kept, live }) {
  const parts = ({ name, set, text }) => `${set ? `do(${encoded(name)})` : encoded(name)}=${text(encoded, ",")}`;
  const list = (own) => pairs(model, own).map(parts);
  const named = (name, own) => `${name}:${list(own).join("&")}`;
  const cases = kept ? [named(kept.name, kept.evidence), named(live, evidence)] : list(evidence);
  const other = query !== model.query && !hasVariable(model, "query");
  return [...cases, ...(other ? [`query=${encoded(model.variables[query].name)}`] : [])].join("&");
}

// A line for each finding: "CVP = LOW", "do(BP) = LOW". Of two cases, each begins with a line of its own.
function toLines({ model, evidence, kept, live }) {
  const line = ({ name, set, text }) => `${set ? `do(${name})` : name} = ${text((one) => one, ", ")}`;
  const lines = (own) => pairs(model, own).map(line);
  if (!kept) return lines(evidence).join("\n");
  return [`Case ${kept.name}:`, ...lines(kept.evidence), `Case ${live}:`, ...lines(evidence)].join("\n");
}

function hasVariable(model, name) {
  return model.variables.some((one) => one.name === name || one.label === name);
}

function encoded(text) {
  return encodeURIComponent(text).replace(/['()*!~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

// Names of variables, and functions that write what is known: the number that was typed, a state, or likelihoods.
function pairs(model, evidence) {
  return findingsIn(evidence).flatMap((i) => {
    const finding = evidence[i];
    const { name, names, density } = model.variables[i];
    if (density) return numberPairs(density, numbersIn(finding));
    const state = knownState(finding);
    const one = typedNumbers.get(finding) ?? names[state];
    const text = (written, comma) => (state < 0 ? finding.map(rounded).join(comma) : written(one));
    return [{ name, set: stateSet(finding) >= 0, text }];
  });
}

// Of numbers, those that are known, each by the name of its column.
function numberPairs({ columns }, numbers) {
  const known = columns.map((name, j) => ({ name, x: numbers[j] })).filter(({ x }) => x !== null);
  return known.map(({ name, x }) => ({ name, set: false, text: () => String(x) }));
}

"use strict";
// Evidence on one variable is null, a likelihood for each state, or the state that it is set to; these functions make,
// read and write it.

function observed(count, state) {
  return Array.from({ length: count }, (_, k) => (k === state ? 1 : 0));
}

// The state that is observed for certain, or set, or -1.
function knownState(likelihoods) {
  if (!likelihoods) return -1;
  if (stateSet(likelihoods) >= 0) return stateSet(likelihoods);
  const positive = likelihoods.filter((x) => x > 0);
  return positive.length === 1 ? likelihoods.findIndex((x) => x > 0) : -1;
}

// What shows a variable looks different where it is observed, where it is set, and where there is soft evidence on it.
function markEvidence(node, likelihoods) {
  const seen = knownState(likelihoods);
  node.classList.toggle("observed", seen >= 0);
  node.classList.toggle("set", stateSet(likelihoods) >= 0);
  node.classList.toggle("soft", likelihoods !== null && seen < 0);
}

function rounded(x) {
  return Number(x.toPrecision(6));
}

// "CVP=LOW&HR=0.2,0.5,0.3&do(BP)=LOW&query=CO": the network's own names, encoded for addresses. The query is there if it
// is not the one that the page opens with.
function toFragment(model, evidence, query = model.query) {
  const parts = pairs(model, evidence).map(({ name, state, numbers, set }) => {
    return `${set ? `do(${encoded(name)})` : encoded(name)}=${state === null ? numbers.join(",") : encoded(state)}`;
  });
  if (query !== model.query && !hasVariable(model, "query")) parts.push(`query=${encoded(model.variables[query].name)}`);
  return parts.join("&");
}

function hasVariable(model, name) {
  return model.variables.some((one) => one.name === name || one.label === name);
}

// A line for each finding: "CVP = LOW", "do(BP) = LOW".
function toLines(model, evidence) {
  return pairs(model, evidence)
    .map(({ name, state, numbers, set }) => {
      return `${set ? `do(${name})` : name} = ${state === null ? numbers.join(", ") : state}`;
    })
    .join("\n");
}

function encoded(text) {
  return encodeURIComponent(text).replace(/['()*!~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
}

function pairs(model, evidence) {
  return evidence.flatMap((likelihoods, i) => {
    if (!likelihoods) return [];
    const state = knownState(likelihoods);
    const { name, names } = model.variables[i];
    const set = stateSet(likelihoods) >= 0;
    return [{ name, set, state: state < 0 ? null : names[state], numbers: state < 0 ? likelihoods.map(rounded) : [] }];
  });
}

// The other way: evidence, the query if it is named, and a sentence for each part that cannot be read. Takes fragments,
// links and lines.
function fromText(model, text) {
  const evidence = model.variables.map(() => null);
  const problems = [];
  let query = null;
  const isLines = /\n|\s=\s/.test(text.trim());
  const body = isLines ? text : text.trim().replace(/^[^#]*#/, "");
  for (const part of body.split(isLines ? /[\n;]/ : /&/)) {
    if (!part.trim()) continue;
    try {
      const asked = !isLines && !hasVariable(model, "query") && /^query=(.*)$/s.exec(part);
      if (asked) {
        query = named(model, decodeURIComponent(asked[1])).i;
        continue;
      }
      const [i, likelihoods] = finding(model, part, isLines);
      evidence[i] = likelihoods;
    } catch (error) {
      problems.push(error instanceof URIError ? `“${part}” is not encoded as an address.` : error.message);
    }
  }
  return { evidence, query, problems };
}

function finding(model, part, isLine) {
  const clean = (piece) => (isLine ? piece.trim() : decodeURIComponent(piece.replaceAll("+", "%20")));
  const cut = isLine ? lineCut(model, part) : part.indexOf("=");
  if (cut < 0) throw new Error(`“${part.trim()}” is not of the form NAME = STATE.`);
  const [left, value] = [clean(part.slice(0, cut)), part.slice(cut + 1)];
  const { i, name, set } = named(model, left);
  const { names, bins } = model.variables[i];
  const state = namedState(model.variables[i], clean(value));
  if (set) {
    const problem = whyNotSet(model, i);
    if (problem) throw new Error(problem);
    if (state < 0) throw new Error(`“${clean(value)}” is not a state of ${name} (${names.join(", ")}).`);
    return [i, { do: state }];
  }
  if (state >= 0) return [i, observed(names.length, state)];
  const first = Number(clean(value));
  if (!bins && names.length === 2 && clean(value).trim() !== "" && first >= 0 && first <= 1) return [i, [first, 1 - first]];
  const numbers = value.split(",").map((piece) => (clean(piece).trim() === "" ? NaN : Number(clean(piece))));
  const right = numbers.length === names.length && numbers.every((x) => Number.isFinite(x) && x >= 0);
  if (right && numbers.some((x) => x > 0)) return [i, numbers];
  throw new Error(
    `“${clean(value)}” is not a state of ${name} (${names.join(", ")}), nor ${names.length} likelihoods.`,
  );
}

// The state that a text names, by its own name or by a number inside an interval; -1 if there is none.
function namedState({ names, states, bins, ...variable }, text) {
  const state = alike(text, names, states);
  if (state >= 0 || !bins || !NUMBER.test(text.trim())) return state;
  try {
    return stateOfText(edgesOf({ bins }), text);
  } catch (error) {
    throw new Error(`${variable.name}: ${error.message}`);
  }
}

// The variable that is observed, or set: "do(NAME)", unless there is a variable of that very name.
function named(model, text) {
  const find = (name) => alike(name, model.variables.map((one) => one.name), model.variables.map((one) => one.label));
  const inner = /^do\((.*)\)$/s.exec(text);
  if (find(text) >= 0) return { i: find(text), name: text, set: false };
  const name = inner ? inner[1] : text;
  if (find(name) < 0) throw new Error(`This network has no variable “${name}”.`);
  return { i: find(name), name, set: inner !== null };
}

// Why the page cannot set a variable; null if it can.
function whyNotSet(model, i) {
  return model.unsettable ?? model.variables[i].unsettable;
}

// Where a text is among names or what is shown for them: exactly, or else in any case, if that is clear.
function alike(text, names, shown) {
  for (const same of [(x) => x, (x) => x.toLowerCase()]) {
    for (const list of [names, shown]) {
      const found = list.flatMap((one, k) => (same(one) === same(text) ? [k] : []));
      if (found.length === 1) return found[0];
    }
  }
  return -1;
}

// Names may contain "=": the longest one that the line begins with decides.
function lineCut(model, line) {
  const text = line.trimStart();
  const names = model.variables
    .flatMap(({ name, label }) => [name, label, `do(${name})`, `do(${label})`])
    .filter((name) => /^\s*=/.test(text.startsWith(name) ? text.slice(name.length) : ""));
  const longest = names.reduce((best, name) => (name.length > best.length ? name : best), "");
  return longest ? line.indexOf("=", line.length - text.length + longest.length) : line.indexOf("=");
}

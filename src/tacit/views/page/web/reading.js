"use strict";
// Reads findings: fragments of addresses, lines, Python dictionaries, JSON objects, and CSV with a header and a row.
//
// All return { evidence, kept, query, problems, notes }: `kept` is the case that clicks do not change, where there are
// two, `query` is null if none is named, there is a problem for each part that cannot be read, and a note on what is read
// in part.

const SIGN = /^\s*[=:]\s*|^\s*\t\s*/; // between a name and a state
const SPACE = /^\s+/; // the same, in lines without a sign
const LOOSE_SIGN = /\s*[=:\t]\s*/; // after a name that no variable has
const QUOTED = String.raw`"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'`;
const ENTRY = new RegExp(String.raw`\s*(?:${QUOTED}|([^\s"':,{}\[\]]+))\s*:\s*(?:${QUOTED}|\[([^\]]*)\]|([^\s"',{}\[\]]+))\s*(?:,|$)`, "y");

// What somebody has pasted.
function fromText(model, text) {
  const clean = text.trim();
  const isFragment = /[#&%]/.test(clean) && !/[\n\t{]|\s[=:]|[=:]\s/.test(clean);
  if (isFragment) return fromFragment(model, clean.replace(/^[^#]*#/, ""));
  const rows = csvRows(model, clean);
  if (rows) return fromRows(model, rows);
  const reader = new Reader(model);
  const object = /^(?:\w+\s*=\s*)?\[?\{(.*)\}\]?[;,]?$/s.exec(clean);
  if (object) reader.readObject(object[1]);
  else clean.split(/[\n;]/).forEach((line) => reader.readLine(line));
  return reader.result();
}

// The part of an address after "#".
function fromFragment(model, text) {
  const reader = new Reader(model);
  for (const part of text.split("&")) {
    const begun = /^([AB]):(.*)$/s.exec(part);
    if (begun) reader.beginCase(begun[1]);
    reader.readPart(begun ? begun[2] : part);
  }
  return reader.result();
}

class Reader {
  constructor(model) {
    Object.assign(this, { model, query: null, problems: [], notes: [], cases: new Map(), name: null });
    this.evidence = this.nothing();
  }

  nothing() {
    return this.model.variables.map(() => null);
  }

  // The findings that follow are those of a case.
  beginCase(name) {
    this.evidence = this.nothing();
    this.cases.delete(name);
    this.cases.set(name, this.evidence);
    this.name = name;
  }

  // The case that was named last is the one that clicks change.
  result() {
    const others = [...this.cases].filter(([name]) => name !== this.name);
    const kept = others.length ? { name: others[0][0], evidence: others[0][1] } : null;
    return { evidence: this.evidence, kept, query: this.query, problems: this.problems, notes: this.notes };
  }

  attempt(f) {
    try {
      f();
    } catch (error) {
      this.problems.push(error.message);
    }
  }

  take(name, value) {
    const { i, ...what } = named(this.model, name);
    const { density } = this.model.variables[i];
    this.evidence[i] = density ? numberFinding(this.model, { i, ...what }, value, this.evidence[i]) : findingOf(this.model, { i, ...what }, value);
  }

  readPart(part) {
    if (!part.trim()) return;
    const plain = part.replaceAll("+", "%20");
    const cut = plain.indexOf("=");
    this.attempt(() => {
      if (cut < 0) throw new Error(notUnderstood(part));
      const [name, value] = [plain.slice(0, cut), plain.slice(cut + 1)].map((piece) => decoded(piece, part));
      if (name === "query" && !hasVariable(this.model, "query")) this.query = named(this.model, value).i;
      else this.take(name, value);
    });
  }

  // One finding, or several with commas between them; states and names may have commas, too.
  readLine(line) {
    const clean = line.trim().replace(/,$/, "");
    if (!clean) return;
    const heading = /^case ([AB]):?$/i.exec(clean);
    if (heading && !hasVariable(this.model, clean)) return this.beginCase(heading[1].toUpperCase());
    const several = pieces(clean);
    try {
      this.take(...cutLine(this.model, clean));
    } catch (error) {
      if (several.length < 2) this.problems.push(error.message);
      else several.forEach((piece) => this.attempt(() => this.take(...cutLine(this.model, piece))));
    }
    return undefined;
  }

  // The inside of a dictionary: 'CVP': 'HIGH', "HR": [0.2, 0.5, 0.3], "Age": 70
  readObject(text) {
    ENTRY.lastIndex = 0;
    while (ENTRY.lastIndex < text.trimEnd().length) {
      const rest = text.slice(ENTRY.lastIndex).trim();
      const found = ENTRY.exec(text);
      if (!found) return this.problems.push(notUnderstood(rest));
      const [, double, single, bare, doubleValue, singleValue, list, bareValue] = found;
      const name = double ?? single ?? bare;
      const value = doubleValue ?? singleValue ?? list ?? bareValue;
      this.attempt(() => this.take(unescaped(name), unescaped(value)));
    }
    return undefined;
  }
}

function notUnderstood(text) {
  return `“${text.trim()}” is not of the form NAME = STATE.`;
}

function decoded(piece, part) {
  try {
    return decodeURIComponent(piece);
  } catch {
    throw new Error(`“${part}” is not encoded as an address.`);
  }
}

function unescaped(text) {
  const code = (_, hex) => String.fromCharCode(parseInt(hex, 16));
  return text.replace(/\\u([0-9a-f]{4})/gi, code).replace(/\\(.)/g, "$1");
}

function unquoted(text) {
  return /^(["']).*\1$/s.test(text) ? text.slice(1, -1) : text;
}

// "CVP = LOW, HR = 0.2, 0.5, 0.3" in its findings: where there is no sign between commas, a finding goes on.
function pieces(line) {
  const made = [];
  for (const piece of line.split(","))
    if (made.length && !/[=:\t]/.test(piece)) made[made.length - 1] += `,${piece}`;
    else made.push(piece);
  return made;
}

// A header and a row, between commas, semicolons or tabs; null if the text is something else.
function csvRows(model, text) {
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  if (lines.length < 2) return null;
  const names = (cell) => alikeVariable(model, cell) >= 0;
  for (const mark of [",", "\t", ";"]) {
    const rows = lines.map((line) => cells(line, mark));
    const pairs = rows[0].length > 1 && (mark === "\t" || /[=:]/.test(text)); // may be names and states
    const header = pairs ? rows[0].slice(1) : rows[0];
    if (rows.every(({ length }) => length === rows[0].length) && header.some(names)) return rows;
  }
  return null;
}

function cells(line, mark) {
  const found = line.match(new RegExp(`("(?:[^"]|"")*"|[^${mark}]*)(?:${mark}|$)`, "g")) ?? [];
  const own = found.slice(0, line.endsWith(mark) ? undefined : -1).map((cell) => cell.replace(new RegExp(`${mark}$`), "").trim());
  return own.map((cell) => unquoted(cell).replaceAll('""', '"'));
}

// Empty cells say nothing.
function fromRows(model, [header, row, ...more]) {
  const reader = new Reader(model);
  header.forEach((name, k) => row[k] && reader.attempt(() => reader.take(name, row[k])));
  if (more.length) reader.notes.push(`Only the first of ${more.length + 1} rows is used.`);
  return reader.result();
}

// What a text says about a column of numbers, beside what is known of the others.
function numberFinding(model, { i, j, name, set }, right, before) {
  const { density } = model.variables[i];
  if (set) throw new Error(whyNotSet(model, i));
  if (j < 0) throw new Error(`“${name}” has several numbers: name one of ${density.columns.join(", ")}.`);
  try {
    return withColumn(before, density, j, numberOfText(density, unquoted(right.trim())));
  } catch (error) {
    throw new Error(`${name}: ${error.message}`);
  }
}

// What a text says about the states of a variable.
function findingOf(model, { i, name, set }, right) {
  const { names, bins } = model.variables[i];
  const value = right.trim();
  const { state, number } = namedState(model.variables[i], value);
  if (set) {
    const problem = whyNotSet(model, i);
    if (problem) throw new Error(problem);
    if (state < 0) throw new Error(`“${value}” is not a state of ${name} (${names.join(", ")}).`);
    return withNumber({ do: state }, number);
  }
  if (state >= 0) return withNumber(observed(names.length, state), number);
  const first = Number(value);
  if (!bins && names.length === 2 && value !== "" && first >= 0 && first <= 1) return [first, 1 - first];
  const numbers = value.split(",").map((piece) => (piece.trim() === "" ? NaN : Number(piece)));
  const fits = numbers.length === names.length && numbers.every((x) => Number.isFinite(x) && x >= 0);
  if (fits && numbers.some((x) => x > 0)) return numbers;
  throw new Error(`“${value}” is not a state of ${name} (${names.join(", ")}), nor ${names.length} likelihoods.`);
}

// The state that a text names, by its own name or by a number inside an interval; -1 if there is none.
function namedState({ names, states, bins, ...variable }, text) {
  const exact = alike(text, names, states);
  const state = exact >= 0 ? exact : alike(unquoted(text), names, states);
  if (state >= 0 || !bins || !NUMBER.test(text)) return { state, number: null };
  try {
    return { state: stateOfText(edgesOf({ bins }), text), number: text };
  } catch (error) {
    throw new Error(`${variable.name}: ${error.message}`);
  }
}

// What may be observed: variables, and the columns of those that have several numbers. `j` is the number of the column.
function observables({ variables }) {
  return variables.flatMap(({ name, label, density }, i) => {
    const columns = density?.columns ?? [];
    const whole = { i, j: columns.length === 1 ? 0 : -1, name, label };
    return columns.length > 1 ? [whole, ...columns.map((own, j) => ({ i, j, name: own, label: own }))] : [whole];
  });
}

// The variable that is observed, or set: "do(NAME)", unless there is a variable of that very name.
function named(model, text) {
  const all = observables(model);
  const find = (own) => all[alikeVariable(model, own)];
  for (const own of [text, text.trim(), unquoted(text.trim())]) {
    const plain = find(own);
    if (plain) return { i: plain.i, j: plain.j, name: own, set: false };
    const inner = /^do\((.*)\)$/s.exec(own);
    const set = inner && find(inner[1]);
    if (set) return { i: set.i, j: set.j, name: inner[1], set: true };
  }
  const name = unquoted(text.trim());
  throw new Error(`This network has no variable “${/^do\((.*)\)$/s.exec(name)?.[1] ?? name}”.`);
}

function alikeVariable(model, text) {
  const all = observables(model);
  return alike(text, all.map((one) => one.name), all.map((one) => one.label));
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

// The name and the state of a line. Names may contain "=": the longest one that the line begins with decides.
function cutLine(model, line) {
  const text = line.trim();
  const between = /[=:\t]/.test(text) ? SIGN : SPACE;
  const starts = (name) => text.toLowerCase().startsWith(name.toLowerCase()) && between.test(text.slice(name.length));
  const longest = observables(model)
    .flatMap(({ name, label }) => [name, label, `do(${name})`, `do(${label})`])
    .filter((name) => name && starts(name))
    .reduce((best, name) => (name.length > best.length ? name : best), "");
  if (longest) return [text.slice(0, longest.length), text.slice(longest.length).replace(between, "")];
  const sign = LOOSE_SIGN.exec(text);
  if (!sign) throw new Error(notUnderstood(line));
  return [text.slice(0, sign.index), text.slice(sign.index + sign[0].length)];
}

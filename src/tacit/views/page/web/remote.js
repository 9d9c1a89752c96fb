"use strict";
// The query, evaluated by `tacit serve`: the methods of the engine in the page, each a request. See /openapi.json.
//
// New evidence makes older questions pointless: they are cancelled, which the server notices.

const PAUSE = 40; // milliseconds that a question waits for a newer one, while another is on its way
const TRIES = 60; // of a server that is busy, or still compiles
const AT_ONCE = 2000; // rows in a request
const MOST_ENTRIES = 1000; // of a sensitivity
const SPLITS = 32; // pieces into which an interval with a break is cut, to find the break
const ROUNDS = 3;
const DENSE = /^(table( \d+)?|plus|minus|thresholds)$/;

function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, 1000 * seconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), reject(signal.reason)), { once: true });
  });
}

const number = (x) => x ?? NaN; // JSON has no NaN

class RemoteEngine {
  constructor(model) {
    this.local = false;
    this.variables = model.variables;
    this.places = new Map(model.variables.map(({ name }, i) => [name, i]));
    this.asking = new Map(); // the newest question of each kind
    this.labels = null; // the states of all variables, as the server writes them
  }

  // One question of a kind at a time; an older one is cancelled.
  begin(kind) {
    const busy = this.asking.has(kind);
    this.asking.get(kind)?.abort();
    const control = new AbortController();
    this.asking.set(kind, control);
    return { kind, control, signal: control.signal, wait: busy ? PAUSE / 1000 : 0 };
  }

  end({ kind, control }) {
    if (this.asking.get(kind) === control) this.asking.delete(kind);
  }

  // Runs a question of a kind, which sends requests by `send(path, fields)`.
  async question(kind, run) {
    const own = this.begin(kind);
    try {
      if (own.wait) await pause(own.wait, own.signal);
      return await run((path, fields) => this.send(path, fields, own.signal));
    } catch (error) {
      if (own.signal.aborted) return new Promise(() => {}); // nobody waits for it
      throw error;
    } finally {
      this.end(own);
    }
  }

  async send(path, fields, signal) {
    for (let tries = 1; ; tries++) {
      const response = await fetch(`/api/${path}`, {
        method: fields ? "POST" : "GET",
        headers: fields ? { "Content-Type": "application/json" } : {},
        body: fields && JSON.stringify(fields),
        signal,
      });
      if (response.status !== 503 || tries === TRIES) {
        const found = await response.json();
        if (!response.ok) throw new Error(found.error);
        return found;
      }
      await pause(Number(response.headers.get("Retry-After")) || 1, signal);
    }
  }

  row(evidence) {
    const known = (finding) => finding && stateSet(finding) < 0;
    const states = this.variables.map(({ name }, i) => [name, evidence[i]]).filter(([, own]) => known(own) && !numbersIn(own));
    const numbers = this.variables.flatMap(({ density }, i) =>
      (numbersIn(evidence[i]) ?? []).map((x, j) => [density.columns[j], x]).filter(([, x]) => x !== null),
    );
    return Object.fromEntries([...states, ...numbers]);
  }

  // The fields of a request: rows of evidence in which the same variables are set.
  async given(send, rows) {
    const set = this.variables.map(({ name }, i) => [name, i, stateSet(rows[0][i])]).filter(([, , state]) => state >= 0);
    if (set.length) await this.learnLabels(send);
    const states = set.map(([name, i, state]) => [name, this.labels[i][state]]);
    return { rows: rows.map((evidence) => this.row(evidence)), do: Object.fromEntries(states) };
  }

  async learnLabels(send) {
    this.labels ??= (await send("model")).variables.map(({ states }) => states);
  }

  // Whatever was asked about older evidence is pointless now.
  ask(evidence) {
    for (const [kind, control] of this.asking) if (kind !== "ask") control.abort();
    return this.question("ask", async (send) => {
      const dense = this.variables.some(({ density }) => density) ? { weights: true } : {};
      const found = await send("marginals", { ...(await this.given(send, [evidence])), tests: true, ...dense });
      const possible = found.log_evidence[0] !== null;
      const posteriors = this.variables.map(({ name, density }) => (density ? found.weights : found.posteriors)[name][0].map(number));
      return {
        possible,
        logEvidence: found.log_evidence[0] ?? -Infinity,
        posteriors,
        numbers: this.variables.map((own, i) => own.density && distributions(own, evidence[i], posteriors[i])),
        expected: this.variables.map((own, i) => (possible && numbersIn(evidence[i]) ? otherwise(own, evidence[i], posteriors[i]) : null)),
        tests: Object.entries(found.tests).map(([name, how]) => this.tested(name, how)),
      };
    });
  }

  // How one testing node was decided: a row for every test of every state of its parents.
  tested(name, { gamma, posterior, weight, thresholds, operators }) {
    const node = this.places.get(name);
    const { parents, tests } = this.variables[node];
    const cards = parents.map((p) => this.variables[p].states.length);
    const [posteriors, weights, limits, signs] = [posterior[0], weight[0], thresholds, operators].map((own) => [own].flat(Infinity));
    const rows = posteriors.flatMap((p, u) => {
      const common = { parents: digits(u, cards), posterior: number(p), operator: signs[u] };
      if (tests === 1) return [{ ...common, threshold: limits[u], weight: weights[u], table: null }];
      const own = limits.slice(u * tests, (u + 1) * tests);
      if (signs[u].startsWith("<")) own.reverse(); // in the order in which tests come to hold
      const held = weights.slice(u * (tests + 1), (u + 1) * (tests + 1)); // the weights of all tables
      const after = (j) => sumOf(held.slice(j + 1));
      return own.map((threshold, j) => ({ ...common, threshold, weight: after(j), table: j + 1 }));
    });
    return { node, gamma, rows };
  }

  posterior(evidence, query) {
    return this.question("posterior", async (send) => (await this.seen(send, [evidence], query))[0].posterior);
  }

  without(evidence, query) {
    return this.question("without", async (send) => {
      const [none, ...each] = (await this.seen(send, leftOut(evidence), query)).map(({ posterior }) => posterior);
      return { none, each };
    });
  }

  steps(first, second, query, state) {
    return this.question("steps", async (send) => {
      const at = async (rows) => (await this.seen(send, rows, query)).map(({ posterior }) => posterior);
      const order = inTurn(first, second, state, await at(oneByOne(first, second)));
      const found = await at(order.map((_, k) => taken(first, second, order.slice(0, k + 1))));
      return order.map((i, k) => ({ i, posterior: found[k] }));
    });
  }

  mpe(evidence) {
    return this.question("mpe", async (send) => {
      const found = await send("mpe", await this.given(send, [evidence]));
      if (found.log_probability[0] === null) return { possible: false, states: this.variables.map(() => null), logProbability: -Infinity };
      await this.learnLabels(send);
      const states = this.variables.map(({ name }, i) => (this.variables[i].density ? null : this.labels[i].indexOf(found.states[name][0])));
      return { possible: true, states, logProbability: found.log_probability[0] };
    });
  }

  information(evidence, query) {
    return this.question("information", async (send) => {
      const asked = { query: this.variables[query].name, ...(await this.given(send, [evidence])) };
      const { information } = await send("information", asked);
      return this.variables.map(({ name }, i) => (i === query || stateSet(evidence[i]) >= 0 ? NaN : number(information[name]?.[0])));
    });
  }

  sensitivity(evidence, query, state) {
    return this.question("sensitivity", async (send) => {
      await this.learnLabels(send);
      const asked = { query: this.variables[query].name, state: this.labels[query][state], top: MOST_ENTRIES };
      const { entries } = await send("sensitivity", { ...asked, ...(await this.given(send, [evidence])) });
      const changing = entries[0].filter(({ part, value, derivative }) => DENSE.test(part) && derivative && value > 0 && value < 1);
      return byEffect(changing.map((entry) => this.entry(entry)));
    });
  }

  entry({ node, part, place, value, derivative, growth }) {
    const whole = part === "thresholds";
    const [row, state] = whole ? [place, null] : [place.slice(0, -1), place.at(-1)];
    return { node: this.places.get(node), part, row, state, value, derivative, growth };
  }

  curve(evidence, query, input, steps = 100) {
    return this.question("chart", async (send) => {
      const at = (x) => this.seen(send, x.map((u) => along(this.variables, evidence, [[input, u]])), query);
      const x = grid(steps);
      const points = (await at(x)).map((own, k) => ({ x: x[k], ...own }));
      return { x, posteriors: points.map(({ posterior }) => posterior), breaks: await this.breaks(points, at) };
    });
  }

  // Where tests flip between points, found by cutting all intervals with different ends at the same time.
  async breaks(points, at) {
    let intervals = different(points);
    for (let round = 0; round < ROUNDS && intervals.length; round++) {
      const inner = intervals.map(([{ x: a }, { x: b }]) => Array.from({ length: SPLITS - 1 }, (_, k) => a + ((b - a) * (k + 1)) / SPLITS));
      const found = await at(inner.flat());
      intervals = intervals.flatMap(([left, right], i) => {
        const between = inner[i].map((x, k) => ({ x, ...found[i * (SPLITS - 1) + k] }));
        return different([left, ...between, right]);
      });
    }
    return intervals.map(([, right]) => right.x);
  }

  surface(evidence, query, first, second, steps = 40) {
    return this.question("chart", async (send) => {
      const [x, y] = [grid(steps), grid(steps)];
      const places = y.flatMap((v) => x.map((u) => along(this.variables, evidence, [[first, u], [second, v]])));
      const found = await this.seen(send, places, query);
      const lines = y.map((_, k) => found.slice(k * x.length, (k + 1) * x.length));
      const number = numbering();
      const pieces = lines.map((line) => line.map(({ pieces: piece }) => number(piece)));
      const values = this.variables[query].states.map((_, state) => lines.map((line) => line.map(({ posterior }) => posterior[state])));
      return { x, y, values, pieces };
    });
  }

  // The posterior of one variable for many rows, and which tests hold.
  async seen(send, rows, query) {
    const made = [];
    while (made.length < rows.length) {
      const asked = { query: this.variables[query].name, tests: true, ...(await this.given(send, alikeRows(rows, made.length))) };
      const { posterior, tests } = await send("posterior", asked);
      const hard = Object.values(tests).filter(({ gamma }) => gamma === null);
      posterior.forEach((own, k) => {
        const pieces = hard.map(({ weight }) => [weight[k]].flat(Infinity).join("")).join("");
        made.push({ posterior: own.map(number), pieces });
      });
    }
    return made;
  }
}

// How the numbers of a variable would be distributed, given the other findings alone: what its own say is divided out
// again. Nothing where floats have lost some of it.
function otherwise(variable, finding, weights) {
  const { array, powers } = densityLikelihoods(variable.density, numbersIn(finding));
  if (isLost({ array, powers }) || array.includes(0)) return null;
  return distributions(variable, null, normalised(weights.map((w, c) => w / (array[c] * 2 ** powers[c]))));
}

// The rows from a place on in which the same variables are set, as many as a request may have.
function alikeRows(rows, start) {
  const set = (row) => row.map(stateSet).join();
  const some = rows.slice(start, start + AT_ONCE);
  const end = some.findIndex((row) => set(row) !== set(some[0]));
  return end < 0 ? some : some.slice(0, end);
}

// Neighbours in which different tests hold.
function different(points) {
  return points.slice(1).map((right, k) => [points[k], right]).filter(([left, right]) => left.pieces !== right.pieces);
}

function remoteEngine(model) {
  return new RemoteEngine(model);
}

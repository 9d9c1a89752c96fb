"use strict";
// Evidence on one variable is null, a likelihood for each state, or the state that it is set to; these functions make
// it and say what it is.

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

// The number that somebody typed for an interval variable: the finding itself only has the interval.
const typedNumbers = new WeakMap();

function withNumber(finding, text) {
  if (text) typedNumbers.set(finding, text);
  return finding;
}

// Why the page cannot set a variable; null if it can.
function whyNotSet(model, i) {
  return model.unsettable ?? model.variables[i].unsettable;
}

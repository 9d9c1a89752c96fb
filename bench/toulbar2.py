"""The most probable explanation by toulbar2, an exact solver for cost function networks: a peer to compare with.

Costs are -log p. Evidence is sliced into the tables, so that toulbar2 sees the free variables only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tacit.query.network import Network

# Digits behind the point in toulbar2's integer costs. It truncates each cost, so with 1,000 tables the assignment it
# calls best is within 1e-9 of the best; its largest cost, 5e17, leaves room for a total of 500,000 nats.
DIGITS = 12
NARY = 10  # toulbar2's default for `preprocessNary`: the largest arity of cost functions it takes apart beforehand


class Explanation(NamedTuple):
    """A most probable assignment, what it comes to by the tables of the network, and the time of the search."""

    states: dict[str, object]
    log_probability: float
    seconds: float


class NotProvedError(Exception):
    """The time was up before toulbar2 had found the best assignment and proved that there is none better."""


class Toulbar2:
    """Explanations of hard evidence, row by row.

    `limit` is in seconds per row. `nary=0` leaves cost functions of more than three variables as they are, which makes
    small networks faster and some large ones slower.
    """

    def __init__(self, net: Network, limit: int = 60, nary: int = NARY) -> None:
        self.net, self.limit, self.nary = net, limit, nary
        with np.errstate(divide="ignore"):
            self.costs = {n: -np.log(net.table(n)) for n in net}

    def solve(self, row: Mapping[str, object]) -> Explanation:
        """The best assignment given the states of some variables, which must be possible.

        Only `Solve` is timed, not building the problem.
        """
        known = {n: self.net.states(n).index(state) for n, state in row.items()}
        free = [n for n in self.net if n not in known]
        problem = self._problem(known, free)
        start = time.perf_counter()
        found = problem.Solve(timeLimit=self.limit)
        seconds = time.perf_counter() - start
        if problem.Option.limited:
            raise NotProvedError(f"no proof of an optimum within {self.limit} s")
        assert found is not None, "the evidence has probability 0"
        codes = known | dict(zip(free, found[0], strict=True))
        states = {n: self.net.states(n)[codes[n]] for n in self.net}
        return Explanation(states, log_probability(self.net, states), seconds)

    def _problem(self, known: Mapping[str, int], free: list[str]) -> Any:
        import pytoulbar2

        functions = [self._sliced(n, known) for n in self.net]
        # Without a bound on the optimum, toulbar2 1.4 adds up infinite costs: wrong optima, crashes.
        bound = 1.0 + sum(float(costs[np.isfinite(costs)].max(initial=0.0)) for _, costs in functions)
        problem = pytoulbar2.CFN(ubinit=bound, resolution=DIGITS)
        problem.Option.preprocessNary = self.nary  # options outlive the problem they were set for
        for n in free:
            problem.AddVariable(n, [f"s{i}" for i in range(len(self.net.states(n)))])
        for scope, costs in functions:
            problem.AddFunction(scope, costs.ravel().tolist() if scope else float(costs))
        return problem

    def _sliced(self, name: str, known: Mapping[str, int]) -> tuple[list[str], np.ndarray]:
        """A table without its known variables: the others, in order, and the costs."""
        family = (*self.net.parents(name), name)
        costs = self.costs[name][tuple(known.get(n, slice(None)) for n in family)]
        return [n for n in family if n not in known], np.asarray(costs)


def log_probability(net: Network, states: Mapping[str, object]) -> float:
    """log p(states), every variable given, from the tables alone."""
    code = {n: net.states(n).index(states[n]) for n in net}
    entries = [float(net.table(n)[tuple(code[m] for m in (*net.parents(n), n))]) for n in net]
    return math.fsum(map(math.log, entries)) if all(entries) else -math.inf

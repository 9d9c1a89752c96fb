"""Best order score search: each column is moved to its best place in an order, again and again (BOSS).

In a given order, the parents of a column are chosen among those before it: the best one is added while that helps, and
then the worst one is dropped while that helps (grow and shrink). A graph that agrees with its order has no cycle, so a
single move may change many edges at once, which is what single changes of edges cannot do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.family_scores import FamilyScores, Parents

EQUAL = 1e-9  # a relative difference of scores that is rounding


class OrderSearch:
    """A search for the order whose graph has the best score."""

    def __init__(self, scores: FamilyScores, limits: Constraints, say: Callable[[int, float], None]) -> None:
        self.scores, self.limits, self._say = scores, limits, say
        self._chosen: dict[tuple[int, int], tuple[float, Parents]] = {}
        self._allowed = [sum(1 << int(p) for p in np.flatnonzero(column)) for column in limits.allowed.T]
        self.history: list[float] = []

    def run(self, start: Sequence[int], max_sweeps: int = 100) -> Mask:
        """The graph of the best order on the way from a start."""
        order = list(start)
        score = self._score(order)
        for _ in range(max_sweeps):
            before = score
            for column in sorted(order):
                order, score = self._moved(order, column, score)
                self.history.append(score)
                self._say(len(self.history), score)
            if score <= before + EQUAL * abs(before):
                break
        return self.graph(order)

    def graph(self, order: Sequence[int]) -> Mask:
        """The graph of an order."""
        edges = np.zeros_like(self.limits.required)
        seen = 0
        for column in order:
            edges[list(self._best_parents(column, seen)[1]), column] = True
            seen |= 1 << column
        return edges

    def _score(self, order: Sequence[int]) -> float:
        seen, total = 0, []
        for column in order:
            total.append(self._best_parents(column, seen)[0])
            seen |= 1 << column
        return math.fsum(total)

    def _moved(self, order: list[int], column: int, score: float) -> tuple[list[int], float]:
        """The order with one column at its best place; it stays where nothing is better."""
        others = [other for other in order if other != column]
        before, after, here = [], [], []
        seen, mark = 0, 1 << column
        for other in others:
            here.append(self._best_parents(column, seen)[0])
            before.append(self._best_parents(other, seen)[0])
            after.append(self._best_parents(other, seen | mark)[0])
            seen |= 1 << other
        here.append(self._best_parents(column, seen)[0])
        totals = _sums(before) + np.array(here) + _sums(after[::-1])[::-1]
        for place in self._impossible_places(others, column):
            totals[place] = -np.inf
        best = int(np.argmax(totals >= totals.max() - EQUAL * abs(score)))
        if totals[best] <= score + EQUAL * abs(score):
            return order, score
        return [*others[:best], column, *others[best:]], float(totals[best])

    def _impossible_places(self, others: Sequence[int], column: int) -> list[int]:
        """The places before a required parent of the column, or behind a required child."""
        parents = [i for i, other in enumerate(others) if self.limits.required[other, column]]
        children = [i for i, other in enumerate(others) if self.limits.required[column, other]]
        first, last = max(parents, default=-1) + 1, min(children, default=len(others))
        return [place for place in range(len(others) + 1) if not first <= place <= last]

    def _best_parents(self, child: int, seen: int) -> tuple[float, Parents]:
        """The parents among the columns seen, a set of bits, and the score of the family."""
        seen &= self._allowed[child]
        key = child, seen
        if (chosen := self._chosen.get(key)) is None:
            chosen = self._chosen[key] = self._grown_and_shrunk(child, seen)
        return chosen

    def _grown_and_shrunk(self, child: int, seen: int) -> tuple[float, Parents]:
        required = [int(p) for p in np.flatnonzero(self.limits.required[:, child])]
        parents: Parents = tuple(required)
        score = self.scores.family(child, parents)
        may = np.array([bool(seen >> i & 1) for i in range(len(self.limits.allowed))])
        while True:
            gains = np.where(may, self.scores.extended(child, parents), -np.inf)
            best = int(np.argmax(gains))
            if gains[best] <= score + EQUAL * abs(score):
                break
            score, parents = float(gains[best]), tuple(sorted((*parents, best)))
        while len(parents) > len(required):
            fewer = [tuple(p for p in parents if p != drop) for drop in parents if drop not in required]
            dropped = [self.scores.family(child, rest) for rest in fewer]
            best = int(np.argmax(dropped))
            if dropped[best] <= score:
                break
            score, parents = dropped[best], fewer[best]
        return score, parents


def _sums(values: Sequence[float]) -> Floats:
    """The sums of the first 0, 1, ..., all values."""
    return np.concatenate([[0.0], np.cumsum(values)])


def topological_order(edges: Mask) -> list[int]:
    """The columns, parents first; of those that may come next, the first."""
    waiting, order = edges.sum(axis=0), []
    left = list(range(len(edges)))
    while left:
        column = next(c for c in left if not waiting[c])
        order.append(column)
        left.remove(column)
        waiting = waiting - edges[column]
    return order

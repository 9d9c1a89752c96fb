"""Search over orders of the columns: each column is moved to its best place, again and again, and after kicks.

In a given order, the parents of a column are chosen among those before it. A graph that agrees with its order has no
cycle, so a single move may change many edges at once, which is what single changes of edges cannot do. Which sets of
parents are worth considering is found out first: in some orders near the present one, and in some at random, the best
parent is added while that helps, and then the worst one is dropped while that helps (grow and shrink, as in BOSS).
Among the sets met so far, moves are then tried by the thousand without counting a row (as in MINOBS).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.scoring.family_scores import FamilyScores, Parents
from tacit.learn.discovering.searches.parent_sets import ParentSets

EQUAL = 1e-9  # a relative difference of scores that is rounding
KICKS, KICKED_COLUMNS = 200, 4  # of a run; columns that a kick moves to other places
KICKS_PER_CALL = 10  # of a kernel that cannot be interrupted
Order = NDArray[np.int64]


class OrderSearch:
    """A search for the order whose graph has the best score."""

    def __init__(self, scores: FamilyScores, limits: Constraints, seed: int = 0) -> None:
        self.scores, self.limits = scores, limits
        self._sets = ParentSets(scores, limits)
        self._rng = np.random.default_rng(seed)

    def run(self, start: Sequence[int], sampled: int, say: Callable[[int, float], None]) -> Mask:
        """The graph of the best order on the way from a start; `sampled` others are looked at for sets of parents."""
        order = np.array(start, dtype=np.int64)
        for number in range(sampled):
            self._explore(self._legal(self._shaken(order) if number % 2 else self._rng.permutation(len(order))))
        self._sets.refresh()
        self._settle(order, say)
        return self._sets.graph(order.tolist())

    def _settle(self, order: Order, say: Callable[[int, float], None]) -> None:
        """Move columns to better places, and on after kicks."""
        from tacit.learn.discovering.searches.order_kernels import kicked

        sets = self._sets
        least = EQUAL * abs(float(sets.scores[sets.begins[:-1]].sum()))
        for number in range(0, KICKS, KICKS_PER_CALL):
            kicks = self._rng.integers(len(order), size=(KICKS_PER_CALL, KICKED_COLUMNS, 2))
            say(number, kicked(order, kicks, sets.sets, sets.scores, sets.begins, least))

    def _shaken(self, order: Order) -> Order:
        """An order in which one column in eight has another place."""
        columns = order.tolist()
        for _ in range(max(2, len(columns) // 8)):
            start, stop = self._rng.integers(len(columns), size=2).tolist()
            columns.insert(stop, columns.pop(start))
        return np.array(columns)

    def _legal(self, order: Order) -> list[int]:
        """The order, with required parents moved before their children."""
        return [int(order[i]) for i in topological_order(self.limits.required[np.ix_(order, order)])]

    def _explore(self, order: Sequence[int]) -> None:
        """Score the sets of parents on the way to good ones, for all columns in an order."""
        seen = np.zeros(len(order), dtype=bool)
        for child in order:
            self._grow_and_shrink(child, seen & self.limits.allowed[:, child])
            seen[child] = True

    def _grow_and_shrink(self, child: int, may: NDArray[np.bool_]) -> None:
        required = [int(p) for p in np.flatnonzero(self.limits.required[:, child])]
        parents: Parents = tuple(required)
        score = self.scores.family(child, parents)
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

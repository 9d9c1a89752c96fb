"""The PC search (Spirtes and Glymour; stable, as in Colombo and Maathuis, 2014): edges that no test removes.

G2, the statistic of a test, is twice what a further parent adds to the log-likelihood of a family. So the tests take
the counts that scores take, one pass for all neighbours of a column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
from scipy.special import chdtrc

from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask, is_cyclic
from tacit.learn.discovering.equivalence import implied
from tacit.learn.discovering.scoring.family_scores import FamilyScores, Parents

SIGNIFICANCE = 0.01  # p-values above it count as independent


class PCSearch:
    """Tests of independence, and the graph that they leave; `gains` has log-likelihoods without a penalty."""

    def __init__(
        self, gains: FamilyScores, limits: Constraints, max_parents: int, say: Callable[[int, float], None]
    ) -> None:
        self._gains, self._limits, self._max_parents, self._say = gains, limits, max_parents, say
        self._cards = gains.table.cards
        size = len(self._cards)
        self.p_values: Floats = np.zeros((size, size))  # the largest of each pair, given the columns in `separators`
        self.separators: dict[tuple[int, int], Parents] = {}

    def run(self) -> Mask:
        """A graph of the equivalence class that the tests leave, as far as they agree with each other."""
        graph = self._known_directions(self._skeleton())
        adjacent = graph | graph.T
        for parents, child in self._colliders(adjacent):
            self._direct(graph, parents, child)
        while (more := implied(graph, adjacent, graph & ~graph.T) & graph & graph.T).any():
            parent, child = np.argwhere(more)[0].tolist()
            if not self._direct(graph, (parent,), child):
                break
        return self._limited(_extension(graph))

    # the skeleton -------------------------------------------------------------------------------------------

    def _skeleton(self) -> Mask:
        """The pairs that no test separates, with more and more columns given."""
        adjacent = self._limits.allowed | self._limits.allowed.T
        level = 0
        while (adjacent.sum(axis=0) > level).any() and level <= self._max_parents:
            for column, given in self._conditions(adjacent, level):
                self._test(column, given, adjacent)
            for a, b in self.separators:
                adjacent[a, b] = adjacent[b, a] = False
            self._say(level, float(adjacent.sum()) / 2)
            level += 1
        return adjacent

    def _conditions(self, adjacent: Mask, level: int) -> Iterator[tuple[int, Parents]]:
        """All columns with so many of their neighbours, the order of which does not matter."""
        for column in range(len(adjacent)):
            near = np.flatnonzero(adjacent[column]).tolist()
            for given in itertools.combinations(near, level) if len(near) > level else ():
                yield column, given

    def _test(self, column: int, given: Parents, adjacent: Mask) -> None:
        """Test a column against its other neighbours."""
        required = self._limits.required | self._limits.required.T
        may = adjacent[column] & ~required[column]
        may[list(given)] = False
        others = self._gains.small_enough(column, given, np.flatnonzero(may))
        if not len(others):
            return
        gains = self._gains.of_candidates(column, given, others) - self._alone(column, given)
        for other, g2 in zip(others.tolist(), np.maximum(0, 2 * gains).tolist(), strict=True):
            pair = min(column, other), max(column, other)
            threshold = max(SIGNIFICANCE, self.p_values[pair])
            most = (self._cards[column] - 1.0) * (self._cards[other] - 1) * np.prod(self._cards[list(given)])
            if chdtrc(most, g2) > threshold and (p := chdtrc(self._freedom(column, other, given), g2)) > threshold:
                self.p_values[pair], self.separators[pair] = p, given

    def _alone(self, column: int, given: Parents) -> float:
        """The log-likelihood of a column with some parents."""
        if not given:
            return self._gains.family(column, ())
        return float(self._gains.of_candidates(column, given[:-1], np.array(given[-1:]))[0])

    def _freedom(self, column: int, other: int, given: Parents) -> float:
        """The degrees of freedom of a test, without those of states that do not occur beside what is given."""
        table = self._gains.table
        _, places = np.unique(self._gains.places(given), return_inverse=True)
        freedom = np.ones(places.max() + 1)
        for one in (column, other):
            card = int(table.cards[one])
            counts = np.bincount(places * card + table.codes[one], minlength=len(freedom) * card)
            freedom *= (counts.reshape(-1, card) > 0).sum(axis=1) - 1
        return max(1.0, float(freedom.sum()))  # where nothing varies, G2 is 0, and the p-value 1

    def _known_directions(self, adjacent: Mask) -> Mask:
        """Edges [parent, child], in both directions where the constraints leave them open.

        Where the only directions that are allowed make a cycle, its weakest edge is left out.
        """
        limits = self._limits
        both = adjacent & limits.allowed & limits.allowed.T
        known = limits.required.copy()
        single = [
            (-self._gain(a, b), a, b) for a, b in np.argwhere(adjacent & limits.allowed & ~both & ~known).tolist()
        ]
        for _, parent, child in sorted(single):
            known[parent, child] = True
            known[parent, child] = not is_cyclic(known)
        return both | known

    def _gain(self, parent: int, child: int) -> float:
        """What a single parent adds to the log-likelihood of a column."""
        return self._alone(child, (parent,)) - self._alone(child, ())

    # directions ---------------------------------------------------------------------------------------------

    def _colliders(self, adjacent: Mask) -> list[tuple[tuple[int, int], int]]:
        """Two columns that are independent, but not given what both are adjacent to: the clearest ones first."""
        found = [
            (pair, child)
            for pair, given in self.separators.items()
            for child in np.flatnonzero(adjacent[pair[0]] & adjacent[pair[1]]).tolist()
            if child not in given
        ]
        return sorted(found, key=lambda item: (-self.p_values[item[0]], item))

    def _direct(self, graph: Mask, parents: tuple[int, ...], child: int) -> bool:
        """Direct edges to a child, unless one of them has the other direction, or this makes a cycle."""
        trial = graph.copy()
        for parent in parents:
            if not graph[parent, child]:
                return False
            trial[child, parent] = False
        if is_cyclic(trial & ~trial.T):
            return False
        graph[:] = trial
        return True

    def _limited(self, edges: Mask) -> Mask:
        """The graph without the parents of a column that are too many, the weakest first."""
        limits = self._limits
        for child in range(len(edges)):
            while len(parents := np.flatnonzero(edges[:, child]).tolist()) > self._max_parents:
                optional = [p for p in parents if not limits.required[p, child]]
                if not optional:
                    break
                rests = [self._gains.family(child, [p for p in parents if p != drop]) for drop in optional]
                edges[optional[int(np.argmax(rests))], child] = False
        return edges


def _extension(graph: Mask) -> Mask:
    """An acyclic graph with the directions that are there, and no further colliders if there is one (Dor and Tarsi)."""
    left, rest, edges = graph.copy(), list(range(len(graph))), graph & ~graph.T
    adjacent = graph | graph.T
    while rest:
        node = next((n for n in rest if _is_simple_sink(left, adjacent, n)), None)
        if node is None:  # none without further colliders: one at the end of all arrows
            node = next(n for n in rest if not (left[n] & ~left[:, n]).any())
        edges[left[:, node], node] = True
        left[node] = left[:, node] = False
        rest.remove(node)
    return edges


def _is_simple_sink(graph: Mask, adjacent: Mask, node: int) -> bool:
    """Whether no arrow leaves a node, and each of its undirected neighbours is adjacent to all others."""
    if (graph[node] & ~graph[:, node]).any():
        return False
    near = np.flatnonzero(graph[:, node])
    return all(adjacent[a, b] for a in np.flatnonzero(graph[node]) for b in near if a != b)

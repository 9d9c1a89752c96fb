"""Tabu search over graphs: the best single change again and again, never back to a graph of a moment ago.

A change adds, drops or turns an edge. It goes on beyond the best graph for a while, since a better one may lie behind
worse ones. Columns are in an order that the data decide (`CodedTable`), and of equally good changes the first one in it
is made: the order in which they came does not matter.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.query_cost import CostLimit
from tacit.learn.discovering.scoring.family_scores import FamilyScores
from tacit.learn.discovering.searches.clusters import Clusters, Order

MEMORY = 100  # graphs that are tabu
EQUAL = 1e-9  # a relative difference of scores that is rounding
MIN_LOSS = 1e-3  # nats, as which less counts when edges are dropped to save costs


@dataclass(eq=False)
class Graph:
    """A graph under search: `edges[parent, child]`, and what each change would add to its score."""

    scores: FamilyScores
    edges: Mask
    own: Floats = field(init=False)  # of each family
    gains: Floats = field(init=False)  # [parent, child]: of adding the edge, or of dropping it where it is there

    def __post_init__(self) -> None:
        size = len(self.edges)
        self.own, self.gains = np.empty(size), np.empty((size, size))
        for child in range(size):
            self._refresh(child)

    @property
    def score(self) -> float:
        return float(self.own.sum())

    def parents(self, child: int) -> tuple[int, ...]:
        return tuple(np.flatnonzero(self.edges[:, child]).tolist())

    def set_edge(self, parent: int, child: int, there: bool) -> None:
        self.edges[parent, child] = there
        self._refresh(child)

    def _refresh(self, child: int) -> None:
        parents = self.parents(child)
        self.own[child] = self.scores.family(child, parents)
        gains = self.scores.extended(child, parents) - self.own[child]
        for parent in parents:
            gains[parent] = self.scores.family(child, [p for p in parents if p != parent]) - self.own[child]
        self.gains[:, child] = gains


@dataclass(frozen=True)
class Change:
    """The edge `parent -> child` is added or dropped; if it is turned, the edge back is added, too."""

    parent: int
    child: int
    turns: bool = False


class TabuSearch:
    """A search for the graph with the best score under constraints."""

    def __init__(
        self, scores: FamilyScores, limits: Constraints, cost: CostLimit, say: Callable[[int, float], None]
    ) -> None:
        self.scores, self.limits, self._limit, self._say = scores, limits, cost.entries, say
        size = len(scores.table.names)
        rng = np.random.default_rng(0)
        self._marks: NDArray[np.uint64] = rng.integers(2**64, size=(size, size), dtype=np.uint64)
        self._costly: Mask = np.zeros((2, size, size), dtype=bool)  # changes that were found to cost too much
        self._cheaper = False  # whether an edge was dropped or turned since
        self._clusters = Clusters(scores.table.cards.astype(np.float64))
        self._best_order: Order | None = None
        self.history: list[float] = []
        self.best, self.best_score = np.zeros((size, size), dtype=bool), -np.inf

    def run(self, start: Mask, patience: int) -> Mask:
        """The best graph on the way from a start, until there was none better for so many steps.

        A start that costs too much loses edges first.
        """
        graph = Graph(self.scores, start | self.limits.required)
        self._clusters.order = self._best_order
        self._follow(graph)
        self._thin(graph)
        tabu = deque([self._mark(graph.edges)], MEMORY)
        self._keep(graph)
        self._costly[:] = False
        waited = 0
        while waited < patience and (change := self._best_change(graph, tabu)) is not None:
            self._apply(graph, change)
            tabu.append(self._mark(graph.edges))
            self.history.append(graph.score)
            waited = 0 if self._keep(graph) else waited + 1
            self._say(len(self.history), self.best_score)
        return self.best

    def _keep(self, graph: Graph) -> bool:
        """Keep a graph if it is the best so far."""
        if graph.score <= self.best_score + EQUAL * abs(self.best_score) and np.isfinite(self.best_score):
            return False
        self.best, self.best_score, self._best_order = graph.edges.copy(), graph.score, self._clusters.order
        if self._cheaper:  # while edges are only added, what cost too much goes on to do so
            self._costly[:] = self._cheaper = False
        return True

    def _mark(self, edges: Mask) -> np.uint64:
        return np.uint64(np.bitwise_xor.reduce(self._marks[edges], initial=np.uint64(0)))

    def _apply(self, graph: Graph, change: Change) -> None:
        parent, child = change.parent, change.child
        self._cheaper |= bool(graph.edges[parent, child])
        graph.set_edge(parent, child, not graph.edges[parent, child])
        if change.turns:
            graph.set_edge(child, parent, True)
        self._follow(graph)

    def _follow(self, graph: Graph) -> None:
        if np.isfinite(self._limit):
            self._clusters.follow(graph.edges)

    def _thin(self, graph: Graph) -> None:
        """Drop edges until the graph is cheap enough, or only required ones are left."""
        while self._clusters.total > self._limit and (graph.edges & ~self.limits.required).any():
            losses = np.where(self.limits.required, np.inf, np.maximum(-graph.gains, MIN_LOSS))
            graph.set_edge(*self._clusters.to_drop(graph.edges, losses, self._limit), False)
            self._follow(graph)

    def _best_change(self, graph: Graph, tabu: deque[np.uint64]) -> Change | None:
        """The change to the best graph that is not tabu; of equal ones, the first."""
        from tacit.learn.discovering.searches.cluster_kernels import next_change, strike_out
        from tacit.learn.discovering.searches.graph_kernels import legal_changes

        edges, clusters, before = graph.edges, self._clusters, self._mark(graph.edges)
        changes = np.empty((2, *edges.shape))
        legal_changes(edges, graph.gains, self.limits.allowed, self.limits.required, changes)
        changes[self._costly] = -np.inf  # to try them all at every step would take most of the time
        tops = changes.max(axis=2)
        while True:
            kind, parent, child = next_change(
                changes, tops, EQUAL * abs(graph.score), edges, self._costly, clusters.places, clusters.cards,
                clusters.families, clusters.clusters, clusters.sizes, clusters.total, self._limit,
            )  # fmt: skip
            if kind < 0:
                return None
            mark = before ^ self._marks[parent, child] ^ (self._marks[child, parent] if kind else np.uint64(0))
            if mark not in tabu:
                return Change(parent, child, bool(kind))
            strike_out(changes, tops, kind, parent, child)

"""The clusters of a graph that a search changes step by step, which tell what its queries cost after a change."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Mask

WORD = 64  # bits
Order = NDArray[np.int64]


class Clusters:
    """The clusters of a graph in one order of elimination: that of weighted min-fill, or one of a graph before.

    In a given order, a further edge never makes the tables smaller, and what it adds to them takes a few steps along
    one way through the clusters.
    """

    def __init__(self, cards: Floats) -> None:
        size = len(cards)
        self._own_cards = cards  # by node; all else is by place, but for families
        self.order: Order | None = None
        self._workspace = np.empty((size, size), dtype=np.bool_), np.empty((size, size), dtype=np.int32)
        self.total = 0.0
        sets = (size, -(-size // WORD))
        self.places, self.cards, self.sizes = np.empty(size, np.int64), np.empty(size), np.empty(size)
        self.families, self.clusters = np.empty(sets, np.uint64), np.empty(sets, np.uint64)

    def follow(self, edges: Mask) -> None:
        """Go over to a graph, in the order of the last one or in that of min-fill, whichever makes smaller tables."""
        from tacit.learn.discovering.searches.graph_kernels import min_fill

        parents, children = np.divmod(np.flatnonzero(edges), len(edges))
        order = np.empty(len(edges), np.int64)
        least = min_fill(parents, children, self._own_cards, *self._workspace, order)
        if self.order is None or self._arrange(parents, children, self.order) > least:
            self._arrange(parents, children, order)

    def to_drop(self, edges: Mask, losses: Floats, limit: float) -> tuple[int, int]:
        """The edge to drop so that tables become smaller, down to a limit, for little of the score.

        `losses` are those of the score without each edge; an infinite one keeps it.
        """
        from tacit.learn.discovering.searches.cluster_kernels import best_to_drop

        parents, children = np.divmod(np.flatnonzero(edges), len(edges))
        edge = best_to_drop(
            parents, children, losses[edges], self.places, self.cards, self.clusters, self.sizes, self.total, limit
        )
        return int(parents[edge]), int(children[edge])

    def _arrange(self, parents: Order, children: Order, order: Order) -> float:
        from tacit.learn.discovering.searches.cluster_kernels import find_clusters

        self.order, self.cards = order, self._own_cards[order]
        self.places[order] = np.arange(len(order))
        self.total = find_clusters(parents, children, self.places, self.cards, self.families, self.clusters, self.sizes)
        return self.total

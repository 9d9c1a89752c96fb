"""The tree, or the forest, with the best score (Chow and Liu): every column has one parent at most."""

from __future__ import annotations

import numpy as np

from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.family_scores import FamilyScores


def best_forest(scores: FamilyScores, limits: Constraints) -> Mask:
    """The best forest: edges by their gain, best first, each directed away from the first column of its tree.

    The gain of an edge is the same in both directions for scores that are equal for equivalent graphs; of the others,
    the better direction counts.
    """
    size = len(scores.table.names)
    alone = np.array([scores.family(child, ()) for child in range(size)])
    gains = np.stack([scores.extended(child, ()) - alone[child] for child in range(size)], axis=1)
    gains[~(limits.allowed | limits.allowed.T)] = -np.inf
    both = np.maximum(gains, gains.T)
    tree = list(range(size))  # the number of each column's tree
    joined: list[tuple[int, int]] = []
    pairs = [(a, b) for a in range(size) for b in range(a + 1, size) if both[a, b] > 0]
    for a, b in sorted(pairs, key=lambda pair: -both[pair]):
        if tree[a] != tree[b]:
            former, now = tree[b], tree[a]
            tree = [now if number == former else number for number in tree]
            joined.append((a, b))
    return _directed(size, joined)


def _directed(size: int, joined: list[tuple[int, int]]) -> Mask:
    """Edges away from the first column of each tree."""
    near: list[list[int]] = [[] for _ in range(size)]
    for a, b in joined:
        near[a].append(b)
        near[b].append(a)
    edges, seen = np.zeros((size, size), dtype=bool), set[int]()
    for root in range(size):
        waiting = [] if root in seen else [root]
        while waiting:
            column = waiting.pop()
            seen.add(column)
            for other in near[column]:
                if other not in seen:
                    edges[column, other] = True
                    waiting.append(other)
    return edges

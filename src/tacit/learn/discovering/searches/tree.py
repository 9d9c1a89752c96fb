"""The tree, or the forest, with the best score (Chow and Liu): every column has one parent at most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.scoring.family_scores import FamilyScores

EQUAL = 1e-9  # a relative difference of scores that is rounding


def best_forest(scores: FamilyScores, limits: Constraints) -> Mask:
    """The best forest of the edges that are allowed; an error if a column has two required parents."""
    size = len(scores.table.names)
    for column in np.flatnonzero(limits.required.sum(axis=0) > 1):
        parents = ", ".join(repr(scores.table.names[p]) for p in np.flatnonzero(limits.required[:, column]))
        raise TacitError(
            f"search='tree' gives a variable one parent at most, but {scores.table.names[column]!r} requires {parents}"
        )
    alone = np.array([scores.family(child, ()) for child in range(size)])
    gains = np.stack([scores.extended(child, ()) - alone[child] for child in range(size)], axis=1)
    same = np.isclose(gains, gains.T, rtol=0, atol=EQUAL * np.abs(alone).sum())
    gains = np.where(same, np.maximum(gains, gains.T), gains)
    gains[~limits.allowed] = -np.inf
    gains[limits.required] = 1.0 + np.abs(gains[np.isfinite(gains)]).sum()  # more than all others together
    weights = np.zeros((size + 1, size + 1))  # the first node is a root above all, for columns without parents
    weights[1:, 1:] = gains
    weights[:, 0] = -np.inf
    np.fill_diagonal(weights, -np.inf)
    edges = np.zeros((size, size), dtype=bool)
    for child, above in enumerate(best_arborescence(weights)[1:].tolist()):
        if above:
            edges[above - 1, child] = True
    return edges


def best_arborescence(weights: Floats) -> NDArray[np.int64]:
    """The parent of each node in the tree with the largest sum of weights [parent, child], from node 0 (Edmonds)."""
    size = len(weights)
    parents: NDArray[np.int64] = np.argmax(weights, axis=0)
    parents[0] = 0
    cycle = _cycle(parents)
    if not cycle:
        return parents
    rest = [node for node in range(size) if node not in cycle]
    inside, loss = np.array(cycle), weights[parents[cycle], cycle]  # what breaking into the cycle gives up
    entering = weights[np.ix_(rest, cycle)] - loss
    leaving = weights[np.ix_(cycle, rest)]
    smaller = np.full((len(rest) + 1, len(rest) + 1), -np.inf)  # the cycle is its last node
    smaller[:-1, :-1] = weights[np.ix_(rest, rest)]
    smaller[:-1, -1], smaller[-1, :-1] = entering.max(axis=1), leaving.max(axis=0)
    found = best_arborescence(smaller)
    for place, node in enumerate(rest):
        if node:
            parent = int(found[place])
            parents[node] = inside[leaving[:, place].argmax()] if parent == len(rest) else rest[parent]
    broken = int(entering[found[-1]].argmax())
    parents[cycle[broken]] = rest[int(found[-1])]
    return parents


def _cycle(parents: NDArray[np.int64]) -> list[int]:
    """The nodes of a cycle, if there is one."""
    checked = {0}
    for start in range(1, len(parents)):
        path: list[int] = []
        node = start
        while node not in checked:
            checked.add(node)
            path.append(node)
            node = int(parents[node])
        if node in path:
            return path[path.index(node) :]
    return []

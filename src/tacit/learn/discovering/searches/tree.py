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
    parents: NDArray[np.int64] = np.argmax(weights, axis=0)
    parents[0] = 0
    groups = _groups(parents)  # each cycle becomes one node
    count = int(groups.max()) + 1
    if count == len(weights):
        return parents
    # to enter a cycle costs the edge that it breaks
    on_cycle = np.bincount(groups)[groups] > 1
    entering = weights - np.where(on_cycle, weights[parents, np.arange(len(weights))], 0.0)
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count))
    from_group = np.maximum.reduceat(entering[order], starts, axis=0)
    smaller = np.maximum.reduceat(from_group[:, order], starts, axis=1)
    np.fill_diagonal(smaller, -np.inf)
    smaller[:, groups[0]] = -np.inf
    found = best_arborescence(smaller)
    for group, above in enumerate(found.tolist()):
        if group:
            heads, tails = np.flatnonzero(groups == group), np.flatnonzero(groups == above)
            tail, head = divmod(int(entering[np.ix_(tails, heads)].argmax()), len(heads))
            parents[heads[head]] = tails[tail]
    return parents


def _groups(parents: NDArray[np.int64]) -> NDArray[np.int64]:
    """A number for each node, which the nodes of a cycle share; node 0 has number 0."""
    groups = np.full(len(parents), -1)
    visited = np.zeros(len(parents), dtype=np.int64)  # by which walk
    visited[0], count = 1, 1
    groups[0] = 0
    for start in range(1, len(parents)):
        node, path = start, list[int]()
        while not visited[node]:
            visited[node] = start + 1
            path.append(node)
            node = int(parents[node])
        cycle = path[path.index(node) :] if node in path else []
        for one in path:
            if one not in cycle:
                groups[one], count = count, count + 1
        if cycle:
            groups[cycle], count = count, count + 1
    return groups

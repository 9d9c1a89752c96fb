"""Kernels on graphs as matrices [parent, child]: paths, and changes that leave no cycle."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from tacit.base.jit import jit


@jit(nogil=True)
def descendants(edges):
    """Matrix [a, b]: whether there is a path from a to b."""
    reach = edges.copy()
    for middle in range(len(reach)):
        for start in range(len(reach)):
            if reach[start, middle]:
                reach[start] |= reach[middle]
    return reach


@jit(nogil=True)
def legal_changes(edges, gains, allowed, required, changes):
    """What each change that leaves no cycle gains, minus infinity for the others.

    `changes[0]` is of adding an edge, or of dropping it where it is there, and `changes[1]` of turning it.
    """
    reach = descendants(edges)
    changes[:] = -np.inf
    for a in range(len(edges)):
        for b in range(len(edges)):
            if edges[a, b]:
                if not required[a, b]:
                    changes[0, a, b] = gains[a, b]
                    if allowed[b, a] and not (edges[a] & reach[:, b]).any():  # there is no other path
                        changes[1, a, b] = gains[a, b] + gains[b, a]
            elif allowed[a, b] and not edges[b, a] and not reach[b, a]:
                changes[0, a, b] = gains[a, b]


@jit(nogil=True)
def fill_and_weight(adjacent, cards, node):
    """Of eliminating a node: the weight of the edges that it adds, and the size of its table."""
    near = np.flatnonzero(adjacent[node])
    fill, weight = 0.0, float(cards[node])
    for i in range(len(near)):
        weight *= cards[near[i]]
        for j in range(i):
            if not adjacent[near[i], near[j]]:
                fill += cards[near[i]] * cards[near[j]]
    return fill, weight


@jit(nogil=True)
def elimination_size(edges, cards, limit):
    """The entries of all tables that elimination makes, in the order of weighted min-fill; infinite beyond a limit."""
    size = len(edges)
    adjacent = edges | edges.T
    for child in range(size):
        parents = np.flatnonzero(edges[:, child])
        for a in parents:
            for b in parents:
                adjacent[a, b] = a != b or adjacent[a, b]
    fills, weights = np.empty(size), np.empty(size)
    for node in range(size):
        fills[node], weights[node] = fill_and_weight(adjacent, cards, node)
    total = 0.0
    for _ in range(size):
        best = int(np.argmin(fills))
        for node in range(size):
            if fills[node] == fills[best] and weights[node] < weights[best]:
                best = node
        total += weights[best]
        if total > limit:
            return np.inf
        near = np.flatnonzero(adjacent[best])
        changed = adjacent[best].copy()
        if fills[best] > 0:
            for a in near:
                changed |= adjacent[a]
        for a in near:
            adjacent[a] |= adjacent[best]
            adjacent[a, a] = adjacent[a, best] = False
        adjacent[best] = False
        fills[best] = weights[best] = np.inf
        for node in range(size):
            if changed[node] and fills[node] < np.inf:
                fills[node], weights[node] = fill_and_weight(adjacent, cards, node)
    return total

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
def join(adjacent, near, degrees, a, b):
    """Make two nodes neighbours."""
    if not adjacent[a, b]:
        adjacent[a, b] = adjacent[b, a] = True
        near[a, degrees[a]], near[b, degrees[b]] = b, a
        degrees[a] += 1
        degrees[b] += 1


@jit(nogil=True)
def moralize(parents, children, adjacent, near, degrees):
    """Make neighbours of the ends of all edges, and of the parents of each child."""
    last = np.full(len(adjacent), -1)  # the last edge to each child so far
    before = np.empty(len(parents), np.int64)  # the edge to the same child before each edge
    for edge in range(len(parents)):
        child = children[edge]
        join(adjacent, near, degrees, parents[edge], child)
        before[edge], other = last[child], last[child]
        while other >= 0:
            join(adjacent, near, degrees, parents[edge], parents[other])
            other = before[other]
        last[child] = edge


@jit(nogil=True)
def fill_and_weight(adjacent, near, cards, node):
    """Of eliminating a node: the weight of the edges that it adds, and the size of its table; `near` has neighbours."""
    fill, weight = 0.0, float(cards[node])
    for i in range(len(near)):
        weight *= cards[near[i]]
        for j in range(i):
            if not adjacent[near[i], near[j]]:
                fill += cards[near[i]] * cards[near[j]]
    return fill, weight


@jit(nogil=True)
def eliminate(adjacent, near, degrees, node):
    """Join all neighbours of a node, and take it out of the graph."""
    own = near[node, : degrees[node]]
    for i in range(len(own)):
        for j in range(i):
            join(adjacent, near, degrees, own[i], own[j])
    for other in own:
        place = 0
        while near[other, place] != node:
            place += 1
        degrees[other] -= 1
        near[other, place] = near[other, degrees[other]]
        adjacent[other, node] = adjacent[node, other] = False


@jit(nogil=True)
def mark(node, changed, is_changed, count):
    """Add a node to those that have changed; how many there are then."""
    if not is_changed[node]:
        is_changed[node] = True
        changed[count] = node
        return count + 1
    return count


@jit(nogil=True)
def min_fill(parents, children, cards, adjacent, near, order):
    """Write the order of weighted min-fill; the entries of all tables that elimination makes in it.

    `adjacent` (nodes, nodes) and `near` (nodes, nodes) are for it to write to: fresh memory would take as long.
    """
    size = len(cards)
    adjacent[:] = False
    degrees, left = np.zeros(size, np.int64), np.arange(size)
    moralize(parents, children, adjacent, near, degrees)
    fills, weights = np.empty(size), np.empty(size)
    for node in range(size):
        fills[node], weights[node] = fill_and_weight(adjacent, near[node, : degrees[node]], cards, node)
    changed, is_changed = np.empty(size, np.int64), np.zeros(size, np.bool_)
    total = 0.0
    for count in range(size, 0, -1):
        place = 0
        least, weight = fills[left[0]], weights[left[0]]
        for i in range(1, count):
            fill = fills[left[i]]
            if fill < least or (fill == least and weights[left[i]] < weight):
                place, least, weight = i, fill, weights[left[i]]
        best = left[place]
        order[size - count] = best
        left[place : count - 1] = left[place + 1 : count]
        total += weight
        changes = 0
        for a in near[best, : degrees[best]]:
            changes = mark(a, changed, is_changed, changes)
            if least > 0:  # new edges also fill what their ends have in common with others
                for b in near[a, : degrees[a]]:
                    changes = mark(b, changed, is_changed, changes)
        eliminate(adjacent, near, degrees, best)
        for node in changed[:changes]:
            is_changed[node] = False
            fills[node], weights[node] = fill_and_weight(adjacent, near[node, : degrees[node]], cards, node)
    return total

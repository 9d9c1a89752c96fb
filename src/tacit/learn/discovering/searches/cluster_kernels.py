"""Kernels on the clusters of a graph in a given order of elimination.

Nodes are known by their places in this order, and sets of them are rows of 64-bit words. The cluster of a node has the
node, and the neighbours that it has when it is eliminated. All of these come later, and all but the node itself are in
the cluster of the next one. So a new clique changes the clusters on one way only: from that of its first member on, as
long as there is anything new in them.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import numpy as np

from tacit.base.jit import jit
from tacit.learn.discovering.scoring.score_kernels import population_count

ONE = np.uint64(1)


@jit(nogil=True)
def lowest(bits):
    """The place of the lowest one of a word."""
    return np.int64(population_count((bits & (~bits + ONE)) - ONE))


@jit(nogil=True)
def first_member(members, start):
    """The first member of a set that has none in words before that of `start`; -1 if it is empty."""
    for word in range(start >> 6, len(members)):
        if members[word]:
            return word * 64 + lowest(members[word])
    return -1


@jit(nogil=True)
def put(members, place):
    """Put a place into a set."""
    members[place >> 6] |= ONE << np.uint64(place & 63)


@jit(nogil=True)
def take(members, place):
    """Take a place out of a set."""
    members[place >> 6] &= ~(ONE << np.uint64(place & 63))


@jit(nogil=True)
def states_of(bits, word, cards):
    """The joint states of the members in a word of a set."""
    product = 1.0
    while bits:
        product *= cards[word * 64 + lowest(bits)]
        bits &= bits - ONE
    return product


@jit(nogil=True)
def find_clusters(parents, children, places, cards, families, clusters, sizes):
    """Write the family and the cluster of each node (nodes, words), and the size of its table; the sum of sizes.

    `families` are by the number of a node, all else is by its place.
    """
    families[:], clusters[:] = 0, 0
    for node in range(len(places)):
        put(families[node], places[node])
    for edge in range(len(parents)):
        put(families[children[edge]], places[parents[edge]])
    for node in range(len(places)):
        clusters[first_member(families[node], 0)] |= families[node]
    total, rest = 0.0, np.empty(families.shape[1], np.uint64)
    for place in range(len(places)):
        sizes[place] = 1.0
        for word in range(place >> 6, len(rest)):
            sizes[place] *= states_of(clusters[place, word], word, cards)
        total += sizes[place]
        rest[:] = clusters[place]
        take(rest, place)
        following = first_member(rest, place)
        if following >= 0:
            clusters[following] |= rest
    return total


@jit(nogil=True)
def total_with(clique, cards, clusters, sizes, total, limit):
    """The sum of sizes once a set is a clique, too; infinite beyond a limit. It overwrites the set."""
    place = first_member(clique, 0)
    while place >= 0:
        more = 1.0
        for word in range(place >> 6, len(clique)):
            more *= states_of(clique[word] & ~clusters[place, word], word, cards)
            clique[word] |= clusters[place, word]
        total += sizes[place] * (more - 1)
        if total > limit:
            return np.inf
        if more == 1:
            break
        take(clique, place)
        place = first_member(clique, place)
    return total


@jit(nogil=True)
def next_change(changes, tops, tolerance, edges, costly, places, cards, families, clusters, sizes, total, limit):
    """The kind, parent and child of the best change that stays within a limit, of equal ones the first.

    `tops` has the best of each row of `changes`, which are as in `legal_changes`. The better ones that cost too much
    are noted in `costly`, and struck out. If nothing is left, the kind is -1.
    """
    clique = np.empty(families.shape[1], np.uint64)
    while True:
        best = tops.max()
        if best == -np.inf:
            return -1, 0, 0
        kind, parent, child = 0, 0, 0
        while tops[kind, parent] < best - tolerance:
            parent += 1
            if parent == len(edges):
                kind, parent = 1, 0
        while changes[kind, parent, child] < best - tolerance:
            child += 1
        if limit == np.inf or (edges[parent, child] and kind == 0):
            return kind, parent, child
        tail, head = (child, parent) if kind == 1 else (parent, child)
        clique[:] = families[head]
        put(clique, places[tail])
        if total_with(clique, cards, clusters, sizes, total, limit) <= limit:
            return kind, parent, child
        costly[kind, parent, child] = True
        strike_out(changes, tops, kind, parent, child)


@jit(nogil=True)
def strike_out(changes, tops, kind, parent, child):
    """Take back a change."""
    changes[kind, parent, child] = -np.inf
    tops[kind, parent] = changes[kind, parent].max()


@jit(nogil=True)
def best_to_drop(parents, children, losses, places, cards, clusters, sizes, total, limit):
    """The edge that saves most entries of tables for each nat of loss, but for entries below a limit; no infinite loss.

    Without an edge, only clusters that have its parent become smaller. So few edges have to be left out for a trial.
    """
    most = np.zeros(len(places))  # that an edge from each place can save
    for place in range(len(places)):
        members = clusters[place].copy()
        other = place
        while other >= 0:
            most[other] += sizes[place]
            take(members, other)
            other = first_member(members, other)
    excess, own_sizes = total - limit, np.empty(len(places))
    bounds = np.empty(len(parents))
    for edge in range(len(parents)):
        bounds[edge] = min(excess, most[places[parents[edge]]]) / losses[edge] if losses[edge] < np.inf else -np.inf
    sets = np.empty((2, *clusters.shape), np.uint64)
    rest = np.empty((2, len(parents) - 1), np.int64)
    best, found = -1.0, -1
    for edge in np.argsort(-bounds, kind="mergesort"):
        if bounds[edge] <= best:
            break
        rest[0, :edge], rest[0, edge:] = parents[:edge], parents[edge + 1 :]
        rest[1, :edge], rest[1, edge:] = children[:edge], children[edge + 1 :]
        saved = total - find_clusters(rest[0], rest[1], places, cards, sets[0], sets[1], own_sizes)
        if min(excess, saved) / losses[edge] > best:
            best, found = min(excess, saved) / losses[edge], edge
    return found

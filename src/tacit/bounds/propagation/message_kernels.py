"""The numba kernels of message passing between clusters.

A cluster is a list of entries: a number, and for each arc of the cluster the slot of the message that arrives there.
Slots are numbered throughout, and each arc has as many at one end as at the other.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.jit import jit

FIRST_OF_MEAN, LAST_OF_MEAN = 2, 5  # sweeps: the first ones know too little, later ones favour one of equal states
LEAST = 1e-30  # number above 0 in a message whose largest is 1: products of as many as a cluster has do not underflow


class GraphArrays(NamedTuple):
    """A join graph. Cluster c has the entries `first[c]` .. `first[c+1]-1` of `values`.

    Its ends of arcs are `ends[c]` .. `ends[c+1]-1`: first `later[c]` that lead to later clusters, then those to
    earlier ones, and from `outside[c]` on those where evidence comes in, over which nothing is sent.
    `places[at[c]:]` are the slots of its entries, (entries, ends). The end i receives in the slots `base[i]` ..
    `base[i+1]-1` and sends to those of the end `partner[i]`.
    """

    first: NDArray[np.int64]
    values: NDArray[np.float64]
    ends: NDArray[np.int64]
    later: NDArray[np.int64]
    outside: NDArray[np.int64]
    places: NDArray[np.int32]
    at: NDArray[np.int64]
    base: NDArray[np.int64]
    partner: NDArray[np.int64]


class Homes(NamedTuple):
    """Where marginals are read: of variable v in `cluster[v]`; its states there are `states[begin[v]:begin[v+1]]`.

    They are added up from `offset[v]` on.
    """

    cluster: NDArray[np.int64]
    begin: NDArray[np.int64]
    states: NDArray[np.uint16]
    offset: NDArray[np.int64]


@jit(nogil=True, fastmath={"contract", "nsz"}, error_model="numpy")
def sweep(graph, messages, sums, upwards):
    """Send a message over every arc in one direction: what changed most, or -1 if a cluster has no possible entry."""
    first, values, ends, later, outside, places, at, base, partner = graph
    change = 0.0
    for step in range(later.shape[0]):
        c = later.shape[0] - 1 - step if upwards else step
        count = ends[c + 1] - ends[c]
        left = later[c] if upwards else 0
        right = outside[c] if upwards else later[c]
        if left == right:
            continue
        for slot in range(base[ends[c] + left], base[ends[c] + right]):
            sums[slot] = 0.0
        position = at[c]
        for e in range(first[c], first[c + 1]):
            p = values[e]
            for j in range(position, position + count):
                p *= messages[places[j]]
            if p > 0.0:
                for j in range(position + left, position + right):
                    sums[places[j]] += p
            position += count
        for i in range(ends[c] + left, ends[c] + right):
            moved = _send(base[i], base[i + 1], base[partner[i]], messages, sums)
            if moved < 0.0:
                return moved
            change = max(change, moved)
    return change


@jit(nogil=True, error_model="numpy")
def _send(begin, end, target, messages, sums):
    """Divide what a cluster knows of an arc by what it has from there, and send it: by how much that is new."""
    largest = 0.0
    for slot in range(begin, end):
        if sums[slot] > 0.0:
            sums[slot] /= messages[slot]
            largest = max(largest, sums[slot])
    if largest == 0.0:
        return -1.0
    change = 0.0
    for slot in range(begin, end):
        new = max(sums[slot] / largest, LEAST) if sums[slot] > 0.0 else 0.0
        change = max(change, abs(new - messages[target + slot - begin]))
        messages[target + slot - begin] = new
    return change


@jit(nogil=True, error_model="numpy")
def log_partition(graph, messages):
    """The logarithm of the partition function as Bethe approximates it: -inf if a cluster has no possible entry."""
    first, values, ends, later, _, places, at, base, partner = graph
    log = 0.0
    for c in range(later.shape[0]):
        count = ends[c + 1] - ends[c]
        position = at[c]
        total = 0.0
        for e in range(first[c], first[c + 1]):
            p = values[e]
            for j in range(position, position + count):
                p *= messages[places[j]]
            total += p
            position += count
        log += np.log(total)
        for i in range(ends[c], ends[c] + later[c]):
            both = 0.0
            for slot in range(base[i + 1] - base[i]):
                both += messages[base[i] + slot] * messages[base[partner[i]] + slot]
            log -= np.log(both)
    return log


@jit(nogil=True, error_model="numpy")
def add_beliefs(graph, messages, homes, sums, out):
    """Add to the marginals what the home of each variable says of it."""
    first, values, ends, _, _, places, at, _, _ = graph
    cluster, begin, states, offset = homes
    for v in range(cluster.shape[0]):
        c = cluster[v]
        count = ends[c + 1] - ends[c]
        position = at[c]
        for s in range(offset[v], offset[v + 1]):
            sums[s] = 0.0
        total = 0.0
        for e in range(first[c], first[c + 1]):
            p = values[e]
            for j in range(position, position + count):
                p *= messages[places[j]]
            sums[offset[v] + states[begin[v] + e - first[c]]] += p
            total += p
            position += count
        for s in range(offset[v], offset[v + 1]):
            out[s] += sums[s] / total


@jit(nogil=True, error_model="numpy")
def run(graph, homes, where, likelihoods, sweeps, enough, out, logs):
    """Pass messages in every row: add the marginals to `out` (rows, states), and the logarithm to `logs` (rows,).

    `likelihoods` (rows, states) go to the slots `where`. Where messages still change by `enough` after so many sweeps,
    the marginals are the mean over those of a few early ones. Rows that are impossible get -inf.
    """
    messages = np.empty(graph.base[-1])
    sums = np.empty(max(graph.base[-1], homes.offset[-1]))
    mean = np.empty(homes.offset[-1])
    for row in range(likelihoods.shape[0]):
        messages[:] = 1.0
        for i in range(where.shape[0]):
            messages[where[i]] = likelihoods[row, i]
        mean[:] = 0.0
        added = 0
        possible = True
        for step in range(sweeps):
            change = sweep(graph, messages, sums, False)
            back = sweep(graph, messages, sums, True) if change >= 0.0 else change
            if back < 0.0:
                possible = False
                break
            settled = max(change, back) < enough or sweeps == 1
            if settled:
                mean[:] = 0.0
                added = 0
            if settled or FIRST_OF_MEAN <= step <= LAST_OF_MEAN:
                add_beliefs(graph, messages, homes, sums, mean)
                added += 1
            if settled:
                break
        logs[row] += log_partition(graph, messages) if possible else -np.inf
        if logs[row] > -np.inf:
            for s in range(mean.shape[0]):
                out[row, s] += mean[s] / added

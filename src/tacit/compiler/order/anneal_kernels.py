"""The numba kernel of annealing: `tree.anneal` some ten times as fast, for problems that no hard evidence indexes.

Sets of axes are rows of words of 64 bits.
"""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from tacit.base.jit import jit


@jit(nogil=True)
def rotate(nodes, keep, sizes, rates, moves, heats, state):
    """Anneal a tree, whose children are `nodes` (left, right, axes, soft): returns what it costs in the end.

    `keep` holds the axes to keep, `rates` the rows of a batch, the cost of writing an entry and that of a step, `heats`
    says where annealing starts and ends, and `state` is that of the random numbers.
    """
    left, right, outs, soft = nodes
    leaves = 0
    while left[leaves] < 0:
        leaves += 1
    count, words = outs.shape
    costs = np.zeros(count)
    union, inner = np.empty(words, np.uint64), np.empty(words, np.uint64)
    total = 0.0
    for i in range(leaves, count):
        for w in range(words):
            union[w] = outs[left[i], w] | outs[right[i], w]
        costs[i] = _cost(union, outs[i], soft[i], sizes, rates)
        total += costs[i]
    for k in range(moves):
        top = leaves + _random(state) % np.uint64(count - leaves)
        x, c = left[top], right[top]
        ways = _random(state)
        if ways & np.uint64(1):
            x, c = c, x
        if x < leaves:
            continue
        a, b = left[x], right[x]
        if ways & np.uint64(2):
            a, b = b, a
        for w in range(words):
            union[w] = outs[a, w] | outs[c, w]
            inner[w] = union[w] & (outs[b, w] | outs[top, w] | keep[w])
        softly = soft[a] or soft[c]
        first = _cost(union, inner, softly, sizes, rates)
        before = costs[x] + costs[top]
        allowed = before - math.log((_random(state) >> np.uint64(11)) * 2.0**-53 + 1e-300) * (
            heats[0] * (heats[1] / heats[0]) ** (k / moves) * total
        )
        if first > allowed:
            continue
        for w in range(words):
            union[w] = inner[w] | outs[b, w]
        second = _cost(union, outs[top], soft[top], sizes, rates)
        if first + second > allowed:
            continue
        left[x], right[x] = a, c
        left[top], right[top] = x, b
        outs[x, :] = inner
        soft[x], costs[x], costs[top] = softly, first, second
        total += first + second - before
    return total


@jit(nogil=True)
def _cost(union, out, softly, sizes, rates):
    work = _entries(union, sizes) + rates[1] * _entries(out, sizes)
    return (rates[0] * work if softly else work) + rates[2]


@jit(nogil=True)
def _entries(axes, sizes):
    """The number of entries over a set of axes."""
    product = 1.0
    for w in range(axes.size):
        word = axes[w]
        while word:
            lowest = word & (~word + np.uint64(1))
            product *= sizes[w, int(math.log2(float(lowest)))]
            word ^= lowest
    return product


@jit(nogil=True)
def _random(state):
    """The next number of xorshift64*."""
    x = state[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    state[0] = x
    return x * np.uint64(0x2545F4914F6CDD1D)

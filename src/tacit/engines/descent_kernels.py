"""The way down from the joint, on a tape: states for the axes that it sums out or maximises, row by row."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import numpy as np

from tacit.engines.kernels import forward_tile
from tacit.jit import jit

BLOCK = 1024  # samples that are followed at a time
MAX_WEIGHTS = 2**17  # numbers that they are chosen by
BELOW_ONE = 1 - 2.0**-53  # the largest number below 1


@jit(nogil=True)
def enter(way, states, place, o, first, size):
    """Where the states chosen so far lead to in operand o: an entry for each sample."""
    _, operands, strides, _, _, _, _ = way
    for q in range(size):
        place[q] = operands[o, 0]
    for t in range(operands[o, 1], operands[o, 2]):
        chosen, stride = states[strides[t, 0], first : first + size], strides[t, 1]
        for q in range(size):
            place[q] += chosen[q] * stride


@jit(nogil=True)
def weigh(way, constants, values, place, weights, k, o, j, samples, size):
    """Multiply the weights of all states of decision k by operand o; the first one starts them.

    The first of the samples belong to row j of the tile, the next ones to row j + 1, and so on.
    """
    decisions, operands, _, _, offsets, entries, _ = way
    start, offset = o == decisions[k, 1], operands[o, 3]
    for m in range(decisions[k, 0]):
        w, off = weights[m], offsets[offset + m]
        if operands[o, 4]:
            for q in range(size):
                x = constants[place[q] + off]
                w[q] = x if start else w[q] * x
        else:
            for q in range(size):
                x = values[entries[place[q] + off], j + q // samples]
                w[q] = x if start else w[q] * x


@jit(nogil=True)
def take_largest(weights, place, states, size):
    """The first of the largest weights."""
    for q in range(size):
        place[q] = 0
    for m in range(1, states):
        for q in range(size):
            if weights[m, q] > weights[place[q], q]:
                place[q] = m


@jit(nogil=True)
def draw(weights, place, states, draws, size):
    """A state drawn in proportion to its weight, by a number between 0 and 1; never one of weight 0."""
    for m in range(1, states):
        for q in range(size):
            weights[m, q] += weights[m - 1, q]
    total = weights[states - 1]
    for q in range(size):
        place[q] = 0
    for m in range(states - 1):
        for q in range(size):
            place[q] += weights[m, q] <= min(draws[q] * total[q], total[q] * BELOW_ONE)


@jit(nogil=True)
def settle(way, states, place, k, first, size):
    """Note the states of the axes that decision k is about."""
    decisions, _, _, chosen, _, _, _ = way
    for c in range(decisions[k, 3], decisions[k, 4]):
        stride, cards, out = chosen[c, 1], chosen[c, 2], states[chosen[c, 0], first : first + size]
        if cards == decisions[k, 0]:  # the only axis: divisions are slow
            for q in range(size):
                out[q] = place[q]
        else:
            for q in range(size):
                out[q] = place[q] // stride % cards


@jit(nogil=True)
def descend_block(way, constants, values, states, draws, weights, place, j, samples, first, size):
    """States of some samples that follow one another, from number `first` on; that one is of row j of its tile."""
    for k in range(way.decisions.shape[0]):
        for o in range(way.decisions[k, 1], way.decisions[k, 2]):
            enter(way, states, place, o, first, size)
            weigh(way, constants, values, place, weights, k, o, j, samples, size)
        if draws.size:
            draw(weights, place, way.decisions[k, 0], draws[k, first : first + size], size)
        else:
            take_largest(weights, place, way.decisions[k, 0], size)
        settle(way, states, place, k, first, size)


@jit(nogil=True)
def descend_tile(way, constants, values, states, draws, samples, r0, n, first, stop):
    """States of rows r0 .. r0+n-1, whose `values` are all there, and of their samples first .. stop-1.

    Of every axis, `states` (axes, rows * samples) has those of all samples of the first row, then of the second, and so
    on; those of observed variables are there already. Without `draws`, the largest are taken.
    """
    most = max(1, min(BLOCK, MAX_WEIGHTS // way.most))
    weights, place = np.empty((way.most, most)), np.empty(most, dtype=np.int64)
    if stop - first == samples <= most:  # whole rows
        for j in range(0, n, most // samples):
            size = min(most // samples, n - j) * samples
            descend_block(way, constants, values, states, draws, weights, place, j, samples, (r0 + j) * samples, size)
        return
    for j in range(n):
        for s in range(first, stop, most):
            begin, size = (r0 + j) * samples + s, min(most, stop - s)
            descend_block(way, constants, values, states, draws, weights, place, j, samples, begin, size)


@jit(nogil=True)
def descend(tape, way, values, states, draws, samples, start, stop, first, last):
    """Up and down over rows start .. stop-1, tile by tile, for samples first .. last-1 of each."""
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(tape, values, r0, n)
        descend_tile(way, tape.constants, values, states, draws, samples, r0, n, first, last)

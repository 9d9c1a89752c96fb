"""The traceback on a tape: states for the axes that the joint sums out or maximises, row by row."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.jit import jit
from tacit.engines.tape.tape_kernels import forward_tile

SAMPLES_AT_ONCE = 1024
MAX_WEIGHTS = 2**17  # numbers that they are chosen by
BELOW_ONE = 1 - 2.0**-53  # the largest number below 1


class SampleArrays(NamedTuple):
    """States that are chosen, and the numbers that they are drawn by.

    Of every axis, `states` (axes, rows * samples) has those of all samples of the first row, then of the second, and so
    on; those of observed variables are there already. Without `draws`, the largest are taken.
    """

    states: NDArray[np.int32]
    draws: NDArray[np.float64]
    per_row: int  # samples of each row


class Tile(NamedTuple):
    """Values of the rows of a tile, and working space for the samples that are followed at a time."""

    constants: NDArray[Any]
    values: NDArray[Any]
    weights: NDArray[np.float64]
    place: NDArray[np.int64]


@jit(nogil=True)
def enter(plan, states, place, o, first, size):
    """Where the states chosen so far lead to in operand o: an entry for each sample."""
    _, operands, strides, _, _, _, _ = plan
    for q in range(size):
        place[q] = operands[o, 0]
    for t in range(operands[o, 1], operands[o, 2]):
        chosen, stride = states[strides[t, 0], first : first + size], strides[t, 1]
        for q in range(size):
            place[q] += chosen[q] * stride


@jit(nogil=True)
def weigh(plan, tile, k, o, j, samples, size):
    """Multiply the weights of all states of decision k by operand o; the first one starts them.

    The first of the samples belong to row j of the tile, the next ones to row j + 1, and so on.
    """
    decisions, operands, _, _, offsets, entries, _ = plan
    constants, values, weights, place = tile
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
def settle(plan, states, place, k, first, size):
    """Note the states of the axes that decision k is about."""
    decisions, _, _, chosen, _, _, _ = plan
    for c in range(decisions[k, 3], decisions[k, 4]):
        stride, cards, out = chosen[c, 1], chosen[c, 2], states[chosen[c, 0], first : first + size]
        if cards == decisions[k, 0]:  # the only axis: divisions are slow
            for q in range(size):
                out[q] = place[q]
        else:
            for q in range(size):
                out[q] = place[q] // stride % cards


@jit(nogil=True)
def descend_block(plan, tile, samples, j, first, size):
    """States of some samples that follow one another, from number `first` on; that one is of row j of its tile."""
    states, draws, per_row = samples
    weights, place = tile.weights, tile.place
    for k in range(plan.decisions.shape[0]):
        for o in range(plan.decisions[k, 1], plan.decisions[k, 2]):
            enter(plan, states, place, o, first, size)
            weigh(plan, tile, k, o, j, per_row, size)
        if draws.size:
            draw(weights, place, plan.decisions[k, 0], draws[k, first : first + size], size)
        else:
            take_largest(weights, place, plan.decisions[k, 0], size)
        settle(plan, states, place, k, first, size)


@jit(nogil=True)
def descend_tile(plan, tile, samples, rows, some):
    """States of `rows` (first, count), whose values are all there, and of `some` (first, end) of their samples."""
    (r0, n), (first, stop), count, most = rows, some, samples.per_row, len(tile.place)
    if stop - first == count <= most:  # whole rows
        for j in range(0, n, most // count):
            size = min(most // count, n - j) * count
            descend_block(plan, tile, samples, j, (r0 + j) * count, size)
        return
    for j in range(n):
        for s in range(first, stop, most):
            descend_block(plan, tile, samples, j, (r0 + j) * count + s, min(most, stop - s))


@jit(nogil=True)
def descend(tape, plan, values, samples, rows, some):
    """Forward pass and traceback over `rows` (first, end), tile by tile, for `some` (first, end) samples of each."""
    most = max(1, min(SAMPLES_AT_ONCE, MAX_WEIGHTS // plan.most))
    tile = Tile(tape.constants, values, np.empty((plan.most, most)), np.empty(most, dtype=np.int64))
    for r0 in range(rows[0], rows[1], values.shape[1]):
        n = min(values.shape[1], rows[1] - r0)
        forward_tile(tape, values, r0, n)
        descend_tile(plan, tile, samples, (r0, n), some)

"""The way down from the joint, on a tape: states for the axes that it sums out or maximises, row by row."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.engines.jit import jit
from tacit.engines.kernels import Arrays, forward_tile

BLOCK = 1024  # states that are chosen at a time
MAX_WEIGHTS = 2**17  # numbers that they are chosen by
BELOW_ONE = 1 - 2.0**-53  # the largest number below 1


class Way(NamedTuple):
    """The decisions of a program as flat arrays.

    A row of `decisions` is (states to choose from, first operand, end, first chosen axis, end), one of `operands`
    (first entry, first stride, end, first offset, whether it is a table), of `strides` (axis, stride), of `chosen`
    (axis, stride, states). `offsets` leads to the entries of an operand for all states to choose from. Entries of a
    table are constants, one after the other; of other operands, `entries` are the slots. `most` is the largest number
    of states to choose from.
    """

    decisions: NDArray[np.int32]
    operands: NDArray[np.int32]
    strides: NDArray[np.int32]
    chosen: NDArray[np.int32]
    offsets: NDArray[np.int32]
    entries: NDArray[np.int32]
    most: int


@jit(nogil=True)
def enter(way, states, place, o, r0, n, first, count):
    """Where the states chosen so far lead to in operand o: an entry for each row and sample."""
    _, operands, strides, _, _, _, _ = way
    for q in range(n * count):
        place[q] = operands[o, 0]
    for t in range(operands[o, 1], operands[o, 2]):
        axis, stride = strides[t, 0], strides[t, 1]
        for j in range(n):
            for s in range(count):
                place[j * count + s] += states[axis, r0 + j, first + s] * stride


@jit(nogil=True)
def weigh(way, constants, values, place, weights, k, o, n, count):
    """Multiply the weights of all states of decision k by operand o; the first one starts them."""
    decisions, operands, _, _, offsets, entries, _ = way
    start, table, offset = o == decisions[k, 1], operands[o, 4] == 1, operands[o, 3]
    for m in range(decisions[k, 0]):
        w, off = weights[m], offsets[offset + m]
        for j in range(n):
            for q in range(j * count, (j + 1) * count):
                x = constants[place[q] + off] if table else values[entries[place[q] + off], j]
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
def draw(weights, place, states, draws, first, n, count):
    """A state drawn in proportion to its weight, by a number between 0 and 1; never one of weight 0."""
    for m in range(1, states):
        for q in range(n * count):
            weights[m, q] += weights[m - 1, q]
    for j in range(n):
        for s in range(count):
            q = j * count + s
            total = weights[states - 1, q]
            limit = min(draws[j, first + s] * total, total * BELOW_ONE)
            place[q] = 0
            for m in range(states - 1):
                place[q] += weights[m, q] <= limit


@jit(nogil=True)
def settle(way, states, place, k, r0, n, first, count):
    """Note the states of the axes that decision k is about."""
    decisions, _, _, chosen, _, _, _ = way
    for c in range(decisions[k, 3], decisions[k, 4]):
        axis, stride, cards = chosen[c, 0], chosen[c, 1], chosen[c, 2]
        if cards == decisions[k, 0]:  # the only axis: divisions are slow
            for j in range(n):
                for s in range(count):
                    states[axis, r0 + j, first + s] = place[j * count + s]
        else:
            for j in range(n):
                for s in range(count):
                    states[axis, r0 + j, first + s] = place[j * count + s] // stride % cards


@jit(nogil=True)
def descend_tile(way, constants, values, states, draws, r0, n, first, stop):
    """States of rows r0 .. r0+n-1, whose `values` are all there, and of samples first .. stop-1.

    `states` (axes, rows, samples) has those of observed variables already. Without `draws`, the largest are taken.
    """
    size = max(n, min(BLOCK, MAX_WEIGHTS // way.most) // n * n)
    weights, place = np.empty((way.most, size)), np.empty(size, dtype=np.int64)
    for s0 in range(first, stop, size // n):
        count = min(size // n, stop - s0)
        for k in range(way.decisions.shape[0]):
            for o in range(way.decisions[k, 1], way.decisions[k, 2]):
                enter(way, states, place, o, r0, n, s0, count)
                weigh(way, constants, values, place, weights, k, o, n, count)
            if draws.size:
                draw(weights, place, way.decisions[k, 0], draws[k, r0 : r0 + n], s0, n, count)
            else:
                take_largest(weights, place, way.decisions[k, 0], n * count)
            settle(way, states, place, k, r0, n, s0, count)


@jit(nogil=True)
def descend(
    instructions, terms, constants, inputs, codes, outputs, doubts, way, values, states, draws, start, stop, first, last
):
    """Up and down over rows start .. stop-1, tile by tile, for samples first .. last-1."""
    tape = Arrays(instructions, terms, constants, inputs, codes, outputs, doubts)
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(tape, values, r0, n)
        descend_tile(way, constants, values, states, draws, r0, n, first, last)

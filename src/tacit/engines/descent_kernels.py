"""The way down from the joint, on a tape: states for the axes that it sums out or maximises, row by row."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.engines.jit import jit
from tacit.engines.kernels import Arrays, forward_tile


class Way(NamedTuple):
    """The decisions of a program as flat arrays.

    A row of `decisions` is (states to choose from, first operand, end, first chosen axis, end), one of `operands`
    (first entry, first stride, end, first offset), of `strides` (axis, stride), of `chosen` (axis, stride, states).
    `offsets` leads to the entries of an operand for all states to choose from. `entries` are slots, or -1 - c for
    constant c. `most` is the largest number of states to choose from.
    """

    decisions: NDArray[np.int32]
    operands: NDArray[np.int32]
    strides: NDArray[np.int32]
    chosen: NDArray[np.int32]
    offsets: NDArray[np.int32]
    entries: NDArray[np.int32]
    most: int


@jit(nogil=True, inline="always")
def weigh(way, constants, values, states, weights, k, j, r, s):
    """The weights of all states of decision k, in row r, which is row j of its tile; returns their number."""
    count, first, end = way.decisions[k, 0], way.decisions[k, 1], way.decisions[k, 2]
    for o in range(first, end):
        base, offset = way.operands[o, 0], way.operands[o, 3]
        for t in range(way.operands[o, 1], way.operands[o, 2]):
            base += states[way.strides[t, 0], r, s] * way.strides[t, 1]
        for m in range(count):
            entry = way.entries[base + way.offsets[offset + m]]
            x = values[entry, j] if entry >= 0 else constants[-1 - entry]
            weights[m] = x if o == first else weights[m] * x
    return count


@jit(nogil=True, inline="always")
def heaviest(weights, count):
    """The first of the largest weights."""
    best = 0
    for m in range(1, count):
        if weights[m] > weights[best]:
            best = m
    return best


@jit(nogil=True, inline="always")
def drawn(weights, count, draw):
    """A state drawn in proportion to its weight, by a number between 0 and 1; never one of weight 0."""
    total = 0.0
    for m in range(count):
        total += weights[m]
    limit, heap, last = draw * total, 0.0, 0
    for m in range(count):
        heap += weights[m]
        if weights[m] > 0:
            last = m
            if heap > limit:
                return m
    return last


@jit(nogil=True, error_model="numpy")
def descend_tile(way, constants, values, states, draws, r0, n, first, stop):
    """States of rows r0 .. r0+n-1, whose `values` are all there, and of samples first .. stop-1.

    `states` (axes, rows, samples) has those of observed variables already. Without `draws`, the largest are taken.
    """
    weights = np.empty(way.most)
    for k in range(way.decisions.shape[0]):
        for j in range(n):
            for s in range(first, stop):
                count = weigh(way, constants, values, states, weights, k, j, r0 + j, s)
                place = drawn(weights, count, draws[k, r0 + j, s]) if draws.size else heaviest(weights, count)
                for c in range(way.decisions[k, 3], way.decisions[k, 4]):
                    states[way.chosen[c, 0], r0 + j, s] = place // way.chosen[c, 1] % way.chosen[c, 2]


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

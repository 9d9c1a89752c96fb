"""The kernels of learning on a tape: forward, a loss or a probability, and reverse, in one pass over tiles of rows."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from tacit.engines.flags import clear_underflow, underflowed
from tacit.engines.jit import jit
from tacit.engines.kernels import add_pinned, backward_tile, forward_tile

MEAN_SQUARED, CROSS_ENTROPY = range(2)
# Below this probability the cross entropy ends as a parabola that is flat at 0, so that its slope stays continuous and
# finite. Far above what underflows, and far below what products of learned numbers come to.
SMALLEST = 1e-100


@jit(nogil=True, error_model="numpy")
def jacobian(
    instructions,
    terms,
    constants,
    inputs,
    codes,
    outputs,
    first,
    stop_state,
    seeds,
    values,
    adjoints,
    pinned,
    by_constant,
    d_inputs,
    doubts,
    start,
    stop,
):
    """The probability of some states of the query, row by row, and its derivatives by the pinned constants.

    The probability goes into outputs[0], the derivatives into `by_constant` (constants, rows).
    """
    d_constants = np.zeros(constants.shape[0])
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        clear_underflow()
        forward_tile(instructions, terms, constants, inputs, codes, outputs, values, r0, n)
        doubts[r0 : r0 + n] = underflowed()
        for j in range(r0, r0 + n):
            total, part = 0.0, 0.0
            for s in range(seeds.shape[0]):
                total += outputs[s, j]
                part += outputs[s, j] if first <= s < stop_state else 0.0
            for s in range(seeds.shape[0]):
                seeds[s, j] = ((1.0 if first <= s < stop_state else 0.0) - part / total) / total
            outputs[0, j] = part / total
        backward_tile(
            instructions, terms, constants, codes, seeds, values, adjoints, d_constants, d_inputs, True, r0, n
        )
        for i in range(pinned.shape[0]):
            if pinned[i, 1] >= 0:
                for j in range(n):
                    by_constant[pinned[i, 1], r0 + j] = adjoints[pinned[i, 0], j]


@jit(nogil=True, error_model="numpy")
def loss_tile(kind, outputs, targets, weights, seeds, r0, n):
    """The weighted loss of some rows, and its derivatives by their joint into `seeds`.

    `targets` (groups, rows) has a row for every state, or one for the first and one for all the others.
    """
    states, groups = seeds.shape[0], targets.shape[0]
    loss = 0.0
    for j in range(r0, r0 + n):
        if weights[j] == 0:  # whatever its joint is
            seeds[:, j] = 0.0
            continue
        total = 0.0
        for s in range(states):
            total += outputs[s, j]
        inner = 0.0
        for g in range(groups):
            p = 0.0
            for s in range(g, g + 1 if g < groups - 1 else states):
                p += outputs[s, j] / total
            if kind == MEAN_SQUARED:
                loss += weights[j] * (p - targets[g, j]) ** 2 / groups
                slope = 2 * (p - targets[g, j]) / groups
            else:
                bounded = max(p, SMALLEST)
                ratio = p / bounded  # 1 down to SMALLEST
                loss += weights[j] * targets[g, j] * ((1 - ratio**2) / 2 - math.log(bounded))
                slope = -targets[g, j] * ratio / bounded
            inner += slope * p
            for s in range(g, g + 1 if g < groups - 1 else states):
                seeds[s, j] = slope
        for s in range(states):
            seeds[s, j] = weights[j] * (seeds[s, j] - inner) / total
    return loss


@jit(nogil=True, error_model="numpy")
def learn(
    instructions,
    terms,
    constants,
    inputs,
    codes,
    outputs,
    kind,
    targets,
    weights,
    seeds,
    values,
    adjoints,
    pinned,
    d_constants,
    d_inputs,
    doubts,
    start,
    stop,
):
    """Forward, loss and reverse over rows start .. stop-1, tile by tile; returns the loss."""
    loss = 0.0
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        clear_underflow()
        forward_tile(instructions, terms, constants, inputs, codes, outputs, values, r0, n)
        doubts[r0 : r0 + n] = underflowed()
        loss += loss_tile(kind, outputs, targets, weights, seeds, r0, n)
        backward_tile(
            instructions, terms, constants, codes, seeds, values, adjoints, d_constants, d_inputs, True, r0, n
        )
        add_pinned(pinned, adjoints, d_constants)
    return loss

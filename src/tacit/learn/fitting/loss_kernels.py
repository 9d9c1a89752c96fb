"""The kernel of learning: the loss of rows between the forward and the backward pass of a tape."""

# mypy: disable-error-code="no-untyped-def,no-untyped-call"

import math

from tacit.base.jit import jit
from tacit.engines.tape.instructions import LEAST_PROBABILITY, MEAN_SQUARED
from tacit.engines.tape.tape_kernels import add_pinned, backward_tile, forward_tile


@jit(nogil=True, error_model="numpy")
def loss_of_rows(labels, outputs, seeds, r0, n):
    """The weighted loss of some rows, and its derivatives by their joint into `seeds`.

    `labels` are weights, the kind of loss, and targets (groups, rows): one for every state, or one for the first and
    one for all the others.
    """
    weights, kind, targets = labels
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
                bounded = max(p, LEAST_PROBABILITY)
                ratio = p / bounded  # 1 down to LEAST_PROBABILITY
                loss += weights[j] * targets[g, j] * ((1 - ratio**2) / 2 - math.log(bounded))
                slope = -targets[g, j] * ratio / bounded
            inner += slope * p
            for s in range(g, g + 1 if g < groups - 1 else states):
                seeds[s, j] = slope
        for s in range(states):
            seeds[s, j] = weights[j] * (seeds[s, j] - inner) / total
    return loss


@jit(nogil=True)
def learn(tape, reverse, values, start, stop, *labels):
    """The loss of rows start .. stop-1, after a forward and a backward pass over them, tile by tile."""
    loss = 0.0
    for r0 in range(start, stop, values.shape[1]):
        n = min(values.shape[1], stop - r0)
        forward_tile(tape, values, r0, n)
        loss += loss_of_rows(labels, tape.outputs, reverse.seeds, r0, n)
        backward_tile(tape, reverse, values, r0, n)
        add_pinned(reverse)
    return loss

"""Losses: what a posterior costs against its target.

Two are built into the kernels of the tape. Any other is a function `loss(p, y)` of arrays (rows, groups) that returns
the loss of every row (rows,) and its derivatives by `p` (rows, groups). Groups are the states of the query, or its
first state and all others together where labels are probabilities of the first state.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tacit.engines import learning_kernels as kernels
from tacit.engines.numpy_steps import Array
from tacit.errors import TacitError

Loss = str | Callable[[NDArray[np.float64], NDArray[np.float64]], tuple[Array, Array]]

KINDS = {"mse": kernels.MEAN_SQUARED, "cross_entropy": kernels.CROSS_ENTROPY}


def check_loss(loss: Loss) -> Loss:
    """A known name, or something that can be called."""
    if loss in KINDS or callable(loss):
        return loss
    raise TacitError(f"loss is {loss!r}, expected one of {', '.join(map(repr, KINDS))}, or a function loss(p, y)")


def evaluate(loss: Loss, joint: Array, targets: Array, weights: Array) -> tuple[float, Array]:
    """The weighted loss of some rows, and its derivatives by their joint (states, rows)."""
    seeds = np.empty(joint.shape)
    if not callable(loss):
        joint = np.asarray(joint, dtype=np.float64)
        value = kernels.loss_tile(KINDS[loss], joint, targets, weights, seeds, 0, len(weights))
        return float(value), seeds
    states, groups = len(joint), len(targets)
    total = joint.sum(axis=0)
    group = np.minimum(np.arange(states), groups - 1)
    p = np.zeros(targets.shape)
    np.add.at(p, group, joint / total)
    made = loss(p.T, np.asarray(targets.T, dtype=np.float64))
    values, slopes = (np.asarray(a, dtype=np.float64) for a in made)
    if values.shape != weights.shape or slopes.shape != p.T.shape:
        raise TacitError(
            f"loss returned shapes {values.shape} and {slopes.shape}, expected {weights.shape}: the loss of every row, "
            f"and {p.T.shape}: its derivatives by p"
        )
    inner = (slopes.T * p).sum(axis=0)
    return float(weights @ values), weights * (slopes.T[group] - inner) / total

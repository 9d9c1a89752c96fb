"""Losses of posteriors, given their targets.

Two are known by name, and engines compute them between their passes. Any other is a function `loss(p, y)` of arrays
(rows, groups) that returns the loss of every row (rows,) and its derivatives by `p` (rows, groups). Groups are the
states of the query, or its first state and all others together where labels are probabilities of the first state.

The cross entropy is -y log(p), with its true slope -y / p down to p = 1e-100: a confident mistake pulls as hard as the
logarithm says. Below, it ends as a parabola that is flat at p = 0, where it is -log(1e-100) + 1/2, about 230.8. So
value and slope are finite and continuous, and a target that known 0s rule out costs a fixed amount and pulls at
nothing: no number that is learned could help it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.engines.results import Array
from tacit.engines.tape.instructions import CROSS_ENTROPY, LEAST_PROBABILITY, MEAN_SQUARED

Loss = str | Callable[[NDArray[np.float64], NDArray[np.float64]], tuple[Array, Array]]

PROBE_COUNT = 256  # of distributions that tell a loss from others
KINDS = {"mse": MEAN_SQUARED, "cross_entropy": CROSS_ENTROPY}


def check_loss(loss: Loss) -> Loss:
    """A known name, or something that can be called."""
    if callable(loss) or (isinstance(loss, str) and loss in KINDS):
        return loss
    raise TacitError(f"loss is {loss!r}, expected one of {', '.join(map(repr, KINDS))}, or a function loss(p, y)")


def identity(loss: Loss, groups: int) -> str:
    """A text that tells a loss from others: its name, or a digest of its values.

    These are the values at random distributions, many of them nearly certain, and at certain ones, with targets of the
    same kinds. So it works for any function, however it was made, in any process and version of Python.
    """
    if not callable(loss):
        return loss
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.dirichlet(np.full(groups, 0.2), PROBE_COUNT), np.eye(groups)])
    y = np.resize(np.concatenate([rng.dirichlet(np.full(groups, 0.2), PROBE_COUNT // 2), np.eye(groups)]), p.shape)
    with np.errstate(all="ignore"):  # at probability 0 a loss may be infinite
        first, second = (np.concatenate([np.ravel(a) for a in _arrays(loss(p.copy(), y.copy()))]) for _ in range(2))
        digest = first.astype(np.float32)  # the last digits may depend on the machine
    if not np.array_equal(first, second, equal_nan=True):
        reason = "so that a checkpoint cannot tell it from another one; train without checkpoint="
        raise TacitError(f"loss gives other numbers each time it is called, {reason}")
    return hashlib.sha256(digest.tobytes()).hexdigest()


def evaluate(loss: Loss, joint: Array, targets: Array, weights: Array) -> tuple[float, Array]:
    """The weighted loss of some rows, and its derivatives by their joint (states, rows)."""
    p, group = _grouped(joint, targets)
    values, slopes = _of_rows(loss, p, targets, weights)
    counted = weights != 0  # a row of weight 0 counts for nothing, whatever its joint is
    with np.errstate(divide="ignore", invalid="ignore"):
        seeds = weights * (slopes[group] - (slopes * p).sum(axis=0)) / joint.sum(axis=0, dtype=np.float64)
    return float((weights * values)[counted].sum()), np.where(counted, seeds, 0.0)


def evaluate_rows(loss: Loss, joint: Array, targets: Array, weights: Array) -> Floats:
    """The weighted loss of each of some rows: (rows,)."""
    values, _ = _of_rows(loss, _grouped(joint, targets)[0], targets, weights)
    return np.where(weights != 0, weights * values, 0.0)


def _grouped(joint: Array, targets: Array) -> tuple[Floats, NDArray[np.intp]]:
    """The posterior of groups of states (groups, rows), and the group of every state."""
    last = len(targets) - 1
    group = np.minimum(np.arange(len(joint)), last)
    with np.errstate(divide="ignore", invalid="ignore"):  # of rows that are impossible, nothing is a number
        shares = joint / joint.sum(axis=0, dtype=np.float64)
    return np.concatenate([shares[:last], shares[last:].sum(axis=0, keepdims=True)]), group


def _of_rows(loss: Loss, p: Floats, targets: Array, weights: Array) -> tuple[Array, Array]:
    """The loss of every row (rows,), and its derivatives by the posteriors (groups, rows)."""
    if callable(loss):
        values, slopes = _arrays(loss(p.T, np.asarray(targets.T, dtype=np.float64)))
        if values.shape != weights.shape or slopes.shape != p.T.shape:
            expected = f"{weights.shape}: the loss of every row, and {p.T.shape}: its derivatives with respect to p"
            raise TacitError(f"loss returned shapes {values.shape} and {slopes.shape}, expected {expected}")
        return values, slopes.T
    if loss == "mse":
        off = p - targets
        return (off * off).mean(axis=0), off * (2 / len(off))
    bounded = np.maximum(p, LEAST_PROBABILITY)
    ratio = p / bounded  # 1 down to LEAST_PROBABILITY
    return (targets * ((1 - ratio**2) / 2 - np.log(bounded))).sum(axis=0), -targets * ratio / bounded


def _arrays(result: Any) -> tuple[Array, Array]:
    """The result of a user's loss as two arrays of numbers."""
    try:
        values, slopes = (np.asarray(a, dtype=np.float64) for a in result)
    except (TypeError, ValueError):
        expected = "two arrays of numbers: the loss of every row, and its derivatives with respect to p"
        raise TacitError(f"loss returned a {type(result).__name__}, expected {expected}") from None
    return values, slopes

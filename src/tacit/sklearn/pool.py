"""Several networks that predict together: the mean of their calibrated posteriors, with weights from rows held out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from tacit.base.floats import Floats
from tacit.query.tac import TAC

LEAST = 1e-9  # of probabilities that are calibrated
POWERS = (0.02, 3.0)  # of probabilities
TRUST = 2.0  # in a power of 1: what the square of another's logarithm costs, against the log-losses of all rows
EVEN_ROWS = 5.0  # that count as if each network had predicted them equally well
STEPS = 200  # of finding weights
LEAST_WEIGHT = 0.02  # a network with less is left out


@dataclass(frozen=True, eq=False)
class Member:
    """A network of a pool: its share, and the power that its probabilities are taken to."""

    tac: TAC
    encoder: Callable[[Any], dict[str, Any]]
    weight: float = 1.0
    power: float = 1.0

    def posterior(self, table: Any) -> Floats:
        """The calibrated posterior (rows, classes)."""
        posterior = self.tac.posterior(self.encoder(table))
        posterior = np.broadcast_to(posterior, (table.shape[0], posterior.shape[1]))
        return posterior if self.power == 1.0 else calibrated(np.log(np.maximum(posterior, LEAST)), self.power)


def pooled(members: Sequence[Member], table: Any) -> Floats:
    """The weighted mean of the members' posteriors."""
    return np.asarray(sum(member.weight * member.posterior(table) for member in members))


def calibrated(logs: Floats, power: float) -> Floats:
    """Probabilities proportional to a power of those with these logarithms, up to a constant for each row.

    >>> calibrated(np.log([[0.8, 0.2]]), 0.5).round(2)
    array([[0.67, 0.33]])
    """
    least = log_softmax(logs, axis=1)
    return np.asarray(np.exp(log_softmax(power * np.maximum(least, np.log(LEAST)), axis=1)))


def best_power(logs: Floats, targets: Floats, weights: Floats) -> float:
    """The power with the least log-loss, held to 1 where rows are few."""
    trust = TRUST / float(weights.sum())

    def loss(log_power: float) -> float:
        return log_loss(calibrated(logs, float(np.exp(log_power))), targets, weights) + trust * float(log_power) ** 2

    return float(np.exp(minimize_scalar(loss, bounds=np.log(POWERS), method="bounded", options={"xatol": 0.02}).x))


def log_loss(posterior: Floats, targets: Floats, weights: Floats) -> float:
    """The mean log-loss of some rows."""
    p = (posterior * targets).sum(axis=1)
    return float(weights @ -np.log(np.maximum(p, LEAST)) / weights.sum())


def best_weights(posteriors: Sequence[Floats], targets: Floats, weights: Floats) -> Floats:
    """The weights of the posteriors in their mean with the least log-loss, held to equal ones where rows are few."""
    p = np.stack([np.maximum((one * targets).sum(axis=1), LEAST) for one in posteriors])
    found = np.full(len(p), 1 / len(p))
    even = EVEN_ROWS / len(p)
    for _ in range(STEPS):
        shares = found[:, None] * p
        found = even + (shares / shares.sum(axis=0)) @ weights
        found /= found.sum()
    kept = np.where(found >= min(LEAST_WEIGHT, found.max()), found, 0.0)
    return np.asarray(kept / kept.sum())

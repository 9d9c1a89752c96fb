"""What no selection can repair: a lower bound on the loss of networks that lack an edge into a testing node.

Without the edge, the node and all below it reach the rest of the network through the remaining parent U alone. Whatever
tables are selected there, and by whatever rule, the answer is a mixture of P(query | U = u, all other findings): the
findings at and below the node only choose how much each u counts. Here they may choose freely, row by row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tacit

Floats = NDArray[np.float64]
STEPS = 300


@dataclass(frozen=True)
class Limit:
    """Mean losses in nats, each expected under the true network given a row's findings."""

    truth: float
    wrong: float  # the network without the edge
    floor: float  # no selection comes below

    @property
    def cost(self) -> float:
        """What the missing edge costs."""
        return self.wrong - self.truth

    @property
    def repairable(self) -> float:
        """The share of it that selection can repair at most."""
        return (self.wrong - self.floor) / self.cost


def limit(truth: tacit.Network, wrong: tacit.Network, query: str, node: str, columns: Mapping[str, Any]) -> Limit:
    """How much a choice of tables at `node` could repair in `wrong`, the true network without an edge into it."""
    below = {node, *wrong.descendants(node)}
    (parent,) = wrong.parents(node)
    entries = {p for name in below - {node} for p in wrong.parents(name)}
    if query in below or not entries <= below:
        raise ValueError(f"{node!r} and what is below it must touch the rest of the network in {parent!r} alone")
    p = truth.posterior(query, columns)
    above = {name: column for name, column in columns.items() if name not in below}
    joint = tacit.compile(truth, [query, parent], list(above)).posterior(above)  # (rows, query, parent)
    given = joint.sum(axis=1, keepdims=True)
    alone = np.broadcast_to(joint.sum(axis=2, keepdims=True), joint.shape)  # in place of a state that is impossible
    parts = np.divide(joint, given, out=alone.copy(), where=given > 0)
    return Limit(
        truth=cross_entropy(p, p), wrong=cross_entropy(p, wrong.posterior(query, columns)),
        floor=float(least_loss(p, parts).mean()),
    )  # fmt: skip


def cross_entropy(p: Floats, q: Floats) -> float:
    """The mean loss of answers q where p is true."""
    return float(-(p * np.log(np.maximum(q, 1e-300))).sum(axis=1).mean())


def least_loss(p: Floats, parts: Floats, steps: int = STEPS) -> Floats:
    """A lower bound on the cross entropy of p (rows, states) with any mixture of parts (rows, states, parts).

    EM finds the best mixture m. With any other m', the logarithm of m'/m has by Jensen's inequality a mean of at most
    log max_u sum(p parts_u / m), so that the bound holds wherever EM stops.

    >>> p, parts = np.array([[0.5, 0.5]]), np.array([[[0.9, 0.7], [0.1, 0.3]]])
    >>> least_loss(p, parts).round(4).tolist() == np.round([-np.log(0.7 * 0.3) / 2], 4).tolist()
    True
    """
    weights = np.full((len(p), parts.shape[2]), 1 / parts.shape[2])
    for _ in range(steps):
        weights *= _growth(p, parts, weights)
    mixture = np.einsum("rsu,ru->rs", parts, weights)
    loss = -np.where(p > 0, p * np.log(np.maximum(mixture, 1e-300)), 0).sum(axis=1)
    return np.asarray(loss - np.log(_growth(p, parts, weights).max(axis=1)))


def _growth(p: Floats, parts: Floats, weights: Floats) -> Floats:
    """By what EM multiplies each weight."""
    mixture = np.einsum("rsu,ru->rs", parts, weights)
    return np.asarray(np.einsum("rs,rsu->ru", p / np.maximum(mixture, 1e-300), parts))

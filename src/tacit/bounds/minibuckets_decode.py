"""Where the distributions of a cutset start: at beliefs, or at states that are probable together.

The derivatives of an upper bound estimate posteriors. Where factors are 0, a product of these distributions would be
impossible; so states are fixed a few variables at a time, the surest first, and beliefs are computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.bounds.minibuckets_cutset import Cutset, Distributions
from tacit.bounds.minibuckets_pass import Parameters, Passed, forward, reverse
from tacit.bounds.minibuckets_plan import Plan

ROUNDS = 8  # in which states are fixed


def upper_and_start(
    plan: Plan, tables: Sequence[Floats], logs: Sequence[Floats], parameters: Parameters, cutset: Cutset, rows: int
) -> tuple[Passed, Distributions]:
    """The upper bounds of some rows, and distributions of their cutset to start from."""
    names = list(cutset.cards)
    place = {name: v for v, name in enumerate(plan.order)}
    logs = list(logs)
    passed = first = forward(plan, tables, logs, parameters, keep=True)
    fixed = np.zeros((len(names), rows), dtype=bool)
    rounds = min(ROUNDS, len(names)) if cutset.zeros else 0
    beliefs: Distributions = {}
    for left in range(rounds, -1, -1):
        derivatives = reverse(plan, parameters, passed).likelihoods
        beliefs = {name: np.broadcast_to(derivatives[place[name]], (card, rows)) for name, card in cutset.cards.items()}
        if not left:
            break
        chosen = _surest(np.stack([belief.max(axis=0) for belief in beliefs.values()]), fixed, left)
        for name, own in zip(names, chosen, strict=True):
            logs[place[name]] = _fixed(logs[place[name]], beliefs[name].argmax(axis=0), own)
        fixed |= chosen
        passed = forward(plan, tables, logs, parameters, keep=True)
    return first, {name: _distribution(belief) for name, belief in beliefs.items()}


def _surest(certainty: Floats, fixed: NDArray[np.bool_], left: int) -> NDArray[np.bool_]:
    """The variables of each row to be fixed now, if so many rounds are left."""
    count = -(-int((~fixed).sum(axis=0).max(initial=0)) // left)
    order = np.argsort(np.where(fixed, np.inf, -certainty), axis=0, kind="stable")[:count]
    chosen = np.zeros(fixed.shape, dtype=bool)
    np.put_along_axis(chosen, order, True, axis=0)
    return chosen & ~fixed


def _fixed(logs: Floats, states: NDArray[np.intp], rows: NDArray[np.bool_]) -> Floats:
    """Logarithms of likelihoods that leave one state, in some rows."""
    other = np.arange(len(logs))[:, None] != states
    return np.where(other & rows, -np.inf, logs)


def _distribution(belief: Floats) -> Floats:
    """A belief without rounding; of impossible rows, any distribution."""
    positive = np.maximum(belief, 0.0)
    total = positive.sum(axis=0)
    return np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / len(belief))

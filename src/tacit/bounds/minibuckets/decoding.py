"""Upper bounds, whose shifts are improved row by row; and where the distributions of a cutset start.

They start at beliefs, the derivatives of an upper bound, which estimate posteriors. Where factors are 0, a product of
these distributions would be impossible; so states are fixed a few variables at a time, the surest first, and beliefs
are computed anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.bounds.minibuckets.cutset import Cutset, Distributions
from tacit.bounds.minibuckets.passes import Parameters, Passed, forward, matched, reverse
from tacit.bounds.minibuckets.plan import Plan

ROUNDS = 8  # in which states are fixed
STEP = 0.5  # of the shifts: all of them change at once, and would go too far


class Run(NamedTuple):
    """A forward pass with some parameters."""

    parameters: Parameters
    passed: Passed


class Bound(NamedTuple):
    """The lowest upper bounds found, (rows,), safe against rounding; and the passes before and after all changes."""

    high: Floats
    first: Run
    last: Run


def upper_bound(
    plan: Plan, tables: Sequence[Floats], logs: Sequence[Floats], parameters: Parameters, matches: int
) -> Bound:
    """The upper bounds of some rows; `matches` times, their shifts are changed such that beliefs match better."""
    first = last = Run(parameters, forward(plan, tables, logs, parameters, keep=True))
    high = first.passed.result + first.passed.error
    for _ in range(0 if plan.exact else matches):
        changed = matched(plan, last.parameters, reverse(plan, *last), STEP)
        last = Run(changed, forward(plan, tables, logs, changed, keep=True))
        high = np.minimum(high, last.passed.result + last.passed.error)
    return Bound(high, first, last)


def first_distributions(
    plan: Plan, tables: Sequence[Floats], logs: Sequence[Floats], bound: Bound, cutset: Cutset, rows: int
) -> list[Distributions]:
    """Distributions of a cutset to start from; coordinate ascent may lead to several local optima."""
    if cutset.zeros:
        return [_decoded(plan, tables, logs, bound.last, cutset, rows)]
    runs = [bound.last] if bound.first is bound.last else [bound.first, bound.last]
    return [_distributions(_beliefs(plan, run, cutset, rows)) for run in runs]


def _decoded(
    plan: Plan, tables: Sequence[Floats], logs: Sequence[Floats], run: Run, cutset: Cutset, rows: int
) -> Distributions:
    """States that are fixed a few at a time."""
    names = list(cutset.cards)
    place = {name: v for v, name in enumerate(plan.order)}
    logs, rounds = list(logs), min(ROUNDS, len(names))
    fixed = np.zeros((len(names), rows), dtype=bool)
    for left in range(rounds, 0, -1):
        beliefs = _beliefs(plan, run, cutset, rows)
        chosen = _surest(np.stack([belief.max(axis=0) for belief in beliefs.values()]), fixed, left)
        for name, own in zip(names, chosen, strict=True):
            logs[place[name]] = _fixed(logs[place[name]], beliefs[name].argmax(axis=0), own)
        fixed |= chosen
        run = run._replace(passed=forward(plan, tables, logs, run.parameters, keep=True))
    return _distributions(_beliefs(plan, run, cutset, rows))


def _beliefs(plan: Plan, run: Run, cutset: Cutset, rows: int) -> Distributions:
    place = {name: v for v, name in enumerate(plan.order)}
    found = reverse(plan, *run).likelihoods
    return {name: np.broadcast_to(found[place[name]], (card, rows)) for name, card in cutset.cards.items()}


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


def _distributions(beliefs: Distributions) -> Distributions:
    """Beliefs without rounding; of impossible rows, any distributions."""
    found = {}
    for name, belief in beliefs.items():
        positive = np.maximum(belief, 0.0)
        total = positive.sum(axis=0)
        found[name] = np.where(total > 0, positive / np.where(total > 0, total, 1.0), 1 / len(belief))
    return found

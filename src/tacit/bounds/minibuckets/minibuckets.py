"""Certain bounds of the logarithm of the probability of evidence, by weighted mini-buckets.

Q. Liu, A. Ihler, "Bounding the partition function using Hoelder's inequality", ICML 2011.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.factor_list import FactorList
from tacit.bounds.minibuckets.cutset import Cutset
from tacit.bounds.minibuckets.decoding import first_distributions, upper_bound
from tacit.bounds.minibuckets.passes import Parameters, forward
from tacit.bounds.minibuckets.plan import Plan, plan_of

NEGATIVE = -0.5  # the weights of all parts but the first, in a lower bound before training
SMALLEST = 16  # entries of a table
CHUNK = 2**18  # entries of the largest table times rows that are computed at once: it stays in the cache
FEW = 32  # states of a cutset up to which all are tried, ...
MAX_TRIED = 128  # ... and where factors have zeros
KEPT = 2**24  # entries of all tables times rows that are kept at once


@dataclass(frozen=True)
class MiniBuckets:
    """Bounds of log(sum over all states of the product of factors and likelihoods).

    `upper` and `lower` may be any parameters that fit the plan and its inequalities (`passes`): the bounds
    are certain with all of them, only closer with some. A lower bound is the better one of two: by mini-buckets, and by
    a cutset, which is the only one that copes with zeros. For each row, shifts of the upper bound are improved
    `matches` times, and the distributions of the cutset `sweeps` times.

    >>> import tacit
    >>> from tacit.bounds.factor_list import factor_list
    >>> from tacit.compiler.question import Question
    >>> factors = factor_list(tacit.examples.asia(), Question(("lung",), ("xray", "dysp")))
    >>> findings = {"xray": np.array([[1.0, 0.0]]), "dysp": np.array([[1.0, 0.0]])}
    >>> low, high = MiniBuckets.of(factors, size=4).log_bounds(findings)
    >>> exact = tacit.compile(tacit.examples.asia(), None, evidence=["xray", "dysp"]).log_evidence(findings)
    >>> bool((low <= exact).all() and (exact <= high).all() and (high - low < 0.5).all())
    True
    """

    factors: FactorList
    plan: Plan
    upper: Parameters
    lower: Parameters
    cutset: Cutset
    matches: int = 3  # more of them, and of the sweeps, gain little
    sweeps: int = 3

    @classmethod
    def of(cls, factors: FactorList, size: int, total: float = np.inf) -> MiniBuckets:
        """Mini-buckets whose tables have at most `size` entries, with parameters that nothing was learned for.

        They are smaller, down to `SMALLEST`, where all tables together would have more than `total` entries.
        """
        scopes = [factor.scope for factor in factors.factors]
        plan = plan_of(factors.cards, scopes, size)
        while plan.entries > total and size > SMALLEST:
            size = max(size // 2, SMALLEST)
            plan = plan_of(factors.cards, scopes, size, plan.order)
        upper, lower = (first_parameters(plan, upper) for upper in (True, False))
        return cls(factors, plan, upper, lower, Cutset.of(factors, plan.largest if plan.exact else size))

    def log_bounds(self, likelihoods: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Bounds of the logarithm, each (rows,); both are -inf where it is certain that the evidence is impossible.

        `likelihoods` are (rows, states), for the states that `factors.states` has left of each variable.
        """
        rows = max((len(table) for table in likelihoods.values()), default=1)
        low, high = np.empty(rows), np.empty(rows)
        step = max(1, min(CHUNK // self.plan.largest, KEPT // self.plan.entries))
        for start in range(0, rows, step):
            chunk = slice(start, min(start + step, rows))
            part = {name: table[chunk] for name, table in likelihoods.items()}
            low[chunk], high[chunk] = self._bounds(log_likelihoods(self.plan, part), chunk.stop - start)
        return low, high

    def joint_bounds(self, name: str, likelihoods: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """The bounds for each state of one variable, together with the evidence: (rows, states)."""
        card = self.factors.cards[name]
        rows = max((len(table) for table in likelihoods.values()), default=1)
        each = {other: np.repeat(table, card, axis=0) for other, table in likelihoods.items()}
        each[name] = each.get(name, 1.0) * np.tile(np.eye(card), (rows, 1))
        low, high = self.log_bounds(each)
        return low.reshape(rows, card), high.reshape(rows, card)

    def _bounds(self, logs: tuple[Floats, ...], rows: int) -> tuple[Floats, Floats]:
        tables = log_tables(self.factors, self.plan, upper=True)
        above = upper_bound(self.plan, tables, logs, self.upper, self.matches)
        below = forward(self.plan, log_tables(self.factors, self.plan, upper=False), logs, self.lower)
        low = below.result - below.error
        if self.cutset.cards:
            own = dict(zip(self.plan.order, logs, strict=True))
            starts = first_distributions(self.plan, tables, logs, above, self.cutset, rows)
            if sum(self.cutset.cards.values()) <= (MAX_TRIED if self.cutset.zeros else FEW):
                starts.append(self.cutset.searched(own, starts[-1]))
            for first in starts:
                value, error = self.cutset.value(own, self.cutset.improved(own, first, self.sweeps))
                low = np.maximum(low, value - error)
        return np.where(above.high == -np.inf, -np.inf, low), above.high


def first_parameters(plan: Plan, upper: bool) -> Parameters:
    """Shifts of 0, and equal weights; of a lower bound, the weight of the first part is positive."""
    weights, shifts = list[float](), list[Floats]()
    for bucket in plan.buckets:
        parts = len(bucket.parts)
        rest = 1 / parts if upper else NEGATIVE
        weights += [1 - (parts - 1) * rest, *[rest] * (parts - 1)]
        shifts.append(np.zeros((parts, *plan.shape(bucket.shared), 1)))
    return Parameters(tuple(weights), tuple(shifts))


def log_tables(factors: FactorList, plan: Plan, upper: bool) -> tuple[Floats, ...]:
    """The logarithms of the factors, with axes in the order of elimination, and one for the rows."""
    place = {name: i for i, name in enumerate(plan.order)}
    tables = []
    for factor in factors.factors:
        axes = np.argsort([place[name] for name in factor.scope])
        table = (factor.high if upper else factor.low).transpose(axes.astype(int))
        tables.append(_log(table)[..., None])
    return tuple(tables)


def log_likelihoods(plan: Plan, likelihoods: Mapping[str, Floats]) -> tuple[Floats, ...]:
    """The logarithms of the likelihoods of each variable of an order, (states, rows); zeros if there are none."""
    return tuple(
        _log(np.ascontiguousarray(likelihoods[name].T)) if name in likelihoods else np.zeros((card, 1))
        for name, card in zip(plan.order, plan.cards, strict=True)
    )


def _log(table: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))

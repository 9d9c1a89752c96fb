"""A forward pass over mini-buckets, which bounds a sum of products, and the reverse pass, which differentiates it.

All is on the scale of logarithms. Tables have one axis for each variable of their scope, in the order of elimination,
and the axis of the rows last, whose length is 1 where they are the same in all rows.

Let a bucket have the mini-buckets F_1, F_2, ... and the measure m. Hoelder's inequality says that

    sum_x m(x) F_1(x) F_2(x) ... <= product over r of (sum_x m(x) F_r(x)^(1/w_r))^w_r    for w_r > 0 that sum to 1,

and the reverse one that it is >= where one weight is positive and the others are negative. Nothing else is asked of the
weights, nor of shifts: functions of the shared scope that are added to the logarithms and sum to 0 over r.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.minibuckets.plan import Plan, Scope

ROUNDING = float(np.finfo(np.float64).eps) / 2
ULPS = 8  # units of rounding that NumPy's exp and log may be off by: they are good to 4 ulp


@dataclass(frozen=True)
class Parameters:
    """What may be chosen freely: a weight for each mini-bucket, and for each bucket its shifts.

    These have the shape (parts, *shared, rows), where the last axis may have the length 1, as in all tables.
    """

    weights: tuple[float, ...]
    shifts: tuple[Floats, ...]


@dataclass(frozen=True)
class Passed:
    """The result of a forward pass, (rows,), and how far off rounding may have put it.

    What led to it is there if asked for: of each mini-bucket, the distribution of its variable given the rest of its
    scope, and the derivative of its message by its weight, 0 where there is no choice.
    """

    result: Floats
    error: Floats
    conditionals: tuple[Floats, ...]
    by_weight: tuple[Floats, ...]


@dataclass(frozen=True)
class Derivatives:
    """Derivatives of a result: by the weights, (parts, rows); by the shifts, (parts, *shared, rows) of each bucket; by
    the logarithms of the likelihoods, (states, rows) of each variable, which estimate its posterior; and by those of
    the factors, likewise.
    """

    weights: tuple[Floats, ...]
    shifts: tuple[Floats, ...]
    likelihoods: tuple[Floats, ...]
    factors: tuple[Floats, ...]


def forward(
    plan: Plan,
    factors: Sequence[Floats],
    likelihoods: Sequence[Floats],
    parameters: Parameters,
    keep: bool = False,
    slopes: bool = False,
) -> Passed:
    """The bound of log(sum over all states of the product of the factors and likelihoods), by row.

    `factors` and `likelihoods` are logarithms; there is one of the latter for each variable of the order. With `keep`,
    it can be differentiated, and with `slopes` also by the weights.
    """
    run = _Forward(plan, factors, likelihoods, parameters, keep, slopes)
    for v in range(len(plan.order)):
        run.eliminate(v)
    return run.passed()


class _Forward:
    def __init__(
        self,
        plan: Plan,
        factors: Sequence[Floats],
        likelihoods: Sequence[Floats],
        parameters: Parameters,
        keep: bool,
        slopes: bool,
    ) -> None:
        self.plan, self.parameters, self.keep, self.slopes = plan, parameters, keep, slopes
        self.likelihoods = likelihoods
        self.tables: list[Floats] = list(factors)
        self.scopes: list[Scope] = [*plan.scopes, *(part.scope[1:] for part in plan.parts)]
        self.sizes = [_magnitude(table) for table in factors]  # of the largest finite number of each row
        # the logarithms of factors and likelihoods are rounded, too
        self.error = ULPS * ROUNDING * sum((*self.sizes, *map(_magnitude, likelihoods)), np.zeros(1))
        self.conditionals: list[Floats] = []
        self.by_weight: list[Floats] = []

    def eliminate(self, v: int) -> None:
        bucket = self.plan.buckets[v]
        measure, size = self.likelihoods[v], _magnitude(self.likelihoods[v])
        for number in bucket.measure:
            measure, size = measure + self.tables[number], size + self.sizes[number]
        impossible = measure == -np.inf
        for r, i in enumerate(bucket.parts):
            shift = self.parameters.shifts[v][r] if len(bucket.parts) > 1 else None
            self._part(i, measure, impossible, size, shift)

    def _part(self, i: int, measure: Floats, impossible: Floats, size: Floats, shift: Floats | None) -> None:
        part, weight = self.plan.parts[i], self.parameters.weights[i]
        own, card = len(part.scope), self.plan.cards[part.scope[0]]
        table, total = np.zeros((1,) * (own + 1)), abs(weight) * size
        if shift is not None:
            shared = self.plan.buckets[part.scope[0]].shared
            table = table + self._spread(shift, shared, part.scope)
            total = total + _magnitude(shift)
        for number in part.inputs:
            table = table + self._spread(self.tables[number], self.scopes[number], part.scope)
            total = total + self.sizes[number]
        if weight != 1:
            table = table / weight
        ahead = (slice(None), *[None] * (own - 1))
        with np.errstate(invalid="ignore"):  # 0 to a negative power, times 0
            table = table + measure[ahead]
        if weight < 0:
            np.copyto(table, -np.inf, where=impossible[ahead])
        self._reduce(table, weight, measure[ahead] if self.slopes and shift is not None else None)
        # Sums of inputs, and their quotient and product with the weight: each is off by a part of `total`. An
        # exponential is off by `ULPS`, and by its argument times its rounding, which is below 1; then comes a sum of
        # `card` terms, whose logarithm is at most log(card), and is rounded.
        terms = len(part.inputs) + 8
        self.error = self.error + ROUNDING * (2 * terms * total + abs(weight) * ((ULPS + 4) * card + 4 * ULPS))
        self.sizes.append(_magnitude(self.tables[-1]))

    def _reduce(self, table: Floats, weight: float, measure: Floats | None) -> None:
        """weight * log(sum of exp(table)); where all is impossible, or 0 to a negative power occurs: -inf."""
        top = table.max(axis=0)
        endless = np.isinf(top)
        top[endless] = 0.0
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            terms = np.exp(table - top)
            total = terms.sum(axis=0)
            logs = np.log(total)
            message = weight * (logs + top)
            message[endless] = -np.inf
            if self.keep:
                share = terms / total
                share[:, endless] = 0.0
                self.conditionals.append(share)
                if measure is None:
                    self.by_weight.append(np.zeros((1,) * message.ndim))
                else:
                    deviation = np.where(share > 0, share * (table - top - logs - measure), 0.0)
                    self.by_weight.append(-deviation.sum(axis=0))
        self.tables.append(message)

    def _spread(self, table: Floats, scope: Scope, over: Scope) -> Floats:
        """A table with axes of length 1 for what it does not have of a larger scope."""
        cards = [self.plan.cards[place] if place in scope else 1 for place in over]
        return table.reshape(*cards, table.shape[-1])

    def passed(self) -> Passed:
        result, error = np.zeros(1), self.error
        for number in self.plan.scalars:
            result = result + self.tables[number]
            error = error + ROUNDING * len(self.plan.scalars) * self.sizes[number]
        return Passed(result, 2 * error, tuple(self.conditionals), tuple(self.by_weight))


def reverse(plan: Plan, parameters: Parameters, passed: Passed) -> Derivatives:
    """The derivatives of what a forward pass with `keep` has computed."""
    factors, rows = len(plan.scopes), passed.result.shape[-1]
    scopes = [*plan.scopes, *(part.scope[1:] for part in plan.parts)]
    tables: list[Floats] = [np.ones(rows)] * len(scopes)  # the derivatives by factors and messages
    weights, shifts, likelihoods = list[Floats](), list[Floats](), list[Floats]()
    for bucket in reversed(plan.buckets):
        measure: Floats = np.zeros(1)
        moved = []
        for i in bucket.parts:
            part, seed = plan.parts[i], tables[factors + i]
            belief = passed.conditionals[i] * seed
            weights.append(_marginal(passed.by_weight[i] * seed, part.scope[1:], ()))
            moved.append(_marginal(belief, part.scope, bucket.shared))
            measure = measure + parameters.weights[i] * _marginal(belief, part.scope, part.scope[:1])
            for number in part.inputs:
                tables[number] = _marginal(belief, part.scope, scopes[number])
        for number in bucket.measure:
            tables[number] = measure
        shifts.append(np.stack(moved))
        likelihoods.append(measure)
    by_part = tuple(_by_part(plan, weights))
    return Derivatives(by_part, tuple(shifts[::-1]), tuple(likelihoods[::-1]), tuple(tables[:factors]))


def matched(plan: Plan, parameters: Parameters, derivatives: Derivatives, step: float) -> Parameters:
    """Shifts of each row such that parts agree more on what they share, which mostly lowers upper bounds."""
    shifts = list(parameters.shifts)
    for v, bucket in enumerate(plan.buckets):
        if len(bucket.parts) > 1:
            beliefs = derivatives.shifts[v]
            weights = np.array([parameters.weights[i] for i in bucket.parts]).reshape(-1, *[1] * (beliefs.ndim - 1))
            known = (beliefs > 0).all(axis=0)
            logs = np.log(np.where(known, beliefs, 1.0))
            change = weights * ((weights * logs).sum(axis=0) - logs)
            shifts[v] = shifts[v] + step * (change - change.mean(axis=0))
    return Parameters(parameters.weights, tuple(shifts))


def _by_part(plan: Plan, weights: Sequence[Floats]) -> list[Floats]:
    """What was collected for the last bucket first, in the order of the mini-buckets."""
    order = [i for bucket in reversed(plan.buckets) for i in bucket.parts]
    return [weights[place] for place in np.argsort(order)]


def _marginal(table: Floats, scope: Scope, over: Scope) -> Floats:
    """The sum over all of a scope but some variables."""
    return np.asarray(table.sum(axis=tuple(axis for axis, place in enumerate(scope) if place not in over)))


def _magnitude(table: Floats) -> Floats:
    """The largest absolute value of a row that is finite; 0 if there is none."""
    entries = table.reshape(-1, table.shape[-1])
    least = entries.min(axis=0)
    if np.isinf(least).any():
        least = np.where(np.isinf(entries), 0.0, entries).min(axis=0)
    most = entries.max(axis=0)
    return np.asarray(np.maximum(np.abs(least), np.abs(np.where(np.isinf(most), 0.0, most))))

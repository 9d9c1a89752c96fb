"""Certain lower bounds by a cutset: variables without which the rest can be eliminated exactly.

Let C be the cutset, T all other variables, and q a product of distributions of the variables in C. Jensen's inequality
says that

    log sum_{c, t} f(c, t) >= H(q) + log sum_t exp(sum_c q(c) log f(c, t)),

whatever q is: where it leaves one state of each variable, this is the mass of a part of all states. Factors of
variables in C are replaced by geometric means, which are 0 where one of their numbers is. Each row has a q of its own;
it is improved by coordinate ascent.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.bounds.factor_list import FactorList
from tacit.bounds.minibuckets.passes import ROUNDING, ULPS, Derivatives, Parameters, Passed, forward, reverse
from tacit.bounds.minibuckets.plan import Plan, plan_of

Distributions = dict[str, Floats]  # of the variables of a cutset: (states, rows)


@dataclass(frozen=True)
class CutFactor:
    """The logarithms of a factor, 0 where it is 0, and where that is: axes of the cutset first, then of the rest."""

    inside: tuple[str, ...]
    logs: Floats
    zeros: NDArray[np.bool_]

    @property
    def rounds(self) -> float:
        """How many roundings of its largest logarithm its geometric mean has."""
        return 2 * self.logs.size + 4 * len(self.inside) + 2 * ULPS


@dataclass(frozen=True)
class Cutset:
    """A cutset, and how the rest is eliminated.

    `cut` are the factors that have variables in it, by number; `tables` the logarithms of all others.
    """

    cards: dict[str, int]
    plan: Plan
    parameters: Parameters
    cut: dict[int, CutFactor]
    tables: dict[int, Floats]

    @classmethod
    def of(cls, factors: FactorList, size: int) -> Cutset:
        """A cutset without which no table has more than `size` entries, where a factor alone does not."""
        scopes = [factor.scope for factor in factors.factors]
        names, order = cutset(factors.cards, scopes, size)
        rest = {name: factors.cards[name] for name in order}
        outside = [tuple(name for name in scope if name in rest) for scope in scopes]
        plan = plan_of(rest, outside, size, order)
        assert plan.exact
        place = {name: i for i, name in enumerate(order)}
        cut, tables = {}, {}
        for number, factor in enumerate(factors.factors):
            inside = tuple(name for name in factor.scope if name in names)
            axes = [*inside, *sorted(outside[number], key=place.__getitem__)]
            table = factor.low.transpose([factor.scope.index(name) for name in axes])
            if inside:
                zeros = table == 0
                cut[number] = CutFactor(inside, np.log(np.where(zeros, 1.0, table)), zeros)
            else:
                with np.errstate(divide="ignore"):
                    tables[number] = np.log(table)[..., None]
        ones = Parameters((1.0,) * len(plan.parts), tuple(np.zeros(1) for _ in plan.buckets))
        return cls({name: factors.cards[name] for name in names}, plan, ones, cut, tables)

    @property
    def zeros(self) -> bool:
        """Whether factors of the cutset have zeros: then most products of distributions are impossible."""
        return any(factor.zeros.any() for factor in self.cut.values())

    def value(self, likelihoods: Mapping[str, Floats], q: Distributions) -> tuple[Floats, Floats]:
        """The lower bound of some distributions, and how far off rounding may have put it: (rows,) each."""
        passed, outer, error = self._passed(likelihoods, q, keep=False)
        return passed.result + outer, 2 * (passed.error + error)

    def improved(self, likelihoods: Mapping[str, Floats], q: Distributions, sweeps: int) -> Distributions:
        """Distributions whose bounds are at least as good: `sweeps` times, each is set to the best, given all else.

        Rows whose bound is -inf keep theirs.
        """
        for _ in range(sweeps):
            passed, _, _ = self._passed(likelihoods, q, keep=True)
            possible = np.isfinite(passed.result)
            q = self._ascend(likelihoods, q, reverse(self.plan, self.parameters, passed), possible)
        return q

    def searched(self, likelihoods: Mapping[str, Floats], q: Distributions) -> Distributions:
        """Distributions that leave one state each: one variable after the other gets the best one, given all others.

        Coordinate ascent cannot do that: where factors are 0, all other states are impossible until the rest changes.
        """
        q = dict(q)
        for name, card in self.cards.items():
            states = np.eye(card)[:, :, None]
            shape = (card, q[name].shape[1])
            options = [q | {name: np.broadcast_to(states[state], shape)} for state in range(card)]
            best = np.stack([self.value(likelihoods, own)[0] for own in options]).argmax(axis=0)
            q[name] = np.broadcast_to(np.eye(card)[:, best], shape)
        return q

    def _passed(self, likelihoods: Mapping[str, Floats], q: Distributions, keep: bool) -> tuple[Passed, Floats, Floats]:
        """A forward pass over the rest, what the cutset adds to it, and the rounding of that and of the factors."""
        tables: list[Floats] = []
        outer, error = np.zeros(1), np.zeros(1)
        for number in range(len(self.plan.scopes)):
            if number in self.tables:
                tables.append(self.tables[number])
                continue
            factor = self.cut[number]
            tables.append(_geometric_mean(factor, q))
            error = error + ROUNDING * factor.rounds * float(np.abs(factor.logs).max(initial=0.0))
        for name, card in self.cards.items():
            used = q[name] > 0
            evidence, entropy = np.where(used, likelihoods[name], 0.0), np.log(np.where(used, q[name], 1.0))
            outer = outer + (q[name] * (evidence - entropy)).sum(axis=0)
            size = (_finite(evidence) + _finite(entropy)).max(axis=0) + 1
            # each is a sum of rounded logarithms; it is added to others, and its distribution is rounded
            error = error + ROUNDING * (2 * card + 4 * ULPS + len(self.cards)) * size
        passed = forward(self.plan, tables, [likelihoods[name] for name in self.plan.order], self.parameters, keep)
        return passed, outer, error + 2 * ROUNDING * _finite(passed.result)

    def _ascend(
        self, likelihoods: Mapping[str, Floats], q: Distributions, derivatives: Derivatives, possible: NDArray[np.bool_]
    ) -> Distributions:
        expected = {n: _expected(factor, derivatives.factors[n]) for n, factor in self.cut.items()}
        q = dict(q)
        for name in self.cards:
            scores = likelihoods[name]
            for number, factor in self.cut.items():
                if name in factor.inside:
                    scores = scores + _given(expected[number], factor.inside, q, name)
            q[name] = np.where(possible, _softmax(scores), q[name])
        return q


def cutset(
    cards: Mapping[str, int], scopes: Sequence[Sequence[str]], size: float
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A cutset for tables of so many entries, and an order for all other variables: those of many large tables."""
    plan = plan_of(cards, scopes, np.inf)
    sizes = {v: math.log(card) for v, card in enumerate(plan.cards)}
    clusters = [set(part.scope) for part in plan.parts]
    names = []
    limit = math.log(size) + 1e-9
    while large := [cluster for cluster in clusters if sum(map(sizes.__getitem__, cluster)) > limit]:
        gains: Counter[int] = Counter()
        for cluster in large:
            gains.update(cluster)
        best = max(gains, key=lambda v: (gains[v], -sizes[v], -v))
        for cluster in large:
            cluster.discard(best)
        names.append(best)
    cut = set(names)
    return tuple(plan.order[v] for v in names), tuple(name for v, name in enumerate(plan.order) if v not in cut)


def _geometric_mean(factor: CutFactor, q: Distributions) -> Floats:
    """The expected logarithm over the axes of the cutset: (*rest, rows); -inf where a number that counts is 0."""
    logs, zeros = factor.logs[..., None], factor.zeros[..., None]
    for name in factor.inside:
        weights = q[name].reshape(len(q[name]), *[1] * (logs.ndim - 2), -1)
        logs = (logs * weights).sum(axis=0)
        zeros = np.asarray((zeros & (weights > 0)).any(axis=0))
    return np.where(zeros, -np.inf, logs)


def _expected(factor: CutFactor, belief: Floats) -> Floats:
    """The expected logarithm over all other axes: (*cutset, rows)."""
    axes = tuple(range(len(factor.inside), factor.logs.ndim))
    logs = (factor.logs[..., None] * belief).sum(axis=axes)
    return np.where((factor.zeros[..., None] & (belief > 0)).any(axis=axes), -np.inf, logs)


def _given(expected: Floats, inside: tuple[str, ...], q: Distributions, name: str) -> Floats:
    """The expected logarithm for each state of one variable, over all others of the cutset: (states, rows)."""
    blocked = expected == -np.inf
    logs = np.where(blocked, 0.0, expected)
    for axis in reversed(range(len(inside))):
        if (other := inside[axis]) != name:
            shape = [1] * logs.ndim
            shape[axis], shape[-1] = len(q[other]), -1
            weights = q[other].reshape(shape)
            logs = (logs * weights).sum(axis=axis)
            blocked = (blocked & (weights > 0)).any(axis=axis)
    return np.where(blocked, -np.inf, logs)


def _softmax(scores: Floats) -> Floats:
    """Distributions in proportion to exp(scores); where all are -inf, the first state, as good as any."""
    top = scores.max(axis=0)
    powers = np.exp(scores - np.where(np.isinf(top), 0.0, top))
    powers[0, np.isinf(top)] = 1.0
    return np.asarray(powers / powers.sum(axis=0))


def _finite(table: Floats) -> Floats:
    return np.where(np.isinf(table), 0.0, np.abs(table))

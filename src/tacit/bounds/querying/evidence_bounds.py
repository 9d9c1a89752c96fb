"""Bounds of the probability of the evidence of a query."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.factor_list import FactorList, factor_list
from tacit.bounds.minibuckets.minibuckets import SMALLEST, MiniBuckets
from tacit.bounds.minibuckets.training import trained
from tacit.bounds.querying.chain import Chain
from tacit.compiler.question import Question
from tacit.evidence.column import Column
from tacit.model.factor_graph import FactorGraph
from tacit.model.model import Model
from tacit.query.answers.interval import LogInterval
from tacit.query.asking.options import Limits

OF_STEP = 2**6  # multiply-adds of a step of a window that one entry of a mini-bucket is worth: it is passed many times
SAMPLE, STEPS = 8, 60  # rows and iterations of training
ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class EvidenceBounds:
    """Bounds of log p*(evidence): by mini-buckets, which are trained on made-up evidence, and by the chain rule.

    `alone` are the bounds without evidence, of what is given. `log_scale` is to be added, and may be off by `slack`.
    """

    bounds: MiniBuckets
    chain: Chain
    alone: tuple[float, float]
    log_scale: float
    slack: float

    @classmethod
    def of(cls, net: Model, question: Question, limits: Limits, log_scale: float, slack: float) -> EvidenceBounds:
        """The bounds for the evidence of a question. They are made within the seconds of the limits."""
        half = limits._replace(seconds=limits.seconds / 2)
        factors = factor_list(net, replace(question, query=(), every_node=False))
        untrained = MiniBuckets.of(factors, max(SMALLEST, limits.multiply_adds // OF_STEP), limits.multiply_adds)
        bounds = trained(untrained, _sample(factors), STEPS, half.seconds)
        low, high = bounds.log_bounds({}) if question.given else np.zeros((2, 1))
        return cls(bounds, Chain.of(net, question, half), (float(low[0]), float(high[0])), log_scale, slack)

    def interval(self, columns: Mapping[str, Column], rows: int) -> LogInterval:
        """The interval of rows of evidence. The estimate is its middle."""
        factors, known, outside, most = self.bounds.factors, dict[str, Floats](), np.zeros(rows), np.zeros(rows)
        for name, column in columns.items():
            likelihoods = column.likelihoods()[list(factors.states[name])]
            most = most + _log(likelihoods.max(axis=0))  # the probability of joint states is at most 1
            if name in factors.cards:
                known[name] = np.broadcast_to(likelihoods.T, (rows, len(likelihoods)))
            else:  # one state is left
                outside = outside + _log(likelihoods[0])
        both = [self.bounds.log_bounds(known), self.chain.log_bounds(columns, rows)]
        both[1] = (both[1][0] + self.alone[0], both[1][1] + self.alone[1])
        low = np.maximum(both[0][0], both[1][0]) + outside
        high = np.minimum(np.minimum(both[0][1], both[1][1]) + outside, most)
        slack = self._slack(len(columns), outside, high)
        low, high = np.where(high == -np.inf, high, low) + self.log_scale - slack, high + self.log_scale + slack
        middle = np.where(np.isinf(low), high, (low + np.where(np.isinf(high), low, high)) / 2)
        return LogInterval(low, high, np.clip(middle, low, high))

    def _slack(self, columns: int, outside: Floats, high: Floats) -> Floats:
        """What rounding does to likelihoods that are divided by their sum, and to what is added to the bounds."""
        size = sum(np.where(np.isinf(part), 0.0, np.abs(part)) for part in (outside, high)) + abs(self.log_scale)
        return np.asarray(ROUNDING * (8 * columns + 4 * size) + self.slack)


def log_scale_slack(graph: FactorGraph) -> float:
    """What rounding may have done to the scale of a graph, and to its factors, which were divided by their largest."""
    tops = [float(factor.table.max()) for factor in graph.factors]
    logs = [math.log(top) for top in tops if top > 0] + [math.log(len(graph.states(name))) for name in graph]
    return ROUNDING * sum(4 + abs(log) for log in logs)


def _log(table: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(table))


def _sample(factors: FactorList) -> dict[str, Floats]:
    """Evidence to train with: soft, so that it is possible, on half of the variables that may have any."""
    rng, sample = np.random.default_rng(0), {}
    for name in factors.evidence:
        table = np.exp(2 * rng.normal(size=(SAMPLE, factors.cards[name])))
        table[rng.random(SAMPLE) < 0.5] = 1.0
        table[0] = 1.0
        sample[name] = table / table.max(axis=1, keepdims=True)
    return sample

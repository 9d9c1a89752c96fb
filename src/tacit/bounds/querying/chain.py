"""Bounds of the probability of evidence by the chain rule: each finding is predicted from those before it.

log p(e) = log P(e_1) + log P(e_2 | e_1) + ..., where a window bounds each term. This is close where there are few
findings, or where each is well predicted by what is near it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.posterior_bounds import bounds_of
from tacit.bounds.querying.bounded_cost import WindowCost
from tacit.bounds.querying.ground import Ground
from tacit.bounds.querying.sharpening import STEPS, Sharpening
from tacit.bounds.row_numbers import RowNumbers, numbers_of
from tacit.bounds.window_table import WindowTable
from tacit.bounds.windows import Window
from tacit.compiler.question import Question
from tacit.evidence.column import Column, blocks
from tacit.model.model import Model
from tacit.query.asking.options import Limits

ENTRIES = 2**22  # of a window's table for a block of rows
ROUNDING = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Chain:
    """The evidence variables, in the order of the network, and a window for each. What is `given` has no part here."""

    ground: Ground
    windows: Mapping[str, Window]

    @classmethod
    def of(cls, net: Model, question: Question, limits: Limits) -> Chain:
        """The chain of a question, whose windows are chosen within the seconds of the limits."""
        # what every row observes is open, too, until its turn comes
        ground = Ground(net, Question((), question.evidence, (), question.do, question.given, every_node=True))
        steps = [*(step for step in STEPS if step < limits.multiply_adds), limits.multiply_adds]
        search = Sharpening(lambda name: RowNumbers(ground.around(name)), limits.within, steps, shared=False)
        known = {*question.do, *(name for name, _ in question.given)}
        names = [n for n in net.variables if n in question.evidence and n not in known and n in ground.factors.cards]
        search.all(names, time.monotonic() + limits.seconds)
        return cls(ground, {name: search.windows[name] for name in names if name in search.windows})

    def log_bounds(self, columns: Mapping[str, Column], rows: int) -> tuple[Floats, Floats]:
        """Bounds of the logarithm of the probability of findings, (rows,) each; those with one state left do not count.

        Both are -inf where it is certain that they are impossible.
        """
        low, high = np.zeros(rows), np.zeros(rows)
        before = {name: columns[name] for name in self.ground.question.do if name in columns}
        given = {name for name, _ in self.ground.question.given}
        for name in self.ground.network.variables:
            if name in columns and name in self.ground.factors.cards and name not in before and name not in given:
                likelihoods = columns[name].likelihoods()[list(self.ground.factors.states[name])]
                least, most = _expected(likelihoods, *self._posterior(name, before, rows))
                low, high = low + _log(least), high + _log(most)
                before[name] = columns[name]
        slack = 4 * ROUNDING * (len(columns) + 1) * (1 + np.where(np.isinf(low), 0.0, np.abs(low)))
        return np.where(high == -np.inf, -np.inf, low - slack), high + slack

    def _posterior(self, name: str, before: Mapping[str, Column], rows: int) -> tuple[Floats, Floats]:
        """The interval of a variable's posterior, given some findings: (states, rows); 0 where these are impossible."""
        window, card = self.windows.get(name), self.ground.factors.cards[name]
        if window is None or not rows:  # there was no time to choose one
            return np.zeros((card, rows)), np.ones((card, rows))
        states = max(WindowCost.of(window, self.ground.factors.cards).states, 1)
        parts = []
        for _, block in blocks(before, rows, max(1, ENTRIES // states)):
            numbers = numbers_of(self.ground.around(name), block.columns, block.rows)
            parts.append(bounds_of(WindowTable.of(numbers, window), block.rows)[:2])
        low, high = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
        return np.nan_to_num(low), np.nan_to_num(high)


def _expected(likelihoods: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest expected likelihood over all distributions between two bounds: (rows,) each."""
    likelihoods = np.broadcast_to(likelihoods, low.shape)
    order = np.argsort(likelihoods, axis=0, kind="stable")
    values, low, room = (np.take_along_axis(part, order, axis=0) for part in (likelihoods, low, high - low))
    slack = (4 * len(low) + 8) * ROUNDING
    ends = []
    for states, sign in (
        (slice(None), -1),
        (slice(None, None, -1), 1),
    ):  # to the smallest likelihoods first, or largest
        left = np.maximum(1 - low.sum(axis=0) + sign * slack, 0.0)
        own = room[states]
        taken = np.clip(left - (np.cumsum(own, axis=0) - own), 0.0, own)
        ends.append(((low[states] + taken) * values[states]).sum(axis=0) * (1 + sign * slack))
    return ends[0], ends[1]


def _log(numbers: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(numbers))

"""A query that is too wide for an exact answer: estimates, and intervals that certainly hold the posterior."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NoReturn

import numpy as np

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.progress import Progress
from tacit.base.text import plural
from tacit.bounds.posterior_bounds import Bounds, inside
from tacit.bounds.querying.answering import FEW_ROWS, Answering
from tacit.bounds.querying.bounded_cost import BoundedCost, WindowCost
from tacit.bounds.querying.boxes import Box
from tacit.bounds.querying.evidence_bounds import EvidenceBounds, log_scale_slack
from tacit.bounds.row_numbers import impossible_rows
from tacit.compiler.question import Question
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.factor_graph import FactorGraph, conditioned
from tacit.model.model import Model
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.interval import Interval, LogInterval, warn_wide
from tacit.query.answers.probabilities import Marginals, index_of, wants_labels, with_labels
from tacit.query.asking.asked_query import AskedQuery
from tacit.query.asking.options import (
    Asked,
    CompileOptions,
    Limits,
    checked_given,
    checked_limits,
    checked_query,
    checked_question,
)
from tacit.query.query import OTHER_QUERY
from tacit.query.user_query import ALL_VARIABLES, UserQuery

OF_EXACT = frozenset(  # what queries with exact answers have, beside methods that all of them have
    [
        *("circuit", "compare", "decide", "explain", "filtered", "jointree", "mean", "plan", "program", "quantile"),
        *("selected", "sensitivity", "to_onnx", "worth"),
    ]
)
ANSWERS = (
    *("interval", "posterior", "marginals", "marginal_intervals", "log_evidence", "log_evidence_interval"),
    *("refine", "cost"),
)


class NoExactAnswerError(TacitError, AttributeError):
    """A method that needs an exact answer was asked of a query that is too wide for one."""


class BoundedQuery(AskedQuery):
    """A query that is too wide for exact answers. Made by `tacit.compile` with `within`.

    Its intervals certainly hold the posterior, whatever the evidence, rounding included; its estimates lie inside. They
    come from windows, parts of the network around a variable: given the boundary of a window, nothing further away
    matters, so the extremes over the states of the boundary are bounds.
    """

    exact: bool = False
    """Whether answers are exact: these have intervals."""
    log_scale_slack = 0.0  # what rounding may have done to `log_scale`

    def __init__(
        self,
        net: Model,
        query: Asked,
        question: Question,
        limits: Limits,
        options: CompileOptions,
        refusal: TooLargeError,
        hidden: Collection[str] = (),
    ) -> None:
        super().__init__(net, query, question)
        net.require_numbers()
        self.limits, self.options, self.refusal, self.hidden = limits, options, refusal, hidden
        names = question.query or self.variables
        self._own = Answering(self.network, question if question.query else _of_all(question), names, limits, options)

    @cached_property
    def _everything(self) -> Answering:
        """Windows of all variables."""
        if not self.question.query:
            return self._own
        return Answering(self.network, _of_all(self.question), self.variables, self.limits, self.options)

    def interval(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Interval[Any]:
        """Ends between which the posterior certainly is, and an estimate between them: (rows, states) each.

        Of up to 1,024 rows at once, all evidence has a say in the estimate; of more, which would take long, only that
        in the query's surroundings. The ends are the same either way.

        With `labels`, they have the names of states and rows.
        """
        labels = wants_labels(labels, OTHER_QUERY)
        self.require_query("interval")
        known = self._read(evidence, lazily=True)
        sure = self._interval(known, index_of(evidence, known.rows))
        return sure.labelled() if labels else sure

    def posterior(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Any:
        """The estimate of the posterior, which lies inside its interval: (rows, states). See `interval`.

        Rows whose interval is wider than `within` are counted in one warning.
        """
        sure = self.interval(evidence, labels)
        warn_impossible(np.isnan(np.asarray(sure.low)[:, 0]), "their posterior is NaN")
        warn_wide(sure.width, self.limits.within, "interval(rows)")
        return sure.estimate

    def marginal_intervals(
        self, evidence: EvidenceLike | None = None, labels: bool = False
    ) -> dict[str, Interval[Any]]:
        """The intervals of all variables, by name: see `interval`."""
        labels = wants_labels(labels, ALL_VARIABLES)
        known, everything = self._read(evidence), self._everything
        index, estimates = index_of(evidence, known.rows), everything.estimates(known)
        with Progress("intervals", len(self.variables)) as progress:
            answers = {}
            for name in self.variables:
                bounds = everything.bounds(name, known, estimates.get(name))
                sure = self._whole(everything, name, bounds, known, index)
                answers[name] = sure.labelled() if labels else sure
                progress.advance(1)
        return answers

    def marginals(self, evidence: EvidenceLike | None = None, labels: bool = False) -> dict[str, Any]:
        """The estimates of the posteriors of all variables, each (rows, states): see `posterior`."""
        labels = wants_labels(labels, ALL_VARIABLES)
        known = self._read(evidence)
        sure = self.marginal_intervals(known)
        widths = np.max([own.width for own in sure.values()], axis=0)
        warn_impossible(np.isnan(np.any([own.low[:, 0] for own in sure.values()], axis=0)), "their posteriors are NaN")
        warn_wide(widths, self.limits.within, "marginal_intervals(rows)")
        if not labels:
            return {name: own.estimate for name, own in sure.items()}
        net = self.network
        return Marginals(
            {name: with_labels(own.estimate, [net.variable(name)], evidence) for name, own in sure.items()}
        )

    @cached_property
    def _evidence_bounds(self) -> EvidenceBounds:
        """What bounds the probability of evidence; it takes up to `seconds` to make."""
        scale = self.log_scale, self.log_scale_slack
        return EvidenceBounds.of(self.network, self.question, self.limits, *scale)

    def log_evidence_interval(self, evidence: EvidenceLike | None = None) -> LogInterval:
        """Ends between which log p*(evidence) certainly is, and an estimate between them: (rows,) each.

        Of a factor graph, that is the logarithm of the partition function with the evidence. The first call prepares
        the bounds, for up to `seconds`; they are the same for all evidence.
        """
        known = self._read(evidence)
        return self._evidence_bounds.interval(known.columns, known.rows)

    def log_evidence(self, evidence: EvidenceLike | None = None) -> Floats:
        """The estimate of log p*(evidence) for every row: the middle of `log_evidence_interval`."""
        return self.log_evidence_interval(evidence).estimate

    def refine(
        self, evidence: EvidenceLike | None = None, seconds: float = 10.0, labels: bool = False
    ) -> Interval[Any]:
        """The interval of each row, narrower by so many seconds of further work, and never wider.

        Rows whose interval is wide get the time: larger windows, made for the row, and the intervals of other variables
        that these make sharper. Ctrl-C ends the work, and keeps the best intervals so far. What was found for a row is
        kept: asked again, its interval is at least as narrow.
        """
        labels = wants_labels(labels, OTHER_QUERY)
        checked_limits(None, seconds)
        until = time.monotonic() + seconds
        self.require_query("interval")
        known, name = self._read(evidence), self.question.query[0]
        sure = self._interval(known, index_of(evidence, known.rows))
        low, high = sure.low.copy(), sure.high.copy()
        if self._own.is_open(name):
            self._refine(known, name, (low, high), until)
        estimate = inside(sure.estimate.T, low.T, high.T).T
        refined: Interval[Any] = Interval(low, high, estimate, [self.network.variable(name)], sure.index)
        return refined.labelled() if labels else refined

    def _refine(self, known: Evidence, name: str, ends: tuple[Floats, Floats], until: float) -> None:
        """Narrow the ends of rows in place, the widest first."""
        low, high = ends
        left = list(self._own.ground.factors.states[name])
        wide = np.flatnonzero((high - low).max(axis=1) > self.limits.within).tolist()
        columns = {row: {n: own.block(row, row + 1) for n, own in known.columns.items()} for row in wide}
        for row in wide:
            before = self._own.known_box(name, columns[row])
            low[row, left], high[row, left] = Box(low[row, left], high[row, left]).within(before)
        wide.sort(key=lambda row: -(high - low)[row].max())
        with Progress("refine", len(wide)) as progress:
            for i, row in enumerate(wide):
                now = time.monotonic()
                if now > until:
                    break
                box, ended = self._own.refined(name, columns[row], now + (until - now) / (len(wide) - i))
                low[row, left], high[row, left] = Box(low[row, left], high[row, left]).within(box)
                if ended:
                    break
                progress.advance(1)

    def cost(self) -> BoundedCost:
        """What was left out, where, and what an exact answer would cost."""
        cards = self._own.ground.factors.cards
        windows = {name: WindowCost.of(window, cards) for name, window in self._own.windows.items()}
        return BoundedCost(windows, len(cards), str(self.refusal))

    def _interval(self, known: Evidence, index: Any) -> Interval[Floats]:
        """The interval of the query."""
        own, name = self._own, self.question.query[0]
        estimate = own.estimates(known).get(name) if own.static or known.rows <= FEW_ROWS else None
        return self._whole(own, name, own.bounds(name, known, estimate), known, index)

    def _whole(self, answering: Answering, name: str, bounds: Bounds, known: Evidence, index: Any) -> Interval[Floats]:
        """The interval of a variable over all of its states in the network; NaN where a row is impossible."""
        variable, states = self.network.variable(name), answering.ground.factors.states
        columns = {n: column for n, column in known.columns.items() if n in self.evidence}
        impossible = impossible_rows(states, columns, known.rows) | answering.ground.ruled_out
        whole = []
        for part in bounds:
            array = np.zeros((known.rows, variable.card))
            array[:, list(states[name])] = part.T
            array[np.isnan(part[0]) | impossible] = np.nan
            whole.append(array)
        low, high, estimate = whole
        return Interval(low, high, estimate, [variable], index)

    def __getattr__(self, name: str) -> NoReturn:
        if not name.startswith("_") and (hasattr(UserQuery, name) or name in OF_EXACT):
            remedy = f"it answers {', '.join(ANSWERS)}"
            raise NoExactAnswerError(f"{name} needs an exact answer, and this query is too wide for one; {remedy}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __repr__(self) -> str:
        evidence = plural(len(self.evidence), "evidence variable")
        return f"BoundedQuery(query={self.query!r}, {evidence}, within={self.limits.within:g})"


def bounded(
    net: Model | FactorGraph,
    query: Any,
    evidence: Sequence[str],
    hard: Sequence[str],
    options: CompileOptions,
    limits: Limits,
    refusal: TooLargeError,
) -> BoundedQuery:
    """A query that is too wide, as the refusal says. The other parameters are those of `tacit.compile`."""
    hidden: Collection[str] = ()
    log_scale = slack = 0.0
    if isinstance(net, FactorGraph):
        model, true, log_scale = conditioned(net)
        options = replace(options, given={**checked_given(options.given), **true})
        slack = log_scale_slack(net)
        net, hidden = model, frozenset(true)
    asked = checked_query(net, query)
    options = options.checked(net)
    question = checked_question(net, asked, evidence, hard, options)
    for problem in _unsupported(net, question):
        raise TooLargeError(f"{refusal}; within= does not help here: {problem}") from None
    compiled = BoundedQuery(net, asked, question, limits, options, refusal, hidden)
    compiled.log_scale, compiled.log_scale_slack = log_scale, slack
    return compiled


def _unsupported(net: Model, question: Question) -> list[str]:
    """Why there are no intervals for a question, if so."""
    problems = []
    if len(question.query) > 1:
        problems.append("intervals are of one variable, or of each (query=None)")
    if question.per_row:
        problems.append("intervals are of one network, and rows bring tables along (per_row=)")
    if net.continuous:
        problems.append(
            f"{net.continuous[0]!r} is continuous, and intervals are of networks whose variables have states"
        )
    return problems


def _of_all(question: Question) -> Question:
    """The question about all variables."""
    return Question((), question.evidence, question.hard, question.do, question.given, every_node=True)

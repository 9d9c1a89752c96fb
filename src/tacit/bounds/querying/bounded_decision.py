"""The best action where a network is too wide: intervals of what each action is expected to be worth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.bounds.querying.bounded_query import BoundedQuery, bounded
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label, Variable
from tacit.query.answers.answer import warn_impossible
from tacit.query.answers.probabilities import index_of
from tacit.query.asking.options import CompileOptions, Limits
from tacit.query.decisions.chance_of_values import GOOD, chance_of_values
from tacit.query.decisions.decision import Decision
from tacit.query.network import Network

ROUNDINGS = 8 * float(np.finfo(np.float64).eps)  # of values, relative to the largest ones


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class BoundedDecision(Decision):
    """The action of each row that is estimated to be best. Made by `BoundedDecisionQuery.decide`.

    What an action is expected to be worth certainly lies between `low` and `high`, (rows, actions); `expected` is the
    estimate between them.
    """

    low: Floats
    high: Floats

    @property
    def certain(self) -> NDArray[np.bool_]:
        """Whether no other action can be better than the one named, whatever the exact answer is: (rows,)."""
        rows = np.arange(len(self))
        others = self.high.copy()
        others[rows, self._best] = -np.inf
        return np.asarray(self.low[rows, self._best] >= others.max(axis=1))

    def columns(self) -> dict[str, NDArray[Any]]:
        """A column (rows,) for the action, for what each is expected to be worth, the margin, and `certain`."""
        return {**super().columns(), "certain": self.certain}


class BoundedDecisionQuery:
    """The best action for each row, of a network that is too wide for exact answers. Made by `tacit.compile`.

    That is by `decide` and `within`. Each action has a `BoundedQuery`, whose interval becomes one of what the action is
    expected to be worth.
    """

    exact = False

    def __init__(
        self,
        net: Network,
        decision: str,
        evidence: Sequence[str],
        hard: Sequence[str],
        options: CompileOptions,
        limits: Limits,
        refusal: TooLargeError,
    ) -> None:
        self.network, self.decision, self.limits = net.copy(), decision, limits
        share = limits._replace(seconds=limits.seconds / len(self.actions))
        self._scales: list[tuple[float, float]] = []
        self._queries: list[BoundedQuery] = []
        for action in self.actions:
            chance = chance_of_values(net.do({decision: action}), net.value_nodes.values())
            self._scales.append((chance.low, chance.width))
            self._queries.append(bounded(chance.network, chance.node, evidence, hard, options, share, refusal))

    @property
    def variable(self) -> Variable:
        """The decision: its name and its states."""
        return self.network.variable(self.decision)

    @property
    def actions(self) -> tuple[Label, ...]:
        """The states of the decision."""
        return self.variable.states

    @property
    def evidence(self) -> tuple[str, ...]:
        """The variables that may have evidence."""
        return self._queries[0].evidence

    def read(self, evidence: EvidenceLike | None = None) -> Evidence:
        """Evidence that is checked once, to be asked about often; see `TAC.read`."""
        return self._queries[0].read(evidence)

    def decide(self, evidence: EvidenceLike | None = None) -> BoundedDecision:
        """The action of each row that is estimated to be best, and the ends between which its worth certainly is."""
        known = self.read(evidence)
        parts = [
            self._of_action(query, *scale, known) for query, scale in zip(self._queries, self._scales, strict=True)
        ]
        low, high, expected = (np.stack(part, axis=1) for part in zip(*parts, strict=True))
        impossible = np.isnan(expected).any(axis=1)
        low[impossible] = high[impossible] = expected[impossible] = np.nan
        warn_impossible(impossible, "their action is None")
        return BoundedDecision(self.variable, expected, None, index_of(evidence, known.rows), low=low, high=high)

    def _of_action(self, query: BoundedQuery, least: float, spread: float, known: Evidence) -> list[Floats]:
        """The ends of what an action is worth, and the estimate: (rows,) each."""
        sure = query.interval(known)
        slack = ROUNDINGS * (abs(least) + spread)
        ends = [least + spread * own[:, GOOD] for own in (sure.low, sure.high, sure.estimate)]
        return [ends[0] - slack, ends[1] + slack, ends[2]]

    def __repr__(self) -> str:
        evidence = plural(len(self.evidence), "evidence variable")
        return f"BoundedDecisionQuery(decide={self.decision!r}, {evidence}, within={self.limits.within:g})"

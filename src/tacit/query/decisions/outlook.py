"""What actions lead to, compiled: the probability that what follows from each is good, given a row of evidence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from tacit.base.floats import Floats
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.value_node import ValueNode
from tacit.query.asking.options import CompileOptions
from tacit.query.decisions.chance_of_values import GOOD, Chance, chance_of_values
from tacit.query.ensembles.base_ensemble import AnyEnsemble, BaseEnsemble
from tacit.query.network import Network
from tacit.query.query import Query, compiled


@dataclass(frozen=True)
class Outlook:
    """A program for all actions, or for one of them: the joint posterior of the decision and of what is good.

    What an action is worth is expected to be `low` + `width` * P(good | row, action).
    """

    query: Query
    actions: range
    low: float
    width: float

    def expected(self, evidence: EvidenceLike | None) -> Floats:
        """What the actions are expected to be worth: (rows, actions)."""
        return self._worth(self.query.posterior(evidence))

    def expected_under(self, ensemble: AnyEnsemble, evidence: EvidenceLike | None) -> Floats:
        """The same under each of several networks, which `extended` has made: (draws, rows, actions)."""
        return self._worth(self.query.posterior(evidence, tables=ensemble))

    def _worth(self, posterior: Floats) -> Floats:
        """What is worth how much, from P(decision, good): (..., all actions, 2)."""
        own = posterior[..., self.actions.start : self.actions.stop, :].astype(np.float64, copy=False)
        return np.asarray(self.low + self.width * (own[..., GOOD] / own.sum(axis=-1)))

    def with_numbers(self, chance: Chance[Network]) -> Self:
        """The same programs with the numbers of another network."""
        return replace(self, query=self.query.with_network(chance.network), low=chance.low, width=chance.width)


class Outlooks:
    """The programs of a decision.

    One program answers for all actions: what is observed before a decision tells nothing about it, so that all actions
    can be equally likely. Where tables below the decision are selected by tests, each action selects others, and has a
    program of its own.
    """

    def __init__(self, net: Network, decision: str, values: Iterable[ValueNode]) -> None:
        self.decision, self.values = decision, tuple(values)
        count = net.variable(decision).card
        several = not set(net.testing_nodes).isdisjoint(net.descendants(decision))
        self.parts = [range(i, i + 1) for i in range(count)] if several else [range(count)]

    def extended(self, net: Network, actions: range) -> Chance[Network]:
        """A network in which these actions are equally likely, and what is good is a random variable."""
        states = net.states(self.decision)
        decided = net.cut([self.decision])
        if len(actions) < len(states):
            decided = net.do({self.decision: states[actions.start]})
        return chance_of_values(decided, self.values)

    def extended_ensemble(self, ensemble: BaseEnsemble[Network], actions: range) -> BaseEnsemble[Network]:
        """The networks of an ensemble, extended likewise."""
        return ensemble.moved_to(self.extended(ensemble.network, actions).network, without=(self.decision,))

    def compiled(
        self, net: Network, evidence: Iterable[str], hard: Iterable[str], options: CompileOptions
    ) -> list[Outlook]:
        """The programs."""
        outlooks = []
        for actions in self.parts:
            chance = self.extended(net, actions)
            query = compiled(Query, chance.network, [self.decision, chance.node], evidence, hard, options)
            outlooks.append(Outlook(query, actions, chance.low, chance.width))
        return outlooks

"""What surrounds each variable of a question: the factors that say something about it."""

from __future__ import annotations

from functools import cached_property

from tacit.bounds.factor_list import FactorList, factor_list
from tacit.bounds.windows import Surroundings
from tacit.compiler.prune import relevant
from tacit.compiler.question import Question
from tacit.model.model import Model


class Ground:
    """The factors of a question about a network, and what of them surrounds each variable."""

    def __init__(self, net: Model, question: Question) -> None:
        self.network, self.question = net, question

    @cached_property
    def factors(self) -> FactorList:
        """The factors of all that the question asks about."""
        return factor_list(self.network, self.question)

    @cached_property
    def ruled_out(self) -> bool:
        """Whether what is given is impossible, as a factor without any possible state tells."""
        return any(not factor.high.any() for factor in self.factors.factors)

    @cached_property
    def settled(self) -> frozenset[str]:
        """The variables that have a state in every row."""
        return frozenset((*self.question.hard, *self.question.do))

    @cached_property
    def _observed(self) -> Surroundings:
        """What surrounds the variables above the evidence: nothing else has a say there."""
        return self._without_barren(())

    @cached_property
    def _above_evidence(self) -> frozenset[str]:
        return frozenset(self._above(()))

    def around(self, name: str) -> Surroundings:
        """What surrounds a variable: factors of nodes that are neither above it nor above evidence sum to 1.

        Auxiliary variables of a rule with many parents are where its node is.
        """
        node = name if name in self.network else self._rules[name]
        return self._observed if node in self._above_evidence else self._without_barren((node,))

    @cached_property
    def _rules(self) -> dict[str, str]:
        """The node of each variable that occurs in a factor: that of its rule, of an auxiliary one."""
        return {name: factor.node for factor in self.factors.factors for name in factor.scope}

    def _above(self, names: tuple[str, ...]) -> tuple[str, ...]:
        known = (*self.question.evidence, *(name for name, _ in self.question.given))
        return relevant(self.network, (*names, *known))

    def _without_barren(self, names: tuple[str, ...]) -> Surroundings:
        above = set(self._above(names))
        barren = frozenset(i for i, factor in enumerate(self.factors.factors) if factor.node not in above)
        return self._all.without(barren)

    @cached_property
    def _all(self) -> Surroundings:
        return Surroundings(self.factors, self.settled)

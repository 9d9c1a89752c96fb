"""What a page needs to say which action is best: a program with a hidden variable, which is good or bad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from tacit.base.errors import NetworkError, TooLargeError
from tacit.model.model import Model
from tacit.query.decisions.chance_of_values import Chance, chance_of_values
from tacit.query.decisions.checks import check_decision
from tacit.query.query import Query
from tacit.views.page.programs import PageTables, plain_program, plain_tests, why_not_set

WIDE = "this network is too wide for a page that decides; in Python, tacit.compile(net, decide=...) does"


@dataclass(frozen=True)
class Deciding:
    """A decision, and the network in which a hidden variable stands for all value nodes.

    The numbers of all other variables are those of the network, in the same order: both programs share their tables.
    """

    decision: str
    chance: Chance[Model]

    @classmethod
    def checked(cls, net: Model, decision: str) -> Self:
        """What a page of a network needs for a decision; an error where there is nothing to decide."""
        check_decision(net, decision)
        if problem := why_not_set(net, decision):
            raise NetworkError(f"a page that decides sets {decision!r}. {problem}")
        return cls(decision, chance_of_values(net, net.value_nodes.values()))

    def described(self, net: Model, asked: Query, settable: bool, tables: PageTables) -> tuple[dict[str, Any], Any]:
        """The decision as plain data, and its program."""
        if not settable:
            raise TooLargeError(WIDE)
        extended, below = self.chance.network, net.descendants(self.decision)
        number = {name: i for i, name in enumerate(extended.variables)}
        hidden = [
            {
                "card": extended.variable(name).card,
                "states": [str(state) for state in extended.states(name)],
                "parents": [number[parent] for parent in extended.parents(name)],
                "density": None,
            }
            for name in extended.variables[len(net) :]
        ]
        described = {
            "variable": number[self.decision],
            "late": [number[name] for name in below],
            "node": number[self.chance.node],
            "low": self.chance.low,
            "width": self.chance.width,
            "hidden": hidden,
            "tests": plain_tests(extended, asked.program),
        }
        return described, plain_program(extended, asked.program, tables, asked.numbers()[1])


def with_table(net: Model, decision: str) -> Model:
    """The network with any table of a decision, which does not count; those that have one keep it."""
    variable, parts = net.variable(decision), net.cpt(decision).parts()
    if not any(np.isnan(part).any() for part in parts.values()):
        return net
    shape = (*(net.variable(parent).card for parent in net.parents(decision)), variable.card)
    return net.with_cpts({decision: np.full(shape, 1 / variable.card)})

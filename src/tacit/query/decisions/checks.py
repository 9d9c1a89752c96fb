"""What can be decided, checked before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tacit.base.errors import NetworkError, TacitError
from tacit.base.text import listed, shown
from tacit.model.model import Model


def check_decision(net: Model, decision: Any) -> None:
    """An error unless this is a variable with several states, which value nodes depend on."""
    if not isinstance(decision, str):
        remedy = "where several things are decided together, make their combinations the states of one variable"
        raise TacitError(f"decide is {shown(decision)}, expected the name of one variable; {remedy}")
    variable = net.variable(net.named(decision))
    if variable.continuous or variable.card < 2:
        raise TacitError(f"decide= names {decision!r}, which has no states to choose from; expected two or more")
    if not net.value_nodes:
        raise NetworkError("the network has no value node, so no action is better than another; add one: "
                           "net.value(name, parents, table)")  # fmt: skip
    reached = {decision, *net.descendants(decision)}
    if all(reached.isdisjoint(own.parents) for own in net.value_nodes.values()):
        problem = f"no value node has {decision!r}, or what is below it, as a parent"
        raise NetworkError(f"{problem}, so no action is better than another; add such a value node")


def check_known_before(net: Model, decision: str, names: Iterable[str]) -> None:
    """An error where something is named that is not known before a decision."""
    below = net.descendants(decision)
    for name in names:
        if name == decision:
            raise TacitError(f"{name!r} is what is to be decided; leave it out of evidence=, hard=, do= and given=")
        if name in below:
            problem = f"{name!r} is below the decision {decision!r}, and so not known yet when it is made"
            raise TacitError(f"{problem}; leave it out of evidence=, hard=, do= and given=")


def check_same_states(net: Model, new: Model, decision: str) -> None:
    """An error unless a decision, and what values depend on, have the same states in another network."""
    for name in dict.fromkeys([decision, *(parent for own in net.value_nodes.values() for parent in own.parents)]):
        if name not in new:
            raise NetworkError(f"the networks of tables= have no variable {name!r}, which the decision is about")
        mine, theirs = net.variable(name), new.variable(name)
        if mine != theirs:
            states = f"{listed(list(map(repr, theirs.states)))}, and not {listed(list(map(repr, mine.states)))}"
            raise NetworkError(f"{name!r} has the states {states}, in the networks of tables=; "
                               "compile the decision with one of them")  # fmt: skip

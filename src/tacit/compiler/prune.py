"""Pruning: what a query does not need is dropped before anything is ordered.

Leaves that are neither query nor evidence go, repeatedly, so that every node left is an ancestor of the query
or of evidence; what is d-separated from the query and carries no evidence is thereby gone, too. States that
known 0s make impossible are dropped from their variables, and variables with one state lose their axis.

Where states are given, known 0s make more states impossible, above and below. A family may have nothing to say about
those that are left: if a variable has one of them, with probability 1 whatever its parents are, then neither need it
know its parents, nor they it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.compiler.consistency import Possible, consistent, supported
from tacit.compiler.question import Question
from tacit.compiler.visibility import selections_by_node
from tacit.model.model import Model


@dataclass(frozen=True)
class Pruned:
    """The part of a network that a query needs, parents first, and the states that are possible there.

    Nodes that are `determined` have one state, with probability 1: they count as nodes without parents and without
    factors. What is needed no more for that reason is none of the `nodes`, and has its `states` all the same.
    """

    nodes: tuple[str, ...]
    states: Possible
    determined: frozenset[str] = frozenset()


def prune(net: Model, question: Question) -> Pruned:
    """Drop barren nodes and impossible states. What indexes tables keeps all its states."""
    asked = net.variables if question.every_node else (*question.named, *question.soft, *dict(question.reports))
    nodes = relevant(net, (*asked, *(name for name, _ in question.given)))
    whole = frozenset(nodes) if question.every_state else question.indexed
    states = possible_states(net, nodes, whole, dict(question.given), question.evidence)
    if not question.given or question.every_state:
        return Pruned(nodes, states)
    telling = {name for name in nodes if not certain(net, name, states)}
    # selections report what they were decided by, so nothing is left out there
    selections = selections_by_node(net, nodes, {*question.evidence, *dict(question.given)})
    # where selection is general, what is below a node without its parents would be seen from elsewhere
    kept = _behind_tests(net, nodes) if net.selection == "general" else set()
    determined = frozenset(
        n
        for n in nodes
        if len(states[n]) == 1 and not (n in telling or selections[n] or n in kept or net.variable(n).continuous)
    )
    return Pruned(relevant(net, (*asked, *telling), determined), states, determined)


def as_asked(net: Model, question: Question) -> Model:
    """The network whose tables count: not those of what is set. Those that rows bring along are unknown."""
    cut = net.cut(question.do) if question.do else net
    return cut.with_unknown_tables(question.per_row) if question.per_row else cut


def _behind_tests(net: Model, nodes: Iterable[str]) -> set[str]:
    """The nodes at or below testing nodes."""
    behind: set[str] = set()
    for name in nodes:
        if net.cpt(name).testing or not behind.isdisjoint(net.parents(name)):
            behind.add(name)
    return behind


def certain(net: Model, name: str, states: Possible) -> bool:
    """Whether a node is in one of its possible states for sure, whichever possible states its parents are in."""
    card = net.variable(name).card
    return len(states[name]) == card or set(_support(net, name, states)) <= set(states[name])


def relevant(net: Model, names: Iterable[str], determined: Collection[str] = ()) -> tuple[str, ...]:
    """The given variables and their ancestors, parents first. Those that are determined depend on nothing."""
    kept: set[str] = set()
    stack = list(names)
    while stack:
        name = stack.pop()
        if name not in kept:
            kept.add(name)
            if name not in determined:
                stack.extend(net.parents(name))
    return tuple(n for n in net.variables if n in kept)


def possible_states(
    net: Model,
    nodes: Iterable[str],
    whole: Collection[str] = (),
    given: Mapping[str, int] | None = None,
    evidence: Iterable[str] = (),
) -> Possible:
    """The states of each node that known 0s leave possible, or the one that is given; all states for `whole`.

    Testing nodes may see `evidence`. Without any states given, going from parents to children is enough: every row of a
    table has a state for the child.
    """
    states: dict[str, tuple[int, ...]] = {}
    known = given or {}
    for name in nodes:
        if name in known:
            states[name] = (known[name],)
        else:
            every = range(net.variable(name).card)
            states[name] = tuple(every if name in whole else _support(net, name, states) or every)
    if not known:
        return states
    return consistent(net, states, whole, known, selections_by_node(net, tuple(states), {*evidence, *known}))


def _support(net: Model, name: str, possible: Possible) -> list[int]:
    """The states of a node that have positive probability under some possible states of its parents."""
    family = {n: np.array(possible[n]) for n in net.parents(name)} | {name: np.arange(net.variable(name).card)}
    states: list[int] = supported(net, name, family, node_only=True)[-1].tolist()
    return states

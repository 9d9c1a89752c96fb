"""A question about a network as a list of factors: what every kind of bound, and every estimate, is made from.

Nothing is eliminated. What the question does not need is gone, and states that are known, or impossible, are cut out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.factors import AxisNames, IndexedFactor, node_factors
from tacit.compiler.operations import ONE, Parameter
from tacit.compiler.prune import Pruned, as_asked, prune
from tacit.compiler.question import Question
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model


class Factor(NamedTuple):
    """A table of nonnegative numbers over some variables, which lies between two tables.

    They are one and the same unless a test chooses the table, row by row: then whatever it chooses lies between them,
    entry by entry. `testing` is the name of that node. `node` is the one whose CPT the table is from.
    """

    scope: tuple[str, ...]
    low: Floats
    high: Floats
    testing: str | None = None
    node: str = ""


@dataclass(frozen=True)
class FactorList:
    """The factors of a question. Their product, times the likelihoods of a row, is proportional to p*(x, evidence).

    Attributes
    ----------
    cards
        How many states each variable has here: those that are left of its states in the network. It includes auxiliary
        variables of rules with many parents, which are none of the network's.
    states
        Of each variable of the network, the places of these states among all of them; of one that is left out as it has
        a single one, that state.
    factors
        The tables; scopes may be empty.
    evidence
        The variables in `cards` that have likelihoods in every row.
    """

    cards: Mapping[str, int]
    states: Mapping[str, tuple[int, ...]]
    factors: tuple[Factor, ...]
    evidence: tuple[str, ...]


def factor_list(net: Model, question: Question) -> FactorList:
    """The factors of a question about a network without densities.

    >>> import tacit
    >>> factors = factor_list(tacit.examples.abc(), Question(("B",), ("C",)))
    >>> [(factor.scope, factor.testing) for factor in factors.factors]
    [(('A',), None), (('A', 'B'), 'B'), (('A', 'C'), None)]
    """
    asked = as_asked(net, question)
    pruned = prune(asked, question)
    cut = asked.cut(pruned.determined) if pruned.determined else asked
    names, factors = AxisNames(cut), list[Factor]()
    for name in pruned.nodes:
        if name not in question.do and name not in pruned.determined:
            factors += _of_node(cut, name, pruned, names)
    own = {name: len(states) for name, states in pruned.states.items() if len(states) > 1}
    cards: dict[str, int] = {name: own[name] for name in pruned.nodes if name in own}
    for factor in factors:
        cards |= dict(zip(factor.scope, factor.low.shape, strict=True))
    evidence = tuple(name for name in question.evidence if name in cards)
    return FactorList(cards, dict(pruned.states), tuple(factors), evidence)


def _of_node(net: Model, name: str, pruned: Pruned, names: AxisNames) -> list[Factor]:
    """The factors of one node, over the states that are possible."""
    cpt, family = net.cpt(name), (*net.parents(name), name)
    if isinstance(cpt, TestingCPT):
        tables = np.stack(cpt.tables)
        return [_restricted(family, (tables.min(axis=0), tables.max(axis=0)), pruned, name, name)]
    factors = []
    for indexed in node_factors(net, name, {}, names):
        table = _numbers(net, name, indexed)
        factors.append(_restricted(indexed.axes, (table, table), pruned, name))
    return factors


def _numbers(net: Model, name: str, indexed: IndexedFactor) -> Floats:
    """The numbers of a factor that points into a part of a CPT."""
    source = indexed.source
    entries = net.cpt(name).parts()[source.part].ravel() if isinstance(source, Parameter) else np.zeros(1)
    known = np.where(indexed.index == ONE, 1.0, 0.0)
    return np.where(indexed.index >= 0, entries[np.maximum(indexed.index, 0)], known)


def _restricted(
    scope: tuple[str, ...], ends: tuple[Floats, Floats], pruned: Pruned, node: str, testing: str | None = None
) -> Factor:
    """A factor over the possible states; variables that have one lose their axis."""
    low, high = ends
    # auxiliary variables keep all of their states
    states = [pruned.states.get(name, range(card)) for name, card in zip(scope, low.shape, strict=True)]
    kept = [axis for axis, left in enumerate(states) if len(left) > 1]
    shape, place = [len(states[axis]) for axis in kept], np.ix_(*states)
    tables = [table[place].reshape(shape) for table in ([low] if low is high else [low, high])]
    return Factor(tuple(scope[axis] for axis in kept), tables[0], tables[-1], testing, node)

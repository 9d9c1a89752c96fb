"""Value nodes as one random variable, whose probability tells the expected value: Cooper's transformation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from tacit.base.floats import Floats
from tacit.base.text import fresh_name
from tacit.model.elements.value_node import ValueNode
from tacit.model.model import Model
from tacit.model.rules import Mux

M = TypeVar("M", bound=Model)
GOOD, STATES = 0, 2  # of the random variable: the more something is worth, the more probable is the first


class Chance(NamedTuple, Generic[M]):
    """A network with a binary node added: what it is worth is expected to be `low` + `width` * P(node is good)."""

    network: M
    node: str
    low: float
    width: float


def chance_of_values(net: M, values: Iterable[ValueNode]) -> Chance[M]:
    """A network in which a binary node stands for the sum of some value nodes.

    Probabilities lie between 1/4 and 3/4: no table has a 0 or a 1 that a program would build in, so other values need
    no other program. Several nodes add up as the mixture of theirs, each weighed by its width: a multiplexer chooses.
    """
    extended, added = net.without_values(), list[Chance[M]]()
    columns = {column for name in net for column in net.variable(name).columns}
    for own in merged(values):
        name = fresh_name(own.name, {*extended, *columns})
        spread = float(np.ptp(own.table)) or 1.0
        one = Chance(extended, name, float(own.table.min()) - spread / 2, 2 * spread)
        good = (own.table - one.low) / one.width
        extended.add(name, own.parents, cpt=np.stack([good, 1 - good], axis=-1))
        added.append(one)
    if len(added) == 1:
        return added[0]
    low, width = sum(one.low for one in added), sum(one.width for one in added)
    which, total = (fresh_name(name, {*extended, *columns}) for name in ("which value", "value"))
    extended.add(which, states=len(added), cpt=[one.width / width for one in added])
    extended.add(total, cpt=Mux(which, [one.node for one in added]))
    return Chance(extended, total, low, width)


def merged(nodes: Iterable[ValueNode]) -> list[ValueNode]:
    """Value nodes of the same sum: one whose parents are all among those of another is added to its table."""
    largest: list[ValueNode] = []
    for own in sorted(nodes, key=lambda node: -len(node.parents)):
        for place, other in enumerate(largest):
            if set(own.parents) <= set(other.parents):
                table = other.table + _aligned(own, other.parents)
                largest[place] = ValueNode(other.name, other.variables, table)
                break
        else:
            largest.append(own)
    return largest


def _aligned(own: ValueNode, parents: tuple[str, ...]) -> Floats:
    """A table with an axis for each of more parents, in their order."""
    shape = [own.table.shape[own.parents.index(name)] if name in own.parents else 1 for name in parents]
    order = [own.parents.index(name) for name in parents if name in own.parents]
    return own.table.transpose(order).reshape(shape)

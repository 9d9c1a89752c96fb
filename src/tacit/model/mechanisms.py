"""Mechanisms: networks in which all that is random are roots, and every other node is a function of its parents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Container
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import large, listed
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT
from tacit.model.twin import is_function

M = TypeVar("M", bound=Model)
RESPONSE = ".response"
MAX_RESPONSES = 2**16
MAX_ENTRIES = 2**22  # of the function of parents and responses
SAME = 1e-14  # cumulative probabilities that differ by less are equal but for rounding


class Mechanism(NamedTuple):
    """How chance and the parents decide a node together."""

    probabilities: Floats  # (responses,)
    codes: NDArray[np.int64]  # (parents' cardinalities..., responses), the state that each response gives


def with_mechanisms(net: M, kind: str, only: Container[str] | None = None) -> M:
    """A network in which each random node, or `only` some, is a function of its parents and a root `NAME.response`."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise NetworkError(f"kind is {kind!r}, expected one of {', '.join(map(repr, KINDS))}")
    random = [name for name in net if net.parents(name) and not is_function(net.cpt(name))]
    random = [name for name in random if only is None or name in only]
    net.require_numbers(random)
    for name in random:
        if isinstance(net.cpt(name), TestingCPT):
            raise NetworkError(f"node {name!r} is testing, and evidence selects its table: it has no mechanism; "
                               "net.select(row) is the network of one row")  # fmt: skip
    tables = {name: _table(net, name) for name in random if not net.variable(name).continuous}
    if kind == "monotone":
        _require_monotone(net, tables)
    functional = net.empty_copy()
    for name in net:
        node = net.node(name)
        if name not in tables:
            columns = node.variable.columns if node.variable.continuous else name
            states = None if node.variable.continuous else node.variable.states
            functional.add(columns, node.parents, states, node.cpt, bins=node.variable.bins)
            continue
        mechanism = KINDS[kind](name, tables[name])
        root = f"{name}{RESPONSE}"
        functional.add(root, states=len(mechanism.probabilities), cpt=mechanism.probabilities)
        rule = FunctionCPT.from_rows(mechanism.codes, np.eye(node.variable.card))
        functional.add(name, (*node.parents, root), node.variable.states, rule, bins=node.variable.bins)
    functional._values |= net._values
    return functional


def responses(name: str, table: Floats) -> Mechanism:
    """All functions of the parents that the table leaves possible: chance answers each parent state by itself."""
    rows = table.reshape(-1, table.shape[-1])
    possible = [np.flatnonzero(row) for row in rows]
    count = math.prod(map(len, possible))
    if count > MAX_RESPONSES or count * len(rows) > MAX_ENTRIES:
        many = f"node {name!r} has {large(count)} response functions (limit {MAX_RESPONSES:,})"
        raise TooLargeError(f"{many}; kind='monotone' has few, where it holds")
    codes = np.array(list(itertools.product(*possible)), dtype=np.int64).T
    probabilities = np.prod(np.take_along_axis(rows, codes, axis=1), axis=0)
    return Mechanism(probabilities, codes.reshape(*table.shape[:-1], count))


def quantiles(name: str, table: Floats) -> Mechanism:
    """Chance is a level between 0 and 1, and the state that of this quantile in every parent state."""
    below, above = np.cumsum(table, axis=-1)[..., :-1], np.cumsum(table[..., ::-1], axis=-1)[..., -2::-1]
    edges, places = _edges(below.ravel(), above.ravel())
    widths = np.array([_distance(*pair) for pair in itertools.pairwise([(0.0, 1.0), *edges, (1.0, 0.0)])])
    levels = np.flatnonzero(widths > 0)
    after = places.reshape(below.shape)[..., None] < levels  # (parents..., edges between states, levels)
    return Mechanism(widths[levels] / widths.sum(), after.sum(axis=-2))


def _edges(below: Floats, above: Floats) -> tuple[list[tuple[float, float]], NDArray[np.int64]]:
    """The different levels at which states end, lowest first, and which of them each one is.

    A level is what is below it and what is above it. The smaller of these has all its digits, and tells levels apart.
    """
    high = below > above
    order = np.lexsort((np.where(high, -above, below), high))
    edges: list[tuple[float, float]] = []
    places = np.empty(len(order), dtype=np.int64)
    for i in order:
        edge = float(below[i]), float(above[i])
        if not edges or _distance(edges[-1], edge) > SAME * min(edge):
            edges.append(edge)
        places[i] = len(edges) - 1
    return edges, places


def _distance(lower: tuple[float, float], upper: tuple[float, float]) -> float:
    """How probable levels between two are."""
    if upper[0] <= upper[1]:
        return upper[0] - lower[0]
    if lower[0] > lower[1]:
        return lower[1] - upper[1]
    return max(0.0, 1.0 - lower[0] - upper[1])


KINDS: dict[str, Callable[[str, Floats], Mechanism]] = {"response": responses, "monotone": quantiles}


def _table(net: Model, name: str) -> Floats:
    node = net.node(name)
    return node.cpt.dense(node.variable, [net.variable(parent) for parent in node.parents])


def _require_monotone(net: Model, tables: dict[str, Floats]) -> None:
    """An error where a parent's next state makes higher states more probable here and less probable there."""
    fails = {name: parent for name in tables if (parent := _not_monotone(net, name, tables[name]))}
    if not fails:
        return
    name, parent = next(iter(fails.items()))
    holds = [repr(other) for other in tables if other not in fails]
    who = f"node {name!r} has" if len(fails) == 1 else f"nodes {listed(list(map(repr, fails)))} have"
    others = f"; {listed(holds)} {'has' if len(holds) == 1 else 'have'} one" if holds else ""
    why = f"as {parent!r} goes from state to state, higher states of {name!r} become both more and less probable"
    raise NetworkError(f"{who} no monotone mechanism: {why}{others}; tacit.causal.bounds needs no mechanism")


def _not_monotone(net: Model, name: str, table: Floats) -> str | None:
    """A parent along whose states the distributions of a node do not move one way."""
    upper = np.cumsum(table, axis=-1)
    for axis, parent in enumerate(net.parents(name)):
        steps = np.diff(upper, axis=axis)
        if (steps > SAME).any() and (steps < -SAME).any():
            return parent
    return None

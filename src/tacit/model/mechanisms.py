"""Mechanisms: networks in which chance is apart from what it decides, and nodes are functions of their parents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import large, listed, shown
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT
from tacit.model.twin import below, is_function

M = TypeVar("M", bound=Model)
Kind = str | Mapping[str, str | None]
RESPONSE = ".response"
MAX_RESPONSES = 2**16
MAX_ENTRIES = 2**22  # of the function of parents and responses
SAME = 1e-14  # cumulative probabilities that differ by less are equal but for rounding


class Mechanism(NamedTuple):
    """How chance and the parents decide a node together."""

    above: tuple[str, ...]  # parents of the response
    probabilities: Floats  # (states of these..., responses)
    parents: tuple[str, ...]  # of the node, beside its response
    codes: NDArray[np.int64]  # (states of these..., responses), the state that each response gives


class Node(NamedTuple):
    """A random node: parents that are the same in both worlds, those that may change, and the table in this order."""

    name: str
    fixed: tuple[str, ...]
    free: tuple[str, ...]
    table: Floats  # (states of fixed parents..., states of free parents..., own states)

    @classmethod
    def of(cls, net: Model, name: str, changed: Collection[str]) -> Node:
        """A node of a network in which only some variables may change."""
        node = net.node(name)
        table = node.cpt.dense(node.variable, [net.variable(parent) for parent in node.parents])
        order = sorted(range(len(node.parents)), key=lambda axis: node.parents[axis] in changed)
        names = [node.parents[axis] for axis in order]
        fixed = sum(parent not in changed for parent in names)
        return cls(name, tuple(names[:fixed]), tuple(names[fixed:]), table.transpose(*order, table.ndim - 1))

    @property
    def rows(self) -> Floats:
        """The table as (states of fixed parents, states of free parents, own states)."""
        fixed = math.prod(self.table.shape[: len(self.fixed)])
        return self.table.reshape(fixed, -1, self.table.shape[-1])

    @property
    def possible(self) -> list[NDArray[np.int64]]:
        """The states that each state of the free parents leaves possible."""
        return [np.flatnonzero(row) for row in np.asarray(self.rows.any(axis=0))]


def with_mechanisms(net: M, kind: Kind, set_to: Sequence[str] | None = None, only: Collection[str] | None = None) -> M:
    """A network in which random nodes, or `only` some, are functions of their parents and of a node `NAME.response`.

    `set_to` names what the other world sets: only nodes below get mechanisms. Parents that do not change are in the
    same state in both worlds, so that a response only has to answer the states of the others.
    """
    changed = net.variables if set_to is None else (*set_to, *below(net, set_to, net))
    random = [name for name in net if net.parents(name) and not is_function(net.cpt(name))]
    if set_to is not None:
        random = [name for name in random if name in changed and name not in set_to]
    kinds = _kinds(kind, random if only is None else only)
    wanted = [name for name, own in kinds.items() if own is not None]
    net.require_numbers(wanted)
    for name in wanted:
        if isinstance(net.cpt(name), TestingCPT):
            raise NetworkError(f"node {name!r} is testing, and evidence selects its table: it has no mechanism; "
                               "net.select(row) is the network of one row")  # fmt: skip
    nodes = {name: Node.of(net, name, changed) for name in wanted if not net.variable(name).continuous}
    _require_possible(nodes, kinds, set_to, needed=only is not None)
    functional = net.empty_copy()
    for name in net:
        node = net.node(name)
        if name not in nodes:
            columns = node.variable.columns if node.variable.continuous else name
            states = None if node.variable.continuous else node.variable.states
            functional.add(columns, node.parents, states, node.cpt, bins=node.variable.bins)
            continue
        mechanism = KINDS[kinds[name] or ""](nodes[name])
        response, count = f"{name}{RESPONSE}", mechanism.probabilities.shape[-1]
        functional.add(response, mechanism.above, count, mechanism.probabilities)
        rule = FunctionCPT.from_rows(mechanism.codes, np.eye(node.variable.card))
        functional.add(name, (*mechanism.parents, response), node.variable.states, rule, bins=node.variable.bins)
    functional._values |= net._values
    return functional


def responses(node: Node) -> Mechanism:
    """All functions of the free parents that the table leaves possible: chance answers each of their states by itself.

    How probable a function is depends on the fixed parents: these are parents of the response, not of the node.
    """
    possible, rows = node.possible, node.rows
    count = math.prod(map(len, possible))
    codes = np.array(list(itertools.product(*possible)), dtype=np.int64).T
    probabilities = np.ones((len(rows), count))
    for place, states in enumerate(codes):
        probabilities *= rows[:, place, states]
    fixed, free = node.table.shape[: len(node.fixed)], node.table.shape[len(node.fixed) : -1]
    return Mechanism(node.fixed, probabilities.reshape(*fixed, count), node.free, codes.reshape(*free, count))


def quantiles(node: Node) -> Mechanism:
    """Chance is a level between 0 and 1, and the state that of this quantile in every parent state."""
    upto, beyond = np.cumsum(node.table, axis=-1)[..., :-1], np.cumsum(node.table[..., ::-1], axis=-1)[..., -2::-1]
    edges, places = _edges(upto.ravel(), beyond.ravel())
    widths = np.array([_distance(*pair) for pair in itertools.pairwise([(0.0, 1.0), *edges, (1.0, 0.0)])])
    levels = np.flatnonzero(widths > 0)
    after = places.reshape(upto.shape)[..., None] < levels  # (parents..., edges between states, levels)
    return Mechanism((), widths[levels] / widths.sum(), (*node.fixed, *node.free), after.sum(axis=-2))


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


KINDS: dict[str, Callable[[Node], Mechanism]] = {"response": responses, "monotone": quantiles}


def _kinds(kind: Kind, random: Collection[str]) -> dict[str, str | None]:
    """The kind of mechanism of each random node."""
    chosen = kind if isinstance(kind, Mapping) else dict.fromkeys(random, kind)
    if not isinstance(kind, Mapping) and (not isinstance(kind, str) or kind not in KINDS):
        raise NetworkError(f"kind is {shown(kind)}, expected one of {', '.join(map(repr, KINDS))}, or one by node")
    for name, own in chosen.items():
        if name not in random:
            expected = f"expected some of {', '.join(map(repr, random))}"
            raise NetworkError(f"kind names {name!r}, of which no mechanism is asked; {expected}")
        if own is not None and own not in KINDS:
            raise NetworkError(f"kind is {shown(own)}, expected one of {', '.join(map(repr, KINDS))}")
    return {name: chosen.get(name, "response") for name in random}


def _require_possible(
    nodes: Mapping[str, Node], kinds: Mapping[str, str | None], set_to: Sequence[str] | None, needed: bool
) -> None:
    """An error about nodes that have no mechanism of their kind, or a too large one, and what is possible instead."""
    fails = {name: why for name, node in nodes.items() if (why := OBSTACLES[kinds[name] or ""](node))}
    if not fails:
        return
    name, why = next(iter(fails.items()))
    who = f"node {name!r} has" if len(fails) == 1 else f"nodes {listed(list(map(repr, fails)))} have"
    ways = []
    if set_to is None:
        ways.append("would=[...], the variables that the other world sets, leaves out parents that these do not change")
    others = {own: next(kind for kind in KINDS if kind != kinds[own]) for own in fails}
    if not any(OBSTACLES[kind](nodes[own]) for own, kind in others.items()):
        would = "" if set_to is None else f", would={list(set_to)}"
        ways.append(f"net.mechanisms({_written({**kinds, **others})}{would}) is possible, and an assumption")
    elif set_to is not None and not needed:
        ways.append(f"kind={dict.fromkeys(fails)} leaves out what the question does not need")
    raise why.error(f"{who} {why.text}; {', or '.join(ways) or 'merge states of the parents, or leave out edges'}")


def _written(kinds: Mapping[str, str | None]) -> str:
    """Kinds of mechanisms, as one would write them."""
    if len(same := {*kinds.values()}) == 1:
        return repr(*same)
    return repr({name: kind for name, kind in kinds.items() if kind != "response"})


class _Obstacle(NamedTuple):
    """Why a node has no mechanism of a kind."""

    error: type[NetworkError | TooLargeError]
    text: str


def _too_many(node: Node) -> _Obstacle | None:
    """Whether there are more response functions than can be written down."""
    count = math.prod(map(len, node.possible))
    if count <= MAX_RESPONSES and count * max(node.rows.shape[:2]) <= MAX_ENTRIES:
        return None
    text = f"{large(count)} response functions of {listed(list(map(repr, node.free)))} (limit {MAX_RESPONSES:,})"
    return _Obstacle(TooLargeError, text)


def _not_monotone(node: Node) -> _Obstacle | None:
    """Whether, for some states of the fixed parents, distributions do not move one way along a free parent."""
    upper = np.cumsum(node.table, axis=-1)
    for axis, parent in enumerate(node.free, len(node.fixed)):
        steps = np.diff(upper, axis=axis)
        within = tuple(range(len(node.fixed), steps.ndim))
        if ((steps > SAME).any(axis=within) & (steps < -SAME).any(axis=within)).any():
            why = f"higher states of {node.name!r} become both more and less probable"
            return _Obstacle(NetworkError, f"no monotone mechanism: as {parent!r} goes from state to state, {why}")
    return None


OBSTACLES: dict[str, Callable[[Node], _Obstacle | None]] = {"response": _too_many, "monotone": _not_monotone}

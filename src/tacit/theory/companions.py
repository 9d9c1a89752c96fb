"""Networks whose selection is evidence, with their compiled queries.

Every testing node X gets a companion: a child of X's parents with some states, its parts, for each of their states u. X
becomes a child of the companion alone. Likelihoods on the companion then say how much of each row of X's tables counts,
and no testing node is left: one compiled query evaluates any mixture of evidence and selections in one batch. Every
p* is multilinear in all likelihoods, with no negative coefficient.

There are two ways to part the rows: the rows of plus and of minus themselves, exact to the last bit; or what both have
in common, what only plus has and what only minus has, which is better where weights are known to lie between two ends.

Axes, batch last: inputs (inputs, rows), weights (tests, rows), where a test is a row of a testing CPT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.cpt import CPT, Floats, TestingCPT
from tacit.errors import TooLargeError
from tacit.evidence import Column, blocks
from tacit.factored import MAX_DENSE
from tacit.network import Network
from tacit.tac import TAC, compile
from tacit.theory.multilinear import vertices

SEARCHED = 32  # testing nodes up to which a better plan is worth its search


class Likelihoods(NamedTuple):
    """Everything that p* grows with: likelihoods of both states of the inputs, weights of both tables in the tests."""

    first: Floats
    second: Floats
    plus: Floats
    minus: Floats


class Between(NamedTuple):
    """Inputs (inputs, rows) and weights of plus (tests, rows), each between two ends."""

    low: Floats
    high: Floats
    least: Floats
    most: Floats

    def ends(self) -> tuple[Likelihoods, Likelihoods]:
        """The smallest and the largest likelihoods of all."""
        lower = Likelihoods(self.low, 1 - self.high, self.least, 1 - self.most)
        return lower, Likelihoods(self.high, 1 - self.low, self.most, 1 - self.least)


class Slopes(NamedTuple):
    """Ends of some functions at the vertices of boxes, and of their derivatives, but for a common factor.

    The former are (functions, boxes, vertices), the latter (inputs + tests, functions, boxes, vertices): derivatives by
    inputs, then by weights.
    """

    lower: Floats
    upper: Floats
    least: Floats
    most: Floats


@dataclass(frozen=True, eq=False)
class Group:
    """Testing nodes with the same parents, whose joint posterior they share; `tests` is (nodes, parent states)."""

    nodes: tuple[str, ...]
    tests: NDArray[np.intp]


@dataclass(frozen=True)
class Frame:
    """What a query needs: its network, pruned to `nodes`, and names of inputs and of evidence that stays fixed.

    `bearing` are the variables whose evidence counts for the query; `groups` are its testing nodes, ancestors first.
    """

    network: Network
    query: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    soft: tuple[str, ...]
    hard: tuple[str, ...]
    bearing: frozenset[str]
    groups: tuple[Group, ...]

    @property
    def places(self) -> dict[str, NDArray[np.intp]]:
        """Where the tests of each testing node are."""
        return {node: tests for group in self.groups for node, tests in zip(group.nodes, group.tests, strict=True)}


@dataclass(frozen=True)
class Part:
    """One state of a companion at every parent state: its prior, its rows of X's table, and how much of them counts.

    The latter is fixed + plus * weight of plus + minus * weight of minus; each is (parent states,).
    """

    prior: float
    rows: Floats
    fixed: Floats
    plus: Floats
    minus: Floats


def two_parts(plus: Floats, minus: Floats) -> list[Part]:
    """The rows of both tables; their priors are powers of two, so that exact ties stay exact."""
    zero, two = np.zeros(len(plus)), np.full(len(plus), 2.0)
    return [Part(1 / 2, plus, zero, two, zero), Part(1 / 2, minus, zero, zero, two)]


def three_parts(plus: Floats, minus: Floats) -> list[Part]:
    """What the rows of both tables have in common, what only plus has, and what only minus has."""
    common, zero = np.minimum(plus, minus), np.zeros(len(plus))
    tables = [common, plus - common, minus - common]
    mass = [table.sum(axis=1) for table in tables]
    rows = [_distributions(table) for table in tables]
    return [
        Part(1 / 2, rows[0], 2 * mass[0], zero, zero),
        Part(1 / 4, rows[1], zero, 4 * mass[1], zero),
        Part(1 / 4, rows[2], zero, zero, 4 * mass[2]),
    ]


def _distributions(table: Floats) -> Floats:
    """Rows scaled to sum to 1; a row of zeros, which never counts, becomes uniform."""
    total = table.sum(axis=1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), 1 / table.shape[1])


class Companions:
    """The network with companions in one of the two ways, and its queries, compiled when they are first needed.

    Results come as numbers and a power of two that is common to all of them.
    """

    def __init__(self, frame: Frame, split: Callable[[Floats, Floats], list[Part]]) -> None:
        self.frame, self._split = frame, split
        self.names = _names(frame.network, list(frame.places))

    @cached_property
    def parts(self) -> dict[str, list[Part]]:
        """The parts of every companion, by testing node."""
        found = {}
        for node in self.names:
            cpt = self.frame.network.cpt(node)
            assert isinstance(cpt, TestingCPT)
            found[node] = self._split(*(table.reshape(cpt.thresholds.size, -1) for table in (cpt.plus, cpt.minus)))
        return found

    @cached_property
    def network(self) -> Network:
        """The network without testing nodes."""
        source, made = self.frame.network, Network(self.frame.network.name)
        for name in self.frame.nodes:
            parents, cpt = source.parents(name), source.cpt(name)
            if isinstance(cpt, TestingCPT):
                parts, count = self.parts[name], cpt.thresholds.size
                if len(parts) * count**2 > MAX_DENSE:
                    raise TooLargeError(f"node {name!r} has {count:,} parent states, too many to make them evidence")
                table = np.concatenate([part.prior * np.eye(count) for part in parts], axis=1)
                made.add(self.names[name], parents, len(parts) * count, table.reshape(*cpt.thresholds.shape, -1))
                parents, cpt = (self.names[name],), CPT(np.concatenate([part.rows for part in parts]))
            made.add(name, parents, source.states(name), cpt)
        return made

    @cached_property
    def _query(self) -> TAC:
        bearing = {*self.frame.bearing, *(name for node, name in self.names.items() if node in self.frame.bearing)}
        return self._compiled(self.frame.query, bearing, "auto" if len(self.names) <= SEARCHED else "low")

    @cached_property
    def _marginals(self) -> dict[str, TAC]:
        """For the first node of each group, the query of its companion, and so of its parents."""
        names = {group.nodes[0]: self.names[group.nodes[0]] for group in self.frame.groups}
        return {node: self._compiled(name, set(self.network.ancestors(name)), "low") for node, name in names.items()}

    def _compiled(self, query: str, bearing: Collection[str], effort: str) -> TAC:
        frame = self.frame
        soft = [n for n in (*frame.inputs, *frame.soft, *self.names.values()) if n in bearing and n in self.network]
        hard = [n for n in frame.hard if n in bearing and n in self.network]
        return compile(self.network, query, soft, hard, effort=effort)

    # evaluating -------------------------------------------------------------------------------------------

    def joint(self, likelihoods: Likelihoods, fixed: Mapping[str, Column]) -> tuple[Floats, int]:
        """p*(q), (states, rows), with the evidence that bears on the query."""
        return self._run(self._query, self._columns(likelihoods, fixed), likelihoods.first.shape[1])

    def marginal(self, group: Group, likelihoods: Likelihoods, fixed: Mapping[str, Column]) -> tuple[Floats, int]:
        """p*(u) of a group's parents, (parent states, rows)."""
        tac = self._marginals[group.nodes[0]]
        joint, exponent = self._run(tac, self._columns(likelihoods, fixed), likelihoods.first.shape[1])
        return joint.reshape(-1, group.tests.shape[1], joint.shape[1]).sum(axis=0), exponent

    def joint_slopes(self, setting: Between, fixed: Mapping[str, Column]) -> Slopes:
        """Ends of p*(q) and of its derivatives."""
        return self._slopes(self._query, np.eye(len(self.network.states(self.frame.query))), setting, fixed)

    def marginal_slopes(self, group: Group, setting: Between, fixed: Mapping[str, Column]) -> Slopes:
        """Ends of p*(u) and of its derivatives."""
        parts = len(self.parts[group.nodes[0]])
        seeds = np.tile(np.eye(group.tests.shape[1]), (parts, 1))  # a parent state is all parts of it
        return self._slopes(self._marginals[group.nodes[0]], seeds, setting, fixed)

    def _run(self, tac: TAC, columns: Mapping[str, Column], rows: int) -> tuple[Floats, int]:
        engine = tac.engine()
        found = [engine.run(block.columns, block.rows) for _, block in blocks(columns, rows, engine.chunk)]
        joints, exponents = [result.joint for result in found], [result.exponent for result in found]
        return _with_one_exponent(np.concatenate(joints, axis=1), np.concatenate(exponents))

    def _slopes(self, tac: TAC, seeds: Floats, setting: Between, fixed: Mapping[str, Column]) -> Slopes:
        """Ends of the functions that `seeds` (states of the query, functions) sum up, and of their derivatives."""
        corners = vertices(setting.low, setting.high)
        inputs, boxes, size = corners.shape
        points = corners.reshape(inputs, boxes * size)
        weights = (np.repeat(end, size, axis=1) for end in (setting.least, setting.most))
        columns = [self._columns(end, fixed) for end in Between(points, points, *weights).ends()]
        lower, upper = common_power(*(self._run(tac, c, boxes * size) for c in columns))
        least, most = common_power(*(self._growth(tac, seeds, c, boxes * size) for c in columns))
        found = (seeds.T @ lower, seeds.T @ upper, self._changes(least, most), self._changes(most, least))
        return Slopes(*(end.reshape(*end.shape[:-1], boxes, size) for end in found))

    def _growth(self, tac: TAC, seeds: Floats, columns: Mapping[str, Column], rows: int) -> tuple[Floats, int]:
        """Derivatives by all likelihoods, (likelihoods, functions, rows): of the inputs' states, then of all parts."""
        engine, count = tac.engine(), seeds.shape[1]
        growth, exponents = [], []
        for _, block in blocks(columns, rows, max(1, engine.gradient_chunk // count)):
            by_row = np.repeat(seeds, block.rows, axis=1)  # all rows for one function after the other
            many = {n: _repeated(c, count) for n, c in block.columns.items()}
            found = engine.gradients(many, by_row.shape[1], by_row).likelihoods
            growth.append(self._stacked(found, by_row.shape[1]).reshape(-1, count, block.rows))
            exponents.append(engine.run(block.columns, block.rows).exponent)
        return _with_one_exponent(np.concatenate(growth, axis=2), np.concatenate(exponents))

    def _stacked(self, growth: Mapping[str, NDArray[np.floating]], rows: int) -> Floats:
        names = [*self.frame.inputs, *self.names.values()]
        sizes = [2] * len(self.frame.inputs) + [len(self.network.states(n)) for n in self.names.values()]
        return np.concatenate([growth.get(n, np.zeros((k, rows))) for n, k in zip(names, sizes, strict=True)])

    def _changes(self, up: Floats, down: Floats) -> Floats:
        """Derivatives by inputs and weights, (inputs + tests, functions, rows), from those by likelihoods.

        An input raises one likelihood and lowers the other, and a weight does so with parts: what it raises counts with
        one end, what it lowers with the other.
        """
        inputs, places = len(self.frame.inputs), self.frame.places
        by_test = np.empty((sum(map(len, places.values())), *up.shape[1:]))
        start = 2 * inputs
        for node, parts in self.parts.items():
            count = len(places[node])
            here = [slice(start + k * count, start + (k + 1) * count) for k in range(len(parts))]
            raised = sum(part.plus[:, None, None] * up[h] for part, h in zip(parts, here, strict=True))
            lowered = sum(part.minus[:, None, None] * down[h] for part, h in zip(parts, here, strict=True))
            by_test[places[node]] = raised - lowered
            start += len(parts) * count
        return np.concatenate([up[0 : 2 * inputs : 2] - down[1 : 2 * inputs : 2], by_test])

    def _columns(self, likelihoods: Likelihoods, fixed: Mapping[str, Column]) -> dict[str, Column]:
        columns = dict(fixed)
        for name, *both in zip(self.frame.inputs, likelihoods.first, likelihoods.second, strict=True):
            columns[name] = Column(self.frame.network.variable(name), soft=np.stack(both))
        for node, place in self.frame.places.items():
            plus, minus = likelihoods.plus[place], likelihoods.minus[place]
            soft = [p.fixed[:, None] + p.plus[:, None] * plus + p.minus[:, None] * minus for p in self.parts[node]]
            columns[self.names[node]] = Column(self.network.variable(self.names[node]), soft=np.concatenate(soft))
        return columns


def common_power(lower: tuple[Floats, int], upper: tuple[Floats, int]) -> tuple[Floats, Floats]:
    """Two arrays with the same power of two, which is dropped."""
    top = max(lower[1], upper[1])
    return np.ldexp(lower[0], lower[1] - top), np.ldexp(upper[0], upper[1] - top)


def _with_one_exponent(mantissas: Floats, exponents: NDArray[np.int64]) -> tuple[Floats, int]:
    top = int(exponents.max())
    return np.ldexp(mantissas.astype(np.float64, copy=False), exponents - top), top


def _repeated(column: Column, times: int) -> Column:
    """A column's rows, over and over; one that speaks for all rows stays as it is."""
    if column.rows == 1:
        return column
    codes = None if column.codes is None else np.tile(column.codes, times)
    return Column(column.variable, codes, None if column.soft is None else np.tile(column.soft, (1, times)))


def _names(net: Network, testing: Sequence[str]) -> dict[str, str]:
    names = {}
    for node in testing:
        name = f"{node} selected"
        while name in net:
            name += "'"
        names[node] = name
    return names

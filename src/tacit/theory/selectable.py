"""A query whose selection can be chosen: what bounds, pieces and explanations are computed on.

Every testing node X gets a selector: a variable between X and its parents, with a few states for each of their states
u. Likelihoods on the selector say how much of each row of X's tables counts, and no testing node is left: one compiled
query evaluates any mixture of evidence and selections in one batch. Every p* is multilinear in all likelihoods, with no
negative coefficient.

There are two kinds of selectors. One has states for the rows of plus and of minus, and is exact to the last bit. The
other has states for what both rows have in common, for what only plus has and for what only minus has; it gives closer
bounds where weights are only known to lie between two ends.

The ends of a number are a lower and an upper bound of it. Axes, batch last: points are (inputs, rows), the likelihoods
of the inputs' first states; weights of plus and margins are (tests, rows), where a test is a row of a testing CPT.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TooLargeError
from tacit.base.floats import Floats, divide
from tacit.base.text import fresh_name
from tacit.compiler.order.tree import bits
from tacit.compiler.visibility import selection_scopes
from tacit.engines.engine import Sweep
from tacit.evidence.column import Column, blocks
from tacit.evidence.read import EvidenceLike
from tacit.model.cpt import CPT, TestingCPT
from tacit.model.elements.variable import describe
from tacit.model.model import Model
from tacit.model.rules import MAX_DENSE
from tacit.query.asking.options import CompileOptions
from tacit.query.query import Query, compiled
from tacit.theory.arguments import checked_inputs, read_given
from tacit.theory.multilinear import vertices
from tacit.theory.scope import Group, Scope, Sides
from tacit.theory.unfolding import Threshold

MAX_SEARCHED = 32  # testing nodes up to which a better plan is worth its search


def make_selectable(
    tac: Query, inputs: Iterable[str] | None, given: EvidenceLike | None, posterior_only: bool = False
) -> SelectableQuery:
    """A query over `inputs` (if None, all that can be), with one row of evidence that is `given`."""
    evidence = read_given(tac, given)
    if evidence.rows != 1:
        raise EvidenceError(f"given fixes one row of evidence, got {evidence.rows} rows")
    return SelectableQuery(tac, checked_inputs(tac, inputs, evidence.columns), evidence.columns, posterior_only)


class SelectableQuery:
    """A query, its inputs, and the evidence that stays fixed; the selection is chosen as freely as the inputs.

    With `posterior_only`, evidence and testing nodes that do not bear on P*(query) are left out: p* lacks their factor.
    """

    def __init__(
        self, tac: Query, inputs: Sequence[str], fixed: Mapping[str, Column], posterior_only: bool = False
    ) -> None:
        scope = Scope(tac, inputs, fixed, posterior_only)
        self.scope, self.network, self.query, self.inputs = scope, tac.network, scope.query, scope.inputs
        self.tests, self.groups, self.fixed = scope.tests, scope.groups, dict(fixed)
        self._by_table = SelectorNetwork(scope, states_by_table)
        self._by_overlap = SelectorNetwork(scope, states_by_overlap)

    def with_fixed(self, fixed: Mapping[str, Column]) -> SelectableQuery:
        """The query with other values of its fixed evidence; nothing is compiled again."""
        other = copy(self)
        other.fixed = dict(fixed)
        return other

    def joint(self, points: Floats, weights: Floats, group: Group | None = None) -> tuple[Floats, int]:
        """p*(q), or p*(u) of a group's parents, (states, rows), as numbers and a power of two common to all."""
        return self._by_table.joint(Likelihoods(points, 1 - points, weights, 1 - weights), self.fixed, group)

    def joint_ends(self, ranges: Ranges, group: Group | None = None) -> tuple[Floats, Floats]:
        """Ends of p*(q), or of p*(u) of a group's parents, each (states, rows), but for a common factor."""
        return _common_power(*(self._by_overlap.joint(end, self.fixed, group) for end in ranges.ends()))

    def derivatives(self, ranges: Ranges, group: Group | None = None) -> Derivatives:
        """Ends of p*(q), or of p*(u) of a group's parents, and of their derivatives."""
        return self._by_overlap.derivatives(ranges, self.fixed, group)

    def margins(self, group: Group, marginal: Floats) -> Floats:
        """sign * (p*(u) - T p*) of a group's tests, (nodes, parent states, rows): multilinear in the inputs."""
        which = group.tests[..., None]
        return np.asarray(self.tests.sign[which] * (marginal - self.tests.thresholds[which] * marginal.sum(axis=0)))

    def select(self, points: Floats, sides: Sides | None = None) -> tuple[Floats, Floats]:
        """What evidence selects: weights of plus, and margins sign * (P*(u) - T), both (tests, rows).

        Tests whose side (tests, rows) is given, not 0, take it whatever their margin is.
        """
        weights = np.ones((len(self.tests), points.shape[1]))
        margins = np.zeros_like(weights)
        for group in self.groups:
            marginal, _ = self.joint(points, weights, group)
            margins[group.tests] = divide(self.margins(group, marginal), marginal.sum(axis=0))
            chosen = self.tests.weights(margins[group.tests], group.tests)
            if sides is not None:
                side = sides[group.tests]
                chosen = np.where(side == 0, chosen, side > 0)
            weights[group.tests] = chosen
        return weights, margins

    def posterior(self, points: Floats) -> Floats:
        """P*(q), (states, rows), with what the evidence selects; NaN where it is impossible."""
        return normalised(self.joint(points, self.select(points)[0])[0])

    def possible(self, tac: Query, point: Floats) -> bool:
        """Whether evidence has positive probability, what does not bear on the query included."""
        seen = {name: column for name, column in self.fixed.items() if name in tac.evidence}
        fixed = {n: column if column.variable.continuous else column.likelihoods().T for n, column in seen.items()}
        moved = {name: np.array([[value, 1 - value]]) for name, value in zip(self.inputs, point, strict=True)}
        return bool(np.isfinite(tac.log_evidence({**fixed, **moved})).all())

    def by_node(self, holds: NDArray[np.bool_]) -> dict[str, NDArray[np.generic]]:
        """Whether plus rules at each parent state of a testing node, or which of more tables, by which tests hold."""
        tables: dict[str, NDArray[np.generic]] = {}
        for node, tests in self.scope.tests_of.items():
            shape = [self.network.variable(p).card for p in self.scope.network.parents(node)]
            owner, table = self.scope.thresholds[node]
            if table is None:
                tables[owner] = holds[tests].reshape(shape)
            else:
                ruling = table * (holds & ~self.tests.idle)[tests].reshape(shape)
                tables[owner] = np.maximum(tables[owner], ruling) if owner in tables else ruling
        return tables

    def threshold(self, test: int) -> Threshold:
        """What a test is in the user's network."""
        return self.scope.thresholds[self.tests.nodes[test]]

    def name(self, test: int) -> str:
        """The parent state that a test is about, by labels: "A='yes', B='lo'"."""
        parents = [self.network.variable(p) for p in self.network.parents(self.threshold(test).node)]
        return describe(parents, [int(i) for i in np.unravel_index(self.tests.states[test], [p.card for p in parents])])

    def evidence(self, point: Floats) -> dict[str, float]:
        """A point by the names of the inputs."""
        return dict(zip(self.inputs, point.tolist(), strict=True))


def normalised(joint: Floats) -> Floats:
    """A joint (states, rows) as posteriors; NaN where the evidence has probability zero."""
    return divide(joint, joint.sum(axis=0))


class Likelihoods(NamedTuple):
    """Everything that p* grows with: likelihoods of both states of the inputs, weights of both tables in the tests."""

    first: Floats
    second: Floats
    plus: Floats
    minus: Floats


class Ranges(NamedTuple):
    """Inputs (inputs, rows) and weights of plus (tests, rows), each between two ends."""

    low: Floats
    high: Floats
    least: Floats
    most: Floats

    def ends(self) -> tuple[Likelihoods, Likelihoods]:
        """The smallest and the largest likelihoods of all."""
        lower = Likelihoods(self.low, 1 - self.high, self.least, 1 - self.most)
        return lower, Likelihoods(self.high, 1 - self.low, self.most, 1 - self.least)


class Derivatives(NamedTuple):
    """Ends of some functions at the vertices of boxes, and of their derivatives, but for a common factor.

    The former are (functions, boxes, vertices), the latter (inputs + tests, functions, boxes, vertices): derivatives by
    inputs, then by weights.
    """

    lower: Floats
    upper: Floats
    least: Floats
    most: Floats


class SelectorState(NamedTuple):
    """One state of a selector, for every parent state: its prior, its rows of X's table, and how much of them counts.

    The latter is fixed + plus * weight of plus + minus * weight of minus; each is (parent states,).
    """

    prior: float
    rows: Floats
    fixed: Floats
    plus: Floats
    minus: Floats


def states_by_table(plus: Floats, minus: Floats) -> list[SelectorState]:
    """The rows of both tables; their priors are powers of two, so that exact ties stay exact."""
    zero, two = np.zeros(len(plus)), np.full(len(plus), 2.0)
    return [SelectorState(1 / 2, plus, zero, two, zero), SelectorState(1 / 2, minus, zero, zero, two)]


def states_by_overlap(plus: Floats, minus: Floats) -> list[SelectorState]:
    """What the rows of both tables have in common, what only plus has, and what only minus has."""
    common, zero = np.minimum(plus, minus), np.zeros(len(plus))
    tables = [common, plus - common, minus - common]
    mass = [table.sum(axis=1) for table in tables]
    # a row of zeros, which never counts, becomes uniform
    rows = [divide(table, table.sum(axis=1, keepdims=True), otherwise=1 / table.shape[1]) for table in tables]
    return [
        SelectorState(1 / 2, rows[0], 2 * mass[0], zero, zero),
        SelectorState(1 / 4, rows[1], zero, 4 * mass[1], zero),
        SelectorState(1 / 4, rows[2], zero, zero, 4 * mass[2]),
    ]


class SelectorNetwork:
    """The network with selectors of one kind, and its queries; results are numbers and a power of two common to all."""

    def __init__(self, scope: Scope, states_of: Callable[[Floats, Floats], list[SelectorState]]) -> None:
        self.scope, self._states_of = scope, states_of
        self.names = {node: fresh_name(f"{node} selected", scope.network) for node in scope.tests_of}

    @cached_property
    def states(self) -> dict[str, list[SelectorState]]:
        """The states of every selector, by testing node."""
        states = {}
        for node in self.names:
            cpt = self.scope.network.cpt(node)
            assert isinstance(cpt, TestingCPT)
            states[node] = self._states_of(*(t.reshape(cpt.thresholds.size, -1) for t in (cpt.plus, cpt.minus)))
        return states

    @cached_property
    def network(self) -> Model:
        """The network without testing nodes."""
        source, net = self.scope.network, Model(self.scope.network.name)
        for name in self.scope.nodes:
            parents, cpt = source.parents(name), source.cpt(name)
            if isinstance(cpt, TestingCPT):
                states, count = self.states[name], cpt.thresholds.size
                if len(states) * count**2 > MAX_DENSE:
                    raise TooLargeError(f"node {name!r} has {count:,} parent states, too many to make them evidence")
                table = np.concatenate([state.prior * np.eye(count) for state in states], axis=1)
                net.add(self.names[name], parents, len(states) * count, table.reshape(*cpt.thresholds.shape, -1))
                parents, cpt = (self.names[name],), CPT(np.concatenate([state.rows for state in states]))
            if columns := source.variable(name).columns:
                net.add(columns, parents, cpt=cpt)
            else:
                net.add(name, parents, source.states(name), cpt, bins=source.bins(name))
        return net

    @cached_property
    def _query(self) -> Query:
        effort = "auto" if len(self.names) <= MAX_SEARCHED else "low"
        return self._compiled(self.scope.query, self.scope.bearing, effort)

    @cached_property
    def _marginals(self) -> dict[str, Query]:
        """For the first node of each group, the query of its selector, and so of its parents."""
        scope, queries = self.scope, {}
        parts = selection_scopes(scope.network, scope.nodes, (*scope.inputs, *scope.soft, *scope.hard), scope.hard)
        for node in (group.nodes[0] for group in scope.groups):
            queries[node] = self._compiled(self.names[node], {scope.nodes[i] for i in bits(parts[node])}, "low")
        return queries

    def _compiled(self, query: str, bearing: Collection[str], effort: str) -> Query:
        """A query with evidence on the variables that bear on it, and on their selectors."""
        scope, selectors = self.scope, [name for node, name in self.names.items() if node in bearing]
        evidence = [n for n in (*scope.inputs, *scope.soft) if n in bearing]
        soft = [n for n in (*evidence, *selectors) if n in self.network]
        hard = [n for n in scope.hard if n in bearing and n in self.network]
        return compiled(Query, self.network, query, soft, hard, CompileOptions(effort=effort))

    def joint(self, likelihoods: Likelihoods, fixed: Mapping[str, Column], group: Group | None) -> tuple[Floats, int]:
        """p*(q) with the evidence that bears on the query, or p*(u) of a group's parents: (states, rows)."""
        tac, states = self._asked(group)
        joint, exponent = self._run(tac, self._columns(likelihoods, fixed), likelihoods.first.shape[1])
        return joint.reshape(-1, states, joint.shape[1]).sum(axis=0), exponent

    def _asked(self, group: Group | None) -> tuple[Query, int]:
        """The compiled query and how many states it is about; a parent state is all states of a selector there."""
        if group is None:
            return self._query, len(self.network.states(self.scope.query))
        return self._marginals[group.nodes[0]], group.tests.shape[1]

    def _run(self, tac: Query, columns: Mapping[str, Column], rows: int) -> tuple[Floats, int]:
        engine = tac.engine().runner(rows, Sweep.FORWARD)
        results = [engine.run(block.columns, block.rows) for _, block in blocks(columns, rows, engine.chunk)]
        joints, exponents = [result.joint for result in results], [result.exponent for result in results]
        return _with_one_exponent(np.concatenate(joints, axis=1), np.concatenate(exponents))

    def derivatives(self, ranges: Ranges, fixed: Mapping[str, Column], group: Group | None) -> Derivatives:
        """Ends of p*(q), or of p*(u) of a group's parents, and of their derivatives."""
        tac, states = self._asked(group)
        seeds = np.tile(np.eye(states), (tac.program.outputs // states, 1))
        corners = vertices(ranges.low, ranges.high)
        inputs, boxes, size = corners.shape
        points = corners.reshape(inputs, boxes * size)
        weights = (np.repeat(end, size, axis=1) for end in (ranges.least, ranges.most))
        columns = [self._columns(end, fixed) for end in Ranges(points, points, *weights).ends()]
        lower, upper = _common_power(*(self._run(tac, c, boxes * size) for c in columns))
        least, most = _common_power(*(self._growth(tac, seeds, c, boxes * size) for c in columns))
        ends = (seeds.T @ lower, seeds.T @ upper, self._changes(least, most), self._changes(most, least))
        return Derivatives(*(end.reshape(*end.shape[:-1], boxes, size) for end in ends))

    def _growth(self, tac: Query, seeds: Floats, columns: Mapping[str, Column], rows: int) -> tuple[Floats, int]:
        """Derivatives by all likelihoods, (likelihoods, functions, rows): of the inputs' states, then of selectors'."""
        count = seeds.shape[1]
        engine = tac.engine().runner(rows * count, Sweep.FORWARD, Sweep.THROUGH)
        sizes = dict.fromkeys(self.scope.inputs, 2) | {n: len(self.network.states(n)) for n in self.names.values()}
        growth, exponents = [], []
        for _, block in blocks(columns, rows, max(1, engine.gradient_chunk // count)):
            by_row = np.repeat(seeds, block.rows, axis=1)  # all rows for one function after the other
            many = {n: _repeated(c, count) for n, c in block.columns.items()}
            exponent = engine.run(block.columns, block.rows).exponent
            slopes = engine.gradients(many, by_row.shape[1], by_row, np.tile(exponent, count)).likelihoods
            stacked = np.concatenate([slopes.get(n, np.zeros((k, by_row.shape[1]))) for n, k in sizes.items()])
            growth.append(stacked.reshape(-1, count, block.rows))
            exponents.append(exponent)
        return _with_one_exponent(np.concatenate(growth, axis=2), np.concatenate(exponents))

    def _changes(self, up: Floats, down: Floats) -> Floats:
        """Derivatives by inputs and weights, (inputs + tests, functions, rows), from those by likelihoods.

        An input raises one likelihood and lowers the other, and a weight does so with the states of a selector: what it
        raises counts with one end, what it lowers with the other.
        """
        inputs = len(self.scope.inputs)
        by_test = np.empty((len(self.scope.tests), *up.shape[1:]))
        start = 2 * inputs
        for node, states in self.states.items():
            tests = self.scope.tests_of[node]
            here = [slice(start + k * len(tests), start + (k + 1) * len(tests)) for k in range(len(states))]
            raised = sum(state.plus[:, None, None] * up[h] for state, h in zip(states, here, strict=True))
            lowered = sum(state.minus[:, None, None] * down[h] for state, h in zip(states, here, strict=True))
            by_test[tests] = raised - lowered
            start += len(states) * len(tests)
        return np.concatenate([up[0 : 2 * inputs : 2] - down[1 : 2 * inputs : 2], by_test])

    def _columns(self, likelihoods: Likelihoods, fixed: Mapping[str, Column]) -> dict[str, Column]:
        columns = dict(fixed)
        for name, *both in zip(self.scope.inputs, likelihoods.first, likelihoods.second, strict=True):
            columns[name] = Column(self.scope.network.variable(name), soft=np.stack(both))
        for node, tests in self.scope.tests_of.items():
            plus, minus = likelihoods.plus[tests], likelihoods.minus[tests]
            soft = [s.fixed[:, None] + s.plus[:, None] * plus + s.minus[:, None] * minus for s in self.states[node]]
            columns[self.names[node]] = Column(self.network.variable(self.names[node]), soft=np.concatenate(soft))
        return columns


def _common_power(lower: tuple[Floats, int], upper: tuple[Floats, int]) -> tuple[Floats, Floats]:
    """Two arrays with the same power of two, which is dropped."""
    top = max(lower[1], upper[1])
    return np.ldexp(lower[0], lower[1] - top), np.ldexp(upper[0], upper[1] - top)


def _with_one_exponent(mantissas: Floats, exponents: NDArray[np.int64]) -> tuple[Floats, int]:
    top = int(exponents.max())
    return np.ldexp(mantissas.astype(np.float64, copy=False), exponents - top), top


def _repeated(column: Column, times: int) -> Column:
    """A column's rows, over and over; a single row, which stands for all, stays as it is."""
    if column.rows == 1:
        return column
    codes = None if column.codes is None else np.tile(column.codes, times)
    return Column(column.variable, codes, None if column.soft is None else np.tile(column.soft, (1, times)))

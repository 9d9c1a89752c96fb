"""What a question about all evidence needs of a query: the nodes, the inputs, and the tests that decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.prune import relevant
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.evidence.column import Column
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.query.query import Query
from tacit.theory.unfolding import Threshold, unfold

Bools = NDArray[np.bool_]
Sides = NDArray[np.int8]  # of tests: 1 plus, -1 minus, 0 open

TIE = 1e-12  # a posterior this close to its threshold counts as a tie


@dataclass(frozen=True)
class Tests:
    """The rows of the testing CPTs that a query needs, one after the other; every array is (tests,).

    `sign` is -1 for `<=` and `<`, so that the margin sign * (P*(u) - threshold) is positive where plus rules; `closed`
    says whether plus rules at a tie. `gamma` is NaN for hard tests. A test is `idle` if both of its rows are equal.
    """

    nodes: tuple[str, ...]
    states: tuple[int, ...]
    operators: NDArray[np.str_]
    thresholds: Floats
    sign: Floats
    closed: Bools
    gamma: Floats
    idle: Bools

    def __len__(self) -> int:
        return len(self.nodes)

    @cached_property
    def hard(self) -> Bools:
        """The tests that have a border: neither sigmoids nor idle."""
        return np.isnan(self.gamma) & ~self.idle

    @cached_property
    def soft(self) -> Bools:
        """The tests that are sigmoids, and not idle."""
        return ~np.isnan(self.gamma) & ~self.idle

    def rejects_ties(self, sides: Sides) -> Bools:
        """Whether a tie puts a test on the other side: sides are (tests,) or (tests, rows)."""
        closed = self.closed.reshape(-1, *[1] * (sides.ndim - 1))
        return np.where(sides > 0, ~closed, closed)

    def weights(self, margin: Floats, which: NDArray[np.intp]) -> Floats:
        """The weights of plus of some tests from their margins (which..., rows); NaN, from 0/0, counts as a tie."""
        margin, shape = np.nan_to_num(margin), (*which.shape, 1)
        holds = np.where(self.closed[which].reshape(shape), margin >= 0, margin > 0)
        slope = self.gamma[which].reshape(shape)
        soft, _ = NumpyArrays().sigmoids(np.nan_to_num(slope) * margin, margin)
        return np.where(self.idle[which].reshape(shape), 1.0, np.where(np.isnan(slope), holds, soft))


@dataclass(frozen=True, eq=False)
class Group:
    """Testing nodes with the same parents, whose joint posterior they share; `tests` is (nodes, parent states)."""

    nodes: tuple[str, ...]
    tests: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Scope:
    """What a query needs: its network, pruned to `nodes`, and names of inputs and of evidence that stays fixed.

    `bearing` are the variables whose evidence counts for the query, `tests_of` the tests of each testing node, and
    `groups` the testing nodes, ancestors first. Where the user's network has more than two tables, the `network` is
    unfolded, and `thresholds` tells what its testing nodes stand for.
    """

    network: Model
    query: str
    nodes: tuple[str, ...]
    inputs: tuple[str, ...]
    soft: tuple[str, ...]
    hard: tuple[str, ...]
    bearing: frozenset[str]
    tests: Tests
    tests_of: Mapping[str, NDArray[np.intp]]
    groups: tuple[Group, ...]
    thresholds: Mapping[str, Threshold]


def scope_of(tac: Query, inputs: Sequence[str], fixed: Mapping[str, Column], posterior_only: bool) -> Scope:
    """The scope of a query; with `posterior_only`, without evidence and testing nodes that do not bear on P*(query)."""
    tac.require_no_do()
    query = tac.variable.name
    net, thresholds = unfold(tac.network, relevant(tac.network, [query, *inputs, *fixed]))
    hard = [n for n, column in fixed.items() if column.certain]
    nodes = relevant(net, [query, *inputs, *fixed])
    bearing = set(nodes)
    if posterior_only:
        bearing = _connected(net, nodes, query, hard)
        nodes = relevant(net, [query, *(n for n in nodes if n in bearing and (n in inputs or n in fixed))])
    net.require_numbers(nodes)
    testing = {n: cpt for n in nodes if isinstance(cpt := net.cpt(n), TestingCPT)}
    tests_of, count = {}, 0
    for node, cpt in testing.items():
        tests_of[node] = np.arange(count, count := count + cpt.thresholds.size)
    together: dict[tuple[str, ...], list[str]] = {}  # by their parents
    for node in tests_of:
        together.setdefault(net.parents(node), []).append(node)
    return Scope(
        network=net,
        query=query,
        nodes=nodes,
        inputs=tuple(inputs),
        soft=tuple(n for n in fixed if n not in hard),
        hard=tuple(hard),
        bearing=frozenset(bearing),
        tests=_tests(testing),
        tests_of=tests_of,
        groups=tuple(Group(tuple(alike), np.stack([tests_of[n] for n in alike])) for alike in together.values()),
        thresholds=thresholds,
    )


def _connected(net: Model, nodes: Iterable[str], query: str, hard: Sequence[str]) -> set[str]:
    """The variables that the query depends on: those it reaches in the moral graph, but not through certain ones."""
    neighbours: dict[str, set[str]] = {}
    for name in nodes:
        family = {name, *net.parents(name)}
        for member in family:
            neighbours.setdefault(member, set()).update(family)
    reached, stack = {query}, [query]
    while stack:
        name = stack.pop()
        if name == query or name not in hard:
            new = neighbours[name] - reached
            reached |= new
            stack.extend(new)
    return reached


def _tests(testing: Mapping[str, TestingCPT]) -> Tests:
    each = [(node, cpt, u) for node, cpt in testing.items() for u in range(cpt.thresholds.size)]
    operators = np.array([cpt.test.flat[u] for _, cpt, u in each], dtype="<U2")
    return Tests(
        nodes=tuple(node for node, _, _ in each),
        states=tuple(u for _, _, u in each),
        operators=operators,
        thresholds=np.array([cpt.thresholds.flat[u] for _, cpt, u in each]),
        sign=np.where(np.isin(operators, (">=", ">")), 1.0, -1.0),
        closed=np.isin(operators, (">=", "<=")),
        gamma=np.array([np.nan if cpt.gamma is None else cpt.gamma for _, cpt, _ in each]),
        idle=np.array([(cpt.plus == cpt.minus).all(axis=-1).flat[u] for _, cpt, u in each], dtype=bool),
    )

"""What a question about all evidence needs of a query: the nodes, the inputs, and the tests that decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.prune import relevant
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.evidence.column import Column
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.query.query import Query
from tacit.theory.unfolding import unfold

Bools = NDArray[np.bool_]
Sides = NDArray[np.int8]  # of tests: 1 plus, -1 minus, 0 open

TIE = 1e-12  # a posterior this close to its threshold counts as a tie


class Tests:
    """The rows of the testing CPTs that a query needs, one after the other; every array is (tests,).

    `sign` is -1 for `<=` and `<`, so that the margin sign * (P*(u) - threshold) is positive where plus rules; `closed`
    says whether plus rules at a tie. `gamma` is NaN for hard tests. A test is `idle` if both of its rows are equal;
    `hard` tests, which have a border, and `soft` ones, which are sigmoids, are those that are not.
    """

    def __init__(self, testing: Mapping[str, TestingCPT]) -> None:
        each = [(node, cpt, u) for node, cpt in testing.items() for u in range(cpt.thresholds.size)]
        self.nodes, self.states = [node for node, _, _ in each], [u for _, _, u in each]
        self.operators = np.array([operator for cpt in testing.values() for operator in cpt.test.flat], dtype="<U2")
        self.thresholds = np.array([limit for cpt in testing.values() for limit in cpt.thresholds.flat])
        self.sign = np.where(np.isin(self.operators, (">=", ">")), 1.0, -1.0)
        self.closed = np.isin(self.operators, (">=", "<="))
        self.gamma = np.array([np.nan if cpt.gamma is None else cpt.gamma for _, cpt, _ in each])
        same = [(cpt.plus == cpt.minus).all(axis=-1) for cpt in testing.values()]
        self.idle = np.array([idle for rows in same for idle in rows.flat], dtype=bool)
        self.hard = np.isnan(self.gamma) & ~self.idle
        self.soft = ~np.isnan(self.gamma) & ~self.idle
        self.open_sides: Sides = np.where(self.hard, 0, 1).astype(np.int8)  # before any test is decided

    def __len__(self) -> int:
        return len(self.nodes)

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


class Group(NamedTuple):
    """Testing nodes with the same parents, whose joint posterior they share; `tests` is (nodes, parent states)."""

    nodes: tuple[str, ...]
    tests: NDArray[np.intp]


class Scope:
    """What a query needs: its network, pruned to `nodes`, and names of inputs and of evidence that stays fixed.

    `bearing` are the variables whose evidence counts for the query, `tests_of` the tests of each testing node, and
    `groups` the testing nodes, ancestors first. Where the user's network has more than two tables, the `network` is
    unfolded, and `thresholds` tells what its testing nodes stand for. With `posterior_only`, evidence and testing nodes
    that do not bear on P*(query) are left out.
    """

    def __init__(self, tac: Query, inputs: Sequence[str], fixed: Mapping[str, Column], posterior_only: bool) -> None:
        tac.require_no_do()
        tac.require_no_tables("what is said of a function")
        self.query, self.inputs = tac.variable.name, tuple(inputs)
        self.network, self.thresholds = unfold(tac.network, relevant(tac.network, [self.query, *inputs, *fixed]))
        self.hard = tuple(n for n, column in fixed.items() if column.fully_observed)
        self.soft = tuple(n for n in fixed if n not in self.hard)
        net, self.nodes = self.network, relevant(self.network, [self.query, *inputs, *fixed])
        self.bearing = set(self.nodes)
        if posterior_only:
            self.bearing = _connected(net, self.nodes, self.query, self.hard)
            counting = (n for n in self.nodes if n in self.bearing and (n in inputs or n in fixed))
            self.nodes = relevant(net, [self.query, *counting])
        net.require_numbers(self.nodes)
        testing = {n: cpt for n in self.nodes if isinstance(cpt := net.cpt(n), TestingCPT)}
        self.tests, count = Tests(testing), 0
        self.tests_of: dict[str, NDArray[np.intp]] = {}
        together: dict[tuple[str, ...], list[str]] = {}  # by their parents
        for node, cpt in testing.items():
            self.tests_of[node] = np.arange(count, count := count + cpt.thresholds.size)
            together.setdefault(net.parents(node), []).append(node)
        self.groups = [Group(tuple(alike), np.stack([self.tests_of[n] for n in alike])) for alike in together.values()]


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

"""Which tables the testing nodes of a query may choose, row by row, as far as intervals tell.

A test compares the posterior of the parents' states, given the evidence that the node sees, with a threshold. Windows
bound that posterior. Where its interval is on one side of the threshold, the table is certain; where it is not, the
table lies between all that may be chosen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from tacit.base.floats import Floats
from tacit.base.text import fresh_name
from tacit.bounds.factor_list import Factor, FactorList, factor_list
from tacit.bounds.posterior_bounds import bounds_of
from tacit.bounds.row_numbers import Pair, RowNumbers, numbers_of
from tacit.bounds.window_choice import Budget, chosen
from tacit.bounds.window_table import WindowTable
from tacit.bounds.windows import Surroundings, Window
from tacit.compiler.question import Question
from tacit.evidence.column import Evidence
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.query.asking.options import Limits

MARGIN = 1e-12  # from a threshold, within which rounding may decide a test


@dataclass(frozen=True)
class _Test:
    """What the parents of a testing node are asked: their joint state is a variable of its own, with a window."""

    node: str
    seen: tuple[str, ...]  # the evidence that the node sees
    surroundings: Surroundings
    open_parents: tuple[str, ...]  # those whose states are neither certain nor known in each row
    window: Window | None


class Selections:
    """The tables of testing nodes for rows of evidence, each between two."""

    def __init__(self, net: Model, question: Question, limits: Limits) -> None:
        self.network, self._question, self._limits = net.cut(question.do) if question.do else net, question, limits
        self._tests: dict[str, _Test] = {}

    def tables(self, nodes: Iterable[str], known: Evidence, until: float = math.inf) -> dict[str, Pair]:
        """The tables of some testing nodes over all states: (parents..., states, rows). Late ones are left out."""
        wanted = set(nodes)
        wanted |= {above for node in wanted for above in self.network.ancestors(node)}
        selected: dict[str, Pair] = {}
        for node in self.network.testing_nodes:  # ancestors first
            if node not in wanted or node in self._question.do:
                continue
            if time.monotonic() > until:
                break
            selected[node] = self._table(node, known, selected)
        return selected

    def _table(self, node: str, known: Evidence, selected: Mapping[str, Pair]) -> Pair:
        cpt = self.network.cpt(node)
        assert isinstance(cpt, TestingCPT)
        low, high = self._parents(node, known, selected)
        if cpt.gamma is None:
            return _by_tests(cpt, low, high)
        return _by_sigmoid(cpt, low, high) if len(cpt.tables) == 2 else _between(np.stack(cpt.tables)[..., None])

    def _parents(self, node: str, known: Evidence, selected: Mapping[str, Pair]) -> tuple[Floats, Floats]:
        """The ends of the posteriors of the parents' joint states: (parents..., rows)."""
        test = self._tests.get(node) or self._tests.setdefault(node, self._made(node))
        factors, parents = test.surroundings.factors, self.network.parents(node)
        shape = [self.network.variable(parent).card for parent in parents]
        columns = {n: column for n, column in known.columns.items() if n in test.seen}
        ends = np.ones((2, 1, known.rows))
        if test.window is not None:
            numbers = numbers_of(test.surroundings, columns, known.rows)
            numbers = replace(numbers, selected=in_factors(factors, self.network, selected))
            bounds = bounds_of(WindowTable.of(numbers, test.window), known.rows)
            ends = np.stack([np.nan_to_num(bounds.low, nan=0.0), np.nan_to_num(bounds.high, nan=1.0)])
        kept = [factors.states[parent] for parent in parents]
        open_shape = [len(factors.states[parent]) if parent in test.open_parents else 1 for parent in parents]
        whole = np.zeros((2, *shape, known.rows))
        for own, end in zip(whole, ends, strict=True):
            own[np.ix_(*kept)] = end.reshape(*open_shape, known.rows)
        for axis, parent in enumerate(parents):
            if parent in test.surroundings.settled:
                state = columns[parent].likelihoods()
                whole = whole * state.reshape([-1 if i == axis else 1 for i in range(len(shape))] + [state.shape[1]])
        return whole[0], whole[1]

    def _made(self, node: str) -> _Test:
        net, question, parents = self.network, self._question, self.network.parents(node)
        seen = tuple(_seen(net, node, (*question.evidence, *dict(question.given))))
        asked = Question(
            parents,
            tuple(n for n in question.evidence if n in seen),
            tuple(n for n in question.hard if n in seen),
            tuple(n for n in question.do if n in seen),
            tuple((n, state) for n, state in question.given if n in seen),
        )
        factors, settled = factor_list(net, asked), frozenset((*asked.hard, *asked.do))
        open_parents = tuple(p for p in parents if p in factors.cards and p not in settled)
        if not open_parents:
            return _Test(node, seen, Surroundings(factors, settled), (), None)
        joint, factors = _with_joint(factors, open_parents)
        surroundings = Surroundings(factors, settled)
        until = time.monotonic() + self._limits.seconds
        budget = Budget(self._limits.multiply_adds, 0.0, until)
        window = chosen(RowNumbers(surroundings), joint, budget).window
        return _Test(node, seen, surroundings, open_parents, window)


def in_factors(factors: FactorList, net: Model, selected: Mapping[str, Pair]) -> dict[int, Pair]:
    """Tables of testing nodes over the states that are left in a list of factors, by the places of factors."""
    places = {}
    for place, factor in enumerate(factors.factors):
        node = factor.testing
        if node is not None and node in selected:
            pair, left = selected[node], [factors.states[name] for name in (*net.parents(node), node)]
            shape = [len(own) for own in left if len(own) > 1]
            ends = [end[np.ix_(*left)].reshape(*shape, end.shape[-1]) for end in pair]
            places[place] = Pair(*ends)
    return places


def _seen(net: Model, node: str, evidence: Iterable[str]) -> list[str]:
    """The evidence that takes part when the table of a testing node is selected; see `tacit.semantics`."""
    above = net.ancestors(node)
    if net.selection == "ancestral":
        return [n for n in evidence if n in above]
    others = [n for n in net.testing_nodes if n not in above]
    hidden = {*others, *(n for other in others for n in net.descendants(other))}
    return [n for n in evidence if n not in hidden]


def _with_joint(factors: FactorList, names: tuple[str, ...]) -> tuple[str, FactorList]:
    """The factors, and a variable whose states are the joint states of some others, in their order."""
    if len(names) == 1:
        return names[0], factors
    joint = fresh_name("parents", set(factors.cards))
    shape = [factors.cards[name] for name in names]
    table = np.eye(math.prod(shape)).reshape(*shape, -1)
    cards = {**factors.cards, joint: math.prod(shape)}
    return joint, replace(factors, cards=cards, factors=(*factors.factors, Factor((*names, joint), table, table)))


def _by_tests(cpt: TestingCPT, low: Floats, high: Floats) -> Pair:
    """The table between those of all outcomes that the ends of posteriors, (parents..., rows), leave to tests."""
    limits, below = cpt.limits[..., None, :], np.isin(cpt.test, ("<", "<="))[..., None, None]
    above, under = low[..., None] > limits + MARGIN, high[..., None] < limits - MARGIN
    sure, never = np.where(below, under, above), np.where(below, above, under)
    least, most = sure.sum(axis=-1), cpt.limits.shape[-1] - never.sum(axis=-1)  # (parents..., rows)
    tables, number = np.stack(cpt.tables)[..., None], np.arange(len(cpt.tables))
    places = number.reshape(-1, *[1] * (tables.ndim - 1))
    possible = (places >= least[..., None, :]) & (places <= most[..., None, :])  # (tables, parents..., 1, rows)
    return Pair(np.where(possible, tables, np.inf).min(axis=0), np.where(possible, tables, -np.inf).max(axis=0))


def _by_sigmoid(cpt: TestingCPT, low: Floats, high: Floats) -> Pair:
    """The table between those of the ends of the weight."""
    sign = np.where(cpt.mirrored, -1.0, 1.0)[..., None]
    ends = [sign * float(cpt.gamma or 0.0) * (end - cpt.limits[..., 0, None]) for end in (low, high)]
    weights = [1 / (1 + np.exp(-np.clip(end, -700, 700))) for end in ends]
    least = np.clip(np.minimum(*weights) - MARGIN, 0, 1)[..., None, :]
    most = np.clip(np.maximum(*weights) + MARGIN, 0, 1)[..., None, :]
    minus, plus = (table[..., None] for table in cpt.tables)
    return _between(np.stack([minus * (1 - weight) + plus * weight for weight in (least, most)]))


def _between(tables: Floats) -> Pair:
    """What lies between all of some tables, (tables, parents..., states, rows)."""
    return Pair(tables.min(axis=0), tables.max(axis=0))

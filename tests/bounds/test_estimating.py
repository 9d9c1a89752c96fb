"""Estimates are exact where the clusters are large enough, and near the truth where they are not."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.bounds import estimating
from tacit.bounds.estimating import Estimator
from tacit.bounds.factor_list import Factor, FactorList, factor_list
from tacit.compiler.question import Question
from tests.helpers import close, tries
from tests.strategies import networks, rngs

NEAR = 1e-9


def joint(factors, likelihoods, row):
    """The product of everything over all variables, and the axis of each."""
    axes = {name: i for i, name in enumerate(factors.cards)}
    ones = [(np.ones(card), [axes[name]]) for name, card in factors.cards.items()]
    tables = [((f.low + f.high) / 2, [axes[name] for name in f.scope]) for f in factors.factors]
    soft = [(table[row], [axes[name]]) for name, table in likelihoods.items()]
    operands = [part for operand in ones + tables + soft for part in operand]
    return np.einsum(*operands, list(axes.values())), axes


def check(factors, estimator, likelihoods, rows, tolerance=NEAR):
    """Compare marginals and partition functions with sums over the whole joint."""
    marginals, logs = estimator.marginals(likelihoods), estimator.log_partition(likelihoods)
    assert list(marginals) == list(factors.cards)
    for row in range(rows):
        table, axes = joint(factors, likelihoods, row)
        total = table.sum()
        if total == 0:
            assert logs[row] == -np.inf
        else:
            close(logs[row], np.log(total), tolerance)
        for name, axis in axes.items():
            expected = table.sum(axis=tuple(a for a in axes.values() if a != axis))
            close(marginals[name][row], expected / (total or 1.0), tolerance)


def grid(side, rng, strength=1.0):
    """Pairs of neighbours on a square that attract or repel each other."""
    cells = list(itertools.product(range(side), repeat=2))
    pairs = [(a, b) for a in cells for b in cells if (b[0] - a[0], b[1] - a[1]) in {(0, 1), (1, 0)}]
    tables = [np.exp(strength * rng.normal() * np.array([[1.0, -1.0], [-1.0, 1.0]])) for _ in pairs]
    fields = [np.exp(rng.normal(size=2)) for _ in cells]
    factors = [Factor((str(a), str(b)), t, t) for (a, b), t in zip(pairs, tables, strict=True)]
    factors += [Factor((str(cell),), t, t) for cell, t in zip(cells, fields, strict=True)]
    names = {str(cell): 2 for cell in cells}
    return FactorList(names, {}, tuple(factors), tuple(names)[:3])


@tries(60)
@given(networks(max_nodes=7), st.data(), rngs)
def test_exact_where_the_clusters_are_large_enough(net, data, rng):
    query, *evidence = data.draw(st.permutations(net.variables))
    factors = factor_list(net, Question((query,), tuple(evidence[:3])))
    shuffled = data.draw(st.permutations(factors.factors))
    factors = FactorList(factors.cards, factors.states, tuple(shuffled), factors.evidence)
    estimator = Estimator(factors, seconds=60)
    rows = 3
    likelihoods = {
        name: rng.random((rows, factors.cards[name])) * rng.integers(0, 2, (rows, factors.cards[name]))
        for name in factors.evidence
    }
    assert estimator.exact
    check(factors, estimator, likelihoods, rows if likelihoods else 1)


@pytest.mark.parametrize("seed", range(3))
def test_exact_on_trees_whatever_the_budget(seed, monkeypatch):
    monkeypatch.setattr(estimating, "BUDGETS", (1,))
    rng = np.random.default_rng(seed)
    above = [int(rng.integers(0, min(i, 3))) for i in range(1, 12)]  # the first ones have many children
    tables = [rng.random((3, 2) if j == 0 else (2, 2)) * rng.integers(0, 4, (3 if j == 0 else 2, 2)) for j in above]
    factors = [Factor((str(j), str(i)), t, t) for i, (j, t) in enumerate(zip(above, tables, strict=True), start=1)]
    tree = FactorList({str(i): 2 + (i == 0) for i in range(12)}, {}, tuple(factors), ("3", "7"))
    estimator = Estimator(tree)
    assert estimator.exact
    check(tree, estimator, {"3": rng.random((2, 2)), "7": rng.random((2, 2))}, 2)


def test_hub_of_many_messages(monkeypatch):
    """No underflow where many messages meet that agree, or contradict each other."""
    monkeypatch.setattr(estimating, "BUDGETS", (1,))
    count, table = 60, np.array([[1.0, 0.2], [0.2, 0.8]])
    factors = [Factor(("hub", str(i)), table, table) for i in range(count)]
    names = [str(i) for i in range(count)]
    star = FactorList({"hub": 2, **dict.fromkeys(names, 2)}, {}, tuple(factors), tuple(names))
    seen = {name: np.array([[1.0, 0.0]]) if i % 2 else np.array([[0.0, 1.0]]) for i, name in enumerate(names[1:])}
    expected = np.prod([table @ one[0] for one in seen.values()], axis=0) * table.sum(axis=1)
    close(Estimator(star).marginals(seen)["hub"][0], expected / expected.sum())


def test_near_the_truth_on_a_grid(monkeypatch):
    monkeypatch.setattr(estimating, "BUDGETS", (8, 16))
    errors = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        factors = grid(4, rng)
        estimator = Estimator(factors, seconds=60)
        assert not estimator.exact
        likelihoods = {name: rng.random((2, 2)) for name in factors.evidence}
        marginals = estimator.marginals(likelihoods)
        for row in range(2):
            table, axes = joint(factors, likelihoods, row)
            for name, axis in axes.items():
                expected = table.sum(axis=tuple(a for a in axes.values() if a != axis)) / table.sum()
                close(marginals[name][row].sum(), 1.0)
                errors.append(abs(marginals[name][row] - expected).max())
    assert np.mean(errors) < 0.02


def test_a_row_may_cost_so_much():
    factors = grid(12, np.random.default_rng(0))
    assert Estimator(factors, seconds=1.0, work=3e6).work <= 3e6
    assert not Estimator(factors, seconds=0.0).exact


def test_without_evidence_the_answer_is_known():
    factors = grid(3, np.random.default_rng(0))
    factors = FactorList(factors.cards, factors.states, factors.factors, ())
    check(factors, Estimator(factors), {}, 1)


def test_impossible_factors():
    never = np.zeros((2, 2))
    factors = FactorList({"a": 2, "b": 2}, {}, (Factor(("a", "b"), never, never),), ("a",))
    estimator = Estimator(factors)
    check(factors, estimator, {"a": np.ones((2, 2))}, 2)

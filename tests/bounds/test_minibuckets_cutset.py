"""Lower bounds by a cutset hold for all distributions of it, and grow by coordinate ascent."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.bounds.factor_list import Factor, FactorList
from tacit.bounds.minibuckets.cutset import Cutset
from tacit.bounds.minibuckets.minibuckets import MiniBuckets
from tests.bounds.factor_lists import factor_lists, likelihoods, log_sums
from tests.helpers import tries
from tests.strategies import rngs

SIZES = st.sampled_from([1, 3, 4, 6])


def cut(factors: FactorList, size: int, tables: dict, rng: np.random.Generator, certain: bool = False):
    """A cutset, the logarithms of all likelihoods, and distributions; `certain` ones leave one state."""
    cutset, logs, q = Cutset.of(factors, size), {}, {}
    for name, card in factors.cards.items():
        with np.errstate(divide="ignore"):
            logs[name] = np.log(tables.get(name, np.ones((3, card)))).T
    for name, card in cutset.cards.items():
        some = rng.random((3, card)) * (rng.random((3, card)) < 0.7) + 1e-300
        some = np.eye(card)[rng.integers(card, size=3)] if certain else some
        q[name] = (some / some.sum(axis=1, keepdims=True)).T
    return cutset, logs, q


@given(factor_lists(), rngs, SIZES)
@tries(90)
def test_bounds_hold_for_any_distribution_and_grow(factors, rng, size):
    tables = likelihoods(factors, rng)
    least, _ = log_sums(factors, tables)
    cutset, logs, q = cut(factors, size, tables, rng)
    before = -np.inf
    for _ in range(4):
        value, error = cutset.value(logs, q)
        assert (value - error <= least).all()
        assert (value + error >= before).all()
        before, q = value - error, cutset.improved(logs, q, 1)


@given(factor_lists(), rngs, SIZES)
@tries(60)
def test_certain_states_give_their_mass(factors, rng, size):
    tables = likelihoods(factors, rng)
    cutset, logs, q = cut(factors, size, tables, rng, certain=True)
    chosen = tables | {name: tables.get(name, 1.0) * q[name].T for name in cutset.cards}
    mass, _ = log_sums(factors, chosen)
    value, error = cutset.value(logs, q)
    assert (error < 1e-9).all()
    np.testing.assert_allclose(value, mass, rtol=1e-12, atol=1e-12)
    searched = cutset.searched(logs, q)
    assert (cutset.value(logs, searched)[0] >= value).all()
    if cutset.cards:  # the last one has the best state, given all others
        name = list(cutset.cards)[-1]
        other = searched | {name: np.eye(cutset.cards[name])[:, rng.integers(cutset.cards[name], size=3)]}
        assert (cutset.value(logs, other)[0] <= cutset.value(logs, searched)[0]).all()


@given(factor_lists(), SIZES)
@tries(60)
def test_rest_is_as_small_as_asked(factors, size):
    cutset = Cutset.of(factors, size)
    assert cutset.plan.largest <= size
    assert set(cutset.cards) | set(cutset.plan.order) == set(factors.cards)


def test_states_that_are_possible_together_are_found():
    """Each of 6 variables is the sum, modulo 3, of the two before; the last one is observed."""
    names = [f"X{i}" for i in range(8)]
    a, b, c = np.indices((3, 3, 3))
    table = ((a + b) % 3 == c) * 1.0
    triples = [Factor((names[i], names[i + 1], names[i + 2]), table, table) for i in range(6)]
    factors = FactorList(dict.fromkeys(names, 3), dict.fromkeys(names, (0, 1, 2)), tuple(triples), ("X7",))
    seen = {"X7": np.eye(3), "X0": np.array([[0.5, 0.3, 0.2]] * 3)}
    least, _ = log_sums(factors, seen)
    low, high = MiniBuckets.of(factors, 3).log_bounds(seen)
    assert np.isfinite(low).all()
    assert (low <= least).all()
    assert (least <= high).all()

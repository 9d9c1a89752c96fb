"""Bounds by mini-buckets hold, whatever their parameters are, and are exact where no bucket is split."""

import dataclasses

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.bounds.minibuckets.minibuckets import SMALLEST, MiniBuckets, Parameters
from tests.bounds.factor_lists import factor_lists, likelihoods, log_sums
from tests.helpers import tries
from tests.strategies import rngs


def arbitrary(parameters: Parameters, plan, upper: bool, rng: np.random.Generator) -> Parameters:
    """Parameters like some others, but with any numbers that are allowed."""
    weights, shifts = [], []
    for bucket, shift in zip(plan.buckets, parameters.shifts, strict=True):
        some = np.exp(2 * rng.normal(size=len(bucket.parts)))
        if upper or len(some) == 1:
            weights += (some / some.sum()).tolist()
        else:
            rest = rng.permutation(len(some))
            weights += np.where(rest == 0, 1 + some[rest > 0].sum(), -some).tolist()
        moved = rng.normal(size=shift.shape) * rng.choice([0, 1, 30])
        shifts.append(moved - moved.mean(axis=0))
    return Parameters(tuple(weights), tuple(shifts))


@given(factor_lists(), rngs, st.sampled_from([1, 4, 6, 9]))
@tries(150)
def test_bounds_hold_with_any_parameters(factors, rng, size):
    tables = likelihoods(factors, rng)
    least, most = log_sums(factors, tables)
    bounds = MiniBuckets.of(factors, size)
    other = dataclasses.replace(
        bounds,
        upper=arbitrary(bounds.upper, bounds.plan, True, rng),
        lower=arbitrary(bounds.lower, bounds.plan, False, rng),
    )
    for each in (bounds, other):
        low, high = each.log_bounds(tables)
        assert (low <= least).all()
        assert (most <= high).all()


@given(factor_lists(), rngs)
@tries(60)
def test_exact_where_nothing_is_split(factors, rng):
    tables = likelihoods(factors, rng)
    least, most = log_sums(factors, tables)
    bounds = MiniBuckets.of(factors, 3**5)
    assert bounds.plan.exact
    low, high = bounds.log_bounds(tables)
    for actual, expected in ((low, least), (high, most)):
        possible = np.isfinite(expected)
        np.testing.assert_allclose(actual[possible], expected[possible], rtol=1e-12, atol=1e-12)
        assert (actual[~possible] == -np.inf).all()


@given(factor_lists(), rngs, st.sampled_from([1, 4, 9]))
@tries(60)
def test_bounds_of_a_joint(factors, rng, size):
    name = str(rng.choice(list(factors.cards)))
    tables = likelihoods(factors, rng)
    least, most = log_sums(factors, tables, keep=[name])
    low, high = MiniBuckets.of(factors, size).joint_bounds(name, tables)
    assert (low <= least).all()
    assert (most <= high).all()
    assert ((low == -np.inf) | (tables.get(name, np.ones(1)) > 0)).all()


@given(factor_lists(zeros=False), rngs)
@tries(30)
def test_hard_evidence_makes_splits_exact(factors, rng):
    tables = {name: np.eye(card)[rng.integers(card, size=3)] for name, card in factors.cards.items()}
    least, most = log_sums(factors, tables)
    low, high = MiniBuckets.of(factors, 1).log_bounds(tables)
    np.testing.assert_allclose(low, least, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(high, most, rtol=1e-12, atol=1e-12)


@given(factor_lists(), st.sampled_from([20, 60, 200]))
@tries(30)
def test_tables_together_are_small(factors, total):
    bounds = MiniBuckets.of(factors, 3**5, total)
    smallest = MiniBuckets.of(factors, SMALLEST)
    assert bounds.plan.entries <= max(total, smallest.plan.entries)

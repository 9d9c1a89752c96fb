"""Training makes bounds closer on its rows, and leaves them certain on all others."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tacit.bounds.minibuckets.minibuckets import MiniBuckets, log_likelihoods, log_tables
from tacit.bounds.minibuckets.passes import forward, reverse
from tacit.bounds.minibuckets.training import as_numbers, as_parameters, by_numbers, trained
from tests.bounds.factor_lists import factor_lists, likelihoods, log_sums
from tests.helpers import tries
from tests.strategies import rngs


@given(factor_lists(), rngs, st.sampled_from([1, 4, 9]))
@tries(60)
def test_trained_bounds_hold_for_other_rows(factors, rng, size):
    bounds = MiniBuckets.of(factors, size)
    sample, others = likelihoods(factors, rng), likelihoods(factors, rng)
    after = trained(bounds, sample, steps=8)
    least, most = log_sums(factors, others)
    low, high = after.log_bounds(others)
    assert (low <= least).all()
    assert (most <= high).all()
    for before, now in zip(bounds.log_bounds(sample), after.log_bounds(sample), strict=True):
        assert (np.isfinite(before) == np.isfinite(now)).all()
    finite = np.isfinite(bounds.log_bounds(sample)[0])
    if finite.any():
        pairs = [b.log_bounds(sample) for b in (bounds, after)]
        gaps = [(high[finite] - low[finite]).mean() for low, high in pairs]
        assert gaps[1] <= gaps[0] + 1e-9


@given(factor_lists(), rngs, st.booleans())
@tries(30)
def test_derivatives(factors, rng, upper):
    bounds = MiniBuckets.of(factors, 4)
    plan, logs = bounds.plan, log_likelihoods(bounds.plan, likelihoods(factors, rng))
    if plan.exact:
        return
    start = as_numbers(plan, bounds.upper if upper else bounds.lower, upper)
    start = start + 0.3 * rng.normal(size=start.shape)

    def results(numbers):
        parameters = as_parameters(plan, numbers, upper)
        return parameters, forward(plan, log_tables(factors, plan, upper), logs, parameters, keep=True, slopes=True)

    parameters, passed = results(start)
    finite = np.isfinite(passed.result)
    if not finite.any():
        return
    slopes = by_numbers(plan, parameters, reverse(plan, parameters, passed), finite, upper)
    direction = rng.normal(size=start.shape)
    after, before = (results(start + h * direction)[1].result[finite].mean() for h in (1e-5, -1e-5))
    np.testing.assert_allclose(slopes @ direction, (after - before) / 2e-5, rtol=1e-4, atol=1e-4)

"""Losses against formulas written here, and that they are well behaved where probabilities vanish."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import TacitError
from tacit.learn.fitting.losses import check_loss, evaluate

RNG = np.random.default_rng(0)
JOINT = RNG.random((3, 5)) * np.array([1.0, 1e-3, 1e-6, 10.0, 0.1])  # (states, rows), of any sum
WEIGHTS = np.array([0.1, 0.3, 0.05, 0.35, 0.2])
OF_STATES = RNG.dirichlet([1, 1, 1], 5).T
OF_FIRST = np.stack([OF_STATES[0], 1 - OF_STATES[0]])


def probabilities(joint, groups):
    p = joint / joint.sum(axis=0)
    return p if groups == len(p) else np.stack([p[0], p[1:].sum(axis=0)])


def mean_squared(joint, targets, weights):
    return float((weights * ((probabilities(joint, len(targets)) - targets) ** 2).mean(axis=0)).sum())


def cross_entropy(joint, targets, weights):
    return float(-(weights * (targets * np.log(probabilities(joint, len(targets)))).sum(axis=0)).sum())


def own_squared(p, y):
    return ((p - y) ** 2).mean(axis=1), 2 * (p - y) / p.shape[1]


@pytest.mark.parametrize("targets", [OF_STATES, OF_FIRST], ids=["states", "first"])
@pytest.mark.parametrize(
    ("loss", "expected"),
    [("mse", mean_squared), ("cross_entropy", cross_entropy), (own_squared, mean_squared)],
    ids=["mse", "cross_entropy", "own"],
)
def test_values_and_slopes_are_those_of_the_formula(loss, expected, targets):
    value, slopes = evaluate(loss, JOINT, targets, WEIGHTS)
    assert value == pytest.approx(expected(JOINT, targets, WEIGHTS), rel=1e-12)
    for state, row in np.ndindex(*JOINT.shape):
        step = 1e-6 * JOINT[:, row].sum()
        above, below = JOINT.copy(), JOINT.copy()
        above[state, row] += step
        below[state, row] -= step
        change = expected(above, targets, WEIGHTS) - expected(below, targets, WEIGHTS)
        assert slopes[state, row] == pytest.approx(change / (2 * step), rel=1e-5, abs=1e-9 / JOINT[:, row].sum())


def entropy_of(p):
    """The cross entropy of a target that is certain of a state of probability p, and its slope by p."""
    value, slopes = evaluate("cross_entropy", np.array([[p], [1 - p]]), np.array([[1.0], [0.0]]), np.ones(1))
    return value, float(slopes[0, 0] - slopes[1, 0])  # p rises by what the other falls


@pytest.mark.parametrize("exponent", [-1, -8, -14, -16, -20, -50, -99])
def test_confident_mistakes_cost_and_pull_what_the_logarithm_says(exponent):
    p = 10.0**exponent
    value, slope = entropy_of(p)
    assert value == pytest.approx(-math.log(p), rel=1e-12)
    assert slope * p == pytest.approx(-1.0, rel=1e-9)


def test_the_cross_entropy_is_finite_and_flat_at_0():
    assert entropy_of(0.0) == (pytest.approx(-math.log(1e-100) + 0.5), 0.0)


@given(st.floats(-320, -95), st.floats(1e-3, 0.5))
def test_the_cross_entropy_and_its_slope_are_continuous_down_to_0(exponent, change):
    """A small relative change of p changes the value, and the slope relative to 1 / p, by as little."""
    p = 10.0**exponent
    (value, slope), (next_value, next_slope) = entropy_of(p), entropy_of(p * (1 + change))
    assert math.isfinite(value)
    assert math.isfinite(slope)
    assert slope <= 0
    assert 0 <= value - next_value <= change
    assert abs(slope * p - next_slope * p * (1 + change)) <= 3 * change


@pytest.mark.parametrize("ratio", [0.01, 0.3, 0.9, 1.1, 3.0])
def test_near_the_end_of_the_logarithm_slopes_are_those_of_the_values(ratio):
    p = ratio * 1e-100
    change = entropy_of(p * (1 + 1e-4))[0] - entropy_of(p * (1 - 1e-4))[0]
    assert entropy_of(p)[1] == pytest.approx(change / (2e-4 * p), rel=1e-5)


def test_a_target_that_is_ruled_out_pulls_at_nothing_and_the_others_still_do():
    joint, weights = np.array([[0.0], [0.3], [0.1]]), np.ones(1)
    _, slopes = evaluate("cross_entropy", joint, np.array([[1.0], [0.0], [0.0]]), weights)
    np.testing.assert_array_equal(slopes, 0.0)
    # of a target that is partly so, the rest pulls as if it were all
    _, slopes = evaluate("cross_entropy", joint, np.array([[0.5], [0.25], [0.25]]), weights)
    np.testing.assert_allclose(slopes[1:, 0], [0.5 / 0.4 - 0.25 / 0.3, 0.5 / 0.4 - 0.25 / 0.1], rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", ["mse"], None, 3, {"mse": 1}])
def test_what_is_no_loss_is_refused(loss):
    with pytest.raises(TacitError, match="expected one of 'mse', 'cross_entropy', or a function"):
        check_loss(loss)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (3.0, "loss returned a float, expected two arrays"),
        ((1.0, 2.0, 3.0), "loss returned a tuple, expected two arrays"),
        ((["a"] * 5, np.zeros((5, 3))), "loss returned a tuple, expected two arrays"),
        ((np.zeros(5), np.zeros((3, 5))), r"loss returned shapes \(5,\) and \(3, 5\), expected \(5,\).*\(5, 3\)"),
        ((np.zeros(4), np.zeros((5, 3))), r"loss returned shapes \(4,\) and \(5, 3\), expected \(5,\).*\(5, 3\)"),
    ],
)
def test_what_a_loss_of_ones_own_returns_is_checked(made, message):
    with pytest.raises(TacitError, match=message):
        evaluate(lambda p, y: made, JOINT, OF_STATES, WEIGHTS)

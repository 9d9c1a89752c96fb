"""Optimizers on functions whose steps can be computed by hand."""

import math
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

from tacit.learn.fitting.objective import Squares
from tacit.learn.fitting.optimizers import LBFGS, MAX_TRIALS, Adam, LevenbergMarquardt, State, _Point


class Function:
    """Stands for an objective: a function of weights with its gradient, on rows that have weights."""

    small = True  # too little work for several threads

    def __init__(self, function, limit=30.0, count=2, rows=8):
        self.function = function
        self.parameters = SimpleNamespace(limits=np.full(count, limit))
        self.data = SimpleNamespace(weights=np.full(rows, 1 / rows))
        self.asked = []  # (weights, batch) of every call

    def value_and_gradient(self, weights, batch=None):
        self.asked.append((weights.copy(), batch))
        return self.function(weights)

    def value(self, weights):
        self.asked.append((weights.copy(), None))
        return self.function(weights)[0]

    def squares(self, weights):
        self.asked.append((weights.copy(), None))
        residuals, slopes = self.function(weights)
        return Squares(residuals @ residuals, slopes @ residuals, slopes @ slopes.T)

    def within_limits(self, weights):
        return np.clip(weights, -self.parameters.limits, self.parameters.limits)


def rosenbrock(w, scale=1.0):
    x, y = w
    value = (1 - x) ** 2 + 10 * (y - x * x) ** 2
    return scale * value, scale * np.array([-2 * (1 - x) - 40 * x * (y - x * x), 20 * (y - x * x)])


# Levenberg-Marquardt --------------------------------------------------------------------------------------

A = np.array([[2.0, 0.0], [1.0, 3.0], [0.0, 1.0]])  # (residuals, weights)
B = np.array([1.0, 2.0, 0.5])


def linear(w):
    return A @ w - B, A.T


def test_a_damped_step_is_that_of_the_formula():
    state = State(np.array([0.1, -0.2]))
    LevenbergMarquardt().advance(Function(linear), state, 1)
    damping = 1e-3 * (A.T @ A).diagonal().max()
    start = np.array([0.1, -0.2])
    expected = start - np.linalg.solve(A.T @ A + damping * np.eye(2), A.T @ (A @ start - B))
    np.testing.assert_allclose(state.weights, expected, rtol=1e-12)
    assert state.loss == pytest.approx(np.sum((A @ expected - B) ** 2))
    # the model foretold the gain exactly: a third of the damping is enough
    np.testing.assert_allclose(state.memory["damping"], [damping / 3, 2.0, 0.0], rtol=1e-9)
    assert (state.steps, state.done) == (1, False)


def test_rounds_go_on_with_their_damping():
    once, twice = State(np.array([3.0, -2.0])), State(np.array([3.0, -2.0]))
    quick = LevenbergMarquardt(largest_step=0.5)
    quick.advance(Function(linear), once, 4)
    quick.advance(Function(linear), twice, 1)
    quick.advance(Function(linear), twice, 3)
    np.testing.assert_array_equal(once.weights, twice.weights)
    np.testing.assert_array_equal(once.memory["damping"], twice.memory["damping"])
    assert once.steps == twice.steps == 4
    assert (once.memory["damping"][1], once.memory["damping"][2]) == (2.0, 0.0)
    assert once.memory["damping"][0] == pytest.approx(1e-3 * 10 / 3**4)


def test_steps_are_no_longer_than_the_largest_and_stay_within_limits():
    state = State(np.array([50.0, 0.0]))
    LevenbergMarquardt(largest_step=2.0).advance(Function(linear, limit=100.0), state, 1)
    assert np.abs(state.weights - [50.0, 0.0]).max() == pytest.approx(2.0)
    state = State(np.array([0.0, 0.0]))
    LevenbergMarquardt().advance(Function(linear, limit=0.05), state, 1)
    assert np.abs(state.weights).max() <= 0.05


def test_the_lowest_point_is_recognised():
    best = np.linalg.lstsq(A, B, rcond=None)[0]
    state, function = State(best.copy()), Function(lambda w: ((A @ w - B) + 0.0 * w[0], A.T))
    LevenbergMarquardt().advance(function, state, 50)
    assert state.done
    assert state.steps < 50
    np.testing.assert_allclose(state.weights, best, rtol=1e-6)


def curved(w):
    """A residual whose model is far too steep away from 0."""
    return np.array([math.atan(w[0])]), np.array([[1 / (1 + w[0] ** 2)]])


@pytest.mark.parametrize(("start", "trials"), [(3.0, 2), (1.35, 1), (1.2, 1), (1.0, 1)])
def test_damping_grows_until_a_step_helps_and_then_by_how_well_it_was_foretold(start, trials):
    first = 1e-3 / (1 + start**2) ** 2
    function, state = Function(curved, count=1), State(np.array([start]))
    LevenbergMarquardt(largest_step=100.0).advance(function, state, 1)
    slope, damping, growth, tried = 1 / (1 + start**2), first, 2.0, []
    while True:
        tried.append(start - slope * math.atan(start) / (slope**2 + damping))
        if abs(math.atan(tried[-1])) < math.atan(start):
            break
        damping, growth = damping * growth, growth * 2
    assert len(tried) >= trials
    np.testing.assert_allclose([w[0] for w, _ in function.asked], [start, *tried], rtol=1e-9)
    change = tried[-1] - start
    gain = math.atan(start) ** 2 - math.atan(tried[-1]) ** 2
    foretold = -(2 * slope * math.atan(start) * change + slope**2 * change**2)
    quality = 2 * min(gain / foretold, 1.0) - 1
    expected = [damping * max(1 / 3, 1 - quality**3), 2.0, 0.0]
    np.testing.assert_allclose(state.memory["damping"], expected, rtol=1e-9)


def test_a_gain_that_was_not_foretold_is_half_trusted():
    here = _Point(Function(linear), np.array([0.1, -0.2]))
    uphill = SimpleNamespace(weights=here.weights + here.gradient, loss=here.loss - 0.1)  # within limits, say
    assert here.gain_ratio(uphill) == 0.5
    assert here.gain_ratio(SimpleNamespace(weights=here.weights, loss=here.loss - 0.1)) == 0.5


def test_it_gives_up_where_no_damping_helps():
    def rising(w):  # says that it falls to the right, and does not
        return np.array([1.0 + abs(w[0])]), np.array([[-1.0]])

    function, state = Function(rising, count=1), State(np.zeros(1))
    LevenbergMarquardt().advance(function, state, 9)
    assert state.done
    assert (state.steps, len(function.asked)) == (1, 1 + MAX_TRIALS)
    np.testing.assert_array_equal(state.weights, 0.0)
    assert state.loss == 1.0


def test_where_nothing_has_a_slope_damping_starts_all_the_same():
    state = State(np.zeros(1))
    LevenbergMarquardt().advance(Function(lambda w: (np.ones(1), np.zeros((1, 1))), count=1), state, 1)
    assert state.done
    assert state.memory["damping"][0] == pytest.approx(1e-3 * 2.0 ** sum(range(1, MAX_TRIALS + 1)))


def flat_valley(gain):
    """Every step of 1 to the right gains the share `gain` of what is left."""

    def function(w):
        value = 0.01 * (1 - gain) ** (w[0] / 2)  # gains count relative to what is left
        return np.array([value]), np.array([[0.5 * math.log(1 - gain) * value]])

    return function


@pytest.mark.parametrize(("gain", "done"), [(4e-7, True), (4e-6, False)])
def test_steps_that_gain_next_to_nothing_are_counted_to_an_end(gain, done):
    state = State(np.zeros(1))
    optimizer = LevenbergMarquardt(largest_step=1.0, smallest_gain=1e-6, patience=4)
    optimizer.advance(Function(flat_valley(gain), count=1), state, 3)
    assert not state.done
    assert state.memory["damping"][2] == (3 if done else 0)
    optimizer.advance(Function(flat_valley(gain), count=1), state, 3)
    assert state.done == done
    assert state.steps == (4 if done else 6)


# L-BFGS ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1e-4, 1e5])
def test_lbfgs_takes_the_same_steps_whatever_the_loss_is_measured_in(scale):
    plain, scaled = State(np.array([-1.2, 1.0])), State(np.array([-1.2, 1.0]))
    LBFGS().advance(Function(rosenbrock), plain, 6)
    LBFGS().advance(Function(lambda w: rosenbrock(w, scale)), scaled, 6)
    np.testing.assert_allclose(scaled.weights, plain.weights, rtol=1e-6)
    assert scaled.loss == pytest.approx(scale * rosenbrock(scaled.weights)[0], rel=1e-12)
    assert plain.steps == scaled.steps == 6
    assert not plain.done


def test_lbfgs_begins_with_the_gradient_relative_to_the_loss():
    start = np.array([-1.2, 1.0])
    function = Function(rosenbrock)
    LBFGS().advance(function, State(start.copy()), 1)
    value, gradient = rosenbrock(start)
    first = next(w for w, _ in function.asked if not np.array_equal(w, start))
    np.testing.assert_allclose(first - start, -gradient / value, rtol=1e-6)


def test_lbfgs_ends_at_the_lowest_point_within_limits():
    state = State(np.array([-1.2, 1.0]))
    LBFGS().advance(Function(rosenbrock), state, 200)
    np.testing.assert_allclose(state.weights, [1.0, 1.0], atol=1e-4)
    assert state.done
    assert state.steps < 200
    assert state.loss == rosenbrock(state.weights)[0]
    steps = state.steps
    LBFGS().advance(Function(rosenbrock), state, 1)
    assert steps <= state.steps <= steps + 1
    state = State(np.array([-0.3, 0.2]))
    LBFGS().advance(Function(rosenbrock, limit=0.5), state, 100)
    np.testing.assert_allclose(state.weights, [0.5, 0.25], atol=1e-4)


def test_lbfgs_takes_losses_of_0_and_below():
    state = State(np.zeros(2))
    LBFGS().advance(Function(lambda w: (0.0, np.zeros(2))), state, 5)
    assert (state.loss, state.done) == (0.0, True)
    function = Function(lambda w: (float(w @ w) - 0.25, 2 * w))
    LBFGS().advance(function, State(np.array([0.5, 0.0])), 1)
    np.testing.assert_allclose(function.asked[2][0], [-0.5, 0.0])  # relative to 0, which there is no telling
    state = State(np.array([2.0, 2.0]))
    LBFGS().advance(Function(lambda w: (float(w @ w) - 100, 2 * w)), state, 20)
    np.testing.assert_allclose(state.weights, 0.0, atol=1e-4)
    assert state.loss == pytest.approx(-100)


# Adam -----------------------------------------------------------------------------------------------------


def one_cycle(step, total, rate):
    """Up to `rate` over a twentieth of the steps, then down to 0 along half a cosine."""
    up = max(1, total // 20)
    if step <= up:
        return rate * step / up
    return rate * (1 + math.cos(math.pi * (step - up) / (total - up))) / 2


def adam_by_the_book(weights, function, total, rate, clip, steps):
    """Kingma and Ba's algorithm 1, with the rate of every step and clipped gradients."""
    m, v = np.zeros_like(weights), np.zeros_like(weights)
    losses = []
    for t in range(1, steps + 1):
        loss, g = function(weights)
        losses.append(loss)
        if clip is not None:
            g = g * min(1.0, clip / np.linalg.norm(g))
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        corrected = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        weights = weights - one_cycle(t, total, rate) * corrected
    return weights, losses


@pytest.mark.parametrize("clip", [None, 1.0, 1e3])
@pytest.mark.parametrize(("total", "rate"), [(60, 0.05), (50, 0.3), (7, 0.05), (2, 0.05)])
def test_adam_is_that_of_the_book_along_one_cycle(clip, total, rate):
    start = np.array([-1.2, 1.0])
    state, adam = State(start.copy()), Adam(rate=rate, total=total, clip=clip)
    steps = [total // 2, total - total // 2]
    for count in steps:  # in two rounds: what it remembers is all it needs
        adam.advance(Function(rosenbrock), state, count)
    expected, losses = adam_by_the_book(start, rosenbrock, total, rate, clip, total)
    np.testing.assert_allclose(state.weights, expected, rtol=1e-9)
    assert state.loss == pytest.approx(np.mean(losses[steps[0] :]), rel=1e-9)
    assert (state.steps, state.done) == (total, True)
    assert set(state.memory) == {"first", "second"}


def test_the_rate_of_adam_rises_and_falls_to_nothing():
    """With a gradient that is always the same, a step is as long as the rate."""
    state, adam = State(np.zeros(1)), Adam(rate=0.1, total=100, clip=None)
    places = [0.0]
    for _ in range(100):
        adam.advance(Function(lambda w: (0.0, np.ones(1)), count=1), state, 1)
        places.append(state.weights[0])
    rates = -np.diff(places)
    np.testing.assert_allclose(rates, [one_cycle(t, 100, 0.1) for t in range(1, 101)], rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(rates[:5], [0.02, 0.04, 0.06, 0.08, 0.1], rtol=1e-6)
    assert rates[-1] == pytest.approx(0.0, abs=1e-12)


def test_adam_takes_no_more_steps_than_its_total_and_stays_within_limits():
    state, adam = State(np.zeros(2)), Adam(rate=10.0, total=5)
    adam.advance(Function(lambda w: (1.0, np.array([1.0, -1.0])), limit=3.0), state, 3)
    assert (state.steps, state.done) == (3, False)
    adam.advance(Function(lambda w: (2.0, np.array([1.0, -1.0])), limit=3.0), state, 3)
    assert (state.steps, state.done, state.loss) == (5, True, 2.0)
    np.testing.assert_array_equal(state.weights, [-3.0, 3.0])
    adam.advance(Function(lambda w: (7.0, np.ones(2))), state, 3)
    assert (state.steps, state.loss) == (5, 2.0)  # nothing was left to do


def test_adam_sees_other_rows_in_every_step_of_an_epoch():
    weights = np.arange(1.0, 11.0) / 55
    state, adam = State(np.zeros(2)), Adam(batch=5, total=8, seed=3)
    function = Function(rosenbrock)
    function.data.weights = weights
    adam.advance(function, state, 3)
    adam.advance(function, state, 5)
    batches = [batch for _, batch in function.asked]
    for first, second in zip(batches[::2], batches[1::2], strict=True):
        assert sorted([*first.rows, *second.rows]) == list(range(10))
        for batch in (first, second):
            np.testing.assert_allclose(batch.shares, 2 * weights[batch.rows])
    assert len({tuple(batch.rows) for batch in batches}) == 8
    other = Function(rosenbrock)
    other.data.weights = weights
    Adam(batch=5, total=8, seed=4).advance(other, State(np.zeros(2)), 1)
    assert other.asked[0][1].rows.tolist() != batches[0].rows.tolist()
    Adam(batch=10, total=8).advance(other, State(np.zeros(2)), 1)
    assert other.asked[1][1] is None


@pytest.mark.parametrize("small", [True, False])
def test_lbfgs_keeps_blas_to_one_thread_where_work_is_small(small, monkeypatch):
    seen = []

    @contextmanager
    def limited(threads):
        seen.append(threads)
        yield

    monkeypatch.setattr("tacit.learn.fitting.optimizers.limited", limited)
    function = Function(rosenbrock)
    function.small = small
    LBFGS().advance(function, State(np.array([-1.2, 1.0])), 2)
    assert seen == [1 if small else None]

"""Universal approximation: P*(y) is the promised step function, within the promised error, at the promised size."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import TacitError, TooLargeError, semantics
from tacit.model.cpt import TestingCPT
from tacit.theory import approximate
from tacit.theory.universal.staircase import find_turning_points
from tests.conformance_files import queries
from tests.helpers import close, tries

X = np.random.default_rng(0).random(10_000)
MONOTONIC = {
    "x": lambda x: x,
    "x2": lambda x: x**2,
    "sqrt": math.sqrt,
    "sin": lambda x: math.sin(math.pi * x / 2),
    "exp": lambda x: math.expm1(x) / math.expm1(1),
    "dec": lambda x: 1 - x**2,
    "inner": lambda x: 0.2 + 0.5 * x,
    "decreasing inner": lambda x: 0.9 - 0.55 * x,
    "constant": lambda x: 0.4321,
    "flat": lambda x: min(max(2 * x - 0.5, 0.1113), 0.7777),
}
TURNING = {
    "cos": (lambda x: (1 + math.cos(3 * math.pi * x)) / 2, [1 / 3, 2 / 3]),
    "sin": (lambda x: 0.5 + 0.45 * math.sin(3 * math.pi * x), [1 / 6, 1 / 2, 5 / 6]),
    "kink": (lambda x: abs(x - 0.3), [0.3]),
    "parabola": (lambda x: 4 * x * (1 - x), [0.5]),
}
ALL = MONOTONIC | {f"turning {name}": f for name, (f, _) in TURNING.items()}


def steps(f, n, x):
    """floor(n f(x)) / n, and where it does not depend on rounding."""
    values = n * np.array([f(v) for v in x.tolist()])
    return np.floor(values) / n, np.abs(values - np.round(values)) > 1e-6


def ask(approximation, evidence):
    network, names, query = approximation
    return tacit.compile(network, query, names, effort="low").posterior(evidence)


def posterior(approximation, x):
    return ask(approximation, x.reshape(-1, len(approximation.evidence)))[:, 0]


# one input ------------------------------------------------------------------------------------------------


def conformance(*groups):
    return [
        pytest.param(q, id=q.case, marks=[pytest.mark.slow] * ("-N50" in q.case))
        for q in queries()
        if q.group in groups
    ]


@pytest.mark.parametrize("case", conformance("hand-thm1-literal", "hand-thm1-chain"))
def test_theorem_1_of_the_conformance_files(case):
    name, n = case.case.split("-")[2], int(case.case.split("-")[3][1:])
    found = approximate(MONOTONIC[name], levels=n)
    network, evidence, query = found
    assert (evidence, query) == (case.evidence_vars, case.query)
    close(ask(found, case.evidence), case.posterior)
    for i in range(1, n + 1):
        flat = i == n and name in ("sin", "dec")  # there f rounds to 1 over 1e-8
        close(network.cpt(f"Y{i}").thresholds, case.net.cpt(f"Y{i}").thresholds, 1e-7 if flat else 1e-12)
        assert (network.cpt(f"Y{i}").test == case.net.cpt(f"Y{i}").test).all()


@pytest.mark.parametrize("case", conformance("hand-nonmono"))
def test_the_turning_function_of_the_conformance_files(case):
    n = int(case.case.split("-N")[1])
    f, turns = TURNING["cos"]
    close(ask(approximate(f, levels=n), case.evidence), case.posterior)
    close(approximate(f, levels=n, turning_points=turns).circuit().evaluate(case.evidence)[:, 0], case.posterior[:, 0])


@pytest.mark.parametrize("case", conformance("hand-multivariate"))
def test_the_function_of_two_inputs_of_the_conformance_files(case):
    found = approximate(lambda x, y: x * (1 + y) / 2, inputs=2, levels=8, slices=4)
    close(ask(found, case.evidence), case.posterior)
    close(found.error, 1 / 8 + 1 / 16)


@pytest.mark.parametrize(("name", "n"), [(name, n) for name in ALL for n in (5, 10)] + [("turning sin", 50)])
def test_the_posterior_counts_the_levels_that_are_reached(name, n):
    found = approximate(ALL[name], error=1 / n)
    expected, sure = steps(ALL[name], n, X)
    assert sure.sum() > 9_900
    close(posterior(found, X)[sure], expected[sure])
    assert found.levels == n
    close(found.error, 1 / n)


@pytest.mark.parametrize("levels", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_many_levels(levels):
    found = approximate(MONOTONIC["x2"], error=1 / levels)
    expected, sure = steps(MONOTONIC["x2"], levels, X)
    close(posterior(found, X)[sure], expected[sure])
    assert found.network.counts().nodes == levels + 3


@pytest.mark.parametrize("name", ["sqrt", "exp", "dec", "inner", "constant", "flat", "turning cos", "turning kink"])
def test_a_thousand_levels_as_a_circuit(name):
    found = approximate(ALL[name], levels=1000)
    expected, sure = steps(ALL[name], 1000, X)
    assert sure.sum() > 9_800
    close(found.circuit().tape().evaluate({"Z": X})[sure, 0], expected[sure])


@pytest.mark.parametrize("value", [0.0, 0.25, 0.5, 1.0])
def test_constants(value):
    found = approximate(lambda x: value, levels=8)
    close(posterior(found, np.array([0.0, 0.3, 1.0])), value)
    assert found.circuit().internal <= 2


def test_the_network_is_theorem_1_and_agrees_with_the_definition():
    for f in (MONOTONIC["sqrt"], MONOTONIC["dec"]):
        network, _, query = approximate(f, levels=3)
        assert network.variables == ("Z", "I", "Y1", "Y2", "Y3", "Y")
        expected, sure = steps(f, 3, X[:20])
        assert sure.all()
        close(semantics.posterior(network, query, {"Z": X[:20]})[:, 0], expected)
        close(semantics.posterior(network, "Z", {"Z": X[:20]})[:, 0], X[:20], 1e-15)
        for x in X[:5].tolist():
            for i in (1, 2, 3):
                table = semantics.select(network, {"Z": x}).network.table(f"Y{i}")
                assert table[0].tolist() == table[1].tolist()  # once selected, Y_i no longer depends on Z
                assert set(table[0].tolist()) == {0.0, 1.0}


def test_levels_that_are_never_or_always_reached_need_no_test():
    network, *_ = approximate(lambda x: 0.25 + 0.5 * x, levels=8)
    constant = [(network.cpt(f"Y{i}").plus == network.cpt(f"Y{i}").minus).all() for i in range(1, 9)]
    assert constant == [True, True, False, False, False, False, True, True]
    assert posterior(approximate(lambda x: 0.25 + 0.5 * x, levels=8), np.array([0.0, 1.0])).tolist() == [0.25, 0.75]


@pytest.mark.parametrize("n", [4, 100])
def test_sizes_are_what_the_paper_says(n):
    assert approximate(MONOTONIC["sin"], levels=n).network.counts().nodes == n + 3
    for f, turns in TURNING.values():
        found = approximate(f, levels=n)
        pieces = len(turns) + 1
        assert found.pieces == pieces
        assert len(found.network) == 1 + pieces * (n + 2) + 2 * (pieces - 1) + 1


def test_the_circuit_is_that_of_figure_6():
    for n in (5, 20):
        found = approximate(MONOTONIC["x2"], levels=n)
        circuit = found.circuit()
        assert (circuit.count("test"), circuit.internal) == (n, n + 2)
        close(circuit.evaluate({"Z": X[:500]})[:, 0], posterior(found, X[:500]))


def test_the_error_halves_when_the_levels_double():
    grid = np.linspace(0, 1, 2001)
    for f in (MONOTONIC["sqrt"], TURNING["sin"][0]):
        values = np.array([f(x) for x in grid.tolist()])
        errors = [np.abs(approximate(f, levels=n).staircase.value(grid[:, None]) - values).max() for n in (8, 16, 32)]
        for n, error in zip((8, 16, 32), errors, strict=True):
            assert 0.8 / n < error <= 1 / n


def test_a_very_steep_start_is_still_right_at_zero():
    def f(x):
        return x ** (1 / 50)

    found = approximate(f, levels=15)
    assert found.network.cpt("Y1").thresholds[0] < 1e-50
    x = np.array([0.0, 1e-12, 1e-6, 0.011, 1.0])
    close(posterior(found, x), steps(f, 15, x)[0])


@pytest.mark.parametrize("name", TURNING)
def test_turning_points_are_found(name):
    f, expected = TURNING[name]
    found = find_turning_points(np.vectorize(f))
    close(found, expected, 1e-12 if name == "kink" else 1e-7)  # at a smooth extreme, f is flat over 1e-8


def test_more_samples_are_taken_while_more_turning_points_appear():
    calls = []

    def counted(f):
        calls.clear()
        return find_turning_points(lambda x: [calls.append(len(x)), f(x)][1])

    turns = 1 / (np.pi * (np.arange(32) + 0.5)) - 0.01  # where 1 / (x + 0.01) is an odd multiple of pi / 2
    close(counted(lambda x: np.sin(1 / (x + 0.01))), np.sort(turns), 1e-7)
    assert max(calls) > 5000
    assert not len(counted(lambda x: x))
    assert max(calls) < 2000


def test_rounding_and_plateaus_are_no_turning_points():
    noise = np.random.default_rng(0)
    assert not len(find_turning_points(lambda x: x + 1e-13 * noise.standard_normal(x.shape)))
    assert not len(find_turning_points(lambda x: np.full_like(x, 0.3)))
    (turn,) = find_turning_points(lambda x: np.minimum(np.minimum(3 * x, 0.6), 3 - 3 * x))
    assert 0.2 <= turn <= 0.8


@tries(30)
@given(st.lists(st.integers(0, 100), min_size=2, max_size=9), st.integers(1, 40))
def test_polygons(heights, levels):
    knots, values = np.linspace(0, 1, len(heights)), np.array(heights) / 100

    def f(x):
        return np.interp(x, knots, values)

    expected, sure = steps(f, levels, X[:300])
    found = approximate(f, levels=levels)
    assert found.pieces == max(1, _reversals(heights))
    close(found.circuit().evaluate({"Z": X[:300]})[sure, 0], expected[sure])


def _reversals(heights):
    signs = [np.sign(b - a) for a, b in pairwise(heights) if a != b]
    return sum(a != b for a, b in pairwise(signs)) + 1


@tries(20)
@given(st.lists(st.integers(0, 10), min_size=2, max_size=4), st.integers(1, 3))
def test_small_networks_against_the_definition(heights, levels):
    def f(x):
        return np.interp(x, np.linspace(0, 1, len(heights)), np.array(heights) / 10)

    network, _, query = approximate(f, levels=levels)
    x = np.array([0.123456, 0.41421, 0.654321, 0.871])
    expected, sure = steps(f, levels, x)
    close(posterior(approximate(f, levels=levels), x)[sure], expected[sure])
    if len(network) <= 13:
        close(semantics.posterior(network, query, {"Z": x})[sure, 0], expected[sure])


# several inputs -------------------------------------------------------------------------------------------

SEVERAL = {
    "bilinear": (2, 0.1, lambda x, y: x * (1 + y) / 2),
    "wave": (2, 0.3, lambda x, y: 0.5 + 0.5 * math.sin(6 * x) * math.cos(4 * y)),
    "root": (2, 0.4, lambda x, y: math.sqrt(y) * x),
    "product": (3, 0.4, lambda x, y, z: x * y * z),
    "mean": (3, 0.25, lambda x, y, z: (x + y + z) / 3),
    "no first": (2, 0.2, lambda x, y: 0.5 + 0.5 * math.sin(2 * math.pi * y)),
}


LONG = ("product", "root", "no first")  # the others are of two and three inputs, too


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LONG)) for n in SEVERAL])
def test_functions_of_several_inputs_within_the_error(name):
    inputs, error, f = SEVERAL[name]
    found = approximate(f, inputs=inputs, error=error)
    assert found.evidence == tuple(f"Z{i + 1}" for i in range(inputs))
    assert found.error <= error + 1e-9
    x = np.random.default_rng(1).random((4000, inputs))
    x[:4] = [[0.0], [1.0], [0.5], [1 / 3]]
    values = posterior(found, x)
    assert np.abs(values - [f(*row) for row in x.tolist()]).max() <= error
    close(values, found.staircase.value(x))
    close(found.circuit().evaluate(x)[:, 0], values)


def test_slices_are_taken_at_the_middles_of_slabs():
    found = approximate(lambda x, y, z: (x + 2 * y + 4 * z) / 7, inputs=3, levels=40, slices=[3, 2])
    x = np.random.default_rng(1).random((500, 3))
    middle = np.column_stack([x[:, 0], (np.floor(3 * x[:, 1]) + 0.5) / 3, (np.floor(2 * x[:, 2]) + 0.5) / 2])
    expected = np.floor(40 * middle @ [1, 2, 4] / 7 + 1e-9) / 40
    sure = np.abs(40 * middle @ [1, 2, 4] / 7 % 1 - 0.5) < 0.499
    close(posterior(found, x)[sure], expected[sure])
    assert (found.slices, found.pieces) == ((3, 2), 6)
    close(found.error, 1 / 40 + (2 / 6 + 4 / 4) / 7)


def test_with_twice_the_levels_and_slices_the_error_halves():
    def f(x, y):
        return x * (1 + y) / 2

    x = np.random.default_rng(1).random((20_000, 2))
    errors = []
    for n in (1, 2, 4):
        found = approximate(f, inputs=2, levels=8 * n, slices=4 * n)
        errors.append(np.abs(found.staircase.value(x) - f(*x.T)).max())
        assert 0.75 * found.error < errors[-1] <= found.error
        close(found.error, (1 / 8 + 1 / 16) / n)


def test_a_lipschitz_bound_replaces_the_estimate():
    found = approximate(lambda x, y: x * (1 + y) / 2, inputs=2, error=0.1, lipschitz=2.0)
    assert (found.levels, found.slices) == (20, (20,))
    found = approximate(lambda x, y, z: x * (1 + y) / 2, inputs=3, error=0.1, lipschitz=[0.5, 0.0])
    assert (found.levels, found.slices) == (20, (5, 1))
    with pytest.raises(TacitError, match=r"the error at f\(.*\) is .*, more than 0.1: .* larger lipschitz="):
        approximate(lambda x, y: y, inputs=2, error=0.1, lipschitz=0.1)


def test_an_input_that_does_not_matter_costs_nothing():
    found = approximate(lambda x, y: x, inputs=2, error=0.2)
    assert (found.levels, found.slices, len(found.network)) == (5, (1,), 9)
    close(posterior(found, np.array([[0.5, 0.9], [0.5, 0.1]])), 0.4)


def test_nearly_whole_numbers_are_not_rounded_up():
    assert approximate(lambda x, y, z: (x + y + z) / 3, inputs=3, error=0.25, lipschitz=1 / 3).slices == (2, 2)
    for n in (3, 7, 49, 93, 103, 107, 161):
        assert approximate(lambda x: 0.0, error=1 / n).levels == n


# calling the function -------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", [1, 2])
def test_functions_of_arrays_are_called_with_arrays(inputs):
    calls = []

    def f(*x):
        calls.append(np.shape(x[0]))
        return np.sqrt(x[0]) * (1 + x[-1]) / 2

    fast = approximate(f, inputs=inputs, error=0.2)
    assert len(calls) < 2000
    slow = approximate(lambda *x: math.sqrt(x[0]) * (1 + x[-1]) / 2, inputs=inputs, error=0.2)
    points = np.random.default_rng(0).random((300, inputs))
    close(fast.staircase.value(points), slow.staircase.value(points))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: 0.0 if x < 0.5 else x - 0.5,  # fails on arrays
        lambda x: float(np.mean(x)),  # gives one number for an array
        lambda x: np.sort(x)[::-1] if np.ndim(x) else x,  # gives other numbers
        lambda x: [x] if np.ndim(x) else x,  # gives another shape
    ],
)
def test_functions_that_mean_something_else_by_arrays_are_called_point_by_point(f):
    expected, sure = steps(f, 7, X[:200])
    close(approximate(f, levels=7).staircase.value(X[:200, None])[sure], expected[sure])


def test_a_result_a_rounding_error_outside_is_accepted():
    found = approximate(lambda x: x + 2e-16 if x > 0.5 else x - 2e-16, levels=4)
    close(found.staircase.value(np.array([[0.0], [1.0]])), [0.0, 1.0])


@pytest.mark.parametrize(
    ("f", "inputs", "message"),
    [
        (lambda x: 2 * x, 1, r"f\(0\.\d+\) = 1\.\d+, expected a number in \[0, 1\]"),
        (lambda x: x - 0.5, 1, r"f\(0\) = -0.5, expected a number in \[0, 1\]"),
        (lambda x: math.nan if x == 0 else x, 1, r"f\(0\) = nan, expected a number"),
        (lambda x: np.where(np.asarray(x) > 0.9999, np.inf, x), 1, r"f\(1\) = inf, expected"),
        (lambda x: 1 / (4 * x - 2) % 1, 1, r"f\(0.5\) failed: ZeroDivisionError"),
        (lambda x: None, 1, r"f\(0.1\) is None, expected a number"),
        (lambda x: [x], 1, r"f\(0.1\) is \[0.1\], expected a number"),
        (lambda x: "much", 1, r"f\(0.1\) is 'much', expected a number"),
        (lambda x: x, 2, r"f\(0.1, 0.1\d+\) failed: TypeError"),
        (lambda x, y: x + y, 2, r"f\(.*\) = 1\.\d+, expected a number in \[0, 1\]"),
        (0.5, 1, "f is 0.5, expected a function of 1 floats"),
    ],
)
def test_what_the_function_does_wrong_is_said_with_the_point(f, inputs, message):
    with pytest.raises(TacitError, match=message):
        approximate(f, inputs=inputs)


def test_errors_of_the_function_are_chained():
    with pytest.raises(TacitError) as caught:
        approximate(lambda x: {}["key"])
    assert isinstance(caught.value.__cause__, KeyError)


# asking for it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"error": 0}, "error is 0, expected a number above 0 and at most 1"),
        ({"error": "small"}, "error is 'small'"),
        ({"error": math.nan}, "error is nan"),
        ({"inputs": 0}, "inputs is 0, expected a whole number"),
        ({"levels": 2.5}, "levels is 2.5, expected a whole number"),
        ({"slices": 3}, "slices is for the inputs after the first, but inputs is 1"),
        ({"lipschitz": 3}, "lipschitz is for the inputs after the first, but inputs is 1"),
        ({"inputs": 2, "slices": [2, 2]}, "slices has 2 values, expected 1"),
        ({"inputs": 2, "slices": 0}, "slices is 0, expected a whole number"),
        ({"inputs": 2, "lipschitz": -1}, "lipschitz is -1, expected a finite number of at least 0"),
        ({"inputs": 2, "turning_points": [0.5]}, "turning_points are for functions of one input"),
        ({"turning_points": [0.5, 0.2]}, r"turning_points are \[0.5, 0.2\], expected increasing numbers"),
        ({"turning_points": [0.0]}, "expected increasing numbers between 0 and 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(TacitError, match=message):
        approximate(lambda *x: sum(x) / len(x), **arguments)


def test_wrong_or_missing_turning_points_are_noticed():
    f, turns = TURNING["cos"]
    with pytest.raises(TacitError, match=r"the error at f\(0\.\d+\) is .*, more than 0.1: .* turning_points="):
        approximate(f, turning_points=turns[:1])
    spike = np.random.default_rng(0).random(10_000)[7]  # too narrow for samples, but one of the points of the check
    with pytest.raises(TacitError, match=r"more than 0\.1: between its turning points f must rise or fall"):
        approximate(lambda x: np.maximum(1 - 1e6 * np.abs(x - spike), 0))
    with pytest.raises(TooLargeError, match=r"10 levels in each of 2\d,\d\d\d pieces; limit 200,000"):
        approximate(lambda x: (1 + np.cos(1e6 * x)) / 2)


def test_networks_that_would_be_too_large_are_refused_first():
    calls = 0

    def f(x, y, z):
        nonlocal calls
        calls += np.size(x)
        return (x + y + z) / 3

    with pytest.raises(TooLargeError, match=r"3,000 levels, 500 x 500 slices; limit 200,000\); allow a larger error"):
        approximate(f, inputs=3, error=0.001, lipschitz=1 / 3)
    assert calls < 100
    with pytest.raises(TooLargeError, match="more than 16,384 slices of input 2 would be needed"):
        approximate(lambda x, y: 1.0 * (y > 0.4), inputs=2)


def test_the_network_is_an_ordinary_network(tmp_path):
    found = approximate(TURNING["cos"][0], error=0.25)
    network, evidence, query = found
    tacit.save(network, tmp_path / "cos.json")
    assert tacit.load(tmp_path / "cos.json") == network
    assert '"Chain1"' in network.to_dot()
    assert query in network
    assert set(evidence) <= set(network)
    assert all(isinstance(network.cpt(n), TestingCPT) for n in ("P1_Y1", "Test2", "P3_Y4"))
    assert tacit.theory.approximate is approximate

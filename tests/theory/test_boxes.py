"""What bounds and pieces rest on: multilinear functions by their vertices, and ends of values and derivatives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.theory.boxes import BoxBounds
from tacit.theory.derivatives import derivative_ends
from tacit.theory.linear_programs import Quotient, greatest, interior
from tacit.theory.multilinear import at_point, bernstein, moebius, products, restricted, unit_vertices, vertices
from tacit.theory.selectable import Ranges, SelectableQuery, make_selectable
from tests.helpers import close, tries
from tests.theory.support import queries

dimensions = st.integers(0, 4)
seeds = st.integers(0, 2**32 - 1)


@given(dimensions, seeds)
def test_multilinear_functions(count, seed):
    rng = np.random.default_rng(seed)
    values, point = rng.normal(size=(3, 2**count)), rng.random(count)
    expected = moebius(values) @ products(point[:, None])[:, 0]
    close(at_point(values, point), expected)
    low, high = np.sort(rng.random((2, count)), axis=0)
    corners = vertices(low[:, None], high[:, None])[:, 0]
    close(restricted(values, low, high), np.stack([at_point(values, c) for c in corners.T], axis=-1))
    close(restricted(values, np.zeros(count), np.ones(count)), values)
    close(unit_vertices(count), vertices(np.zeros((count, 1)), np.ones((count, 1)))[:, 0])


@given(dimensions, seeds)
def test_products_lie_between_their_bernstein_coefficients(count, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 2**count))
    c = bernstein(a, b)
    assert c.shape == (3**count,)
    values = [at_point(a, p) * at_point(b, p) for p in rng.random((50, count))]
    assert c.min() - 1e-12 <= min(values)
    assert max(values) <= c.max() + 1e-12
    ends = [sum(2 * 3**i for i in range(count) if v >> i & 1) for v in range(2**count)]  # input i is digit i
    close(c[ends], a * b)


@given(st.integers(1, 3), st.integers(1, 3), seeds)
def test_relaxations_are_certificates(count, conditions, seed):
    """Whatever the solver says, no point does better than the bound."""
    rng = np.random.default_rng(seed)
    system = rng.normal(size=(conditions, 2**count)) * 10.0 ** rng.integers(-6, 1, (conditions, 1))
    value, total = rng.random((2, 2**count))
    points = rng.random((300, count))
    held = np.array([at_point(system, p) for p in points])
    ((weights, most),) = interior([system])
    assert held.min(axis=1).max() <= most + 1e-12
    close([weights.sum(), min(weights.min(), 0)], [1, 0])
    ((bound, _),) = greatest([Quotient(value, total, system)], -1.0)
    quotients = np.array([at_point(value, p) / at_point(total, p) for p in points])
    assert quotients[(held >= 0).all(axis=1)].max(initial=-np.inf) <= bound + 1e-12


def test_one_input_is_relaxed_exactly():
    """Maximise x where 2 x <= 0.6, over [0, 1]."""
    ((bound, weights),) = greatest([Quotient(np.array([0.0, 1.0]), np.ones(2), np.array([[0.6, -1.4]]))], -1.0)
    close([bound, weights[1]], [0.3, 0.3])


@given(queries(most=3), seeds, st.sampled_from([None, 3.0, 16.0]))
@tries(30)
def test_ends_hold_everything_in_a_box(drawn, seed, gamma):
    """Sides that are decided, and ends of weights, are true of every point of the box; bounds of its values, too."""
    tac, inputs = drawn
    tac = tacit.compile(tac.network.with_gamma(gamma), tac.query, inputs)
    query, rng = SelectableQuery(tac, inputs, {}), np.random.default_rng(seed)
    center, width = rng.random((len(inputs), 1)), 0.3 * rng.random((len(inputs), 1))
    low, high = np.clip(center - width, 0, 1), np.clip(center + width, 0, 1)
    open_sides = np.where(query.tests.hard, 0, 1).astype(np.int8)[None]
    objective = np.eye(len(tac.network.states(tac.query)))[0]
    found = BoxBounds(query, low, high, open_sides, objective)
    points = low + (high - low) * rng.random((len(inputs), 200))
    weights, margins = query.select(points)
    possible = ~np.isnan(margins).any(axis=0)
    weights = weights[:, possible & (np.abs(margins) > 1e-9)[query.tests.hard].all(axis=0)]
    if weights.shape[1]:
        assert (weights.min(axis=1) >= found.ranges.least[:, 0] - 1e-12).all()
        assert (weights.max(axis=1) <= found.ranges.most[:, 0] + 1e-12).all()
    values = objective @ query.posterior(points)
    assert np.nanmax(values, initial=0) <= found.quotients()[0].max(initial=0) + 1e-12


@given(seeds, st.sampled_from([0.0, 4.0, 16.0]))
@tries(30)
def test_derivatives_hold_all_differences(seed, gamma):
    """Between two points of a box, a query changes by no more than the ends of its derivatives say."""
    rng = np.random.default_rng(seed)
    net = tacit.examples.diamond(seed=seed % 1000).with_gamma(gamma)
    tac = tacit.compile(net, "D", ["A", "C", "B"])
    query = make_selectable(tac, None, None, posterior_only=True)
    center, width = rng.random((3, 1)), 0.2 * rng.random((3, 1))
    low, high = np.clip(center - width, 0.01, 1), np.clip(center + width, 0, 0.99)
    high = np.maximum(low, high)
    objective = np.array([1.0, 0.0])
    found = BoxBounds(query, low, high, np.ones((1, len(query.tests)), dtype=np.int8), objective)
    least, most = derivative_ends(query, Ranges(low, high, found.ranges.least, found.ranges.most), objective)
    before = low + (high - low) * rng.random((3, 200))
    for i in range(3):
        after = before.copy()
        after[i] = low[i] + (high - low)[i] * rng.random(200)
        step = after[i] - before[i]
        change = objective @ (query.posterior(after) - query.posterior(before))
        assert (change <= np.maximum(least[i] * step, most[i] * step) + 1e-12).all()
        assert (change >= np.minimum(least[i] * step, most[i] * step) - 1e-12).all()


def test_derivatives_hold_both_ends_of_a_derivative_that_changes_sign():
    """P*(q) rises with A where C is true, and falls where it is false."""
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("C", cpt=[0.5, 0.5])
    net.add("Q", ["A", "C"], cpt=[[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]])
    query = make_selectable(tacit.compile(net, "Q", ["A", "C"]), None, None)
    none = np.empty((0, 1))
    box = Ranges(np.array([[0.5], [0.0]]), np.array([[0.5], [1.0]]), none, none)
    least, most = derivative_ends(query, box, np.array([1.0, 0.0]))
    assert least[0, 0] <= -0.8
    assert most[0, 0] >= 0.8


def test_derivatives_of_a_sigmoid_that_crosses_its_threshold():
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("T", ["E"], cpt=tacit.TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.5, 1.0], gamma=200.0))
    query = make_selectable(tacit.compile(net, "T", ["E"]), None, None, posterior_only=True)
    low, high = np.array([[0.45]]), np.array([[0.55]])
    found = BoxBounds(query, low, high, np.ones((1, 2), dtype=np.int8), np.array([1.0, 0.0]))
    _, most = derivative_ends(query, found.ranges, np.array([1.0, 0.0]))
    grid = np.linspace(0.45, 0.55, 2001)[None]
    steepest = np.diff(query.posterior(grid)[0]).max() / np.diff(grid[0])[0]
    assert 10 < steepest <= most[0, 0]


@given(seeds, st.sampled_from([None, 16.0]))
@tries(20)
def test_ends_hold_along_a_chain_of_tests(seed, gamma):
    """Open tests above a test leave it open unless it comes out the same with any of their outcomes."""
    rng = np.random.default_rng(seed)
    net = tacit.examples.chain(4, gamma=gamma)
    cpts = {}
    for name in net.variables:
        shape = tuple(2 for _ in net.parents(name))
        plus, minus = rng.dirichlet([1, 1], shape), rng.dirichlet([1, 1], shape)
        if net.cpt(name).testing:
            thresholds = rng.dirichlet(np.ones(2 ** len(shape))).reshape(shape)
            cpts[name] = tacit.TestingCPT(plus, minus, thresholds, gamma=gamma)
        else:
            cpts[name] = plus
    tac = tacit.compile(net.with_cpts(cpts), "Q", ["E1", "E2", "T2"])
    query = make_selectable(tac, None, None, posterior_only=True)
    center = rng.random((3, 1))
    low, high = np.clip(center - 0.15, 0, 1), np.clip(center + 0.15, 0, 1)
    sides = np.where(query.tests.hard, 0, 1).astype(np.int8)[None]
    found = BoxBounds(query, low, high, sides, np.array([1.0, 0.0]))
    points = low + (high - low) * rng.random((3, 500))
    weights, _ = query.select(points)
    assert (weights.min(axis=1) >= found.ranges.least[:, 0] - 1e-12).all()
    assert (weights.max(axis=1) <= found.ranges.most[:, 0] + 1e-12).all()
    assert query.posterior(points)[0].max() <= found.quotients().max() + 1e-12


def test_derivatives_close_in_on_the_derivative():
    net = tacit.examples.diamond(seed=4).with_gamma(8.0)
    query = make_selectable(tacit.compile(net, "D", ["A", "C"]), None, None, posterior_only=True)
    point, objective = np.array([[0.4], [0.7]]), np.array([1.0, 0.0])
    weights, _ = query.select(point)
    least, most = derivative_ends(query, Ranges(point, point, weights, weights), objective)
    close(least, most)
    for i in range(2):
        step = np.zeros((2, 1))
        step[i] = 1e-5
        change = objective @ (query.posterior(point + step) - query.posterior(point - step))
        close(change / 2e-5, least[i], 1e-8)

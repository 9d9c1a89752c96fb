"""Free weights: any of them make a legal network, and what is known stays the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Network, TestingCPT, examples
from tacit.learn.fitting.parameters import Parameters
from tests.strategies import networks


def weights(parameters, seed, scale=3.0):
    drawn = np.random.default_rng(seed).normal(scale=scale, size=parameters.count)
    return np.clip(drawn, -parameters.limits, parameters.limits)


def partly_known():
    net = Network("partly known")
    net.add("A", states=4, cpt=[np.nan, 0.3, np.nan, np.nan])
    net.add("B", ["A"], states=3, cpt=CPT([[0.2, 0.8, 0], [1, 0, 0], [0.1, 0.2, 0.7], [0.5, 0.5, 0]], learn=True))
    nan = np.nan
    net.add(
        "C",
        ["B"],
        cpt=TestingCPT([[0.9, 0.1], [nan, nan], [nan, nan]], [[nan, 0.25], [1, 0], [nan, nan]], [0.5, nan, 1], gamma=8),
    )
    return net


@given(st.integers(0, 1000), st.sampled_from([0.1, 3.0, 100.0]))
def test_all_weights_make_a_legal_network_and_known_numbers_stay(seed, scale):
    net = partly_known()
    parameters = Parameters(net, net.variables)
    filled = parameters.fill(weights(parameters, seed, scale))
    filled.require_numbers()
    for node, part in [("A", "table"), ("B", "table"), ("C", "plus"), ("C", "minus"), ("C", "thresholds")]:
        before, after = getattr(net.cpt(node), part), getattr(filled.cpt(node), part)
        learned = (before != 0) & (before != 1) if net.cpt(node).learn else np.isnan(before)
        np.testing.assert_array_equal(after[~learned], before[~learned])
        assert ((after[learned] > 0) & (after[learned] < 1)).all()
        if part != "thresholds":
            np.testing.assert_allclose(after.sum(axis=-1), 1, rtol=0, atol=1e-15)


def test_a_row_with_one_unknown_entry_has_no_freedom():
    net = partly_known()
    filled = Parameters(net, net.variables).fill(np.full(Parameters(net, net.variables).count, 2.0))
    assert filled.cpt("C").minus[0].tolist() == [0.75, 0.25]


def test_counts_of_weights():
    net = Network()
    net.add("A")  # binary: one weight
    net.add("B", ["A"], states=3)  # two rows of three
    net.add("C", ["A"], testing=True, gamma=4.0)  # 2 + 2 rows, 2 thresholds
    assert Parameters(net, net.variables).count == 1 + 6 + 4 + 2
    assert Parameters(net, net.variables, slopes=True).count == 1 + 6 + 4 + 2 + 1


@given(networks(), st.integers(0, 100))
def test_weights_of_numbers_is_the_inverse(net, seed):
    cpts = {}
    for name in net.variables:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT):
            cpts[name] = CPT(cpt.table, learn=True)
        elif isinstance(cpt, TestingCPT):
            cpts[name] = cpt.with_parts({}, learn=True)
    net = net.with_cpts(cpts)
    parameters = Parameters(net, net.variables)
    start = parameters.start(np.random.default_rng(seed))
    filled = parameters.fill(start)
    for name in cpts:
        for part, table in net.cpt(name).parts().items():
            usual = (table > 1e-12) & (table < 1 - 1e-12)
            np.testing.assert_allclose(filled.cpt(name).parts()[part][usual], table[usual], rtol=1e-5)


def test_starts_are_seeded_and_differ():
    net = examples.layer(4)
    parameters = Parameters(net, net.variables)
    first, again, other = (parameters.start(np.random.default_rng(s)) for s in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 0.1


def test_derivatives_by_weights_against_finite_differences():
    net = partly_known()
    parameters = Parameters(net, net.variables, slopes=True)
    w = weights(parameters, 0, 1.0)
    slope = np.random.default_rng(1).normal(size=parameters.entries)
    found = parameters.by_weight(parameters.numbers(w), slope)
    for i, unit in enumerate(np.eye(len(w))):
        up, down = (slope @ parameters.numbers(w + sign * 1e-6 * unit) for sign in (1, -1))
        assert found[i] == pytest.approx((up - down) / 2e-6, abs=1e-7)


def test_tied_tables_share_their_weights_and_add_up_their_derivatives():
    net = Network()
    net.add("H1")
    for t in (2, 3, 4):
        net.add(f"H{t}", [f"H{t - 1}"], testing=True, gamma=16.0, tie="transition")
    parameters = Parameters(net, ["H1", "H2", "H3"])  # H4 is tied, too, though no query needs it
    assert parameters.count == 1 + 6
    filled = parameters.fill(weights(parameters, 3))
    assert filled.cpt("H2") == filled.cpt("H3") == filled.cpt("H4")
    ones = {(node, "plus"): np.ones((2, 2)) for node in ("H2", "H3")}
    assert parameters.by_number(ones, {}).max() == 2


def test_learned_slopes_are_positive_and_fill_in():
    net = examples.chain(2)
    parameters = Parameters(net, net.variables, slopes=True)
    w = parameters.start(np.random.default_rng(0))
    assert parameters.fill(w).cpt("T1").gamma == pytest.approx(16.0)
    assert parameters.fill(w - 3).cpt("T2").gamma == pytest.approx(16 * np.exp(-3))


def test_known_networks_have_nothing_to_learn():
    net = examples.abc()
    assert Parameters(net, net.variables).count == 0
    assert tacit.learn.Parameters is Parameters

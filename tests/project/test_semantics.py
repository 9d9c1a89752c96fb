"""The definition, checked against what the paper says must hold of it (reference values: test_conformance.py)."""

import warnings

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit import EvidenceError, Network, NetworkError, TestingCPT, TooLargeError, UnsetError, examples, semantics
from tacit.evidence.read import read
from tests.helpers import impossible
from tests.strategies import evidence, networks, queries, tie_margin

TOLERANCE = 1e-12


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=0, atol=TOLERANCE)


def likelihoods(net, row):
    return read(row, [net.variable(n) for n in net]).likelihoods()


def test_the_example_of_the_contract():
    net, row = examples.abc(), {"A": 0.8, "C": [[0.6, 0.4]]}
    close(semantics.joint(net, "B", row), [[0.1042, 0.0738]])
    np.testing.assert_allclose(semantics.posterior(net, "B", row), [[0.585393, 0.414607]], atol=5e-7)


def test_by_hand_evidence_on_the_root_flips_the_test():
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.6, 1.0]))
    assert semantics.posterior(net, "B", {"A": [0.75, 0.5]}).tolist() == [[0.75, 0.25], [0.0, 1.0]]


@impossible
@given(queries())
def test_the_rows_of_selected_cpts_sum_to_1(case):
    net, _, row = case
    selected = net.select(row)
    assert not selected.testing_nodes
    for name in selected:
        close(selected.table(name).sum(-1), 1)


@given(queries(rows=3))
def test_the_posterior_is_the_normalised_joint_and_undefined_where_the_evidence_is_impossible(case):
    net, query, rows = case
    with warnings.catch_warnings(action="error"):
        joint, posterior = semantics.joint(net, query, rows), semantics.posterior(net, query, rows)
    assert joint.shape == (3 if rows else 1, len(net.states(query)))
    assert np.isfinite(joint).all()
    for p, q in zip(joint, posterior, strict=True):
        if p.sum() == 0:
            assert np.isnan(q).all()
        else:
            close(q, p / p.sum())


@given(st.data(), networks())
def test_all_queries_agree_on_the_probability_of_the_evidence(data, net):
    row = data.draw(evidence(net))
    close([semantics.joint(net, q, row).sum() for q in net], semantics.joint(net, net.variables[0], row).sum())


@given(queries(factored=False))
def test_a_steep_sigmoid_is_the_test_away_from_ties(case):
    net, _, row = case
    hard = net.with_gamma(None)
    assume(tie_margin(hard, row) > 1e-3)
    tests, sigmoids = semantics.select(hard, row).nodes, semantics.select(net.with_gamma(1e6), row).nodes
    for name, selected in tests.items():
        close(sigmoids[name].weight, selected.weight)


@given(queries())
def test_a_slope_of_zero_takes_the_average_table(case):
    net, _, row = case
    selected = net.with_gamma(0).select(row)
    for name in net.testing_nodes:
        first, *_, last = net.cpt(name).tables
        close(selected.table(name), (first + last) / 2)


@given(queries())
def test_only_evidence_that_is_seen_selects(case):
    net, _, row = case
    full = semantics.select(net, row)
    for name in net.testing_nodes:
        seen = {n: row[n] for n in net.seen_by(name, row)}
        assert net.selection == "general" or set(seen) == {n for n in net.ancestors(name) if n in row}
        np.testing.assert_array_equal(semantics.select(net, seen).nodes[name].weight, full.nodes[name].weight)
        np.testing.assert_array_equal(semantics.select(net, seen).network.table(name), full.network.table(name))


@impossible
@given(queries())
def test_the_selected_network_answers_as_the_testing_network_does(case):
    net, query, row = case
    selected = net.select(row)
    assert selected.variables == net.variables
    close(semantics.joint(selected, query, row), semantics.joint(net, query, row))


@given(st.data(), networks())
def test_uniform_likelihoods_leave_the_posterior_and_scale_the_joint_by_one_kth(data, net):
    variable, query = data.draw(st.sampled_from(net.variables)), data.draw(st.sampled_from(net.variables))
    row = data.draw(evidence(net, [n for n in net if n != variable]))
    assume(tie_margin(net, row) > 1e-6)
    k = len(net.states(variable))
    uniform = row | {variable: np.full((1, k), 1 / k)}
    close(semantics.joint(net, query, uniform) * k, semantics.joint(net, query, row))
    close(semantics.posterior(net, query, uniform), semantics.posterior(net, query, row))


@given(st.data(), networks())
def test_a_label_is_a_one_hot_likelihood(data, net):
    name = data.draw(st.sampled_from(net.variables))
    query = data.draw(st.sampled_from(net.variables))
    k = len(net.states(name))
    labels, one_hot = {name: list(net.states(name))}, {name: np.eye(k)}
    np.testing.assert_array_equal(semantics.joint(net, query, labels), semantics.joint(net, query, one_hot))


@given(queries(testing=False))
def test_soft_evidence_is_hard_evidence_on_an_auxiliary_child(case):
    net, query, row = case
    extended, observed = net.copy(), {}
    for name, values in likelihoods(net, row).items():
        child = f"evidence on {name}"
        extended.add(child, [name], cpt=np.stack([values, 1 - values], axis=-1))
        observed[child] = "true"
    close(semantics.joint(extended, query, observed), semantics.joint(net, query, row))
    close(semantics.posterior(extended, query, observed), semantics.posterior(net, query, row))


@given(st.data(), networks(testing=False))
def test_soft_evidence_moves_the_odds_by_the_ratio_of_the_likelihoods(data, net):
    name = data.draw(st.sampled_from(net.variables))
    k = len(net.states(name))
    given_ = np.array(data.draw(st.lists(st.floats(0.01, 1), min_size=k, max_size=k)))
    prior, posterior = (semantics.posterior(net, name, row)[0] for row in ({}, {name: given_[None]}))
    close(posterior * (prior * given_).sum(), prior * given_)


def one_test(operators, thresholds=(0.5, 0.5)):
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], thresholds, operators))
    return net


@pytest.mark.parametrize(
    ("operator", "at", "below", "above"), [(">=", 1, 0, 1), (">", 0, 0, 1), ("<=", 1, 1, 0), ("<", 0, 1, 0)]
)
def test_every_operator_decides_exact_ties_as_written(operator, at, below, above):
    net = one_test([operator, ">="])
    for value, weight in ((0.5, at), (0.25, below), (0.75, above)):
        assert semantics.select(net, {"A": value}).nodes["B"].weight[0] == weight


@pytest.mark.parametrize("threshold", [0.0, 0.25, 0.5, 1.0])
@pytest.mark.parametrize("value", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_a_complementary_pair_of_tests_decides_both_rows_alike(threshold, value):
    net = examples.noisy_or_classifier(threshold, causes=[1.0], leak=0.0)  # P*(H) is the evidence on X1
    assert semantics.posterior(net, "Y", {"X1": value})[0, 0] == float(value >= threshold)


def test_a_sigmoid_is_mirrored_for_less_than():
    net = one_test([">=", "<="], [0.3, 0.7]).with_gamma(5)
    weight = semantics.select(net, {"A": 0.9}).nodes["B"].weight
    close(weight, 1 / (1 + np.exp(-5 * (0.9 - 0.3))))  # the second row: 0.7 - P*(false) = 0.7 - 0.1


@pytest.mark.parametrize("gamma", [None, 16.0])
def test_impossible_evidence_gives_joint_exactly_0_and_posterior_nan(gamma):
    net = one_test([">=", ">"]).with_cpts({"A": [1, 0]}).with_gamma(gamma)
    row = {"A": "false"}
    assert semantics.joint(net, "B", row).tolist() == [[0.0, 0.0]]
    assert np.isnan(semantics.posterior(net, "B", row)).all()
    selected = semantics.select(net, row).nodes["B"]
    assert np.isnan(selected.posterior).all()
    assert selected.weight.tolist() == ([1.0, 0.0] if gamma is None else [0.5, 0.5])


@given(st.data())
def test_a_hard_observation_separates_a_chain_with_testing_nodes(data):
    net = examples.etq(seed=data.draw(st.integers(0, 99)))
    first, second = data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))
    net.add("R", ["Q"], cpt=net.cpt("Q"))
    answers = semantics.posterior(net, "R", {"E": np.array([first, second]), "Q": "true"})
    assume(np.isfinite(answers).all())
    close(answers[0], answers[1])


def test_what_cannot_be_answered_is_refused():
    net = examples.abc()
    with pytest.raises(NetworkError, match="'Z' is not a variable of the network"):
        semantics.joint(net, "Z")
    with pytest.raises(EvidenceError, match="select explains one row of evidence, got 2 rows"):
        net.select({"A": [0.1, 0.2]})
    with pytest.raises(UnsetError, match="node 'E1': table has unset numbers"):
        semantics.posterior(examples.chain(), "Q")
    with pytest.raises(TooLargeError, match=r"about 10\^602 states of 2000 variables .*; compile the query instead"):
        semantics.joint(roots(2000, states=2), "A0")
    with pytest.raises(TooLargeError, match="1 states of 70 variables"):
        semantics.joint(roots(70, states=1), "A0")


def roots(count, states):
    net = Network()
    for i in range(count):
        net.add(f"A{i}", states=states, cpt=np.full(states, 1 / states))
    return net

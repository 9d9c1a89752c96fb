"""How testing nodes were decided: posteriors and weights over all states of their parents."""

import numpy as np
import pytest

import tacit
from tacit import CPT, Network, TestingCPT, semantics
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.query.answers.selection import Selected, join_rows, selected_network
from tests.helpers import close, impossible, selected


def network(gamma=None):
    """A (3 states, one impossible) and C decide T; E is a sensor of C."""
    net = Network()
    net.add("A", states=3, cpt=[0.25, 0.0, 0.75])
    net.add("C", cpt=[0.4, 0.6])
    net.add("E", ["C"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    plus, minus = np.full((2, 3, 2), [0.9, 0.1]), np.full((2, 3, 2), [0.3, 0.7])
    thresholds = [[0.05, 0.0, 0.2], [0.1, 0.5, 0.5]]
    net.add("T", ["C", "A"], cpt=TestingCPT(plus, minus, thresholds, ">=", gamma))
    return net


def test_posteriors_and_weights_are_over_the_states_of_the_parents_in_their_order():
    how = selected(tacit.compile(network(), "T", ["C"]), {"C": [0.75, 0.5]})["T"]
    assert how.posterior.shape == how.weight.shape == (2, 2, 3)
    close(how.posterior[0], np.outer([2 / 3, 1 / 3], [0.25, 0, 0.75]))
    close(how.posterior[1], np.outer([0.4, 0.6], [0.25, 0, 0.75]))
    assert how.weight.tolist() == [[[1, 1, 1], [0, 0, 0]], [[1, 1, 1], [1, 0, 0]]]


@pytest.mark.parametrize("hard", [["A"], ["C"], ["A", "C"]])
def test_observed_parents_have_all_the_mass_at_what_was_observed(hard):
    net = network()
    rows = {"A": [2, 0], "C": ["false", "true"], "E": [0.5, 0.5]}
    rows = {name: rows[name] for name in (*hard, "E")}
    how = selected(tacit.compile(net, "T", ["E"], hard), rows)["T"]
    for i in range(2):
        expected = semantics.select(net, {n: c[i : i + 1] for n, c in rows.items()}).nodes["T"]
        close(how.posterior[i], expected.posterior)
        close(how.weight[i], expected.weight)


@impossible
def test_a_row_of_impossible_evidence_has_no_posterior():
    how = selected(tacit.compile(network(), "T", ["A"]), {"A": [[0.0, 1.0, 0.0], [1.0, 1.0, 1.0]]})["T"]
    assert np.isnan(how.posterior[0]).all()
    close(how.posterior[1].sum(), 1)


def test_blocks_of_rows_are_joined_in_order():
    blocks = [Selected(np.full((n, 2), n), np.full((n, 2), 10.0 * n)) for n in (1, 2)]
    joined = join_rows(blocks)
    assert joined.posterior[:, 0].tolist() == [1, 2, 2]
    assert joined.weight[:, 1].tolist() == [10, 20, 20]


@pytest.mark.parametrize("gamma", [None, 3.0])
def test_the_selected_network_gives_the_answer_of_its_row(gamma):
    net = network(gamma)
    rows = {"E": [1.0, 0.1], "T": [0.7, 0.2]}
    tac = tacit.compile(net, "C", ["E", "T"])
    how = selected(tac, rows)
    for row in (0, 1):
        plain = selected_network(net, how, row)
        assert isinstance(plain.cpt("T"), CPT)
        one = {n: c[row : row + 1] for n, c in rows.items()}
        close(semantics.posterior(plain, "C", one), tac.posterior(one))
    close(selected_network(net, how).table("T"), selected_network(net, how, 0).table("T"))


def test_a_weight_of_one_or_zero_takes_a_table_as_it_is():
    """Mixing in 0 times the other table could change the last digit."""
    rng = np.random.default_rng(0)
    plus, minus = rng.dirichlet(np.ones(3), (2, 2))
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], 3, TestingCPT(plus, minus, [0.5, 0.5]))
    weights = np.array([[1.0, 0.0], [0.25, 1.0]])
    how = {"T": Selected(np.full((2, 2), 0.5), weights)}
    assert selected_network(net, how, 0).table("T").tolist() == [plus[0].tolist(), minus[1].tolist()]
    close(selected_network(net, how, 1).table("T"), [0.25 * plus[0] + 0.75 * minus[0], plus[1]])
    assert selected_network(net, how).table("T").tolist() == selected_network(net, how, 0).table("T").tolist()


def decided_by_sigmoids(posterior, gamma):
    """Of each posterior of A=false, the selected table of a node whose tables are (1, 0) and (0, 1)."""
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=TestingCPT([[1, 0]] * 2, [[0, 1]] * 2, [0.5, 0.5], gamma=gamma))
    pairs = np.stack([posterior, 1 - posterior], axis=-1)
    weight, rest = NumpyArrays().sigmoids(gamma * (pairs - 0.5), pairs)
    how = {"T": Selected(pairs, weight)}
    return np.array([selected_network(net, how, i).table("T") for i in range(len(posterior))]), weight, rest


def test_the_selected_table_of_a_sigmoid_keeps_the_digits_of_what_is_left_of_one():
    tables, weight, rest = decided_by_sigmoids(np.array([0.8, 0.9, 0.95]), 64.0)
    assert (weight[:, 0] < 1).all()
    np.testing.assert_allclose(tables[:, :, 0], weight, rtol=1e-15)
    np.testing.assert_allclose(tables[:, :, 1], rest, rtol=1e-14)  # 1 - weight has four digits of the last


def test_a_sigmoid_that_rounds_to_one_leaves_the_other_table_its_weight():
    """As in `semantics`: it may be all that explains what is observed below."""
    tables, weight, rest = decided_by_sigmoids(np.array([1.0]), 200.0)
    assert weight[0, 0] == 1
    np.testing.assert_allclose(tables[0, 0], [1, rest[0, 0]], rtol=1e-14)
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=TestingCPT([[1, 0], [0, 1]], [[0, 1], [1, 0]], [0.1, 0.8], gamma=130.0))
    expected = semantics.select(net, {"T": "false"}).network.table("T")
    np.testing.assert_allclose(net.select({"T": "false"}).table("T"), expected, rtol=1e-12)
    assert expected.min() > 0


def test_no_entry_of_a_selected_table_is_above_one():
    """The weights of both tables, each rounded, may have a sum just above 1."""
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=TestingCPT([[1, 0]] * 2, [[1, 0]] * 2, [0.5, 0.5], gamma=7.0))
    pairs = np.stack([np.linspace(0, 1, 101), np.linspace(1, 0, 101)], axis=-1)
    weight, rest = NumpyArrays().sigmoids(7.0 * (pairs - 0.5), pairs)
    above = np.flatnonzero((weight + rest > 1).any(axis=-1))
    assert above.size
    for row in above:
        table = selected_network(net, {"T": Selected(pairs, weight)}, row).table("T")
        assert table.max() <= 1

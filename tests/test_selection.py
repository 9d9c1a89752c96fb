"""How testing nodes were decided: posteriors and weights over all states of their parents."""

import numpy as np
import pytest

import tacit
from tacit import CPT, Network, TestingCPT, semantics
from tacit.selection import Selected, join_rows, selected_network
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

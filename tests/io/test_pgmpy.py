"""The bridge to pgmpy: what goes over and comes back is the same, and both sides then give the same answers."""

import gzip
import sys
import warnings

import numpy as np
import pytest
from bench.networks import folder, network
from hypothesis import given

import tacit
from tacit import NetworkError, TacitError, UnsetError, semantics
from tacit.io.bridges.pgmpy import from_pgmpy, to_pgmpy
from tacit.io.parsing.draft import RoundingWarning
from tests.helpers import close
from tests.strategies import networks

with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of pgmpy's parts among themselves
    # its files may be there without the packages they need
    pytest.importorskip("pgmpy.models", exc_type=ImportError)
    from pgmpy.base import DAG, PDAG
    from pgmpy.factors.continuous import LinearGaussianCPD
    from pgmpy.factors.discrete import NoisyORCPD, TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork, LinearGaussianBayesianNetwork
    from pgmpy.readwrite import BIFReader


def grades():
    """pgmpy's own example: two parents of different size, state names of all kinds."""
    model = DiscreteBayesianNetwork([("intel", "grade"), ("diff", "grade")])
    names = {"grade": ["A", "B", "C"], "diff": [True, False], "intel": [1, 2, 3]}
    model.add_cpds(
        TabularCPD("diff", 2, [[0.6], [0.4]], state_names={"diff": names["diff"]}),
        TabularCPD("intel", 3, [[0.2], [0.5], [0.3]], state_names={"intel": names["intel"]}),
        TabularCPD(
            "grade", 3,
            [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.2, 0.2, 0.2, 0.1, 0.1, 0.1], [0.7, 0.6, 0.5, 0.5, 0.4, 0.3]],
            ["diff", "intel"], [2, 3], names,
        ),
    )  # fmt: skip
    return model


# both ways ------------------------------------------------------------------------------------------------


@given(networks(testing=False))
def test_what_comes_back_is_the_same_to_the_bit(net):
    back = from_pgmpy(to_pgmpy(net))
    assert back.name == net.name
    assert set(back) == set(net)
    for name in net:
        assert back.variable(name) == net.variable(name)
        assert back.parents(name) == net.parents(name)
        np.testing.assert_array_equal(back.cpt(name).table, net.table(name))


@given(networks(testing=False, max_nodes=4))
def test_pgmpy_gives_the_answers_of_enumeration(net):
    query = net.variables[-1]
    found = VariableElimination(to_pgmpy(net)).query([query], show_progress=False)
    assert tuple(found.state_names[query]) == net.states(query)
    close(found.values, semantics.posterior(net, query)[0])


# from pgmpy -----------------------------------------------------------------------------------------------


def test_columns_of_a_cpd_are_parent_states_the_first_parent_slowest():
    net = from_pgmpy(grades())
    assert {name: net.states(name) for name in net} == {
        "grade": ("A", "B", "C"),
        "diff": (True, False),
        "intel": (1, 2, 3),
    }
    assert net.parents("grade") == ("diff", "intel")
    close(net.cpt("grade").table[0], [[0.1, 0.2, 0.7], [0.2, 0.2, 0.6], [0.3, 0.2, 0.5]])
    close(net.cpt("grade").table[1, 2], [0.6, 0.1, 0.3])


def test_both_give_the_same_answers_with_hard_and_virtual_evidence():
    model = grades()
    net = from_pgmpy(model)
    virtual = TabularCPD("diff", 2, [[0.9], [0.3]], state_names={"diff": [True, False]})
    engine = VariableElimination(model)
    found = engine.query(["intel"], evidence={"grade": "B"}, virtual_evidence=[virtual], show_progress=False)
    evidence = {"grade": "B", virtual.variable: virtual.get_values().T}
    close(net.posterior("intel", evidence)[0], found.values)


def test_without_state_names_states_are_numbered():
    model = DiscreteBayesianNetwork()
    model.add_node("A")
    model.add_cpds(TabularCPD("A", 3, [[0.2], [0.3], [0.5]]))
    assert from_pgmpy(model).states("A") == (0, 1, 2)


def test_a_noisy_or_is_a_table():
    model = DiscreteBayesianNetwork([("X", "Y")])
    model.add_cpds(TabularCPD("X", 2, [[0.2], [0.8]], state_names={"X": ["True", "False"]}))
    model.add_cpds(NoisyORCPD("Y", [0.3], ["X"]))
    close(from_pgmpy(model).cpt("Y").table, [[0.3, 0.7], [0, 1]])


@pytest.mark.parametrize("name", ["asia", "alarm"])
def test_both_read_the_same_network_from_a_file(name, tmp_path):
    path = tmp_path / f"{name}.bif"
    path.write_bytes(gzip.decompress((folder() / f"{name}.bif.gz").read_bytes()))
    theirs, ours = from_pgmpy(BIFReader(str(path)).get_model()), network(name)
    assert set(theirs) == set(ours)
    for node in ours:
        assert set(theirs.parents(node)) == set(ours.parents(node))
        order = [*(ours.parents(node).index(p) for p in theirs.parents(node)), -1]
        close(theirs.cpt(node).table, ours.cpt(node).table.transpose(order))


def test_rows_of_four_digits_are_scaled():
    model = DiscreteBayesianNetwork()
    model.add_node("A")
    model.add_cpds(TabularCPD("A", 3, [[0.3333]] * 3))
    with pytest.warns(RoundingWarning, match="1 row missed the sum 1"):
        net = from_pgmpy(model)
    close(net.cpt("A").table, np.full(3, 1 / 3))


class EarlierRelease:
    """What a model must have: the class was called BayesianNetwork once, and may be called otherwise again."""

    def __init__(self, model):
        self.graph, self.nodes, self.get_cpds, self.check_model = (
            model.graph, model.nodes, model.get_cpds, model.check_model
        )  # fmt: skip


def test_a_model_is_known_by_what_it_has():
    assert from_pgmpy(EarlierRelease(grades())) == from_pgmpy(grades())


def test_what_is_no_model_of_tables_is_refused():
    for what in (None, "alarm", DiscreteMarkovNetwork([("A", "B")]), tacit.examples.abc()):
        with pytest.raises(NetworkError, match="expected a pgmpy DiscreteBayesianNetwork or DAG, got "):
            from_pgmpy(what)
    gaussian = LinearGaussianBayesianNetwork()
    gaussian.add_node("A")
    gaussian.add_cpds(LinearGaussianCPD("A", [1], 4))
    with pytest.raises(NetworkError, match="node 'A' has a LinearGaussianCPD; expected a TabularCPD"):
        from_pgmpy(gaussian)
    partly = DiscreteBayesianNetwork([("A", "B")])
    partly.add_cpds(TabularCPD("A", 2, [[0.2], [0.8]]))
    with pytest.raises(NetworkError, match="node 'B' has no CPD; expected a TabularCPD"):
        from_pgmpy(partly)


@pytest.mark.parametrize("kind", [DAG, DiscreteBayesianNetwork])
def test_a_graph_without_numbers_becomes_a_network_to_be_learned(kind):
    model = kind([("A", "B")])
    model.add_node("C")
    rows = {"A": ["x", "y", "x"], "B": [1, 2, 3], "C": ["u", "u", "v"]}
    net = from_pgmpy(model, rows)
    assert {name: net.states(name) for name in net} == {"A": ("x", "y"), "B": (1, 2, 3), "C": ("u", "v")}
    assert net.edges == (("A", "B"),)
    assert from_pgmpy(model, states={"B": 3}).states("B") == (0, 1, 2)
    assert tacit.estimate(net, rows).network.posterior("A", {"B": 2})[0].tolist() == [0.0, 1.0]


def test_what_pgmpy_finds_inconsistent_is_refused():
    model = DiscreteBayesianNetwork([("A", "B")])
    model.add_cpds(
        TabularCPD("A", 2, [[0.2], [0.8]], state_names={"A": ["x", "y"]}),
        TabularCPD("B", 2, [[0.2, 0.1], [0.8, 0.9]], ["A"], [2], {"A": ["y", "x"], "B": ["u", "v"]}),
    )
    with pytest.raises(NetworkError, match="pgmpy finds the model inconsistent: The state names of A"):
        from_pgmpy(model)


@pytest.mark.parametrize(
    ("node", "values", "states", "message"),
    [
        (3, [[0.2], [0.8]], ["u", "v"], "a node's name must be a non-empty string, got 3"),
        ("A", [[0.2], [0.8]], [("u", 1), "v"], r"node 'A': state \('u', 1\) is not a label"),
        ("A", [[0.2], [0.799]], ["u", "v"], r"node 'A': table sums to 0\.999, expected 1"),
    ],
)
def test_what_a_network_cannot_hold_is_refused(node, values, states, message):
    model = DiscreteBayesianNetwork()
    model.add_node(node)
    model.add_cpds(TabularCPD(node, 2, values, state_names={node: states}))
    with pytest.raises(NetworkError, match=message):
        from_pgmpy(model)


# to pgmpy -------------------------------------------------------------------------------------------------


def test_testing_nodes_are_refused_with_the_way_out():
    net = tacit.examples.abc()
    with pytest.raises(NetworkError, match=r"node 'B' is testing, which pgmpy cannot hold; net\.select\(evidence\)"):
        to_pgmpy(net)
    found = VariableElimination(to_pgmpy(net.select({"A": "true"}))).query(["B"], {"A": "true"}, show_progress=False)
    close(found.values, net.posterior("B", {"A": "true"})[0])


def test_unset_numbers_are_refused():
    net = tacit.Network()
    net.add("A")
    with pytest.raises(UnsetError, match="node 'A': table has unset numbers"):
        to_pgmpy(net)


def test_only_networks_go_over():
    with pytest.raises(TacitError, match="expected a Network, got dict"):
        to_pgmpy(tacit.examples.abc().to_dict())


def test_without_pgmpy_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pgmpy.models", None)
    with pytest.raises(TacitError, match=r"pgmpy\.models is needed.*pip install 'pgmpy>="):
        to_pgmpy(tacit.Network())


def test_an_edge_without_a_direction_is_refused():
    graph = PDAG(directed_ebunch=[("A", "B")], undirected_ebunch=[("C", "B")])
    with pytest.raises(NetworkError, match=r"the edge . - . has no direction; expected a DAG, which to_dag\(\) makes"):
        from_pgmpy(graph)
    assert len(from_pgmpy(graph.to_dag()).edges) == 2

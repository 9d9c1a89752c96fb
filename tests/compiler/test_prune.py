"""Pruning: barren nodes and impossible states."""

import numpy as np
import pytest
from hypothesis import given

from tacit import CPT, Mux, Network, NoisyOr, TestingCPT, examples, semantics
from tacit.compiler.prune import possible_states, prune, relevant
from tacit.compiler.question import Question
from tests.strategies import networks


def test_only_ancestors_of_query_and_evidence_are_relevant():
    net = examples.diamond()
    assert relevant(net, ["C"]) == ("A", "C")
    assert relevant(net, ["C", "B"]) == ("A", "B", "C")
    assert relevant(net, ["D"]) == ("A", "B", "C", "D")
    assert prune(net, Question(("A",), ("B", "C"), ("C",))).nodes == ("A", "B", "C")


def test_impossible_states_pass_on_to_children():
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0])
    net.add("B", ["A"], 3, [[1, 0, 0], [0.5, 0.5, 0], [0, 0, 1]])
    net.add("C", ["B"], 2, [[1, 0], [1, 0], [0, 1]])
    assert possible_states(net, net.variables) == {"A": (0, 1), "B": (0, 1), "C": (0,)}


def test_hard_evidence_keeps_all_states_of_its_variable():
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0])
    net.add("B", ["A"], 3, [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert prune(net, Question(("B",), ("A",), ("A",))).states == {"A": (0, 1, 2), "B": (0, 2)}
    assert prune(net, Question(("B",), ("A",))).states == {"A": (0, 1), "B": (0,)}
    assert prune(net, Question(("B",), ("A",), every_state=True)).states == {"A": (0, 1, 2), "B": (0, 1, 2)}


def test_a_testing_node_may_take_what_either_table_allows():
    net = Network()
    net.add("A", cpt=[1, 0])
    net.add("B", ["A"], 3, TestingCPT([[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0, 1]], [0.5, 0.5]))
    assert possible_states(net, net.variables) == {"A": (0,), "B": (0, 1)}


def test_a_number_to_be_learned_is_possible():
    net = Network()
    net.add("A", states=3, cpt=[np.nan, np.nan, 0])
    assert possible_states(net, net.variables) == {"A": (0, 1)}


@pytest.mark.parametrize(
    ("cpt", "states"),
    [
        (NoisyOr({"A": 0.0, "B": 0.0}), (1,)),
        (NoisyOr({"A": 1.0, "B": 0.5}), (0,)),  # A is always in its first state
        (NoisyOr({"A": 0.5, "B": 1.0}), (0, 1)),
        (NoisyOr({"A": 0.5, "B": 0.5}, leak=1.0), (0,)),
        (CPT.from_function(lambda a, b: "true" if a == "true" else "false"), (0,)),
        (CPT.from_function(lambda a, b: b), (0, 1)),
    ],
)
def test_rules_know_their_impossible_states(cpt, states):
    net = Network()
    net.add("A", cpt=[1, 0])
    net.add("B", cpt=[0.5, 0.5])
    net.add("Y", ["A", "B"], cpt=cpt)
    assert possible_states(net, net.variables)["Y"] == states


@pytest.mark.parametrize(("leak", "states"), [(0.0, (1,)), (0.5, (0, 1)), (1.0, (0,))])
def test_a_leak_alone_decides_where_there_are_no_causes(leak, states):
    net = Network()
    net.add("Y", cpt=NoisyOr([], leak))
    assert possible_states(net, net.variables) == {"Y": states}


@pytest.mark.parametrize(
    ("causes", "states"),
    [
        ([[0.0, 0.0, 1.0]], (1,)),  # the cause that works cannot be
        ([[0.0, 1.0, 0.0]], (0, 1)),
        ([[1.0, 1.0, 0.0]], (0,)),  # the state that inhibits cannot be
        ([[0.5, 0.0, 0.0]], (0, 1)),
    ],
)
def test_a_noisy_or_minds_which_states_its_causes_can_take(causes, states):
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.5, 0.0])
    net.add("Y", ["A"], cpt=NoisyOr(causes))
    assert possible_states(net, net.variables)["Y"] == states


@pytest.mark.parametrize(("selector", "states"), [([0.5, 0.0, 0.5], (0, 2, 3)), ([0, 0, 1], (2, 3)), ([1, 0, 0], (0,))])
def test_a_multiplexer_takes_the_states_of_inputs_that_can_be_selected(selector, states):
    net = Network()
    net.add("I", states=3, cpt=selector)
    for name, table in (("A", [1, 0, 0, 0]), ("B", [0, 1, 0, 0]), ("C", [0, 0, 0.5, 0.5])):
        net.add(name, states=4, cpt=table)
    net.add("Y", states=4, cpt=Mux("I", ["A", "B", "C"]))
    assert possible_states(net, net.variables)["Y"] == states


def test_relevant_nodes_keep_the_order_of_the_network():
    net = examples.diamond()
    assert relevant(net, ["D", "A"]) == relevant(net, ["A", "D"]) == tuple(net.variables)
    assert relevant(net, []) == ()


@given(networks())
def test_what_is_pruned_has_probability_zero(net):
    for name, states in possible_states(net, net.variables).items():
        never = [i for i in range(len(net.states(name))) if i not in states]
        assert (semantics.joint(net, name)[0, never] == 0).all()

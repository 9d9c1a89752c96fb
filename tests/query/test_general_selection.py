"""Generalised selection: which evidence testing nodes see, and what follows from it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import NetworkError, semantics
from tacit.model.model import SELECTIONS
from tests.helpers import close, decided, tries
from tests.strategies import evidence, networks, queries

PAIR = tacit.TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]], [0.45, 0.4])
ROW = [[0.8, 0.2], [0.3, 0.7]]


def fork(selection="general"):
    """A -> B (testing), A -> C -> E, A -> D (testing) -> F, and G on its own."""
    net = tacit.Network(selection=selection)
    net.add("A", cpt=[0.4, 0.6])
    net.add("B", ["A"], cpt=PAIR)
    net.add("C", ["A"], cpt=ROW)
    net.add("E", ["C"], cpt=ROW)
    net.add("D", ["A"], cpt=PAIR)
    net.add("F", ["D"], cpt=ROW)
    net.add("G", cpt=[0.5, 0.5])
    return net


def test_a_testing_node_sees_all_but_what_is_at_or_below_testing_nodes_that_are_no_ancestors():
    assert fork().seen_by("B") == ("A", "C", "E", "G")
    assert fork("ancestral").seen_by("B") == ("A",)
    assert fork().seen_by("F") == ("A", "C", "E", "D", "G")  # D is an ancestor, B is none
    assert fork().seen_by("B", ["E", "F"]) == ("E",)
    with pytest.raises(NetworkError, match="'H' is not a variable"):
        fork().seen_by("B", ["H"])


def test_the_answer_of_a_figure_by_hand():
    # the second figure of the ICML paper: evidence on E, below a sibling, takes part in the selection of B
    net, row = fork(), {"E": "true"}
    p = net.posterior("A", row)[0]  # regular nodes only: the posterior that B tests
    table = np.where((p >= PAIR.thresholds)[:, None], PAIR.plus, PAIR.minus)
    close(net.posterior("B", row)[0], p @ table)
    prior = np.array([0.4, 0.6])
    table = np.where((prior >= PAIR.thresholds)[:, None], PAIR.plus, PAIR.minus)
    close(fork("ancestral").posterior("B", row)[0], p @ table)
    assert not np.allclose(net.posterior("B", row), fork("ancestral").posterior("B", row))


@tries(60)
@given(net=networks(), data=st.data())
def test_what_is_seen_is_what_takes_part_by_definition(net, data):
    net = net.with_selection("general")
    columns = data.draw(evidence(net))
    for name in net.testing_nodes:
        assert list(net.seen_by(name, columns)) == [n for n in net if n in semantics._taking_part(net, name, columns)]


@tries(60)
@given(case=queries(rows=2, factored=False), data=st.data())
def test_the_order_of_the_nodes_does_not_matter(case, data):
    net, query, columns = case
    left, other = list(net), tacit.Network(net.name, net.selection)
    while left:  # any other order in which parents come first
        name = data.draw(st.sampled_from([n for n in left if set(net.parents(n)) <= set(other)]))
        left.remove(name)
        other.add(name, net.parents(name), net.states(name), net.cpt(name))
    rows = decided(net, columns)
    expected = semantics.joint(net, query, columns)[rows]
    close(semantics.joint(other, query, columns)[rows], expected)
    close(tacit.compile(other, query, list(columns)).joint(columns)[rows], expected)


@tries(60)
@given(case=queries(rows=1))
def test_where_no_more_is_seen_the_program_is_the_same(case):
    net, query, columns = case
    one, other = (net.with_selection(selection) for selection in SELECTIONS)
    assume(all(one.seen_by(n, columns) == other.seen_by(n, columns) for n in net.testing_nodes))
    programs = [tacit.compile(n, query, list(columns)).program for n in (one, other)]
    assert str(programs[0]) == str(programs[1])


@pytest.mark.parametrize("seen", [["G"], ["A", "G"]])
def test_evidence_that_has_nothing_to_do_with_the_parents_costs_nothing(seen):
    programs = [str(tacit.compile(fork(s), "B", [*seen, "F"]).program) for s in ("ancestral", "general")]
    assert programs[0] == programs[1]


def test_evidence_behind_an_observed_variable_costs_nothing():
    net = tacit.Network(selection="general")
    for name, parents in (("A", []), ("B", ["A"]), ("C", ["A"]), ("E", ["C"])):
        net.add(name, parents, cpt=PAIR if name == "B" else ROW if parents else [0.4, 0.6])
    selections = [
        tacit.compile(net, "B", evidence, hard).program.selections["B"].marginal
        for evidence, hard in ((["E"], ["A"]), (["E"], []))
    ]
    assert selections[0] < selections[1]  # with A observed, B need not know of E


@tries(40)
@given(case=queries(rows=2), data=st.data())
def test_states_that_are_given_select_as_those_of_rows(case, data):
    net, query, columns = case
    net = net.with_selection("general")
    names = [n for n in net if n != query and n not in columns]
    known = {n: data.draw(st.sampled_from(net.states(n))) for n in names if data.draw(st.booleans())}
    both = columns | {n: [state] * 2 for n, state in known.items()}
    rows = decided(net, both)
    found = tacit.compile(net, query, list(columns), given=known).joint(columns)
    close(found[rows], semantics.joint(net, query, both)[rows])


def test_what_is_below_a_testing_node_stays_unseen_where_a_state_between_them_is_given():
    net = tacit.Network(selection="general")
    net.add("R", cpt=[0.5, 0.5])
    net.add("T", ["R"], cpt=tacit.TestingCPT(ROW, [[0.2, 0.8], [0.3, 0.7]], [0.6, 0.6]))
    net.add("F", ["T"], cpt=[[1, 0], [0, 1]])  # sure of its state, given that of T
    net.add("L", ["R", "F"], cpt=[[[0.9, 0.1], [0.8, 0.2]], [[0.2, 0.8], [0.1, 0.9]]])
    tac = tacit.compile(net, "R", ["L"], given={"T": "true"})
    close(tac.selected({"L": "true"})["T"].posterior, [[0.5, 0.5]])
    close(tac.joint({"L": "true"}), semantics.joint(net, "R", {"L": "true", "T": "true"}))


def test_a_chain_stays_linear():
    def operations(steps):
        net = tacit.Network(selection="general")
        for t in range(steps):
            net.add(f"H{t}", [f"H{t - 1}"] if t else [], cpt=PAIR if t else [0.5, 0.5])
            net.add(f"E{t}", [f"H{t}"], cpt=ROW)
        return len(tacit.compile(net, f"H{steps - 1}", [f"E{t}" for t in range(steps)]).program)

    short, long, longer = operations(50), operations(100), operations(150)
    assert abs((longer - long) - (long - short)) < 20


def test_an_unknown_selection_is_refused():
    with pytest.raises(NetworkError, match="selection is 'all', expected one of 'ancestral', 'general'"):
        tacit.Network(selection="all")
    data = fork().to_dict()
    assert tacit.Network.from_dict(data) == fork() != fork("ancestral")
    with pytest.raises(tacit.TacitError, match=r"selection is 'all'"):
        tacit.Network.from_dict(data | {"selection": "all"})
    assert "general selection" in repr(fork())

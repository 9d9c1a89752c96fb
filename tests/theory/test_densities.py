"""Numbers of continuous variables in explanations, and as evidence that stays while other evidence varies."""

import numpy as np
import pytest

import tacit
from tacit import TacitError, theory
from tests.helpers import close
from tests.sensors import sensors

ROW = {"Load": "low", "heat": 82.5, "x": 1.0, "trips": 3}


@pytest.fixture
def tac():
    net = sensors()
    net.add("Alarm", ["Fault"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    return tacit.compile(net, "Fault", ["Load", "heat", "x", "trips", "Alarm"])


def test_a_number_weighs_what_leaving_it_out_takes_away(tac):
    why = tac.explain(ROW)
    assert why.evidence == {"Load": "low", "heat": "82.5", "trips": "3", "x, y": "x 1"}
    found = {one.name: one for one in why.findings}
    without = tac.posterior({name: value for name, value in ROW.items() if name != "heat"})[0]
    close(found["heat"].without, without)
    # a number's weight is the logarithm of the ratio of its densities
    densities = tac.network.density("heat").logs(np.array([[82.5]]))[0]
    close(found["heat"].weight[0], densities[0] - densities[3])
    assert not why.all_changes
    assert "Removing any one finding leaves Fault=true the most probable." in str(why)


def test_extreme_numbers_are_weighed_exactly(tac):
    why = tac.explain({"heat": 3000.0, "trips": 0})
    close(why.findings[0].without, tac.posterior({"trips": 0})[0])
    assert why.findings[0].weight[0] > 1e5


def test_functions_of_likelihoods_are_densities(tac):
    row = {"heat": 82.5, "Alarm": 0.3}
    table = tac.explain(row).coefficients
    close(table[()] + 0.3 * table["Alarm",], tac.joint(row)[0])


def test_tests_see_numbers_below_their_parents():
    net = tacit.Network(selection="general")
    net.add("A", cpt=[0.3, 0.7])
    net.add("B", ["A"], cpt=tacit.TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.5, 0.4]))
    net.add("heat", ["A"], cpt=tacit.Gaussian([80, 60], 5))
    tac = tacit.compile(net, "B", ["A", "heat"])
    row = {"heat": 72.0}
    test = tac.explain(row).tests[0]
    close(test.posterior, net.posterior("A", row)[0, 0])
    assert test.selected == "plus"


def test_two_rows_differ_in_their_numbers(tac):
    why = tac.compare(ROW, {"Load": "low", "heat": 60.0, "y": 0.5})
    assert {(one.name, one.first, one.second) for one in why.differences} == {
        ("heat", "82.5", "60"), ("trips", "3", "-"), ("x, y", "x 1", "y 0.5"),
    }  # fmt: skip
    close(why.differences[-1].posterior, tac.posterior({"Load": "low", "heat": 60.0, "y": 0.5})[0])


def test_bounds_hold_with_numbers_given(tac):
    given = {"heat": 82.5, "x": 1.0}
    low, high = theory.bounds(tac, {"Alarm": (0.1, 0.7)}, given=given)
    ends = tac.posterior({**given, "Alarm": [0.1, 0.7]})[:, 0]
    close([low, high], ends)
    assert theory.monotone(tac, "Alarm", given=given).direction == "increasing"
    decided = [one.robust for one in theory.robust(tac, {"heat": [82.5, 70.0], "Alarm": [0.3, 0.4]}, radius=0.2)]
    assert decided == [False, True]


def test_pieces_are_densities_with_numbers_given(tac):
    found = theory.pieces(tac, ["Alarm"], given={"heat": 82.5})
    close(found.joint({"Alarm": [0.2, 0.9]}), tac.joint({"heat": 82.5, "Alarm": [0.2, 0.9]}))


def test_numbers_do_not_vary(tac):
    with pytest.raises(TacitError, match="'trips' is continuous, but an input is the likelihood"):
        theory.bounds(tac, {"trips": (2, 3)})
    with pytest.raises(TacitError, match=r"with the numbers of heat, p\*\(q\) is a density beyond the range of floats"):
        theory.pieces(tac, ["Alarm"], given={"heat": 8000.0})
    assert theory.pieces(tac).inputs == ("Alarm",)


def test_a_continuous_query_has_no_states_to_explain(tac):
    heat = tacit.compile(tac.network, "heat", ["Load", "x"])
    with pytest.raises(TacitError, match="the query, 'heat', is continuous and has no state that this could be about"):
        heat.explain({"x": 1.0})

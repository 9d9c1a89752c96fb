"""Value nodes: kept beside the variables, and wherever a network goes."""

import copy
import pickle

import numpy as np
import pytest

import tacit
from tacit import FormatError, Network, NetworkError


def weather():
    net = Network("weather")
    net.add("Rain", cpt=[0.3, 0.7])
    net.add("Umbrella", states=["take", "leave"], cpt=[0.5, 0.5])
    net.value("Comfort", ["Rain", "Umbrella"], [[5, -20], [-3, 0]])
    net.value("Fee", [], -1.5)
    return net


def test_copies_have_the_value_nodes():
    net = weather()
    assert list(net) == ["Rain", "Umbrella"]
    copies = [
        *(net.copy(), copy.deepcopy(net), pickle.loads(pickle.dumps(net)), net.with_cpts({}), net.with_gamma(None)),
        *(Network.from_dict(net.to_dict()), net.learnable().with_cpts({name: net.cpt(name) for name in net})),
    ]
    for other in copies:
        assert other == net
        assert not other.value_nodes["Comfort"].table.flags.writeable
    for other in (net.do({"Rain": "true"}), net.cut(["Rain"]), net.with_selection("general"), net.select({})):
        assert other.value_nodes == net.value_nodes
    assert net.without_values() != net
    assert net.without_values().value_nodes == {}
    assert net.value_nodes["Fee"] != "Fee"


def test_a_changed_copy_leaves_the_network_alone():
    net = weather()
    net.copy().value("New", ["Rain"], [0, 1])
    net.value_nodes.clear()
    assert list(net.value_nodes) == ["Comfort", "Fee"]


def test_value_nodes_are_shown():
    net = weather()
    assert repr(net) == "Network('weather': 2 nodes, 0 edges, 4 parameters, 2 value nodes)"
    assert str(net.value_nodes["Comfort"]).splitlines()[:2] == ["Rain   Umbrella  Comfort", "true   take            5"]
    assert "<td>-20</td>" in net.value_nodes["Comfort"]._repr_html_()
    assert "value node Comfort of Rain, Umbrella" in net._repr_html_()
    assert '  "Comfort" [shape=diamond];\n  "Rain" -> "Comfort";' in net.to_dot()


@pytest.mark.parametrize(
    ("parents", "table", "message"),
    [
        (["Rain"], [[1, 2]], r"table has shape \(1, 2\), expected \(2,\): an axis for each of Rain"),
        ([], [1], r"table has shape \(1,\), expected \(\): an axis for each of no parents"),
        (
            ["Rain", "Umbrella"],
            [[1, 2], [3, np.nan]],
            "table at Rain='false', Umbrella='leave' is nan, expected a",
        ),
        (["Rain"], ["1", "2"], "value node 'V': table is not an array of numbers"),
        (["Rain"], [1e308, -1e308], "the numbers of table are too far apart for floats"),
        (["Fee"], [1, 2], "'Fee' is a value node, no variable"),
        ("Rain", [1, 2], "parents must be a sequence of names"),
        (["Rian"], [1, 2], "'Rian' is not in the network"),
    ],
)
def test_faults_are_named(parents, table, message):
    with pytest.raises(NetworkError, match=message):
        weather().value("V", parents, table)


def test_names_are_unique():
    with pytest.raises(NetworkError, match="'Rain' is in the network already"):
        weather().value("Rain", [], 0)
    with pytest.raises(NetworkError, match="'Fee' is in the network already"):
        weather().add("Fee")
    with pytest.raises(NetworkError, match="non-empty string"):
        weather().value("", [], 0)


def test_other_formats_say_that_json_holds_them(tmp_path):
    with pytest.raises(FormatError, match=r"'Comfort' is a value node, which no format but JSON holds; write .json"):
        tacit.write(weather(), tmp_path / "weather.bif")
    for convert in (tacit.to_pyagrum, tacit.to_pgmpy):
        with pytest.raises(NetworkError, match=r"'Comfort' is a value node, .* net.without_values\(\)"):
            convert(weather())


def test_a_template_has_none():
    net = Network()
    net.add("X[0]", cpt=[0.5, 0.5])
    net.add("X[1]", ["X[0]"], cpt=[[0.5, 0.5], [0.5, 0.5]])
    net.value("V", ["X[1]"], [0, 1])
    with pytest.raises(NetworkError, match="value node 'V' is not unrolled; add it to the network that unroll makes"):
        tacit.unroll(net, 3)

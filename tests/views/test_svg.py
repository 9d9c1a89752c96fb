"""Drawings of networks and circuits: what is in the picture, and that it is one that every program can read."""

import sys
import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest
from bench.drawings import Faults, faults, random_network, random_tree
from bench.networks import network

import tacit
from tacit import Network, TacitError, TooLargeError, examples
from tacit.drawing import draw
from tacit.views.picture import LIGHT, Arrow, Oval, Picture, Text

SVG = "{http://www.w3.org/2000/svg}"


def abc_circuit():
    return tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False)


def test_drawings_name_everything_and_shade_testing_nodes(tmp_path):
    drawing = draw(examples.abc())
    assert drawing.svg.count("<ellipse") == 3
    assert drawing.svg.count("<path d=") == 2 + 2  # two edges and their tips
    assert drawing.svg.count('fill="#d9dee7"') == 1
    drawing.save(tmp_path / "abc.svg")
    assert (tmp_path / "abc.svg").read_text(encoding="utf-8") == drawing.svg

    circuit = abc_circuit()
    svg = draw(circuit).svg
    assert svg.count("<rect") == 4  # tests
    assert svg.count('class="tip"') == circuit.size
    assert "A=true" in svg


NETWORKS = {
    "abc": examples.abc,
    "random": lambda: random_network(200),
    "tree": lambda: random_tree(150),
    **{name: lambda name=name: network(name) for name in ("asia", "alarm", "hepar2", "win95pts", "andes")},
}


@pytest.mark.parametrize("name", NETWORKS)
def test_no_edge_passes_a_node_and_no_label_another(name):
    assert faults(draw(NETWORKS[name]()).picture) == Faults(0, 0, 0)


@pytest.mark.parametrize("name", ["asia", "alarm", "insurance"])
def test_neither_with_posteriors(name):
    assert faults(draw(network(name), {}).picture) == Faults(0, 0, 0)


def test_neither_in_a_circuit():
    assert faults(draw(abc_circuit()).picture) == Faults(0, 0, 0)


def test_faults_are_counted():
    ends = [Oval(0, 0, 60, 20, LIGHT), Oval(0, 100, 60, 20, LIGHT)]
    arrow = Arrow([(30.0, 20.0), (30.0, 100.0)])
    assert faults(Picture(100, 120, [arrow, *ends])) == Faults(0, 0, 0)
    between = Oval(20, 50, 60, 20, LIGHT)
    assert faults(Picture(100, 120, [arrow, *ends, between])) == Faults(1, 0, 0)
    crowded = [between, Text(50, 64, "a label that is too long"), Text(50, 64, "b")]
    assert faults(Picture(300, 120, crowded)) == Faults(0, 1, 1)


def test_no_two_edges_share_a_line_or_a_tip():
    """It would look bolder than the rest, and like one edge that forks."""
    net = Network()
    for name, parents in {"A": "", "B": "A", "C": "B", "D": "AC", "E": "AC"}.items():
        net.add(name, list(parents))
    arrows = [item for item in draw(net).picture.items if isinstance(item, Arrow)]
    steps = [step for arrow in arrows for step in pairwise(arrow.points)]
    assert len(arrows) == len(net.edges)
    assert len(set(steps)) == len(steps)
    assert len({arrow.points[-1] for arrow in arrows}) == len({arrow.points[0] for arrow in arrows}) == len(arrows)
    ovals = [item for item in draw(net).picture.items if isinstance(item, Oval)]
    for x, y in (arrow.points[-1] for arrow in arrows):  # on an outline, not in the corner above it
        away = [np.hypot(2 * (x - own.left) / own.width - 1, 2 * (y - own.top) / own.height - 1) for own in ovals]
        assert min(away, key=lambda one: abs(one - 1)) == pytest.approx(1)


def test_corners_of_edges_are_round():
    """The radius where a curve leaves the vertical is 3/2 of its handle squared, by how far it leads aside."""
    ((_, first), (_, last), _) = next(Arrow([(0.0, 0.0), (200.0, 40.0)]).curves)
    assert 1.5 * first**2 / 200 > 6
    assert last == 40 - first


def test_wide_networks_are_drawn_in_several_rows():
    root = ET.fromstring(draw(network("win95pts")).svg)
    assert float(root.get("width")) < 2 * float(root.get("height"))


def test_a_circuit_has_its_inputs_below_what_is_made_of_them():
    root = ET.fromstring(draw(abc_circuit()).svg)
    rows = {text.text: float(text.get("y")) for text in root.iter(f"{SVG}text")}
    assert rows["A=true"] > rows["+"]


def test_edges_without_room_to_go_straight_are_drawn_all_the_same():
    """Warnings are errors here: the median of no points is one."""
    circuit = tacit.compile(examples.hmm(2), "H2", ["E1"]).circuit(fold=False)
    assert draw(circuit).svg.count('class="tip"') == circuit.size


def test_drawings_need_no_other_package(monkeypatch):
    for package in ("igraph", "matplotlib", "pandas"):
        monkeypatch.setitem(sys.modules, package, None)
    assert draw(examples.abc()).svg.endswith("</svg>")


def test_a_network_without_nodes_is_an_empty_picture():
    assert list(ET.fromstring(draw(Network()).svg).iter(f"{SVG}text")) == []


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1f", "\ud800", "\ufffe", "<&>\"'", "\x7f", "é"])
def test_any_name_makes_a_picture_in_xml(sign, tmp_path):
    net = Network()
    net.add(f"A{sign}", states=[f"a{sign}", "b"], cpt=[0.5, 0.5])
    for what in (net, tacit.compile(net, f"A{sign}", [f"A{sign}"]).circuit(fold=False)):
        draw(what).save(tmp_path / "odd.svg")
        root = ET.parse(tmp_path / "odd.svg").getroot()
        assert any(text.text.startswith("A") and len(text.text) > 1 for text in root.iter(f"{SVG}text"))


def test_control_characters_are_shown_as_signs():
    net = Network()
    net.add("bell \x07", cpt=[0.5, 0.5])
    assert ">bell ␇<" in draw(net).svg


def test_odd_names_and_large_circuits():
    net = Network()
    net.add('<a & "b">', states=["<yes>", "no"], cpt=[0.5, 0.5])
    assert "&lt;a &amp;" in draw(net).svg
    assert "&lt;yes&gt;" in draw(net, {}).svg
    with pytest.raises(TooLargeError, match="cannot be read"):
        draw(tacit.compile(examples.hmm(80), "H80", ["E1"]).circuit(fold=False))
    with pytest.raises(TacitError, match="cannot draw a int"):
        draw(3)

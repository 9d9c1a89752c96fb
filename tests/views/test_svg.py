"""Drawings of networks and circuits: what is in the picture, and that it is one that every program can read."""

import sys
import xml.etree.ElementTree as ET
from itertools import combinations, pairwise

import pytest
from bench.networks import network

import tacit
from tacit import Network, TacitError, TooLargeError, examples
from tacit.views.layout import arrange
from tacit.views.svg import _of_circuit, _of_network, draw

SVG = "{http://www.w3.org/2000/svg}"


def abc_circuit():
    return tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False)


def test_drawings_name_everything_and_shade_testing_nodes(tmp_path):
    drawing = draw(examples.abc())
    assert drawing.svg.count("<ellipse") == 3
    assert drawing.svg.count("<path d=") == 2 + 1  # two edges and the tip of their arrows
    assert drawing.svg.count('fill="#d9dee7"') == 1
    drawing.save(tmp_path / "abc.svg")
    assert (tmp_path / "abc.svg").read_text(encoding="utf-8") == drawing.svg

    circuit = abc_circuit()
    svg = draw(circuit).svg
    assert svg.count("<rect") == 4  # tests
    assert svg.count("marker-end") == circuit.size
    assert "A=true" in svg


@pytest.mark.parametrize("what", [_of_network(network("win95pts")), _of_circuit(abc_circuit())])
def test_nothing_overlaps_and_no_edge_passes_a_node(what):
    shapes, edges = what
    found = arrange([shape.size for shape in shapes], edges)
    for (x, y, w, h), (u, v, k, m) in combinations(found.boxes, 2):
        assert x + w <= u or u + k <= x or y + h <= v or v + m <= y
    for route in found.routes:
        assert all(below[1] >= above[1] for above, below in pairwise(route))
        for x, y in route[1:-1]:
            assert not any(left < x < left + w and top < y < top + h for left, top, w, h in found.boxes)


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
    assert draw(circuit).svg.count("marker-end") == circuit.size


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
    net.add('<a & "b">', cpt=[0.5, 0.5])
    assert "&lt;a &amp;" in draw(net).svg
    with pytest.raises(TooLargeError, match="cannot be read"):
        draw(tacit.compile(examples.hmm(80), "H80", ["E1"]).circuit(fold=False))
    with pytest.raises(TacitError, match="cannot draw a int"):
        draw(3)

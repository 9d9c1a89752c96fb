"""Parts of networks, pictures of a stated width, and edges that are not sure."""

import re

import numpy as np
import pytest
from bench.drawings import Faults, faults, random_network
from bench.networks import network

import tacit
from tacit import Network, TacitError, examples
from tacit.drawing import SmallLettersWarning, draw
from tacit.views.picture import Area, Arrow, Box, Oval, Text

PIXELS_PER_CM = 96 / 2.54
LEGEND = [
    "in all samples",
    "in 75% of the samples or more",
    "in 50% to 75% of the samples",
    "in fewer than half of the samples",
]


def arrows(drawing):
    return [item for item in drawing.picture.items if isinstance(item, Arrow)]


def texts(drawing):
    return [item.text for item in drawing.picture.items if isinstance(item, Text)]


def points(drawing):
    """The size of a node's letters on paper."""
    return 9 * drawing.picture.scale


def test_some_nodes_are_drawn_with_the_edges_between_them():
    drawing = draw(network("asia"), nodes=["dysp", "either", "lung", "asia"])
    assert texts(drawing) == ["asia", "lung", "either", "dysp"]
    assert len(arrows(drawing)) == 2  # lung -> either -> dysp


def test_some_nodes_have_the_posteriors_of_the_whole_network():
    net = network("asia")
    drawing = net.plot({"xray": "yes"}, nodes=["tub"])
    assert f"{net.posterior('tub', {'xray': 'yes'})[0, 0]:.1%}" in texts(drawing)
    assert "xray" not in texts(drawing)


def test_nodes_must_be_there():
    with pytest.raises(TacitError, match=r"'tubb'.*'tub'"):
        draw(network("asia"), nodes=["tubb"])
    with pytest.raises(TacitError, match="nodes= names no variable"):
        draw(network("asia"), nodes=[])
    assert texts(draw(network("asia"), nodes="tub")) == ["tub"]


@pytest.mark.parametrize("name", ["asia", "alarm", "insurance", "hailfinder", "win95pts"])
def test_a_picture_has_its_width_and_letters_that_can_be_read(name):
    drawing = draw(network(name), width=17)
    assert drawing.picture.width * drawing.picture.scale == pytest.approx(17 * PIXELS_PER_CM)
    assert points(drawing) + 1e-9 >= 6
    assert points(drawing) <= 9
    assert faults(drawing.picture) == Faults(0, 0, 0)


@pytest.mark.parametrize(("name", "width"), [pytest.param("win95pts", 8.5, marks=pytest.mark.slow), ("asia", 1)])
def test_letters_too_small_to_read_come_with_a_warning_that_says_what_helps(name, width):
    with pytest.warns(SmallLettersWarning, match=r"nodes=") as caught:
        assert points(draw(network(name), width=width)) < 6
    least = float(re.search(r"6 points from a width of ([\d.]+) cm", str(caught[0].message))[1])
    assert points(draw(network(name), width=least)) + 1e-9 >= 6
    assert width < least < 20
    assert caught[0].filename == __file__


def test_a_width_is_that_of_the_files(tmp_path):
    from PIL import Image

    drawing = draw(network("asia"), width=8.5)
    assert 'width="321"' in drawing.svg
    drawing.save(tmp_path / "asia.png", dpi=254)
    with Image.open(tmp_path / "asia.png") as opened:
        assert opened.width == pytest.approx(850, abs=1)
    drawing.save(tmp_path / "asia.pdf")
    assert b"/MediaBox [ 0 0 240.9" in (tmp_path / "asia.pdf").read_bytes()  # points: 8.5 / 2.54 * 72


def test_a_layout_is_kept_where_its_letters_can_be_read_and_fills_the_width():
    plain = draw(network("asia"))
    drawing = draw(network("asia"), width="3.3in")
    assert drawing.picture.width * drawing.picture.scale == pytest.approx(3.3 * 96)
    before, after = ([item for item in one.picture.items if isinstance(item, Oval)] for one in (plain, drawing))
    assert [oval.top for oval in before] == [oval.top for oval in after]
    assert min(oval.left for oval in after) < 20
    assert max(oval.left + oval.width for oval in after) > drawing.picture.width - 20


def test_a_node_wider_than_the_picture_is_made_to_fit():
    net = Network()
    net.add("a" * 100, cpt=[0.5, 0.5])
    with pytest.warns(SmallLettersWarning, match="letters have"):
        drawing = draw(net, width=5)
    assert drawing.picture.width * drawing.picture.scale == pytest.approx(5 * PIXELS_PER_CM)
    assert faults(drawing.picture) == Faults(0, 0, 0)


@pytest.mark.parametrize("width", [0, -1, float("inf"), float("nan"), "17 feet", "-3in", True])
def test_a_width_is_a_number_of_centimetres(width):
    with pytest.raises(TacitError, match="expected a number of centimetres above 0"):
        draw(examples.abc(), width=width)


def test_weak_edges_are_dashed_and_explained():
    drawing = draw(network("asia"), strength={("asia", "tub"): 0.6, ("smoke", "lung"): 0.9, ("smoke", "bronc"): 0.1})
    *edges, sure, likely, doubtful, weak = arrows(drawing)
    assert texts(drawing)[8:] == LEGEND
    counts = [[edge.stroke for edge in edges].count(one.stroke) for one in (sure, likely, doubtful, weak)]
    assert counts == [5, 1, 1, 1]
    assert not sure.stroke.dashes
    assert drawing.svg.count("stroke-dasharray") == 2 * 3
    assert faults(drawing.picture) == Faults(0, 0, 0)


def test_the_surest_edge_is_drawn_last():
    """Where edges meet at a child, the pale tip covered the dark one."""
    drawing = draw(network("asia"), strength={("tub", "either"): 0.2})
    edges = arrows(drawing)[: len(network("asia").edges)]
    assert edges[0].stroke == arrows(drawing)[-1].stroke != edges[-1].stroke


def test_a_png_has_dashes(tmp_path):
    from PIL import Image

    draw(examples.etq(), strength={("E", "T"): 0.6}, nodes=["E", "T"]).save(tmp_path / "et.png", dpi=96)
    with Image.open(tmp_path / "et.png") as opened:
        column = np.asarray(opened.convert("L"))[42:74]  # between the nodes
    darkest = column.min(axis=1)
    assert (darkest > 240).any()
    assert (darkest < 200).any()


def test_edges_without_a_direction_have_no_tip():
    net = network("asia")
    drawing = draw(net, undirected=[("lung", "smoke")])  # in any order
    assert drawing.svg.count('class="tip"') == len(net.edges) - 1
    assert texts(drawing)[-1] == "direction unknown"


def test_an_edge_without_a_tip_ends_beside_the_tips_of_others():
    net = Network()
    for name, parents in {"A": "", "B": "", "C": "AB"}.items():
        net.add(name, list(parents))
    drawing = draw(net, undirected=[("A", "C")])
    tipped, bare = sorted(arrows(drawing)[:2], key=lambda arrow: -arrow.tipped)
    assert abs(tipped.points[-1][0] - bare.points[-1][0]) > 5
    assert faults(drawing.picture) == Faults(0, 0, 0)


def test_what_is_known_outside_of_a_part_is_said():
    """The posteriors that are drawn depend on it."""
    net = network("asia")
    part = draw(net, {"xray": "yes", "smoke": 0.9, "dysp": [None]}, nodes=["lung", "bronc"])
    assert texts(part)[-2:] == ["xray = yes, not drawn", "smoke = yes 0.9, not drawn"]
    assert "not drawn" not in " ".join(texts(draw(net, {"xray": "yes"})))
    everything = dict.fromkeys(net.variables, "yes") | {"lung": [None], "either": "yes", "tub": "yes"}
    assert texts(draw(net, everything, nodes=["lung"]))[-1] == "1 more, not drawn"


def test_no_legend_without_need():
    for strength in ({}, {("A", "B"): 1.0, ("A", "C"): 1.0}):
        assert texts(draw(examples.abc(), strength=strength, undirected=[])) == ["A", "B", "C"]


def test_soft_evidence_looks_different_from_a_state_and_gaps_are_no_evidence():
    drawing = draw(examples.abc(), {"A": 0.8, "C": ["lo"], "B": [None]})
    dashes = {box.outline.dashes for box in drawing.picture.items if isinstance(box, Box) and box.outline}
    assert dashes == {(), (2.0, 2.5)}
    assert texts(drawing)[-3:] == ["observed", "soft evidence", "testing node"]
    assert "observed" not in texts(draw(examples.abc(), {"A": 0.8}))
    assert "observed" not in texts(draw(examples.abc(), {"A": [None]}))
    assert "soft evidence" not in texts(draw(examples.abc(), {"A": [[0.0, 3.0]]}))


def test_numbers_in_boxes_have_no_exponent():
    net = Network()
    net.add("x", cpt=tacit.Gaussian(1714.2, 105.3))
    written = " ".join(texts(draw(net, {})))
    assert "mean 1714, sd 105" in written
    assert "e+" not in written


def test_what_is_said_of_edges_is_checked():
    net = examples.abc()
    with pytest.raises(TacitError, match=r"strength names \('B', 'A'\), which is not an edge"):
        draw(net, strength={("B", "A"): 0.5})
    with pytest.raises(TacitError, match=r"undirected names \('B', 'C'\), which is not an edge"):
        draw(net, undirected=[("B", "C")])
    with pytest.raises(TacitError, match="expected a number from 0 to 1"):
        draw(net, strength={("A", "B"): 60})
    with pytest.raises(TacitError, match="are for networks"):
        draw(tacit.compile(net, "B", ["A"]).circuit(), nodes=["A"])


def test_a_network_passes_all_options_on():
    options = {"nodes": ["A", "B"], "width": 8, "strength": {("A", "B"): 0.3}, "undirected": [("A", "B")]}
    assert examples.abc().plot(**options).svg == draw(examples.abc(), **options).svg


def test_a_drawing_of_a_stated_width_fits_a_page_with_its_legend():
    chain = Network()
    for k in range(40):
        chain.add(f"A{k}", [f"A{k - 1}"] if k else [])
    with pytest.warns(SmallLettersWarning, match="they have 6 points from a width of") as told:
        drawing = draw(chain, strength={("A0", "A1"): 0.6}, width=8.5).picture
    draw(chain, width=f"{re.findall(r'[0-9.]+ cm', str(told[0].message))[-1]}")  # without a warning
    assert drawing.height * drawing.scale <= 9.2 * 96
    assert drawing.width * drawing.scale == pytest.approx(8.5 * PIXELS_PER_CM)


@pytest.mark.slow
def test_what_is_far_too_large_for_a_page_is_made_smaller():
    """Not rearranged into a tower of very many rows."""
    with pytest.warns(SmallLettersWarning):
        drawing = draw(random_network(200), width=8.5)
    plain = draw(random_network(200))
    assert drawing.picture.width * drawing.picture.scale == pytest.approx(8.5 * PIXELS_PER_CM)
    assert drawing.picture.height == plain.picture.height


def test_a_picture_of_nothing_has_a_width_too():
    assert draw(Network(), width=5).picture.width == pytest.approx(5 * PIXELS_PER_CM)


def test_value_nodes_are_diamonds_below_their_parents():
    net = Network()
    net.add("Ill", cpt=[0.1, 0.9])
    net.add("Treat", cpt=[0.5, 0.5])
    net.value("Harm & pain", ["Ill", "Treat"], [[-5, -9], [-1, 0]])
    net.value("Fee", [], -1)
    for drawing in (draw(net), draw(net, {"Ill": "true"})):
        assert len(arrows(drawing)) == 2
        assert "Fee" not in texts(drawing)
        (label,) = [item for item in drawing.picture.items if isinstance(item, Text) and item.text == "Harm & pain"]
        outer, inner = [item.points for item in drawing.picture.items if isinstance(item, Area)]
        assert outer[1] == (label.x, min(y for _, y in outer))
        assert all(outer[0][0] < x < outer[2][0] for x, _ in inner)
        (left, top), side = outer[1], outer[2]
        for x, y in (arrow.points[-1] for arrow in arrows(drawing)):  # on the diamond's upper sides
            assert (y - top) / (side[1] - top) == pytest.approx(abs(x - left) / (side[0] - left))
            assert abs(x - left) > 3
    assert texts(draw(net, nodes=["Ill"])) == ["Ill"]

"""Drawings as SVG, PNG and PDF files, and posteriors in their nodes."""

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from bench.drawings import Faults, faults
from bench.networks import network

import tacit
from tacit import EvidenceError, Network, TacitError, examples
from tacit.drawing import draw
from tacit.views.nodes import KNOWN, MAX_BARS, Bars
from tacit.views.picture import Text
from tacit.views.words import intervals

SVG = "{http://www.w3.org/2000/svg}"


def image(path):
    from PIL import Image

    with Image.open(path) as opened:
        return np.asarray(opened.convert("RGB"))


def texts(drawing):
    return [item.text for item in drawing.picture.items if isinstance(item, Text)]


def test_a_png_has_as_many_pixels_as_asked_for(tmp_path):
    drawing = draw(network("asia"))
    size = np.array([drawing.picture.height, drawing.picture.width])
    for dpi, scale in ((96, 1), (192, 2)):
        drawing.save(tmp_path / "asia.PNG", dpi=dpi)
        np.testing.assert_allclose(image(tmp_path / "asia.PNG").shape[:2], scale * size, atol=1)


def test_a_png_shows_every_node_where_the_svg_has_it(tmp_path):
    """Testing nodes are shaded, and nothing else is."""
    net = examples.abc()
    draw(net).save(tmp_path / "abc.png", dpi=96)
    pixels = image(tmp_path / "abc.png")
    for oval in ET.fromstring(draw(net).svg).iter(f"{SVG}ellipse"):
        x, y, reach = (float(oval.get(name)) for name in ("cx", "cy", "rx"))
        inside = pixels[round(y) + 9, round(x - reach / 2)]
        assert "#{:02x}{:02x}{:02x}".format(*inside) == oval.get("fill")
        assert pixels[round(y), round(x - reach)].min() < 160  # the outline


def test_a_pdf_is_one_and_always_the_same(tmp_path):
    for name in ("one.pdf", "other.pdf"):
        draw(examples.abc()).save(tmp_path / name)
    assert (tmp_path / "one.pdf").read_bytes().startswith(b"%PDF")
    assert (tmp_path / "one.pdf").read_bytes() == (tmp_path / "other.pdf").read_bytes()


def test_dollars_are_no_mathematics(tmp_path):
    net = Network()
    net.add("$x_1^{$ & $\\frac$", cpt=[0.5, 0.5])
    draw(net).save(tmp_path / "odd.png")
    assert image(tmp_path / "odd.png").min() < 100


@pytest.mark.parametrize("kind", ["svg", "png", "pdf"])
def test_pictures_of_nothing_can_be_saved(tmp_path, kind):
    draw(Network()).save(tmp_path / f"none.{kind}")
    assert (tmp_path / f"none.{kind}").exists()


def test_other_files_are_refused(tmp_path):
    for name in ("abc.jpg", "abc"):
        with pytest.raises(TacitError, match=r"abc.*: a drawing is saved as \.svg, \.png, \.pdf"):
            draw(examples.abc()).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dpi", [0, -96, float("nan"), "96"])
def test_a_png_needs_a_resolution(tmp_path, dpi):
    with pytest.raises(TacitError, match="expected a number above 0"):
        draw(examples.abc()).save(tmp_path / "abc.png", dpi=dpi)


def test_png_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(TacitError, match=r"PNG needs matplotlib, .*: pip install 'matplotlib>="):
        draw(examples.abc()).save(tmp_path / "abc.png")
    assert list(tmp_path.iterdir()) == []


def test_a_network_plots_itself():
    net = examples.abc()
    assert net.plot().svg == draw(net).svg
    assert net.plot()._repr_svg_().startswith('<svg style="max-width:100%')
    assert repr(net.plot()) == repr(draw(net))


def test_nodes_show_their_posteriors():
    net, evidence = network("asia"), {"xray": "yes", "dysp": 0.3}
    shown = texts(net.plot(evidence))
    assert shown[8 * (1 + 2 * 2) :] == ["observed", "soft evidence"]
    for name, posterior in tacit.compile(net, None, list(evidence)).marginals(evidence).items():
        at = shown.index(name)
        bars = [text for label, p in zip(net.states(name), posterior[0], strict=True) for text in (label, f"{p:.1%}")]
        assert shown[at : at + 5] == [name, *bars]
    assert net.plot(evidence).svg.count('stroke="#a34a05"') == 2 + 2  # what is observed, and both in the legend


def test_bars_are_as_long_as_their_probabilities():
    net = Network()
    net.add("A", states=["a", "b", "c"], cpt=[0.25, 0.75, 0.0])
    bars = [item for item in net.plot({}).picture.items if getattr(item, "height", 0) == 9]
    track, first, _, second, _ = (bar.width for bar in bars)  # none for 0
    assert (first / track, second / track) == (0.25, 0.75)


def test_of_many_states_the_most_probable_are_shown():
    weights = np.arange(1.0, 101.0)
    node = Bars.of("A", [f"s{i}" for i in range(100)], (weights / weights.sum()).tolist(), False, "", False)
    assert [bar.label for bar in node.bars] == [*(f"s{i}" for i in range(89, 100)), "89 others"]
    assert len(node.bars) == MAX_BARS
    assert sum(bar.probability for bar in node.bars) == pytest.approx(1)


def test_long_labels_are_cut():
    net = Network()
    net.add("A", states=["s" * 500, "t"], cpt=[0.5, 0.5])
    assert net.plot({}).picture.width < 400
    assert any(text.endswith("s…") for text in texts(net.plot({})))


def test_what_is_set_is_violet_and_cut_from_its_parents():
    net = examples.kidney_stones()
    picture = net.plot({"size": "large"}, do={"treatment": "A"})
    shown = texts(picture)
    assert f"{net.do({'treatment': 'A'}).posterior('recovery', {'size': 'large'})[0, 0]:.1%}" in shown
    assert shown[-3:] == ["observed", "set from outside (do)", "edge cut by that"]
    assert picture.svg.count('class="tip"') == len(net.edges) - 1
    assert picture.svg.count(f'fill="{KNOWN["set"].fill}"') == 2  # the node, and in the legend
    plain = net.plot(do={"treatment": "A"})
    assert "treatment = A" in texts(plain)
    assert faults(picture.picture) == faults(plain.picture) == Faults(0, 0, 0)
    with pytest.raises(EvidenceError, match="'treatment' is set by do= and cannot be observed"):
        net.plot({"treatment": "B"}, do={"treatment": "A"})


def test_what_is_observed_set_and_asked_for_has_outlines_of_its_own():
    """Grey print has no colours."""
    drawing = examples.abc().plot({"C": "lo"}, do={"B": "true"}, query="A")
    assert texts(drawing)[-4:] == ["query", "observed", "set from outside (do)", "edge cut by that"]
    outlines = [item.outline for item in drawing.picture.items if getattr(item, "outline", None)]
    looks = {(outline.width, outline.dashes) for outline in outlines}
    assert len(looks) == 3  # the fourth is a double one
    assert len(outlines) == 2 * (2 + 1 + 1)  # in the picture, and in its legend
    assert 'stroke-dasharray="5 3"' in drawing.svg
    with pytest.raises(TacitError, match="'D'"):
        examples.abc().plot(query="D")


def test_captions_are_shown_in_place_of_names(tmp_path):
    net, long = network("asia"), "Tuberculosis or lung cancer, which an X-ray cannot tell apart"
    drawing = net.plot(captions={"either": long, "tub": "Tuberculosis"})
    assert {"Tuberculosis", "lung"} <= set(texts(drawing))
    assert long in " ".join(texts(drawing))
    assert drawing.picture.width < net.plot(captions={"either": long.replace(" ", "_")}).picture.width
    assert faults(drawing.picture) == Faults(0, 0, 0)
    (tmp_path / "asia.toml").write_text('[variables.lung]\nlabel = "Lung cancer"\nstates = {yes = "present"}\n')
    assert {"Lung cancer", "present", "no"} <= set(texts(net.plot({}, captions=tmp_path / "asia.toml")))
    with pytest.raises(TacitError, match=r"'lungs'.*'lung'"):
        net.plot(captions={"lungs": "Lungs"})
    with pytest.raises(TacitError, match="expected a mapping"):
        net.plot(captions=["lung"])


def test_intervals_are_shown_as_people_write_them():
    net = Network()
    net.add("dose", bins=[float("-inf"), 2.6, 11.2, float("inf")], cpt=[0.2, 0.3, 0.5])
    assert {"< 2.6", "2.6 – 11.2", "≥ 11.2"} <= set(texts(net.plot({})))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        (["[0, 18)", "[18, 65]"], ["0 – 18", "18 – 65"]),
        (["[-1.5, 0)", "[0, inf)"], ["−1.5 to 0", "≥ 0"]),
        (["[1.00001, 1.00002)", "[1.00002, 123456]"], ["1.00001 – 1.00002", "1.00002 – 123456"]),
        (["[0, 1)", "other"], None),
        (["(a, b)"], None),
    ],
)
def test_intervals_stay_apart_and_other_names_as_they_are(states, expected):
    assert intervals(states) == expected


def test_posteriors_are_of_one_possible_row():
    net = Network()
    net.add("A", cpt=[1.0, 0.0])
    with pytest.raises(EvidenceError, match="one row of evidence, got 2 rows"):
        net.plot({"A": ["true", "false"]})
    with pytest.raises(EvidenceError, match="the evidence has probability 0"):
        net.plot({"A": "false"})
    with pytest.raises(TacitError, match="a circuit has no posteriors"):
        draw(tacit.compile(net, "A", ["A"]).circuit(fold=False), {})

"""Plots are fit for a page: nothing overlaps or is cut off, bars and curves have room, and journals take the files."""

import io
import re
import zlib
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit import TacitError, examples
from tacit.views.picture import Box, Text
from tests.sensors import sensors

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
plot = pytest.importorskip("tacit.plot")
to_hex = pytest.importorskip("matplotlib.colors").to_hex
FontProperties = pytest.importorskip("matplotlib.font_manager").FontProperties
text_to_path = pytest.importorskip("matplotlib.textpath").text_to_path
pd = pytest.importorskip("pandas")
NAMES = [f"Patient {letter}: admitted on {day} March, ward 7" for day, letter in enumerate("ABCDEFGH", start=1)]


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(ax):
    """All texts of some axes that are drawn: ticks beyond the ends of an axis are not."""
    ticks = [
        tick.label1
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks()
        if min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())
    ]
    legend = ax.get_legend()
    in_legend = [legend.get_title(), *legend.get_texts()] if legend else []
    found = [*ticks, ax.xaxis.label, ax.yaxis.label, *ax.texts, *in_legend]
    return [text for text in found if text.get_text()]


def check_neat(ax, share):
    """Nothing overlaps or is cut off, letters have 7 to 9 points, and the axes take a share of the figure's width."""
    ax.figure.draw_without_rendering()
    whole, drawn = ax.figure.bbox, texts(ax)
    boxes = [text.get_window_extent() for text in drawn]
    assert not [(a, b) for (a, x), (b, y) in combinations(zip(drawn, boxes, strict=True), 2) if x.overlaps(y)]
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= whole.width and box.y1 <= whole.height for box in boxes)
    assert all(7 <= text.get_size() <= 9 for text in drawn)
    assert ax.get_window_extent().width >= share * whole.width


@pytest.fixture(scope="module")
def rows():
    """Evidence on six states and on two, in rows with long names."""
    return pd.DataFrame({"region": list("abcdefab"), "E": ["yes", "no"] * 4}, index=NAMES)


@pytest.fixture(scope="module")
def net():
    net = tacit.Network()
    net.add("region", states=list("abcdef"), cpt=np.full(6, 1 / 6))
    kinds = ["Northern Europe", "Eastern America", "elsewhere"]
    net.add("Q", ["region"], states=kinds, cpt=np.random.default_rng(0).dirichlet([1] * 3, 6))
    net.add("E", ["Q"], states=["yes", "no"], cpt=[[0.1, 0.9], [0.5, 0.5], [0.7, 0.3]])
    return net


@pytest.mark.parametrize("width", ["3.4in", "6.9in"])
def test_rows_with_long_names_leave_room_for_bars_and_intervals(net, rows, width):
    share = 0.85 if width == "3.4in" else 0.58
    check_neat(tacit.compile(net, "Q", ["region"]).posterior(rows[["region"]], labels=True).plot(width=width), share)
    draws = tacit.estimate(net.learnable(), net.sample(50, seed=0), prior=1.0).draws(20, seed=0)
    for query, evidence in (("Q", "region"), ("E", "region")):
        sure = tacit.compile(draws.network, query, [evidence]).credible(rows[[evidence]], draws)
        check_neat(sure.plot(width=width), share)
        check_neat(tacit.compile(draws.network, query, [evidence]).credible(rows[:1][[evidence]], draws).plot(), 0.6)


@pytest.mark.parametrize("width", ["3.4in", "6.9in"])
def test_many_rows_have_a_baseline_each_and_one_scale(width):
    """Equal rows would hide each other on one baseline."""
    found = sensors().posterior("heat", pd.DataFrame({"trips": [0, 0, 1, 2, 3, 4, 5, 6]}, index=NAMES))
    ax = found.plot(width=width)
    check_neat(ax, 0.85 if width == "3.4in" else 0.58)
    assert ax.figure.get_figwidth() == pytest.approx(float(width[:3]))
    assert [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()] == NAMES
    lows, highs = (np.array([end(line.get_ydata()) for line in ax.get_lines()]) for end in (min, max))
    assert (highs[1:] < lows[:-1]).all()
    np.testing.assert_allclose((highs - lows) / max(highs - lows), (peaks := _peaks(found)) / max(peaks), rtol=0.01)
    assert "on one scale" in ax.get_xlabel()
    sharp = tacit.Network()
    sharp.add("A", cpt=[0.5, 0.5])
    sharp.add("x", ["A"], cpt=tacit.Gaussian([0.0, 1.0], [0.01, 1.0]))
    ax = sharp.posterior("x", {"A": ["true", "false"] * 2}).plot()
    assert "each on its own scale" in ax.get_xlabel()
    np.testing.assert_allclose(np.ptp([line.get_ydata() for line in ax.get_lines()], axis=1), 0.3, rtol=0.02)


def _peaks(mixture):
    return mixture.pdf(np.linspace(*mixture.quantile([1e-6, 1 - 1e-6])[[0, -1], [0, 1]], 5001)).max(axis=1)


def test_every_plot_takes_a_width():
    tac = tacit.compile(examples.diamond(seed=1), "D", ["A", "C"])
    found = tacit.theory.approximate(lambda x: x * x, levels=5)
    for ax in (
        plot.curve(tac, "A", given={"C": 0.5}, width="3.4in"),
        plot.surface(tac, width="3.4in"),
        plot.regions(tac, width="3.4in", points=30),
        plot.staircase(lambda x: x * x, found, width="3.4in"),
        plot.density(sensors().posterior("heat"), width="3.4in"),
    ):
        ax.figure.draw_without_rendering()
        assert ax.figure.get_figwidth() == pytest.approx(3.4)
        labels = [getattr(ax, f"{name}axis").label.get_window_extent() for name in ax._axis_names]
        assert all(box.x0 >= 0 and box.x1 <= ax.figure.bbox.width for box in labels if box.width)
    with pytest.raises(TacitError, match="width= is for a new figure"):
        plot.curve(tac, "A", given={"C": 0.5}, ax=plt.figure().add_subplot(), width=3)


def test_the_legend_has_the_colours_of_the_lines():
    for rows in ({}, {"trips": [0, 5, 9]}):
        ax = sensors().posterior("heat", rows).plot()
        drawn = {to_hex(line.get_color()) for line in ax.get_lines()}
        assert {to_hex(handle.get_color()) for handle in ax.get_legend().legend_handles} <= drawn
        assert "components, weighted" in " ".join(text.get_text() for text in texts(ax))


def test_thin_lines_are_explained():
    step = tacit.compile(examples.diamond(seed=1), "D", ["A", "C"])
    for ax, expected in (
        (sensors().posterior("heat").plot(), ["density", "components, weighted"]),
        (plot.curve(step, "A", given={"C": 0.5}), ["from here on, tests select other tables"]),
    ):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == expected


def test_an_axis_of_probabilities_ends_at_1_and_numbers_have_room_behind_it():
    ax = examples.asia().posterior("asia", {}, labels=True).plot(width="3.4in")
    assert ax.spines["bottom"].get_bounds() == (0, 1)
    assert [tick.get_text() for tick in ax.get_xticklabels()][-1] == "100%"
    check_neat(ax, 0.6)
    label, end = ax.xaxis.label.get_window_extent(), ax.transData.transform((0.5, 0))[0]
    assert (label.x0 + label.x1) / 2 == pytest.approx(end, abs=1)  # below the middle of the axis
    own = plt.figure(figsize=(3.4, 2)).add_subplot()
    plot.posterior(examples.asia().posterior("asia", {}, labels=True), own)
    assert all(text.get_window_extent().x1 <= own.get_window_extent().x1 for text in own.texts)


def test_names_of_states_end_before_their_bars_in_files():
    """Also in the font of matplotlib, which is wider than that of SVG."""
    net = tacit.Network()
    net.add("tube", states=["NORMAL", "ESOPHAGEAL", "ONESIDED"], cpt=[0.9, 0.06, 0.04])
    items = net.plot({}).picture.items
    bars = min(item.left for item in items if isinstance(item, Box) and not item.outline)
    names = [item for item in items if isinstance(item, Text) and item.anchor == "start"]
    assert len(names) == 3
    for name in names:
        points = text_to_path.get_text_width_height_descent(name.text, FontProperties(size=9), ismath=False)[0]
        assert name.x + points * 96 / 72 < bars - 4


def test_weights_have_true_minus_signs_and_as_many_digits_as_each_other():
    why = examples.asia().explain("lung", {"smoke": "no", "xray": "yes"}, state="yes")
    assert [text.get_text() for text in why.plot().texts] == ["+2.80", "−1.75"]
    even = SimpleNamespace(query="Q", states=("yes",), state=0, weights=[("A: yes", 2.0), ("B: no", np.inf)])
    assert [text.get_text() for text in plot.weights(even).texts] == ["+∞", "+2.00"]


def test_dollars_in_names_are_dollars():
    """Between two of them, matplotlib would read mathematics."""
    net = tacit.Network()
    net.add("$ a", states=["below $5", "$5_6$"], cpt=[0.3, 0.7])
    net.add("b", ["$ a"], cpt=[[0.2, 0.8], [0.5, 0.5]])
    rows = pd.DataFrame({"b": ["true", "false"]}, index=["from $1 to $2", "$x^2$"])
    drawn = tacit.compile(net, "$ a", ["b"]).posterior(rows, labels=True).plot()
    for text in texts(drawn):
        shown, mathematics = text._preprocess_math(text.get_text())
        assert not mathematics
        assert "\\" not in shown


def test_forty_rows_fit_a_page():
    frame = pd.DataFrame({"smoke": ["yes"] * 40}, index=[f"a patient with a long name, {row}" for row in range(40)])
    answers = tacit.compile(examples.asia(), "lung", ["smoke"]).posterior(frame, labels=True)
    for width in ("3.4in", "6.9in"):
        ax = answers.plot(width=width)
        check_neat(ax, 0.6)
        assert ax.figure.get_figheight() <= 9.7


@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_a_row_without_a_bar_says_why():
    tac = tacit.compile(examples.asia(), "lung", ["tub", "either"])
    ax = tac.posterior({"tub": ["yes", "no"], "either": ["no", "no"]}, labels=True).plot()
    assert [text.get_text() for text in ax.texts] == ["impossible evidence"]
    assert ax.texts[0].get_position()[1] == pytest.approx(max(ax.get_yticks()))


def test_letters_in_files_of_plots_are_no_type_3():
    file = io.BytesIO()
    examples.asia().posterior("lung", {}, labels=True).plot().figure.savefig(file, format="pdf")
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", file.getvalue(), re.DOTALL)
    objects = file.getvalue() + b"".join(zlib.decompress(s) for s in streams if s[:1] == b"x")
    assert b"/TrueType" in objects or b"/CIDFontType2" in objects
    assert b"/Type3" not in objects

"""Pictures show what the functions are: checked by what is on the axes, not by pixels."""

import sys
from itertools import pairwise

import numpy as np
import pytest

import tacit
from tacit import Network, TacitError, TestingCPT, examples
from tacit.theory import approximate

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
plot = pytest.importorskip("tacit.views.plotting")
tornado = pytest.importorskip("tacit.views.tornado").tornado


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def two_tests():
    net = Network()
    net.add("E", cpt=[0.5, 0.5])
    for i, t in ((1, 0.3), (2, 0.6)):
        net.add(f"T{i}", ["E"], cpt=TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [t, 1 - t], test=[">=", "<="]))
    net.add("Q", ["T1", "T2"], cpt=np.random.default_rng(0).dirichlet([1, 1], (2, 2)))
    return tacit.compile(net, "Q", ["E"])


def test_a_curve_has_its_pieces_and_borders():
    tac = two_tests()
    ax = plot.curve(tac)
    dashed = [line for line in ax.lines if line.get_color() == plot.PALE]
    assert [float(line.get_xdata()[0]) for line in dashed] == pytest.approx([0.3, 0.6])
    drawn = [line for line in ax.lines if line.get_color() == plot.ACCENT]
    assert len(drawn) == 3
    for line in drawn:
        x, y = line.get_data()
        np.testing.assert_allclose(tac.posterior({"E": np.asarray(x)})[:, 0], y)
    assert ax.get_ylabel() == "P*(Q = true)"


def test_a_curve_of_sigmoids_is_one_piece():
    tac = two_tests()
    soft = tacit.compile(tac.network.with_gamma(16.0), "Q", ["E"])
    assert len(plot.curve(soft, state="false").lines) == 1


@pytest.mark.parametrize("draw", [plot.curve, plot.surface, plot.regions])
def test_without_matplotlib_an_error_says_how_to_install_it(draw, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(TacitError, match="pictures need matplotlib, which is not installed: pip install"):
        draw(two_tests())


def test_a_surface_and_a_map_of_regions():
    net = examples.split_layer(2, gamma=None)
    cpts = {n: TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.5, 0.5], test=[">=", "<"]) for n in ("T1", "T2")}
    cpts |= {"E1": [0.5, 0.5], "E2": [0.5, 0.5], "Q": np.random.default_rng(0).dirichlet([1, 1], (2, 2))}
    tac = tacit.compile(net.with_cpts(cpts), "Q", ["E1", "E2"])
    assert plot.surface(tac).get_zlabel() == "P*(Q = true)"
    ax = plot.regions(tac)
    assert ax.get_title() == "4 regions"
    assert sorted(text.get_text() for text in ax.texts) == ["1", "2", "3", "4"]
    assert ax.texts[0].get_position() == pytest.approx((0.25, 0.25), abs=0.01)  # from left to right, in the middle
    assert ax.texts[3].get_position() == pytest.approx((0.75, 0.75), abs=0.01)
    curve = plot.curve(tac, "E1", given={"E2": 0.2})
    assert curve.get_xlabel() == "λ(E1 = true)"
    assert curve.get_ylabel() == "P*(Q = true | λ(E2 = true) = 0.2)"
    assert plot.curve(tac, "E1", given={"E2": "true"}).get_ylabel() == "P*(Q = true | E2 = true)"
    with pytest.raises(TacitError, match="has 1 input, but there are 2: E1, E2"):
        plot.curve(tac)
    with pytest.raises(TacitError, match="no regions"):
        plot.regions(tacit.compile(tac.network.with_gamma(3.0), "Q", ["E1", "E2"]))


def test_a_surface_has_gaps_where_it_jumps():
    tested = tacit.compile(examples.diamond(seed=1), "D", ["A", "C"])
    whole = (plot.SURFACE_POINTS - 1) ** 2
    for tac, gaps in ((tested, True), (tacit.compile(tested.network.with_gamma(9.0), "D", ["A", "C"]), False)):
        (drawn,) = plot.surface(tac).collections
        assert (0.8 * whole < len(drawn.get_edgecolor()) < whole) is gaps


def test_every_region_has_a_colour_of_its_own_and_small_ones_no_number():
    ax = plot.regions(tacit.compile(examples.diamond(seed=1), "D", ["A", "C"]))
    image = np.asarray(ax.images[0].get_array())
    assert ax.get_title() == f"{len(np.unique(image.reshape(-1, 3), axis=0))} regions" == "14 regions"
    assert 5 <= len(ax.texts) < 14
    assert len(np.unique(plot._colors(60).round(3), axis=0)) == 60


def test_a_query_that_tests_nothing_has_no_map():
    tac = tacit.compile(examples.abc(testing=False), "B", ["A", "C"])
    with pytest.raises(TacitError, match="no testing node takes part in this query"):
        plot.regions(tac)
    assert len(plot.surface(tac).collections) == 1


def test_a_staircase_stays_within_its_band():
    found = approximate(lambda x: x * x, error=0.1)
    ax = plot.staircase(lambda x: x * x, found)
    f, steps = (np.asarray(line.get_ydata()) for line in ax.lines)
    assert np.abs(f - steps).max() <= 0.1 + 1e-12
    with pytest.raises(TacitError, match="one input"):
        plot.staircase(lambda x: x, approximate(lambda x, y: (x + y) / 2, inputs=2, error=0.5))


def bars(ax):
    """The ends of every bar of a tornado, from the top: the posterior with the entry lowered, and raised."""
    count = len(ax.get_yticklabels())
    lowered, raised = ax.patches[:count], ax.patches[count:]
    ends = [[bar.get_x() + bar.get_width() for bar in side] for side in (lowered, raised)]
    labels = [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]
    return dict(reversed(list(zip(labels, zip(*ends, strict=True), strict=True))))


def test_a_tornado_shows_the_posterior_with_entries_changed():
    net, row = examples.abc(), {"A": 0.8, "C": "lo"}
    tac = tacit.compile(net, "B", ["A", "C"])
    ax = tornado(tac.sensitivity(row), state="true", change=0.01)
    found = bars(ax)
    changes = {"P(A = true) = 0.3": {"A": [[0.29, 0.71], [0.31, 0.69]]}}
    changes["P(C = lo | A = false) = 0.5"] = {"C": [[[0.25, 0.75], [0.49, 0.51]], [[0.25, 0.75], [0.51, 0.49]]]}
    for label, changed in changes.items():
        ((node, tables),) = changed.items()
        expected = [net.with_cpts({node: table}).posterior("B", row)[0, 0] for table in tables]
        np.testing.assert_allclose(found[label], expected, atol=1e-12)
    widths = [abs(high - low) for low, high in found.values()]
    assert widths == sorted(widths, reverse=True)
    assert list(ax.lines[0].get_xdata()) == pytest.approx([tac.posterior(row)[0, 0]] * 2)
    assert ax.get_xlabel() == "P*(B = true | evidence)\nif one number is changed (line: 0.469, as it is)"
    assert "B.plus[A = true, B = true] = 0.9" in found


def test_of_two_bars_on_one_side_the_shorter_one_is_in_front():
    ax = tornado(tacit.compile(examples.abc(), "B", ["A"]).sensitivity({"A": 0.8}))
    count, sides = len(ax.get_yticklabels()), 0
    for lowered, raised in zip(ax.patches[:count], ax.patches[count:], strict=True):
        longer, shorter = sorted((lowered, raised), key=lambda bar: -abs(bar.get_width()))
        if longer.get_width() * shorter.get_width() > 0:
            sides += 1
            assert longer.get_zorder() < shorter.get_zorder()
    assert sides


def test_a_tornado_has_one_bar_for_a_row_of_two():
    found = tacit.compile(examples.abc(), "B", ["A", "C"]).sensitivity({"A": 0.8, "C": "lo"})
    labels = list(bars(tornado(found)))
    assert len(labels) == 5  # of ten entries that matter: A, two rows of C, one of plus and one of minus
    assert not any(" = false) =" in label and label.startswith("P(A") for label in labels)
    assert len(bars(tornado(found, n=2))) == 2


def test_a_tornado_of_extreme_entries():
    net = Network()
    net.add("A", cpt=[1.0, 0.0])  # the first entry leaves no proportion to change the second by
    net.add("B", cpt=[0.98, 0.02])
    net.add("X", ["A", "B"], states=3, cpt=[[[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]] * 2)
    tac = tacit.compile(net, "X", ["A"])
    assert bars(tornado(tacit.compile(net, "A").sensitivity())) == {
        "P(A = false) = 0": (pytest.approx(1.0), pytest.approx(0.9))
    }
    found = bars(tornado(tac.sensitivity(), state=0))
    assert found["P(B = true) = 0.98"] == pytest.approx((0.188, 0.2))  # raised to 1 only
    assert not any(label.startswith("P(A =") for label in found)  # changes nothing
    assert bars(tornado(tacit.compile(net, "X", ["X"]).sensitivity({"X": 1}))) == {}


def test_a_tornado_of_several_query_variables_and_rows():
    tac = tacit.compile(examples.abc(), ["A", "B"], ["C"])
    found = tac.sensitivity({"C": ["lo", "hi"]})
    ax = tornado(found, row=1, state=("true", "false"))
    assert ax.get_xlabel().startswith("P*(A = true, B = false | evidence)")
    assert ax.lines[0].get_xdata()[0] == pytest.approx(tac.posterior({"C": "hi"})[0, 0, 1])


def test_a_tornado_takes_a_state_in_other_capitals():
    found = tacit.compile(examples.abc(), "B", ["A"]).sensitivity()
    assert tornado(found, state=" FALSE").get_xlabel().startswith("P*(B = false)\n")
    net = Network()
    net.add("A", states=["x", "X", "y"], cpt=[0.2, 0.3, 0.5])
    found = tacit.compile(net, "A").sensitivity()
    assert tornado(found, state="x").get_xlabel().startswith("P(A = x)\n")
    assert tornado(found, state="Y").get_xlabel().startswith("P(A = y)\n")


def test_a_tornado_on_given_axes_and_with_rules():
    _, ax = plt.subplots()
    found = tacit.compile(examples.noisy_or_classifier(), "H", ["X1"]).sensitivity({"X1": "true"})
    assert tornado(found, ax=ax) is ax
    assert "P(H = true by X1 = true or the leak) = 0.82" in bars(ax)


def test_a_tornado_as_wide_as_a_column_has_room_for_its_bars_and_names():
    found = tacit.compile(network_of_long_names(), "lung_cancer", ["x_ray_of_the_chest"]).sensitivity()
    ax = tornado(found, width="3.3in")
    figure = ax.figure
    figure.draw_without_rendering()
    page = figure.bbox
    assert page.width / figure.dpi == pytest.approx(3.3)
    names = [label.get_window_extent() for label in ax.get_yticklabels()]
    texts = [*names, ax.xaxis.label.get_window_extent(), ax.get_legend().get_window_extent()]
    assert all(page.x0 <= text.x0 and text.x1 <= page.x1 and page.y0 <= text.y0 for text in texts)
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(names))
    assert ax.get_window_extent().width > 0.9 * page.width


def network_of_long_names():
    net = Network()
    net.add("heavy_smoking_habits", states=["never", "occasionally"], cpt=[0.6, 0.4])
    net.add("lung_cancer", ["heavy_smoking_habits"], cpt=[[0.1, 0.9], [0.3, 0.7]])
    net.add("x_ray_of_the_chest", ["heavy_smoking_habits", "lung_cancer"], cpt=[[[0.5, 0.5], [0.2, 0.8]]] * 2)
    return net


@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_what_a_tornado_refuses():
    net = Network()
    net.add("A", cpt=[1.0, 0.0])
    found = tacit.compile(net, "A", ["A"]).sensitivity({"A": ["true", "false"]})
    with pytest.raises(TacitError, match="row 1: the evidence has probability 0"):
        tornado(found, row=1)
    with pytest.raises(TacitError, match="row 2 does not exist"):
        tornado(found, row=2)
    with pytest.raises(TacitError, match="'maybe' is not a state"):
        tornado(found, state="maybe")
    with pytest.raises(TacitError, match="n is 0"):
        tornado(found, n=0)
    for change in (0, -0.1, float("nan"), 2):
        with pytest.raises(TacitError, match="change is"):
            tornado(found, change=change)

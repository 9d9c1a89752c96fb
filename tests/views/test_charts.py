"""Charts of answers show the numbers that the answers hold."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

import tacit
from tacit import TacitError, examples
from tests.helpers import close

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
plot = pytest.importorskip("tacit.plot")


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture
def tac():
    return tacit.compile(examples.asia(), "lung", ["smoke", "xray", "dysp"])


def widths(ax):
    """The widths of all bars, series by series, from top to bottom."""
    return [[bar.get_width() for bar in bars] for bars in ax.containers]


def texts(labels):
    return [label.get_text() for label in labels]


def test_one_row_has_a_bar_for_each_state(tac):
    answer = tac.posterior({"smoke": "yes", "xray": "yes"}, labels=True)
    ax = answer.plot()
    assert widths(ax) == [answer.array[0].tolist()]
    assert texts(ax.get_yticklabels()) == ["yes", "no"]
    assert texts(ax.texts) == ["64.6%", "35.4%"]


def test_several_rows_share_a_bar_each(tac):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"smoke": ["yes", "no"], "xray": ["yes", "no"]}, index=["Ann", "Bob"])
    with pytest.warns(tacit.MissingColumnWarning):
        answer = tac.posterior(frame, labels=True)
    ax = plot.posterior(answer, width="3.3in")
    close(np.transpose(widths(ax)), answer.array)
    assert texts(ax.get_yticklabels()) == ["Ann", "Bob"]
    assert texts(ax.get_legend().get_texts()) == ["yes", "no"]
    assert ax.figure.get_figwidth() == pytest.approx(3.3)


@pytest.fixture
def draws():
    net = tacit.Network()
    net.add("worn", states=["yes", "no"])
    net.add("noise", ["worn"], states=["loud", "soft", "none"])
    rows = {"worn": ["yes"] * 6 + ["no"] * 24, "noise": ["loud"] * 10 + ["soft", "none"] * 10}
    return tacit.estimate(net, rows, prior=1.0).draws(200)


def segments(ax):
    """The ends of all lines that are intervals."""
    return [part[:, 0] for lines in ax.collections for part in lines.get_segments()]


def test_intervals_of_one_row_are_lines_on_its_bars(draws):
    sure = tacit.compile(draws.network, "noise", ["worn"]).credible({"worn": "yes"}, draws, level=0.8)
    ax = sure.plot()
    assert widths(ax) == [sure.mean[0].tolist()]
    close(segments(ax), np.stack([sure.low[0], sure.high[0]], axis=1))
    assert "80% intervals" in ax.get_xlabel()
    mean, low, high = (100 * part[0, 0] for part in (sure.mean, sure.low, sure.high))
    assert texts(ax.get_yticklabels())[0] == f"loud:  {mean:.1f}%  [{low:.1f}, {high:.1f}]"
    narrow = sure.plot(width="3.4in")
    narrow.figure.draw_without_rendering()
    assert narrow.get_window_extent().width > 0.85 * narrow.figure.bbox.width


def test_intervals_of_several_rows_have_dots_at_their_means(draws):
    worn = tacit.compile(draws.network, "worn", ["noise"]).credible({"noise": ["loud", "none"]}, draws, labels=True)
    ax = plot.posterior(worn)
    close(ax.get_lines()[0].get_xdata(), worn.mean.array[:, 0])
    assert not any(drawn.get_clip_on() for drawn in (*ax.get_lines(), *ax.collections))  # a dot at 0 is a whole one
    close(segments(ax), np.stack([worn.low.array[:, 0], worn.high.array[:, 0]], axis=1))
    assert ax.get_xlabel().startswith("P(worn = yes | evidence)")
    noise = tacit.compile(draws.network, "noise", ["worn"]).credible({"worn": ["yes", "no"]}, draws)
    ax = plot.posterior(noise)
    assert texts(ax.get_legend().get_texts()) == ["loud", "soft", "none"]
    close([line.get_xdata() for line in ax.get_lines()], noise.mean.T)


def test_joint_states_have_names_of_all_variables():
    tac = tacit.compile(examples.asia(), ["lung", "bronc"], ["smoke"])
    answer = tac.posterior({"smoke": "yes"}, labels=True)
    ax = answer.plot()
    assert texts(ax.get_yticklabels()) == ["yes, yes", "yes, no", "no, yes", "no, no"]
    assert widths(ax) == [answer.array.ravel().tolist()]


def test_weights_of_findings_and_of_differences(tac):
    first, second = {"smoke": "yes", "xray": "yes", "dysp": "no"}, {"smoke": "no", "xray": "yes", "dysp": "no"}
    why = tac.explain(first)
    weights = sorted((float(one.weight[why.state]) for one in why.findings), key=abs, reverse=True)
    assert widths(why.plot()) == [weights]
    compared = tac.compare(first, second)
    ax = compared.plot()
    assert widths(ax) == [[float(compared.differences[0].weight[compared.state])]]
    assert texts(ax.get_yticklabels()) == ["smoke changes from yes to no"]


def weighed(*weights, shortest="smoke: yes"):
    """Findings with these weights and long names, the last one with one that cannot be wrapped."""
    names = [shortest, "Positive chest radiograph of both lungs changes from no to yes", "a_word_without_end" * 4]
    query = "Chronic obstructive pulmonary disease"
    return SimpleNamespace(
        query=query, states=("moderate to severe",), state=0, weights=list(zip(names, weights, strict=False))
    )


@pytest.mark.parametrize("width", [None, "3.3in"])
@pytest.mark.parametrize(
    "why",
    [
        examples.asia().compare("lung", {"smoke": "no", "xray": "yes", "dysp": "no"}, {"smoke": "yes", "xray": "no"}),
        examples.asia().explain("lung", {"smoke": "no", "xray": "yes", "dysp": "no", "asia": "no"}),
        weighed(0.01, 3.25, 1.5),
        weighed(-3.25, -0.01),
        weighed(-np.inf, 0.003, -12345.0),
        weighed(0.0),
    ],
    ids=["compared", "explained", "raised", "lowered", "infinite", "nothing"],
)
def test_texts_and_bars_of_weights_have_room(why, width):
    ax = plot.weights(why, width=width)
    ax.figure.draw_without_rendering()
    numbers = [text.get_window_extent() for text in ax.texts]
    names = [label.get_window_extent() for label in ax.get_yticklabels()]
    bars = [bar.get_window_extent() for bar in ax.containers[0]]
    below = ax.xaxis.label.get_window_extent()
    apart = [*numbers, *names, below]
    assert not [pair for pair in combinations(apart, 2) if pair[0].overlaps(pair[1])]
    assert not [(bar, text) for bar in bars for text in apart if bar.overlaps(text)]
    whole = ax.figure.bbox
    assert all(box.x0 >= 0 and box.x1 <= whole.width for box in apart)
    assert all(box.y0 >= 0 and box.y1 <= whole.height for box in apart)
    drawn = max(0, *(bar.x1 for bar in bars)) - min(bar.x0 for bar in bars)
    assert drawn >= 0.4 * whole.width or not any(weight for _, weight in why.weights)


def test_weights_fit_on_axes_that_are_there():
    _, (narrow, wide) = plt.subplots(1, 2, figsize=(9, 4), width_ratios=[1, 2])
    for ax in (narrow, wide):
        plot.weights(weighed(-1.0, 2.0), ax=ax)
        box = ax.get_window_extent()
        assert all(box.x0 <= text.get_window_extent().x0 and text.get_window_extent().x1 <= box.x1 for text in ax.texts)
    assert all(label.get_window_extent().x0 >= narrow.get_window_extent().x0 for label in narrow.get_yticklabels())


def test_long_names_of_states_stand_above_their_bars_and_short_ones_beside_them():
    net = tacit.Network()
    net.add("disease", states=["Chronic obstructive pulmonary disease with emphysema", "none"], cpt=[0.3, 0.7])
    ax = net.posterior("disease", {}, labels=True).plot(width="3.3in")
    ax.figure.draw_without_rendering()
    assert ax.get_window_extent().width > 0.8 * ax.figure.bbox.width
    assert ax.get_yticklabels()[0].get_window_extent().y0 > ax.texts[0].get_window_extent().y1
    short = examples.asia().posterior("lung", {}, labels=True).plot(width="3.3in")
    short.figure.draw_without_rendering()
    assert short.get_yticklabels()[0].get_window_extent().x1 < short.get_window_extent().x0


def test_what_rounding_leaves_of_a_weight_is_0():
    net = tacit.Network()
    for name, table in (("A", [0.3, 0.7]), ("B", [0.15, 0.85])):
        net.add(name, cpt=table)
    net.add("Q", ["A", "B"], cpt=[[[0.1, 0.9]] * 2, [[0.7, 0.3], [0.7 + 1e-15, 0.3 - 1e-15]]])
    compared = net.compare("Q", {"A": "true", "B": "true"}, {"A": "false", "B": "false"})
    assert abs(compared.differences[1].weight[0]) < 1e-9
    assert [weight for name, weight in compared.weights if name.startswith("B")] == [0.0]
    assert texts(compared.plot().texts)[-1] == "0"
    noise = SimpleNamespace(name="B", value="true", weight=np.array([-4e-16]))
    assert tacit.theory.Explanation.weights.fget(SimpleNamespace(findings=[noise], state=0)) == [("B: true", 0.0)]


@pytest.mark.filterwarnings("ignore::tacit.ImpossibleEvidenceWarning")
def test_a_decision_has_a_bar_for_each_action_and_the_best_is_dark():
    net = tacit.Network()
    net.add("Ill", states=["yes", "no"], cpt=[0.2, 0.8])
    net.add("Test", ["Ill"], states=["+", "-", "?"], cpt=[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0]])
    net.add("Treat", states=["yes", "no"])
    net.value("Harm", ["Ill", "Treat"], [[-10, -90], [-5, 0]])
    chosen = tacit.compile(net, decide="Treat", evidence=["Test"]).decide({"Test": ["+", "-", "?"]})
    for row, best in ((0, 0), (1, 1)):
        ax = chosen.plot(row, width="3.4in")
        close(widths(ax)[0], chosen.expected[row])
        colors = [bar.get_facecolor() for bar in ax.containers[0]]
        assert colors.index(min(colors)) == best == chosen.expected[row].argmax()
    for wrong, words in ((2, "row 2: the evidence has probability 0"), (3, "row is 3, expected one of the 3 rows")):
        with pytest.raises(TacitError, match=words):
            chosen.plot(wrong)
    with pytest.raises(TacitError, match="choice is a Network, expected what"):
        plot.decision(net)


def test_infinite_weights_end():
    tac = tacit.compile(examples.asia(), "either", ["lung", "xray"])
    why = tac.explain({"lung": "yes", "xray": "yes"})
    (lengths,) = widths(why.plot())
    assert np.isfinite(lengths).all()
    assert max(lengths) > 1


def test_what_cannot_be_drawn_is_said(tac):
    answer = tac.posterior({"smoke": ["yes"] * 41}, labels=True)
    for wrong, words in (
        (lambda: plot.posterior(tac), "answer is a TAC, expected what tac.posterior"),
        (lambda: plot.posterior(answer), "1 to 40 rows, got 41"),
        (lambda: plot.weights(tac), "why is a TAC, expected what tac.explain"),
        (lambda: tac.compare({"smoke": "yes"}, {"smoke": "yes"}).plot(), "no weights to draw"),
        (lambda: examples.abc().explain("B", {"A": 0.8}).plot(), "no weights to draw"),
        (lambda: answer.plot(ax=1, width=3), "1 to 40 rows"),
        (lambda: plot.curve(examples.asia(), "smoke"), "tac is a Network, expected a compiled query"),
        (lambda: plot.surface(tac, "smoke", "xray"), "inputs is 'smoke', expected a list"),
        (lambda: plot.surface(tac, ["smoke", "xray"], "dysp"), "given is 'dysp', expected a dictionary"),
        (lambda: plot.density(tac), "mixture is a TAC, expected the posterior of a continuous"),
    ):
        with pytest.raises(TacitError, match=words):
            wrong()


@pytest.mark.parametrize("width", ["3.3in", None])
def test_legends_of_several_rows_stay_inside_and_leave_the_axes_their_width(width):
    net = tacit.Network()
    regions = [f"{side} {land}" for land in ("Europe", "America") for side in ("Northern", "Southern", "Eastern")]
    net.add("Region", states=regions, cpt=np.full(6, 1 / 6))
    net.add("E", ["Region"], cpt=[[0.1 * i + 0.2, 0.8 - 0.1 * i] for i in range(6)])
    ax = tacit.compile(net, "Region", ["E"]).posterior({"E": ["true", "false"]}, labels=True).plot(width=width)
    ax.figure.canvas.draw()
    legend, whole = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert legend.x0 >= 0
    assert legend.x1 <= whole.width
    assert legend.y1 <= whole.height
    assert ax.get_window_extent().width >= 0.7 * whole.width

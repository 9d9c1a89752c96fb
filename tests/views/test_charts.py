"""Charts of answers show the numbers that the answers hold."""

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
    assert texts(ax.texts)[0] == f"{mean:.1f}%  [{low:.1f}, {high:.1f}]"


def test_intervals_of_several_rows_have_dots_at_their_means(draws):
    worn = tacit.compile(draws.network, "worn", ["noise"]).credible({"noise": ["loud", "none"]}, draws, labels=True)
    ax = plot.posterior(worn)
    close(ax.get_lines()[0].get_xdata(), worn.mean.array[:, 0])
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

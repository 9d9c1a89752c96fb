"""Credible intervals are quantiles of the answers under each network."""

import numpy as np
import pytest
from hypothesis import given

import tacit
from tacit import Ensemble, TacitError
from tacit.query import under_draws
from tests.helpers import close, impossible, tries
from tests.query.test_ensembles import ROWS, ensembles


@impossible
@tries(30)
@given(case=ensembles(count=7))
def test_intervals_are_quantiles_over_the_networks(case):
    several, query, columns = case
    ensemble = Ensemble.of(several)
    tac = tacit.compile(several[0].learnable(), query, list(columns))
    answers = np.stack([tac.with_network(net.learnable()).posterior(columns) for net in several])
    found = tac.credible(columns, ensemble, level=0.5)
    close(found.mean, answers.mean(axis=0))
    close(found.low, np.quantile(answers, 0.25, axis=0))
    close(found.high, np.quantile(answers, 0.75, axis=0))
    assert found.low.shape == (ROWS if columns else 1, len(several[0].states(query)))


def opinions():
    net = tacit.examples.abc()
    return net, Ensemble.of([net.with_cpts({"A": tacit.CPT([p, 1 - p])}) for p in (0.1, 0.3, 0.6)])


def test_rows_in_blocks_are_answered_alike(monkeypatch):
    net, ensemble = opinions()
    tac = tacit.compile(net, ["A", "B"], ["C"])
    rows = {"C": ["lo", "hi", None, "hi", "lo"]}
    whole = tac.credible(rows, ensemble)
    assert whole.mean.shape == (5, 2, 2)
    monkeypatch.setattr(under_draws, "ANSWERS_AT_ONCE", 2 * 3 * 4)
    parts = tac.credible(rows, ensemble)
    for part in ("mean", "low", "high"):
        close(getattr(parts, part), getattr(whole, part))


def test_labels_name_states_and_rows():
    pandas = pytest.importorskip("pandas")
    net, ensemble = opinions()
    tac = tacit.compile(net, "B", ["C"])
    rows = pandas.DataFrame({"C": ["lo", "hi"]}, index=["first", "second"])
    plain, found = tac.credible(rows, ensemble, level=0.8), tac.credible(rows, ensemble, level=0.8, labels=True)
    assert isinstance(plain.low, np.ndarray)
    close(found.low["true"], plain.low[:, 0])
    frame = found.to_pandas()
    assert list(frame.index) == ["first", "second"]
    assert list(frame.columns) == [(s, part) for s in ("true", "false") for part in ("mean", "low", "high")]
    close(frame["false", "high"], plain.high[:, 1])
    columns = found.columns()
    assert list(columns)[:3] == ["B.true", "B.true.low", "B.true.high"]
    close(columns["B.true.high"], plain.high[:, 0])
    title, head, first, _ = str(found).splitlines()
    assert (title, head.split()) == ("Means and 80% credible intervals", ["B", "true", "false"])
    assert first.startswith("first")
    assert f"{plain.mean[0, 0]:.3f} [{plain.low[0, 0]:.3f}, {plain.high[0, 0]:.3f}]" in first
    assert "<table" in found._repr_html_()


@pytest.mark.parametrize("settings", [{"level": 90}, {"level": 0.0}, {"level": 1.0}, {"method": "bootstrap"}])
def test_other_levels_and_methods_are_refused(settings):
    net, ensemble = opinions()
    with pytest.raises(TacitError, match="expected"):
        tacit.compile(net, "B", ["C"]).credible({"C": "lo"}, ensemble, **settings)


def test_a_column_of_numbers_has_no_probabilities():
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("x", ["A"], cpt=tacit.Gaussian([0.0, 1.0], 1.0))
    with pytest.raises(TacitError, match="'x', is continuous, so there is no credible interval"):
        tacit.compile(net, "x", ["A"]).credible({"A": "true"}, Ensemble.of([net]))

"""Credible intervals are quantiles of the answers under each network."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Ensemble, NoisyOr, TacitError, TestingCPT
from tacit.compiler import strategy
from tacit.model.densities import BaseDensity
from tacit.query import under_draws
from tests.helpers import close, decided, impossible, tries
from tests.query.test_ensembles import ROWS, ensembles
from tests.query.test_row_tables import STRUCTURED
from tests.strategies import queries, rngs

NUDGE = 1e-4


@impossible
@tries(30)
@given(case=ensembles(count=7), structured=st.booleans())
def test_intervals_are_quantiles_over_the_networks(case, structured):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in STRUCTURED.items() if structured else ():
            patch.setattr(strategy, name, value)
        check_quantiles(*case)


def check_quantiles(several, query, columns):
    ensemble = Ensemble.of(several)
    tac = tacit.compile(several[0].learnable(), query, list(columns))
    answers = np.stack([tac.with_network(net.learnable()).posterior(columns) for net in several])
    found = tac.credible(columns, ensemble, level=0.5)
    close(found.mean, answers.mean(axis=0))
    close(found.low, np.quantile(answers, 0.25, axis=0))
    close(found.high, np.quantile(answers, 0.75, axis=0))
    assert found.low.shape == (ROWS if columns else 1, len(several[0].states(query)))


def nudged(net, rng):
    """The network with slightly other tables, causes and densities."""
    cpts = {}
    for name in net:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT | TestingCPT):
            tables = {part: own for part, own in cpt.parts().items() if part != "thresholds"}
            moved = {part: own * (1 + NUDGE * rng.standard_normal(own.shape)) for part, own in tables.items()}
            moved = {part: own / own.sum(axis=-1, keepdims=True) for part, own in moved.items()}
            cpts[name] = CPT(moved["table"]) if isinstance(cpt, CPT) else cpt.with_parts(moved)
        elif isinstance(cpt, NoisyOr):
            moved = [np.where(own < 1, own * (1 - NUDGE * rng.random(own.shape)), 1.0) for own in cpt.causes]
            leak = cpt.leak * (1 - NUDGE * rng.random() * (cpt.leak < 1))
            cpts[name] = NoisyOr(dict(zip(cpt.names, moved, strict=True)), leak)
        elif isinstance(cpt, BaseDensity):
            moved = {part: own * (1 + NUDGE * rng.standard_normal(own.shape)) for part, own in cpt.parts().items()}
            if "cov" in moved:
                moved["cov"] = (moved["cov"] + np.swapaxes(moved["cov"], -1, -2)) / 2
            cpts[name] = cpt.with_parts(moved)
    return net.with_cpts(cpts)


@impossible
@tries(60)
@given(case=queries(rows=2), measured=st.booleans(), structured=st.booleans(), rng=rngs)
def test_the_delta_method_follows_small_changes(case, measured, structured, rng):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in STRUCTURED.items() if structured else ():
            patch.setattr(strategy, name, value)
        check_delta(*case, measured, rng)


def check_delta(net, query, columns, measured, rng):
    if measured:
        add_numbers(net, rng)
        columns = columns | {"number": rng.normal(size=2), "u": rng.normal(size=2), "v": rng.normal(size=2)}
    rows = decided(net, columns, margin=0.01)
    ensemble = Ensemble.of([nudged(net, rng) for _ in range(5)])
    tac = tacit.compile(net.learnable(), query, list(columns))
    found = tac.credible(columns, ensemble, level=0.9, method="delta")
    close(found.mean, tac.with_network(ensemble.learnable).posterior(columns))
    answers = tac.posterior(columns, tables=ensemble)
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = np.log(answers / (1 - answers)).std(axis=0, ddof=1)
        half = np.log(found.high / (1 - found.high)) - np.log(found.mean / (1 - found.mean))
        lower = np.log(found.mean / (1 - found.mean)) - np.log(found.low / (1 - found.low))
    inside = (found.mean > 1e-6) & (found.mean < 1 - 1e-6) & np.isin(np.arange(len(half)), rows)[:, None]
    np.testing.assert_allclose(half[inside], 1.6448536 * spread[inside], rtol=0.02, atol=30 * NUDGE**2)
    close(lower[inside], half[inside], 1e-6)


def add_numbers(net, rng):
    parent = next(iter(net.variables))
    shape = (len(net.states(parent)),)
    net.add("number", [parent], cpt=tacit.Gaussian(rng.normal(size=shape), rng.uniform(1, 2, shape)))
    net.add(("u", "v"), [parent], cpt=tacit.Gaussian(rng.normal(size=(*shape, 2)), cov=[[2.0, 0.6], [0.6, 1.0]]))


def test_the_delta_method_has_the_variances_of_dirichlet_distributions():
    net = tacit.Network()
    net.add("fault", states=["yes", "no"])
    for name in ("noise", "heat"):
        net.add(name, ["fault"], cpt=CPT([[0.7, 0.3], [0.2, 0.8]], learn=True, tie="symptom"))
    truth = net.with_cpts({"fault": [0.2, 0.8]})
    estimate = tacit.estimate(net, truth.sample(4000, seed=1), prior=1.0)
    tac = tacit.compile(estimate.network, "fault", ["noise", "heat"])
    rows = {"noise": ["true", "false", None], "heat": ["true", "true", "false"]}
    by_draws = tac.credible(rows, estimate.draws(20_000))
    by_delta = tac.credible(rows, estimate.draws(1), method="delta")
    for part in ("mean", "low", "high"):
        np.testing.assert_allclose(getattr(by_delta, part), getattr(by_draws, part), rtol=0.01)


@pytest.mark.parametrize("states", [2, 3])
def test_the_delta_method_is_as_sure_of_a_state_as_it_is_unsure_of_the_others(states):
    networks = [tacit.Network() for _ in range(3)]
    for net, mean in zip(networks, (0.0, -1.0, 1.0), strict=True):
        net.add("S", states=states, cpt=[0.5, 0.5, 0.0][:states])
        net.add("x", ["S"], cpt=tacit.Gaussian([mean, 2.0, 9.0][:states], 1.0))
    x = np.array([1.0, 6.0, 19.0, 30.0, 900.0])
    found = tacit.compile(networks[0], "S", ["x"]).credible({"x": x}, Ensemble.of(networks), method="delta")
    odds, half = 2 - 2 * x[:4], 1.6448536269514722 * x[:4]  # of the first state; their derivative by its mean is x
    for low, high, sign in ((found.low[:4, 0], found.high[:4, 0], 1), (found.low[:4, 1], found.high[:4, 1], -1)):
        np.testing.assert_allclose(low, 1 / (1 + np.exp(half - sign * odds)), rtol=1e-11)
        np.testing.assert_allclose(high, 1 / (1 + np.exp(-half - sign * odds)), rtol=1e-11)
    assert found.low[4, :2].tolist() == found.high[4, :2].tolist() == [0.0, 1.0]  # of a posterior that is exactly 0
    assert not found.high[:, 2:].any()


def test_the_delta_method_says_what_it_cannot_do():
    net = tacit.Network()
    net.add("S", cpt=[0.5, 0.5])
    net.add("x", ["S"], cpt=tacit.Gaussian())
    found = tacit.estimate(net, {"S": ["true"] * 5 + ["false"] * 5, "x": np.arange(10.0)})
    tac = tacit.compile(found.network, "S", ["x"])
    with pytest.raises(TacitError, match="'x' has no known variances, and one network tells none; draw more"):
        tac.credible({"x": 1.0}, found.draws(1), method="delta")
    net = tacit.examples.abc()
    steep = Ensemble.of([net.with_gamma(1.0), net.with_gamma(2.0)])
    with pytest.raises(TacitError, match="'B': slopes differ"):
        tacit.compile(net, "B", ["A"]).credible({"A": "true"}, steep, method="delta")


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

"""The engine of the page against the compiled query, in a real browser."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from bench.networks import network
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tacit
import tacit.views.page.page_model as page_model_module
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.views.page.captions import Captions
from tacit.views.page.page_model import page_model
from tacit.views.page.programs import why_not_set
from tests.helpers import tries
from tests.strategies import networks, rngs

ASKED = """([model, evidence, query]) => {
  const engine = localEngine(JSON.parse(model));
  return evidence.map((row) => JSON.stringify({
    ask: engine.ask(row),
    mpe: engine.mpe(row),
    information: engine.information(row, query),
    sensitivity: engine.sensitivity(row, query, 0),
  }, (_, x) => typeof x === "number" && !Number.isFinite(x) ? String(x) : x));
}"""


def drawn(rng: np.random.Generator, net: tacit.Network) -> list[list[float] | None]:
    """Nothing, a state, or likelihoods for every variable."""
    found: list[list[float] | None] = []
    for name in net:
        card, kind = len(net.states(name)), rng.random()
        state = np.eye(card)[rng.integers(card)]
        found.append(None if kind < 0.5 else state.tolist() if kind < 0.75 else (rng.random(card) + 0.01).tolist())
    return found


def numbers(values: Any) -> Any:
    return np.array([float(x) for x in values])


def answers(engine: Any, net: tacit.Network, rows: list[Any], query: int) -> list[Any]:
    model = json.dumps(page_model(net, Captions()))
    return [json.loads(text) for text in engine.evaluate(ASKED, [model, rows, query])]


def check(engine: Any, net: tacit.Network, rows: list[Any], query: int) -> None:
    """All answers of the page to some rows, against those of compiled queries."""
    name = net.variables[query]
    columns = {own: [[1.0] * len(net.states(own)) if row[i] is None else row[i] for row in rows]
               for i, own in enumerate(net)}  # fmt: skip
    tac = tacit.compile(net, name, evidence=net.variables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        for k, found in enumerate(answers(engine, net, rows, query)):
            row = {own: [columns[own][k]] for i, own in enumerate(net) if rows[k][i] is not None}
            check_row(tac, net, row, found)


def check_row(tac: tacit.TAC, net: tacit.Network, row: dict[str, Any], found: dict[str, Any]) -> None:
    marginals, log_evidence = tac.marginals(row), tac.log_evidence(row)[0]
    assert found["ask"]["possible"] == np.isfinite(log_evidence)
    np.testing.assert_allclose(float(found["ask"]["logEvidence"]), log_evidence, atol=1e-12, rtol=1e-12)
    for own, posterior in zip(net, found["ask"]["posteriors"], strict=True):
        np.testing.assert_allclose(numbers(posterior), marginals[own][0], atol=1e-12)
    for own, got in tac.information(row).items():
        theirs = float(found["information"][net.variables.index(own)])
        if own in tac.evidence and own != tac.query and not np.isnan(got[0]):
            assert theirs == pytest.approx(got[0], abs=1e-12)
    if not np.isfinite(log_evidence):
        assert not found["mpe"]["possible"]
        return
    best = tac.mpe(row)
    assert found["mpe"]["logProbability"] == pytest.approx(best.log_probability[0], abs=1e-11)
    states = {own: [net.states(own)[k]] for own, k in zip(net, found["mpe"]["states"], strict=True)}
    check_states(net, row, states, best.log_probability[0])
    selected = tac.selected(row)
    for test in found["ask"]["tests"]:
        how = selected.get(net.variables[test["node"]])
        if how is None:
            continue
        posterior, weight = how.posterior[0].ravel(), how.weight[0].ravel()
        tests = len(test["rows"]) // len(posterior)
        if tests > 1:  # a test says how much all tables from its own on weigh
            weight = how.weight[0][..., ::-1].cumsum(axis=-1)[..., -2::-1].ravel()
        got = (numbers([r[what] for r in test["rows"]]) for what in ("posterior", "weight"))
        for one, expected in zip(got, (np.repeat(posterior, tests), weight), strict=True):
            np.testing.assert_allclose(one, expected, atol=1e-12)
    sensitivity = tac.sensitivity(row)
    derivatives = sensitivity.derivatives
    for entry in found["sensitivity"]:
        table = derivatives[net.variables[entry["node"]], entry["part"]][0, 0]
        place = (*entry["row"], *([] if entry["state"] is None else [entry["state"]]))
        assert entry["derivative"] == pytest.approx(table[place], abs=1e-10, rel=1e-9)
        growth = sensitivity.slopes[net.variables[entry["node"]], entry["part"]][0][(..., *place)].sum()
        assert entry["growth"] == pytest.approx(growth, abs=1e-10, rel=1e-9)


def check_states(net: tacit.Network, row: dict[str, Any], states: dict[str, Any], log_probability: float) -> None:
    """The states have the probability that is claimed, in the network that the evidence selects."""
    selected = net.select(row)
    weight = 0.0
    for name, likelihoods in row.items():
        own = np.array(likelihoods[0]) / np.sum(likelihoods[0])
        weight += np.log(own[net.states(name).index(states[name][0])])
    assert selected.log_likelihood(states)[0] + weight == pytest.approx(log_probability, abs=1e-11)


@settings(tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(net=networks(max_nodes=5, singles=True), rng=rngs, data=st.data())
def test_interventions(engine: Any, net: tacit.Network, rng: np.random.Generator, data: st.DataObject) -> None:
    """Variables are set and set free again, by one engine: each answer is that of `net.do`."""
    query = data.draw(st.integers(0, len(net) - 1))
    rows = [intervened(rng, net, drawn(rng, net)) for _ in range(3)]
    check_interventions(engine, net, [*rows, drawn(rng, net)], query)


def intervened(rng: np.random.Generator, net: tacit.Network, row: list[Any]) -> list[Any]:
    """Some of the variables that a page can set are set, in place of the evidence on them."""
    free = {name for name in net if why_not_set(net, name) is None}
    drawn_state = {name: {"do": int(rng.integers(len(net.states(name))))} for name in net}
    return [drawn_state[n] if n in free and rng.random() < 0.4 else own for n, own in zip(net, row, strict=True)]


def check_interventions(engine: Any, net: tacit.Network, rows: list[Any], query: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        for row, found in zip(rows, answers(engine, net, rows, query), strict=True):
            done = {own: net.states(own)[one["do"]] for own, one in zip(net, row, strict=True) if isinstance(one, dict)}
            seen = {own: [one] for own, one in zip(net, row, strict=True) if isinstance(one, list)}
            changed = net.do(done)
            tac = tacit.compile(changed, net.variables[query], evidence=[own for own in net if own not in done])
            check_row(tac, changed, seen, found)


@settings(tries(40), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(net=networks(max_nodes=5, singles=True), rng=rngs, data=st.data())
def test_random_networks(engine: Any, net: tacit.Network, rng: np.random.Generator, data: st.DataObject) -> None:
    query = data.draw(st.integers(0, len(net) - 1))
    check(engine, net, [drawn(rng, net) for _ in range(3)], query)


def steep(gamma: float) -> tacit.Network:
    """Sigmoids far in both tails, whose lesser table alone explains what is observed below them."""
    net = tacit.Network()
    net.add("A", cpt=[0.6, 0.4])
    two = [[[0.98, 0.02], [0.5, 0.5]], [[1, 0], [1, 0]]], [[[0, 1], [0.1, 0.9]], [[0, 1], [0, 1]]]
    net.add("B", ["A"], cpt=[[0.3, 0.7], [0.8, 0.2]])
    net.add(
        "T",
        ["A", "B"],
        cpt=tacit.TestingCPT(*two, [[0.05, 0.2], [0.5, 0.01]], gamma=gamma, test=[[">=", "<"], ["<=", ">"]]),
    )
    tables = [[[1, 0, 0], [0.9, 0.1, 0]], [[0, 1, 0], [0, 0.7, 0.3]], [[0, 0, 1], [0, 0, 1]]]
    net.add(
        "U",
        ["A"],
        ["low", "mid", "high"],
        tacit.TestingCPT(tables=tables, thresholds=[[0.2, 0.5], [0.1, 0.9]], gamma=gamma),
    )
    return net


@pytest.mark.parametrize("gamma", [64.0, *(pytest.param(g, marks=pytest.mark.slow) for g in (100.0, 130.0)), 800.0])
def test_the_tails_of_steep_sigmoids_count(engine: Any, gamma: float) -> None:
    """A weight that rounds to 1 leaves the other table a weight of its own: 1e-20 is not 0."""
    net = steep(gamma)
    seen = [None, [1.0, 0.0], [0.0, 1.0]], [None, [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    rows = [[None, None, t, u] for t in seen[0] for u in seen[1]] + [[[0.9, 0.1], None, seen[0][2], seen[1][1]]]
    for query in (0, 1):
        check(engine, net, rows, query)


@pytest.mark.parametrize("gamma", [2400.0, 2450.0, 1e5])
def test_findings_may_be_too_improbable_for_floats(engine: Any, gamma: float) -> None:
    """A weight of exp(-735) has lost most of its digits, and one of exp(-30000) is 0."""
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.1, 0.2], gamma=gamma))
    for seen in ([0, 1], [1, 0]):
        expected = tacit.compile(net, "A", ["T"]).ask({"T": [seen]})
        (found,) = answers(engine, net, [[None, seen]], 0)
        np.testing.assert_allclose(found["ask"]["posteriors"][0], expected.posterior[0], atol=1e-12)
        np.testing.assert_allclose(found["ask"]["logEvidence"], expected.log_evidence[0], rtol=1e-12, atol=1e-12)


def test_findings_that_contradict_each_other_are_impossible(engine: Any) -> None:
    net = tacit.examples.abc().with_gamma(64.0)
    net = net.with_cpts({"A": tacit.CPT([1.0, 0.0])})
    (found,) = answers(engine, net, [[[0, 1], None, None]], 1)
    assert not found["ask"]["possible"]


def test_numbers_near_the_smallest_floats_are_answered(engine: Any) -> None:
    net = tacit.Network()
    net.add("A", cpt=[1e-300, 1.0])
    net.add("B", ["A"], cpt=[[0.25, 0.75], [0.0, 1.0]])
    net.add("C", ["A"], cpt=[[0.5, 0.5], [0.125, 0.875]])
    check(engine, net, [[None, [1, 0], None], [None, None, [1, 0]]], 2)


def rules() -> tacit.Network:
    """A noisy-or of several causes, one without any, a function, and a multiplexer."""
    net = tacit.Network("rules")
    for name in "ABC":
        net.add(name, cpt=[0.3, 0.7])
    net.add("N", ["A", "B", "C"], cpt=tacit.NoisyOr([0.8, 0.5, 1.0], leak=0.1))
    net.add("F", ["A", "N"], cpt=tacit.CPT.from_function(lambda a, n: a if n == "true" else "false"))
    net.add("M", ["A", "N", "F"], cpt=tacit.Mux("A", ["N", "F"]))
    return net


def test_rules_are_set_but_for_multiplexers(engine: Any) -> None:
    net, rng = rules(), np.random.default_rng(0)
    assert [name for name in net if why_not_set(net, name)] == ["M"]
    check_interventions(engine, net, [intervened(rng, net, drawn(rng, net)) for _ in range(20)], 5)


def test_what_0s_exclude_can_be_set(engine: Any) -> None:
    """A state that never occurs, and one that contradicts its parents, follow from being set."""
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [0.5, 0.5]])
    net.add("C", ["B"], cpt=[[0.2, 0.8], [0.6, 0.4]])
    (found,) = answers(engine, net, [[None, {"do": 1}, None]], 2)
    np.testing.assert_allclose(found["ask"]["posteriors"][2], [0.6, 0.4])
    check_interventions(engine, net, [[{"do": 1}, None, None], [{"do": 1}, {"do": 1}, [1.0, 0.0]]], 2)


def test_variables_below_testing_nodes_are_not_set_where_tests_see_all_evidence() -> None:
    net = tacit.Network(selection="general")
    net.add("A", cpt=[0.4, 0.6])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]], [0.5, 0.6]))
    net.add("B", ["T", "A"], cpt=np.full((2, 2, 2), 0.5))
    assert [name for name in net if why_not_set(net, name)] == ["B"]
    assert "net.do" in str(why_not_set(net, "B"))


@pytest.mark.parametrize("name", ["child", pytest.param("alarm", marks=pytest.mark.slow)])
def test_real_networks(engine: Any, name: str) -> None:
    net, rng = network(name), np.random.default_rng(0)
    check(engine, net, [drawn(rng, net) for _ in range(4)], len(net) - 1)


@pytest.mark.parametrize("gamma", [None, 30.0])
def test_numbers_that_change_are_computed_again(engine: Any, gamma: float | None) -> None:
    """With tests and with sigmoids, against networks with other numbers; thresholds are among them."""
    net = tacit.examples.abc().with_gamma(gamma)
    found = tacit.compile(net, "B", evidence=["A"]).sensitivity({"A": 0.6})
    model = json.dumps(page_model(net, Captions()))
    got = engine.evaluate(
        """([model]) => {
          const engine = localEngine(JSON.parse(model)), evidence = [[0.6, 0.4], null, null];
          const at = (one, x) => engine.changed(evidence, 1, 0, one, Math.min(Math.max(x, 0), 1));
          const ends = (one) => [at(one, one.value - 0.1), at(one, one.value + 0.1)];
          const ranges = engine.sensitivity(evidence, 1, 0).map((one) => ({ ...one, ends: ends(one) }));
          return { ranges, after: engine.ask(evidence).posteriors[1][0] };
        }""",
        [model],
    )
    assert got["after"] == pytest.approx(found.posterior[0, 0], abs=1e-12)
    assert {"thresholds"} <= {one["part"] for one in got["ranges"]} or gamma is None
    for one in got["ranges"]:
        place = (*one["row"], *([] if one["state"] is None else [one["state"]]))
        ends = np.clip([one["value"] - 0.1, one["value"] + 0.1], 0, 1)
        expected = found.changed(0, (0,), (net.variables[one["node"]], one["part"]), place, ends)
        np.testing.assert_allclose(one["ends"], expected, atol=1e-12)


WITHOUT = """([model, row, query, state]) => {
  const {none, each} = localEngine(JSON.parse(model)).without(row, query);
  return [none, ...each].map((own) => [own, logOdds(own, state)]);
}"""


def test_what_each_finding_changes(engine: Any) -> None:
    """The posterior without any finding, and without each alone, is that of compiled queries."""
    net = network("alarm")
    findings: dict[str, Any] = {"CVP": [[0, 0, 1]], "HRBP": [[0.2, 0.5, 0.3]], "EXPCO2": [[0, 0, 0, 1]]}
    row: list[Any] = [findings[name][0] if name in findings else None for name in net]
    row[net.variables.index("CATECHOL")] = {"do": 1}
    rests = [(net, {})]
    for name in net:
        if name in findings:
            rests.append((net.do({"CATECHOL": "HIGH"}), {own: findings[own] for own in findings if own != name}))
        elif name == "CATECHOL":
            rests.append((net, findings))
    model = json.dumps(page_model(net, Captions()))
    found = engine.evaluate(WITHOUT, [model, row, net.variables.index("HYPOVOLEMIA"), 0])
    for (own, odds), (after, rest) in zip(found, rests, strict=True):
        expected = after.posterior("HYPOVOLEMIA", rest)[0]
        np.testing.assert_allclose(own, expected, atol=1e-12)
        np.testing.assert_allclose(odds, np.log(expected[0] / expected[1]), atol=1e-10)


def test_tests_flip_where_the_theory_says(engine: Any) -> None:
    """The breaks of a curve are the borders of the pieces."""
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", evidence=["A"])
    pieces = tacit.theory.pieces(tac, inputs=["A"])
    model = json.dumps(page_model(net, Captions()))
    found = engine.evaluate(
        "([model]) => localEngine(JSON.parse(model)).curve([null, null, null], 1, {variable: 0, state: 0}, 20)", [model]
    )
    borders = sorted({edge for piece in pieces for edge in (piece.interval.low, piece.interval.high)} - {0.0, 1.0})
    np.testing.assert_allclose(found["breaks"], borders, atol=1e-12)
    rows = {"A": np.array(found["x"])}
    np.testing.assert_allclose(found["posteriors"], tac.posterior(rows), atol=1e-12)


def test_a_surface_is_the_posterior(engine: Any) -> None:
    net = tacit.examples.abc()
    model = json.dumps(page_model(net, Captions()))
    found = engine.evaluate(
        "([model]) => localEngine(JSON.parse(model)).surface([null, null, null], 1, {variable: 0, state: 0}, "
        "{variable: 2, state: 0}, 40)",
        [model],
    )
    x, y = np.meshgrid(found["x"], found["y"])
    expected = tacit.compile(net, "B", evidence=["A", "C"]).posterior({"A": x.ravel(), "C": y.ravel()})
    np.testing.assert_allclose(np.array(found["values"][0]).ravel(), expected[:, 0], atol=1e-12)
    assert len(np.unique(found["pieces"])) == 3


def gates(width: int, depth: int) -> tacit.Network:
    """Layers of random gates: wide, but for the 0s in their tables."""
    rng, net = np.random.default_rng(0), tacit.Network("gates")
    last = [f"x{i}" for i in range(width)]
    for name in last:
        net.add(name, cpt=[0.3, 0.7])
    both, either = [[[1, 0], [0, 1]], [[0, 1], [0, 1]]], [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]
    for d in range(depth):
        layer = [f"g{d}.{i}" for i in range(width)]
        for name in layer:
            parents = [last[k] for k in rng.choice(width, 2, replace=False)]
            net.add(name, parents, cpt=either if rng.random() < 0.5 else both)
        last = layer
    return net


def test_wide_networks_are_answered_by_decision_diagrams(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_model_module, "MAX_WORK", 50_000)
    net, rng = gates(12, 6), np.random.default_rng(0)
    model = page_model(net, Captions())
    assert any(op["kind"] == "structured" for op in model["programs"]["sum"]["operations"])
    assert "decision diagrams" in model["limited"]
    assert model["unsettable"]
    sample = net.sample(20, seed=0)
    rows = [[None] * len(net)]
    for k in range(20):
        seen = {own: float(rng.random()) for own in rng.choice(net.variables, 10, replace=False)}
        soft = {own: [share, 1 - share] for own, share in list(seen.items())[:5]}
        hard = {own: np.eye(2)[net.states(own).index(sample[own][k])].tolist() for own in list(seen)[5:]}
        rows.append([{**soft, **hard}.get(own) for own in net])
    found = engine.evaluate(
        "([model, rows]) => { const own = localEngine(JSON.parse(model)); return rows.map((row) => own.ask(row)) }",
        [json.dumps(model), rows],
    )
    tac = tacit.compile(net, None, evidence=net.variables)
    for row, answer in zip(rows, found, strict=True):
        given = {own: [one] for own, one in zip(net, row, strict=True) if one}
        assert answer["logEvidence"] == pytest.approx(tac.log_evidence(given)[0], abs=1e-12)
        marginals = tac.marginals(given)
        for own, posterior in zip(net, answer["posteriors"], strict=True):
            np.testing.assert_allclose(posterior, marginals[own][0], atol=1e-12)


@pytest.mark.slow
def test_too_large_for_a_page() -> None:
    net = tacit.Network("wide")
    for i in range(27):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    for i in range(27):
        for j in range(i):
            net.add(f"Y{i}.{j}", [f"X{i}", f"X{j}"], cpt=np.full((2, 2, 2), 0.5))
    with pytest.raises(tacit.TooLargeError, match="tacit serve"):
        page_model(net, Captions())

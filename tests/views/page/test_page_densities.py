"""Continuous variables on the page: the same numbers as Python, however far off the findings are."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tacit
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.views.page import page_html
from tacit.views.page.captions import Captions
from tacit.views.page.page_model import page_model
from tests.helpers import tries
from tests.sensors import sensors
from tests.strategies import networks, rngs
from tests.views.page import test_page_engine as plain
from tests.views.page.test_page_ui import until

ASKED = """([model, rows, x]) => {
  const engine = localEngine(JSON.parse(model));
  const told = (mixture) => mixture && {
    mean: mixture.mean, sd: mixture.sd, interval: mixture.interval, pdf: x.map((own) => mixture.pdf(own)),
  };
  return rows.map((row) => {
    const {posteriors, logEvidence, numbers, expected} = engine.ask(row);
    const {logProbability, states} = engine.mpe(row);
    const wide = engine.sum instanceof WideRun;
    return {posteriors, logEvidence, wide, logProbability, states, information: engine.information(row, 1),
            numbers: numbers.map((own) => own?.map(told)), expected: expected.map((own) => own?.map(told))};
  });
}"""
X = [-3.0, 0.0, 0.3, 1.0, 2.0, 4.0, 70.5, 90.0]


def ask(engine: Any, net: tacit.Network, rows: list[Any]) -> Any:
    return engine.evaluate(ASKED, [json.dumps(page_model(net, Captions())), rows, X])


def drawn(net: tacit.Network, rng: np.random.Generator) -> tuple[list[Any], dict[str, Any]]:
    """Evidence as the page and as Python have it: numbers from the middle to 10,000 standard deviations away."""
    row: list[Any] = []
    known: dict[str, Any] = {}
    for name in net:
        variable = net.variable(name)
        if not variable.continuous:
            state = np.eye(variable.card)[rng.integers(variable.card)].tolist() if rng.random() < 0.4 else None
            known |= {} if state is None else {name: [state]}
            row.append(state)
            continue
        seen = {column: number(column, rng) for column in variable.columns if rng.random() < 0.5}
        known |= {column: [x] for column, x in seen.items()}
        row.append({"numbers": [seen.get(column) for column in variable.columns]} if seen else None)
    return row, known


def number(column: str, rng: np.random.Generator) -> float:
    x = float(rng.normal() * rng.choice([1.0, 100.0, 10_000.0]))
    return {"heat": 70 + 5 * x, "trips": float(round(abs(x))), "shake": float(np.exp(np.clip(x, -700, 700)))}.get(
        column, x
    )


def check_mixture(found: dict[str, Any], mixture: Any) -> None:
    assert found["mean"] == pytest.approx(mixture.mean[0], rel=1e-12, abs=1e-12)
    assert found["sd"] == pytest.approx(mixture.sd[0], rel=1e-12)
    np.testing.assert_allclose(found["interval"], np.ravel(mixture.interval()), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found["pdf"], mixture.pdf(X)[0], rtol=1e-12, atol=1e-15)


def test_numbers_are_evidence_and_are_predicted(engine: Any) -> None:
    net, rng = sensors(), np.random.default_rng(0)
    cases = [drawn(net, rng) for _ in range(60)]
    tac = tacit.compile(net, "Fault", evidence=net.variables)
    answers = ask(engine, net, [row for row, _ in cases])
    for (row, known), found in zip(cases, answers, strict=True):
        expected = tac.marginals(known)
        for i, name in enumerate(net):
            if not net.variable(name).continuous:
                np.testing.assert_allclose(found["posteriors"][i], expected[name][0], atol=1e-12)
                continue
            for column, mixture in zip(net.variable(name).columns, found["numbers"][i], strict=True):
                assert (mixture is None) == (column not in expected)
                if mixture:
                    check_mixture(mixture, expected[column])
            if row[i]:
                others = tac.marginals({own: x for own, x in known.items() if own not in net.variable(name).columns})
                for column, mixture in zip(net.variable(name).columns, found["expected"][i], strict=True):
                    check_mixture(mixture, others[column])
        for theirs, own in (
            ("logEvidence", tac.log_evidence(known)),
            ("logProbability", tac.mpe(known).log_probability),
        ):
            assert found[theirs] == pytest.approx(own[0], rel=1e-12, abs=1e-12)
        if "Load" not in known:
            assert found["information"][0] == pytest.approx(tac.information(known)["Load"][0], abs=1e-12)
    assert 0 < sum(found["wide"] for found in answers) < len(answers)  # both kinds of runs


def test_findings_far_off_may_contradict_what_is_most_probable(engine: Any) -> None:
    """What is beside the largest density is 0 as a float, and all that an observed state leaves."""
    net = sensors()
    rows = [[None, [0, 1], {"numbers": [9e4]}, None, None, None], [None, None, {"numbers": [1e300]}, None, None, None]]
    found, neither = ask(engine, net, rows)
    tac = tacit.compile(net, "Load", ["Fault", "heat"])
    expected = tac.posterior({"Fault": [[0.0, 1.0]], "heat": [9e4]})
    np.testing.assert_allclose(found["posteriors"][0], expected[0], atol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        assert neither["logEvidence"] == tac.log_evidence({"heat": [1e300]})[0]


@settings(tries(25), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(net=networks(max_nodes=5, singles=True), rng=rngs, data=st.data())
def test_exponents_for_all_numbers_change_no_answer(
    engine: Any, net: tacit.Network, rng: Any, data: st.DataObject
) -> None:
    """Runs that numbers far off need, on networks of all kinds; there are no derivatives through tests."""
    rows, query = [plain.drawn(rng, net) for _ in range(3)], data.draw(st.integers(0, len(net) - 1))
    engine.evaluate("() => { window.lost = isLost; isLost = () => true; }")
    try:
        found = plain.answers(engine, net, rows, query)
    finally:
        engine.evaluate("() => { isLost = window.lost; }")
    for own in found:
        own["sensitivity"] = own["sensitivity"] or []
    tac = tacit.compile(net, net.variables[query], evidence=net.variables)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        for row, own in zip(rows, found, strict=True):
            plain.check_row(tac, net, {n: [x] for n, x in zip(net, row, strict=True) if x is not None}, own)


def test_functions_of_python_are_refused() -> None:
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("X", ["A"], cpt=tacit.Density(lambda x: np.zeros((len(x), 2))))
    with pytest.raises(
        tacit.NetworkError, match="node 'X' has a Density, a function of Python that no page can run; a"
    ):
        page_html(net)


@pytest.fixture
def opened(browser: Any, tmp_path: Any) -> Any:
    """The page of the sensors, for some findings in its address; at the end, no script has failed."""
    sensors().page(tmp_path / "page.html")
    problems: list[str] = []
    pages = []

    def opening(fragment: str = "", **options: Any) -> Any:
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce", **options)
        pages.append(page)
        page.set_default_timeout(10_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{(tmp_path / 'page.html').as_uri()}#{fragment}")
        page.wait_for_function("window.explorer && explorer.ready")
        return page

    yield opening
    for page in pages:
        page.close()
    assert problems == []


def known(page: Any) -> Any:
    return page.evaluate("explorer.evidence()")


def test_a_number_is_typed_below_its_curve(opened: Any) -> None:
    page = opened("query=heat")
    assert "mean 70" in page.inner_text("#query-states .number-words")
    field, told = page.locator("#query-states input"), page.locator("#query-states .told")
    for wrong in ("warm", "", "1e999"):
        field.fill(wrong)
        field.press("Enter")
        assert "number" in told.inner_text()
        assert known(page) == [None] * 6
    field.fill("\u221282.5")
    field.press("Enter")
    assert known(page)[2] == {"numbers": [-82.5]}
    field.fill("82.5")
    field.press("Enter")
    text = page.inner_text("#query-states")
    assert "observed: 82.5" in text
    assert "The other findings suggest: mean 70" in text
    assert "82.5" in page.inner_text("#panel-findings .findings")
    page.click("#query-states button:text('Clear')")
    assert known(page) == [None] * 6
    assert field.input_value() == ""


def test_numbers_travel_in_links_and_text(opened: Any) -> None:
    page = opened("heat=82.5&y=-1e-3&Fault=true")
    found = known(page)
    assert [found[2], found[3], found[1]] == [{"numbers": [82.5]}, {"numbers": [None, -0.001]}, [1, 0]]
    page.click("#clear")
    text = page.locator(".carry textarea")
    text.fill('{"x": 0.5, "y": 2, "trips": 3}')
    page.click("text=Observe these")
    assert known(page)[3:5] == [{"numbers": [0.5, 2]}, {"numbers": [3]}]
    until(page, "location.hash === '#x=0.5&y=2&trips=3'")
    for wrong, why in {"trips = 2.5": "whole number", "shake = -1": "above 0", '{"x, y": 1}': "name one of x, y",
                       "do(heat) = 3": "nothing is below it"}.items():  # fmt: skip
        text.fill(wrong)
        page.click("text=Observe these")
        assert why in page.inner_text(".carry .told")


def test_two_cases_compare_means(opened: Any) -> None:
    page = opened("A:heat=60&B:heat=95")
    assert "60" in page.inner_text("table.known")
    rows = page.locator("table.compared tbody tr").all_inner_texts()
    net = sensors()
    means = [net.posterior("trips", {"heat": [x]}).mean[0] for x in (60.0, 95.0)]
    assert any("trips mean" in row and f"{means[0]:.2f}\t{means[1]:.2f}" in row for row in rows)
    assert not any(row.startswith("heat") for row in rows)


def test_every_tab_has_something_to_say_about_numbers(opened: Any) -> None:
    page = opened("heat=82.5&x=1")
    said = {
        "weights": "heat = 82.5",
        "explanation": "82.5",
        "information": "values are numbers",
        "table": "Fault",
        "chart": "Load",
    }
    for tab, text in said.items():
        page.click(f"#tab-{tab}")
        page.locator(f"#panel-{tab}", has_text=text).wait_for()
    page.select_option("#query", label="x, y")
    for tab in ("weights", "information", "chart", "sensitivity"):
        page.click(f"#tab-{tab}")
        page.locator(f"#panel-{tab}", has_text="x, y is a number").wait_for()
    page.click("#tab-table")
    assert page.locator("#panel-table thead th").all_inner_texts() == [
        "Fault",
        "mean x",
        "mean y",
        "var x",
        "cov x, y",
        "var y",
    ]


def test_a_phone_shows_curves_in_cards(opened: Any) -> None:
    page = opened()
    page.set_viewport_size({"width": 390, "height": 844})
    card = page.locator("[data-card='4']")
    card.locator("input").fill("3")
    card.locator("input").press("Enter")
    assert known(page)[4] == {"numbers": [3]}
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.click("[data-card='2'] .title")
    assert "mean 84" in page.inner_text("#answer")


def test_the_query_is_drawn_against_a_number(opened: Any) -> None:
    page = opened("trips=1&heat=82.5")
    page.click("#tab-chart")
    plot = page.locator("#panel-chart .plot")
    plot.wait_for()
    assert plot.get_attribute("aria-label").startswith("Fault against the heat: true from")
    assert page.locator("#panel-chart .now").count() == 1
    box = plot.bounding_box()
    page.mouse.click(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    (number,) = known(page)[2]["numbers"]
    assert 75 < number < 90
    assert number == round(number, 1)
    expected = sensors().posterior("Fault", {"heat": [number], "trips": [1]})[0]
    np.testing.assert_allclose(page.evaluate("explorer.posteriors()[1]"), expected, atol=1e-12)
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.4 * box["height"])
    text = page.inner_text("#panel-chart .readout")
    pointed, shown = text.split(": true ")
    assert float(pointed) == pytest.approx(number, abs=0.3)
    assert float(shown.split("%")[0]) / 100 == pytest.approx(expected[0], abs=0.03)  # of the nearest point of the curve


def test_curves_against_numbers_are_posteriors(engine: Any) -> None:
    net = sensors()
    asked = """([model, rows, inputs]) => {
      const engine = localEngine(JSON.parse(model));
      return inputs.map((input) => engine.curve(rows, 1, input, 10).posteriors);
    }"""
    inputs = [{"variable": 2, "state": 0, "range": [50, 100]}, {"variable": 3, "state": 1, "range": [-2, 3]},
              {"variable": 4, "state": 0, "range": [0, 10]}]  # fmt: skip
    row = [None, None, None, {"numbers": [0.5, None]}, None, None]
    found = engine.evaluate(asked, [json.dumps(page_model(net, Captions())), row, inputs])
    for curve, column, ends in zip(found, ("heat", "y", "trips"), ((50, 100), (-2, 3), (0, 10)), strict=True):
        numbers = np.linspace(*ends, 11)
        expected = tacit.compile(net, "Fault", ["x", column]).posterior({"x": np.full(11, 0.5), column: numbers})
        np.testing.assert_allclose(curve, expected, atol=1e-12)


def test_the_words_of_a_box_fit_it(opened: Any) -> None:
    """With a digit less, where the interval would be cut: no number ends in dots."""
    said = """([mean, sd, room]) => {
      const interval = [mean - 1.645 * sd, mean + 1.645 * sd];
      return numberWordsWithin({ possible: true, counted: false, mean, sd, interval }, room, 11.5);
    }"""
    page = opened()
    assert page.evaluate(said, [37.507, 0.757, 400]) == ["mean 37.51", "90%: 36.26 – 38.75"]
    assert page.evaluate(said, [37.507, 0.757, 166]) == ["mean 37.5", "90%: 36.3 – 38.8"]
    assert page.evaluate(said, [-1037.5, 75.0, 166]) == ["−1038", "90%: −1161 – −914"]

"""The best action on the page: what Python says of the same findings, and what one sees."""

import json
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings

import tacit
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.views.page import page_html
from tacit.views.page import page_model as page_model_module
from tacit.views.page.captions import Captions
from tacit.views.page.page_model import page_model
from tacit.views.page.programs import why_not_set
from tests.helpers import tries
from tests.query.decisions.cases import decisions, width
from tests.views.page.test_page_ui import until

EXPECTED = """([model, rows]) => {
  const decider = new Decider(JSON.parse(model));
  return rows.map((row) => decider.expected(row).map((x) => (Number.isNaN(x) ? null : x)));
}"""


def clinic() -> tacit.Network:
    net = tacit.Network("clinic")
    net.add("Disease", states=["yes", "no"], cpt=[0.05, 0.95])
    net.add("Blood", ["Disease"], states=["high", "normal"], cpt=[[0.8, 0.2], [0.3, 0.7]])
    net.add("Treat", ["Blood"], states=["no", "drug", "surgery"])
    net.add("Cured", ["Disease", "Treat"], cpt=[[[0, 1], [0.6, 0.4], [0.95, 0.05]], [[1, 0]] * 3])
    net.value("Harm", ["Cured"], [0, -100])
    net.value("Burden", ["Treat"], [0, -5, -25])
    return net


@given(case=decisions(max_nodes=4))
@settings(tries(30), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_expected_values_are_those_of_python(engine: Any, case: Any) -> None:
    net, decision, columns = case
    assume(why_not_set(net, decision) is None)
    tac = tacit.compile(net, decide=decision, evidence=list(columns))
    known = tac.read(columns)
    rows = []
    for i in range(known.rows):
        row = known.likelihoods(i)
        rows.append([row[name].tolist() if name in row else None for name in net])
        rows[-1][-1] = [1.0] + [0.0] * (net.variable(net.variables[-1]).card - 1)  # at or below the decision
    found = engine.evaluate(EXPECTED, [json.dumps(page_model(net, Captions(decide=decision))), rows])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        expected = tac.decide(known).expected
    np.testing.assert_allclose(np.array(found, dtype=float) / width(net), expected / width(net), rtol=0, atol=1e-11)


def test_the_best_action_follows_the_clicks(browser: Any, tmp_path: Any) -> None:
    path = tmp_path / "clinic.html"
    clinic().page(path, decide="Treat")
    page = browser.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(path.as_uri())
    until(page, "window.explorer?.ready")
    for finding, best in (({}, "no"), ({"Blood": "high"}, "drug"), ({"Disease": "yes"}, "surgery")):
        for name, state in finding.items():
            k = clinic().states(name).index(state)
            page.evaluate(f"explorer.observe({clinic().variables.index(name)}, {[int(j == k) for j in range(2)]})")
        until(page, f"document.querySelector('.action.best .label').textContent === {json.dumps(best)}")
        assert page.locator(".action.best").count() == 1
    expected = tacit.compile(clinic(), decide="Treat", evidence=["Blood", "Disease"])
    value = expected.decide({"Blood": "high", "Disease": "yes"}).expected[0].max()
    assert float(page.locator(".action.best .number").inner_text().replace("−", "-")) == pytest.approx(value, rel=1e-3)
    page.evaluate("explorer.observe(2, {do: 0})")
    page.evaluate("explorer.observe(3, [1, 0])")
    words = "drug, and 70 more than no, which was chosen. What is below the decision is not known yet: Cured."
    until(page, f"document.getElementById('decision').textContent.endsWith({json.dumps(words)})")
    page.evaluate("explorer.observe(0, [0, 1])")
    assert problems == []
    page.close()


def test_other_pages_have_no_decision(browser: Any) -> None:
    page = browser.new_page()
    page.set_content(page_html(tacit.examples.abc()))
    until(page, "window.explorer?.ready")
    assert page.locator("#decision").is_hidden()
    page.close()


def test_captions_name_the_decision(tmp_path: Any) -> None:
    captions = tmp_path / "clinic.toml"
    captions.write_text('decide = "Treat"\n', encoding="utf-8")
    net = clinic()
    assert Captions.read(captions, net).decide == "Treat"
    assert 'id="decision"' in net.explore(captions).html
    assert '"low":' in net.explore(decide="Treat").html
    assert net.cpt("Treat").parts()["table"].shape == (2, 3)
    assert np.isnan(net.table("Treat")).all()  # the page's table is none of the network's


def test_what_no_page_decides_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(tacit.TacitError, match="a page that asks a server does not decide"):
        page_html(clinic(), Captions(decide="Treat"), remote=True)
    with pytest.raises(tacit.NetworkError, match="no value node"):
        page_html(clinic().without_values(), Captions(decide="Treat"))
    with pytest.raises(tacit.NetworkError, match="did you mean 'Treat'"):
        clinic().explore(decide="Treet")
    net = clinic().with_cpts({"Cured": clinic().table("Cured")})
    net.add("Copy", ["Disease", "Cured", "Blood"], ["a", "b"], tacit.Mux("Disease", ["Cured", "Blood"]))
    net.value("Odd", ["Copy"], [0, 1])
    with pytest.raises(tacit.NetworkError, match=r"a page that decides sets 'Copy'\. A page cannot set Copy"):
        page_html(net, Captions(decide="Copy"))
    monkeypatch.setattr(page_model_module, "_asked", lambda net, asked=page_model_module._asked: (asked(net)[0], False))
    with pytest.raises(tacit.TooLargeError, match="too wide for a page that decides"):
        page_html(clinic(), Captions(decide="Treat"))

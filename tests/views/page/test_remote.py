"""The page of a server: its engine, which asks the server, answers as the one in the page does."""

import json
import signal
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.views.page.captions import Captions
from tacit.views.page.page_model import page_model

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.serve.clients import running

ASKED = """async ([local, row, query]) => {
  const model = JSON.parse(local);
  const found = [];
  for (const engine of [localEngine(model), remoteEngine(model)]) {
    const [ask, mpe] = [await engine.ask(row), await engine.mpe(row)];
    const [information, entries] = [await engine.information(row, query), await engine.sensitivity(row, query, 1)];
    const sensitivity = entries.map(({ table, place, ...own }) => own); // which only the page has
    const curve = await engine.curve(row, query, {variable: 0, state: 1}, 20);
    const surface = await engine.surface(row, query, {variable: 0, state: 0}, {variable: 2, state: 1}, 6);
    const [posterior, without] = [await engine.posterior(row, query), await engine.without(row, query)];
    found.push({ask, posterior, without, mpe, information, sensitivity, curve, surface});
  }
  const written = (_, x) => typeof x === "number" && !Number.isFinite(x) ? String(x) : x;
  return found.map((own) => JSON.stringify(own, written));
}"""
# A question that a newer one follows at once is never answered; the newer one is.
OVERTAKEN = """async ([local]) => {
  const engine = remoteEngine(JSON.parse(local));
  let old = 0;
  const asked = [];
  for (let k = 0; k < 20; k++) {
    const row = [[1, k + 1, 2], null, null, null, null];
    asked.push(engine.ask(row).then((found) => (old += k < 19, found)));
  }
  return [old, (await asked[19]).posteriors[0]];
}"""


def network() -> tacit.Network:
    net = tacit.Network("remote")
    net.add("A", states=["x", "y", "z"], cpt=[0.2, 0.3, 0.5])
    plus, minus = [[0.9, 0.1], [0.7, 0.3], [0.4, 0.6]], [[0.2, 0.8], [0.1, 0.9], [0.3, 0.7]]
    net.add("B", parents=["A"], states=[True, False],
            cpt=tacit.TestingCPT(plus, minus, thresholds=[0.35, 0.4, 0.45]))  # fmt: skip
    net.add("C", parents=["A", "B"], states=[0, 1], cpt=np.random.default_rng(0).dirichlet([1, 1], (3, 2)))
    net.add("D", parents=["C"], testing=True, cpt=tacit.TestingCPT([[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.6, 0.4]],
            thresholds=[0.5, 0.6], gamma=8.0))  # fmt: skip
    net.add("E", ["A", "C"], cpt=tacit.Gaussian([[0, 1], [2, 3], [4, 5]], 2.0))
    return net


@pytest.fixture(scope="module")
def served(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A page of a server in a process of its own, and what went wrong on it."""
    path = tmp_path_factory.mktemp("remote") / "net.json"
    tacit.save(network(), path)
    with running("-m", "tacit.cli", "serve", str(path), "--port", "0", "--seconds", "600") as server:
        page = browser.new_page()
        errors: list[str] = []
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"http://127.0.0.1:{server.port}/")
        page.wait_for_function("() => window.explorer && explorer.ready")
        yield page, errors
        page.close()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(timeout=10)


def close(found: Any, expected: Any) -> None:
    """Check for equal things in equal places, numbers to 1e-12."""
    assert type(found) is type(expected) or {type(found), type(expected)} <= {int, float}
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name in expected:
            close(found[name], expected[name])
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    elif isinstance(expected, int | float) and not isinstance(expected, bool):
        assert found == pytest.approx(expected, abs=1e-12)
    else:
        assert found == expected


@pytest.mark.parametrize("row", [[None] * 5, [[0.2, 0.5, 0.3], None, None, [0, 1], {"numbers": [1.5]}],
                                 [None, [1, 0], [0.3, 0.6], None, None],
                                 [None, {"do": 0}, None, None, {"numbers": [9]}],
                                 [[0.2, 0.5, 0.3], {"do": 1}, None, [0.4, 0.6], None]])  # fmt: skip
def test_the_server_answers_as_the_page_does(served: Any, row: list[Any]) -> None:
    page, errors = served
    model = json.dumps(page_model(network(), Captions()))
    local, remote = map(json.loads, page.evaluate(ASKED, [model, row, 2]))
    breaks = [own["curve"].pop("breaks") for own in (local, remote)]
    np.testing.assert_allclose(breaks[1], breaks[0], atol=1 / 20 / 32**3)  # as far as it is cut
    entries = [sorted(own.pop("sensitivity"), key=str) for own in (local, remote)]
    key = lambda one: (one["node"], one["part"], one["row"], str(one["state"]))  # noqa: E731
    close(sorted(entries[1], key=key), sorted(entries[0], key=key))
    close(remote, local)
    assert errors == []


def test_a_newer_question_cancels_an_older_one(served: Any) -> None:
    page, _ = served
    old, posterior = page.evaluate(OVERTAKEN, [json.dumps(page_model(network(), Captions()))])
    assert old == 0
    expected = tacit.compile(network(), "A", evidence=["A"]).posterior({"A": [[1, 20, 2]]})
    np.testing.assert_allclose(posterior, expected[0], atol=1e-12)


def test_clicks_are_answered_by_the_server(served: Any) -> None:
    page, errors = served
    errors.clear()
    page.evaluate("explorer.observe(1, [0, 1])")
    page.wait_for_function("() => Math.abs(explorer.posteriors()[1][1] - 1) < 1e-12")  # engines round differently
    expected = tacit.compile(network(), None, evidence=["B"]).marginals({"B": [[0, 1]]})
    for found, name in zip(page.evaluate("explorer.posteriors()")[:-1], network().variables[:-1], strict=True):
        np.testing.assert_allclose(found, expected[name][0], atol=1e-12)
    assert errors == []


def test_a_page_of_a_server_sets_variables(served: Any) -> None:
    page, errors = served
    errors.clear()
    page.evaluate("explorer.observe(1, null)")
    page.click("#map .state[data-variable='1'][data-state='0']", modifiers=["Shift"])
    page.wait_for_function("() => Math.abs(explorer.posteriors()[1][0] - 1) < 1e-12")
    expected = tacit.compile(network().do({"B": True}), None, evidence=[]).marginals({})
    for found, name in zip(page.evaluate("explorer.posteriors()")[:-1], network().variables[:-1], strict=True):
        np.testing.assert_allclose(found, expected[name][0], atol=1e-12)
    assert errors == []


def test_a_page_of_a_server_restores_two_cases(served: Any) -> None:
    page, errors = served
    errors.clear()
    page.evaluate("location.hash = '#A:A=x&B:A=z&do(B)=True'")
    page.wait_for_function("() => document.querySelectorAll('.compared tbody tr').length > 1")
    page.wait_for_function("() => Math.abs(explorer.posteriors()[0][2] - 1) < 1e-12")
    found = page.locator(".known tbody tr").all_inner_texts()
    assert [text.split() for text in found] == [["A", "x", "z", "×"], ["B", "–", "set", "to", "True", "×"]]
    page.wait_for_function("() => document.querySelectorAll('.steps tbody tr').length === 3")  # case A, and two steps
    assert errors == []

"""Two hundred random clicks in a real browser: every posterior on the page is that of the compiled query."""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.networks import network

import tacit
from tacit.query.answers.answer import ImpossibleEvidenceWarning
from tacit.views.page.programs import why_not_set

CLICKS = 200
# Presses a state as a pointer does, with Shift to set it, and reads the evidence and the posteriors that follow.
PRESS = """([clicks]) => clicks.map(([i, k, shiftKey]) => {
  const control = document.querySelector(`#map [data-variable="${i}"][data-state="${k}"]`);
  for (const type of ["pointerdown", "pointerup", "click"])
    control.dispatchEvent(new PointerEvent(type, { bubbles: true, button: 0, pointerId: 1, shiftKey }));
  return {evidence: explorer.evidence(), posteriors: explorer.posteriors()};
})"""
Click = tuple[int, int, bool]  # variable, state, whether it is set


def trained_chain() -> tacit.Network:
    x, y = np.random.default_rng(0).random((2, 200))
    tac = tacit.compile(tacit.examples.chain(tests=3, gamma=16.0), query="Q", evidence=["E1", "E2"])
    return tacit.fit(tac, {"E1": x, "E2": y}, x * y, steps=20, progress=False).tac.network


NETWORKS = {
    **{name: lambda name=name: network(name) for name in ("asia", "child", "alarm", "win95pts")},
    "abc": tacit.examples.abc,
    "chain": trained_chain,
}
LARGE = ("alarm", "win95pts")


def cases() -> list[Any]:
    """Networks, and whether half of the clicks set a state, for which every set of set states is compiled."""
    slow = {*itertools.product(LARGE, [False, True]), ("child", True), ("asia", True)}
    return [
        pytest.param(*case, marks=[pytest.mark.slow] * (case in slow))
        for case in itertools.product(NETWORKS, [False, True])
    ]


@pytest.mark.parametrize(("name", "do"), cases())
def test_random_clicks(browser: Any, tmp_path: Path, name: str, do: bool) -> None:
    net, rng = NETWORKS[name](), np.random.default_rng(1)
    net.page(tmp_path / "page.html")
    clicks = [clicked(net, rng, do) for _ in range(CLICKS)]
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    errors: list[str] = []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("window.explorer && explorer.ready")
    page.evaluate('() => document.querySelector("#map svg").classList.remove("far-off")')
    found = page.evaluate(PRESS, [clicks])
    page.close()
    assert errors == []
    assert_clicked(net, clicks, [step["evidence"] for step in found])
    for done, steps in by_interventions(net, found).items():
        check(net.do(dict(done)), steps, observable=[own for own in net if own not in dict(done)])


def clicked(net: tacit.Network, rng: np.random.Generator, do: bool) -> Click:
    """A state; half of them are set, where `do` says so and the page can."""
    i = int(rng.integers(len(net)))
    state, settable = int(rng.integers(len(net.states(net.variables[i])))), why_not_set(net, net.variables[i]) is None
    return i, state, do and settable and rng.random() < 0.5


def assert_clicked(net: tacit.Network, clicks: list[Click], seen: list[Any]) -> None:
    """A click observes or sets a state, and the same click again clears it."""
    known: list[tuple[int, bool] | None] = [None] * len(net)
    for (i, *click), evidence in zip(clicks, seen, strict=True):
        known[i] = None if known[i] == tuple(click) else (click[0], click[1])
        assert [finding(own) for own in evidence] == known


def finding(own: Any) -> tuple[int, bool] | None:
    """A state, and whether it is set."""
    if own is None:
        return None
    return (own["do"], True) if isinstance(own, dict) else (int(np.argmax(own)), False)


def by_interventions(net: tacit.Network, found: list[Any]) -> dict[tuple[tuple[str, Any], ...], list[Any]]:
    """The steps in which the same variables are set to the same states."""
    groups: dict[tuple[tuple[str, Any], ...], list[Any]] = {}
    for step in found:
        known = zip(net, map(finding, step["evidence"]), strict=True)
        done = tuple((own, net.states(own)[one[0]]) for own, one in known if one and one[1])
        groups.setdefault(done, []).append(step)
    return groups


def check(net: tacit.Network, found: list[Any], observable: list[str]) -> None:
    tac = tacit.compile(net, None, evidence=observable, effort="low")
    rows = {}
    for own in observable:
        seen = [finding(step["evidence"][net.variables.index(own)]) for step in found]
        rows[own] = [None if one is None else net.states(own)[one[0]] for one in seen]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ImpossibleEvidenceWarning)
        expected = tac.marginals({own: np.array(column, dtype=object) for own, column in rows.items()})
    for i, own in enumerate(net):
        theirs = np.array([step["posteriors"][i] for step in found], dtype=np.float64)
        np.testing.assert_allclose(theirs, np.broadcast_to(expected[own], theirs.shape), atol=1e-12)


def test_the_numbers_shown_are_the_posteriors(browser: Any, tmp_path: Path) -> None:
    net = network("asia")
    net.page(tmp_path / "page.html")
    page = browser.new_page(viewport={"width": 1440, "height": 900})
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_function("window.explorer && explorer.ready")
    page.evaluate(PRESS, [[(net.variables.index("dysp"), 0, False)]])
    shown = {}
    for i, own in enumerate(net):
        numbers = page.locator(f'#map [data-variable="{i}"][data-state] .number').all_text_contents()
        shown[own] = [float(text.strip("<>%")) / 100 for text in numbers]
    page.close()
    for own, posterior in (
        tacit.compile(net, None, evidence=["dysp"]).marginals({"dysp": net.states("dysp")[0]}).items()
    ):
        np.testing.assert_allclose(shown[own], posterior[0], atol=5.1e-4)

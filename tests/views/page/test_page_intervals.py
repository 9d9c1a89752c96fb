"""Intervals on the bars of a page are those of `TAC.credible`, under the networks that the page brings along."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench.networks import network

import tacit
from tacit.views.page import draws, page_html
from tests.sensors import sensors
from tests.views.page.test_page_ui import until


def estimated() -> tacit.Ensemble:
    """Draws of a network whose densities, tables and 0s are estimated from few rows."""
    net = sensors()
    return tacit.estimate(net.learnable(), net.sample(60, seed=1), prior=0.1).draws(70)


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Any:
    problems: list[str] = []
    pages = []

    def opening(net: tacit.Network, tables: tacit.Ensemble, fragment: str = "") -> Any:
        net.page(tmp_path / "page.html", tables=tables)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        pages.append(page)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{(tmp_path / 'page.html').as_uri()}#{fragment}")
        until(page, "window.explorer?.intervals()?.length > 0")
        return page

    yield opening
    for page in pages:
        page.close()
    assert problems == []


def check(page: Any, net: tacit.Network, ensemble: tacit.Ensemble, evidence: dict[str, Any], *do: str) -> None:
    observed = [name for name in evidence if name not in do]
    for i, name in enumerate(net):
        if net.variable(name).continuous or name in evidence:
            continue
        sure = tacit.compile(net, name, observed, do=do).credible(evidence, ensemble)
        shown = np.array(page.evaluate(f"explorer.intervals()[{i}]"))
        np.testing.assert_allclose(shown, np.stack([sure.low[0], sure.high[0]], axis=1), atol=1e-6)


def test_intervals_follow_the_findings(opened: Any) -> None:
    ensemble = estimated()
    net = ensemble.network
    page = opened(net, ensemble, "heat=82.5&trips=1")
    check(page, net, ensemble, {"heat": [82.5], "trips": [1]})
    page.evaluate("explorer.observe(2, null)")
    assert page.evaluate("explorer.intervals()") is None  # old ones are not shown with a new answer
    until(page, "explorer.intervals() !== null")
    check(page, net, ensemble, {"trips": [1]})
    page.click("#map [data-variable='1'][data-state='0']", modifiers=["Shift"])
    until(page, "explorer.intervals() !== null")
    check(page, net, ensemble, {"trips": [1], "Fault": ["true"]}, "Fault")
    assert page.locator("#map .whisker[d^=M]").count() == 3
    assert page.locator("#query-states .whisker").count() == 2
    assert "90% intervals, under 70 networks" in page.inner_text("#intervals")


def test_what_was_estimated_as_0_may_be_possible(opened: Any) -> None:
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"])
    found = tacit.estimate(net, {"A": ["true"] * 5, "B": ["true"] * 5})
    ensemble = found.draws(60)
    check(opened(found.network, ensemble, "B=true"), found.network, ensemble, {"B": ["true"]})


def test_tests_select_under_each_network(opened: Any) -> None:
    net = tacit.examples.abc()
    ensemble = tacit.Ensemble.of([net.with_cpts({"A": tacit.CPT([p, 1 - p])}) for p in (0.1, 0.3, 0.45, 0.6)])
    check(opened(net, ensemble, "C=lo"), net, ensemble, {"C": ["lo"]})


def test_the_size_of_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    net = network("asia")
    many = tacit.estimate(net.learnable(), net.sample(50, seed=0), prior=1.0).draws(1000)
    size = len(page_html(net, tables=many)) - len(page_html(net))
    assert size < 200 * 28 * 6  # 28 numbers of 4 bytes, as text, and few more
    monkeypatch.setattr(draws, "MAX_NUMBERS", 28 * 60)
    assert len(page_html(net, tables=many)) - len(page_html(net)) < 60 * 28 * 6 + 200
    monkeypatch.setattr(draws, "MAX_NUMBERS", 28 * 10)
    with pytest.raises(tacit.TooLargeError, match=r"each network of tables= has 28 numbers, .* leave out tables="):
        page_html(net, tables=many)


def test_other_structures_are_refused() -> None:
    net, other = tacit.examples.abc(), network("asia")
    with pytest.raises(tacit.TacitError, match="node 'A' is in the network or in the ensemble of tables=, but not in"):
        page_html(net, tables=tacit.Ensemble.of([other]))
    with pytest.raises(tacit.TacitError, match="tables is a Network, expected an Ensemble"):
        page_html(net, tables=net)  # type: ignore[arg-type]
    turned = tacit.Network()
    turned.add("A", states=3)
    turned.add("C", ["A"], states=["lo", "hi"])
    with pytest.raises(
        tacit.TacitError, match="node 'A' of the ensemble of tables= differs in states, parents or kind"
    ):
        page_html(tacit.Ensemble.of([two_states()]).network, tables=tacit.Ensemble.of([turned.with_cpts(
            {"A": [0.2, 0.3, 0.5], "C": [[0.5, 0.5]] * 3})]))  # fmt: skip


def two_states() -> tacit.Network:
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("C", ["A"], states=["lo", "hi"], cpt=[[0.5, 0.5]] * 2)
    return net

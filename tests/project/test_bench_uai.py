"""The benchmark of wide Markov networks: scores, limits, and what it measures on a small one."""

from pathlib import Path

import numpy as np
import pytest
from bench import uai
from bench.tables import MISSED
from bench.uai import Outcome
from bench.uai_worker import Found, answers, distance

import tacit
from tacit.io.formats.uai import write_evidence


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One network as the competition has them, with its answer."""
    graph = tacit.FactorGraph()
    graph.add("x0", 2)
    graph.add("x1", 3)
    graph.add_factor(["x0", "x1"], [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    path = tmp_path / "Small_1" / "Small_1.uai"
    path.parent.mkdir()
    tacit.write(graph, path)
    write_evidence(graph, {"x0": 1}, path.with_name("Small_1.uai.evid"))
    path.with_name("Small_1.uai.MAR").write_text("MAR\n2 2 0 1 3 0.266667 0.333333 0.4\n", encoding="utf-8")
    return tmp_path


def test_without_the_networks_it_says_where_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(uai.VARIABLE, raising=False)
    with pytest.raises(SystemExit, match=r"JunctionTrees(.|\n)*NAME\.uai\.MAR"):
        uai.main([])


def test_a_network_that_is_not_there(folder: Path) -> None:
    with pytest.raises(SystemExit, match="no network 'Large_1'"):
        uai.main(["--set", str(folder), "Large_1"])


def test_a_network_is_read_answered_and_compared(folder: Path) -> None:
    (outcome,) = uai.outcomes(folder, ["Small_1"], [60])[60]
    assert (outcome.family, outcome.exact) == ("Small", True)
    assert outcome.score == pytest.approx(100, abs=0.01)
    assert (outcome.outside, outcome.widths) == (0, [0, 0])
    uniform = [np.full(2, 1 / 2), np.full(3, 1 / 3)]
    assert outcome.uniform == distance(uniform, answers(folder / "Small_1" / "Small_1.uai.MAR"))


def test_scores_by_family() -> None:
    solved, near = Outcome("A_1", 0.5, 0.0, True, 3.0), Outcome("A_2", 0.5, 0.1)
    refused, worse = Outcome("B_1", 0.5, refused="too wide"), Outcome("B_2", 0.1, 0.2)
    section = uai.families({20: [solved, near, refused, worse]}, whole=True)
    assert section.rows == [
        ["A", "2", "90.00", "1/2", ""], ["B", "2", "0.00", "0/2", ""], ["all", "4", "45.00", "1/4", MISSED]
    ]  # fmt: skip
    wide = Outcome("A_3", 0.5, 0.1, widths=[0.25, 0.75, 0.0], outside=1)
    known = Outcome("A_4", 0.5, 0.0, True, widths=[0.0])
    intervals = uai.intervals({20: [wide], 60: [wide, known]}, whole=True)
    assert intervals.rows == [
        ["20", "3", "1", MISSED, "0.25", "", "66.7%"],
        ["60", "4", "1", MISSED, "0.12", MISSED, "50.0%"],
    ]
    assert uai.networks({20: [solved, refused]}).notes == ["B_1: too wide."]


def test_intervals_hold_an_answer_to_its_digits() -> None:
    low, high = [np.array([0.2, 0.5]), np.array([0.0, 1.0])], [np.array([0.5, 0.8]), np.array([0.0, 1.0])]
    found = Found(low, high, low, exact=False)
    assert found.widths() == pytest.approx([0.3, 0.0])
    assert found.outside([np.array([0.2 - 9e-7, 0.8 + 9e-7]), np.array([9e-7, 1.0])]) == 0
    assert found.outside([np.array([0.2, 0.8]), np.array([2e-6, 1 - 2e-6])]) == 1

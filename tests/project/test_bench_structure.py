"""The benchmark of structured networks: what it asks for, and what it measures on a small one."""

import json
from pathlib import Path

import pytest

pytest.importorskip("pgmpy")

from bench import structure
from bench.tables import MISSED, OK

import tacit


@pytest.fixture
def published(tmp_path: Path) -> list[dict[str, object]]:
    """Two instances of one network, as they are published; the second has a wrong answer."""
    net = tacit.examples.kidney_stones()
    tacit.write(net, tmp_path / "small.net")
    evidence = {"treatment": "A"}
    known = {"network": "small.net", "evidence": evidence, "treewidth": 2, "ace_seconds": 100.0, "asks": ""}
    right = float(net.posterior("treatment")[0, net.states("treatment").index("A")])
    instances = [{"name": "fs-01", "answer": right, **known}, {"name": "fs-02", "answer": 0.9, **known}]
    (tmp_path / "instances.json").write_text(json.dumps(instances), encoding="utf-8")
    return instances


def test_without_the_set_it_says_where_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(structure.VARIABLE, raising=False)
    with pytest.raises(SystemExit, match=r"wmc-without-parameters(.|\n)*instances\.json"):
        structure.main([])


def test_a_part_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        structure.main(["hard"])
    assert "given, soft, ordinary" in capsys.readouterr().err


def test_answers_are_compared_with_the_published_ones(
    tmp_path: Path, published: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(structure, "measured", lambda **request: {
        "answer": published[0]["answer"], "seconds": 0.1, "read": 0.1, "structured": False, "megabytes": 1.0
    })  # fmt: skip
    section = structure.given(tmp_path, published)
    assert section.rows[0][:4] == ["friends and smokers", "2 to 2", "2/2", "1/2"]
    assert section.rows[0][-1] == MISSED
    assert len(section.notes) == 1
    assert structure.given(tmp_path, published[:1]).rows[0][-1] == OK


def test_refusals_are_told(published: list[dict[str, object]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(structure, "measured", lambda **request: {"refused": "more than 60 s"})
    section = structure.given(Path(), published)
    assert section.rows[0][2] == "0/2"
    assert section.notes == ["fs-01: more than 60 s.", "fs-02: more than 60 s."]

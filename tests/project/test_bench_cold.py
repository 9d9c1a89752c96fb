"""The benchmark of first uses: what it asks can be asked, and a fresh process answers."""

import json

import pytest
from bench import cold
from bench.sides import ROOT


@pytest.mark.parametrize("name", ["posterior", "mpe and sample, hard tests", "page"])
def test_a_use_is_measured(name, capsys):
    cold.worker(name)
    found = cold.Spent(*json.loads(capsys.readouterr().out))
    assert found.cpu > 0
    assert found.wall > 0


def test_rows_with_gaps_are_rows_of_the_network():
    net = cold._alarm()
    rows = cold._with_gaps(net)
    assert list(rows) == list(net)
    missing = [value is None for column in rows.values() for value in column]
    assert 0.08 < sum(missing) / len(missing) < 0.12
    assert {value for value in rows["CVP"] if value is not None} == set(net.states("CVP"))


def test_a_process_has_empty_folders_and_keeps_what_it_compiles(tmp_path):
    assert cold.spent("mpe and sample, hard tests", ROOT, tmp_path).cpu > 0
    assert list((tmp_path / "tacit").iterdir())
    assert not list((tmp_path / "numba").iterdir())

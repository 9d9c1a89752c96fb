"""The command estimate."""

import numpy as np
import pytest

import tacit
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

from pyarrow import csv, parquet  # noqa: E402

from tests.cli.helpers import as_json, tacit_  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default:.*columns that are not used")  # it is a note, no error


@pytest.fixture(autouse=True)
def rows(tmp_path, monkeypatch):
    """A network without tables, and rows of it as CSV and, with holes, as Parquet."""
    monkeypatch.chdir(tmp_path)
    net = tacit.Network("lawn")
    net.add("rain", states=["yes", "no"])
    net.add("wet", ["rain"], states=["yes", "no"])
    tacit.save(net, "open.json")
    tacit.save(net.with_cpts({"rain": [0.5, 0.5], "wet": [[0.9, 0.1], [0.3, 0.7]]}), "known.json")
    rain = ["yes"] * 4 + ["no"] * 6
    wet = ["yes"] * 3 + ["no"] * 5 + ["yes"] * 2
    csv.write_csv(pa.table({"rain": rain, "wet": wet, "n": [1] * 9 + [3]}), "rows.csv")
    holes = [None if i % 3 == 0 else value for i, value in enumerate(wet)]
    parquet.write_table(pa.table({"rain": rain, "wet": holes}), "holes.parquet")
    return {"rain": np.array(rain), "wet": np.array(holes, dtype=object)}


def test_complete_rows_are_counted():
    said = tacit_("estimate", "open.json", "rows.csv", "-o", "found.json")
    assert "found.json: 3 numbers from 10 rows" in said
    assert "log-likelihood" in said
    found = tacit.load("found.json")
    close(found.table("rain"), [0.4, 0.6])
    close(found.table("wet"), [[0.75, 0.25], [1 / 3, 2 / 3]])
    result = as_json("estimate", "open.json", "rows.csv", "--weights", "n")
    assert (result["rows"], result["iterations"], result["converged"]) == (12, 1, True)
    close(tacit.load("estimated.json").table("rain"), [4 / 12, 8 / 12])


def test_holes_priors_and_starts(rows):
    how = ("--learn", "all", "--steps", 5, "--tolerance", 0, "-o", "found.json", "--checkpoint", "em.npz")
    result = as_json("estimate", "known.json", "holes.parquet", *how)
    known = tacit.load("known.json")
    expected = tacit.estimate(known.learnable(), rows, steps=5, tolerance=0)
    close(tacit.load("found.json").table("wet"), expected.network.table("wet"))
    close(result["log_likelihood"], expected.log_likelihood)
    close(result["bic"], expected.bic)
    assert "5, not converged: see --steps" in tacit_("estimate", "known.json", "holes.parquet", *how)
    tacit_("estimate", "known.json", "rows.csv", "--learn", "wet", "--prior", 1, "-o", "found.json")
    close(tacit.load("found.json").table("wet"), [[4 / 6, 2 / 6], [3 / 8, 5 / 8]])
    close(tacit.load("found.json").table("rain"), [0.5, 0.5])
    tacit_("estimate", "known.json", "rows.csv", "--learn", "all", "--strength", 20, "-o", "found.json")
    close(tacit.load("found.json").table("wet"), [[21 / 24, 3 / 24], [8 / 26, 18 / 26]])


def test_what_is_wrong_is_said():
    assert "with --learn, or --learn all" in tacit_("estimate", "known.json", "rows.csv", code=1)
    assert "give one of them" in tacit_("estimate", "open.json", "rows.csv", "--prior", 1, "--strength", 2, code=2)
    csv.write_csv(pa.table({"rain": ["yes", "perhaps"]}), "bad.csv")
    assert "bad.csv: evidence on 'rain', row 2: 'perhaps'" in tacit_("estimate", "open.json", "bad.csv", code=1)
    for output in ("found.xyz", "absent/found.json"):  # said before the work, not after it
        assert output in tacit_("estimate", "open.json", "absent.csv", "-o", output, code=1)
    assert "absent.csv: No such file" in tacit_("estimate", "open.json", "absent.csv", code=1)

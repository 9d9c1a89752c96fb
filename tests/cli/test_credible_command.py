"""How sure an answer is, from the command line: an ensemble is written by estimate, and read by query and batch."""

from pathlib import Path

import numpy as np
import pytest

import tacit
from tests.helpers import close

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from tests.cli.helpers import answers, as_json, tacit_

DRAWN = ("--credible", 0.8, "--draws", "draws.npz")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Pumps that were looked at, and what was estimated from them."""
    monkeypatch.chdir(tmp_path)
    net = tacit.Network("pumps")
    net.add("worn", states=["yes", "no"])
    net.add("noise", ["worn"], states=["loud", "quiet"])
    tacit.save(net, "open.json")
    noise = ["loud"] * 5 + ["quiet"] + ["loud"] * 4 + ["quiet"] * 20
    lines = [f"{worn},{own}" for worn, own in zip(["yes"] * 6 + ["no"] * 24, noise, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["worn,noise", *lines, ""]))
    return tacit_(
        "estimate", "open.json", "rows.csv", "--prior", 1, "-o", "found.json", "--draws", "draws.npz", "-n", 60
    )


@pytest.fixture
def sure():
    tac = tacit.compile(tacit.load("found.json"), "worn", ["noise"])
    return tac.credible({"noise": ["loud", "quiet"]}, tacit.Ensemble.load("draws.npz"), level=0.8)


def test_estimate_writes_draws(files):
    assert "draws.npz: 60 networks drawn" in files
    rows = {"worn": ["yes"] * 6 + ["no"] * 24, "noise": ["loud"] * 5 + ["quiet"] + ["loud"] * 4 + ["quiet"] * 20}
    expected = tacit.estimate(tacit.load("open.json"), rows, prior=1.0).draws(60, seed=0)
    assert list(tacit.Ensemble.load("draws.npz")) == list(expected)
    again = as_json("estimate", "open.json", "rows.csv", "-o", "found.json", "--draws", "draws.npz", "--seed", 3)
    assert again["draws"] == "draws.npz"
    assert len(tacit.Ensemble.load("draws.npz")) == 1000


def test_one_row_has_intervals(sure):
    found = as_json("query", "found.json", "-q", "worn", "-e", "noise=loud", *DRAWN)
    close(list(found["posterior"].values()), sure.mean[0])
    assert found["credible"]["level"] == 0.8
    for end in ("low", "high"):
        close(list(found["credible"][end].values()), getattr(sure, end)[0])
    said = tacit_("query", "found.json", "-q", "worn", "-e", "noise=loud", *DRAWN)
    assert f"{sure.mean[0, 0]:.6f}  [{sure.low[0, 0]:.6f}, {sure.high[0, 0]:.6f}]" in said
    assert "intervals with a probability of 80%" in said
    joint = tacit_("query", "found.json", "-q", "worn,noise", "--joint", *DRAWN)
    assert joint.count("[") == 4
    assert joint.index("quiet") < joint.index("loud")  # the most probable combinations come first


def test_tables_have_columns_for_the_ends(sure):
    tacit_(
        "batch", "found.json", "rows.csv", "-q", "worn", "--columns", "noise", *DRAWN, "--log-evidence", "-o", "out.csv"
    )
    table = answers("out.csv")
    assert list(table) == [
        "worn.yes",
        "worn.yes.low",
        "worn.yes.high",
        "worn.no",
        "worn.no.low",
        "worn.no.high",
        "log_evidence",
    ]
    close(np.transpose([table["worn.yes"], table["worn.yes.low"], table["worn.yes.high"]])[[0, 5]],
          np.stack([sure.mean[:, 0], sure.low[:, 0], sure.high[:, 0]], axis=1))  # fmt: skip


def test_pages_have_intervals():
    tacit_("page", "found.json", "-o", "plain.html")
    tacit_("page", "found.json", "-o", "sure.html", "--draws", "draws.npz")
    assert '"draws":{"count":60' in Path("sure.html").read_text("utf-8")
    assert '"draws"' not in Path("plain.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("query found.json -q worn --credible 0.9", 2, "'tacit estimate --draws FILE' writes"),
        ("query found.json -q worn --draws draws.npz", 2, "such as --credible 0.9"),
        ("query found.json -q worn --credible 90 --draws draws.npz", 2, "between 0 and 1"),
        ("query found.json -q worn --credible 0.9 --draws draws.npz --next", 2, "two questions"),
        ("query found.json -q worn --credible 0.9 --draws found.json", 1, "not a file of an ensemble"),
        ("query abc.json -q B --credible 0.9 --draws draws.npz", 1, "the other network has no variable 'A'"),
        ("batch found.json rows.csv --mpe --credible 0.9 --draws draws.npz -o out.csv", 2, "--mpe finds states"),
        ("batch found.json rows.csv -q worn --argmax --credible 0.9 --draws draws.npz -o out.csv", 2, "no --argmax"),
        ("estimate open.json rows.csv -o found.json --draws draws.csv", 1, "e.g. draws.npz"),
    ],
)
def test_what_is_wrong_is_said(command, code, said):
    tacit.save(tacit.examples.abc(), "abc.json")
    assert said in " ".join(tacit_(*command.split(), code=code).replace("│", " ").split())

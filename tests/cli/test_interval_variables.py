"""Numbers for interval variables at every border: files, commands, requests, learning, parts of tables on clusters."""

from math import inf
from pathlib import Path

import numpy as np
import pytest

import tacit

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from pyarrow import parquet  # noqa: E402

from tacit.clusters.scoring import Request, posteriors  # noqa: E402
from tests.cli.helpers import answers, as_json, tacit_  # noqa: E402

ROWS = {"Age": [3.5, 18.0, None, 90.0], "Ill": ["true", "false", "true", None]}


@pytest.fixture
def net(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    net = tacit.Network("ages")
    net.add("Age", bins=[0, 18, 65, inf], cpt=[0.2, 0.6, 0.2])
    net.add("Ill", ["Age"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.5, 0.5]])
    tacit.save(net, "net.json")
    return net


def test_files_keep_bins(net):
    assert tacit.load("net.json") == net
    with pytest.warns(tacit.LostBinsWarning, match="Age"):
        tacit.write(net, "net.bif")
    assert tacit.read("net.bif").states("Age") == net.states("Age")


def test_commands_take_numbers(net):
    for text in ("37", "18", "64.99", "[18, 65)"):
        found = as_json("query", "net.json", "-q", "Ill", "-e", f"Age={text}")
        assert found["posterior"]["true"] == pytest.approx(0.2)
    soft = as_json("query", "net.json", "-q", "Ill", "-e", "Age=1,0,1")["posterior"]["true"]
    assert soft == pytest.approx(0.3)
    assert as_json("query", "net.json", "-q", "Ill", "--do", "Age=70")["posterior"]["true"] == 0.5
    assert "-3 is outside the range [0, inf) of its intervals" in tacit_(
        "query", "net.json", "-q", "Ill", "-e", "Age=-3", code=1
    )


def test_a_query_shows_the_mean(net):
    finite = tacit.Network()
    finite.add("Age", bins=[0, 18, 65, 110], cpt=net.cpt("Age"))
    finite.add("Ill", ["Age"], cpt=net.cpt("Ill"))
    tacit.save(finite, "finite.json")
    wanted = tacit.compile(finite, "Age", ["Ill"]).mean({"Ill": "true"})[0]
    assert f"\nmean: {wanted:.6g}\n" in tacit_("query", "finite.json", "-q", "Age", "-e", "Ill=true")
    assert as_json("query", "finite.json", "-q", "Age", "-e", "Ill=true")["mean"] == pytest.approx(wanted)
    alone = tacit.compile(finite, "Age").mean()[0]
    assert as_json("query", "finite.json", "-q", "Age,Ill")["mean"] == {"Age": pytest.approx(alone)}
    for options in (("-q", "Ill"), ("-q", "Age", "-q", "Ill", "--joint")):
        assert "mean" not in tacit_("query", "finite.json", *options)


def test_a_number_outside_is_called_so_beside_text(net):
    Path("rows.csv").write_text("Age,n\n-150,1\nold,2\n")
    error = tacit_("batch", "net.json", "rows.csv", "-q", "Ill", "-o", "out.csv", code=1)
    assert "row 1: -150 is outside the range [0, inf) of its intervals; 2 rows are wrong: '-150'" in error
    Path("rows.csv").write_text("Age,n\nold,1\n-150,2\n")
    error = tacit_("batch", "net.json", "rows.csv", "-q", "Ill", "-o", "out.csv", code=1)
    assert "row 1: 'old' is neither a number nor a state" in error


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_batches_of_files_take_numbers_and_labels(net, suffix):
    wanted = net.posterior("Ill", {"Age": ROWS["Age"]})[:, 0]
    ages = pa.table({"Age": pa.array(ROWS["Age"])})
    if suffix == ".csv":
        Path("rows.csv").write_text('Age,n\n3.5,1\n" 18 ",2\nNA,3\n9e1,4\n')
        Path("mixed.csv").write_text('Age,n\n3.5,1\n"[18, 65)",2\n,3\n"[65, inf)",4\n')
    else:
        parquet.write_table(ages, "rows.parquet")
        parquet.write_table(pa.table({"Age": ["[0, 18)", "20", None, "90"]}), "mixed.parquet")
    for name in ("rows", "mixed"):
        tacit_("batch", "net.json", name + suffix, "-q", "Ill", "-o", "out.parquet")
        np.testing.assert_allclose(answers("out.parquet")["Ill.true"], wanted)
    Path("wrong.csv").write_text("Age,n\n3.5,1\n-2,2\n")
    message = tacit_("batch", "net.json", "wrong.csv", "-q", "Ill", "-o", "out.parquet", code=1)
    assert "wrong.csv: evidence on 'Age', row 2: -2 is outside the range [0, inf)" in message


def test_learning_takes_numbers(net):
    rows = {"Age": net.sample(400, numbers=True)["Age"], "Ill": net.sample(400)["Ill"]}
    labels = net.sample(400)
    assert tacit.estimate(net.learnable(), rows, progress=False).log_likelihood == pytest.approx(
        tacit.estimate(net.learnable(), labels, progress=False).log_likelihood
    )
    np.testing.assert_array_equal(net.log_likelihood(rows), net.log_likelihood(labels))
    tac = tacit.compile(net.learnable(), "Ill", evidence=["Age"])
    fits = [tacit.fit(tac, {"Age": r["Age"]}, r["Ill"], steps=3, progress=False).loss for r in (rows, labels)]
    assert fits[0] == fits[1]
    query = tacit.compile(net.learnable(), "Age", evidence=["Ill"])
    fits = [tacit.fit(query, {"Ill": r["Ill"]}, r["Age"], steps=3, progress=False).loss for r in (rows, labels)]
    assert fits[0] == fits[1]
    pd.DataFrame(rows).to_csv("rows.csv", index=False)
    tacit.save(net.learnable(), "learn.json")
    tacit_("estimate", "learn.json", "rows.csv", "-o", "learned.json")
    assert tacit.load("learned.json").bins("Age") == net.bins("Age")


def test_parts_of_a_table_on_a_cluster_take_numbers(net):
    tac = tacit.compile(net, "Ill", evidence=["Age"])
    wanted = tac.posterior({"Age": ROWS["Age"]})[:, 0]
    for frame in (pa.table({"Age": ROWS["Age"]}), pd.DataFrame({"Age": ROWS["Age"]})):
        scorer = Request(tac, posteriors(tac)).scorer(["Age"])
        np.testing.assert_allclose(np.asarray(scorer.score(frame)["Ill.true"]), wanted)
    with pytest.raises(tacit.EvidenceError, match="whose states are intervals"):
        Request(tac, posteriors(tac), likelihoods=["Age"]).scorer(["Age"])


def test_requests_take_numbers(net):
    pytest.importorskip("starlette")
    from tests.serve.clients import client_of

    client = client_of(net)
    rows = [{"Age": 3.5}, {"Age": 18}, {"Age": None}, {"Age": "[65, inf)"}, {"Age": [1, 0, 1]}]
    found = client.post("/api/posterior", json={"query": "Ill", "rows": rows})
    values = ROWS["Age"]
    wanted = [*net.posterior("Ill", {"Age": values})[:, 0], net.posterior("Ill", {"Age": [[1, 0, 1]]})[0, 0]]
    assert found.status_code == 200, found.text
    np.testing.assert_allclose(np.array(found.json()["posterior"])[:, 0], wanted)
    refused = client.post("/api/posterior", json={"query": "Ill", "rows": [{"Age": -1}]})
    assert "-1 is outside the range" in refused.text
    described = client.get("/api/model").json()["variables"][0]
    assert described["bins"] == [0, 18, 65, "inf"]

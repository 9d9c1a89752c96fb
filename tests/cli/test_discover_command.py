"""The command discover."""

from pathlib import Path

import numpy as np
import pytest

import tacit
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

from pyarrow import csv, parquet  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from tacit.cli.app import app  # noqa: E402
from tacit.evidence.tables import csv_parquet  # noqa: E402
from tests.cli.helpers import as_json, tacit_  # noqa: E402

HERE = ("-o", "discovered.json")  # which replaces the file of another run


@pytest.fixture(autouse=True)
def rows(in_a_folder):
    """Rows of rain -> wet <- sprinkler, a structure whose directions the data decide, as CSV and as Parquet."""
    net = tacit.Network("lawn")
    net.add("rain", states=["yes", "no"], cpt=[0.3, 0.7])
    net.add("sprinkler", states=["on", "off"], cpt=[0.4, 0.6])
    wet = [[[0.95, 0.05], [0.8, 0.2]], [[0.9, 0.1], [0.05, 0.95]]]
    net.add("wet", ["rain", "sprinkler"], states=["yes", "no"], cpt=wet)
    sampled = net.sample(2000, seed=1)
    table = pa.table({name: list(values) for name, values in sampled.items()})
    csv.write_csv(table, "rows.csv")
    parquet.write_table(table, "rows.parquet", row_group_size=300)
    return sampled


@pytest.mark.parametrize("table", ["rows.csv", "rows.parquet"])
def test_a_network_is_found_and_written(table, rows):
    said = tacit_("discover", table, "-o", "found.json")
    assert "found.json: 2 edges among 3 variables from 2,000 rows" in said
    assert "decide:\n  rain -> wet\n  sprinkler -> wet\n" in said
    assert "leave open" not in said
    expected = tacit.discover(rows, progress=False)
    assert f"bic score  {expected.score:,.2f}" in said
    found = tacit.load("found.json")
    assert set(found.edges) == set(expected.network.edges)
    for name in found:
        close(found.table(name), expected.network.table(name))


def test_directions_that_are_open_and_how_sure_they_are():
    csv.write_csv(csv.read_csv("rows.csv").select(["rain", "wet"]), "two.csv")
    said = tacit_("discover", "two.csv", *HERE, "--bootstrap", 4, "--seed", 2)
    assert "leave open:\n  rain -- wet  in 100% of the samples\n" in said
    assert "rain -> wet       in 100% of the samples  100% this way" in tacit_(
        "discover", "rows.csv", *HERE, "--bootstrap", 4
    )
    result = as_json("discover", "two.csv", *HERE, "--bootstrap", 4, "--seed", 2)
    assert (result["output"], result["rows"]) == ("discovered.json", 2000)
    assert (result["directed"], result["undirected"]) == ([], [["rain", "wet"]])
    assert sum(share for _, _, share in result["strength"]) == 1
    assert as_json("discover", "two.csv", *HERE)["strength"] is None


def test_constraints_scores_and_searches():
    result = as_json("discover", "rows.csv", *HERE, "--forbid", "sprinkler->wet", "--forbid", "wet -> sprinkler")
    assert not any({"sprinkler", "wet"} == set(edge) for edge in result["edges"])
    result = as_json("discover", "rows.csv", *HERE, "--require", "wet->rain", "--search", "exact", "--score", "bdeu")
    assert ["wet", "rain"] in result["edges"]
    assert ["wet", "rain"] in result["directed"]
    result = as_json("discover", "rows.csv", *HERE, "--max-parents", 1, "--search", "orders")
    children = [child for _, child in result["edges"]]
    assert len(children) == len(set(children))
    assert as_json("discover", "rows.csv", *HERE, "--max-cost", 8)["edges"] == []


def test_numbers_and_spaces_in_text():
    with open("codes.csv", "w") as file:
        file.write("a,b\n" + "0, 1\n1,10\n2,1\n" * 20)
    tacit_("discover", "codes.csv", "-o", "found.json")
    found = tacit.load("found.json")
    assert {name: found.states(name) for name in found} == {"a": ("0", "1", "2"), "b": ("1", "10")}


def test_what_is_wrong_is_said():
    assert "--forbid is 'rain', expected an edge such as 'A->B'" in tacit_(
        "discover", "rows.csv", *HERE, "--forbid", "rain", code=2
    )
    assert "which is not a column; did you mean 'rain'" in tacit_(
        "discover", "rows.csv", *HERE, "--require", "ran->wet", code=1
    )
    assert "search is 'best'" in tacit_("discover", "rows.csv", *HERE, "--search", "best", code=1)
    for output in ("found.xyz", "absent/found.json"):  # said before the work, not after it
        assert output in tacit_("discover", "absent.csv", "-o", output, code=1)
    assert "absent.csv: No such file" in tacit_("discover", "absent.csv", *HERE, code=1)


def write(name, text):
    with open(name, "w") as file:
        file.write(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n", "bad.csv: there are no rows"),
        ("a,b\nx,\ny,NA\n", "bad.csv: column 'b' has no values at all; leave it out"),
        ("a,b\n" + "".join(f"x,{word}{i}\n" for i in range(300) for word in "pq"), "more than 250 different values"),
    ],
)
def test_columns_that_make_no_variable(text, problem):
    write("bad.csv", text)
    said = tacit_("discover", "bad.csv", *HERE, code=1)
    assert problem in said
    assert "states=" not in said


def test_lists_are_refused():
    parquet.write_table(pa.table({"a": ["x", "y"], "n": [[1, 2], [3]]}), "bad.parquet")
    said = tacit_("discover", "bad.parquet", *HERE, code=1)
    assert "bad.parquet: column 'n', row 1: array([1, 2]) is not a single value" in said
    assert "1 variable from 2 rows" in tacit_("discover", "bad.parquet", *HERE, "--columns", "a")


def test_gaps_are_filled():
    write("gaps.csv", "a,b,c\n" + "x,u,None\ny,v,None\nx,,one\nNA,v,one\n" * 25)
    result = as_json("discover", "gaps.csv", "-o", "found.json")
    assert result["rows"] == 100
    found = tacit.load("found.json")
    assert {name: found.states(name) for name in found} == {"a": ("x", "y"), "b": ("u", "v"), "c": ("None", "one")}
    assert ["a", "b"] in result["undirected"]


@pytest.mark.filterwarnings("default::tacit.DefaultBinsWarning")  # a note, no error
@pytest.mark.filterwarnings("ignore::tacit.CopiedColumnWarning")
def test_numbers_columns_tiers_and_weights():
    rows = [(i % 7 + 0.5, "young" if i % 7 < 3 else "old", i, 1 + i % 2) for i in range(140)]
    write("people.csv", "age,group,id,times\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))
    how = ["discover", "people.csv", "--columns", "age, group", "--weights", "times", "-o", "found.json"]
    result = as_json(*how, "--tiers", "group<age", "--bins", "age=0,3,7.5")
    assert result["rows"] == sum(row[3] for row in rows)
    assert result["edges"] == [["group", "age"]]
    assert tacit.load("found.json").bins("age") == (0, 3, 7.5)
    tacit_(*how, "--bins", "equal")
    assert len(tacit.load("found.json").bins("age")) > 3
    tacit_(*how, "--bins", 2)
    assert len(tacit.load("found.json").states("age")) == 2
    said = CliRunner().invoke(app, [str(argument) for argument in how]).stderr
    assert "sorted into intervals of about as many rows each: age; choose with the option bins" in said
    assert "'ages', which is not a column; did you mean 'age'" in tacit_(*how, "--bins", "ages=3", code=1)
    assert "--bins is '=3'" in tacit_(*how, "--bins", "=3", code=2)
    assert "no column 'agee'; did you mean 'age'" in tacit_(
        "discover", "people.csv", *HERE, "--columns", "agee", code=1
    )
    assert "people.csv: column 'id' seems to number the rows" in tacit_(
        "discover", "people.csv", *HERE, "--columns", "id", code=1
    )


def test_a_checkpoint_and_a_page():
    tacit_("discover", "rows.csv", "-o", "found.json", "--bootstrap", 3, "--checkpoint", "run")
    assert "other settings" in tacit_("discover", "rows.csv", *HERE, "--score", "aic", "--checkpoint", "run", code=1)
    tacit_("page", "found.json", "-o", "page.html")
    assert "sprinkler" in Path("page.html").read_text(encoding="utf-8")


def test_the_page_of_a_discovery_knows_what_is_doubtful():
    said = tacit_("discover", "rows.csv", "-o", "found.json", "--exclude", "sprinkler", "--page", "found.html")
    assert "1 edge among 2 variables" in said
    assert "\nfound.html\n" in said
    expected = tacit.discover({n: csv.read_csv("rows.csv")[n] for n in ("rain", "wet")}, progress=False)
    expected.network.name = "rows"
    expected.page("expected.html")
    assert Path("found.html").read_text("utf-8") == Path("expected.html").read_text("utf-8")
    expected.network.page("plain.html")
    assert Path("found.html").read_text("utf-8") != Path("plain.html").read_text("utf-8")
    assert "a page is a .html file" in tacit_("discover", "absent.csv", *HERE, "--page", "found.pdf", code=2)
    assert as_json("discover", "rows.csv", *HERE, "--page", "found.html")["page"] == "found.html"


def test_columns_are_left_out():
    assert "1 edge among 2 variables" in tacit_("discover", "rows.csv", *HERE, "--columns", "rain,wet", "--exclude", "")
    assert "0 edges among 1 variable" in tacit_(
        "discover", "rows.csv", *HERE, "--columns", "rain,wet", "--exclude", "wet"
    )
    assert "no column 'rian'; did you mean 'rain'" in tacit_("discover", "rows.csv", *HERE, "--exclude", "rian", code=1)
    assert "do not --exclude it" in tacit_(
        "discover", "rows.csv", *HERE, "--exclude", "wet", "--weights", "wet", code=2
    )
    assert "leaves no column" in tacit_("discover", "rows.csv", *HERE, "--exclude", "rain,sprinkler,wet", code=2)


def test_a_network_has_the_name_of_its_table():
    tacit_("discover", "rows.parquet", "-o", "found.json")
    assert tacit.load("found.json").name == "rows"


def test_a_page_is_named_like_its_model():
    tacit_("discover", "rows.csv", *HERE)
    assert tacit_("page", "discovered.json") == "discovered.html\n"
    assert Path("discovered.html").exists()


def test_no_file_is_replaced_that_is_not_named():
    found = CliRunner().invoke(app, ["discover", "rows.csv"])
    assert found.stdout.startswith("discovered.json: 2 edges")
    assert "the network is in discovered.json, since there is no -o" in found.stderr
    assert "2 edges" in tacit_("discover", "rows.csv")  # what it wrote itself is replaced
    Path("discovered.json").write_text("mine")
    said = tacit_("discover", "rows.csv", code=1)
    assert "-o FILE writes another file, -o discovered.json replaces this one" in said
    assert Path("discovered.json").read_text() == "mine"
    tacit_("discover", "rows.csv", *HERE)
    assert len(tacit.load("discovered.json")) == 3


def test_edges_that_are_required_in_both_directions_are_refused():
    said = tacit_("discover", "rows.csv", *HERE, "--require", "rain->wet", "--require", "wet->rain", code=1)
    assert "the edge between 'wet' and 'rain' is required in both directions" in said


def test_all_columns_that_make_no_variable_are_told_at_once():
    days = pa.array(range(300), pa.date32())
    table = {"a": ["x", "y"] * 150, "id": list(range(300)), "name": [f"n{i}" for i in range(300)], "born": days}
    parquet.write_table(pa.table(table), "people.parquet")
    lines = tacit_("discover", "people.parquet", *HERE, code=1).splitlines()
    assert lines[0] == "tacit: people.parquet: 3 columns make no variable: 'born', 'id', 'name'"
    assert [line.split("'")[1] for line in lines[1:-1]] == ["born", "id", "name"]
    assert lines[-1].endswith(": --exclude born,id,name")
    said = tacit_("discover", "people.parquet", *HERE, "--exclude", "name", "--columns", "a,id,name", code=1)
    assert said.endswith(": --exclude name,id\n")
    assert "--exclude" not in tacit_("discover", "people.parquet", *HERE, "--columns", "id", code=1)
    assert "1 variable from 300 rows" in tacit_("discover", "people.parquet", *HERE, "--exclude", "born, id,name")


@pytest.mark.parametrize("place", [0, 300, 599])
def test_the_cell_that_makes_text_of_numbers_is_named(place, monkeypatch):
    monkeypatch.setattr(csv_parquet, "BATCH_ROWS", 50)
    monkeypatch.setattr(csv_parquet, "BLOCK_BYTES", 256)
    cells = [f"{i / 8}" for i in range(600)]
    cells[place] = "67,5"
    write("weights.csv", "a,weight\n" + "".join(f'{"xy"[i % 2]},"{cell}"\n' for i, cell in enumerate(cells)))
    said = tacit_("discover", "weights.csv", *HERE, code=1)
    assert f"column 'weight', row {place + 1}: '67,5' is not a number, as 599 of 600 values are; correct them" in said
    with pytest.raises(tacit.EvidenceError, match=f"row {place}: '67,5' is not a number"):
        tacit.discover({"a": ["x", "y"] * 300, "weight": cells}, progress=False)


@pytest.mark.filterwarnings("default")  # a note, no error
def test_the_index_of_a_frame_is_no_variable():
    write("frame.csv", ",a,b\n" + "".join(f"{i},{'xy'[i % 2]},{'uvw'[i % 3]}\n" for i in range(60)))
    found = CliRunner().invoke(app, ["discover", "frame.csv", *HERE])
    assert "0 edges among 2 variables from 60 rows" in found.stdout
    unused = "a column without a name (the index of a frame?)"
    assert found.stderr == f"tacit: frame.csv: columns that are not used: {unused}\n"


def test_whole_numbers_written_as_floats_are_whole():
    write("gaps.csv", "a,b\n" + "1.0,x\n2.0,y\n,x\n3,y\n" * 25)
    tacit_("discover", "gaps.csv", "-o", "found.json")
    net = tacit.load("found.json")
    assert net.states("a") == ("1", "2", "3")
    assert net.table("a").shape[-1] == 3
    tacit_("batch", "found.json", "gaps.csv", "-q", "b", "-o", "out.csv")


def test_densities_are_kept_in_json():
    rng = np.random.default_rng(0)
    fault = rng.random(500) < 0.4
    heat = np.where(fault, 9, 0) + rng.normal(0, 1, 500)
    csv.write_csv(pa.table({"fault": np.where(fault, "yes", "no"), "heat": heat}), "heat.csv")
    options = ("--bins", "5", "--tiers", "fault<heat", "--densities")
    assert "densities  heat\n" in tacit_("discover", "heat.csv", "-o", "heat.json", *options)
    close(tacit.load("heat.json").density("heat").mean, [0, 9], 0.3)
    assert as_json("discover", "heat.csv", "-o", "heat.json", *options)["densities"] == ["heat"]
    assert "heat.json" in tacit_("discover", "heat.csv", "-o", "heat.bif", *options, code=2)


def test_edges_take_the_place_of_a_search():
    rows = pd.DataFrame(tacit.examples.kidney_stones().sample(300, seed=0)).assign(id=range(300))
    rows.to_csv("stones.csv", index=False)
    edges = [("size", "treatment"), ("treatment", "recovery")]
    said = tacit_("discover", "stones.csv", "-o", "found.json", "--edges", "size->treatment, treatment->recovery")
    assert "2 edges among 3 variables from 300 rows" in said
    found = tacit.load("found.json")
    assert sorted(found.edges) == edges
    expected = tacit.estimate(tacit.Network.from_edges(edges, rows), rows.drop(columns="id"), progress=False).network
    np.testing.assert_allclose(found.table("recovery"), expected.table("recovery"), atol=0.02)
    tacit_(
        "discover", "stones.csv", "-o", "turned.json", "--edges", "recovery->treatment", "--edges", "treatment->size"
    )
    assert sorted(tacit.load("turned.json").edges) == [("recovery", "treatment"), ("treatment", "size")]
    said = tacit_("discover", "stones.csv", *HERE, "--edges", "size->recovery", "--tiers", "size<recovery", code=2)
    assert "leave out --tiers" in said
    assert "no column 'sise'; did you mean 'size'" in tacit_(
        "discover", "stones.csv", *HERE, "--edges", "sise->recovery", code=1
    )


def test_doubts_are_drawn_after_loading_and_pages_open_with_a_column():
    rows = pd.DataFrame(tacit.examples.kidney_stones().sample(200, seed=0))
    rows.to_csv("stones.csv", index=False)
    Path("words.toml").write_text('[variables.size]\nlabel = "Size of the stone"\n')
    options = ("--bootstrap", "3", "--draw", "now.svg", "--page", "now.html", "-q", "size", "--captions", "words.toml")
    assert "now.svg" in tacit_("discover", "stones.csv", "-o", "found.json", *options).split()
    assert "Size of the stone" in Path("now.svg").read_text()
    assert "Size of the stone" in Path("now.html").read_text()
    tacit_("draw", "found.json", "-o", "later.svg", "--captions", "words.toml")
    assert Path("later.svg").read_text() == Path("now.svg").read_text()
    tacit_("page", "found.json", "-o", "later.html", "-q", "size", "--captions", "words.toml")
    assert Path("later.html").read_text() == Path("now.html").read_text()
    assert "not a column; did you mean 'size'" in tacit_(
        "discover", "stones.csv", *HERE, "--page", "x.html", "-q", "sise", code=1
    )
    assert "name its file with --page" in tacit_("discover", "stones.csv", *HERE, "-q", "size", code=2)
    assert "a drawing is a .svg" in tacit_("discover", "stones.csv", *HERE, "--draw", "x.gif", code=2)

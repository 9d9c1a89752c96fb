"""The command line, run as a user would: arguments in, text, files and an exit code out."""

import runpy
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit import EvidenceError, semantics
from tacit.evidence.read import read
from tacit.model.elements.variable import variable
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

from pyarrow import csv, ipc, parquet  # noqa: E402

from tacit.cli import main as command  # noqa: E402
from tacit.cli.shared import batch_files as parts  # noqa: E402
from tacit.cli.shared import values  # noqa: E402
from tacit.evidence.tables import columns  # noqa: E402
from tacit.evidence.tables import csv_parquet as files  # noqa: E402
from tests.cli.helpers import answers, as_json, tacit_  # noqa: E402


@pytest.fixture
def rows():
    """Rows for the example A, B, C: hard, soft and missing evidence."""
    text = "id,A,C\n007,0.8,lo\n008,,hi\n009,1,\n010,0.25,NA\n"
    Path("rows.csv").write_text(text)
    return {"A": [0.8, None, 1.0, 0.25], "C": ["lo", "hi", None, None]}


# one row --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (["A=true", "C=hi"], {"A": "true", "C": "hi"}),
        (["A=TRUE", "C=0.25"], {"A": "true", "C": 0.25}),
        (["A=0", "C=3,1"], {"A": "false", "C": [[3, 1]]}),
        (["A=", "C=lo"], {"C": "lo"}),
        ([], {}),
    ],
)
def test_query_shows_the_posterior(abc, written, meant):
    options = [x for text in written for x in ("-e", text)]
    found = as_json("query", "abc.json", "-q", "B", *options)
    expected = semantics.posterior(abc, "B", meant)[0]
    close(list(found["posterior"].values()), expected)
    close(found["log_evidence"], np.log(semantics.joint(abc, "B", meant).sum()))
    lines = tacit_("query", "abc.json", "-q", "B", *options).splitlines()
    assert lines[1].split()[:2] == ["true", f"{expected[0]:.6f}"]


def test_a_query_in_words(abc):
    assert tacit_("query", "abc.json", "-q", "B", "-e", "A=0.8", "-e", "C=lo") == textwrap.dedent("""\
        B given A=0.8, C=lo
         true  0.469231  ██████████████
        false  0.530769  ████████████████
        log-probability of the evidence: -2.04022
        """)


def test_labels_that_spell_numbers_are_never_likelihoods():
    of = variable("N", ["0", "1"])
    assert [values.value_of(of, text) for text in ("1", "1.0", "0.5")] == ["1", "1", "0.5"]
    assert values.value_of(variable("N", 3), "2") == 2
    assert values.value_of(variable("N", [0.5, 1.5]), "1.5") == 1.5


def test_explain_prints_the_tests_of_a_row(abc):
    arguments = ("explain", "abc.json", "-q", "B", "-e", "A=0.8", "-e", "C=lo")
    assert "B at A='true'" in tacit_(*arguments)
    found = as_json(*arguments)
    assert [test["selected"] for test in found["tests"]] == ["plus", "minus"]
    close(found["posterior"]["true"], semantics.posterior(abc, "B", {"A": 0.8, "C": "lo"})[0, 0])


def test_explain_without_tests_tells_what_findings_add():
    tacit.save(tacit.examples.kidney_stones(), "stones.json")
    arguments = ("explain", "stones.json", "-q", "recovery", "-e", "size=small", "-e", "treatment=B")
    assert "size: small     0.825714  +0.316" in tacit_(*arguments)
    first, second = as_json(*arguments)["findings"]
    assert (first["name"], first["value"], list(first["weight"])) == ("size", "small", ["yes", "no"])
    close(second["without"]["yes"], 0.88235294, 1e-6)


def test_explain_takes_a_state_and_interventions():
    tacit.save(tacit.examples.kidney_stones(), "stones.json")
    arguments = ("explain", "stones.json", "-q", "recovery", "-e", "size=small", "--do", "treatment=B", "--state", "no")
    text = tacit_(*arguments)
    assert "\n\nP*(recovery | do(treatment): B, size: small)" in text
    assert "log-odds of recovery=no" in text
    explanation = as_json(*arguments)
    assert explanation["state"] == "no"
    assert [one["name"] for one in explanation["findings"]] == ["size"]


def test_compare_tells_two_rows_apart():
    net = tacit.examples.kidney_stones()
    tacit.save(net, "stones.json")
    rows = {"size": "small", "treatment": "B"}, {"size": "large"}
    arguments = ("compare", "stones.json", "-q", "recovery", "--first", "size=small", "--first", "treatment=B")
    arguments = (*arguments, "--second", "size=large")
    assert tacit_(*arguments).rstrip("\n") == str(net.compare("recovery", *rows))
    several = tacit_(*arguments[:4], "--first", "size=small,treatment=B", code=2)
    assert "--first size=small --first treatment=B" in " ".join(several.split())
    found = as_json(*arguments, "--state", "no")
    assert found["state"] == "no"
    assert [(one["name"], one["first"], one["second"]) for one in found["differences"]] == [
        ("size", "small", "large"),
        ("treatment", "B", "-"),
    ]
    close([row["yes"] for row in found["posterior"]], [net.posterior("recovery", row)[0, 0] for row in rows])
    shared = ("compare", "stones.json", "-q", "recovery", "-e", "treatment=B", "--first", "size=small")
    (one,) = as_json(*shared, "--second", "size=large")["differences"]
    assert one["name"] == "size"
    assert "two values for treatment" in tacit_(*shared, "--second", "treatment=A", code=2)


def test_bounds_hold_all_over_the_box(abc):
    found = as_json("bounds", "abc.json", "-q", "B", "A=0.2:0.9", "-e", "C=lo", "--state", "FALSE")
    inside = semantics.posterior(abc, "B", {"A": np.linspace(0.2, 0.9, 57), "C": "lo"})[:, 1]
    low, high = found["minimum"]["bound"], found["maximum"]["bound"]
    assert found["state"] == "false"
    assert low - 1e-9 <= inside.min() <= low + 0.03
    assert high - 0.03 <= inside.max() <= high + 1e-9
    assert tacit_("bounds", "abc.json", "-q", "B", "A=0.2:0.9").startswith("B=true given A=0.2:0.9\nminimum")


# many rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_batch_answers_every_row(abc, rows, suffix):
    out = f"out.{suffix}"
    found = as_json("batch", "abc.json", "rows.csv", "-q", "B", "-o", out, "--keep", "id", "--argmax", "--log-evidence")
    assert (found["rows"], found["impossible"]) == (4, 0)
    table, joint = answers(out), semantics.joint(abc, "B", rows)
    assert list(table) == ["id", "B.true", "B.false", "B.argmax", "log_evidence"]
    close(np.column_stack([table["B.true"], table["B.false"]]), joint / joint.sum(axis=1, keepdims=True))
    close(table["log_evidence"], np.log(joint.sum(axis=1)))
    assert [str(label).lower() for label in table["B.argmax"]] == ["false" if f > t else "true" for t, f in joint]
    assert not list(Path().glob(".*"))  # no folder of parts is left


def test_kept_text_is_copied_as_it_is(abc, rows):
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.parquet", "--keep", "id,A")
    assert answers("out.parquet")["id"] == ["007", "008", "009", "010"]
    assert answers("out.parquet")["A"] == [0.8, None, 1.0, 0.25]  # these are numbers


def test_the_same_table_as_csv_and_as_parquet_gives_the_same_answers(abc):
    table = pa.table({
        "A": pa.array([True, None, False, True]),
        "C": pa.array(["lo", "hi", None, "lo"]).dictionary_encode(),
        "n": [1, 2, 3, 4],
    })  # fmt: skip
    parquet.write_table(table, "rows.parquet")
    csv.write_csv(table, "rows.csv")
    expected = semantics.posterior(abc, "B", {"A": ["true", None, "false", "true"], "C": ["lo", "hi", None, "lo"]})
    for suffix in ("csv", "parquet"):
        tacit_("batch", "abc.json", f"rows.{suffix}", "-q", "B", "-o", "out.parquet", "--keep", "n")
        found = answers("out.parquet")
        close(np.column_stack([found["B.true"], found["B.false"]]), expected)
    assert found["n"] == [1, 2, 3, 4]  # types are those of the Parquet file


def test_columns_for_each_state_hold_likelihoods(abc):
    parquet.write_table(pa.table({"A": [0.25, 1.0], "C.lo": [3, 0], "C.hi": [1, 2]}), "rows.parquet")
    tacit_("batch", "abc.json", "rows.parquet", "-q", "B", "-o", "out.csv")
    expected = semantics.posterior(abc, "B", {"A": [0.25, 1.0], "C": [[3, 1], [0, 2]]})
    close(answers("out.csv")["B.true"], expected[:, 0])


def test_the_query_is_evidence_only_where_it_is_asked_for(abc):
    Path("rows.csv").write_text("A,B\ntrue,false\n")
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv")
    close(answers("out.csv")["B.true"], semantics.posterior(abc, "B", {"A": "true"})[:, 0])
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", "--columns", "A,B")
    assert answers("out.csv")["B.true"] == [0]


def test_impossible_rows_are_empty_and_counted():
    net = tacit.Network("not")
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[0, 1], [1, 0]])
    tacit.save(net, "not.json")
    Path("rows.csv").write_text("A,B\ntrue,true\ntrue,false\n")
    options = ("--columns", "A,B", "--argmax", "--log-evidence")
    assert as_json("batch", "not.json", "rows.csv", "-q", "B", "-o", "out.parquet", *options)["impossible"] == 1
    assert answers("out.parquet") == {
        "B.true": [None, 0.0],
        "B.false": [None, 1.0],
        "B.argmax": [None, "false"],
        "log_evidence": [-np.inf, np.log(0.5)],
    }
    assert "probability 0" in tacit_("query", "not.json", "-q", "A", "-e", "A=true", "-e", "B=true", code=1)


@pytest.mark.parametrize(("states", "kind"), [([0, 1], pa.int64()), (["no", 1], pa.string())])
def test_the_most_probable_state_is_written_as_its_label(states, kind):
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], states, cpt=[[0.25, 0.75], [0.75, 0.25]])
    tacit.save(net, "labels.json")
    Path("rows.csv").write_text("A\ntrue\nfalse\n")
    tacit_("batch", "labels.json", "rows.csv", "-q", "B", "-o", "out.parquet", "--argmax")
    assert parquet.read_table("out.parquet")["B.argmax"] == pa.chunked_array(
        [pa.array([1, 0] if kind == pa.int64() else ["1", "no"], kind)]
    )


def test_a_table_without_rows_gives_one_without_rows(abc):
    Path("rows.csv").write_text("A,C\n")
    assert as_json("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv")["rows"] == 0
    assert Path("out.csv").read_text() == "B.true,B.false\n"


def test_small_row_groups_are_gathered(abc, monkeypatch):
    rng = np.random.default_rng(0)
    given = {"A": rng.random(50), "C": pa.array(rng.choice(["lo", "hi"], 50))}
    parquet.write_table(pa.table(given), "rows.parquet", row_group_size=7)
    monkeypatch.setattr(files, "BATCH_ROWS", 20)
    sizes = [batch.rows.num_rows for batch in files.open_table(Path("rows.parquet")).batches(["A", "C"])]
    assert sum(sizes) == 50
    assert min(sizes[:-1]) >= 20
    tacit_("batch", "abc.json", "rows.parquet", "-q", "B", "-o", "out.parquet", "--keep", "C")
    expected = semantics.posterior(abc, "B", {"A": given["A"], "C": given["C"].to_pylist()})
    close(answers("out.parquet")["B.true"], expected[:, 0])
    assert answers("out.parquet")["C"] == given["C"].to_pylist()


def test_a_state_that_is_missing_later_is_no_error(abc, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    given = {"A": ["true", "false", "true", None, "true"], "C": ["lo", "hi", "hi", "lo", "lo"]}
    parquet.write_table(pa.table(given), "rows.parquet")
    tacit_("batch", "abc.json", "rows.parquet", "-q", "B", "-o", "out.csv")
    close(answers("out.csv")["B.true"], semantics.posterior(abc, "B", given)[:, 0])


# going on after an interruption ---------------------------------------------------------------------------

KILLED = """
import os, signal, sys
import tacit.cli.shared.batch_files as parts
import tacit.evidence.tables.csv_parquet as files
files.BATCH_ROWS = 10
def then_die(function, calls):
    def wrapped(*arguments):
        global count
        result, count = function(*arguments), count + 1
        if count == calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return result
    return wrapped
count = 0
if sys.argv[1] == "parts":
    parts.ResultFiles.add = then_die(parts.ResultFiles.add, 3)
else:
    parts.write_table = then_die(parts.write_table, 1)
sys.argv[1:] = sys.argv[2:]
from tacit.cli import main
main()
"""


@pytest.mark.slow
def test_after_kill_9_the_same_command_goes_on_to_an_identical_file(abc, monkeypatch):
    rng = np.random.default_rng(0)
    given = {"A": rng.choice(["true", "false", None], 95).tolist(), "C": rng.choice(["lo", "hi"], 95).tolist()}
    given["A"][:20] = given["A"][30:50] = ["true"] * 20  # at first, and after the first kill, a state in every row
    parquet.write_table(pa.table(given), "rows.parquet")
    arguments = ["batch", "abc.json", "rows.parquet", "-q", "B", "--keep", "C", "-o"]
    folder = Path(".killed.parquet.parts")
    for stage, before in (("parts", 3), ("join", 10)):
        process = subprocess.run([sys.executable, "-c", KILLED, stage, *arguments, "killed.parquet"], check=False)
        assert process.returncode == -9
        assert len(list(folder.glob("*.arrow"))) == before
        assert not Path("killed.parquet").exists()
    stored = [ipc.open_file(path).schema.metadata[b"hard"] for path in sorted(folder.glob("*.arrow"))]
    assert stored == [b'["A", "C"]'] * 2 + [b'["C"]'] * 8  # the second process went on with what the first compiled
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    tacit_(*arguments, "killed.parquet")
    tacit_(*arguments, "whole.parquet")
    assert Path("killed.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    close(answers("whole.parquet")["B.true"], semantics.posterior(abc, "B", given)[:, 0])
    assert not list(Path().glob(".*"))


def test_parts_of_another_computation_are_not_used():
    first = parts.ResultFiles(Path("out.csv"), {"query": "A"})
    first.add(pa.table({"x": [1, 2]}))
    assert parts.ResultFiles(Path("out.csv"), {"query": "A"}).rows == 2
    assert parts.ResultFiles(Path("out.csv"), {"query": "B"}).rows == 0
    assert parts.ResultFiles(Path("out.csv"), {"query": "A"}).rows == 0


# what cells mean ------------------------------------------------------------------------------------------

CELLS = [
    "true",
    "TRUE",
    " false",
    "0.7",
    "1",
    "0",
    "1.0",
    "",
    "NA",
    "maybe",
    "lo",
    "2",
    "None",
    "1e-3",
    "inf",
    "0.2,0.8",
]
VARIABLES = [
    variable("A", None),
    variable("B", ["lo", "mid", "hi"]),
    variable("C", ["no", "yes"]),
    variable("D", ["0", "1"]),
    variable("E", ["None", "Mild"]),
    variable("N", 3),
    variable("F", [0.5, 1.5]),
    variable("T", [True, False]),
]


@pytest.mark.parametrize("of", VARIABLES, ids=lambda v: v.name)
@pytest.mark.parametrize("text", CELLS)
def test_a_cell_means_what_the_same_text_means_on_the_command_line(of, text):
    def meaning(value):
        try:
            return read({of.name: value}, [of]).likelihoods().get(of.name, np.ones(of.card)).tolist()
        except EvidenceError:
            return "an error"

    if "," in text:  # one cell holds one number
        with pytest.raises(EvidenceError):
            read({of.name: columns.spelled(of, pa.array([text]))}, [of])
    elif text == "1.0" and of.name in "CE":  # in a table it may be a code as well
        assert meaning(columns.spelled(of, pa.array([text]))) == "an error"
    else:
        assert meaning(columns.spelled(of, pa.array([text]))) == meaning(values.value_of(of, text))


@pytest.mark.parametrize(
    ("of", "array", "expected"),
    [
        (VARIABLES[3], pa.array([1, None, 0]), ["1", None, "0"]),
        (VARIABLES[3], pa.array([1.0, None]), ["1", None]),
        (VARIABLES[3], pa.array([1, 0]).dictionary_encode(), ["1", "0"]),
        (VARIABLES[0], pa.array([True, None]), ["true", None]),
        (VARIABLES[0], pa.array([0.25, None]), [0.25, None]),
        (VARIABLES[0], pa.array(["0.25", "1"]), [0.25, 1.0]),
        (VARIABLES[0], pa.array(["1", "0"]), [1, 0]),
        (VARIABLES[2], pa.array(["Yes", None], pa.large_string()), ["yes", None]),
        (VARIABLES[4], pa.chunked_array([["None"], ["mild", "null"]]), ["None", "Mild", None]),
        (VARIABLES[5], pa.array([2, 0]), [2, 0]),
        (VARIABLES[5], pa.array(["2", "0"]), [2, 0]),
        (VARIABLES[7], pa.array(["true", "False"]), [True, False]),
    ],
)
def test_columns_are_read_as_labels_or_numbers(of, array, expected):
    assert columns.spelled(of, array).to_pylist() == expected


def test_whole_numbers_beside_missing_ones_are_no_likelihoods():
    with pytest.raises(EvidenceError, match="1 is not a state"):
        read({"C": columns.spelled(VARIABLES[2], pa.array([1, None]))}, VARIABLES)
    with pytest.raises(EvidenceError, match="1 is not a state"):
        read({"C": columns.spelled(VARIABLES[2], pa.array(["1", ""]))}, VARIABLES)


# models ---------------------------------------------------------------------------------------------------


def test_info_says_what_a_network_holds(abc):
    text = tacit_("info", "abc.json")
    assert text.startswith("abc\n  nodes          3\n  edges          2\n  testing nodes  1\n")
    assert "B         true, false  A        testing (tests), 2 thresholds" in text
    found = as_json("info", "abc.json", "-q", "B", "-e", "A")
    assert (found["nodes"], found["parameters"], found["learned"]) == (3, 14, {})
    assert found["variables"]["C"] == {"states": ["lo", "hi"], "parents": ["A"], "cpt": "4 parameters"}
    assert found["cost"]["width"] == tacit.compile(abc, "B", ["A"]).cost().width
    assert "multiply-adds per row" in tacit_("info", "abc.json", "-q", "B", "-e", "A")


def test_info_says_what_is_to_be_learned():
    net = tacit.Network()
    net.add("A")
    net.add("B", ["A"], cpt=[[0.5, 0.5], [np.nan, np.nan]])
    net.add("C", ["A"], cpt=tacit.CPT([[0.5, 0.5], [0.5, 0.5]], learn=True))
    net.add("D", ["A"], testing=True)
    tacit.save(net, "open.json")
    assert as_json("info", "open.json")["learned"] == {"A": 2, "B": 2, "C": 4, "D": 10}
    assert "to be learned  18 numbers of A, B, C, D" in tacit_("info", "open.json")


def test_convert_writes_the_same_network(abc):
    tacit_("convert", "abc.json", "abc.xmlbif")
    tacit_("convert", "abc.xmlbif", "again.json")
    assert tacit.load("again.json") == abc


def test_draw_writes_dot_and_svg(abc):
    assert tacit_("draw", "abc.json") == abc.to_dot()
    tacit_("draw", "abc.json", "-o", "abc.dot")
    assert Path("abc.dot").read_text() == abc.to_dot()
    tacit_("draw", "abc.json", "-o", "abc.svg")
    assert Path("abc.svg").read_text().startswith("<svg")


def test_draw_writes_png_and_pdf(abc):
    for name, start in (("abc.png", b"\x89PNG"), ("abc.PDF", b"%PDF")):
        assert tacit_("draw", "abc.json", "-o", name) == f"{name}\n"
        assert Path(name).read_bytes().startswith(start)


def test_draw_shows_posteriors(abc):
    tacit_("draw", "abc.json", "-e", "A=0.8", "-e", "C=lo", "-o", "abc.svg")
    assert Path("abc.svg").read_text(encoding="utf-8") == abc.plot({"A": 0.8, "C": "lo"}).svg
    tacit_("draw", "abc.json", "--posteriors", "-o", "abc.svg")
    assert Path("abc.svg").read_text(encoding="utf-8") == abc.plot({}).svg


def test_draw_takes_a_part_and_a_width(abc):
    tacit_("draw", "abc.json", "--nodes", "A,B", "--width", "8.5", "-o", "abc.svg")
    assert Path("abc.svg").read_text(encoding="utf-8") == abc.plot(nodes=["A", "B"], width=8.5).svg


def test_draw_takes_what_is_set_and_captions(abc):
    Path("abc.toml").write_text('[variables.B]\nlabel = "Long name"\n')
    tacit_("draw", "abc.json", "--do", "B=TRUE", "--captions", "abc.toml", "-o", "abc.svg")
    drawn = Path("abc.svg").read_text(encoding="utf-8")
    assert drawn == abc.plot(do={"B": "true"}, captions={"B": "Long name"}).svg
    assert "Long name = true" in drawn
    assert "--do and --captions are for" in tacit_("draw", "abc.json", "--do", "B=true", code=2)


def test_bench_counts_rows_per_second(abc, monkeypatch):
    from tacit.cli.commands import bench as measure

    monkeypatch.setattr(measure, "ROW_COUNTS", (1, 10))
    monkeypatch.setattr(measure, "REPEAT_SECONDS", 0.0)
    found = as_json("bench", "abc.json", "-q", "B")
    assert found["evidence"] == ["C"]
    assert found["soft"].keys() == found["hard"].keys() == {"1", "10"}
    monkeypatch.setattr(measure, "MAX_SECONDS", 0.0)
    assert "takes long" in tacit_("bench", "abc.json", "-q", "A", "-e", "C")


# learning -------------------------------------------------------------------------------------------------


def test_train_learns_from_a_table():
    net = tacit.Network("step")
    net.add("E")
    net.add("T", ["E"], testing=True, gamma=16.0)
    net.add("Q", ["T"])
    tacit.save(net, "step.json")
    x = np.linspace(0, 1, 40)
    csv.write_csv(pa.table({"E": x, "y": 0.5 + 0.4 * np.sin(3 * x), "id": range(40)}), "rows.csv")
    arguments = ("train", "step.json", "rows.csv", "-q", "Q", "--label", "y", "--restarts", 4, "-o")
    found = as_json(*arguments, "trained.json", "--validation", 0.2, "--checkpoint", "run.npz")
    assert found["rows"] == 40
    assert found["loss"] < 1e-3
    assert Path("run.npz").exists()
    posterior = tacit.load("trained.json").posterior("Q", {"E": x})[:, 0]
    assert np.mean((posterior - (0.5 + 0.4 * np.sin(3 * x))) ** 2) < 1e-3
    assert "loss with hard tests" not in tacit_(*arguments, "hard.json", "--harden", "--steps", 20)
    assert tacit.load("hard.json").cpt("T").gamma is None


def test_train_starts_from_known_numbers_where_it_is_told_to(abc):
    Path("rows.csv").write_text("A,B\n" + "true,true\n" * 3 + "true,false\n" + "false,true\n" * 2)
    assert "with --learn" in tacit_("train", "abc.json", "rows.csv", "-q", "B", code=1)
    tacit_("train", "abc.json", "rows.csv", "-q", "B", "--learn", "B", "--loss", "cross_entropy")
    learned = tacit.load("trained.json")
    assert learned.cpt("A") == abc.cpt("A")
    close(learned.posterior("B", {"A": ["true", "false"]})[:, 0], [0.75, 1.0], 1e-3)


# what goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("query none.json -q B", "none.json: No such file or directory"),
        ("query abc.txt -q B", "abc.txt: unknown file suffix '.txt'"),
        ("query abc.json -q Z", "'Z' is not a variable of the network"),
        ("query abc.json -q B -e A=maybe", "evidence on 'A': 'maybe' is not a state; expected one of 'true', 'false'"),
        ("query abc.json -q B -e C=1", "evidence on 'C': 1 is not a state; expected one of 'lo', 'hi', or likelihoods"),
        (
            "query abc.json -q B -e C=1,2,3",
            "'C': 3 likelihoods in '1,2,3'; expected 2, one for each state ('lo', 'hi')",
        ),
        (
            "query abc.json -q B -e C=1,x",
            "'C': '1,x' is not a state; expected one of 'lo', 'hi', or 2 likelihoods with",
        ),
        ("bounds abc.json -q B A=0.8:0.2", "the box of 'A' is (0.8, 0.2), expected 0 <= low <= high <= 1"),
        ("convert abc.json abc.bif", "node 'B' is testing, which BIF cannot hold"),
        ("batch abc.json none.csv -q B -o out.csv", "none.csv: No such file or directory"),
        (
            "batch abc.json rows.txt -q B -o out.csv",
            "rows.txt: a table is a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file",
        ),
        (
            "batch abc.json rows.csv -q B -o out.txt",
            "out.txt: a table is a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file",
        ),
        ("batch abc.json rows.csv -q B -o no/out.csv", "no/out.csv: there is no folder 'no' to write to"),
        ("sample abc.json -n 2 -o no/out.csv", "no/out.csv: there is no folder 'no' to write to"),
        (
            "batch abc.json semi.csv -q B -o out.csv",
            "semi.csv: evidence on 'A', row 1: '0,5' is not a state; expected one of 'true', 'false'; write numbers "
            "with a point (0.5)",
        ),
        (
            "batch abc.json tabs.csv -q B -o out.csv",
            "tabs.csv: the columns seem to be separated by tabs; expected commas, or a .tsv",
        ),
        ("batch abc.json rows.csv -q B -o rows.csv", "rows.csv: the output would replace the table it is made from"),
        ("batch abc.json rows.csv -q B -o out.csv --columns Z", "'Z' is not a variable of the network"),
        ("batch abc.json rows.csv -q B -o out.csv --columns B", "the table has no column 'B'; it has id, A, C"),
        ("batch abc.json rows.csv -q B -o out.csv --keep z", "rows.csv has no column 'z' to keep; it has id, A, C"),
        ("batch abc.json bad.csv -q B -o out.csv", "bad.csv: evidence on 'C', row 2: 'medium' is not a state"),
        ("batch abc.json number.csv -q B -o out.csv", "number.csv: column 'C.lo', row 1: 'x' is not a number"),
        ("batch abc.json short.csv -q B -o out.csv", "short.csv: CSV parse error: Expected 2 columns, got 1"),
        ("batch abc.json twice.csv -q B -o out.csv", "twice.csv: there are two columns 'A'"),
        ("batch abc.json half.csv -q B -o out.csv", "the table has a column 'C.lo' but no 'C.hi'"),
        ("batch abc.json both.csv -q B -o out.csv", "the table has columns 'C' and 'C.lo'; expected one or the other"),
        ("batch abc.json other.csv -q B -o out.csv", "no column of the table is a variable to observe; it has x, y"),
        ("batch abc.json junk.parquet -q B -o out.csv", "junk.parquet: "),
        ("batch abc.json clash.csv -q B -o out.csv --keep B.true", "the output would have two columns 'B.true'"),
        ("train abc.json rows.csv -q B", "rows.csv has no column 'B'; it has id, A, C; see --label"),
        ("train abc.json label.csv -q B --learn all", "label.csv: labels of 'B', row 2: there is no label"),
    ],
)
def test_wrong_data_is_one_line_and_exit_code_1(abc, rows, arguments, message):
    files = {
        "semi.csv": "A;C\n0,5;lo\n",
        "tabs.csv": "A\tC\n0.5\tlo\n",
        "bad.csv": "A,C\n0.5,lo\n0.5,medium\n",
        "number.csv": "C.lo,C.hi\nx,1\n",
        "short.csv": "A,C\n0.5\n",
        "twice.csv": "A,A\n1,1\n",
        "half.csv": "C.lo\n0.5\n",
        "both.csv": "C,C.lo\nlo,1\n",
        "other.csv": "x,y\n1,2\n",
        "junk.parquet": "junk",
        "clash.csv": "A,B.true\n1,1\n",
        "label.csv": "A,B\n1,true\n1,\n",
    }
    for name, text in files.items():
        Path(name).write_text(text)
    error = tacit_(*arguments.split(), code=1)
    assert message in error
    assert [line for line in error.splitlines() if message in line] == [error.splitlines()[-1]]
    assert not list(Path().glob(".*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nonsense", "No such command 'nonsense'"),
        ("query abc.json", "Missing option"),
        ("query abc.json -q B -e A", "'A' is not VARIABLE=VALUE"),
        ("query abc.json -q B -e A=1 -e A=0", "there are two values for A"),
        ("bounds abc.json -q B A=1", "'A=1' is not VARIABLE=LOW:HIGH"),
        ("info abc.json -e A", "give -q as well"),
        ("draw abc.json -o abc.jpg", "abc.jpg: a drawing is a .svg, .png, .pdf or .dot file"),
        ("draw abc.json --nodes A", "--nodes, --width, --do and --captions are for .svg"),
        ("draw abc.json -p -o abc.dot", "posteriors are drawn into a .svg, .png or .pdf file"),
        ("train abc.json rows.csv -q B --loss nonsense", "nonsense"),
    ],
)
def test_wrong_usage_is_exit_code_2(abc, arguments, message):
    assert message in tacit_(*arguments.split(), code=2)


def test_debug_shows_the_traceback():
    with pytest.raises(FileNotFoundError):
        tacit_("--debug", "info", "none.json")


def test_what_should_not_happen_is_one_line_too(abc, monkeypatch):
    monkeypatch.setattr("tacit.cli.shared.arguments.read", lambda path: {}["no such key"])
    assert tacit_("info", "abc.json", code=1) == (
        "tacit: KeyError: 'no such key'; this should not happen, and tacit --debug shows where it does\n"
    )


def test_an_interruption_is_exit_code_130(abc, rows, monkeypatch):
    from tacit.cli.commands import batch as module

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.Answers, "part", interrupted)
    error = tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=130)
    assert "0 rows are answered; the same command resumes from there\ntacit: interrupted\n" in error


def test_warnings_are_notes():
    Path("rough.bif").write_text("network n {} variable A { type discrete [ 3 ] { a, b, c }; }\n"
                                 "probability ( A ) { table 0.3333, 0.3333, 0.3333; }")  # fmt: skip
    process = subprocess.run(
        [sys.executable, "-m", "tacit.cli", "query", "rough.bif", "-q", "A"], capture_output=True, text=True, check=True
    )
    assert process.stderr.startswith("tacit: rough.bif")
    assert process.stderr.count("\n") == 1


def test_help_needs_no_package_that_is_slow_to_load():
    script = (
        "import sys; from typer.testing import CliRunner; from tacit.cli.app import app\n"
        "assert CliRunner().invoke(app, ['--help']).exit_code == 0\n"
        "print([name for name in ('numba', 'pandas', 'pyarrow', 'scipy', 'torch') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_command_has_help_with_an_example():
    commands = "info query mpe sample batch discover estimate train explain bounds sensitivity convert draw bench"
    for name in commands.split():
        assert f"\n    tacit {name} " in tacit_(name, "--help")
    assert "tacit batch" in tacit_("-h")
    assert tacit_("--version") == f"tacit {tacit.__version__}\n"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("0.7", "'0.7' is not a state; expected one of 'low', 'mid', 'high', or 3 likelihoods with commas between"),
        ("2", "'2' is not a state; expected one of 'low', 'mid', 'high', or 3 likelihoods with commas between"),
        ("0.2,0.8", "2 likelihoods in '0.2,0.8'; expected 3, one for each state ('low', 'mid', 'high')"),
    ],
)
@pytest.mark.parametrize("question", ["query -q X", "mpe", "sample -n 3 -o out.csv"])
def test_evidence_on_three_states_is_spoken_of_in_states(question, value, problem):
    net = tacit.Network()
    net.add("X", states=["low", "mid", "high"], cpt=[0.2, 0.3, 0.5])
    tacit.save(net, "three.json")
    name, *options = question.split()
    assert tacit_(name, "three.json", *options, "-e", f"X={value}", code=1) == f"tacit: evidence on 'X': {problem}\n"


def test_a_number_that_is_a_state_is_one():
    net = tacit.Network()
    net.add("X", states=[0, 1, 2.5], cpt=[0.2, 0.3, 0.5])
    net.add("Y", ["X"], cpt=[[0.2, 0.8], [0.3, 0.7], [0.4, 0.6]])
    tacit.save(net, "three.json")
    assert as_json("query", "three.json", "-q", "Y", "-e", "X=2.5")["posterior"]["true"] == pytest.approx(0.4)
    error = tacit_("query", "three.json", "-q", "Y", "-e", "X=0.7", code=1)
    assert "'0.7' is not a state; expected one of 0, 1, 2.5, or 3 likelihoods" in error


@pytest.mark.parametrize("module", ["tacit", "tacit.cli"])
def test_python_runs_the_command_as_a_module(module):
    """`python -m tacit` is `tacit`."""
    ran = subprocess.run([sys.executable, "-m", module, "--version"], capture_output=True, text=True, check=True)
    assert ran.stdout == f"tacit {tacit.__version__}\n"


@pytest.mark.parametrize("run", [command, lambda: runpy.run_module("tacit", run_name="__main__")])
def test_without_typer_the_command_says_what_to_install(monkeypatch, run):
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "tacit.cli.app")
    with pytest.raises(SystemExit, match=r"the command line needs typer: pip install '.*' 'typer>="):
        run()


@pytest.mark.parametrize(
    "command", ["batch abc.json rows.csv -q B -o out.csv", "estimate abc.json rows.csv --learn all"]
)
def test_without_pyarrow_a_table_says_what_to_install(abc, rows, monkeypatch, command):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pyarrow"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "tacit.query.answer_columns", raising=False)
    error = tacit_(*command.split(), code=1)
    assert "pyarrow, which is not installed: pip install 'pyarrow>=" in error


def test_a_column_that_differs_from_a_variable_in_case_only_is_not_passed_over(abc):
    Path("case.csv").write_text("a,C\ntrue,lo\n")
    assert "did you mean 'A'?" in tacit_("batch", "abc.json", "case.csv", "-q", "B", "-o", "out.csv", code=1)


def test_the_answer_is_no_evidence(abc):
    Path("leak.csv").write_text("A,B\ntrue,true\nfalse,false\n")
    found = tacit_("train", "abc.json", "leak.csv", "-q", "B", "--learn", "B", "--columns", "A,B", code=1)
    assert "'B' is the answer to be learned" in found

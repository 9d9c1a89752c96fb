"""The questions beyond one posterior, asked from the command line, for one row and for the rows of a table."""

import textwrap
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit import semantics
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

from pyarrow import parquet  # noqa: E402

from tacit.cli.commands import query as posteriors  # noqa: E402
from tacit.cli.shared import batch_files as parts  # noqa: E402
from tacit.evidence.tables import csv_parquet as files  # noqa: E402
from tacit.query import answer_columns as wanted  # noqa: E402
from tests.cli.helpers import answers, as_json, tacit_  # noqa: E402


@pytest.fixture
def stones():
    """Kidney stones, where to see a treatment and to give it are different."""
    net = tacit.examples.kidney_stones()
    tacit.save(net, "stones.json")
    return net


@pytest.fixture
def impossible():
    """A network in which A and B never agree."""
    net = tacit.Network("not")
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[0, 1], [1, 0]])
    tacit.save(net, "not.json")
    return net


@pytest.fixture
def rows():
    """Rows for the example A, B, C: hard, soft and missing evidence."""
    Path("rows.csv").write_text("id,A,C\n007,0.8,lo\n008,,hi\n009,1,\n010,0.25,NA\n")
    return {"A": [0.8, None, 1.0, 0.25], "C": ["lo", "hi", None, None]}


EVIDENCE = ("-e", "A=0.8", "-e", "C=lo")
GIVEN = {"A": 0.8, "C": "lo"}


# query ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("asked", [("-q", "A", "-q", "B"), ("-q", "A,B")])
def test_a_joint_posterior_is_a_grid(abc, asked):
    expected = semantics.posterior(abc, ("A", "B"), GIVEN)[0]
    found = as_json("query", "abc.json", *asked, *EVIDENCE, "--joint")
    assert found["query"] == ["A", "B"]
    close([[found["posterior"][a][b] for b in ("true", "false")] for a in ("true", "false")], expected)
    close(found["log_evidence"], np.log(semantics.joint(abc, "B", GIVEN).sum()))
    assert tacit_("query", "abc.json", *asked, *EVIDENCE, "--joint") == textwrap.dedent("""\
        A and B given A=0.8, C=lo
                   B=true   B=false
        A=true   0.415385  0.046154
        A=false  0.053846  0.484615
        log-probability of the evidence: -2.04022
        """)


def test_more_than_two_variables_are_a_list_of_combinations(abc, monkeypatch):
    monkeypatch.setattr(posteriors, "MAX_COMBINATIONS", 2)
    expected = semantics.posterior(abc, ("A", "B", "C"))[0]
    lines = tacit_("query", "abc.json", "-q", "A,B,C", "--joint").splitlines()
    assert lines[:2] == ["A, B and C", "A      B     C   probability"]
    first = np.unravel_index(expected.argmax(), expected.shape)
    labels = [abc.states(name)[i] for name, i in zip("ABC", first, strict=True)]
    assert lines[2].split()[:4] == [*labels, f"{expected.max():.6f}"]
    assert lines[4] == f"and 6 more combinations, together {np.sort(expected.ravel())[:-2].sum():.6f}"
    found = as_json("query", "abc.json", "-q", "A,B,C", "--joint")["posterior"]
    close(found["true"]["false"]["hi"], expected[0, 1, 1])


def test_a_grid_that_is_too_wide_is_a_list(abc, monkeypatch):
    monkeypatch.setattr(posteriors, "GRID_WIDTH", 20)
    assert "A      B      probability" in tacit_("query", "abc.json", "-q", "A,B", "--joint")


def test_several_variables_are_answered_one_by_one(abc):
    text = tacit_("query", "abc.json", "-q", "B", "-q", "A", *EVIDENCE)
    assert [line for line in text.splitlines() if "given" in line] == ["B given A=0.8, C=lo", "A given A=0.8, C=lo"]
    found = as_json("query", "abc.json", "-q", "B", "-q", "A", *EVIDENCE)
    for name in "AB":
        close(list(found["posterior"][name].values()), semantics.posterior(abc, name, GIVEN)[0])


def test_a_comma_may_be_part_of_a_name():
    net = tacit.Network()
    net.add("A,B", cpt=[0.25, 0.75])
    tacit.save(net, "comma.json")
    assert as_json("query", "comma.json", "-q", "A,B")["posterior"] == {"true": 0.25, "false": 0.75}


def test_to_set_is_not_to_see(stones):
    for treatment in stones.states("treatment"):
        expected = semantics.posterior(stones.do({"treatment": treatment}), "recovery", {"size": "large"})[0]
        options = ("-q", "recovery", "-e", "size=large", "--do", f"treatment={treatment}")
        found = as_json("query", "stones.json", *options)
        close(list(found["posterior"].values()), expected)
        assert tacit_("query", "stones.json", *options).startswith(
            f"recovery given size=large, do(treatment={treatment})\n"
        )


def test_what_to_observe_next(abc):
    expected = semantics.information(abc, "B", {"C": "lo"})
    found = as_json("query", "abc.json", "-q", "B", "-e", "C=lo", "--next")
    assert list(found["next"]) == ["A"]  # neither what is asked for nor what is observed
    close(found["next"]["A"], expected["A"][0])
    text = tacit_("query", "abc.json", "-q", "B", "-e", "C=lo", "--next")
    entropy = expected["B"][0]
    assert f"to observe next, by the expected drop of the entropy, now {entropy:.6f} nats:\n  A  " in text
    assert "no further observation would be informative about B" in tacit_(
        "query", "abc.json", "-q", "B", "-e", "B=true", "--next"
    )
    several = as_json("query", "abc.json", "-q", "A", "-q", "B", "--next")
    assert [list(drops) for drops in several["next"].values()] == [["B", "C"], ["A", "C"]]


# mpe ------------------------------------------------------------------------------------------------------


def test_the_most_probable_explanation_in_words(abc):
    assert tacit_("mpe", "abc.json", *EVIDENCE) == textwrap.dedent("""\
        most probable states given A=0.8, C=lo
        A  false  soft evidence
        B  false
        C  lo     observed
        probability of these states: 0.484615
        log-probability of these states and the evidence: -2.76462
        """)


def test_the_most_probable_explanation_for_scripts(abc):
    found = as_json("mpe", "abc.json", *EVIDENCE)
    assert (found["states"], found["observed"], found["set"]) == ({"A": "false", "B": "false", "C": "lo"}, ["C"], [])
    close(found["log_probability"], np.log(semantics.most_probable(abc, ("A", "B", "C"), GIVEN)[0]))
    close(found["log_evidence"], np.log(semantics.joint(abc, "B", GIVEN).sum()))


def test_only_some_variables_with_the_others_summed_out(abc):
    found = as_json("mpe", "abc.json", "-e", "C=lo", "--only", "A,B")
    assert list(found["states"]) == ["A", "B"]
    close(found["log_probability"], np.log(semantics.most_probable(abc, ("A", "B"), {"C": "lo"})[0]))
    assert tacit_("mpe", "abc.json", "--only", "A", "--only", "B").startswith("most probable states of A and B\n")


def test_what_is_set_is_marked(stones):
    text = tacit_("mpe", "stones.json", "--do", "treatment=B")
    assert [line.split() for line in text.splitlines() if line.startswith("treatment")] == [["treatment", "B", "set"]]
    expected = semantics.most_probable(stones.do({"treatment": "B"}), list(stones))[0]
    close(as_json("mpe", "stones.json", "--do", "treatment=B")["log_probability"], np.log(expected))


def test_numbers_as_labels_are_numbers_for_scripts():
    net = tacit.Network()
    net.add("N", states=3, cpt=[0.2, 0.7, 0.1])
    net.add("T", states=[True, False], cpt=[0.2, 0.8])
    tacit.save(net, "numbers.json")
    assert as_json("mpe", "numbers.json")["states"] == {"N": 1, "T": False}
    assert as_json("query", "numbers.json", "-q", "N", "--do", "N=2")["posterior"] == {"0": 0, "1": 0, "2": 1}


# sample ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_samples_in_a_file_are_those_of_the_library(abc, suffix):
    text = tacit_("sample", "abc.json", *EVIDENCE, "-n", 500, "--seed", 3, "-o", f"out.{suffix}")
    assert text == f"out.{suffix}: 500 samples of 3 variables\n"
    expected = tacit.compile(abc, None, ["A"], ["C"], engine="numpy").sample(GIVEN, n=500, seed=3)
    found = answers(f"out.{suffix}")
    for name in abc:
        assert [str(label).lower() for label in found[name]] == expected[name][0].tolist()
    assert not list(Path().glob(".*"))


def test_samples_on_the_terminal_are_the_same_as_csv(abc):
    printed = tacit_("sample", "abc.json", "-e", "C=hi", "-n", 7)
    tacit_("sample", "abc.json", "-e", "C=hi", "-n", 7, "-o", "out.csv")
    assert printed == Path("out.csv").read_text().replace('"', "")
    assert len(tacit_("sample", "abc.json").splitlines()) == 11
    assert printed != tacit_("sample", "abc.json", "-e", "C=hi", "-n", 7, "--seed", 1)


def test_samples_of_an_intervention(stones):
    tacit_("sample", "stones.json", "--do", "treatment=A", "-n", 20_000, "-o", "out.parquet")
    found = answers("out.parquet")
    assert set(found["treatment"]) == {"A"}
    expected = semantics.posterior(stones.do({"treatment": "A"}), "recovery")[0, 0]
    share = np.mean([label == stones.states("recovery")[0] for label in found["recovery"]])
    assert abs(share - expected) < 5 * np.sqrt(expected * (1 - expected) / 20_000)


def test_labels_of_samples_keep_their_types():
    net = tacit.Network()
    net.add("N", states=3, cpt=[0.2, 0.7, 0.1])
    net.add("M", states=["no", 1], cpt=[0.5, 0.5])
    tacit.save(net, "labels.json")
    tacit_("sample", "labels.json", "-n", 50, "-o", "out.parquet")
    assert parquet.read_schema("out.parquet").types == [pa.int64(), pa.string()]
    assert set(answers("out.parquet")["M"]) == {"no", "1"}


# sensitivity ----------------------------------------------------------------------------------------------


def test_the_entries_that_an_answer_hangs_on(abc):
    assert tacit_("sensitivity", "abc.json", "-q", "B", *EVIDENCE, "--top", 2) == textwrap.dedent("""\
        B=false given A=0.8, C=lo: 0.530769
        entry         value  derivative  decision changes at
        P(A='true')     0.3   -0.946746             0.333333
        P(A='false')    0.7   +0.946746             0.666667
        and 8 more; see --top
        """)


def test_sensitivities_for_scripts(abc):
    entries = tacit.compile(abc, "B", ["A"], ["C"]).sensitivity(GIVEN).entries(state="true")
    found = as_json("sensitivity", "abc.json", "-q", "B", *EVIDENCE, "--state", "TRUE", "--top", 1000)
    assert (found["query"], found["state"]) == ("B", "true")
    close(found["posterior"], semantics.posterior(abc, "B", GIVEN)[0, 0])
    matter = [entry for entry in entries if abs(entry.derivative) > 1e-13]
    assert [entry["name"] for entry in found["entries"]] == [entry.name for entry in matter]
    for entry, expected in zip(found["entries"], matter, strict=True):
        close(entry["derivative"], expected.derivative)
        close(entry["flips_at"] if entry["flips_at"] is not None else np.nan, expected.flips_at)


def test_what_is_set_hangs_on_nothing(stones):
    text = tacit_("sensitivity", "stones.json", "-q", "treatment", "--do", "treatment=A")
    assert text == "treatment=A given do(treatment=A): 1.000000\nno entry changes this\n"


# batch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_batch_answers_joint_posteriors(abc, rows, suffix):
    out = f"out.{suffix}"
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-q", "A", "--joint", "-o", out, "--columns", "A,C",
           "--keep", "id", "--argmax", "--log-evidence")  # fmt: skip
    table, joint = answers(out), semantics.joint(abc, ("B", "A"), rows)
    cells = ["B.true,A.true", "B.true,A.false", "B.false,A.true", "B.false,A.false"]
    assert list(table) == ["id", *cells, "B.argmax", "A.argmax", "log_evidence"]
    total = joint.sum(axis=(1, 2))
    close(np.column_stack([table[cell] for cell in cells]), joint.reshape(4, 4) / total[:, None])
    close(table["log_evidence"], np.log(total))
    best = [np.unravel_index(row.argmax(), row.shape) for row in joint]
    for name, place in (("B", 0), ("A", 1)):
        labels = [str(label).lower() for label in table[f"{name}.argmax"]]
        assert labels == [abc.states(name)[states[place]] for states in best]


def test_batch_answers_several_queries_one_by_one(abc):
    Path("rows.csv").write_text("C\nlo\nhi\n\n")
    tacit_("batch", "abc.json", "rows.csv", "-q", "A,B", "-o", "out.csv", "--argmax")
    found, given = answers("out.csv"), {"C": ["lo", "hi", None]}
    assert list(found) == ["A.true", "A.false", "A.argmax", "B.true", "B.false", "B.argmax"]
    for name in "AB":
        close(found[f"{name}.true"], semantics.posterior(abc, name, given)[:, 0])


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_batch_explains_every_row(abc, rows, suffix):
    out = f"out.{suffix}"
    found = as_json("batch", "abc.json", "rows.csv", "--mpe", "-o", out, "--keep", "id", "--log-evidence")
    assert (found["rows"], found["impossible"]) == (4, 0)
    table = answers(out)
    assert list(table) == ["id", "A", "B", "C", "log_probability", "log_evidence"]
    close(table["log_probability"], np.log(semantics.most_probable(abc, ("A", "B", "C"), rows)))
    close(table["log_evidence"], np.log(semantics.joint(abc, "B", rows).sum(axis=1)))
    states = [tuple(str(table[name][i]).lower() for name in "ABC") for i in range(4)]
    joint = semantics.joint(abc, ("A", "B", "C"), rows)
    codes = [tuple(abc.variable(n).codes[label] for n, label in zip("ABC", row, strict=True)) for row in states]
    close([joint[i][place] for i, place in enumerate(codes)], semantics.most_probable(abc, ("A", "B", "C"), rows))


def test_batch_explains_some_variables(abc, rows):
    tacit_("batch", "abc.json", "rows.csv", "--mpe", "--only", "B,C", "--columns", "A", "-o", "out.csv")
    found = answers("out.csv")
    assert list(found) == ["B", "C", "log_probability"]
    close(found["log_probability"], np.log(semantics.most_probable(abc, ("B", "C"), {"A": rows["A"]})))


def test_explanations_fill_the_gaps_of_a_table(abc):
    Path("rows.csv").write_text("A,B,C\ntrue,,lo\n,false,\n")
    tacit_("batch", "abc.json", "rows.csv", "--mpe", "-o", "out.parquet")
    found = answers("out.parquet")
    assert (found["A"][0], found["C"][0], found["B"][1]) == ("true", "lo", "false")
    assert None not in found["A"] + found["B"] + found["C"]


def test_impossible_rows_have_no_explanation(impossible):
    Path("rows.csv").write_text("A,B\ntrue,true\ntrue,\n")
    assert as_json("batch", "not.json", "rows.csv", "--mpe", "-o", "out.parquet")["impossible"] == 1
    assert answers("out.parquet") == {
        "A": [None, "true"],
        "B": [None, "false"],
        "log_probability": [-np.inf, np.log(0.5)],
    }
    assert as_json("batch", "not.json", "rows.csv", "-q", "A,B", "--joint", "--columns", "A,B", "-o", "out.parquet",
                   "--argmax")["impossible"] == 1  # fmt: skip
    assert answers("out.parquet")["B.argmax"] == [None, "false"]


def test_rows_of_a_batch_may_set_variables(stones):
    Path("rows.csv").write_text("treatment,size\nA,large\nB,\nA,\n")
    tacit_("batch", "stones.json", "rows.csv", "-q", "recovery", "--do", "treatment", "-o", "out.csv", "--log-evidence")
    found, label = answers("out.csv"), stones.states("recovery")[0]
    for i, (treatment, size) in enumerate([("A", "large"), ("B", None), ("A", None)]):
        joint = semantics.joint(stones.do({"treatment": treatment}), "recovery", {"size": size})[0]
        close(found[f"recovery.{label}"][i], joint[0] / joint.sum())
        close(found["log_evidence"][i], np.log(joint.sum()))


@pytest.mark.parametrize(
    "asked", [("--mpe",), ("--mpe", "--only", "B"), ("-q", "B", "-q", "A", "--joint", "--do", "C")]
)
def test_after_an_interruption_a_batch_goes_on_to_an_identical_file(abc, monkeypatch, asked):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    rng = np.random.default_rng(0)
    given = {"A": rng.choice(["true", "false", None], 95).tolist(), "C": rng.choice(["lo", "hi"], 95).tolist()}
    given["A"][:20] = ["true"] * 20  # at first a state in every row
    parquet.write_table(pa.table(given), "rows.parquet")
    arguments = ("batch", "abc.json", "rows.parquet", *asked, "-o")
    with pytest.MonkeyPatch.context() as patch:
        add = parts.ResultFiles.add

        def then_interrupt(self, table):
            add(self, table)
            if self.done == 3:
                raise KeyboardInterrupt

        patch.setattr(parts.ResultFiles, "add", then_interrupt)
        assert "30 rows are answered" in tacit_(*arguments, "out.parquet", code=130)
    assert len(list(Path(".out.parquet.parts").glob("*.arrow"))) == 3
    tacit_(*arguments, "out.parquet")
    tacit_(*arguments, "whole.parquet")
    assert Path("out.parquet").read_bytes() == Path("whole.parquet").read_bytes()
    assert not list(Path().glob(".*"))


def test_parts_of_another_question_are_not_used(abc, rows):
    """A command that asks otherwise about a table and a model begins anew."""
    for asked in (("--mpe",), ("--mpe", "--only", "B"), ("-q", "A", "-q", "B"), ("-q", "A", "-q", "B", "--joint")):
        with pytest.MonkeyPatch.context() as patch:
            add = parts.ResultFiles.add

            def then_interrupt(self, table, add=add):
                assert self.done == 0
                add(self, table)
                raise KeyboardInterrupt

            patch.setattr(parts.ResultFiles, "add", then_interrupt)
            assert "going on" not in tacit_("batch", "abc.json", "rows.csv", *asked, "-o", "out.csv", code=130)


# what goes wrong ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("query abc.json -q A,Z --joint", "'Z' is not a variable of the network"),
        ("query abc.json -q B --do A=0.7", "'0.7' is not a state of 'A'; expected one of 'true', 'false'"),
        ("query abc.json -q B --do Z=1", "'Z' is not a variable of the network"),
        ("mpe abc.json --only Z", "'Z' is not a variable of the network"),
        ("mpe not.json -e A=true -e B=true", "the evidence has probability 0, so there is no explanation"),
        ("sample not.json -e A=true -e B=true", "the evidence has probability 0, so there is no sample"),
        ("sample abc.json -o out.txt", "out.txt: a table is a .csv, .tsv, .csv.gz, .tsv.gz or .parquet file"),
        ("sensitivity abc.json -q B --state maybe", "'maybe' is not a state of 'B'; expected one of 'true', 'false'"),
        ("sensitivity not.json -q B -e A=true -e B=true", "the evidence has probability 0"),
        ("bounds abc.json -q B A=0.2:0.9 --state maybe", "'maybe' is not a state of 'B'"),
        ("batch abc.json rows.csv --mpe -o out.csv --keep A", "the output would have two columns 'A'"),
        ("batch abc.json rows.csv -q B --do Z -o out.csv", "'Z' is not a variable of the network"),
        ("batch abc.json rows.csv -q A --do B -o out.csv", "rows.csv has no column 'B' to set; it has id, A, C"),
        ("batch abc.json rows.csv -q B --do C -o out.csv", "rows.csv: intervention on 'C', row 3: a state is needed"),
        ("batch abc.json rows.csv -q B --do A -o out.csv", "rows.csv: intervention on 'A', row 1: a state is needed"),
        ("batch abc.json rows.csv -q A,B,C --joint -o out.csv --columns A", "A, B, C have 8 combinations of states"),
    ],
)
def test_wrong_data_is_one_line_and_exit_code_1(abc, impossible, rows, monkeypatch, arguments, message):
    monkeypatch.setattr(wanted, "MAX_COLUMNS", 7)
    error = tacit_(*arguments.split(), code=1)
    assert message in error.splitlines()[-1]
    assert not list(Path().glob(".*"))
    assert not list(Path().glob("out.*"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("query abc.json -q A -q A", "A is named twice"),
        ("query abc.json -q B --do A", "'A' is not VARIABLE=STATE"),
        ("query abc.json -q B --do A=true --do A=false", "there are two states for A"),
        ("query abc.json -q B --do A=true -e A=true", "A is observed (-e) and set (--do)"),
        ("sample abc.json -n 0", "'-n'"),
        ("sample abc.json --seed -1", "'--seed'"),
        ("sensitivity abc.json -q B --top 0", "'--top'"),
        ("sensitivity abc.json", "Missing option"),
        ("batch abc.json rows.csv -o out.csv", "there is no query"),
        ("batch abc.json rows.csv --only A -o out.csv", "give --mpe as well"),
        ("batch abc.json rows.csv --mpe -q A -o out.csv", "--mpe finds states"),
        ("batch abc.json rows.csv --mpe --argmax -o out.csv", "--mpe finds states"),
    ],
)
def test_wrong_usage_is_exit_code_2(abc, rows, arguments, message):
    assert message in tacit_(*arguments.split(), code=2)

"""The command batch at its edges: two runs for one output, empty lines, very wide tables, very long rows."""

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit import FormatError, TacitError, semantics
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

from pyarrow import csv, parquet  # noqa: E402
from typer.testing import CliRunner  # noqa: E402

from tacit.cli.app import app  # noqa: E402
from tacit.cli.commands import batch  # noqa: E402
from tacit.cli.shared import arguments  # noqa: E402
from tacit.cli.shared import batch_files as parts  # noqa: E402
from tacit.evidence.tables import columns  # noqa: E402
from tacit.evidence.tables import csv_parquet as files  # noqa: E402
from tacit.query.answer_columns import PosteriorColumns  # noqa: E402
from tests.cli.helpers import answers, as_json, tacit_  # noqa: E402

# two runs for one output ----------------------------------------------------------------------------------

PAUSED = """
import os, signal
import tacit.cli.shared.batch_files as parts, tacit.evidence.tables.csv_parquet as files
files.BATCH_ROWS, files.BLOCK_BYTES = 10, 64
add = parts.ResultFiles.add
def then_pause(self, table):
    add(self, table)
    if self.done == 3:
        os.kill(os.getpid(), signal.SIGSTOP)
parts.ResultFiles.add = then_pause
from tacit.cli import main
main()
"""


def paused(*arguments):
    """A process that answers until there are three parts, and then waits for SIGCONT."""
    process = subprocess.Popen([sys.executable, "-c", PAUSED, *arguments], stderr=subprocess.PIPE, text=True)
    _, status = os.waitpid(process.pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    return process


def small_batches(monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)


@pytest.fixture
def other(abc):
    """Another model for the same table."""
    net = abc.with_cpts({"A": [0.9, 0.1], "C": [[0.1, 0.9], [0.8, 0.2]]})
    tacit.save(net, "other.json")
    return net


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    given = {"A": rng.choice(["true", "false"], 95).tolist(), "C": rng.choice(["lo", "hi"], 95).tolist()}
    csv.write_csv(pa.table(given), "rows.csv")
    parquet.write_table(pa.table(given), "rows.parquet")
    return given


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="stops a process in the middle, as only POSIX can")
@pytest.mark.parametrize(("source", "suffix"), [("rows.csv", "parquet"), ("rows.parquet", "csv")])
def test_while_one_run_writes_an_output_another_is_refused(abc, other, rows, monkeypatch, source, suffix):
    small_batches(monkeypatch)
    options = (source, "-q", "B", "--log-evidence", "-o")
    first = paused("batch", "abc.json", *options, f"out.{suffix}")
    try:
        for model in ("other.json", "abc.json"):
            error = tacit_("batch", model, *options, f"out.{suffix}", code=1)
            assert error == (
                f"tacit: out.{suffix}: another run is writing this output; wait until it ends, or choose another one\n"
            )
    finally:
        first.send_signal(signal.SIGCONT)
        message = first.communicate()[1]
    assert (first.returncode, message) == (0, "")
    tacit_("batch", "abc.json", *options, f"alone.{suffix}")
    assert Path(f"out.{suffix}").read_bytes() == Path(f"alone.{suffix}").read_bytes()
    close(answers(f"out.{suffix}")["B.true"], semantics.posterior(abc, "B", rows)[:, 0])
    assert not list(Path().glob(".*"))


TAKES_TURNS = """
import os, sys
from pathlib import Path
from tacit.cli.shared.batch_files import only_writer
from tacit.base.errors import TacitError
turns = 0
while turns < 300:
    try:
        with only_writer(Path("out.csv")):
            os.close(os.open("busy", os.O_CREAT | os.O_EXCL))  # an error if another process is here, too
            os.unlink("busy")
            turns += 1
    except TacitError:
        pass
"""


def test_a_lock_file_that_is_removed_lets_no_two_in():
    processes = [subprocess.Popen([sys.executable, "-c", TAKES_TURNS]) for _ in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert not list(Path().iterdir())


def test_where_there_are_no_locks_the_run_says_so_and_goes_on(abc, rows, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def unsupported(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    assert as_json("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv")["rows"] == 95
    assert not list(Path().glob(".*"))


def test_parts_of_two_runs_are_never_mixed():
    first = parts.ResultFiles(Path("out.csv"), {"query": "A"})
    first.add(pa.table({"x": [1]}))
    second = parts.ResultFiles(Path("out.csv"), {"query": "B"})  # as if there were no lock
    second.add(pa.table({"x": [2]}))
    first.add(pa.table({"x": [3]}))
    with pytest.raises(TacitError, match=r"000000\.arrow: another run has written this part"):
        list(first)
    again = parts.ResultFiles(Path("out.csv"), {"query": "B"})
    assert [part["x"].to_pylist() for part in again] == [[2]]


def test_a_damaged_part_is_computed_again():
    first = parts.ResultFiles(Path("out.csv"), {"query": "A"})
    for x in range(3):
        first.add(pa.table({"x": [x]}))
    path = first.folder / "000001.arrow"
    path.write_bytes(path.read_bytes()[:20])
    assert parts.ResultFiles(Path("out.csv"), {"query": "A"}).done == 1


# empty lines ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("A\ntrue\n\nfalse\n", ["true", None, "false"]),
        ("A\r\ntrue\r\n\r\nfalse\r\n", ["true", None, "false"]),
        ("A\n\ntrue\n", [None, "true"]),
        ("A\ntrue\n\n", ["true", None]),
        ("A\ntrue\n\n\n", ["true", None, None]),
        ("A\n\n", [None]),
        ("A\ntrue", ["true"]),
        ('A\n""\ntrue\n', [None, "true"]),
        ("\n\nA\ntrue\n\n", ["true", None]),
        ("\ufeff\r\nA\ntrue\n\n", ["true", None]),
        ("A,C\n\ntrue,\n\n\n,\n\n", ["true", None]),
        ("\nA,C\ntrue,", ["true"]),
    ],
)
def test_an_empty_line_is_a_row_in_a_table_of_one_column_only(abc, text, meant):
    Path("rows.csv").write_bytes(text.encode())
    found = as_json("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv")
    assert found["rows"] == len(meant)
    close(answers("out.csv")["B.true"], semantics.posterior(abc, "B", {"A": meant})[:, 0])


CELLS = st.lists(st.sampled_from([None, "true", "", "a,b", "x" * 50, "\n", 'say "no"']), max_size=60)


@pytest.mark.parametrize("writer", ["pyarrow", "polars", "pandas", "csv"])
@settings(max_examples=40)
@given(cells=CELLS, more=st.booleans())
def test_all_rows_that_other_programs_write_are_read(tmp_path_factory, writer, cells, more):
    table = {"A": cells} | ({"B": cells[::-1]} if more else {})
    path = tmp_path_factory.mktemp("written") / "rows.csv"
    write_with(writer, table, path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "BLOCK_BYTES", 64)
        read = files.open_table(path)
        assert read.names == list(table)
        blocks = [batch.rows.to_pydict() for batch in read.batches(read.names)]
    for name, column in table.items():
        assert [cell for block in blocks for cell in block[name]] == [cell or "" for cell in column]


def write_with(writer, table, path):
    if writer == "pyarrow":
        csv.write_csv(pa.table({name: pa.array(cells, pa.string()) for name, cells in table.items()}), path)
    elif writer == "polars":
        polars = pytest.importorskip("polars")
        polars.DataFrame(table, schema=dict.fromkeys(table, polars.String)).write_csv(path)
    elif writer == "pandas":
        pytest.importorskip("pandas").DataFrame(table).to_csv(path, index=False)
    else:
        import csv as plain

        with path.open("w", newline="", encoding="utf-8") as file:
            plain.writer(file).writerows([list(table), *zip(*table.values(), strict=True)])


# columns that are kept ------------------------------------------------------------------------------------

CELLS = {
    "id": ["7", "", "-12", "9007199254740993"],
    "weight": ["0.50", "2", "NA", "1e-07"],
    "seen": ["True", "false", "", "TRUE"],
    "code": ["007", "12", "0", ""],
    "text": ["x", "7", "NA", " 1"],
    "long": ["12345678901234567890", "1.5", "2", "3"],
    "hash": ["12e7", "34", "5", "6"],
    "huge": ["1e+400", "1.0", "1.0", "1.0"],
    "mixed": ["1", "true", "0", ""],
    "none": ["", "", "", ""],
}


@pytest.mark.parametrize("rows", [100, 1])  # in one part, and in one for each row
def test_kept_columns_of_a_csv_file_have_the_type_of_their_cells(abc, monkeypatch, rows):
    monkeypatch.setattr(files, "BATCH_ROWS", rows)
    monkeypatch.setattr(files, "BLOCK_BYTES", 128)
    write_csv("rows.csv", {"A": ["true", "false", "", "true"], **CELLS})
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.parquet", *(f"--keep={name}" for name in CELLS))
    found = parquet.read_table("out.parquet")
    assert found.column("id").to_pylist() == [7, None, -12, 9007199254740993]
    assert found.column("weight").to_pylist() == [0.5, 2.0, None, 1e-07]
    assert found.column("seen").to_pylist() == [True, False, None, True]
    kept = {name: found.schema.field(name).type for name in CELLS}
    assert (kept.pop("id"), kept.pop("weight"), kept.pop("seen")) == (pa.int64(), pa.float64(), pa.bool_())
    assert set(kept.values()) == {pa.string()}
    assert {name: found.column(name).to_pylist() for name in kept} == {name: CELLS[name] for name in kept}
    close(found.column("B.true"), semantics.posterior(abc, "B", {"A": ["true", "false", None, "true"]})[:, 0])


def test_kept_columns_are_copied_as_they_are_from_csv_to_csv(abc):
    write_csv("rows.csv", {"A": ["true", "false", "", "true"], **CELLS})
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", *(f"--keep={name}" for name in CELLS))
    as_text = csv.ConvertOptions(column_types=dict.fromkeys(CELLS, pa.string()), include_columns=list(CELLS))
    assert csv.read_csv("out.csv", convert_options=as_text).to_pydict() == CELLS


def test_kept_cells_have_quotation_marks_only_where_they_need_them(abc):
    cells = ["7", '"a,b"', '"say ""no"""', "", "x y"]
    Path("rows.csv").write_text("A,id\n" + "".join(f"true,{cell}\n" for cell in cells))
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", "--keep", "id", "--argmax")
    head, *lines = Path("out.csv").read_text().splitlines()
    assert head == "id,B.true,B.false,B.argmax"
    assert [line.rsplit(",", 3)[0] for line in lines] == cells
    assert {line.rsplit(",", 1)[1] for line in lines} <= {"true", "false"}


def test_text_is_written_as_pyarrow_writes_it_but_for_quotation_marks():
    rng = np.random.default_rng(0)
    numbers = np.concatenate([10.0 ** rng.uniform(-320, 300, 500), [np.nan, np.inf, 0.0, 1e15, -3.0]])
    texts = ["", None, 'a,"b', "line\nbreak", "\t;| 'x'"] * 101
    table = pa.table({
        "x, y": numbers,
        "text": texts,
        "coded": pa.array(texts).dictionary_encode(),
        "when": pa.array(range(505), pa.timestamp("us")),
        "truth": [True, None, False, True, True] * 101,
        "whole": pa.array([None, *range(504)], pa.int64()),
    })  # fmt: skip
    files.write_table(Path("own.csv"), table.schema, [table[:300], table[300:]])
    csv.write_csv(table, "theirs.csv")
    options = {
        "parse_options": csv.ParseOptions(newlines_in_values=True),
        "convert_options": csv.ConvertOptions(column_types=dict.fromkeys(table.column_names, pa.string())),
    }
    assert csv.read_csv("own.csv", **options) == csv.read_csv("theirs.csv", **options)
    files.write_table(Path("one.csv"), table.select(["text"]).schema, [table.select(["text"])[:2]])
    assert Path("one.csv").read_text() == 'text\n""\n\n'


def test_kept_columns_of_a_parquet_file_keep_their_types(abc):
    kept = {"id": pa.array([7, None], pa.int32()), "code": pa.array(["7", "8"]), "when": pa.array([1, 2], pa.date32())}
    parquet.write_table(pa.table({"A": ["true", "false"], **kept}), "rows.parquet")
    tacit_("batch", "abc.json", "rows.parquet", "-q", "B", "-o", "out.parquet", *(f"--keep={name}" for name in kept))
    found = parquet.read_table("out.parquet")
    assert {name: found.column(name).combine_chunks() for name in kept} == kept


def test_a_table_without_rows_keeps_columns_of_text(abc):
    Path("rows.csv").write_text("A,id\n")
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.parquet", "--keep", "id")
    assert parquet.read_table("out.parquet").schema.field("id").type == pa.string()


def write_csv(path, table):
    rows = zip(*table.values(), strict=True)
    Path(path).write_text("\n".join(",".join(cells) for cells in [table, *rows]) + "\n")


# long rows ------------------------------------------------------------------------------------------------


def test_rows_of_more_than_a_mebibyte_are_read(abc):
    text = "x" * 5_000_000
    Path("rows.csv").write_text(f"A,text\ntrue,\nfalse,{text}\n,\n")
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.parquet", "--keep", "text")
    close(answers("out.parquet")["B.true"], semantics.posterior(abc, "B", {"A": ["true", "false", None]})[:, 0])
    assert answers("out.parquet")["text"] == ["", text, ""]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_block_is_as_large_as_the_longest_line_needs(monkeypatch, end):
    monkeypatch.setattr(files, "BLOCK_BYTES", 16)
    for lengths, block in (
        ([5, 5, 5], 16),
        ([15] * 9, 16),
        ([3, 3, 40, 3], 64),
        ([70], 128),
        ([3, 100, 3, 9000], 2**14),
    ):
        text = end.join("x" * length for length in lengths)
        Path("rows.csv").write_text("A" + end + text + end, newline="")
        assert files._block_for_lines(Path("rows.csv"), "rows.csv") == block
        read = [batch.rows["A"].to_pylist() for batch in files.open_table(Path("rows.csv")).batches(["A"])]
        assert [len(cell) for cells in read for cell in cells] == lengths


def test_a_line_that_is_too_long_is_named(abc, monkeypatch):
    monkeypatch.setattr(files, "MAX_BLOCK_BYTES", 2**21)
    Path("rows.csv").write_text("A,text\ntrue,\nfalse," + "x" * 2**22 + "\n")
    error = tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=1)
    assert error == "tacit: rows.csv: the line at byte 13 is too long; expected up to 2,097,152 bytes\n"


def test_a_quotation_mark_without_its_partner_is_looked_for(abc, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    Path("rows.csv").write_text("A,text\n" + "true,x\n" * 50 + 'true,"x\n' + "true,x\n" * 50)
    error = tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=1)
    assert "has more than 64 bytes; is there a quotation mark without its partner?" in error
    assert 40 <= int(error.partition("after row ")[2].partition(" ")[0]) <= 50
    assert not list(Path().glob(".*"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "rows.csv: the file is empty; expected a header, the names of the columns"),
        (b"\n\n", "rows.csv: the file is empty; expected a header, the names of the columns"),
        ("A,Größe\n1,2\n".encode("latin-1"), "rows.csv: the header cannot be read as UTF-8 text with commas"),
        (b'A,"C' + b"\n1,2" * 100_000, "rows.csv: the header cannot be read as UTF-8 text with commas: field larger"),
    ],
)
def test_a_file_without_a_header_is_refused(abc, data, message):
    Path("rows.csv").write_bytes(data)
    assert message in tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=1)


def test_text_of_another_encoding_in_a_column_that_is_not_used_does_no_harm(abc):
    Path("rows.csv").write_bytes("A,text\ntrue,Größe\n".encode("latin-1"))
    assert as_json("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv")["rows"] == 1


# wide tables ----------------------------------------------------------------------------------------------


class Name(str):
    """A name that counts how often names are compared."""

    compared = 0

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


WIDTH = 1_000


@pytest.fixture
def wide():
    """A network of many variables."""
    net = tacit.Network()
    for i in range(WIDTH):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    return net


def names(pattern):
    Name.compared = 0
    return [Name(pattern.format(i)) for i in range(WIDTH)]


def test_names_of_columns_are_compared_about_once_each(wide, monkeypatch):
    monkeypatch.setattr(files, "CSV", lambda *_: SimpleNamespace(names=names("X{}")))
    Path("rows.csv").touch()
    assert len(files.open_table(Path("rows.csv")).names) == WIDTH
    assert Name.compared <= 5 * WIDTH
    for used in (names("X{}"), names("X{}.true") + names("X{}.false")):
        found = columns.choose(wide, used, wanted=[], but=[Name("X0")])
        assert len(found) == WIDTH - 1
        arguments.note_unused(
            wide, [*used, Name("id")], [name for one in found.values() for name in one.columns], ["X0"]
        )
        assert Name.compared <= 10 * WIDTH
    columns.choose(wide, names("X{}"), wanted=list(wide), but=names("X{}"))
    assert Name.compared <= 10 * WIDTH
    table = SimpleNamespace(path=Path("rows.csv"), names=names("X{}"))
    job = SimpleNamespace(do=None, columns=None, keep=[str(name) for name in table.names])
    batch._planned(wide, table, PosteriorColumns((("X0",),)), job)
    assert Name.compared <= 10 * WIDTH


def test_a_hint_does_not_compare_all_columns_with_all_variables(wide, monkeypatch):
    seen = []
    monkeypatch.setattr(columns, "similar", lambda name, net: seen.append(name) or "")
    with pytest.raises(TacitError, match="no column of the table is a variable"):
        columns.choose(wide, [f"column {i}" for i in range(WIDTH)], wanted=[], but=[])
    assert len(seen) <= 20


def test_no_column_hides_a_variable_that_differs_in_case_only(wide):
    with pytest.raises(TacitError, match=r"did you mean 'X7'\?"):
        columns.choose(wide, [*(f"column {i}" for i in range(WIDTH)), " x7"], wanted=[], but=[])


def test_a_hundred_thousand_columns(abc):
    others = [f"column_{i}" for i in range(100_000)]  # a header of more than a mebibyte
    Path("rows.csv").write_text("\n".join([",".join(["A", *others]), "true" + ",1" * 100_000, ",2" * 100_000]))
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", "--keep", others[-1])
    close(answers("out.csv")["B.true"], semantics.posterior(abc, "B", {"A": ["true", None]})[:, 0])
    assert answers("out.csv")[others[-1]] == [1, 2]
    Path("twice.csv").write_text(",".join(["A", *others, "column_7"]) + "\n")
    with pytest.raises(FormatError, match="there are two columns 'column_7'"):
        files.open_table(Path("twice.csv"))


def test_the_query_in_a_table_is_named_beside_other_columns(abc, capsys):
    arguments.note_unused(abc, ["id", "A", "B"], ["A"], ["B"])
    assert capsys.readouterr().err.splitlines() == [
        "tacit: the column 'B' is the query itself and is not used as evidence",
        "tacit: columns that are not used: id",
    ]


def test_a_column_without_a_name_is_told_in_words(abc):
    Path("rows.csv").write_text(",A\n0,true\n")
    found = CliRunner().invoke(app, ["batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv"])
    assert found.stderr == "tacit: columns that are not used: a column without a name (the index of a frame?)\n"


def test_a_quoted_header_may_hold_a_semicolon():
    Path("one.csv").write_text('"a;b"\nlo\n')
    assert files.open_table(Path("one.csv")).names == ["a;b"]


@pytest.mark.parametrize("packed", [False, True])
def test_a_table_with_semicolons_is_read(abc, packed):
    text = '\ufeffA;"C";id\n0.5;lo;"1;2"\n;hi;3,5\n'.encode()
    name = "semi.csv.gz" if packed else "semi.csv"
    Path(name).write_bytes(gzip.compress(text) if packed else text)
    assert files.open_table(Path(name)).names == ["A", "C", "id"]
    tacit_("batch", "abc.json", name, "-q", "B", "-o", "out.csv", "--keep", "id")
    assert Path("out.csv").read_text().partition("\n")[0].count(",") == 2
    close(answers("out.csv")["B.true"], semantics.posterior(abc, "B", {"A": [0.5, None], "C": ["lo", "hi"]})[:, 0])
    assert answers("out.csv")["id"] == ["1;2", "3,5"]

"""Tables that commands read and write: text with commas or tabs, plain or gzipped, Parquet, and standard input."""

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit import semantics
from tests.helpers import close

pytest.importorskip("typer")
pa = pytest.importorskip("pyarrow")

from pyarrow import csv, parquet  # noqa: E402

from tacit.cli.commands import batch  # noqa: E402
from tacit.evidence.tables import csv_parquet as files  # noqa: E402
from tests.cli.helpers import as_json, tacit_  # noqa: E402

SUFFIXES = [".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet"]


@pytest.fixture
def rows():
    """A table of 95 rows, with a gap in every seventh, as a file of every kind."""
    rng = np.random.default_rng(0)
    given = {"A": rng.choice(["true", "false"], 95).tolist(), "C": rng.choice(["lo", "hi"], 95).tolist()}
    given["A"][::7] = [None] * len(given["A"][::7])
    write("rows", given)
    return given


def write(name, given):
    for suffix in SUFFIXES:
        files.write_table(Path(f"{name}{suffix}"), pa.table(given).schema, [pa.table(given)])


def read(path):
    """A table, by column, as other programs read it."""
    data = Path(path).read_bytes()
    if path.endswith(".gz"):
        data = gzip.decompress(data)
    if path.endswith(".parquet"):
        return parquet.read_table(io.BytesIO(data)).to_pydict()
    parsing = csv.ParseOptions(delimiter="\t" if ".tsv" in path else ",")
    return csv.read_csv(io.BytesIO(data), parse_options=parsing).to_pydict()


def from_standard_input(monkeypatch, data):
    """Let a command read some bytes from standard input, which the runner would replace."""
    monkeypatch.setattr("tacit.cli.shared.rows.sys", type("Sys", (), {"stdin": io.TextIOWrapper(io.BytesIO(data))}))


@pytest.mark.parametrize("into", SUFFIXES)
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_kind_of_table_is_read_and_written(abc, rows, monkeypatch, suffix, into):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    monkeypatch.setattr(files, "BLOCK_BYTES", 128)
    names = [f'{i}, \t"{i}"' for i in range(95)]
    write("named", rows | {"id": names})
    tacit_("batch", "abc.json", f"named{suffix}", "-q", "B", "--keep", "id", "-o", f"out{into}")
    found = read(f"out{into}")
    assert found["id"] == names
    close(found["B.true"], semantics.posterior(abc, "B", rows)[:, 0])


def test_other_programs_gzipped_tables_are_read(abc):
    Path("rows.csv.gz").write_bytes(gzip.compress(b"A,C\n") + gzip.compress(b"true,lo\nfalse,hi\n"))  # two members
    tacit_("batch", "abc.json", "rows.csv.gz", "-q", "B", "-o", "out.csv")
    close(read("out.csv")["B.true"], semantics.posterior(abc, "B", {"A": ["true", "false"], "C": ["lo", "hi"]})[:, 0])


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_estimates_are_the_same_from_every_kind_of_table(abc, rows, suffix):
    found = tacit.estimate(abc.with_cpts({"C": abc.learnable().cpt("C")}), rows).network
    tacit_("estimate", "abc.json", f"rows{suffix}", "--learn", "C", "-o", "found.json")
    close(tacit.load("found.json").table("C"), found.table("C"))


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_samples_are_written_to_every_kind_of_table(abc, suffix):
    tacit_("sample", "abc.json", "-n", "20", "-o", f"out{suffix}")
    expected = {name: values.tolist() for name, values in abc.sample(20, seed=0).items()}
    found = read(f"out{suffix}")
    assert {name: [str(value).lower() for value in values] for name, values in found.items()} == expected


@pytest.mark.parametrize("suffix", [".tsv", ".csv.gz"])
def test_after_an_interruption_other_kinds_of_tables_are_resumed(abc, rows, monkeypatch, suffix):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    monkeypatch.setattr(files, "BLOCK_BYTES", 128)
    arguments = ["batch", "abc.json", f"rows{suffix}", "-q", "B", "-o"]
    with monkeypatch.context() as patch:
        interrupt(patch, after=3)
        assert "the same command resumes from there" in tacit_(*arguments, f"out{suffix}", code=130)
    tacit_(*arguments, f"whole{suffix}")
    tacit_(*arguments, f"out{suffix}")
    assert Path(f"out{suffix}").read_bytes() == Path(f"whole{suffix}").read_bytes()


def interrupt(monkeypatch, after):
    """Interrupt a batch after some parts."""
    part, count = batch.Answers.part, iter(range(after))

    def interrupted(*arguments):
        if next(count, None) is None:
            raise KeyboardInterrupt
        return part(*arguments)

    monkeypatch.setattr(batch.Answers, "part", interrupted)


# wrong values ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_wrong_values_are_counted_in_all_of_the_table(abc, rows, monkeypatch, suffix):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    monkeypatch.setattr(files, "BLOCK_BYTES", 128)
    given = {name: list(column) for name, column in rows.items()}
    for row, value in ((30, "low"), (41, "hii"), (77, "low"), (94, "low")):
        given["C"][row] = value
    given["A"][94] = "ture"
    write("wrong", given)
    error = tacit_("batch", "abc.json", f"wrong{suffix}", "-q", "B", "-o", "out.csv", code=1)
    lines = error.splitlines()
    assert [line.partition("evidence on ")[2][:3] for line in lines] == ["'C'", "'A'"]  # a line for each column
    found = " ".join(error.split())
    assert f"wrong{suffix}: evidence on 'C', row 31: 'low' is not a state" in found
    assert "4 rows name no state: 'low' (3, first in row 31, did you mean 'lo'?), 'hii' (1, first in row 42" in found
    assert "also evidence on 'A', row 95: 'ture' is not a state" in found
    assert not list(Path().glob(".*"))


def test_columns_that_are_wrong_in_other_ways_are_told_with_them(abc, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    monkeypatch.setattr(files, "BLOCK_BYTES", 16)
    Path("rows.csv").write_text("A,C.lo,C.hi\n" + "true,1,1\n" * 5 + "true,x,1\ntrve,1,1\n" * 5)
    error = " ".join(tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=1).split())
    assert "column 'C.lo', row 6: 'x' is not a number" in error
    assert "also evidence on 'A', row 7: 'trve' is not a state" in error
    assert "5 rows name no state: 'trve' (5, first in row 7, did you mean 'true'?)" in error


def test_a_table_that_is_damaged_further_down_is_told_so_when_the_rows_above_are_right(abc, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    monkeypatch.setattr(files, "BLOCK_BYTES", 16)
    Path("rows.csv").write_text("A,C\n" + "true,lo\n" * 5 + "true,low\n" * 5 + "true,lo\n" * 400 + "true\n")
    error = " ".join(tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "out.csv", code=1).split())
    assert "rows.csv, up to row" in error
    assert "evidence on 'C', row 6: 'low' is not a state" in error
    assert "5 rows name no state" in error


# standard input -------------------------------------------------------------------------------------------


def test_rows_come_from_standard_input(abc, rows, monkeypatch):
    from_standard_input(monkeypatch, Path("rows.csv").read_bytes())
    assert as_json("batch", "abc.json", "-", "-q", "B", "-o", "out.csv")["rows"] == 95
    tacit_("batch", "abc.json", "rows.csv", "-q", "B", "-o", "same.csv")
    assert Path("out.csv").read_bytes() == Path("same.csv").read_bytes()


def test_learning_from_standard_input(abc, rows, monkeypatch):
    for command, options in (("estimate", ["--learn", "C"]), ("train", ["-q", "C", "--learn", "C", "--columns", "A"])):
        from_standard_input(monkeypatch, Path("rows.csv").read_bytes())
        tacit_(command, "abc.json", "-", *options, "-o", "piped.json")
        tacit_(command, "abc.json", "rows.csv", *options, "-o", "file.json")
        assert tacit.load("piped.json") == tacit.load("file.json")


def test_a_column_that_only_later_rows_explain_is_read_from_standard_input(abc, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 2)
    monkeypatch.setattr(files, "BLOCK_BYTES", 16)
    from_standard_input(monkeypatch, b"A\n" + b"1\n0\n" * 20 + b"0.5\n")
    tacit_("batch", "abc.json", "-", "-q", "B", "-o", "out.csv")
    close(read("out.csv")["B.true"][-1], semantics.posterior(abc, "B", {"A": 0.5})[0, 0])


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "standard input: the file is empty; expected a header"),
        (b"A,C\ntrue,lo\ntrue,medium\n", "standard input: evidence on 'C', row 2: 'medium' is not a state"),
        (b"A\tC\ntrue\tlo\n", "standard input: the columns seem to be separated by tabs"),
        (b"A,C\n1\n", "standard input: CSV parse error"),
        (b"A,A\n1,1\n", "standard input: there are two columns 'A'"),
    ],
)
@pytest.mark.parametrize("command", ["batch -q B -o out.csv", "estimate --learn all", "train -q C --learn all"])
def test_errors_speak_of_standard_input(abc, monkeypatch, command, data, message):
    if command.startswith("train") and b"medium" in data:
        message = "standard input: "
    from_standard_input(monkeypatch, data)
    name, *options = command.split()
    assert message in tacit_(name, "abc.json", "-", *options, code=1)


def test_an_interruption_leaves_nothing_of_standard_input(abc, rows, monkeypatch):
    monkeypatch.setattr(files, "BATCH_ROWS", 10)
    monkeypatch.setattr(files, "BLOCK_BYTES", 128)
    interrupt(monkeypatch, after=3)
    from_standard_input(monkeypatch, Path("rows.csv").read_bytes())
    error = tacit_("batch", "abc.json", "-", "-q", "B", "-o", "out.csv", code=130)
    assert "resumes" not in error
    assert not list(Path().glob(".*"))


def test_standard_input_on_a_terminal_says_what_it_waits_for(abc, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b"Z\n1\n"))
    stdin.isatty = lambda: True
    monkeypatch.setattr("tacit.cli.shared.rows.sys", type("Sys", (), {"stdin": stdin}))
    assert "reading" not in tacit_("batch", "abc.json", "-", "-q", "Z", "-o", "out.csv", code=1)  # no such query
    error = tacit_("batch", "abc.json", "-", "-q", "B", "-o", "out.csv", code=1)
    assert error.startswith("tacit: reading a table from standard input, as CSV\ntacit: no column of the table")


# what is wrong with a file --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("rows.tsv", b"A,C\ntrue,lo\n", "separated by commas; expected tabs, or a .csv file: A\tC"),
        ("rows.tsv", b"A;C\ntrue;lo\n", "separated by semicolons; expected tabs: A\tC"),
        ("rows.csv", b"A\tC\ntrue\tlo\n", "separated by tabs; expected commas, or a .tsv file: A,C"),
        ("rows.csv.gz", b"A,C\ntrue,lo\n", "rows.csv.gz: the gzipped file is damaged: Not a gzipped file"),
        ("rows.csv.gz", gzip.compress(b"A,C\ntrue,lo\n", mtime=0)[:-9], "rows.csv.gz: the gzipped file is damaged: "),
        ("rows.csv.gz", gzip.compress(b"", mtime=0), "rows.csv.gz: the file is empty; expected a header"),
        ("rows.tsv.gz", gzip.compress("Größe\n".encode("latin-1"), mtime=0), "cannot be read as UTF-8 text with tabs"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(abc, name, data, message):
    Path(name).write_bytes(data)
    assert message in tacit_("batch", "abc.json", name, "-q", "B", "-o", "out.csv", code=1)
    assert not list(Path().glob(".*"))


def test_damage_beyond_the_first_block_is_noticed(abc, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    rng = np.random.default_rng(0)
    text = "A,x\n" + "".join(f"true,{number}\n" for number in rng.integers(2**62, size=50_000))
    packed = gzip.compress(text.encode())
    Path("rows.csv.gz").write_bytes(packed[: len(packed) // 2])
    error = tacit_("batch", "abc.json", "rows.csv.gz", "-q", "B", "-o", "out.csv", code=1)
    assert "rows.csv.gz: the gzipped file is damaged: " in error


def test_a_long_row_of_a_gzipped_file_is_refused_with_a_remedy(abc, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 64)
    Path("rows.csv.gz").write_bytes(gzip.compress(b"A,x\ntrue,y\n" + b"true," + b"x" * 1000 + b"\n"))
    error = tacit_("batch", "abc.json", "rows.csv.gz", "-q", "B", "-o", "out.csv", code=1)
    assert "has more than 64 bytes; is there a quotation mark without its partner? If not, unpack the file" in error


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_about_how_many_rows_there_are(suffix, monkeypatch):
    monkeypatch.setattr(files, "BLOCK_BYTES", 2**18)
    table = pa.table({"x": np.random.default_rng(0).integers(2**62, size=200_000)})
    files.write_table(Path(f"rows{suffix}"), table.schema, [table])
    assert 160_000 < files.open_table(Path(f"rows{suffix}")).rows < 240_000

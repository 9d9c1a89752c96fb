"""Tables in files, CSV and Parquet, read and written batch by batch, in constant memory."""

from __future__ import annotations

import mmap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError
from tacit.base.text import short

BATCH_ROWS = 2**16
BLOCK_BYTES = 2**20  # of a CSV file, of which pyarrow reads some 30 ahead
MAX_BLOCK_BYTES = 2**24  # for a CSV file of long rows: 30 blocks must not fill the memory
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # that other programs write instead of commas


@dataclass(frozen=True)
class TableBatch:
    """Some rows of a table, a pyarrow Table, and the place of the first row."""

    rows: Any
    first: int

    @property
    def stop(self) -> int:
        """The place after the last row."""
        return int(self.first + self.rows.num_rows)


def open_table(path: Path) -> FileTable:
    """A table, by the suffix of its file."""
    kind: type[FileTable] = Parquet if is_parquet(path) else CSV
    path.stat()  # the usual error where there is no file
    table = kind(path)
    for name in repeated(table.names)[:1]:
        raise FormatError(f"{path}: there are two columns {name!r}; expected different names")
    return table


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once.

    >>> repeated(["A", "B", "A"])
    ['A']
    """
    return [name for name, count in Counter(names).items() if count > 1]


def write_table(path: Path, schema: Any, blocks: Iterable[Any]) -> None:
    """Write pyarrow tables of one schema, one after the other, atomically."""
    import pyarrow.csv
    import pyarrow.parquet

    writer = pyarrow.parquet.ParquetWriter if is_parquet(path) else pyarrow.csv.CSVWriter

    def write(file: IO[Any]) -> None:
        with writer(file, schema) as sink:
            for block in blocks:
                sink.write_table(block)

    write_atomically(path, write, binary=True)


class Parquet:
    """A Parquet file: the names of its columns, and how many rows there are."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        self.path = path
        with _format_errors(path), pyarrow.parquet.ParquetFile(path) as file:
            self._schema, self.rows = file.schema_arrow, file.metadata.num_rows
        self.names: list[str] = self._schema.names

    def types(self, columns: Sequence[str]) -> list[Any]:
        """The pyarrow types of some columns."""
        return [self._schema.field(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[TableBatch]:
        """Go through some columns, `BATCH_ROWS` or more at a time, always in the same batches; text is encoded."""
        import pyarrow as pa
        import pyarrow.parquet

        text = [name for name in columns if self._schema.field(name).type in (pa.string(), pa.large_string())]
        with _format_errors(self.path), pyarrow.parquet.ParquetFile(self.path, read_dictionary=text) as file:
            yield from _gathered(file.iter_batches(BATCH_ROWS, columns=list(columns)))


class CSV:
    """A CSV file with a header, and about how many rows there are.

    All cells are text, as they are written: what they mean depends on the variable.

    An empty line is skipped, unless there is but one column. There it is a row with an empty cell, at the end of the
    file, too: that is how polars and pyarrow write a missing value.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.rows, self._block = path, _estimated_rows(path), _block_for_lines(path)
        self._above, self.names = _header(path)

    def types(self, columns: Sequence[str]) -> list[Any]:
        import pyarrow as pa

        return [pa.string() for _ in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[TableBatch]:
        """Go through some columns of text, `BATCH_ROWS` or more at a time, always in the same batches."""
        with _format_errors(self.path):
            yield from _gathered(self._blocks(list(columns)))

    def _blocks(self, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        rows, one = 0, len(self.names) == 1
        types = dict.fromkeys(columns, pa.string())
        reading = csv.ReadOptions(block_size=self._block, skip_rows=self._above if one else 0)
        parsing = csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=not one)
        cells = csv.ConvertOptions(strings_can_be_null=False, include_columns=columns, column_types=types)
        try:
            with csv.open_csv(self.path, reading, parsing, cells) as reader:
                for piece in reader:
                    yield piece
                    rows += piece.num_rows
        except pa.ArrowInvalid as error:
            if "straddl" not in str(error):
                raise
            problem = f"a row after row {rows:,} has more than {self._block:,} bytes"
            raise FormatError(f"{self.path}: {problem}; is there a quotation mark without its partner?") from None


FileTable = Parquet | CSV


def _header(path: Path) -> tuple[int, list[str]]:
    """How many empty lines a CSV file begins with, and the names of its columns.

    They are not read by pyarrow, which would guess the types of all columns, and take seconds where there are many.
    """
    import csv

    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        try:
            above, names = next(((i, names) for i, names in enumerate(csv.reader(file)) if names), (0, []))
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError) as error:
            raise FormatError(f"{path}: the header cannot be read as UTF-8 text with commas: {error}") from None
    if not names:
        raise FormatError(f"{path}: the file is empty; expected a header, the names of the columns")
    sign = next((sign for sign in SEPARATORS if len(names) == 1 and sign in names[0]), None)
    if sign is not None:
        with path.open("rb") as file:
            quoted = file.read(BLOCK_BYTES).lstrip(b"\xef\xbb\xbf\r\n").startswith(b'"')
        meant = short(",".join(part.strip() for part in names[0].split(sign)), 60)
        if not quoted:  # one name in quotation marks is meant as it is
            problem = f"{path}: the columns seem to be separated by {SEPARATORS[sign]}"
            raise FormatError(f"{problem}; expected commas: {meant}")
    return above, names


def _block_for_lines(path: Path) -> int:
    """A size of blocks that every line fits in, since pyarrow reads none that is longer.

    Only the end of every block is looked at, where the last line of it ends: next to nothing of a large file.
    """
    size, start, block = path.stat().st_size, 0, BLOCK_BYTES
    if size <= block:
        return block
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        while size - start > block:
            end = text.rfind(b"\n", start, start + block)
            if end < 0:
                end = text.rfind(b"\r", start, start + block)
            if end >= 0:
                start = end + 1
            elif block < MAX_BLOCK_BYTES:
                block *= 2
            else:
                raise FormatError(f"{path}: the line at byte {start:,} is too long; expected up to {block:,} bytes")
    return block


def _estimated_rows(path: Path) -> int:
    """About how many rows a CSV file has, judged by the length of its first lines."""
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
    lines = max(0, head.count(b"\n") - 1)
    return round(path.stat().st_size * lines / max(1, len(head)))


def _gathered(pieces: Iterable[Any]) -> Iterator[TableBatch]:
    """Batches of enough rows: pyarrow may give a piece for every block of a file, and for every row group."""
    import pyarrow as pa

    first, waiting, count = 0, [], 0
    for piece in pieces:
        waiting.append(piece)
        count += piece.num_rows
        if count >= BATCH_ROWS:
            yield TableBatch(pa.Table.from_batches(waiting), first)
            first, waiting, count = first + count, [], 0
    if count:
        yield TableBatch(pa.Table.from_batches(waiting), first)


def is_parquet(path: Path) -> bool:
    """Whether a file is Parquet and not CSV, by its suffix; any other suffix is an error."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise FormatError(f"{path}: a table is a .csv or a .parquet file")
    return suffix == ".parquet"


@contextmanager
def _format_errors(path: Path) -> Iterator[None]:
    """Turn errors of pyarrow into format errors that name the file."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise FormatError(f"{path}: {error}") from None

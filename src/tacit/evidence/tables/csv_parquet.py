"""Tables in files, text and Parquet, read and written batch by batch, in constant memory.

A table has the `path` that it is read from, and a `name` for messages: its path, or "standard input".
"""

from __future__ import annotations

import gzip
import io
import mmap
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError
from tacit.base.text import short
from tacit.base.version import package
from tacit.evidence.tables.suffixes import SEPARATORS, Storage, storage_of

BATCH_ROWS = 2**16
BLOCK_BYTES = 2**20  # of a CSV file, of which pyarrow reads some 30 ahead
TEXT_ROWS = 2**14  # that are written as text at once
MAX_BLOCK_BYTES = 2**24  # for a CSV file of long rows: 30 blocks must not fill the memory


@dataclass(frozen=True)
class TableBatch:
    """Some rows of a table, a pyarrow Table, and the place of the first row."""

    rows: Any
    first: int

    @property
    def stop(self) -> int:
        """The place after the last row."""
        return int(self.first + self.rows.num_rows)


def open_table(path: Path, name: str | None = None) -> FileTable:
    """A table, by the suffix of its file, and its name in messages: the path, if left out."""
    storage, name = storage_of(path), name or str(path)
    package("pyarrow", "cli", "a table in a file")
    path.stat()  # the usual error where there is no file
    table: FileTable = Parquet(path, name) if storage.is_parquet else CSV(path, name, storage)
    for column in repeated(table.names)[:1]:
        raise FormatError(f"{name}: there are two columns {column!r}; expected different names")
    return table


def repeated(names: Sequence[str]) -> list[str]:
    """The names that occur more than once.

    >>> repeated(["A", "B", "A"])
    ['A']
    """
    return [name for name, count in Counter(names).items() if count > 1]


def write_table(path: Path, schema: Any, blocks: Iterable[Any]) -> None:
    """Write pyarrow tables of one schema, one after the other, atomically."""
    storage = storage_of(path)

    def write(file: IO[Any]) -> None:
        with _packing(file, storage) as packed, _writer(packed, schema, storage) as sink:
            for block in blocks:
                sink.write_table(block)

    write_atomically(path, write, binary=True)


def _packing(file: IO[Any], storage: Storage) -> AbstractContextManager[Any]:
    """What takes the bytes of a table: the file, or a compressor above it, which leaves out the time."""
    return gzip.GzipFile("", "wb", 6, file, mtime=0) if storage.gzipped else nullcontext(file)


def _writer(file: Any, schema: Any, storage: Storage) -> Any:
    from pyarrow import parquet

    return parquet.ParquetWriter(file, schema) if storage.is_parquet else nullcontext(TextWriter(file, schema, storage))


class TextWriter:
    """A writer of text in which only those cells have quotation marks that need them: pyarrow's marks all text.

    So cells that are copied from another file of text stay as they are.
    """

    def __init__(self, file: Any, schema: Any, storage: Storage) -> None:
        import pyarrow as pa

        self._file, self._separator, self._single = file, str(storage.separator), len(schema) == 1
        self._write([pa.array([name]) for name in schema.names])

    def write_table(self, table: Any) -> None:
        """Write the rows of a table, some at a time: a column of text holds at most 2 GiB."""
        for batch in table.combine_chunks().to_batches(max_chunksize=TEXT_ROWS):
            self._write(batch.columns)

    def _write(self, columns: Sequence[Any]) -> None:
        import pyarrow as pa
        from pyarrow import compute

        cells = [self._cells(column) for column in columns]
        sign = pa.scalar(self._separator, pa.large_string())
        joined = compute.binary_join_element_wise(*cells, sign, null_handling="replace", null_replacement="")
        self._file.write("".join(f"{line}\n" for line in joined.to_pylist()).encode())

    def _cells(self, column: Any) -> Any:
        """A column as text; an empty cell gets quotation marks where it would make an empty line."""
        import pyarrow as pa
        from pyarrow import compute

        kind = column.type.value_type if isinstance(column, pa.DictionaryArray) else column.type
        text = column.cast(pa.large_string())
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
            return text
        marks = f'["\\r\\n{re.escape(self._separator)}]' + ("|^$" if self._single else "")
        unsafe = compute.match_substring_regex(text, marks)
        if not compute.any(unsafe).as_py():
            return text
        doubled = compute.replace_substring(text, '"', '""')
        mark, nothing = (pa.scalar(text, pa.large_string()) for text in ('"', ""))
        quoted = compute.binary_join_element_wise(mark, doubled, mark, nothing)
        return compute.if_else(unsafe, quoted, text)


class Parquet:
    """A Parquet file: the names of its columns, and how many rows there are."""

    def __init__(self, path: Path, name: str) -> None:
        import pyarrow.parquet

        self.path, self.name = path, name
        with _format_errors(name), pyarrow.parquet.ParquetFile(path) as file:
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
        with _format_errors(self.name), pyarrow.parquet.ParquetFile(self.path, read_dictionary=text) as file:
            yield from _gathered(file.iter_batches(BATCH_ROWS, columns=list(columns)))


class CSV:
    """A file of text with a header, plain or gzipped, and about how many rows there are.

    All cells are text, as they are written: what they mean depends on the variable.

    An empty line is skipped, unless there is but one column. There it is a row with an empty cell, at the end of the
    file, too: that is how polars and pyarrow write a missing value.
    """

    def __init__(self, path: Path, name: str, storage: Storage) -> None:
        self.path, self.name, self._storage = path, name, storage
        with _format_errors(name):
            self.rows = _estimated_rows(path, storage)
            self._block = BLOCK_BYTES if storage.gzipped else _block_for_lines(path, name)
            self._storage = _as_separated(path, storage)
            self._above, self.names = _header(path, name, self._storage)

    def types(self, columns: Sequence[str]) -> list[Any]:
        import pyarrow as pa

        return [pa.string() for _ in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[TableBatch]:
        """Go through some columns of text, `BATCH_ROWS` or more at a time, always in the same batches."""
        with _format_errors(self.name):
            yield from _gathered(self._blocks(list(columns)))

    def _blocks(self, columns: list[str]) -> Iterator[Any]:
        import pyarrow as pa
        from pyarrow import csv

        rows, one = 0, len(self.names) == 1
        types = dict.fromkeys(columns, pa.string())
        reading = csv.ReadOptions(block_size=self._block, skip_rows=self._above if one else 0)
        parsing = csv.ParseOptions(
            delimiter=self._storage.separator, newlines_in_values=True, ignore_empty_lines=not one
        )
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
            cause = "is there a quotation mark without its partner?"
            remedy = " If not, unpack the file" if self._storage.gzipped else ""
            raise FormatError(f"{self.name}: {problem}; {cause}{remedy}") from None


FileTable = Parquet | CSV


def with_columns(table: FileTable, columns: Sequence[str]) -> FileTable:
    """The table with some of its columns only."""
    chosen = copy(table)
    chosen.names = list(columns)
    return chosen


def _as_separated(path: Path, storage: Storage) -> Storage:
    """The storage of a file of text; a .csv file has semicolons where its header has them and no comma.

    Spreadsheets write it so where numbers are written with a comma. A header in quotation marks is meant as it is.
    """
    if storage.separator != "," or _begins_with_quote(path, storage):
        return storage
    with storage.open(path) as file:
        header = next((line for line in file if line.strip(b"\xef\xbb\xbf\r\n")), b"")
    return replace(storage, separator=";") if b";" in header and b"," not in header else storage


def _header(path: Path, name: str, storage: Storage) -> tuple[int, list[str]]:
    """How many empty lines a file of text begins with, and the names of its columns.

    They are not read by pyarrow, which would guess the types of all columns, and take seconds where there are many.
    """
    import csv

    sign = storage.separator or ","
    with (
        storage.open(path) as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", errors="surrogateescape", newline="") as text,
    ):
        lines = csv.reader(text, delimiter=sign)
        try:
            above, names = next(((i, names) for i, names in enumerate(lines) if names), (0, []))
            "".join(names).encode()
        except (csv.Error, UnicodeEncodeError) as error:
            problem = f"the header cannot be read as UTF-8 text with {SEPARATORS[sign]}"
            raise FormatError(f"{name}: {problem}: {error}") from None
    if not names:
        raise FormatError(f"{name}: the file is empty; expected a header, the names of the columns")
    if len(names) == 1 and not _begins_with_quote(path, storage):  # a name in quotation marks is meant as it is
        _refuse_other_separators(name, names[0], sign)
    return above, names


def _begins_with_quote(path: Path, storage: Storage) -> bool:
    with storage.open(path) as file:
        return file.read(BLOCK_BYTES).lstrip(b"\xef\xbb\xbf\r\n").startswith(b'"')


def _refuse_other_separators(name: str, header: str, expected: str) -> None:
    """Refuse the name of a single column that seems to hold several, with another sign between them."""
    sign = next((sign for sign in SEPARATORS if sign in header), None)
    if sign is not None:
        meant = short(expected.join(part.strip() for part in header.split(sign)), 60)
        remedy = "or a .tsv file" if sign == "\t" else "or a .csv file" if sign == "," else ""
        problem = f"{name}: the columns seem to be separated by {SEPARATORS[sign]}"
        raise FormatError(f"{problem}; expected {SEPARATORS[expected]}{', ' * bool(remedy)}{remedy}: {meant}")


def _block_for_lines(path: Path, name: str) -> int:
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
                raise FormatError(f"{name}: the line at byte {start:,} is too long; expected up to {block:,} bytes")
    return block


def _estimated_rows(path: Path, storage: Storage) -> int:
    """About how many rows a file of text has, judged by its first lines and the share of the file that they take."""
    with path.open("rb") as stored, gzip.GzipFile(fileobj=stored) if storage.gzipped else nullcontext(stored) as file:
        head = file.read(BLOCK_BYTES)
        taken = stored.tell()
    lines = max(0, head.count(b"\n") - 1)
    return round(path.stat().st_size * lines / max(1, taken))


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


@contextmanager
def _format_errors(name: str) -> Iterator[None]:
    """Turn errors of pyarrow and of gzip into format errors that name the table."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise FormatError(f"{name}: {error}") from None
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the system, not of a file that is damaged
            raise
        raise FormatError(f"{name}: the gzipped file is damaged: {error}") from None

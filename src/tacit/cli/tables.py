"""Tables in files, CSV and Parquet, read and written batch by batch, in constant memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from tacit.errors import FormatError
from tacit.io.atomic import write_atomically

BATCH_ROWS = 2**16
BLOCK_BYTES = 2**20  # of a CSV file, of which pyarrow reads some 30 ahead


@dataclass(frozen=True)
class Batch:
    """Some rows of a table, a pyarrow Table, and the place of the first of them."""

    rows: Any
    first: int

    @property
    def stop(self) -> int:
        """The place after the last of them."""
        return int(self.first + self.rows.num_rows)


class Table(Protocol):
    """A table in a file: the names of its columns, and how many rows there are, or about how many."""

    path: Path
    names: list[str]
    rows: int

    def types(self, columns: Sequence[str]) -> list[Any]:
        """The pyarrow types of some columns."""
        ...

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Go through some columns, `BATCH_ROWS` or more at a time; the same file always gives the same batches.

        Text may come dictionary-encoded.
        """
        ...


def open_table(path: Path) -> Table:
    """A table, by the suffix of its file."""
    kind: type[Parquet | CSV] = Parquet if is_parquet(path) else CSV
    path.stat()  # the usual error where there is no file
    table = kind(path)
    for i, name in enumerate(table.names):
        if name in table.names[:i]:
            raise FormatError(f"{path}: there are two columns {name!r}; expected different names")
    return table


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
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet

        self.path = path
        with _format_errors(path), pyarrow.parquet.ParquetFile(path) as file:
            self._schema, self.rows = file.schema_arrow, file.metadata.num_rows
        self.names: list[str] = self._schema.names

    def types(self, columns: Sequence[str]) -> list[Any]:
        """Those that the file names."""
        return [self._schema.field(name).type for name in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Go through some columns, text dictionary-encoded."""
        import pyarrow as pa
        import pyarrow.parquet

        text = [name for name in columns if self._schema.field(name).type in (pa.string(), pa.large_string())]
        with _format_errors(self.path), pyarrow.parquet.ParquetFile(self.path, read_dictionary=text) as file:
            yield from _gathered(file.iter_batches(BATCH_ROWS, columns=list(columns)))


class CSV:
    """A CSV file with a header; all cells are text, as they are written: what they mean depends on the variable."""

    def __init__(self, path: Path) -> None:
        self.path, self.rows = path, _about_rows(path)
        with _format_errors(path), self._open() as reader:
            self.names: list[str] = reader.schema.names

    def types(self, columns: Sequence[str]) -> list[Any]:
        """All text."""
        import pyarrow as pa

        return [pa.string() for _ in columns]

    def batches(self, columns: Sequence[str]) -> Iterator[Batch]:
        """Go through some columns of text."""
        import pyarrow as pa

        chosen = {"include_columns": list(columns), "column_types": dict.fromkeys(columns, pa.string())}
        with _format_errors(self.path), self._open(**chosen) as reader:
            yield from _gathered(reader)

    def _open(self, **options: Any) -> Any:
        from pyarrow import csv

        return csv.open_csv(
            self.path,
            read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
            convert_options=csv.ConvertOptions(strings_can_be_null=False, **options),
        )


def _about_rows(path: Path) -> int:
    """The rows of a CSV file, as many as its first lines let expect."""
    with path.open("rb") as file:
        head = file.read(BLOCK_BYTES)
    lines = max(0, head.count(b"\n") - 1)
    return round(path.stat().st_size * lines / max(1, len(head)))


def _gathered(pieces: Iterable[Any]) -> Iterator[Batch]:
    """Batches of enough rows: pyarrow may give a piece for every block of a file, and for every row group."""
    import pyarrow as pa

    first, waiting, count = 0, [], 0
    for piece in pieces:
        waiting.append(piece)
        count += piece.num_rows
        if count >= BATCH_ROWS:
            yield Batch(pa.Table.from_batches(waiting), first)
            first, waiting, count = first + count, [], 0
    if count:
        yield Batch(pa.Table.from_batches(waiting), first)


def is_parquet(path: Path) -> bool:
    """Whether a name is that of a Parquet file, and not of a CSV file; any other is an error."""
    suffix = path.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise FormatError(f"{path}: a table is a .csv or a .parquet file")
    return suffix == ".parquet"


@contextmanager
def _format_errors(path: Path) -> Iterator[None]:
    """What pyarrow finds wrong with a file, with its name."""
    import pyarrow as pa

    try:
        yield
    except pa.ArrowException as error:
        raise FormatError(f"{path}: {error}") from None

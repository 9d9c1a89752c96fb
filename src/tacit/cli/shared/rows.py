"""The table that a command reads: a file, or standard input."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tacit.cli.shared.output import note
from tacit.evidence.tables.csv_parquet import FileTable, open_table

STANDARD_INPUT = "standard input"  # its name as a table


@contextmanager
def open_rows(path: Path) -> Iterator[FileTable]:
    """A table from a file; or from standard input, which is CSV, and kept in a temporary file as long as it is used.

    A table may be gone through more than once, and its rows may be longer than a block, as standard input cannot.
    """
    if path != Path("-"):
        yield open_table(path)
        return
    if sys.stdin.isatty():
        note("reading a table from standard input, as CSV")
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        stored = Path(folder) / "rows.csv"
        with stored.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield open_table(stored, STANDARD_INPUT)

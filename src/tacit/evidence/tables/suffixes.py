"""How a table is stored in a file, by the suffix of its name."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from tacit.base.errors import FormatError

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}  # that programs write


@dataclass(frozen=True)
class Storage:
    """How a table is stored: as Parquet, or as text with a sign between the columns, plain or gzipped."""

    separator: str | None  # None: Parquet
    gzipped: bool = False

    @property
    def is_parquet(self) -> bool:
        return self.separator is None

    def open(self, path: Path) -> BinaryIO:
        """Open a file to read its bytes, unpacked."""
        return cast(BinaryIO, gzip.open(path) if self.gzipped else path.open("rb"))


STORAGES = {
    ".csv": Storage(","),
    ".tsv": Storage("\t"),
    ".csv.gz": Storage(",", gzipped=True),
    ".tsv.gz": Storage("\t", gzipped=True),
    ".parquet": Storage(None),
}


def is_table(path: str | os.PathLike[str]) -> bool:
    """Whether the name of a file says that it holds a table.

    >>> is_table("rows.csv.gz"), is_table("asia.bif.gz")
    (True, False)
    """
    return os.fspath(path).lower().endswith(tuple(STORAGES))


def storage_of(path: Path) -> Storage:
    """How a table is stored; an error if the suffix is of no table.

    >>> storage_of(Path("rows.TSV"))
    Storage(separator='\\t', gzipped=False)
    """
    name = path.name.lower()
    for suffix, storage in STORAGES.items():
        if name.endswith(suffix):
            return storage
    *others, last = STORAGES
    raise FormatError(f"{path}: a table is a {', '.join(others)} or {last} file")

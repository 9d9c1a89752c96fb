"""Results in numbered parts, each stored when it is done, so that a computation that was cut off can be resumed.

There is one writer at a time, by a lock that the system takes back when a process ends, however it ends.

Columns copied from a CSV file, whose cells are text, to a Parquet file have the type of all of their cells: integers,
floats or booleans, in which empty cells and words such as NA are gaps. Where one cell is anything else, all stay text.
So do numbers that would not come back: those with leading zeros, which are identifiers ("007"), and whole ones with
more digits than the type can hold.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import compute, ipc

from tacit.base.atomic import write_atomically
from tacit.base.errors import TacitError
from tacit.cli.shared.output import note
from tacit.evidence.states import MISSING_WORDS
from tacit.evidence.tables.csv_parquet import write_table

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

# 12e7 may be an identifier, too: programs write a sign in the exponent
FRACTION = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+][0-9]+)?|[eE][-+][0-9]+)"
KINDS = {  # by the names that pyarrow has for them, the narrowest first
    "int64": "^(?:-?[1-9][0-9]{0,18}|0)$",
    "double": f"^(?:-?[1-9][0-9]{{0,14}}|0|{FRACTION})$",
    "bool": "^(?i:true|false)$",
}
RUN = b"run"  # the key of a part's metadata that tells which computation it belongs to


class ResultFiles:
    """Tables of pyarrow in a hidden folder beside the file that they will be joined to.

    Every part is written atomically, and carries a digest of the settings of its computation. Parts of another one are
    removed at the start, and never read: so whatever is read is right, and whole.
    """

    def __init__(self, output: Path, settings: dict[str, Any]) -> None:
        self.folder = output.parent / f".{output.name}.parts"
        self._key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest().encode()
        self.done = next(number for number in itertools.count() if not self._is_ours(number))
        if not self.done:
            self.remove()
            self.folder.mkdir()

    def add(self, table: Any) -> None:
        """Store the next part."""
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), RUN: self._key})

        def write(file: Any) -> None:
            with ipc.new_file(file, table.schema) as sink:
                sink.write_table(table)

        write_atomically(self._path(self.done), write, binary=True)
        self.done += 1

    def read(self, number: int) -> Any:
        """A part that was stored."""
        with self._open(number) as file:
            if not self._has_key(file):
                raise TacitError(f"{self._path(number)}: another run has written this part; run the command again")
            return file.read_all()

    def __iter__(self) -> Iterator[Any]:
        return (self.read(number) for number in range(self.done))

    @property
    def rows(self) -> int:
        """The rows of all parts."""
        return sum(part.num_rows for part in self)

    def join(self, output: Path, schema: Any) -> None:
        """Put all parts in place as one file; one that is not whole can only be left in the folder of the parts."""
        joined = self.folder / output.name
        write_table(joined, schema, (_typed(part, schema) for part in self))
        joined.replace(output)
        self.remove()

    def remove(self) -> None:
        """Remove all parts."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _is_ours(self, number: int) -> bool:
        """Whether a part exists, and belongs to this computation."""
        try:
            with self._open(number) as file:
                return self._has_key(file)
        except (FileNotFoundError, pa.ArrowInvalid):
            return False

    def _has_key(self, file: Any) -> bool:
        return bool((file.schema.metadata or {}).get(RUN) == self._key)

    def _open(self, number: int) -> Any:
        return ipc.open_file(pa.memory_map(str(self._path(number))))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.arrow"


@contextmanager
def only_writer(output: Path) -> Iterator[None]:
    """Hold the lock of an output; an error if another process holds it."""
    path = output.parent / f".{output.name}.lock"
    handle = _locked(path)
    if handle is None:
        raise TacitError(f"{output}: another run is writing this output; wait until it ends, or choose another one")
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(handle)
            with suppress(OSError):  # the next run has it open
                path.unlink()
        else:
            path.unlink(missing_ok=True)
            os.close(handle)


def _locked(path: Path) -> int | None:
    """A handle of a file that is locked now, or None if another process has locked it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(handle, path):
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # a run that ended has removed the file after we opened it, and the next one makes a new one


def _lock(handle: int, path: Path) -> bool:
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # some file systems of networks have no locks
        note(f"{path}: {error.strerror}: let no other run write the same output")
    return True


def typed_schema(schema: Any, names: Sequence[str], parts: Iterable[Any]) -> Any:
    """A schema in which some columns of text get the type that all of their cells have."""
    kinds_of_parts = [[kinds(part.column(name)) for name in names] for part in parts]
    for name, *of_column in zip(names, *kinds_of_parts, strict=True):
        schema = schema.set(schema.get_field_index(name), pa.field(name, pa.type_for_alias(common(of_column))))
    return schema


def _typed(part: Any, schema: Any) -> Any:
    """A table whose columns have the types of a schema."""
    columns = [
        column if column.type == field.type else _without_gaps(column).cast(field.type)
        for column, field in zip(part.columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def kinds(column: Any) -> list[str] | None:
    """The kinds that all cells of a column of text have; None if there are only gaps.

    >>> kinds(pa.array(["7", "", "12"])), kinds(pa.array(["007", "12"])), kinds(pa.array(["NA"]))
    (['int64', 'double'], [], None)
    """
    words = _without_gaps(column).drop_null()
    return [kind for kind in KINDS if _are(words, kind)] if len(words) else None


def common(of_parts: Iterable[list[str] | None]) -> str:
    """The narrowest kind that all parts of a column have, or text.

    >>> common([["int64", "double"], None, ["double"]]), common([None]), common([["bool"], ["int64", "double"]])
    ('double', 'string', 'string')
    """
    of_values = [one for one in of_parts if one is not None]
    return next((kind for kind in KINDS if of_values and all(kind in one for one in of_values)), "string")


def _without_gaps(column: Any) -> Any:
    """A column of text, with nulls for empty cells and words such as NA."""
    gaps = compute.is_in(compute.utf8_lower(column), value_set=pa.array(sorted(MISSING_WORDS)))
    return compute.if_else(gaps, pa.scalar(None, pa.string()), column)


def _are(words: Any, kind: str) -> bool:
    """Whether all words are of a kind, and within its range."""
    if not compute.all(compute.match_substring_regex(words, KINDS[kind])).as_py():
        return False
    try:
        values = words.cast(kind)
    except pa.ArrowInvalid:
        return False
    return kind != "double" or bool(compute.all(compute.is_finite(values)).as_py())

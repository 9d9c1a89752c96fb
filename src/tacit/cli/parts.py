"""A long computation in numbered parts, each stored when it is done, so that one that was cut off goes on."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.atomic import write_atomically
from tacit.errors import TacitError

RUN = b"run"  # where the metadata of a part say whose it is


class Parts:
    """Results on their way to a file: tables of pyarrow in a hidden folder beside it, until all are there.

    Every part is written atomically, and carries the key of what it depends on. Those of another computation are
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
        from pyarrow import ipc

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

    def remove(self) -> None:
        """Remove all parts."""
        if self.folder.exists():
            shutil.rmtree(self.folder)

    def _is_ours(self, number: int) -> bool:
        """Whether a part is there, and of this computation."""
        import pyarrow as pa

        try:
            with self._open(number) as file:
                return self._has_key(file)
        except (FileNotFoundError, pa.ArrowInvalid):
            return False

    def _has_key(self, file: Any) -> bool:
        return bool((file.schema.metadata or {}).get(RUN) == self._key)

    def _open(self, number: int) -> Any:
        import pyarrow as pa
        from pyarrow import ipc

        return ipc.open_file(pa.memory_map(str(self._path(number))))

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.arrow"

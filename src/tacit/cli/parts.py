"""A long computation in numbered parts, each stored when it is done, so that one that was cut off goes on."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tacit.io.atomic import write_atomically


class Parts:
    """Results on their way to a file: tables of pyarrow in a hidden folder beside it, until all are there.

    Every part is written atomically, and a manifest says what the parts depend on: those of another computation are
    removed. So whatever is in the folder is right, and whole.
    """

    def __init__(self, output: Path, settings: dict[str, Any]) -> None:
        self.folder = output.parent / f".{output.name}.parts"
        key = hashlib.sha256(json.dumps(settings, sort_keys=True, default=str).encode()).hexdigest()
        manifest = self.folder / "manifest.json"
        if not manifest.exists() or json.loads(manifest.read_text(encoding="utf-8")) != {"key": key}:
            self.remove()
            self.folder.mkdir()
            write_atomically(manifest, lambda file: json.dump({"key": key}, file))
        self.done = next(i for i in itertools.count() if not self._path(i).exists())

    def add(self, table: Any) -> None:
        """Store the next part."""
        from pyarrow import ipc

        def write(file: Any) -> None:
            with ipc.new_file(file, table.schema) as sink:
                sink.write_table(table)

        write_atomically(self._path(self.done), write, binary=True)
        self.done += 1

    def read(self, number: int) -> Any:
        """A part that was stored."""
        import pyarrow as pa
        from pyarrow import ipc

        return ipc.open_file(pa.memory_map(str(self._path(number)))).read_all()

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

    def _path(self, number: int) -> Path:
        return self.folder / f"{number:06}.arrow"

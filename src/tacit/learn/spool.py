"""Rows that are needed again and again, kept aside in little room."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import Any, Self

from tacit.learn.sources import Piece

IN_MEMORY = 2**26  # bytes; what is more goes to a temporary file


class Spool:
    """Pieces in memory while they are few, and else in a temporary file that nobody else sees."""

    def __init__(self) -> None:
        self._count = 0
        self._file: Any = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # closed in __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, piece: Piece) -> None:
        """Keep some rows."""
        pickle.dump(piece, self._file, protocol=5)
        self._count += 1

    def __iter__(self) -> Iterator[Piece]:
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)

"""Rows that are needed again and again, kept aside in little room."""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from tacit.evidence import Column
from tacit.learn.sources import Piece
from tacit.network import Network

IN_MEMORY = 2**26  # bytes; what is more goes to a temporary file


class Spool:
    """Pieces in memory while they are few, and else in a temporary file that nobody else sees.

    A state takes one byte, for up to 127 of them.
    """

    def __init__(self, net: Network) -> None:
        self._net, self._count = net, 0
        self._file: Any = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115  # closed in __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, piece: Piece) -> None:
        """Keep some rows."""
        columns = {name: _packed(column) for name, column in piece.columns.items()}
        numbers = (int(piece.numbers[0]), np.diff(piece.numbers).astype(np.int32))
        pickle.dump((columns, piece.weights, numbers, piece.path), self._file, protocol=5)
        self._count += 1

    def __iter__(self) -> Iterator[Piece]:
        self._file.seek(0)
        for _ in range(self._count):
            columns, weights, (first, steps), path = pickle.load(self._file)
            numbers = first + np.concatenate([[0], np.cumsum(steps, dtype=np.int64)])
            yield Piece({name: self._unpacked(name, *kept) for name, kept in columns.items()}, weights, numbers, path)

    def _unpacked(self, name: str, codes: Any, soft: Any) -> Column:
        return Column(self._net.variable(name), None if codes is None else codes.astype(np.int64), soft)


def _packed(column: Column) -> tuple[Any, Any]:
    if column.codes is None:
        return None, column.soft
    return column.codes.astype(np.min_scalar_type(-column.variable.card)), None

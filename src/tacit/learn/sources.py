"""Rows to estimate from: evidence in memory, a file, or batches that come one after the other."""

from __future__ import annotations

import os
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import EvidenceError, TacitError
from tacit.evidence import Column, Evidence, named_columns, read, take, without_column
from tacit.floats import Floats
from tacit.labels import MISSING
from tacit.learn.data import checked_weights
from tacit.naming import UnusedColumnWarning
from tacit.network import Network
from tacit.rows.columns import choose, columns_of, floats_of, unused
from tacit.rows.files import open_table
from tacit.rows.places import in_file
from tacit.rows.reading import Reader
from tacit.variable import similar
from tacit.warned import warn
from tacit.words import listed

ENOUGH = 2**14  # rows of a piece, below which batches are put together


@dataclass(frozen=True, eq=False)
class Piece:
    """Some rows: what they observe, their weights and their numbers, which count from 0; and the file they are from."""

    columns: Mapping[str, Column]
    weights: Floats
    numbers: NDArray[np.int64]
    path: Path | None = None

    @property
    def rows(self) -> int:
        return len(self.weights)

    def arrays(self) -> list[NDArray[Any]]:
        """Everything as arrays, in a fixed order."""
        found: list[NDArray[Any]] = [self.weights]
        for _, column in sorted(self.columns.items()):
            found += [array for array in (column.codes, column.soft) if array is not None]
        return found

    def take(self, rows: NDArray[np.int64]) -> Piece:
        """Some of the rows."""
        return Piece(take(self.columns, rows), self.weights[rows], self.numbers[rows], self.path)

    def only(self, names: Container[str]) -> Piece:
        """The same with some of the columns."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name in names})

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle in little room: a state takes one byte, for up to 127 of them."""
        columns = {name: _packed(column) for name, column in self.columns.items()}
        weights = None if (self.weights == 1).all() else self.weights
        steps = np.diff(self.numbers, prepend=self.numbers[:1])
        places = (int(self.numbers[0]), self.rows, None if (steps[1:] == 1).all() else steps.astype(np.int32))
        return _unpacked, (columns, weights, places, self.path)

    def impossible(self, row: int) -> EvidenceError:
        """An error that says that a row cannot be."""
        error = EvidenceError("the evidence has probability 0; known 0s rule it out", row=int(self.numbers[row]))
        return error if self.path is None else in_file(error, self.path)


def _packed(column: Column) -> Column:
    if column.codes is None:
        return column
    return Column(column.variable, column.codes.astype(np.min_scalar_type(-column.variable.card), copy=False))


def _unpacked(
    columns: dict[str, Column], weights: Floats | None, places: tuple[int, int, Any], path: Path | None
) -> Piece:
    first, rows, steps = places
    numbers = first + (np.arange(rows) if steps is None else np.cumsum(steps, dtype=np.int64))
    return Piece(columns, np.ones(rows) if weights is None else weights, numbers, path)


def is_stream(rows: Any) -> bool:
    """Whether rows come as batches, which need not all be in memory at once."""
    if isinstance(rows, str | os.PathLike | Iterator):
        return True
    if not isinstance(rows, Iterable) or isinstance(rows, Mapping | Evidence | np.ndarray) or _is_frame(rows):
        return False
    # a sequence of rows of numbers is an array; one of tables, or of what must be read to be seen, is not
    return not isinstance(rows, Sequence) or bool(rows and _is_table(rows[0]))


def pieces(net: Network, rows: Any, weights: Any = None) -> Iterator[Piece]:
    """All rows; `weights` are numbers, or the name of a column that holds them."""
    if isinstance(weights, str) and weights in net:
        raise TacitError(f"weights name {weights!r}, which is a variable; expected numbers, or a column of them")
    if isinstance(rows, str | os.PathLike):
        yield from _of_file(net, Path(rows), weights)
    elif is_stream(rows):
        yield from _gathered(_of_batches(net, rows, weights))
    else:
        yield _piece(net, rows, weights, 0)


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "columns") or hasattr(rows, "column_names")


def _is_table(rows: Any) -> bool:
    return isinstance(rows, Mapping | Evidence) or _is_frame(rows) or getattr(rows, "ndim", 0) == 2


# batches in memory ----------------------------------------------------------------------------------------


def _of_batches(net: Network, batches: Iterable[Any], weights: Any) -> Iterator[Piece]:
    whole = None if weights is None or isinstance(weights, str) else checked_weights(weights)
    first = 0
    for batch in batches:
        if _is_empty(batch):
            continue
        try:
            piece = _piece(net, batch, weights if whole is None else None, first)
        except EvidenceError as error:
            raise error.moved(first) from None
        if whole is not None:
            piece = Piece(piece.columns, whole[first : first + piece.rows], piece.numbers)
            if len(piece.weights) < len(piece.numbers):
                raise EvidenceError(f"there are {len(whole):,} weights for more rows; expected one per row")
        first += piece.rows
        yield piece
    if whole is not None and first < len(whole):
        raise EvidenceError(f"there are {len(whole):,} weights for {first:,} rows; expected one per row")


def _is_empty(batch: Any) -> bool:
    if isinstance(batch, Mapping):
        return any(hasattr(column, "__len__") and not len(column) for column in batch.values())
    return hasattr(batch, "__len__") and not len(batch)


def _gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Larger pieces, where small ones say something about the same variables."""
    waiting: list[Piece] = []
    for piece in pieces:
        if waiting and set(piece.columns) != set(waiting[0].columns):
            yield _joined(waiting)
            waiting = []
        waiting.append(piece)
        if sum(one.rows for one in waiting) >= ENOUGH:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def _joined(pieces: Sequence[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    columns = {name: one_column([(piece.columns[name], piece.rows) for piece in pieces]) for name in pieces[0].columns}
    weights, numbers = (np.concatenate([getattr(piece, part) for piece in pieces]) for part in ("weights", "numbers"))
    return Piece(columns, weights, numbers, pieces[0].path)


def one_column(parts: Sequence[tuple[Column, int]]) -> Column:
    """Columns one below the other, each with its number of rows."""
    variable = parts[0][0].variable
    codes = [np.broadcast_to(column.codes, rows) for column, rows in parts if column.codes is not None]
    if len(codes) == len(parts):
        return Column(variable, codes=np.concatenate(codes))
    soft = [np.broadcast_to(column.likelihoods(), (variable.card, rows)) for column, rows in parts]
    return Column(variable, soft=np.concatenate(soft, axis=1))


def _piece(net: Network, rows: Any, weights: Any, first: int) -> Piece:
    if rows is None or (isinstance(rows, Mapping) and not rows):
        raise EvidenceError("there are no rows; expected evidence, a path, or batches of evidence")
    if isinstance(weights, str):
        rows, weights = _split_off(rows, weights)
    known = read(rows, [net.variable(name) for name in net])
    if not known.columns and not isinstance(rows, Mapping):
        raise EvidenceError("the rows have no columns; expected some that are named like variables")
    if isinstance(rows, Mapping):  # a single value that is missing is no column, but in other batches it may be one
        gaps = {
            name: Column(net.variable(name), codes=np.array([MISSING]))
            for name in rows
            if name in net and name not in known.columns
        }
        known = replace(known, columns={**known.columns, **gaps})
    counted = np.ones(known.rows) if weights is None else checked_weights(weights, known.rows)
    return Piece(known.columns, counted, np.arange(first, first + known.rows))


def _split_off(rows: Any, name: str) -> tuple[Any, Any]:
    """Evidence without a column, and that column."""
    columns = named_columns(rows)
    if columns is None:
        raise TacitError(f"weights name a column, {name!r}, but the rows are a {type(rows).__name__} without names")
    if name not in columns:
        raise EvidenceError(f"the rows have no column {name!r} of weights{similar(name, columns)}")
    return without_column(rows, name), columns[name]


# files ----------------------------------------------------------------------------------------------------


def _of_file(net: Network, path: Path, weights: Any) -> Iterator[Piece]:
    table = open_table(path)
    if weights is not None and not isinstance(weights, str):
        raise TacitError(f"rows come from {path}; then weights are the name of one of its columns")
    if weights is not None and weights not in table.names:
        raise EvidenceError(f"{path} has no column {weights!r} of weights{similar(weights, table.names)}")
    sources = choose(net, table.names, [], but=[])
    used = [*columns_of(sources.values()), *([] if weights is None else [weights])]
    if left := unused(net, table.names, used):
        warn(f"{path}: columns that are not used: {listed(left)}", UnusedColumnWarning)
    reader = Reader(table, sources)
    for batch in table.batches(used):
        known = reader.evidence(batch)
        try:
            given = None if weights is None else floats_of(weights, batch.rows.column(weights))
            counted = np.ones(known.rows) if given is None else checked_weights(given, known.rows)
        except EvidenceError as error:
            raise in_file(error, path, batch.first) from None
        yield Piece(known.columns, counted, np.arange(batch.first, batch.stop), path)

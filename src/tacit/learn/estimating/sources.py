"""Rows to estimate from: evidence in memory, a file, or batches that come one after the other."""

from __future__ import annotations

import itertools
import os
import pickle
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.base.warnings import warn
from tacit.evidence.codes import MISSING
from tacit.evidence.column import Column, Evidence, blocks, take
from tacit.evidence.column_names import UnusedColumnWarning, listed_columns, warn_missing
from tacit.evidence.density_column import DensityColumn, density_columns
from tacit.evidence.distinct import distinct
from tacit.evidence.read import is_frame, named_columns, read, without_columns
from tacit.evidence.tables.columns import TableReader, choose, columns_of, floats_of, unused
from tacit.evidence.tables.csv_parquet import FileTable, open_table
from tacit.evidence.tables.messages import in_file
from tacit.evidence.wrong_rows import WrongRows
from tacit.learn.fitting.data import checked_weights
from tacit.model.elements.variable import Variable, similar
from tacit.query.network import Network

T = TypeVar("T")
MAX_BYTES_IN_MEMORY = 2**26  # of rows that are kept; more go to a temporary file
MIN_BATCH_ROWS = 2**14  # below which batches are put together


@dataclass(frozen=True, eq=False)
class RowBatch:
    """Some rows: their evidence, weights and numbers, which count from 0; and the name of the file they are from."""

    columns: Mapping[str, Column]
    weights: Floats
    numbers: NDArray[np.int64]
    file: str | None = None

    @property
    def rows(self) -> int:
        return len(self.weights)

    def arrays(self) -> list[NDArray[Any]]:
        """Everything as arrays, in a fixed order."""
        columns = [column for _, column in sorted(self.columns.items())]
        return [self.weights, *(array for column in columns for array in _arrays(column))]

    def take(self, rows: NDArray[np.int64]) -> RowBatch:
        return RowBatch(take(self.columns, rows), self.weights[rows], self.numbers[rows], self.file)

    def blocks(self, size: int) -> Iterator[RowBatch]:
        """Blocks of at most so many rows."""
        for some, block in blocks(self.columns, self.rows, size):
            yield RowBatch(block.columns, self.weights[some], self.numbers[some], self.file)

    def only(self, names: Container[str]) -> RowBatch:
        """The rows with some of the columns."""
        return replace(self, columns={name: column for name, column in self.columns.items() if name in names})

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle in little room: a state takes one byte, for up to 127 of them."""
        columns = {name: _packed(column) for name, column in self.columns.items()}
        weights = None if (self.weights == 1).all() else self.weights
        steps = np.diff(self.numbers, prepend=self.numbers[:1])
        places = (int(self.numbers[0]), self.rows, None if (steps[1:] == 1).all() else steps.astype(np.int32))
        return _unpacked, (columns, weights, places, self.file)

    def impossible(self, row: int) -> EvidenceError:
        """The error about a row of probability 0."""
        error = EvidenceError("the evidence has probability 0; known 0s rule it out", row=int(self.numbers[row]))
        return error if self.file is None else in_file(error, self.file)


def _arrays(column: Column) -> list[NDArray[Any]]:
    if isinstance(column, DensityColumn):
        return [column.values]
    return [array for array in (column.codes, column.soft) if array is not None]


def _packed(column: Column) -> Column:
    if column.codes is None:
        return column
    return Column(column.variable, column.codes.astype(np.min_scalar_type(-column.variable.card), copy=False))


def _unpacked(
    columns: dict[str, Column], weights: Floats | None, places: tuple[int, int, Any], file: str | None
) -> RowBatch:
    first, rows, steps = places
    numbers = first + (np.arange(rows) if steps is None else np.cumsum(steps, dtype=np.int64))
    return RowBatch(columns, np.ones(rows) if weights is None else weights, numbers, file)


class Spooled(Generic[T]):
    """Batches in memory while they are few, and else in a temporary file that nobody else sees."""

    def __init__(self) -> None:
        self._count = 0
        self._file: Any = tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY)  # noqa: SIM115  # see `close`

    def close(self) -> None:
        self._file.close()

    def append(self, batch: T) -> None:
        pickle.dump(batch, self._file, protocol=5)
        self._count += 1

    def __iter__(self) -> Iterator[T]:
        self._file.seek(0)
        for _ in range(self._count):
            yield pickle.load(self._file)


SpooledRows = Spooled[RowBatch]
RowBuffer = list[RowBatch] | SpooledRows  # the rows that are needed again


def is_stream(rows: Any) -> bool:
    """Whether rows come as batches, which need not all be in memory at once."""
    if isinstance(rows, str | os.PathLike | FileTable | Iterator):
        return True
    if isinstance(rows, list | tuple) and any(isinstance(table, Mapping) and _has_columns(table) for table in rows):
        return True  # dictionaries of columns; those of single values are rows
    if not isinstance(rows, Iterable) or isinstance(rows, np.ndarray) or _is_table(rows):
        return False
    # a sequence of rows of numbers is an array; one of tables, or of what must be read to be seen, is not
    return not isinstance(rows, Sequence) or bool(rows and _is_table(rows[0]))


def row_batches(net: Network, rows: Any, weights: Any = None) -> Iterator[RowBatch]:
    """All rows; `weights` are numbers, or the name of a column that holds them."""
    if isinstance(weights, str) and weights in net:
        raise TacitError(f"weights name {weights!r}, which is a variable; expected numbers, or a column of them")
    if isinstance(rows, str | os.PathLike):
        yield from _of_file(net, open_table(Path(rows)), weights)
    elif isinstance(rows, FileTable):
        yield from _of_file(net, rows, weights)
    elif is_stream(rows):
        yield from gathered(_of_batches(net, rows, weights))
    else:
        batch = _row_batch(net, rows, weights, 0)
        if is_frame(rows):
            warn_missing([name for name in net if name not in batch.columns])
        yield batch


def _has_columns(table: Mapping[Any, Any]) -> bool:
    return any(hasattr(column, "__len__") and not isinstance(column, str) for column in table.values())


def _is_table(rows: Any) -> bool:
    return isinstance(rows, Mapping | Evidence) or is_frame(rows) or getattr(rows, "ndim", 0) == 2


def _of_batches(net: Network, batches: Iterable[Any], weights: Any) -> Iterator[RowBatch]:
    whole = None if weights is None or isinstance(weights, str) else checked_weights(weights)
    first, tables = 0, _with_rows(batches)
    framed, seen = False, set[str]()
    for table in tables:
        try:
            batch = _row_batch(net, table, weights if whole is None else None, first)
        except EvidenceError:
            rest = itertools.chain([table], tables)
            raise _error_in_all(net, rest, weights if whole is None else None, first) from None
        if whole is not None:
            batch = RowBatch(batch.columns, whole[first : first + batch.rows], batch.numbers)
            if len(batch.weights) < len(batch.numbers):
                raise EvidenceError(f"there are {len(whole):,} weights for more rows; expected one per row")
        first += batch.rows
        framed |= is_frame(table)
        seen.update(batch.columns)
        yield batch
    if framed:
        warn_missing([name for name in net if name not in seen])
    if whole is not None and first < len(whole):
        raise EvidenceError(f"there are {len(whole):,} weights for {first:,} rows; expected one per row")


def _with_rows(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches that have rows."""
    for table in batches:
        columns = table.values() if isinstance(table, Mapping) else (table,)
        if all(len(column) for column in columns if hasattr(column, "__len__")):
            yield table


def _error_in_all(net: Network, batches: Iterable[Any], weights: Any, first: int) -> EvidenceError:
    """The error about batches from the row `first` on, which are read only to count what is wrong in them."""
    wrong = WrongRows()
    for table in batches:
        if wrong.is_full:
            return wrong.error().changed(place=f"the first {first:,} rows")
        try:
            _row_batch(net, table, weights, first)
        except EvidenceError as error:
            wrong.add(error.moved(first))
        first += _length(table)
    return wrong.error()


def _length(table: Any) -> int:
    """The number of rows of a table, right or wrong."""
    if isinstance(table, Evidence):
        return table.rows
    if not isinstance(table, Mapping):
        return len(table)
    return max((len(c) for c in table.values() if hasattr(c, "__len__") and not isinstance(c, str)), default=1)


def gathered(batches: Iterable[RowBatch], least: int | None = None) -> Iterator[RowBatch]:
    """Larger batches, of at least so many rows, from small ones with the same columns."""
    least, waiting = MIN_BATCH_ROWS if least is None else least, list[RowBatch]()
    for batch in batches:
        if waiting and set(batch.columns) != set(waiting[0].columns):
            yield _joined(waiting)
            waiting = []
        waiting.append(batch)
        if sum(one.rows for one in waiting) >= least:
            yield _joined(waiting)
            waiting = []
    if waiting:
        yield _joined(waiting)


def merged(batch: RowBatch) -> RowBatch:
    """Each row once, with the weight of all that are equal and the number of the first that counts."""
    known, places = distinct(Evidence(batch.rows, batch.columns))
    if places is None:
        return batch
    weights: Floats = np.bincount(places, batch.weights, known.rows).astype(np.float64, copy=False)
    numbers, counted = np.full(known.rows, batch.numbers.max()), batch.weights > 0
    np.minimum.at(numbers, places[counted], batch.numbers[counted])
    return RowBatch(known.columns, weights, numbers, batch.file)


def _joined(batches: Sequence[RowBatch]) -> RowBatch:
    if len(batches) == 1:
        return batches[0]
    names = batches[0].columns
    columns = {name: one_column([(batch.columns[name], batch.rows) for batch in batches]) for name in names}
    weights, numbers = (np.concatenate([getattr(batch, part) for batch in batches]) for part in ("weights", "numbers"))
    return RowBatch(columns, weights, numbers, batches[0].file)


def one_column(parts: Sequence[tuple[Column, int]]) -> Column:
    """Columns one below the other, each with its number of rows."""
    variable = parts[0][0].variable
    if variable.continuous:
        numbers = [_numbers(column, rows) for column, rows in parts]
        return DensityColumn(variable, np.concatenate(numbers))
    codes = [np.broadcast_to(column.codes, rows) for column, rows in parts if column.codes is not None]
    if len(codes) == len(parts):
        return Column(variable, codes=np.concatenate(codes))
    soft = [np.broadcast_to(column.likelihoods(), (variable.card, rows)) for column, rows in parts]
    return Column(variable, soft=np.concatenate(soft, axis=1))


def _numbers(column: Column, rows: int) -> Floats:
    assert isinstance(column, DensityColumn)
    return np.broadcast_to(column.values, (rows, column.values.shape[1]))


def _missing(variable: Variable) -> Column:
    """A column that says nothing."""
    if variable.continuous:
        return DensityColumn(variable, np.full((1, len(variable.columns)), np.nan))
    return Column(variable, codes=np.array([MISSING]))


def _row_batch(net: Network, rows: Any, weights: Any, first: int) -> RowBatch:
    if rows is None or (isinstance(rows, Mapping) and not rows):
        raise EvidenceError("there are no rows; expected evidence, a path, or batches of evidence")
    if isinstance(weights, str):
        named = named_columns(rows)
        if named is None:
            kind = type(rows).__name__
            raise TacitError(f"weights name a column, {weights!r}, but the rows are a {kind} without names")
        if weights not in named:
            raise EvidenceError(f"the rows have no column {weights!r} of weights{similar(weights, named)}")
        rows, weights = without_columns(rows, [weights]), named[weights]
    evidence = read(rows, [net.variable(name) for name in net])
    columns = _checked(net, evidence)
    if not columns and not isinstance(rows, Mapping):
        raise EvidenceError("the rows have no columns; expected some that are named like variables")
    if isinstance(rows, Mapping):  # a single value that is missing is not a column, but in other batches it may be one
        gaps = [name for name in rows if name in net and name not in columns]
        columns |= {name: _missing(net.variable(name)) for name in gaps}
    return RowBatch(columns, _weights(weights, evidence.rows), np.arange(first, first + evidence.rows))


def _checked(net: Network, evidence: Evidence) -> dict[str, Column]:
    """The columns, after a look whether the density of each could have its numbers."""
    for column in density_columns(evidence.columns):
        column.bound(net.density(column.variable.name))
    return dict(evidence.columns)


def _weights(weights: Any, rows: int) -> Floats:
    return np.ones(rows) if weights is None else checked_weights(weights, rows)


def _of_file(net: Network, table: FileTable, weights: Any) -> Iterator[RowBatch]:
    if weights is not None and not isinstance(weights, str):
        raise TacitError(f"rows come from {table.name}; then weights are the name of one of its columns")
    if weights is not None and weights not in table.names:
        raise EvidenceError(f"{table.name} has no column {weights!r} of weights{similar(weights, table.names)}")
    sources = choose(net, table.names, [], but=[])
    used = [*columns_of(sources.values()), *([] if weights is None else [weights])]
    if left := unused(net, table.names, used):
        warn(f"{table.name}: columns that are not used: {listed_columns(left)}", UnusedColumnWarning)
    reader = TableReader(table, sources)
    for batch in table.batches(used):
        evidence = reader.evidence(batch)
        try:
            columns = _checked(net, evidence)
            values = None if weights is None else floats_of(weights, batch.rows.column(weights))
            counted = _weights(values, evidence.rows)
        except EvidenceError as error:
            raise in_file(error, table.name, batch.first) from None
        yield RowBatch(columns, counted, np.arange(batch.first, batch.stop), table.name)

"""Evidence as checked arrays, a column for each variable.

A column is hard (a state per row) or soft (a likelihood per state and row). Axes: likelihoods are (states, rows), batch
last; a column that says the same of every row has one row, which broadcasts. Evidence that is read `lazily` refers to
the arrays that it was given in, whose likelihoods are checked when some rows are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.codes import MISSING
from tacit.evidence.frames import smallest
from tacit.evidence.labels import Codes, Mask, error_in_row
from tacit.evidence.likelihoods import Numbers, normalised, numbers_of
from tacit.model.elements.variable import Variable

CACHED_ROWS = 4096  # rows that stay in the cache between two looks at them


class Kind(IntEnum):
    """The content of a column's array, for code that reads it row by row."""

    CODES = 0  # (rows,), of int8, int16 or int32: the place of the state, -1 for no evidence
    LIKELIHOODS = 1  # (rows, states), of float32 or float64 as they came, unchecked; NaN in all states: no evidence
    FIRST = 2  # (rows,), the same, of the first of two states; NaN: no evidence
    NORMALISED = 3  # (states, rows), of floats that sum to 1, or ones: no evidence


class ColumnArray(NamedTuple):
    """The array of a column as it stands, of any strides, and perhaps read-only."""

    kind: Kind
    array: NDArray[Any]


class Column:
    """The evidence on one variable, in one of three forms.

    `codes` (rows,) holds the position of each observed state, -1 for none; `soft` (states, rows) holds
    likelihoods that sum to 1, or ones where there is no evidence. `given` holds likelihoods as they came, (rows,
    states) or those of the first of two states (rows,), in an array that may be the user's own: they are checked and
    normalised whenever they are asked for. In error messages, `numbers` are those of its rows, and `index` has the
    labels of all rows of a pandas frame, by their numbers. `number` is what a single row has in an interval, if known.
    """

    index: Any = None
    number: float | None = None

    def __init__(
        self,
        variable: Variable,
        codes: Codes | None = None,
        soft: Floats | None = None,
        given: NDArray[Any] | None = None,
        numbers: Numbers | None = None,
    ) -> None:
        if codes is not None and codes.itemsize > 4:
            codes = codes.astype(smallest(variable.card))
        self.variable, self.codes, self.given, self._soft = variable, codes, given, soft
        self.numbers = range(self.rows) if numbers is None else numbers

    def __repr__(self) -> str:
        return f"Column({self.variable.name!r}, {self.source().kind.name.lower()}, {plural(self.rows, 'row')})"

    def source(self) -> ColumnArray:
        """The array as it stands, unchecked; `block(...).soft` raises what is wrong with some rows."""
        if self.codes is not None:
            return ColumnArray(Kind.CODES, self.codes)
        if self.given is not None:
            return ColumnArray(Kind.FIRST if self.given.ndim == 1 else Kind.LIKELIHOODS, self.given)
        assert self._soft is not None
        return ColumnArray(Kind.NORMALISED, self._soft)

    @property
    def rows(self) -> int:
        kind, array = self.source()
        return int(array.shape[-1] if kind is Kind.NORMALISED else array.shape[0])

    @property
    def soft(self) -> Floats | None:
        """Likelihoods (states, rows), checked now if they were not before; None if there are codes."""
        if self.given is None:
            return self._soft
        try:
            return normalised(self.variable, self.given, self.numbers)
        except EvidenceError as error:
            raise error.indexed(self.index) from None

    @property
    def fully_observed(self) -> bool:
        """Whether every row observes a state."""
        return self.codes is not None and not bool(self.codes.min(initial=0) == MISSING)

    @property
    def known_in_all_rows(self) -> bool:
        """Whether every row observes a state, perhaps by likelihoods that rule out all others."""
        if self.codes is not None:
            return self.fully_observed
        return all(self.block(start, start + CACHED_ROWS).observed.all() for start in range(0, self.rows, CACHED_ROWS))

    @property
    def empty(self) -> bool:
        """Whether no row has any evidence."""
        return bool(np.all(self.soft == 1) if self.codes is None else np.all(self.codes == MISSING))

    @property
    def observed(self) -> Mask:
        """Where a state is known with certainty: (rows,)."""
        if self.codes is not None:
            return np.asarray(self.codes != MISSING)
        return np.asarray(((self.likelihoods() > 0).sum(axis=0) == 1) & (self.variable.card > 1))

    def block(self, start: int, stop: int) -> Column:
        """The rows from `start` to `stop`."""
        return self.take(slice(start, stop))

    def take(self, rows: NDArray[np.int64] | slice) -> Column:
        """Some rows of the column; a single row that holds for all stays as it is."""
        if self.rows == 1:
            return self
        if self.codes is not None:
            return Column(self.variable, self.codes[rows])
        if self.given is None:
            assert self._soft is not None
            return Column(self.variable, soft=self._soft[:, rows])
        return self._indexed(Column(self.variable, given=self.given[rows], numbers=numbers_of(self.numbers, rows)))

    def kept(self) -> Column:
        """A checked column in an array of its own."""
        if self.codes is not None:
            return self._indexed(Column(self.variable, self.codes.copy()))
        return self if self.given is None else self._indexed(Column(self.variable, soft=self.soft))

    def _indexed(self, other: Column) -> Column:
        """Another column, whose rows are numbered as those of this one."""
        other.index = self.index
        if self.number is not None and other.rows == 1:
            other.number = self.number
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "index"}  # may be larger than the column

    def likelihoods(self) -> Floats:
        """Likelihoods (states, rows), whatever form the evidence was given in."""
        if self.codes is None:
            soft = self.soft
            assert soft is not None
            return soft
        states = np.arange(self.variable.card, dtype=self.codes.dtype)[:, None]
        return np.asarray((states == self.codes) | (self.codes == MISSING), dtype=np.float64)

    def states(self) -> NDArray[np.int64]:
        """The observed state of every row; an error where there is none, or where it is soft."""
        return self.certain_codes().astype(np.int64, copy=False)

    def certain_codes(self) -> Codes:
        """The observed state of every row, in the type that codes are kept in, which may be a byte."""
        codes = self.codes
        if codes is None:
            soft = self.likelihoods()
            codes = np.where((soft > 0).sum(axis=0) == 1, soft.argmax(axis=0), MISSING)
        if codes.min(initial=0) == MISSING:  # the smallest code
            why = "since the query was compiled with this variable in hard="
            remedy = "name it in evidence= to allow soft or missing values"
            row = int(self.numbers[int(codes.argmin())])
            error = error_in_row(self.variable, row, f"a state is needed in every row, {why}; {remedy}")
            raise error.indexed(self.index)
        return codes


@dataclass(frozen=True)
class Evidence:
    """Evidence as it was read: one column per variable that has any, all with `rows` rows or one."""

    rows: int
    columns: Mapping[str, Column]

    @property
    def fully_observed(self) -> list[str]:
        """The variables of which every row observes a state."""
        return [name for name, column in self.columns.items() if column.fully_observed]

    def blocks(self, size: int) -> Iterator[Evidence]:
        """Blocks of rows, so that their results need not fit into memory at once."""
        return (block for _, block in blocks(self.columns, self.rows, size))

    def likelihoods(self, row: int = 0) -> dict[str, Floats]:
        """The likelihoods (states,) of one row, for the variables that have evidence."""
        return {name: column.block(row, row + 1).likelihoods()[:, 0] for name, column in self.columns.items()}


def blocks(columns: Mapping[str, Column], rows: int, size: int) -> Iterator[tuple[slice, Evidence]]:
    """Blocks of rows: which they are, and their evidence."""
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        yield slice(start, stop), Evidence(stop - start, take(columns, slice(start, stop)))


def take(columns: Mapping[str, Column], rows: NDArray[np.int64] | slice) -> dict[str, Column]:
    """The evidence of some rows."""
    return {name: column.take(rows) for name, column in columns.items()}

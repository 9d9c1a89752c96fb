"""Likelihoods as people give them, checked and normalised, some rows at a time. Errors name the first bad row.

Given are (rows, states), or (rows,) for the first of two states, in floats of any size; made are (states, rows), in
float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, noting_underflow
from tacit.base.text import shown, shown_number
from tacit.evidence.labels import error_in_row
from tacit.model.elements.variable import Variable

BLOCK_ROWS = 2**14  # rows that stay in the cache while they are looked at several times
Numbers = range | NDArray[np.int64]  # of rows, as messages name them


def normalised(variable: Variable, given: NDArray[Any], numbers: Numbers) -> Floats:
    """Likelihoods (states, rows) that sum to 1, or ones where there is no evidence; `numbers` are those of the rows.

    >>> normalised(Variable("A"), np.array([[1.0, 3.0], [np.nan, np.nan]]), range(2))
    array([[0.25, 1.  ],
           [0.75, 1.  ]])
    >>> normalised(Variable("A"), np.array([0.25, np.nan]), range(2))
    array([[0.25, 1.  ],
           [0.75, 1.  ]])
    """
    of_block = _of_first if given.ndim == 1 else _of_all
    if len(given) <= BLOCK_ROWS:
        return of_block(variable, given, numbers)
    scaled = np.empty((variable.card, len(given)))
    for rows in row_blocks(given):
        scaled[:, rows] = of_block(variable, given[rows], numbers[rows])
    return scaled


def numbers_of(numbers: Numbers, rows: NDArray[np.int64] | slice) -> Numbers:
    """The numbers of some of the rows."""
    if isinstance(rows, slice):
        return numbers[rows]
    every = np.arange(numbers.start, numbers.stop, numbers.step) if isinstance(numbers, range) else numbers
    return every[rows]


def row_blocks(array: NDArray[Any]) -> Iterator[slice]:
    """Rows that stay in the cache, one slice after the other."""
    return (slice(start, start + BLOCK_ROWS) for start in range(0, len(array), BLOCK_ROWS))


def _of_first(variable: Variable, given: NDArray[Any], numbers: Numbers) -> Floats:
    values = given.astype(np.float64, copy=False)
    both = np.stack([values, 1.0 - values])
    if both.size and not both.min() >= 0:  # out of range, or missing
        missing = np.isnan(values)
        for row in np.flatnonzero(~missing & ~((values >= 0) & (values <= 1)))[:1].tolist():
            problem = f"is not a likelihood in [0, 1] of state {shown(variable.states[0])}"
            raise error_in_row(variable, int(numbers[row]), f"{shown_number(values[row])} {problem}")
        both[:, missing] = 1.0
    return both


def _of_all(variable: Variable, given: NDArray[Any], numbers: Numbers) -> Floats:
    table = given.T.astype(np.float64, order="C")
    with np.errstate(over="ignore", invalid="ignore"):  # sums that overflow are repaired, and infinities refused
        total = _sums(table)
        usual = table.size > 0 and table.min() >= 0 and total.min() > 0 and np.isfinite(total.max())  # NaN fails here
        if not usual:
            total = _repaired(variable, table, total, numbers)
    with noting_underflow() as noted:
        scaled: Floats = table / total
    if noted:  # perhaps of a positive likelihood that is too small beside the others for a float
        lost = ((table > 0) & (scaled < np.finfo(np.float64).smallest_normal)).any(axis=0)
        for row in np.flatnonzero(lost)[:1].tolist():
            problem = "are further apart than floats can hold; give 0 for the small ones"
            raise error_in_row(variable, int(numbers[row]), f"the likelihoods {table[:, row].tolist()} {problem}")
    return scaled


def _sums(table: Floats) -> Floats:
    """The sum of every row, state by state: NumPy would add those of a single row in another order."""
    return np.asarray(reduce(np.add, table))


def _repaired(variable: Variable, table: Floats, total: Floats, numbers: Numbers) -> Floats:
    """Set missing rows to 1, scale sums that overflowed, refuse what is wrong; returns the sums to divide by."""
    missing = np.isnan(table).all(axis=0)
    table[:, missing] = 1.0
    problems = {
        "likelihoods must be finite": ~np.isfinite(table).all(axis=0),
        "likelihoods must not be negative": (table < 0).any(axis=0),
        "all likelihoods are zero; at least one must be positive": (table == 0).all(axis=0),
    }
    for row in np.flatnonzero(np.any(list(problems.values()), axis=0))[:1].tolist():
        _of_all(variable, table[:, :row].T, numbers)  # an earlier row may be wrong in another way
        problem = next(text for text, bad in problems.items() if bad[row])
        raise error_in_row(variable, int(numbers[row]), f"{table[:, row].tolist()}: {problem}")
    huge = ~np.isfinite(total) & ~missing
    table[:, huge] /= table[:, huge].max(axis=0, initial=0.0)
    total[huge] = _sums(table[:, huge])
    total[missing] = 1.0
    return total


def as_given(values: Any, missing: NDArray[np.bool_] | None = None) -> NDArray[Any] | None:
    """An array of float32 or float64, not copied if it is one, NaN for missing values; None if one is not a number."""
    try:
        array = np.asarray(values)
        if array.dtype in (np.float32, np.float64) and array.flags.aligned and (missing is None or not missing.any()):
            return array
        if array.dtype.kind in "cmM":
            return None
        copied = array.astype(np.float32 if array.dtype == np.float32 else np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    if missing is not None:
        copied[missing] = np.nan
    return copied

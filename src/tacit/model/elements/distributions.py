"""Checks of the numbers and shapes of tables, whose rows are distributions. NaN marks a number to be learned."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import NetworkError, TableError
from tacit.base.floats import Floats
from tacit.model.elements.variable import Variable

SUM_TOLERANCE = 2e-6
EPSILON = float(np.finfo(np.float64).eps)
MAX_PYTHON_ENTRIES = 32  # of a table that Python checks more quickly than NumPy


def as_floats(values: ArrayLike, what: str) -> Floats:
    """A read-only float64 copy of `values`."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
        if (raw := np.asarray(values)).dtype.kind in "US":  # which NumPy reads as numbers
            raise TypeError(f"it holds text, such as {raw.flat[0].item()!r}")
    except (TypeError, ValueError, OverflowError) as error:
        reason = "its rows have different lengths" if "inhomogeneous" in str(error) else str(error)
        raise NetworkError(f"{what} is not an array of numbers: {reason}") from None
    array.flags.writeable = False
    return array


def distributions(table: Floats, part: str) -> Floats:
    """A table whose rows sum to 1: what misses it by up to 2e-6 is scaled, what misses it by more is refused.

    Every number must lie in [0, 1], and known ones beside NaN ones must leave these some mass.
    """
    # rows that miss 1 by rounding alone are left as they are; scaled and learned ones do, so that none is scaled twice
    rounding = (8 + table.shape[-1]) * EPSILON
    if table.size <= MAX_PYTHON_ENTRIES:  # the usual case, quickly: a network may have many small tables
        rows = table.reshape(-1, table.shape[-1]).tolist()
        if all(min(row) >= 0 and max(row) <= 1 and abs(sum(row) - 1) <= rounding for row in rows):
            return table
    if table.min() >= 0 and table.max() <= 1:  # and no number is to be learned: quickly, too
        total = table.sum(axis=-1)
        miss = np.abs(total - 1)
        if miss.max() <= SUM_TOLERANCE:
            return _scaled(table, total, miss > rounding)
    for index in outside(table):
        raise TableError(part, index[:-1], f"{table[index]:g} is not a probability in [0, 1]")
    total, learned = np.nansum(table, axis=-1), np.isnan(table).any(axis=-1)
    miss = np.where(learned, 0.0, np.abs(total - 1))
    for row in map(tuple, np.argwhere(miss > SUM_TOLERANCE)[:1].tolist()):
        columns = table.sum(axis=0) if table.ndim > 1 else np.zeros(1)
        transposed = bool((np.abs(columns - 1) <= SUM_TOLERANCE).all())
        hint = "; its columns sum to 1: is it transposed? A row belongs to one state of the parents, and sums to 1"
        raise TableError(part, row, f"sums to {total[row]:.6g}, expected 1{hint * transposed}")
    for row in map(tuple, np.argwhere(learned & (total > 1 - SUM_TOLERANCE))[:1].tolist()):
        problem = f"the known entries sum to {total[row]:.6g}, which leaves nothing for the NaN entries"
        raise TableError(part, row, problem)
    return _scaled(table, total, miss > rounding)


def _scaled(table: Floats, total: Floats, rough: NDArray[np.bool_]) -> Floats:
    """The table with some rows divided by their sum; positive numbers stay positive, and below 1 beside others."""
    if not rough.any():
        return table
    rows = table[rough] / total[rough][:, None]
    shared = (rows > 0).sum(axis=-1, keepdims=True) > 1
    scaled = table.copy()
    scaled[rough] = np.where(shared, np.minimum(rows, np.nextafter(1.0, 0.0)), rows)
    scaled.flags.writeable = False
    return scaled


def structural_ones(table: Floats) -> NDArray[np.bool_]:
    """The 1s whose rows are 0 elsewhere: they never change. A 1 beside a tiny positive number is none of them.

    >>> structural_ones(np.array([[1.0, 0.0], [1.0, 1e-20]])).tolist()
    [[True, False], [False, False]]
    """
    return np.asarray((table == 1) & ((table != 0).sum(axis=-1, keepdims=True) == 1))


def structural(table: Floats) -> NDArray[np.bool_]:
    """The 0s and 1s that never change, whatever is learned."""
    return np.asarray((table == 0) | structural_ones(table))


def outside(values: Floats) -> list[tuple[int, ...]]:
    """The place of the first number that is neither in [0, 1] nor NaN, if there is one."""
    bad = ~np.isnan(values) & ~((values >= 0) & (values <= 1))
    return [tuple(index) for index in np.argwhere(bad)[:1].tolist()]


def check_shape(part: str, table: Floats, own: Variable, parents: Sequence[Variable]) -> None:
    """Refuse a table that is not (states of each parent..., own states)."""
    expected = (*(p.card for p in parents), own.card)
    if table.shape != expected:
        axes = ", ".join(f"states of {v.name}" for v in (*parents, own))
        raise NetworkError(f"{part} has shape {table.shape}, expected {expected} = ({axes}){_hint(table, expected)}")


def _hint(table: Floats, expected: tuple[int, ...]) -> str:
    """What a table of the wrong shape may be, and how to make the right one of it; nothing, if that is not clear.

    >>> _hint(np.array([0.1, 0.2, 0.3]), (3, 2))
    '; is it the probability of the first state only? Give both: np.stack([table, 1 - table], axis=-1)'
    """
    *parents, own = expected
    hint = ""
    if not parents and table.ndim == 2 and table.size == own:
        hint = "is it a row or a column? A node without parents has one axis: np.ravel(table)"
    elif not parents and table.ndim == 0 and own == 2:
        hint = f"is it the probability of the first state only? Give both: [{table:g}, {1 - table:g}]"
    elif parents and own == 2 and table.shape == tuple(parents):
        hint = "is it the probability of the first state only? Give both: np.stack([table, 1 - table], axis=-1)"
    elif table.ndim == 1 and table.size == math.prod(expected):
        hint = f"is it flat, the states of the node varying fastest? Then give np.reshape(table, {expected})"
    elif table.shape == (own, math.prod(parents)):
        shape = f".reshape{expected}" * (len(parents) > 1)
        hint = f"does it have a column for each state of the parents, as in pgmpy? Then give np.transpose(table){shape}"
    elif table.shape == (own, *parents):
        hint = "do the states of the node come first? They are the last axis here: np.moveaxis(table, 0, -1)"
    return f"; {hint}" if hint else ""

"""What all kinds of CPT share: numbers that are checked once and never change.

The rows of a table are distributions, NaN marks a number to be learned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import NetworkError, TableError
from tacit.base.floats import Floats

SUM_TOLERANCE = 2e-6
EPSILON = float(np.finfo(np.float64).eps)
FEW = 32  # numbers that Python looks at more quickly than NumPy


class Immutable:
    """What is set once, when it is made: queries that were compiled from it could not follow a change."""

    def _set(self, **parts: Any) -> None:
        self.__dict__.update(parts)

    def __setattr__(self, name: str, value: object) -> None:
        raise self._refusal(name)

    def __delattr__(self, name: str) -> None:
        raise self._refusal(name)

    def _refusal(self, name: str) -> NetworkError:
        kind = type(self).__name__
        return NetworkError(
            f"{name!r} of a {kind} cannot be changed: a CPT is immutable; make a new one, and put it into a copy of "
            "the network with net.with_cpts({node: cpt})"
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies, and what was pickled, can be written to as little as the original."""
        for part in state.values():
            for array in part if isinstance(part, tuple) else (part,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        self._set(**state)


def as_floats(values: ArrayLike, what: str) -> Floats:
    """A read-only float64 copy of `values`."""
    try:
        array = np.array(values, dtype=np.float64, order="C")
        if (given := np.asarray(values)).dtype.kind in "US":  # which NumPy reads as numbers
            raise TypeError(f"it holds text, such as {given.flat[0].item()!r}")
    except (TypeError, ValueError, OverflowError) as error:
        reason = "its rows have different lengths" if "inhomogeneous" in str(error) else str(error)
        raise NetworkError(f"{what} is not an array of numbers: {reason}") from None
    array.flags.writeable = False
    return array


def same(a: Floats, b: Floats) -> bool:
    """Equal shapes and numbers; a NaN (to be learned) equals a NaN."""
    return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=True))


def distributions(table: Floats, part: str) -> Floats:
    """A table whose rows sum to 1: what misses it by up to 2e-6 is scaled, what misses it by more is refused.

    Every number must lie in [0, 1], and known ones beside NaN ones must leave these some mass.
    """
    if table.size <= FEW and _is_right(table):
        return table  # the usual case, quickly: a network may have many small tables
    if table.min() >= 0 and table.max() <= 1:  # and no number is to be learned: quickly, too
        total = table.sum(axis=-1)
        miss = np.abs(total - 1)
        if miss.max() <= SUM_TOLERANCE:
            return _scaled(table, total, miss > _rounding(table.shape[-1]))
    for index in outside(table):
        raise TableError(part, index[:-1], f"{table[index]:g} is not a probability in [0, 1]")
    total, learned = np.nansum(table, axis=-1), np.isnan(table).any(axis=-1)
    miss = np.where(learned, 0.0, np.abs(total - 1))
    for row in map(tuple, np.argwhere(miss > SUM_TOLERANCE)[:1].tolist()):
        raise TableError(part, row, f"sums to {total[row]:.6g}, expected 1{_transposed(table)}")
    for row in map(tuple, np.argwhere(learned & (total > 1 - SUM_TOLERANCE))[:1].tolist()):
        raise TableError(
            part, row, f"the known entries sum to {total[row]:.6g}, which leaves nothing for the NaN entries"
        )
    return _scaled(table, total, miss > _rounding(table.shape[-1]))


def _transposed(table: Floats) -> str:
    """The end of a message about a row whose sum is wrong, where the columns would be right."""
    columns = table.sum(axis=0) if table.ndim > 1 else np.zeros(1)
    if not (np.abs(columns - 1) <= SUM_TOLERANCE).all():
        return ""
    return "; its columns sum to 1: is it transposed? A row belongs to one state of the parents, and sums to 1"


def _is_right(table: Floats) -> bool:
    """Whether all numbers lie in [0, 1], and all rows sum to 1 but for rounding: in Python, for few numbers."""
    limit = _rounding(table.shape[-1])
    rows = table.reshape(-1, table.shape[-1]).tolist()
    return all(min(row) >= 0 and max(row) <= 1 and abs(sum(row) - 1) <= limit for row in rows)


def _rounding(states: int) -> float:
    """By how much a row may miss 1 because of rounding alone: such rows are left as they are.

    Scaled rows, and those that learning makes, miss it by less, so that nothing is ever scaled twice.
    """
    return (8 + states) * EPSILON


def _scaled(table: Floats, total: Floats, rough: NDArray[np.bool_]) -> Floats:
    """The table with some rows divided by their sum. What was possible stays so: no number becomes 0, or the only one.

    A 1 beside other positive numbers is no structural 1; it is scaled as they are.
    """
    if not rough.any():
        return table
    rows = table[rough] / total[rough][:, None]
    shared = (rows > 0).sum(axis=-1, keepdims=True) > 1
    scaled = table.copy()
    scaled[rough] = np.where(shared, np.minimum(rows, np.nextafter(1.0, 0.0)), rows)
    scaled.flags.writeable = False
    return scaled


def structural_ones(table: Floats) -> NDArray[np.bool_]:
    """The 1s whose rows are 0 elsewhere: they never change. A 1 beside a number too small to count in a sum is no such.

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

"""Floats and arrays of them: underflow, ranges, division by totals that may be 0, and their form in JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
F = TypeVar("F", bound=np.floating)


@contextmanager
def noting_underflow() -> Iterator[list[str]]:
    """A list that is no longer empty when NumPy has made a number too small for its type, as casts to float32 do."""
    noted: list[str] = []
    with np.errstate(under="call", call=lambda kind, flag: noted.append(kind)):
        yield noted


def scaled(mantissas: Floats, exponents: NDArray[np.int64], dtype: np.dtype[np.floating]) -> NDArray[np.floating]:
    """mantissas * 2**exponents; 0 where that is out of the range of floats of this type."""
    inside = representable(mantissas, exponents, dtype)
    powers = np.where(inside, exponents, 0).astype(np.int32)
    return np.ldexp(np.where(inside, mantissas, 0.0), powers).astype(dtype)


def representable(mantissas: Floats, exponents: NDArray[np.int64], dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """Whether each of mantissas * 2**exponents is a float of this type with all its digits.

    >>> representable(np.array([0.75, 0.5]), np.array([-149, 3]), np.dtype("float32"))
    array([False,  True])
    """
    fractions, more = np.frexp(mantissas)
    top, limits = exponents + more, np.finfo(dtype)
    return np.asarray((fractions == 0) | ((top > limits.minexp) & (top < limits.maxexp)))


def flat(array: NDArray[F]) -> NDArray[F]:
    """All axes but the first as one, also where there are no rows: (rows, entries)."""
    return array.reshape(len(array), math.prod(array.shape[1:]))


def divide(array: NDArray[F], total: NDArray[np.floating], otherwise: float = np.nan) -> NDArray[F]:
    """An array by totals that broadcast to its shape; `otherwise` where a total is 0, of something impossible.

    >>> divide(np.array([0.2, 0.0]), np.array([0.4, 0.0]))
    array([0.5, nan])
    """
    return np.asarray(np.divide(array, total, out=np.full_like(array, otherwise), where=total > 0))


def as_json(value: Any) -> Any:
    """Numbers as JSON has them, in arrays and dictionaries, too: null for those that are not finite.

    >>> as_json(np.array([0.5, np.nan])), as_json({"a": float("-inf")}), as_json("text")
    ([0.5, None], {'a': None}, 'text')
    """
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, dict):
        return {name: as_json(entry) for name, entry in value.items()}
    if isinstance(value, np.ndarray) and value.dtype.kind == "f":
        finite = np.isfinite(value)
        if not finite.all():
            value = value.astype(object)
            value[~finite] = None
        return value.tolist()
    return value

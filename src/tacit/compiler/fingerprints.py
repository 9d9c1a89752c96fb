"""Numbers as elements of a prime field: what is equal as a rational, or as a polynomial at a random point, is equal here.

In the field of 2**64 - 59 elements, small numbers have large order; in that of 2**61 - 1, the powers of 2 would repeat
after 61 of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.floats import Floats

PRIME = 2**64 - 59
ALMOST = 1e-6  # how far from 1 the sum of a row may be, for it to be meant to be 1

Prints = NDArray[np.uint64]


def of_fraction(number: Fraction) -> int:
    """The element that stands for a rational number.

    >>> (of_fraction(Fraction(1, 3)) * 3) % PRIME
    1
    """
    return number.numerator * pow(number.denominator, -1, PRIME) % PRIME


def of_rows(table: Floats) -> Prints:
    """The entries of a table whose rows sum to 1, so that their elements do, too.

    Rows that sum to 1 as they are written in decimals are taken at their word; of all others, each entry is divided by
    the sum, in rationals.
    """
    flat = np.ascontiguousarray(table, dtype=np.float64).reshape(-1, table.shape[-1])
    found = np.empty(flat.shape, dtype=np.uint64)
    known: dict[bytes, list[int]] = {}
    for k, row in enumerate(flat):
        key = row.tobytes()
        if key not in known:
            known[key] = _row(row.tolist())
        found[k] = known[key]
    return found.reshape(table.shape)


def _row(row: list[float]) -> list[int]:
    written = [Fraction(repr(x)) for x in row]
    if sum(written) != 1:
        written = [Fraction(x) for x in row]
        total = sum(written)
        if abs(total - 1) < ALMOST:
            written = [x / total for x in written]
    return [of_fraction(x) for x in written]


def symbols(count: int, seed: int) -> Prints:
    """Random elements, one for each of some symbols."""
    return np.random.default_rng([17, seed]).integers(2, PRIME, count, dtype=np.uint64)

"""Numbers as elements of a prime field: equal rationals are equal there, and so are equal polynomials at any point.

In the field of 2**64 - 59 elements, small numbers have large order; in that of 2**61 - 1, the powers of 2 would repeat
after 61 of them.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.diagrams.diagram_kernels import all_times

PRIME = 2**64 - 59
MAX_DIGITS = 15  # of a decimal: all that a float tells apart
SUM_TOLERANCE = 1e-6  # how far from 1 the sum of a row may be, for it to be meant to be 1

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
    prints = np.empty(flat.shape, dtype=np.uint64)
    left = np.arange(len(flat))
    for digits in range(MAX_DIGITS + 1):
        written = np.rint(flat[left] * 10.0**digits)
        exact = (written / 10.0**digits == flat[left]).all(axis=1) & (written.sum(axis=1) == 10.0**digits)
        prints[left[exact]] = all_times(written[exact].astype(np.uint64), np.uint64(pow(10**digits, -1, PRIME)))
        left = left[~exact]
        if not len(left):
            break
    known: dict[bytes, list[int]] = {}
    for k in left.tolist():
        key = flat[k].tobytes()
        if key not in known:
            known[key] = _row(flat[k].tolist())
        prints[k] = known[key]
    return prints.reshape(table.shape)


def _row(row: list[float]) -> list[int]:
    """Binary fractions with a common denominator, divided by their sum: one inverse in the field is enough."""
    scale = max(Fraction(x).denominator for x in row)
    whole = [int(Fraction(x) * scale) for x in row]
    total = sum(whole)
    if abs(total / scale - 1) < SUM_TOLERANCE:
        if total % PRIME:
            scale = total
        else:  # rounded to 1 - 59 / 2**64, which is 0 in the field: the largest becomes what the others leave
            whole[whole.index(max(whole))] += scale - total
    inverse = pow(scale, -1, PRIME)
    return [x * inverse % PRIME for x in whole]


def symbols(count: int, seed: int) -> Prints:
    """Random elements, one for each of some symbols."""
    return np.random.default_rng([17, seed]).integers(2, PRIME, count, dtype=np.uint64)

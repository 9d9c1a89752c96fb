"""Arithmetic with twice the digits of floats, on arrays: error-free sums and products (Dekker 1971, Knuth).

Relative errors are about 1e-31. Where floats overflow or are not finite, the results are those of floats alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats

SPLITTER = 2.0**27 + 1  # a product with it tells the upper half of a float's digits from the lower one
TERMS = 21  # of the series of the logarithm, whose arguments are at most 0.172
PLAIN_TERMS = 11  # the last of these are so small that floats will do


@dataclass(frozen=True, eq=False)
class Twofold:
    """Numbers as sums of two floats, which are not carried out: the lower one is what the higher one rounds off.

    Operators work elementwise, with floats and arrays too, and broadcast.

    >>> third = Twofold.of(1.0) / 3.0
    >>> print(third.high, third.low)
    0.3333333333333333 1.850371707708594e-17
    >>> print((third * 3.0 - 1.0).high)
    0.0
    """

    high: Floats
    low: Floats

    __array_ufunc__ = None  # so that `array * twofold` is left to this class

    def __iter__(self) -> Iterator[Floats]:
        """Both floats, to be unpacked."""
        return iter((self.high, self.low))

    @classmethod
    def of(cls, numbers: Floats | float) -> Twofold:
        """Floats, as they are."""
        high = np.asarray(numbers, dtype=np.float64)
        return cls(high, np.zeros_like(high))

    def __getitem__(self, place: Any) -> Twofold:
        """What an index or a slice chooses, as of an array."""
        return Twofold(self.high[place], self.low[place])

    def filled(self, mask: NDArray[np.bool_], value: float) -> Twofold:
        """The numbers, but for a value where a mask, which broadcasts, is true."""
        return Twofold(np.where(mask, value, self.high), np.where(mask, 0.0, self.low))

    def __neg__(self) -> Twofold:
        return Twofold(-self.high, -self.low)

    def __add__(self, other: Twofold | Floats | float) -> Twofold:
        if not isinstance(other, Twofold):
            total, error = two_sum(self.high, other)
            return _renormalized(total, error + self.low)
        total, error = two_sum(self.high, other.high)
        low, rest = two_sum(self.low, other.low)
        total, error = _renormalized(total, error + low)
        return _renormalized(total, error + rest)

    def __radd__(self, other: Floats | float) -> Twofold:
        return self + other

    def __sub__(self, other: Twofold | Floats | float) -> Twofold:
        return self + -other

    def __rsub__(self, other: Floats | float) -> Twofold:
        return -self + other

    def __mul__(self, other: Twofold | Floats | float) -> Twofold:
        factor = other if isinstance(other, Twofold) else Twofold.of(other)
        product, error = two_product(self.high, factor.high)
        with np.errstate(over="ignore", invalid="ignore"):
            return _renormalized(product, error + (self.high * factor.low + self.low * factor.high))

    def __rmul__(self, other: Floats | float) -> Twofold:
        return self * other

    def __truediv__(self, other: Twofold | Floats | float) -> Twofold:
        divisor = other if isinstance(other, Twofold) else Twofold.of(other)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            first = self.high / divisor.high
            rest = self - divisor * first
            second = rest.high / divisor.high
            third = (rest - divisor * second).high / divisor.high
        return _renormalized(first, second) + _finite(third)

    def sum(self, axis: int) -> Twofold:
        """The sums along an axis."""
        total = Twofold(np.moveaxis(self.high, axis, 0), np.moveaxis(self.low, axis, 0))
        while (count := len(total.high)) > 1:
            half = count // 2
            pairs = total[slice(half)] + total[slice(half, 2 * half)]
            odd = total[slice(2 * half, None)]
            total = Twofold(np.concatenate([pairs.high, odd.high]), np.concatenate([pairs.low, odd.low]))
        return total[0] if count else Twofold.of(np.zeros(total.high.shape[1:]))

    def max(self, axis: int) -> Twofold:
        """The largest numbers along an axis."""
        high = self.high.max(axis, keepdims=True)
        low = np.where(self.high == high, self.low, -np.inf).max(axis)
        return Twofold(high.squeeze(axis), _finite(low))


LOG_2 = Twofold(np.asarray(0.6931471805599453), np.asarray(2.3190468138462996e-17))


def two_sum(a: Floats | float, b: Floats | float) -> Twofold:
    """The sum of floats, exactly."""
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(a + b)
        part = total - a
        return Twofold(total, _finite((a - (total - part)) + (b - part)))


def two_product(a: Floats | float, b: Floats | float) -> Twofold:
    """The product of floats, exactly if it is neither tiny (below 1e-290) nor huge (above 1e300)."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        product = np.asarray(a * b)
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        return Twofold(product, _finite(error))


def log(numbers: Floats | Twofold) -> Twofold:
    """Natural logarithms."""
    if isinstance(numbers, Twofold):
        return log(numbers.high) + numbers.low / numbers.high
    regular = (numbers > 0) & np.isfinite(numbers)
    mantissa, exponent = np.frexp(np.where(regular, numbers, 1.0))
    small = mantissa < np.sqrt(0.5)
    mantissa, exponent = np.where(small, 2 * mantissa, mantissa), exponent - small
    logs = LOG_2 * exponent.astype(np.float64) + _log_near_one(mantissa)
    with np.errstate(divide="ignore", invalid="ignore"):
        return Twofold(np.where(regular, logs.high, np.log(numbers)), np.where(regular, logs.low, 0.0))


def exp_of_difference(difference: Twofold) -> Floats:
    """exp(high + low) as floats, to full precision: of log-densities, their difference must be taken before."""
    return np.exp(difference.high) * (1 + difference.low)


def _log_near_one(numbers: Floats) -> Twofold:
    """Logarithms of floats between 0.7 and 1.5, by the series of 2 atanh((x - 1) / (x + 1))."""
    ratio = Twofold.of(numbers - 1) / two_sum(numbers, 1.0)
    square = ratio * ratio
    degrees = range(2 * TERMS - 1, 0, -2)
    tail = np.zeros_like(numbers)
    for degree in degrees[:PLAIN_TERMS]:
        tail = tail * square.high + 1 / degree
    series = Twofold.of(tail)
    for degree in degrees[PLAIN_TERMS:]:
        series = series * square + Twofold.of(1.0) / degree
    return series * ratio * 2.0


def _renormalized(high: Floats, low: Floats) -> Twofold:
    """A sum whose second part is smaller than the first one, as one of which the second part is rounded off."""
    error = _finite(low)
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.asarray(high + error)
        return Twofold(total, _finite(error - (total - high)))


def _halves(numbers: Floats | float) -> tuple[Floats, Floats]:
    """Numbers as sums of two with half of the digits each, whose products are exact (Veltkamp)."""
    scaled = numbers * SPLITTER
    high = scaled - (scaled - numbers)
    return np.asarray(high), np.asarray(numbers - high)


def _finite(errors: Floats) -> Floats:
    """Rounding errors; 0 where they could not be computed, since something overflowed."""
    return np.where(np.isfinite(errors), errors, 0.0)

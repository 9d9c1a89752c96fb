"""Arrays that cannot underflow: every entry is mantissa * 2**exponent, with an exponent of its own.

A `Wide` array answers the NumPy functions that the NumPy engine uses, so that the engine runs on it unchanged: slower
by a factor of ten and more, for the few rows whose numbers leave the range of floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiler.operations import spread

ZERO_EXPONENT = -(2**44)  # smaller than any other exponent, and far from overflow in sums
PRODUCTS_AT_ONCE = 2**20  # products that are written out at a time, before they are summed


@dataclass(eq=False)
class Wide(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of numbers with an exponent each; mantissas are 0 or between 1/2 and 1 in size.

    >>> tiny = Wide.of([1e-300, 2e-300])
    >>> (tiny * tiny * tiny).floats(2990).round(2)
    array([1.2 , 9.61])
    """

    dtype: ClassVar[np.dtype[np.float64]] = np.dtype(np.float64)  # of the mantissas: what counts for precision

    mantissa: NDArray[np.float64]
    exponent: NDArray[np.int64]

    @staticmethod
    def of(values: ArrayLike | Wide, exponent: ArrayLike = 0) -> Wide:
        """values * 2**exponent."""
        if isinstance(values, Wide):
            return Wide._scaled(values.mantissa, values.exponent + np.asarray(exponent, dtype=np.int64))
        return Wide._scaled(np.asarray(values, dtype=np.float64), np.asarray(exponent, dtype=np.int64))

    @staticmethod
    def _scaled(mantissa: NDArray[np.float64], exponent: NDArray[np.int64]) -> Wide:
        fraction, more = np.frexp(mantissa)
        return Wide(np.asarray(fraction), np.where(fraction == 0, ZERO_EXPONENT, exponent + more))

    @staticmethod
    def exp(x: NDArray[np.float64]) -> Wide:
        power = np.floor(x / math.log(2.0))
        # log 2 in two parts: the first has few digits, so that its multiples are exact
        rest = (x - power * 0.693147180369123816490) - power * 1.90821492927058770002e-10
        return Wide.of(np.exp(rest), power.astype(np.int64))

    def floats(self, power: ArrayLike = 0) -> NDArray[np.float64]:
        """The entries times 2**power; what is too small for a float becomes 0."""
        exponent = np.clip(self.exponent + np.asarray(power, dtype=np.int64), -5000, 5000)
        with np.errstate(under="ignore", over="ignore"):
            return np.asarray(np.ldexp(self.mantissa, exponent.astype(np.int32)))

    def top(self, axis: int | tuple[int, ...] | None = None) -> NDArray[np.int64]:
        """The largest exponent along some axes; 0 where all entries are 0."""
        largest = self.exponent.max(axis=axis)
        return np.asarray(np.where(largest == ZERO_EXPONENT, 0, largest))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.mantissa.shape

    @property
    def ndim(self) -> int:
        return self.mantissa.ndim

    @property
    def T(self) -> Wide:  # noqa: N802 - NumPy's name
        return self._each(lambda part: part.T)

    def __len__(self) -> int:
        return len(self.mantissa)

    def __getitem__(self, index: Any) -> Wide:
        return self._each(lambda part: np.asarray(part[index]))

    def __setitem__(self, index: Any, value: Any) -> None:
        wide = Wide.of(value)
        self.mantissa[index], self.exponent[index] = wide.mantissa, wide.exponent

    def transpose(self, *order: Any) -> Wide:
        return self._each(lambda part: part.transpose(*order))

    def reshape(self, *shape: Any) -> Wide:
        return self._each(lambda part: part.reshape(*shape))

    def astype(self, dtype: Any, copy: bool = True) -> Wide:
        """Nothing changes: there is one precision."""
        return self

    def _each(self, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Wide:
        return Wide(change(self.mantissa), change(self.exponent))

    def sum(self, axis: int | tuple[int, ...] | None = None, keepdims: bool = False) -> Wide:
        if axis == ():
            return self
        largest = self.exponent.max(axis=axis, keepdims=True)
        with np.errstate(under="ignore"):  # what underflows here is nothing beside the largest
            shifted = np.ldexp(self.mantissa, np.maximum(self.exponent - largest, -2000).astype(np.int32))
        total = shifted.sum(axis=axis, keepdims=keepdims)
        return Wide._scaled(np.asarray(total), largest.reshape(total.shape))

    def added_up(self, places: NDArray[np.int64], size: int) -> Wide:
        """The sum of the entries of each place, from 0 to size - 1."""
        flat, at = self.reshape(-1), places.ravel()
        largest = np.full(size, ZERO_EXPONENT)
        np.maximum.at(largest, at, flat.exponent)
        with np.errstate(under="ignore"):
            shifted = np.ldexp(flat.mantissa, np.maximum(flat.exponent - largest[at], -2000).astype(np.int32))
        return Wide._scaled(np.bincount(at, shifted, size).astype(np.float64), largest)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        rule = UFUNCS.get(ufunc)
        if rule is None or method != "__call__" or kwargs:
            return NotImplemented
        return rule(*(Wide.of(x) for x in inputs))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        rule = FUNCTIONS.get(function)
        return NotImplemented if rule is None else rule(*args, **kwargs)


def _multiply(a: Wide, b: Wide) -> Wide:
    return Wide._scaled(a.mantissa * b.mantissa, a.exponent + b.exponent)


def _add(a: Wide, b: Wide) -> Wide:
    both = np.broadcast_arrays(a.mantissa, b.mantissa), np.broadcast_arrays(a.exponent, b.exponent)
    return Wide(np.stack(both[0]), np.stack(both[1])).sum(axis=0)


def _sign_of_difference(a: Wide, b: Wide) -> NDArray[np.float64]:
    """Exact: the larger exponent decides, then the mantissas."""
    same_exponent = a.exponent == b.exponent
    larger = np.where(a.exponent > b.exponent, np.sign(a.mantissa), -np.sign(b.mantissa))
    opposite = np.sign(a.mantissa) * np.sign(b.mantissa) < 0
    return np.where(same_exponent | opposite, np.sign(a.mantissa - b.mantissa), larger)


def einsum(subscripts: str, *operands: Wide | NDArray[np.float64]) -> Wide:
    """The sum of products, with an explicit result, for one or two operands."""
    terms, out = subscripts.split("->")
    factors = [(term, Wide.of(x)) for term, x in zip(terms.split(","), operands, strict=True)]
    # what one operand alone sums out is summed first
    for k, (term, x) in enumerate(factors):
        needed = {*out, *(letter for other, _ in factors[:k] + factors[k + 1 :] for letter in other)}
        kept = "".join(letter for letter in term if letter in needed)
        factors[k] = kept, x.sum(axis=tuple(i for i, letter in enumerate(term) if letter not in needed))
    summed = "".join(dict.fromkeys(letter for term, _ in factors for letter in term if letter not in out))
    aligned: list[Any] = [spread(x, tuple(term), (*summed, *out)) for term, x in factors]  # type: ignore[arg-type]
    shape = np.broadcast_shapes(*(x.shape for x in aligned))
    count, rest = math.prod(shape[: len(summed)]), shape[len(summed) :]
    flat = [_broadcast(x, (*shape[: len(summed)], *x.shape[len(summed) :])) for x in aligned]
    flat = [x.reshape(count, *x.shape[len(summed) :]) for x in flat]
    step = max(1, PRODUCTS_AT_ONCE // max(1, math.prod(rest)))
    blocks = ([x[i : i + step] for x in flat] for i in range(0, count, step))
    return _broadcast(reduce(_add, (reduce(_multiply, factors).sum(axis=0) for factors in blocks)), rest)


def _where(condition: NDArray[np.bool_], a: Any, b: Any) -> Wide:
    a, b = Wide.of(a), Wide.of(b)
    return Wide(np.where(condition, a.mantissa, b.mantissa), np.where(condition, a.exponent, b.exponent))


def _broadcast(x: Wide, shape: tuple[int, ...]) -> Wide:
    return x._each(lambda part: np.broadcast_to(part, shape))


def _concatenate(arrays: Sequence[Any], axis: int = 0) -> Wide:
    wide = [Wide.of(x) for x in arrays]
    mantissa = np.concatenate([x.mantissa for x in wide], axis=axis)
    return Wide(mantissa, np.concatenate([x.exponent for x in wide], axis=axis))


UFUNCS: dict[np.ufunc, Callable[..., Any]] = {
    np.multiply: _multiply,
    np.divide: lambda a, b: Wide._scaled(a.mantissa / b.mantissa, a.exponent - b.exponent),
    np.add: _add,
    np.subtract: lambda a, b: _add(a, -b),
    np.negative: lambda a: Wide(-a.mantissa, a.exponent),
    np.matmul: lambda a, b: einsum("ab,bc->ac", a, b),
    np.maximum: lambda a, b: _where(_sign_of_difference(a, b) >= 0, a, b),
    np.greater_equal: lambda a, b: _sign_of_difference(a, b) >= 0,
    np.greater: lambda a, b: _sign_of_difference(a, b) > 0,
    np.less_equal: lambda a, b: _sign_of_difference(a, b) <= 0,
    np.less: lambda a, b: _sign_of_difference(a, b) < 0,
}

FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.einsum: einsum,
    np.where: _where,
    np.concatenate: _concatenate,
    np.broadcast_to: _broadcast,
    np.expand_dims: lambda x, axis: x._each(lambda part: np.expand_dims(part, axis)),
    np.take: lambda x, index, axis: x._each(lambda part: np.take(part, index, axis)),
}

"""NumPy as an array library of the operations' rules, also with an exponent for every entry (`Wide`).

Its bounds are worked out at once, row by row: where the sum of two is not good enough, the entries are looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.floats import Floats, noting_underflow, representable, scaled
from tacit.compiler.operations.array_rules import ArrayLibrary, Frame
from tacit.compiler.operations.axes import Ids, Mask
from tacit.compiler.operations.contract import AxisRoles
from tacit.engines.arrays.wide import Wide
from tacit.evidence.column import Column
from tacit.evidence.density_column import DensityColumn, FindShares

Array = Any  # of NumPy, or Wide
SMALLEST_SUBNORMAL = np.finfo(np.float64).smallest_subnormal  # says that a number is too small, as 0 would not
COMPARE = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}


class PlainArrays(ArrayLibrary):
    """Arrays of one type of floats, whatever becomes of small numbers."""

    def __init__(self, dtype: Any = np.float64) -> None:
        self.dtype = np.dtype(dtype)
        self.limit: float = np.finfo(self.dtype).minexp  # products from 2**limit on are as exact as any
        self.dense = machine.can_run_code()

    def constant(self, table: NDArray[Any]) -> Array:
        return self.cast(table)

    def index(self, places: Ids) -> Array:
        return places

    def truth(self, mask: Mask) -> Array:
        return mask

    def ones(self, states: int) -> Array:
        return np.ones((states, 1), dtype=self.dtype)

    def likelihoods_of(self, column: Column, keep: bool, find: FindShares | None) -> Array:
        """The likelihoods (states, rows) of a column of evidence: see `DensityColumn.likelihoods`."""
        return column.likelihoods(keep, find) if isinstance(column, DensityColumn) else column.likelihoods()

    def known_floor(self, column: Column) -> Floats | None:
        """The bound of the likelihoods of a column that knows it."""
        return None

    def cast(self, array: Array) -> Array:
        return array.astype(self.dtype, copy=False)

    def permute(self, array: Array, order: Sequence[int]) -> Array:
        return array.transpose(order)

    def reshape(self, array: Array, shape: Sequence[int]) -> Array:
        return array.reshape(shape)

    def in_order(self, array: Array) -> Array:
        """With its entries one after the other in memory."""
        return array if isinstance(array, Wide) else np.asarray(array, order="C")

    def take(self, array: Array, index: Array, axis: int) -> Array:
        return np.take(array, index, axis=axis)

    def where(self, condition: Array, a: Any, b: Any) -> Array:
        return np.where(condition, a, b)

    def sum(self, array: Array, over: Sequence[int], keepdims: bool = False) -> Array:
        return array.sum(axis=tuple(over), keepdims=keepdims) if over else array

    def maximum(self, a: Array, b: Array) -> Array:
        return np.maximum(a, b)

    def smallest(self, array: Array, axis: int) -> Array:
        return array.min(axis=axis)

    def largest(self, array: Array, axis: int) -> Array:
        return array.max(axis=axis)

    def compare(self, test: str, a: Array, b: Array) -> Array:
        return COMPARE[test](a, b)

    def ratio(self, part: Array, total: Array, otherwise: Array | float) -> Array:
        possible = total > 0
        return np.where(possible, as_floats(part / np.where(possible, total, 1.0)), otherwise)

    def sigmoids(self, x: Array, like: Array) -> tuple[Array, Array]:
        """sigmoid(x) and sigmoid(-x): taken from 1, the smaller one would lose its digits."""
        small = Wide.exp(-np.abs(x)) if isinstance(like, Wide) else np.exp(-np.abs(x))  # never overflows
        larger, smaller = 1.0 / (1.0 + small), small / (1.0 + small)
        return np.where(x >= 0, larger, smaller), np.where(x >= 0, smaller, larger)

    def decays(self, x: Array, like: Array) -> tuple[Array, Array]:
        if isinstance(like, Wide):
            return Wide.exp(-x), Wide.of(-np.expm1(-x))
        return np.maximum(np.exp(-x), SMALLEST_SUBNORMAL), -np.expm1(-x)

    def rescaled(self, array: Array, over: Sequence[int]) -> tuple[Array, Array | None]:
        """With the largest entry of each row in [1/2, 1), by an exact power of two, and its exponent."""
        if isinstance(array, Wide):
            return array, None
        top = by_row(array).max(axis=0)
        # 2**-exponent must be a number, which leaves subnormal numbers a little smaller than 1/2
        exponent = np.maximum(np.frexp(top)[1], self.limit).astype(np.int64)
        return array * np.ldexp(self.dtype.type(1), -exponent.astype(np.int32)), exponent

    def concatenate(self, arrays: Sequence[Array]) -> Array:
        rows = max(array.shape[-1] for array in arrays)
        return np.concatenate([np.broadcast_to(array, (len(array), rows)) for array in arrays])

    def literals(self, mantissas: Floats, exponents: Ids) -> tuple[Array, bool]:
        fit = bool(representable(mantissas, exponents, self.dtype).all())
        return scaled(mantissas, exponents, self.dtype)[:, None], fit

    def algorithm(self, layout: AxisRoles | None, tables: int) -> str:
        """A table times a batch is a matrix product, if it is nothing else; einsum can do the rest."""
        if layout is not None and layout.is_product:
            return "product"
        return "matrix" if layout is not None and tables == 1 and layout.is_matrix else "einsum"


class NumpyArrays(PlainArrays):
    """Arrays of one type of floats, with bounds of how small their entries can be."""

    def known_floor(self, column: Column) -> Floats | None:
        if not isinstance(column, DensityColumn):
            return None
        return np.where(column.floor < self.limit, -np.inf, column.floor)

    def likelihood_floor(self, array: Array) -> Floats:
        floor = lowest(array)
        return np.where(floor < self.limit, -np.inf, floor)

    def product_floor(self, frame: Frame, inputs: Sequence[int]) -> Floats:
        """The sum of the operands' bounds; where it is not good enough, that of their smallest entries."""
        floors = [frame.floor(i) for i in inputs]
        bound: Floats = sum(floors[1:], start=floors[0])
        if len(floors) == 1 or bound.min() >= self.limit:
            return bound
        tight = [np.where(np.isneginf(f), -np.inf, _entries(frame, i)) for f, i in zip(floors, inputs, strict=True)]
        bound = sum(tight[1:], start=tight[0])
        return np.where(bound < self.limit, -np.inf, bound)

    def sum_floor(self, frame: Frame, inputs: Sequence[int]) -> Floats:
        a, b = (frame.floor(i) for i in inputs)
        return np.asarray(np.minimum(a, b))

    def selected_floor(
        self, frame: Frame, inputs: Sequence[int], tests: bool, table: Array, sides: tuple[Array, Array], rows: bool
    ) -> Floats:
        """Also where a mixture hangs on a weight that is too small for a float."""
        marginal, plus, minus, thresholds = (frame.floor(i) for i in inputs)
        floor = np.minimum(plus, minus)
        if tests:  # a test multiplies the sum of the marginal by the threshold
            return np.where(marginal + thresholds >= self.limit, floor, -np.inf)
        hanging = (sides[0] > 0) | (sides[1] > 0)
        lost = hanging & (table < np.exp2(self.limit))
        low = lowest(table if rows else table[..., None])
        return np.where(np.isneginf(marginal + floor) | lost.reshape(-1, len(low)).any(axis=0), -np.inf, low)

    def rescaled_floor(self, floor: Floats, array: Array, over: Sequence[int]) -> Floats:
        return np.where(np.isneginf(floor), -np.inf, lowest(array))

    def extremes_floor(self, floor: Floats) -> Floats:
        return np.where(np.isneginf(floor), -np.inf, 0.0)

    def times(self, a: Array, b: Array) -> tuple[Array, Mask | None]:
        """Digits were lost only if NumPy notes an underflow: to look at every product takes longer than to make it."""
        with noting_underflow() as noted:
            product = a * b
        if not noted:
            return product, None
        lost = (product < np.finfo(self.dtype).smallest_normal) & (a > 0) & (b > 0)
        return product, lost.any(axis=tuple(range(lost.ndim - 1)))

    def listed_floor(
        self, frame: Frame, inputs: Sequence[int], array: Array, lost: Sequence[Mask], in_range: bool
    ) -> Floats:
        """Where nothing was lost, what the entries show."""
        floor = lowest(array)
        for doubt in (*(np.isneginf(frame.floor(i)) for i in inputs), *lost, floor < self.limit, not in_range):
            floor = np.where(doubt, -np.inf, floor)
        return floor


class WideArrays(NumpyArrays):
    """Numbers with an exponent each, of which none is too small."""

    def __init__(self, dtype: Any = np.float64) -> None:
        super().__init__(dtype)
        self.limit = -np.inf

    def known_floor(self, column: Column) -> None:
        return None

    def likelihoods_of(self, column: Column, keep: bool, find: FindShares | None) -> Array:
        """Densities have a range that floats do not."""
        if isinstance(column, DensityColumn):
            return Wide.of(*column.with_exponents())
        return column.likelihoods()

    def cast(self, array: Array) -> Array:
        return Wide.of(array)

    def literals(self, mantissas: Floats, exponents: Ids) -> tuple[Array, bool]:
        return Wide.of(mantissas[:, None], exponents[:, None]), True

    def times(self, a: Array, b: Array) -> tuple[Array, None]:
        return a * b, None


def _entries(frame: Frame, i: int) -> Floats:
    value = frame.values[i]
    return lowest(value.array[..., None] if value.floor is None else value.array)


def lowest(array: Array) -> Floats:
    """The logarithm (base 2) of the smallest entry of each row that is neither 0 nor above 1; 0 where there is none."""
    if isinstance(array, Wide):
        return np.zeros(1)
    flat = by_row(array)
    smallest = flat.min(axis=0, initial=1.0)  # a quick look, which is enough where there is no 0
    if not (smallest > 0).all():
        smallest = np.where(flat > 0, flat, 1).min(axis=0, initial=1.0)
    return np.asarray(np.log2(smallest, dtype=np.float64))


def by_row(array: Array) -> Array:
    """The entries of each row, in any order: (entries, rows). Those of a single one stay where they are in memory."""
    return array.ravel(order="K")[:, None] if array.shape[-1] == 1 else array.reshape(-1, array.shape[-1])


def as_floats(array: Array) -> Array:
    return array.floats() if isinstance(array, Wide) else array

"""The steps of the NumPy engine: contractions, selections and rescaling, each with its reverse.

A value that depends on evidence is an array (axes..., rows), one that does not is (axes...). The adjoint of a value
holds the derivatives of some function of the joint by its entries. Arrays may be `Wide`, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from string import ascii_letters
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import Axes, Contract, Program
from tacit.cpt import TEST_CODES
from tacit.engines.wide import Wide
from tacit.floats import Floats

Array = NDArray[np.floating]


class Value(NamedTuple):
    """An array and, where it was rescaled, the exponent of each row: the number is array * 2**exponent.

    `floor` is a lower bound of the logarithms (base 2) of the entries that are not 0, for each row where the value
    depends on evidence. Minus infinity says that digits may be lost: some product was too small for a float. None
    stands for that of a table, which is worked out when it is asked for.
    """

    array: Array
    exponent: NDArray[np.int64] | None = None
    floor: Floats | None = None
    weight: Array | None = None  # of `plus`, where the value is a selected table


class Plan:
    """How to run the contractions and selections of a program, whatever its numbers: each worked out on first use."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self._contractions: dict[int, TableProduct | Einsum] = {}
        self._selections: dict[int, Selection] = {}

    def contraction(self, i: int) -> TableProduct | Einsum:
        """How to run operation i, a Contract."""
        if i not in self._contractions:
            self._contractions[i] = _contraction(self.program, i)
        return self._contractions[i]

    def selection(self, i: int) -> Selection:
        """How to run operation i, a Select."""
        if i not in self._selections:
            self._selections[i] = Selection(self.program, i)
        return self._selections[i]


# contractions ---------------------------------------------------------------------------------------------


def _contraction(program: Program, i: int) -> TableProduct | Einsum:
    operation = program.operations[i]
    assert isinstance(operation, Contract)
    axes = [program.operations[j].axes for j in operation.inputs]
    batched = [program.batched[j] for j in operation.inputs]
    if is_matmul(program, operation):
        return TableProduct(axes, batched.index(False), operation.axes, program.sizes)
    return Einsum(axes, batched, operation.axes, program.sizes)


def is_matmul(program: Program, operation: Contract) -> bool:
    """Whether a contraction is one matrix product of a parameter table and a batch."""
    batched = [program.batched[i] for i in operation.inputs]
    if len(batched) != 2 or batched[0] == batched[1]:
        return False
    a, b = (program.operations[i].axes for i in operation.inputs)
    shared = set(a) & set(b)
    return bool(shared) and not shared & set(operation.axes) and set(a) | set(b) == shared | set(operation.axes)


class TableProduct:
    """A parameter table times a batch, as one matrix product: (left, summed) @ (summed, right * rows).

    `summed` are the axes that both have, `left` those of the table alone, `right` those of the batch alone; `table`
    says which of the two operands the table is.
    """

    def __init__(self, axes: Sequence[Axes], table: int, out: Axes, sizes: Mapping[str, int]) -> None:
        self.table, self.batch = table, 1 - table
        a, b = axes[self.table], axes[self.batch]
        summed, left, right = _both(a, b), _only(a, b), _only(b, a)
        self._table = _Arrangement(a, left, summed, sizes)
        self._batch = _Arrangement(b, summed, right, sizes)
        self._out = _Arrangement(out, left, right, sizes)

    def matrix(self, table: Array) -> Array:
        """The table as the products need it."""
        return self._table.matrix(table)

    def product(self, matrix: Array, batch: Array) -> Array:
        """The contraction."""
        return in_order(self._out.array(matrix @ self._batch.matrix(batch), batch.shape[-1]))

    def by(self, adjoint: Array, matrix: Array, batch: Array) -> tuple[Array, Array]:
        """The adjoints of the table and of the batch; the product that makes the former also sums over rows."""
        rows = adjoint.shape[-1]
        batch = np.broadcast_to(batch, (*batch.shape[:-1], rows))
        by_out = self._out.matrix(adjoint)
        by_table, by_batch = by_out @ self._batch.matrix(batch).T, matrix.T @ by_out
        return self._table.array(by_table), self._batch.array(by_batch, rows)


class _Arrangement:
    """How a value becomes a matrix over two groups of its axes, and back. Rows of evidence go across, innermost."""

    def __init__(self, axes: Axes, down: Axes, across: Axes, sizes: Mapping[str, int]) -> None:
        arranged = (*down, *across)
        self._order = [axes.index(a) for a in arranged]
        self._back = [arranged.index(a) for a in axes]
        self._shape = [sizes[a] for a in arranged]
        self._height = math.prod(sizes[a] for a in down)

    def matrix(self, array: Array) -> Array:
        rows = range(len(self._order), array.ndim)
        return array.transpose([*self._order, *rows]).reshape(self._height, -1)

    def array(self, matrix: Array, *rows: int) -> Array:
        last = [len(self._back)] * len(rows)
        return matrix.reshape([*self._shape, *rows]).transpose([*self._back, *last])


class Einsum:
    """Any contraction of one or two values. A value of one row speaks for as many as the other has."""

    def __init__(self, axes: Sequence[Axes], batched: Sequence[bool], out: Axes, sizes: Mapping[str, int]) -> None:
        letters = {a: ascii_letters[i + 1] for i, a in enumerate(dict.fromkeys(a for own in axes for a in own))}
        self._terms = ["".join(letters[a] for a in own) + "a" * b for own, b in zip(axes, batched, strict=True)]
        self._result = "".join(letters[a] for a in out) + "a" * any(batched)
        self._shapes = [[sizes[a] for a in own] for own in axes]
        self._forward = ",".join(self._terms) + "->" + self._result

    def product(self, *arrays: Array) -> Array:
        """The contraction."""
        # asked for this order itself, einsum loops over memory in a bad one
        return in_order(np.einsum(self._forward, *arrays))

    def by(self, k: int, adjoint: Array, *others: Array) -> Array:
        """The adjoint of operand k, given the other one."""
        subscripts, lost = self._reverse[k]
        made: Array = np.einsum(subscripts, adjoint, *others)
        if not lost:
            return made
        # an axis that was summed out, and that the other operand does not have, takes the same derivative everywhere
        spread = np.expand_dims(made, lost)
        return np.broadcast_to(spread, (*self._shapes[k], *spread.shape[len(self._shapes[k]) :]))

    @cached_property
    def _reverse(self) -> list[tuple[str, tuple[int, ...]]]:
        """For each operand, the subscripts of its adjoint and the places of axes that these cannot reach."""
        found = []
        for k, own in enumerate(self._terms):
            given = ",".join([self._result, *self._terms[:k], *self._terms[k + 1 :]])
            reached = "".join(letter for letter in own if letter in given)
            found.append((f"{given}->{reached}", tuple(i for i, letter in enumerate(own) if letter not in given)))
        return found


def contract(arrays: Sequence[Array], axes: Sequence[Axes], batched: Sequence[bool], out: Axes) -> Array:
    """Multiply and sum out, once."""
    sizes = {a: n for array, own in zip(arrays, axes, strict=True) for a, n in zip(own, array.shape, strict=False)}
    return Einsum(axes, batched, out, sizes).product(*arrays)


def in_order(array: Array) -> Array:
    """With its entries one after the other in memory."""
    return array if isinstance(array, Wide) else np.asarray(array, order="C")


def _both(a: Axes, b: Axes) -> Axes:
    return tuple(x for x in a if x in b)


def _only(a: Axes, b: Axes) -> Axes:
    return tuple(x for x in a if x not in b)


# selections -----------------------------------------------------------------------------------------------


class Selection:
    """The flattening of a testing CPT: a mixture of its tables by the weights of `plus`."""

    def __init__(self, program: Program, i: int) -> None:
        operation = program.operations[i]
        batched = any(program.batched[j] for j in operation.inputs)
        self._views = [
            _View(program.operations[j].axes, program.batched[j], operation.axes, batched, program.sizes)
            for j in operation.inputs
        ]
        parents = program.operations[operation.inputs[0]].axes
        self._parents = tuple(i for i, a in enumerate(operation.axes) if a in parents)
        self._own = tuple(i for i, a in enumerate(operation.axes) if a not in parents)
        kept = _both(operation.axes, parents)
        self._to_marginal = [*(kept.index(a) for a in parents), *[len(kept)] * batched]

    def table(self, inputs: Sequence[Array], gamma: float | None) -> tuple[Array, Array]:
        """The table that is selected, from the marginal, plus, minus, the thresholds and the operators.

        And the weights of `plus` that selected it, over the parents: (parents..., rows).
        """
        n_u, plus, minus, threshold, code = self._aligned(inputs)
        tau, rest = weigh(n_u, self._total(n_u), threshold, code, gamma)
        weights = tau.reshape([n for i, n in enumerate(tau.shape) if i not in self._own]).transpose(self._to_marginal)
        return np.where(tau > 0, plus, minus) if gamma is None else tau * plus + rest * minus, weights

    def lost(self, table: Array, inputs: Sequence[Array]) -> NDArray[np.bool_]:
        """The entries of a mixture that hang on a weight which is too small for a float."""
        _, plus, minus, _, _ = self._aligned(inputs)
        return ((plus > 0) | (minus > 0)) & (table < np.finfo(table.dtype).smallest_normal)

    def by(
        self, adjoint: Array, inputs: Sequence[Array], gamma: float | None, through: bool
    ) -> tuple[list[Array | None], float]:
        """The adjoints of the inputs, None for those that have none, and the derivative by the slope.

        Without `through`, and for tests, the weights count as constants.
        """
        n_u, plus, minus, threshold, code = self._aligned(inputs)
        n = self._total(n_u)
        tau, rest = weigh(n_u, n, threshold, code, gamma)
        marginal, high, low, limits, _ = self._views
        tables = high.back(adjoint * tau), low.back(adjoint * rest)
        if gamma is None or not through:
            return [None, *tables, None, None], 0.0
        # tau = sigmoid(+-gamma (n_u / n - threshold)); where n is 0, so is the joint, and with it the adjoint
        sign = np.where(code < 2, 1.0, -1.0).astype(threshold.dtype)
        divisor = np.where(n > 0, n, 1.0)
        posterior = n_u / divisor
        by_tau = (adjoint * (plus - minus)).sum(axis=self._own, keepdims=True)
        by_x = by_tau * tau * rest * sign  # x = gamma (posterior - threshold)
        by_posterior = gamma * by_x
        by_marginal = (by_posterior - self._total(by_posterior * posterior)) / divisor
        slope = float(as_floats((by_x * (posterior - threshold)).sum()))
        return [marginal.back(by_marginal), *tables, limits.back(-by_posterior), None], slope

    def _aligned(self, inputs: Sequence[Array]) -> list[Array]:
        return [view.aligned(array) for view, array in zip(self._views, inputs, strict=True)]

    def _total(self, array: Array) -> Array:
        total: Array = array.sum(axis=self._parents, keepdims=True)
        return total


class _View:
    """A value over other axes: length-1 axes where it has none, ready to broadcast; and back."""

    def __init__(self, axes: Axes, batched: bool, out: Axes, any_batch: bool, sizes: Mapping[str, int]) -> None:
        present = _both(out, axes)
        rows = [len(axes)] * batched
        self._order = [*(axes.index(a) for a in present), *rows]
        self._back = [*(present.index(a) for a in axes), *rows]
        self._aligned = [sizes[a] if a in axes else 1 for a in out] + ([-1 if batched else 1] if any_batch else [])
        self._present = [sizes[a] for a in present] + [-1] * batched
        self._sum_rows = any_batch and not batched

    def aligned(self, array: Array) -> Array:
        return array.transpose(self._order).reshape(self._aligned)

    def back(self, array: Array) -> Array:
        """An aligned array over the axes of the value, summed over the rows that the value does not have."""
        array = array.sum(axis=-1) if self._sum_rows else array
        return array.reshape(self._present).transpose(self._back)


def weigh(n_u: Array, n: Array, threshold: Array, code: Array, gamma: float | None) -> tuple[Array, Array]:
    """The weights of `plus` and `minus`: n_u/n against the threshold, by a test without division, or by a sigmoid."""
    if gamma is None:
        limit = n * threshold
        compare: dict[str, Callable[[Array, Array], NDArray[np.bool_]]] = {
            ">=": np.greater_equal,
            ">": np.greater,
            "<=": np.less_equal,
            "<": np.less,
        }
        holds = np.zeros(np.broadcast_shapes(n_u.shape, limit.shape, code.shape), dtype=bool)
        for test, number in TEST_CODES.items():
            if (code == number).any():
                holds |= (code == number) & compare[test](n_u, limit)
        return holds.astype(n_u.dtype), (~holds).astype(n_u.dtype)
    posterior = np.where(n > 0, as_floats(n_u / np.where(n > 0, n, 1.0)), threshold)  # 0/0: weight 1/2
    x = gamma * np.where(code < 2, posterior - threshold, threshold - posterior)
    return sigmoids(x, wide=isinstance(n_u, Wide))


def sigmoids(x: Array, wide: bool = False) -> tuple[Array, Array]:
    """sigmoid(x) and sigmoid(-x): taken from 1, the smaller one would lose its digits."""
    small = Wide.exp(-np.abs(x)) if wide else np.exp(-np.abs(x))  # never overflows
    larger, smaller = 1.0 / (1.0 + small), small / (1.0 + small)
    return np.where(x >= 0, larger, smaller), np.where(x >= 0, smaller, larger)


# scales ---------------------------------------------------------------------------------------------------


def rescale(value: Value) -> Value:
    """Bring the largest entry of each row into [1/2, 1) by an exact power of two."""
    array = value.array
    if isinstance(array, Wide):
        return value
    top = array.reshape(-1, array.shape[-1]).max(axis=0)
    # 2**-exponent must be a number, which leaves subnormal numbers a little smaller than 1/2
    exponent = np.maximum(np.frexp(top)[1], np.finfo(array.dtype).minexp).astype(np.int64)
    scaled = array * power(-exponent, array.dtype)
    assert value.floor is not None, "tables are not rescaled"
    floor = np.where(np.isneginf(value.floor), -np.inf, lowest(scaled))
    return Value(scaled, exponent + (0 if value.exponent is None else value.exponent), floor)


def lowest(array: Array) -> Floats:
    """The logarithm (base 2) of the smallest entry of each row that is neither 0 nor above 1; 0 where there is none."""
    if isinstance(array, Wide):
        return np.zeros(1)
    flat = array.reshape(-1, array.shape[-1])
    smallest = np.where(flat > 0, flat, 1).min(axis=0, initial=1.0)
    return np.asarray(np.log2(smallest, dtype=np.float64))


def as_floats(array: Array) -> Array:
    return array.floats() if isinstance(array, Wide) else array


def power(exponent: NDArray[np.int64], dtype: np.dtype[np.floating]) -> Array:
    """2**exponent, exactly."""
    return np.ldexp(dtype.type(1), exponent.astype(np.int32))  # the type that ldexp takes everywhere

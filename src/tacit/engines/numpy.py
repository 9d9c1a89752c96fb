"""The reference interpreter of programs: NumPy, batch axis last.

A value is an array (axes..., rows) if it depends on evidence, (axes...) if it only depends on parameters; the
latter are computed once per set of parameters. Rescaled values carry an exponent per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_letters

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.factors import TEST_CODES
from tacit.compiler.program import (
    ONE,
    ZERO,
    Axes,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Normalise,
    Operation,
    Parameter,
    Program,
    Rescale,
    Select,
    Slice,
)
from tacit.evidence import Column

Array = NDArray[np.floating]
CHUNK_ELEMENTS = 2**19  # entries alive at one time: a few megabytes, about the size of the caches
MAX_CHUNK = 2**14


@dataclass(frozen=True)
class Value:
    """An array and, where it was rescaled, the exponent of each row: the number is array * 2**exponent."""

    array: Array
    exponent: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Results:
    """What a run gives back: mantissas (states, rows), exponents (rows,), and the values asked for."""

    joint: Array
    exponent: NDArray[np.int64]
    values: dict[int, Array]


class NumpyEngine:
    """A program with its numbers.

    `gammas` gives the slope of each testing node, None for hard tests; `wanted` names values that `run` gives back
    besides the joint.
    """

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
        wanted: tuple[int, ...] = (),
    ) -> None:
        self.program = program
        self.dtype = np.dtype(np.float64)  # what is computed once is computed with all digits and the whole range
        self.gammas = gammas
        self.wanted = wanted
        self._ends = program.last_uses(wanted)
        self._parameters = parameters
        self._static: dict[int, Value] = {}
        for i, operation in enumerate(program):
            if not program.batched[i]:
                self._static[i] = self._evaluate(operation, self._static, {}, 0)
        self.dtype = np.dtype(dtype)
        self._static = {i: Value(value.array.astype(self.dtype)) for i, value in self._static.items()}

    def static(self, i: int) -> Array:
        """A value that does not depend on evidence."""
        return self._static[i].array

    @property
    def chunk(self) -> int:
        """How many rows to run at a time."""
        return self.chunk_of(self.program)

    @staticmethod
    def chunk_of(program: Program) -> int:
        """How many rows of a program to run at a time, so that what is alive stays in cache."""
        return max(1, min(MAX_CHUNK, CHUNK_ELEMENTS // max(1, program.cost.live)))

    def run(self, columns: Mapping[str, Column], rows: int) -> Results:
        """Evaluate some rows; `columns` hold that many rows, or one that speaks for all."""
        values = dict(self._static)
        for i, operation in enumerate(self.program):
            if self.program.batched[i] and i != self.program.posterior:  # callers divide, and tell what is undefined
                values[i] = self._evaluate(operation, values, columns, rows)
            for j in self._ends[i]:
                if self.program.batched[j]:
                    del values[j]
        joint = values[self.program.joint]
        states = self.program.sizes[self.program.query]
        exponent = np.zeros(rows, dtype=np.int64) if joint.exponent is None else joint.exponent
        mantissa = joint.array if self.program.batched[self.program.joint] else joint.array[:, None]
        return Results(
            np.broadcast_to(mantissa, (states, rows)),
            np.broadcast_to(exponent, (rows,)),
            {i: self._with_rows(i, values[i].array, rows) for i in self.wanted},
        )

    def _with_rows(self, i: int, array: Array, rows: int) -> Array:
        array = array if self.program.batched[i] else array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], rows))

    def _evaluate(
        self, operation: Operation, values: Mapping[int, Value], columns: Mapping[str, Column], rows: int
    ) -> Value:
        match operation:
            case Parameter():
                return Value(self._parameters[operation.node, operation.part].astype(self.dtype))
            case Constant():
                return Value(operation.table.astype(self.dtype))
            case Likelihood():
                return Value(self._likelihood(operation, columns))
            case Slice():
                return self._slice(operation, values, columns)
            case Gather():
                return self._gather(operation, values)
            case Contract():
                return self._contract(operation, values)
            case Select():
                return Value(self._select(operation, values))
            case Rescale():
                return rescale(values[operation.inputs[0]])
            case Normalise():
                return self._normalise(operation, values)

    def _likelihood(self, operation: Likelihood, columns: Mapping[str, Column]) -> Array:
        column = columns.get(operation.variable)
        if column is None:
            return np.ones((self.program.sizes[operation.variable], 1), dtype=self.dtype)
        return column.likelihoods().astype(self.dtype, copy=False)

    def _slice(self, operation: Slice, values: Mapping[int, Value], columns: Mapping[str, Column]) -> Value:
        table = values[operation.inputs[0]].array
        axes = self.program.operations[operation.inputs[0]].axes
        order = [axes.index(a) for a in (*operation.variables, *operation.axes)]
        index = tuple(columns[v].states() for v in operation.variables)
        picked = table.transpose(order)[index]  # (rows, axes...)
        return Value(np.ascontiguousarray(np.moveaxis(picked, 0, -1)))

    def _gather(self, operation: Gather, values: Mapping[int, Value]) -> Value:
        value = values[operation.inputs[0]]
        batched = self.program.batched[operation.inputs[0]]
        flat = value.array.reshape(-1, value.array.shape[-1]) if batched else value.array.reshape(-1)
        index = operation.index
        taken = np.array(flat[np.maximum(index, 0)])  # an array even where it has no axes
        taken[index == ZERO] = 0
        if (index == ONE).any():
            assert value.exponent is None, "a rescaled value has no constant 1"
            taken[index == ONE] = 1
        return Value(taken, value.exponent)

    def _contract(self, operation: Contract, values: Mapping[int, Value]) -> Value:
        operands = [values[i] for i in operation.inputs]
        batched = [self.program.batched[i] for i in operation.inputs]
        axes = [self.program.operations[i].axes for i in operation.inputs]
        exponents = [v.exponent for v in operands if v.exponent is not None]
        exponent = sum(exponents[1:], start=exponents[0]) if exponents else None
        return Value(contract([v.array for v in operands], axes, batched, operation.axes), exponent)

    def weight(self, operation: Select) -> Array:
        """The weight of `plus` in a static selection, ready to broadcast over its axes."""
        n_u, n, _, _, threshold, code = self._selection(operation, self._static)
        return weigh(n_u, n, threshold, code, self.gammas[operation.node])

    def _select(self, operation: Select, values: Mapping[int, Value]) -> Array:
        n_u, n, p, m, threshold, code = self._selection(operation, values)
        gamma = self.gammas[operation.node]
        tau = weigh(n_u, n, threshold, code, gamma)
        return np.where(tau > 0, p, m) if gamma is None else (tau * p + (1 - tau) * m).astype(self.dtype)

    def _selection(self, operation: Select, values: Mapping[int, Value]) -> tuple[Array, ...]:
        """n_u, n, plus, minus, thresholds and operators, ready to broadcast over the axes of the result."""
        marginal, plus, minus, thresholds, test = operation.inputs
        batched = any(self.program.batched[i] for i in operation.inputs)
        n_u, p, m, threshold, code = (
            _aligned(values[i].array, self.program.operations[i].axes, self.program.batched[i], operation.axes, batched)
            for i in (marginal, plus, minus, thresholds, test)
        )
        parents = self.program.operations[marginal].axes
        n = n_u.sum(axis=tuple(i for i, a in enumerate(operation.axes) if a in parents), keepdims=True)
        return n_u, n, p, m, threshold, code

    def _normalise(self, operation: Normalise, values: Mapping[int, Value]) -> Value:
        joint = values[operation.inputs[0]].array
        total = joint.sum(axis=0, keepdims=True)
        return Value(np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0))


def weigh(n_u: Array, n: Array, threshold: Array, code: Array, gamma: float | None) -> Array:
    """The weight of `plus`: n_u/n against the threshold, by a test without division, or by a sigmoid."""
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
        return holds.astype(np.float64)
    shape = np.broadcast_shapes(n_u.shape, threshold.shape)
    undefined = np.array(np.broadcast_to(threshold, shape), dtype=n_u.dtype)  # 0/0: weight 1/2
    posterior = np.divide(n_u, n, out=undefined, where=n > 0)
    x = gamma * np.where(code < 2, posterior - threshold, threshold - posterior)
    small = np.exp(-np.abs(x))  # never overflows
    return np.where(x >= 0, 1.0, small) / (1.0 + small)


def rescale(value: Value) -> Value:
    """Bring the largest entry of each row into [1/2, 1) by an exact power of two."""
    array = value.array
    top = array.reshape(-1, array.shape[-1]).max(axis=0)
    _, exponent = np.frexp(top)
    scaled = np.ldexp(array, -exponent)
    total = exponent.astype(np.int64)
    return Value(scaled, total if value.exponent is None else total + value.exponent)


def contract(arrays: Sequence[Array], axes: Sequence[Axes], batched: Sequence[bool], out: Axes) -> Array:
    """Multiply and sum out, batch axis last where an operand has one."""
    if len(arrays) == 2 and batched[0] != batched[1]:
        made = _matmul(arrays, axes, batched, out)
        if made is not None:
            return made
    letters: dict[str, str] = {}
    for a in (a for own in axes for a in own):
        letters.setdefault(a, ascii_letters[len(letters) + 1])
    terms = ["".join(letters[a] for a in own) + ("a" if b else "") for own, b in zip(axes, batched, strict=True)]
    result = "".join(letters[a] for a in out) + ("a" if any(batched) else "")
    if all(batched) and len(arrays) == 2 and arrays[0].shape[-1] != arrays[1].shape[-1]:
        rows = max(a.shape[-1] for a in arrays)
        arrays = [np.broadcast_to(a, (*a.shape[:-1], rows)) for a in arrays]
    made = np.einsum(",".join(terms) + "->" + result, *arrays)
    return made if made.flags.c_contiguous else np.ascontiguousarray(made)


def is_matmul(program: Program, operation: Contract) -> bool:
    """Whether a contraction is one matrix product of a parameter table and a batch."""
    batched = [program.batched[i] for i in operation.inputs]
    if len(batched) != 2 or batched[0] == batched[1]:
        return False
    a, b = (program.operations[i].axes for i in operation.inputs)
    shared = set(a) & set(b)
    return bool(shared) and not shared & set(operation.axes) and set(a) | set(b) == shared | set(operation.axes)


def _matmul(arrays: Sequence[Array], axes: Sequence[Axes], batched: Sequence[bool], out: Axes) -> Array | None:
    """A parameter table times a batch, as one matrix product; None if they share an axis that stays."""
    if batched[0]:
        arrays, axes = arrays[::-1], axes[::-1]
    table, batch = arrays
    of_table, of_batch = axes
    shared = [a for a in of_table if a in of_batch]
    if not shared or any(a in out for a in shared):
        return None
    if any(a not in out and a not in shared for a in (*of_table, *of_batch)):
        return None
    left = [a for a in of_table if a not in shared]
    right = [a for a in of_batch if a not in shared]
    rows = batch.shape[-1]
    sizes = dict(zip((*of_table, *of_batch), (*table.shape, *batch.shape[:-1]), strict=True))
    inner = int(np.prod([sizes[a] for a in shared]))
    m = table.transpose([of_table.index(a) for a in (*left, *shared)]).reshape(-1, inner)
    b = batch.transpose([*(of_batch.index(a) for a in (*shared, *right)), batch.ndim - 1]).reshape(inner, -1)
    made = (m @ b).reshape(*(sizes[a] for a in (*left, *right)), rows)
    order = [(*left, *right).index(a) for a in out]
    return np.ascontiguousarray(made.transpose([*order, made.ndim - 1]))


def _aligned(array: Array, axes: Axes, batched: bool, out: Axes, any_batch: bool) -> Array:
    """`array` with its axes in the order of `out`, length-1 axes where it has none, ready to broadcast."""
    present = [a for a in out if a in axes]
    order = [axes.index(a) for a in present] + ([len(axes)] if batched else [])
    moved = array.transpose(order)
    shape = [moved.shape[present.index(a)] if a in axes else 1 for a in out]
    if any_batch:
        shape.append(moved.shape[-1] if batched else 1)
    return moved.reshape(shape)

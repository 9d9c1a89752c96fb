"""The reference interpreter of programs: NumPy, batch axis last.

A value is an array (axes..., rows) if it depends on evidence, (axes...) if it only depends on parameters; the
latter are computed once per set of parameters. Rescaled values carry an exponent per row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiler.program import (
    ONE,
    ZERO,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Normalise,
    Parameter,
    Program,
    Rescale,
    Select,
    Slice,
)
from tacit.cpt import Floats
from tacit.engines.numpy_steps import Array, Plan, TableProduct, Value, rescale
from tacit.engines.reverse import Gradients, Trace, gradients, parameter_gradients
from tacit.evidence import Column
from tacit.machine import in_own_threads

T = TypeVar("T")

CHUNK_ELEMENTS = 2**19  # entries alive at one time: a few megabytes, about the size of the caches
MAX_CHUNK = 2**14
GRADIENT_ELEMENTS = 2**22  # entries kept for the reverse: 32 megabytes, beyond which more rows gain nothing


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
        self.program, self.dtype, self.wanted = program, np.dtype(dtype), wanted
        self._ends = program.last_uses(wanted)
        # callers divide by the sum themselves, and tell what is undefined
        self._batched = [i for i, batched in enumerate(program.batched) if batched and i != program.posterior]
        self._fixed = [i for i, batched in enumerate(program.batched) if not batched]
        self._plan = Plan(program)
        self.gammas: Mapping[str, float | None] = {}
        self._parameters: Mapping[tuple[str, str], Array] = {}
        self._exact: dict[int, Value] = {}
        self._reached: dict[frozenset[Any], list[int]] = {}
        self.update(parameters, gammas)

    threads: int | None = None  # those of BLAS, where they are limited

    @in_own_threads
    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes, and compute again what depends on numbers alone."""
        self.gammas = {**self.gammas, **gammas}
        self._parameters = {**self._parameters, **parameters}
        # what is computed once is computed with all digits and the whole range
        self._exact = dict(self._exact)
        for i in self._stale(frozenset((*parameters, *gammas))) if self._exact else self._fixed:
            self._exact[i] = self._evaluate(i, self._exact, {})
        self._static = self._exact
        if self.dtype != np.float64:
            self._static = {i: Value(value.array.astype(self.dtype)) for i, value in self._exact.items()}
        self._matrices: dict[int, Array] = {}  # tables as matrix products need them, made on first use

    def _stale(self, changed: frozenset[Any]) -> list[int]:
        """The static values that depend on these tables (node, part) and slopes (node), in order."""
        if changed not in self._reached:
            found: dict[int, None] = {}
            for i in self._fixed:
                operation = self.program.operations[i]
                own = isinstance(operation, Parameter) and (operation.node, operation.part) in changed
                own = own or (isinstance(operation, Select) and operation.node in changed)
                if own or any(j in found for j in operation.inputs):
                    found[i] = None
            self._reached = {changed: list(found)}  # training changes the same ones again and again
        return self._reached[changed]

    def twin(self) -> NumpyEngine:
        """The same program with numbers of its own: for another thread."""
        return copy(self)

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

    @property
    def gradient_chunk(self) -> int:
        """How many rows to ask gradients of at a time: all their values are kept for the reverse."""
        return max(1, min(MAX_CHUNK, GRADIENT_ELEMENTS // max(1, self.program.cost.elements)))

    # running ----------------------------------------------------------------------------------------------

    @in_own_threads
    def run(self, columns: Mapping[str, Column], rows: int) -> Results:
        """Evaluate some rows; `columns` hold that many rows, or one that speaks for all."""
        values = dict(self._static)
        for i in self._batched:
            values[i] = self._evaluate(i, values, columns)
            for j in self._ends[i]:
                if self.program.batched[j]:
                    del values[j]
        exponent = values[self.program.joint].exponent
        return Results(
            self._with_rows(self.program.joint, values, rows),
            np.broadcast_to(0 if exponent is None else exponent, (rows,)),
            {i: self._with_rows(i, values, rows) for i in self.wanted},
        )

    @in_own_threads
    def gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: ArrayLike, through_selection: bool = True
    ) -> Gradients:
        """One sweep up and one down: derivatives by every parameter and every likelihood.

        `seeds` (states, rows) are the derivatives of some function by the mantissas of the joint, as `run` gives
        them. Without `through_selection`, the weights of selected tables count as constants. All values are kept
        between the sweeps: give at most `gradient_chunk` rows, and add up.

        >>> import tacit
        >>> engine = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy").engine()
        >>> engine.gradients({}, 1, [[1.0], [0.0]]).tables["A", "table"]  # of p*(B=true)
        array([0.2, 0.7])
        """
        return self._down(self._up(columns), rows, seeds, through_selection)

    @in_own_threads
    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives, with one sweep up.

        `seed_of` takes the mantissas of the joint (states, rows) and returns anything, such as the value of the
        function, and its derivatives by the mantissas (states, rows). Give at most `gradient_chunk` rows.
        """
        trace = self._up(columns)
        value, seeds = seed_of(self._with_rows(self.program.joint, trace.values, rows))
        return value, self._down(trace, rows, seeds, True)

    def parameter_gradients(
        self, adjoints: Mapping[int, Array], through_selection: bool = True
    ) -> tuple[dict[tuple[str, str], Floats], dict[str, float]]:
        """Derivatives by the tables and by the slopes, given those by some values that evidence does not reach."""
        trace = Trace(self._plan, self._fixed, self.gammas, self._exact)
        return parameter_gradients(trace, adjoints, through_selection)

    def _up(self, columns: Mapping[str, Column]) -> Trace:
        """Evaluate some rows and keep all values."""
        values = dict(self._static)
        for i in self._batched:
            values[i] = self._evaluate(i, values, columns)
        return Trace(self._plan, self._batched, self.gammas, values, self._matrices, columns)

    def _down(self, trace: Trace, rows: int, seeds: ArrayLike, through_selection: bool) -> Gradients:
        states = self.program.sizes[self.program.query]
        static = Trace(self._plan, self._fixed, self.gammas, self._exact)
        seeds = np.broadcast_to(np.asarray(seeds, dtype=self.dtype), (states, rows))
        return gradients(trace, static, seeds, through_selection)

    def _with_rows(self, i: int, values: Mapping[int, Value], rows: int) -> Array:
        array = values[i].array if self.program.batched[i] else values[i].array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], rows))

    # operations -------------------------------------------------------------------------------------------

    def _evaluate(self, i: int, values: Mapping[int, Value], columns: Mapping[str, Column]) -> Value:
        operation = self.program.operations[i]
        match operation:
            case Parameter():
                return Value(self._parameters[operation.node, operation.part].astype(np.float64, copy=False))
            case Constant():
                return Value(operation.table)
            case Likelihood():
                return Value(self._likelihood(operation, columns))
            case Slice():
                return self._slice(operation, values, columns)
            case Gather():
                return self._gather(operation, values)
            case Contract():
                return self._contract(i, operation, values)
            case Select():
                return self._select(i, operation, values)
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

    def _contract(self, i: int, operation: Contract, values: Mapping[int, Value]) -> Value:
        step, operands = self._plan.contraction(i), [values[j] for j in operation.inputs]
        exponents = [v.exponent for v in operands if v.exponent is not None]
        exponent = sum(exponents[1:], start=exponents[0]) if exponents else None
        if isinstance(step, TableProduct):
            if i not in self._matrices:
                self._matrices[i] = step.matrix(operands[step.table].array)
            return Value(step.product(self._matrices[i], operands[step.batch].array), exponent)
        return Value(step.product(*(v.array for v in operands)), exponent)

    def _select(self, i: int, operation: Select, values: Mapping[int, Value]) -> Value:
        inputs = [values[j].array for j in operation.inputs]
        return Value(self._plan.selection(i).table(inputs, self.gammas[operation.node]))

    def _normalise(self, operation: Normalise, values: Mapping[int, Value]) -> Value:
        joint = values[operation.inputs[0]].array
        total = joint.sum(axis=0, keepdims=True)
        return Value(np.divide(joint, total, out=np.full_like(joint, np.nan), where=total > 0))

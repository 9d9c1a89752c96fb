"""The reference interpreter of programs: NumPy, batch axis last.

A value is an array (axes..., rows) if it depends on evidence, (axes...) if it only depends on parameters; the
latter are computed once per set of parameters. Rescaled values carry an exponent per row, and every value a bound that
tells where numbers may have become too small for floats: such rows are computed again with an exponent per entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from functools import cached_property
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
from tacit.engines.careful import Careful
from tacit.engines.numpy_steps import Array, Plan, TableProduct, Value, as_floats, in_order, lowest, rescale
from tacit.engines.results import Decided, Gradients, Results
from tacit.engines.reverse import Trace, gradients, parameter_gradients
from tacit.engines.wide import Wide
from tacit.evidence import Column
from tacit.machine import in_own_threads

T = TypeVar("T")

CHUNK_ELEMENTS = 2**19  # entries alive at one time: a few megabytes, about the size of the caches
MAX_CHUNK = 2**14
GRADIENT_ELEMENTS = 2**22  # entries kept for the reverse: 32 megabytes, beyond which more rows gain nothing


class NumpyEngine(Careful):
    """A program with its numbers. `gammas` gives the slope of each testing node, None for hard tests."""

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
    ) -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        self.chunk = self.chunk_of(program)
        # all values of these rows are kept for the reverse
        self.gradient_chunk = max(1, min(MAX_CHUNK, GRADIENT_ELEMENTS // max(1, program.cost.elements)))
        self._limit = np.finfo(self.dtype).minexp  # products from 2**_limit on are as exact as any
        selected = {op.node: i for i, op in enumerate(program) if isinstance(op, Select)}
        # for every testing node, where the marginal of its parents is, and its selected table
        self._selections = {node: (place.marginal, selected[node]) for node, place in program.selections.items()}
        # callers divide by the sum themselves, and tell what is undefined
        every = [i for i in range(len(program)) if i != program.posterior]
        self._batched = [i for i in every if program.batched[i]]
        self._fixed = [i for i in every if not program.batched[i]]
        self._plan = Plan(program)
        self.gammas: Mapping[str, float | None] = {}
        self.parameters: Mapping[tuple[str, str], Array] = {}
        self._exact: dict[int, Value] = {}
        self._reached: dict[frozenset[Any], list[int]] = {}
        self.update(parameters, gammas)

    threads: int | None = None  # those of BLAS, where they are limited

    @in_own_threads
    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes, and compute again what depends on numbers alone."""
        self.gammas = {**self.gammas, **gammas}
        self.parameters = {**self.parameters, **parameters}
        # what is computed once is computed with all digits and the whole range
        self._exact = dict(self._exact)
        for i in self._stale(frozenset((*parameters, *gammas))) if self._exact else self._fixed:
            self._exact[i] = self._evaluate(i, self._exact, {})
        self._static = self._exact
        if self.dtype != np.float64:
            self._static = {i: value._replace(array=value.array.astype(self.dtype)) for i, value in self._exact.items()}
        self._matrices: dict[int, Array] = {}  # tables as matrix products need them, made on first use
        self._floors: dict[int, Floats] = {}  # bounds of the tables' entries, likewise
        self._again = None

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

    def in_doubt(self, i: int, dtype: np.dtype[np.floating]) -> bool:
        """Whether digits of such a value may be lost, in floats of some size."""
        floor = self._floor(i, self._static)
        return bool((floor < np.finfo(dtype).minexp).any())

    @staticmethod
    def chunk_of(program: Program) -> int:
        """How many rows of a program to run at a time, so that what is alive stays in cache."""
        return max(1, min(MAX_CHUNK, CHUNK_ELEMENTS // max(1, program.cost.live)))

    # running ----------------------------------------------------------------------------------------------

    @in_own_threads
    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows, and say which are doubtful."""
        values = dict(self._static)
        wanted = [i for places in self._selections.values() for i in places] if selections else []
        ends = self.program.last_uses(wanted) if selections else self._ends
        for i in self._batched:
            values[i] = self._evaluate(i, values, columns)
            for j in ends[i]:
                if self.program.batched[j]:
                    del values[j]
        return self._results(values, rows, selections)

    @cached_property
    def _ends(self) -> list[list[int]]:
        return self.program.last_uses()

    def _results(self, values: Mapping[int, Value], rows: int, selections: bool) -> Results:
        joint, doubtful = values[self.program.joint], np.isneginf(self._floor(self.program.joint, values))
        return Results(
            self._with_rows(self.program.joint, joint.array, rows),
            np.broadcast_to(0 if joint.exponent is None else joint.exponent, (rows,)),
            np.broadcast_to(doubtful, (rows,)) if doubtful.any() else None,
            {node: self._decided(node, values, rows) for node in self._selections} if selections else {},
        )

    def _decided(self, node: str, values: Mapping[int, Value], rows: int) -> Decided:
        marginal, table = self._selections[node]
        weight = values[table].weight
        assert weight is not None
        return Decided(self._with_rows(marginal, values[marginal].array, rows), self._with_rows(table, weight, rows))

    def decided(self, rows: int) -> dict[str, Decided]:
        """How the testing nodes are decided whose selection does not depend on evidence."""
        fixed = [node for node, (_, table) in self._selections.items() if not self.program.batched[table]]
        return {node: self._decided(node, self._static, rows) for node in fixed}

    @in_own_threads
    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> tuple[Gradients, bool]:
        """Derivatives in plain floats. All values are kept between the sweeps: give at most `gradient_chunk` rows."""
        trace = self._up(columns)
        doubt = bool(np.isneginf(self._floor(self.program.joint, trace.values)).any())
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is computed again
            return self._down(trace, rows, seeds, through_selection), doubt

    @in_own_threads
    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives, with one sweep up; see `Careful.value_and_gradients`."""
        trace = self._up(columns)
        found = self._results(trace.values, rows, selections=False)
        if found.doubtful is not None:
            return super().value_and_gradients(columns, rows, seed_of)
        value, seeds = seed_of(found.joint)
        with np.errstate(over="ignore", invalid="ignore"):
            derivatives = self._down(trace, rows, seeds, True)
        return value, derivatives if derivatives.finite else self.gradients(columns, rows, seeds)

    def more_careful(self) -> NumpyEngine:
        """The same in float64, or with an exponent for every number."""
        if self.dtype == np.float64:
            return WideEngine(self.program, self.parameters, self.gammas)
        return NumpyEngine(self.program, self.parameters, self.gammas)

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

    def _down(self, trace: Trace, rows: int, seeds: Array, through_selection: bool) -> Gradients:
        static = Trace(self._plan, self._fixed, self.gammas, self._exact)
        return gradients(trace, static, seeds.astype(self.dtype, copy=False), through_selection)

    def _with_rows(self, i: int, array: Array, rows: int) -> Array:
        array = array if self.program.batched[i] else array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], rows))

    # how small entries can be ------------------------------------------------------------------------------

    def _floor(self, i: int, values: Mapping[int, Value]) -> Floats:
        """A lower bound of the logarithms of value i's entries: (rows,), or (1,) for a table."""
        floor = values[i].floor
        if floor is not None:
            return floor
        if i not in self._floors:
            self._floors[i] = self._table_floor(i)
        return self._floors[i]

    def _table_floor(self, i: int) -> Floats:
        operation, table = self.program.operations[i], self._exact[i].array
        doubts = [self._floor(j, self._exact) for j in operation.inputs]
        match operation:
            case Contract():
                doubts.append(self._product_floor(operation, self._exact))
            case Select():
                doubts.append(self._selected_floor(i, operation, self._exact, table))
        floor = lowest(table.reshape(-1, 1))
        lost = any(np.isneginf(doubt).any() for doubt in doubts) or (floor < self._limit).any()
        return np.full(1, -np.inf) if lost else floor

    def _product_floor(self, operation: Contract, values: Mapping[int, Value]) -> Floats:
        """The sum of the operands' bounds; where it is not good enough, that of their smallest entries."""
        floors = [self._floor(j, values) for j in operation.inputs]
        bound = sum(floors[1:], start=floors[0])
        if len(floors) == 1 or bound.min() >= self._limit:
            return bound
        tight = [self._tight(j, values, floor) for j, floor in zip(operation.inputs, floors, strict=True)]
        bound = sum(tight[1:], start=tight[0])
        return np.where(bound < self._limit, -np.inf, bound)

    def _selected_floor(self, i: int, operation: Select, values: Mapping[int, Value], table: Array) -> Floats:
        marginal, plus, minus, thresholds, _ = (self._floor(j, values) for j in operation.inputs)
        floor = np.minimum(plus, minus)
        if self.gammas[operation.node] is None:  # a test multiplies the sum of the marginal by the threshold
            return np.where(marginal + thresholds >= self._limit, floor, -np.inf)
        lost = self._plan.selection(i).lost(table, [values[j].array for j in operation.inputs])
        low = lowest(table if self.program.batched[i] else table.reshape(-1, 1))
        return np.where(np.isneginf(marginal + floor) | lost.reshape(-1, len(low)).any(axis=0), -np.inf, low)

    def _tight(self, j: int, values: Mapping[int, Value], floor: Floats) -> Floats:
        array = values[j].array
        batched = self.program.batched[j]
        return np.where(np.isneginf(floor), -np.inf, lowest(array if batched else array.reshape(-1, 1)))

    # operations -------------------------------------------------------------------------------------------

    def _evaluate(self, i: int, values: Mapping[int, Value], columns: Mapping[str, Column]) -> Value:
        operation = self.program.operations[i]
        match operation:
            case Parameter():
                return Value(self._parameter(operation))
            case Constant():
                return Value(self._number(operation.table))
            case Likelihood():
                return self._likelihood(operation, columns)
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
                raise AssertionError("callers divide by the sum themselves")

    def _number(self, array: Array) -> Array:
        """What is computed once is computed with all digits and the whole range."""
        return array.astype(np.float64, copy=False)

    def _parameter(self, operation: Parameter) -> Array:
        table = self.parameters[operation.node, operation.part]
        return table if operation.part in ("thresholds", "test") else self._number(table)

    def _likelihood(self, operation: Likelihood, columns: Mapping[str, Column]) -> Value:
        column = columns.get(operation.variable)
        if column is None:
            return Value(np.ones((self.program.sizes[operation.variable], 1), dtype=self.dtype), floor=np.zeros(1))
        array = column.likelihoods()
        floor = lowest(array)
        return Value(array.astype(self.dtype, copy=False), floor=np.where(floor < self._limit, -np.inf, floor))

    def _slice(self, operation: Slice, values: Mapping[int, Value], columns: Mapping[str, Column]) -> Value:
        source = operation.inputs[0]
        axes = self.program.operations[source].axes
        order = [axes.index(a) for a in (*operation.variables, *operation.axes)]
        index = tuple(columns[v].states() for v in operation.variables)
        picked = values[source].array.transpose(order)[index]  # (rows, axes...)
        return Value(in_order(np.moveaxis(picked, 0, -1)), floor=self._floor(source, values))

    def _gather(self, operation: Gather, values: Mapping[int, Value]) -> Value:
        source = operation.inputs[0]
        value, batched = values[source], self.program.batched[source]
        flat = value.array.reshape(-1, value.array.shape[-1]) if batched else value.array.reshape(-1)
        index = operation.index
        taken = flat[np.maximum(index, 0)]
        taken = taken if isinstance(taken, Wide) else np.array(taken)  # an array even where it has no axes
        taken[index == ZERO] = 0.0
        if (index == ONE).any():
            assert value.exponent is None, "a rescaled value has no constant 1"
            taken[index == ONE] = 1.0
        return Value(taken, value.exponent, self._floor(source, values) if batched else None)

    def _contract(self, i: int, operation: Contract, values: Mapping[int, Value]) -> Value:
        step, operands = self._plan.contraction(i), [values[j] for j in operation.inputs]
        exponents = [v.exponent for v in operands if v.exponent is not None]
        exponent = sum(exponents[1:], start=exponents[0]) if exponents else None
        floor = self._product_floor(operation, values) if self.program.batched[i] else None
        if isinstance(step, TableProduct):
            if i not in self._matrices:
                self._matrices[i] = step.matrix(operands[step.table].array)
            return Value(step.product(self._matrices[i], operands[step.batch].array), exponent, floor)
        return Value(step.product(*(v.array for v in operands)), exponent, floor)

    def _select(self, i: int, operation: Select, values: Mapping[int, Value]) -> Value:
        inputs, gamma = [values[j].array for j in operation.inputs], self.gammas[operation.node]
        table, weight = self._plan.selection(i).table(inputs, gamma)
        floor = self._selected_floor(i, operation, values, table) if self.program.batched[i] else None
        return Value(table, floor=floor, weight=weight)


class WideEngine(NumpyEngine):
    """The same program on numbers with an exponent each, which cannot underflow: for the rows that need it."""

    def _number(self, array: Array) -> Array:
        return Wide.of(array)  # type: ignore[return-value]

    def _floor(self, i: int, values: Mapping[int, Value]) -> Floats:
        return np.zeros(1)

    def _selected_floor(self, i: int, operation: Select, values: Mapping[int, Value], table: Array) -> Floats:
        return np.zeros(1)

    def _likelihood(self, operation: Likelihood, columns: Mapping[str, Column]) -> Value:
        return Value(self._number(super()._likelihood(operation, columns).array))

    def _results(self, values: Mapping[int, Value], rows: int, selections: bool) -> Results:
        found = super()._results(values, rows, selections)
        exponent = self._exponent(values)
        decided = {}
        for node, (marginal, weight) in found.selections.items():
            over = tuple(range(marginal.ndim - 1))
            decided[node] = Decided(marginal.floats(-marginal.top(over)), as_floats(weight))  # type: ignore[attr-defined]
        joint = found.joint.floats(-exponent)  # type: ignore[attr-defined]
        return Results(joint, np.broadcast_to(exponent, (rows,)), None, decided)

    def _exponent(self, values: Mapping[int, Value]) -> NDArray[np.int64]:
        """The exponent of each row of the joint."""
        joint: Wide = values[self.program.joint].array  # type: ignore[assignment]
        return joint.top(axis=0)

    value_and_gradients = Careful.value_and_gradients

    def gradients(
        self,
        columns: Mapping[str, Column],
        rows: int,
        seeds: ArrayLike,
        through_selection: bool = True,
        exponent: NDArray[np.int64] | None = None,
    ) -> Gradients:
        """Derivatives by every parameter and every likelihood; see `Careful.gradients`."""
        trace = self._up(columns)
        states = self.program.sizes[self.program.query]
        by_joint = np.broadcast_to(np.asarray(seeds, dtype=self.dtype), (states, rows))
        scale = self._exponent(trace.values) if exponent is None else exponent
        return self._down(trace, rows, Wide.of(by_joint, -scale), through_selection)  # type: ignore[arg-type]

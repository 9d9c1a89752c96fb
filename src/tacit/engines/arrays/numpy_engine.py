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

from tacit.base.floats import Floats
from tacit.base.machine import in_own_threads, limited
from tacit.compiler.operations import Add, Contract, Select, Structured
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.program import Program
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.numpy_arrays import NumpyArrays, WideArrays, as_floats, lowest
from tacit.engines.arrays.reverse import gradients, parameter_gradients
from tacit.engines.arrays.structured_traceback import Tracing
from tacit.engines.arrays.traceback import descend
from tacit.engines.arrays.wide import Wide
from tacit.engines.engine import CHUNK_ELEMENTS, GRADIENT_ELEMENTS, Columns, Engine, Slopes, Tables, rows_within
from tacit.engines.results import Array, Decided, Descent, Gradients, Results, Reverse
from tacit.evidence.column import blocks

T = TypeVar("T")

THREADED_PRODUCT = 2**26  # multiply-adds, milliseconds, from which a product is worth the threads of BLAS


class NumpyEngine(Engine):
    """A program with its numbers. `gammas` gives the slope of each testing node, None for hard tests."""

    def __init__(self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64") -> None:
        self.program, self.dtype = program, np.dtype(dtype)
        self.chunk = rows_within(CHUNK_ELEMENTS, program.cost.live)
        self.gradient_chunk = rows_within(GRADIENT_ELEMENTS, program.cost.elements)
        # for every testing node, where the marginal of its parents is, and its selected tables
        self._selections = {node: (place.marginal, program.selects[node]) for node, place in program.selections.items()}
        self._batched = [i for i in range(len(program)) if program.batched[i]]
        self._fixed = [i for i in range(len(program)) if not program.batched[i]]
        # what is computed once is computed with all digits and the whole range
        self._once, self._rows = self._arrays(np.dtype(np.float64)), self._arrays(self.dtype)
        self._steps = Steps(program, self._once, self._rows)
        self.gammas: Slopes = {}
        self.parameters: Tables = {}
        self._exact = Fixed()
        self._reached: dict[frozenset[Any], list[int]] = {}
        self.update(parameters, gammas)

    def _arrays(self, dtype: np.dtype[np.floating]) -> NumpyArrays:
        return NumpyArrays(dtype)

    threads: int | None = None  # those of BLAS, where they are limited

    @in_own_threads
    def update(self, parameters: Tables, gammas: Slopes) -> None:
        self.gammas = {**self.gammas, **gammas}
        self.parameters = {**self.parameters, **parameters}
        stale = self._stale(frozenset((*parameters, *gammas))) if self._exact.values else self._fixed
        exact = self._evaluation(Fixed(self._exact.values))
        exact.follow(stale)
        self._exact = self._tables = Fixed(exact.values)
        if self.dtype != np.float64:
            cast = {i: value._replace(array=self._rows.cast(value.array)) for i, value in exact.values.items()}
            self._tables = Fixed(cast)
        self._fallback = None

    def _stale(self, keys: frozenset[Any]) -> list[int]:
        if keys not in self._reached:
            self._reached = {keys: changed(self.program, keys)}  # training changes the same ones again and again
        return self._reached[keys]

    def _evaluation(self, tables: Fixed, columns: Columns | None = None, through: bool = True) -> ArrayEvaluation:
        given = columns or {}
        return ArrayEvaluation(
            self._steps,
            tables,
            Sources(
                self._parameter,
                self.gammas,
                lambda variable: given[variable].likelihoods() if variable in given else None,
                lambda variable: given[variable].states(),
            ),
            self._table_floor,
            through,
        )

    def _parameter(self, node: str, part: str) -> Array:
        table = self.parameters[node, part]
        return table if part == "thresholds" else self._once.cast(table)

    def clone(self) -> NumpyEngine:
        return copy(self)

    @property
    def values(self) -> Mapping[int, Value]:
        """All values that do not depend on evidence."""
        return self._exact.values

    def static(self, i: int) -> Array:
        """A value that does not depend on evidence."""
        array: Array = self._tables.values[i].array
        return array

    def in_doubt(self, i: int, dtype: np.dtype[np.floating]) -> bool:
        """Whether digits of such a value may be lost, in floats of some size."""
        floor = self._evaluation(self._tables).floor(i)
        return bool((floor < np.finfo(dtype).minexp).any())

    def all_from(self, exponent: int) -> bool:
        """Whether no such value has an entry below 2**exponent, and so far from any bound that none can be in doubt.

        That settles at once what `in_doubt` works out value by value, which takes longer than a step of learning.
        """
        if self._most_factors is None:
            return False
        numbers = np.concatenate([value.array for value in self.values.values()] or [np.ones(1)], axis=None)
        smallest = float(np.min(numbers, where=numbers > 0, initial=1.0))
        return bool(smallest >= 2.0 ** max(exponent, np.finfo(np.float64).minexp / self._most_factors))

    @cached_property
    def _most_factors(self) -> int | None:
        """How many values are multiplied at a time, at most, before evidence comes in; None if that is not all."""
        operations = [self.program.operations[i] for i in self._fixed]
        if any(isinstance(operation, Select | Add | Structured) for operation in operations):
            return None
        return max([1, *(len(operation.inputs) for operation in operations)])

    def _table_floor(self, frame: ArrayEvaluation, i: int) -> Floats:
        """A lower bound of the logarithms of a table's entries, or minus infinity where digits may be lost: (1,)."""
        exact = frame if frame.tables is self._exact else self._evaluation(self._exact)
        made, inputs = exact.values[i], self.program.operations[i].inputs
        doubts = [*(frame.floor(j) for j in inputs), self._steps.step(i).floor(exact, made)]
        floor = lowest(made.array.reshape(-1, 1))
        lost = any(doubt is not None and np.isneginf(doubt).any() for doubt in doubts)
        return np.full(1, -np.inf) if lost or (floor < self._rows.limit).any() else floor

    @in_own_threads
    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        frame = self._evaluation(self._tables, columns)
        wanted = [i for marginal, tables in self._selections.values() for i in (marginal, *tables)]
        with limited(None if rows * self._largest_product >= THREADED_PRODUCT else 1):
            frame.follow(self._batched, self.program.last_uses(wanted) if selections else self._ends)
        return self._results(frame, rows, selections)

    @cached_property
    def _largest_product(self) -> int:
        """The most multiply-adds that one product takes for a row."""
        products = (i for i in self._batched if isinstance(self.program.operations[i], Contract))
        return max(map(self.program.multiply_adds, products), default=0)

    @cached_property
    def _ends(self) -> list[list[int]]:
        return self.program.last_uses()

    def _results(self, frame: ArrayEvaluation, rows: int, selections: bool) -> Results:
        joint, imprecise = frame.values[self.program.joint], np.isneginf(frame.floor(self.program.joint))
        return Results(
            self._with_rows(self.program.joint, joint.array, rows).reshape(-1, rows),
            np.broadcast_to(0 if joint.exponent is None else joint.exponent, (rows,)),
            np.broadcast_to(imprecise, (rows,)) if imprecise.any() else None,
            {node: self._decided(node, frame.values, rows) for node in self._selections} if selections else {},
        )

    def _decided(self, node: str, values: Mapping[int, Value], rows: int) -> Decided:
        marginal, tables = self._selections[node]
        weights = [as_floats(self._steps.step(i).weight(values[i]).astype(self.dtype)) for i in tables]  # type: ignore[attr-defined]
        return Decided.of(
            self._with_rows(marginal, values[marginal].array, rows),
            [self._with_rows(i, weight, rows) for i, weight in zip(tables, weights, strict=True)],
        )

    def decided(self, rows: int) -> dict[str, Decided]:
        """How the testing nodes are decided whose selection does not depend on evidence."""
        fixed = [node for node, (_, tables) in self._selections.items() if not self.program.batched[tables[-1]]]
        return {node: self._decided(node, self._tables.values, rows) for node in fixed}

    @in_own_threads
    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        """Derivatives in plain floats. All values are kept between the sweeps: give at most `gradient_chunk` rows."""
        frame = self._up(columns, through_selection)
        results = self._results(frame, rows, selections=False)
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is computed again
            return Reverse(self._down(frame, seeds), results.exponent, results.imprecise is not None)

    @in_own_threads
    def value_and_gradients(
        self, columns: Columns, rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives, with one forward pass; see `Engine.value_and_gradients`."""
        frame = self._up(columns)
        results = self._results(frame, rows, selections=False)
        if results.imprecise is not None:
            return super().value_and_gradients(columns, rows, seed_of)
        value, seeds = seed_of(results.joint)
        with np.errstate(over="ignore", invalid="ignore"):
            derivatives = self._down(frame, seeds)
        return value, derivatives if derivatives.finite else self.gradients(columns, rows, seeds, results.exponent)

    @in_own_threads
    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        """States from plain floats. All values are kept: give at most `gradient_chunk` rows."""
        if self.program.traced:
            parts = blocks(columns, rows, self._tracing.chunk)
            return Descent.joined([self._traced(b.columns, b.rows, _rows_of(draws, some)) for some, b in parts])
        frame = self._up(columns)
        observed = {name: columns[name].states() for name in self.program.observed}
        states = descend(self.program, lambda i: frame.values[i].array, observed, rows, draws)
        return Descent(states, self._results(frame, rows, selections=False))

    def _traced(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        """States of variables, for a traced program."""
        frame = self._up(columns)
        states = self._tracing.states(lambda i: frame.values[i].array, rows, draws)
        results = self._results(frame, rows, selections=False)
        possible = results.joint[0] > 0 if results.imprecise is None else (results.joint[0] > 0) & ~results.imprecise
        assert all((codes[possible] >= 0).all() for codes in states.values()), "a product without some variable"
        return Descent(states, results)

    @cached_property
    def _tracing(self) -> Tracing:
        return Tracing(self.program)

    @property
    def tracer(self) -> Engine:
        return self if self.dtype == np.float64 else self.fallback

    def make_fallback(self) -> NumpyEngine:
        if self.dtype == np.float64:
            return WideEngine(self.program, self.parameters, self.gammas)
        return NumpyEngine(self.program, self.parameters, self.gammas)

    def parameter_gradients(
        self, adjoints: Mapping[int, Array], through_selection: bool = True
    ) -> tuple[dict[tuple[str, str], Floats], dict[str, float]]:
        """Derivatives by the tables and by the slopes, given those by some values that evidence does not reach."""
        return parameter_gradients(self._evaluation(self._exact, through=through_selection), self._fixed, adjoints)

    def _up(self, columns: Columns, through_selection: bool = True) -> ArrayEvaluation:
        """Evaluate some rows and keep all values."""
        frame = self._evaluation(self._tables, columns, through_selection)
        frame.follow(self._batched)
        return frame

    def _down(self, frame: ArrayEvaluation, seeds: Array) -> Gradients:
        once = self._evaluation(self._exact, through=frame.through)
        return gradients(frame, self._batched, once, self._fixed, seeds.astype(self.dtype, copy=False))

    def _with_rows(self, i: int, array: Array, rows: int) -> Array:
        array = array if self.program.batched[i] else array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], rows))


def _rows_of(draws: Floats | None, rows: slice) -> Floats | None:
    return None if draws is None else np.ascontiguousarray(draws[:, rows])


class WideEngine(NumpyEngine):
    """An engine whose numbers have an exponent each and cannot underflow: the last fallback."""

    def _arrays(self, dtype: np.dtype[np.floating]) -> NumpyArrays:
        return WideArrays(dtype)

    def _results(self, frame: ArrayEvaluation, rows: int, selections: bool) -> Results:
        results = super()._results(frame, rows, selections)
        exponent = self._exponent(frame)
        decided = {}
        for node, (marginal, weight) in results.selections.items():
            over = tuple(range(marginal.ndim - 1))
            decided[node] = Decided(marginal.floats(-marginal.top(over)), weight)  # type: ignore[attr-defined]
        joint = results.joint.floats(-exponent)  # type: ignore[attr-defined]
        return Results(joint, np.broadcast_to(exponent, (rows,)), None, decided)

    def _exponent(self, frame: ArrayEvaluation) -> NDArray[np.int64]:
        """The exponent of each row of the joint."""
        joint: Wide = frame.values[self.program.joint].array
        return joint.reshape(self.program.outputs, -1).top(axis=0)

    value_and_gradients = Engine.value_and_gradients

    def gradients(
        self,
        columns: Columns,
        rows: int,
        seeds: ArrayLike,
        exponent: ArrayLike,
        through_selection: bool = True,
        imprecise: NDArray[np.intp] | None = None,
    ) -> Gradients:
        frame = self._up(columns, through_selection)
        states = self.program.outputs
        by_joint = np.broadcast_to(np.asarray(seeds, dtype=self.dtype), (states, rows))
        scale = np.broadcast_to(np.asarray(exponent, dtype=np.int64), (rows,))
        return self._down(frame, Wide.of(by_joint, -scale))  # type: ignore[arg-type]

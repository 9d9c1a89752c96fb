"""The reference interpreter of programs: NumPy, batch axis last.

A value is an array (axes..., rows) if it depends on evidence, (axes...) if it only depends on parameters; the
latter are computed once per set of parameters. Rescaled values carry an exponent per row, and every value a bound that
tells where numbers may have become too small for floats: such rows are computed again with an exponent per entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.floats import Floats
from tacit.base.machine import in_own_threads, limited
from tacit.compiler.operations import Add, Select, Structured
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.program import Program
from tacit.engines.arrays.array_engine import ArrayEngine, Backward
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.numpy_arrays import NumpyArrays, WideArrays, lowest
from tacit.engines.arrays.reverse import ByParameter, gradients, parameter_gradients
from tacit.engines.arrays.structured_traceback import Tracing
from tacit.engines.arrays.wide import Wide
from tacit.engines.engine import CHUNK_ELEMENTS, MAX_CHUNK, Columns, Engine, Slopes, Tables, rows_within
from tacit.engines.results import Array, Decided, Descent, Gradients, Results
from tacit.evidence.column import Column, blocks
from tacit.evidence.density_column import FindShares

# Entries of a value up to which it stays in the cache of a core, and its memory is used again, not returned to the
# system; fewer rows than that are not worth what NumPy takes for each call.
VALUE_ELEMENTS, MIN_CHUNK = 2**15, 2**8
GRADIENT_ELEMENTS = 2**24  # entries kept for a backward pass: 128 megabytes
THREADED_PRODUCT = 2**26  # multiply-adds, milliseconds, from which a product is worth the threads of BLAS


class NumpyEngine(ArrayEngine):
    """A program with its numbers. `gammas` gives the slope of each testing node, None for hard tests."""

    arrays: type[NumpyArrays] = NumpyArrays
    find_shares: FindShares | None = None  # a faster way to work out densities, if there is one

    def __init__(self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64") -> None:
        self.program, self.dtype, self._numpy_dtype = program, np.dtype(dtype), np.dtype(dtype)
        each = program.cost.elements // max(1, sum(program.batched))  # of a value, in the mean
        most = min(MAX_CHUNK, max(MIN_CHUNK, VALUE_ELEMENTS // max(1, each)))
        self.chunk = rows_within(CHUNK_ELEMENTS, program.cost.live, most)
        self.gradient_chunk = rows_within(GRADIENT_ELEMENTS, program.cost.elements, most)
        # what is computed once is computed with all digits and the whole range
        self._once, self._rows = self.arrays(np.float64), self.arrays(dtype)
        self._steps = Steps(program, self._once, self._rows)
        self.gammas: Slopes = {}
        self.parameters: Tables = {}
        self._exact = Fixed()
        self._reached: dict[frozenset[Any], list[int]] = {}
        self.update(parameters, gammas)

    @in_own_threads
    def update(self, parameters: Tables, gammas: Slopes) -> None:
        self.gammas = {**self.gammas, **gammas}
        self.parameters = {**self.parameters, **parameters}
        keys = frozenset((*parameters, *gammas))
        if self._exact.values and keys not in self._reached:  # training changes the same ones again and again
            self._reached = {keys: changed(self.program, keys)}
        exact = self._evaluation(Fixed(self._exact.values))
        exact.follow(self._reached[keys] if self._exact.values else self._fixed)
        self._exact = self._tables = Fixed(exact.values)
        if self.dtype != np.float64:
            cast = {i: value._replace(array=self._rows.cast(value.array)) for i, value in exact.values.items()}
            self._tables = Fixed(cast)
        self._fallback = None

    def _evaluation(
        self, tables: Fixed, columns: Columns | None = None, through: bool = True, keep: bool = True
    ) -> ArrayEvaluation:
        """With `keep`, likelihoods that were worked out are kept with their columns, for those who come next."""
        evidence = columns or {}
        sources = Sources(
            self._parameter,
            self.gammas,
            lambda variable: self._likelihoods(evidence[variable], keep) if variable in evidence else None,
            lambda variable: evidence[variable].states(),
            self.table_floor,
            through,
            lambda variable: self._rows.known_floor(evidence[variable]) if variable in evidence else None,
        )
        return ArrayEvaluation(self._steps, tables, sources)

    def _likelihoods(self, column: Column, keep: bool) -> Array:
        likelihoods: Array = self._rows.likelihoods_of(column, keep, self.find_shares)
        return likelihoods

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
        """Whether no such value has an entry below 2**exponent, and so far from any bound that none can be in doubt."""
        # settles at once what `in_doubt` works out value by value, which takes longer than a step of learning
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

    def table_floor(self, frame: ArrayEvaluation, i: int) -> Floats:
        """A lower bound of the logarithms of a table's entries, or minus infinity where digits may be lost: (1,)."""
        exact = frame if frame.tables is self._exact else self._evaluation(self._exact)
        table, inputs = exact.values[i], self.program.operations[i].inputs
        doubts = [*(frame.floor(j) for j in inputs), self._steps[i].floor(exact, table)]
        floor = lowest(table.array[..., None])
        lost = any(doubt is not None and np.isneginf(doubt).any() for doubt in doubts)
        return np.full(1, -np.inf) if lost or (floor < self._rows.limit).any() else floor

    @in_own_threads
    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        frame = self._evaluation(self._tables, columns, keep=False)
        with self._blas(rows):
            frame.follow(self._batched, self._last_uses_but_selections if selections else self._last_uses)
        return self._results(frame, rows, selections)

    def _blas(self, rows: int) -> AbstractContextManager[None]:
        """One thread for small products: more of them would wait for each other."""
        return limited(None if rows * self.program.largest_product >= THREADED_PRODUCT else 1)

    @cached_property
    def _last_uses_but_selections(self) -> list[list[int]]:
        selected = [i for tables in self.program.selects.values() for i in tables]
        return self._last_uses_but(*(place.marginal for place in self.program.selections.values()), *selected)

    def _results(self, frame: ArrayEvaluation, rows: int, selections: bool = False) -> Results:
        joint, imprecise = frame.values[self.program.joint], np.isneginf(frame.floor(self.program.joint))
        nodes = self.program.selections if selections else ()
        return Results(
            self._with_rows(self.program.joint, joint.array, rows).reshape(-1, rows),
            np.broadcast_to(0 if joint.exponent is None else joint.exponent, (rows,)),
            np.broadcast_to(imprecise, (rows,)) if imprecise.any() else None,
            {node: self._decided(node, frame.values, rows) for node in nodes},
        )

    def decided(self, rows: int) -> dict[str, Decided]:
        """How the testing nodes are decided whose selection does not depend on evidence."""
        fixed = [node for node, tables in self.program.selects.items() if not self.program.batched[tables[-1]]]
        return {node: self._decided(node, self._tables.values, rows) for node in fixed}

    def _numpy(self, array: Array) -> Array:
        return array

    def _forward(self, columns: Columns, through_selection: bool = True) -> ArrayEvaluation:
        frame = self._evaluation(self._tables, columns, through_selection)
        frame.follow(self._batched)
        return frame

    def _kept(self, columns: Columns, rows: int) -> tuple[ArrayEvaluation, Results]:
        frame = self._forward(columns)
        return frame, self._results(frame, rows)

    def _differentiable(self, columns: Columns, rows: int, through_selection: bool = True) -> tuple[Results, Backward]:
        with self._blas(rows):
            frame = self._forward(columns, through_selection)

        def backward(seeds: Array) -> Gradients:
            with self._blas(rows), np.errstate(over="ignore", invalid="ignore"):  # no numbers are computed again
                return self._backward(frame, seeds)

        return self._results(frame, rows), backward

    def _backward(self, frame: ArrayEvaluation, seeds: Array) -> Gradients:
        once = self._evaluation(self._exact, through=frame.through)
        return gradients(frame, self._batched, once, self._fixed, seeds.astype(self.dtype, copy=False))

    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        if not self.program.traced:
            return super().attempt_descent(columns, rows, draws)
        parts = []
        for some, block in blocks(columns, rows, self._tracing.chunk):
            drawn = None if draws is None else np.ascontiguousarray(draws[:, some])
            with limited(self.threads):
                frame, results = self._kept(block.columns, block.rows)
                states = self._tracing.states(frame.values, block.rows, drawn)
            possible = results.joint[0] > 0
            if results.imprecise is not None:
                possible &= ~results.imprecise
            assert all((codes[possible] >= 0).all() for codes in states.values()), "a product without some variable"
            parts.append(Descent(states, results))
        return Descent.joined(parts)

    @cached_property
    def _tracing(self) -> Tracing:
        return Tracing(self.program)

    @property
    def tracer(self) -> Engine:
        return self if self.dtype == np.float64 else self.fallback

    def make_fallback(self) -> NumpyEngine:
        wider = WideEngine if self.dtype == np.float64 else NumpyEngine
        return wider(self.program, self.parameters, self.gammas)

    def parameter_gradients(self, adjoints: Mapping[int, Array], through_selection: bool = True) -> ByParameter:
        """Derivatives by the tables and by the slopes, given those by some values that evidence does not reach."""
        return parameter_gradients(self._evaluation(self._exact, through=through_selection), self._fixed, adjoints)


class WideEngine(NumpyEngine):
    """An engine whose numbers have an exponent each and cannot underflow: the last fallback."""

    arrays = WideArrays

    def doubtful(self, columns: Columns, results: Results) -> NDArray[np.bool_] | None:
        """None: these numbers have the range of densities."""
        return results.imprecise

    def _results(self, frame: ArrayEvaluation, rows: int, selections: bool = False) -> Results:
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
        by_joint = np.broadcast_to(np.asarray(seeds, dtype=self.dtype), (self.program.outputs, rows))
        scale = np.broadcast_to(np.asarray(exponent, dtype=np.int64), (rows,))
        frame = self._forward(columns, through_selection)
        return self._backward(frame, Wide.of(by_joint, -scale))  # type: ignore[arg-type]

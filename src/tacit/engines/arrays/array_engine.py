"""What engines on arrays have in common, whatever library the arrays are of."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tacit.base.floats import Floats
from tacit.base.machine import in_own_threads
from tacit.compiler.operations.array_rules import Value
from tacit.engines.arrays.evaluation import ArrayEvaluation, Steps
from tacit.engines.arrays.numpy_arrays import as_floats
from tacit.engines.arrays.traceback import descend
from tacit.engines.engine import Columns, Engine, untrusted
from tacit.engines.results import Array, Decided, Descent, Gradients, Results, Reverse

T = TypeVar("T")
Backward = Callable[[Array], Gradients]  # from derivatives by the mantissas of a joint (states, rows)


class ArrayEngine(Engine):
    """A program with its numbers, run operation by operation; derivatives and tracebacks keep all values."""

    threads: int | None = None  # of BLAS or torch, where they are limited
    _steps: Steps
    _numpy_dtype: np.dtype[np.floating]

    @cached_property
    def _batched(self) -> list[int]:
        return [i for i, batched in enumerate(self.program.batched) if batched]

    @cached_property
    def _fixed(self) -> list[int]:
        return [i for i, batched in enumerate(self.program.batched) if not batched]

    @cached_property
    def _last_uses(self) -> list[list[int]]:
        return self._last_uses_but()

    def _last_uses_but(self, *kept: int) -> list[list[int]]:
        """For every operation, the batched values that none after it needs, nor anybody else."""
        return [[j for j in ends if self.program.batched[j]] for ends in self.program.last_uses(kept)]

    @abstractmethod
    def _differentiable(self, columns: Columns, rows: int, through_selection: bool = True) -> tuple[Results, Backward]:
        """A forward pass, and the backward pass that goes with it."""

    @abstractmethod
    def _kept(self, columns: Columns, rows: int) -> tuple[ArrayEvaluation, Results]:
        """A forward pass with all its values."""

    @abstractmethod
    def _numpy(self, array: Any) -> Array:
        """An array of the library as one of NumPy."""

    @in_own_threads
    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        results, backward = self._differentiable(columns, rows, through_selection)
        return Reverse(backward(seeds), results.exponent, results.imprecise is not None)

    @in_own_threads
    def value_and_gradients(
        self, columns: Columns, rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives, with one forward pass; see `Engine.value_and_gradients`."""
        results, backward = self._differentiable(columns, rows)
        if self.doubtful(columns, results) is not None:
            return super().value_and_gradients(columns, rows, seed_of)
        value, seeds = seed_of(results.joint)
        gradients = backward(seeds)
        return value, gradients if gradients.finite else self.gradients(columns, rows, seeds, results.exponent)

    @in_own_threads
    def trusting_gradients(
        self, columns: Columns, rows: int, least: int, seed_of: Callable[[Results], Array]
    ) -> tuple[Results, Gradients]:
        """With one forward pass, where all rows can be trusted."""
        results, backward = self._differentiable(columns, rows, through_selection=False)
        if not untrusted(columns, results, least).size:
            by_joint = np.broadcast_to(seed_of(results), (self.program.outputs, rows))
            gradients = backward(by_joint)
            if gradients.finite:
                return results, gradients.by_logs(columns)
        return super().trusting_gradients(columns, rows, least, seed_of)

    @in_own_threads
    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        frame, results = self._kept(columns, rows)
        observed = {name: columns[name].states() for name in self.program.observed}
        states = descend(self.program, lambda i: self._numpy(frame.values[i].array), observed, rows, draws)
        return Descent(states, results)

    def _decided(self, node: str, values: Mapping[int, Value], rows: int) -> Decided:
        """How a testing node was decided."""
        marginal, tables = self.program.selections[node].marginal, self.program.selects[node]
        arrays = [self._numpy(self._steps[i].weight(values[i])) for i in tables]  # type: ignore[attr-defined]
        weights = [as_floats(weight).astype(self._numpy_dtype) for weight in arrays]
        spread = [self._with_rows(i, weight, rows) for i, weight in zip(tables, weights, strict=True)]
        return Decided.of(self._with_rows(marginal, self._numpy(values[marginal].array), rows), spread)

    def _with_rows(self, i: int, array: Array, rows: int) -> Array:
        array = array if self.program.batched[i] else array[..., None]
        return np.broadcast_to(array, (*array.shape[:-1], rows))

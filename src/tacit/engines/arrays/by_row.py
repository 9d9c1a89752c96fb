"""Derivatives by the tables for each row by itself, where other sweeps add them up over rows.

Tables count as if they depended on evidence: each is one row that speaks for all, and its adjoint has all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tacit.base.floats import divide
from tacit.base.machine import in_own_threads
from tacit.compiler.operations import Constant, Parameter
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.operations.axes import Key
from tacit.compiler.program import Program
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed
from tacit.engines.arrays.numpy_arrays import as_floats, lowest
from tacit.engines.arrays.numpy_engine import NumpyEngine, WideEngine
from tacit.engines.arrays.reverse import BackwardPass
from tacit.engines.arrays.wide import Wide
from tacit.engines.engine import Columns, Slopes, Tables
from tacit.engines.results import Array
from tacit.evidence.column import take


class ByRow(NumpyEngine):
    """A program that indexes no tables, with its numbers."""

    def __init__(self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64") -> None:
        super().__init__(replace(program, batched=(True,) * len(program)), parameters, gammas, dtype)
        self._sources = Fixed({i: self._source(i) for i in self._batched if not self._depends(i)})

    def _depends(self, i: int) -> bool:
        return not isinstance(self.program.operations[i], Parameter | Constant)

    def _source(self, i: int) -> Value:
        operation = self.program.operations[i]
        if isinstance(operation, Parameter):
            array = self._parameter(operation.node, operation.part)[..., None]
        else:
            assert isinstance(operation, Constant)
            array = self._rows.constant(operation.table)[..., None]
        return Value(array, floor=lowest(array.reshape(-1, 1)))

    def _up(self, columns: Columns, through_selection: bool = True) -> ArrayEvaluation:
        frame = self._evaluation(self._sources, columns, through_selection)
        frame.follow([i for i in self._batched if self._depends(i)])
        return frame

    @in_own_threads
    def derivatives(self, columns: Columns, rows: int, pause: Callable[[], None]) -> tuple[Array, dict[Key, Array]]:
        """The posterior (states, rows), and the derivatives of the joint by all tables, divided by its sum.

        The latter are (states, entries of the table..., rows). Where the evidence is impossible, all are 0. Give at
        most `gradient_chunk` rows. `pause` is called between sweeps.
        """
        frame = self._up(columns)
        results = self._results(frame, rows, selections=False)
        joint = results.joint
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is computed again
            inverse = divide(np.ones(rows), joint.sum(axis=0), otherwise=0.0)
            posterior = joint * inverse
            by_state = []
            for state in range(len(joint)):
                pause()
                by_state.append(self._by_tables(frame, np.eye(len(joint))[state][:, None] * inverse))
        made = {key: np.stack([tables[key] for tables in by_state]) for key in by_state[0]}
        lost = np.zeros(rows, dtype=np.bool_) if results.imprecise is None else results.imprecise.copy()
        for table in made.values():
            lost |= ~np.isfinite(table).reshape(-1, rows).all(axis=0)
        if lost.any() and not isinstance(self, WideEngine):
            rare = np.flatnonzero(lost)
            theirs, more = self.make_fallback().derivatives(take(columns, rare), len(rare), pause)
            posterior[:, rare] = theirs
            for key, table in made.items():
                table[..., rare] = more[key]
        return posterior, made

    def _by_tables(self, frame: ArrayEvaluation, seeds: Array) -> dict[Key, Array]:
        sweep = BackwardPass(frame)
        sweep.add(self.program.joint, self._scaled(frame, seeds).reshape([*self._states, seeds.shape[-1]]))
        sweep.run(self._batched)
        by_table: dict[Key, Array] = {}
        for i, source in self._sources.values.items():
            if isinstance(operation := self.program.operations[i], Parameter):
                nothing = np.zeros((*source.array.shape[:-1], seeds.shape[-1]))
                own = as_floats(sweep.adjoints.get(i, nothing))
                key = operation.node, operation.part
                by_table[key] = by_table[key] + own if key in by_table else own
        return by_table

    @property
    def _states(self) -> list[int]:
        return [self.program.sizes[name] for name in self.program.query]

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        """Derivatives by mantissas as derivatives by the numbers that the frame has."""
        return seeds

    def make_fallback(self) -> ByRow:
        return WideByRow(self.program, self.parameters, self.gammas)


class WideByRow(ByRow, WideEngine):
    """Derivatives row by row on numbers with an exponent each, which cannot underflow."""

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        return Wide.of(seeds, -self._exponent(frame))  # type: ignore[return-value]

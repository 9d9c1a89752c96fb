"""Derivatives by the tables for each row by itself, where other sweeps add them up over rows.

Tables count as if they depended on evidence: each is one row that speaks for all, and its adjoint has all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tacit.base.floats import Floats, divide
from tacit.base.machine import in_own_threads
from tacit.compiler.operations import Constant, Parameter
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.operations.axes import Key
from tacit.compiler.program import Program
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed
from tacit.engines.arrays.numpy_arrays import lowest
from tacit.engines.arrays.numpy_engine import NumpyEngine, WideEngine
from tacit.engines.arrays.reverse import ArrayAdjoints
from tacit.engines.arrays.wide import Wide
from tacit.engines.engine import Columns, Slopes, Tables
from tacit.engines.results import Array
from tacit.evidence.column import take


class ByRow(NumpyEngine):
    """A program that indexes no tables, with its numbers."""

    def __init__(self, program: Program, parameters: Tables, gammas: Slopes) -> None:
        super().__init__(replace(program, batched=(True,) * len(program)), parameters, gammas)
        tables: dict[int, Array] = {}
        for i, op in enumerate(program):
            if isinstance(op, Parameter):
                tables[i] = self._parameter(op.node, op.part)
            elif isinstance(op, Constant):
                tables[i] = self._rows.constant(op.table)
        self._sources = Fixed({i: Value(t[..., None], floor=lowest(t.reshape(-1, 1))) for i, t in tables.items()})

    def _forward(self, columns: Columns, through_selection: bool = True) -> ArrayEvaluation:
        frame = self._evaluation(self._sources, columns, through_selection)
        frame.follow([i for i in self._batched if i not in self._sources.values])
        return frame

    @in_own_threads
    def derivatives(self, columns: Columns, rows: int, pause: Callable[[], None]) -> tuple[Array, dict[Key, Floats]]:
        """The posterior (states, rows), and the derivatives of the joint by all tables, divided by its sum.

        The latter are (states, entries of the table..., rows). Where the evidence is impossible, all are 0. Give at
        most `gradient_chunk` rows. `pause` is called between sweeps.
        """
        frame, results = self._kept(columns, rows)
        joint = results.joint
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is computed again
            inverse = divide(np.ones(rows), joint.sum(axis=0), otherwise=0.0)
            posterior = joint * inverse
            by_state = []
            for state in range(len(joint)):
                pause()
                by_state.append(self._by_table(frame, np.eye(len(joint))[state][:, None] * inverse))
        derivatives = {key: np.stack([tables[key] for tables in by_state]) for key in by_state[0]}
        doubtful = self.doubtful(columns, results)
        lost = np.zeros(rows, dtype=np.bool_) if doubtful is None else doubtful.copy()
        for table in derivatives.values():
            lost |= ~np.isfinite(table).reshape(-1, rows).all(axis=0)
        if lost.any() and not isinstance(self, WideEngine):
            rare = np.flatnonzero(lost)
            posterior[:, rare], more = self.make_fallback().derivatives(take(columns, rare), len(rare), pause)
            for key, table in derivatives.items():
                table[..., rare] = more[key]
        return posterior, derivatives

    def _by_table(self, frame: ArrayEvaluation, seeds: Array) -> dict[Key, Floats]:
        adjoints, program, rows = ArrayAdjoints(frame), self.program, seeds.shape[-1]
        by_joint = self._scaled(frame, seeds).reshape([*(program.sizes[name] for name in program.query), rows])
        adjoints.add(program.joint, by_joint)
        adjoints.run(self._batched)
        return adjoints.by_table(self._sources.values, [rows])

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        """Derivatives by mantissas as derivatives by the numbers that the frame has."""
        return seeds

    def make_fallback(self) -> ByRow:
        return WideByRow(self.program, self.parameters, self.gammas)


class WideByRow(ByRow, WideEngine):
    """Derivatives row by row on numbers with an exponent each, which cannot underflow."""

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        return Wide.of(seeds, -self._exponent(frame))  # type: ignore[return-value]

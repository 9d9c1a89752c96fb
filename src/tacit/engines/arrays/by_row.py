"""Derivatives by the tables for each row by itself, where other sweeps add them up over rows.

Of an observed number, they are by the logarithms of its likelihoods. Tables count as if they depended on evidence: each
is one row that speaks for all, and its adjoint has all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, divide
from tacit.base.machine import in_own_threads
from tacit.compiler.operations import Constant, Likelihood, Parameter
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
from tacit.evidence.density_column import DensityColumn

K = TypeVar("K", bound=Hashable)


class Derivatives(NamedTuple):
    """The posterior (states, rows), and derivatives of the joint divided by its sum.

    `by_table` are (states, entries of the table..., rows), and `by_log` (states, components, rows), by the logarithms
    of the likelihoods of an observed number. Where the evidence is impossible, all are 0.
    """

    posterior: Array
    by_table: dict[Key, Floats]
    by_log: dict[str, Floats]

    def finite(self) -> NDArray[np.bool_]:
        """The rows (rows,) in which no derivative is beyond the range of floats."""
        finite = np.ones(self.posterior.shape[-1], dtype=np.bool_)
        for array in (*self.by_table.values(), *self.by_log.values()):
            finite &= np.isfinite(array).reshape(-1, array.shape[-1]).all(axis=0)
        return finite

    def replace_rows(self, rows: NDArray[np.intp], others: Derivatives) -> None:
        """Put those of other rows in the place of some."""
        self.posterior[:, rows] = others.posterior
        for key, table in self.by_table.items():
            table[..., rows] = others.by_table[key]
        for node, array in self.by_log.items():
            array[..., rows] = others.by_log[node]


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
    def derivatives(self, columns: Columns, rows: int, pause: Callable[[], None]) -> Derivatives:
        """Give at most `gradient_chunk` rows. `pause` is called between sweeps."""
        frame, results = self._kept(columns, rows)
        joint, observed = results.joint, self._observed(columns)
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number is computed again
            inverse = divide(np.ones(rows), joint.sum(axis=0), otherwise=0.0)
            by_table, by_log = [], []
            for state in range(len(joint)):
                pause()
                seeds = np.eye(len(joint))[state][:, None] * inverse
                adjoints = self._adjoints(frame, seeds, last=state == len(joint) - 1)
                by_table.append(adjoints.by_table(self._sources.values, [rows]))
                by_log.append({node: _doubles(adjoints.by_likelihood(i, rows)) for node, i in observed.items()})
        found = Derivatives(joint * inverse, _stacked(by_table), _stacked(by_log))
        doubtful = self.doubtful(columns, results)
        lost = ~found.finite() if doubtful is None else doubtful | ~found.finite()
        if lost.any() and not isinstance(self, WideEngine):
            rare = np.flatnonzero(lost)
            found.replace_rows(rare, self.make_fallback().derivatives(take(columns, rare), len(rare), pause))
        return found

    def _observed(self, columns: Columns) -> dict[str, int]:
        """The observed numbers that the program reads, and which of its operations are their likelihoods."""
        likelihoods = {op.variable: i for i, op in enumerate(self.program) if isinstance(op, Likelihood)}
        return {node: i for node, i in likelihoods.items() if isinstance(columns.get(node), DensityColumn)}

    def _adjoints(self, frame: ArrayEvaluation, seeds: Array, last: bool) -> ArrayAdjoints:
        adjoints, program = ArrayAdjoints(frame), self.program
        shape = [*(program.sizes[name] for name in program.query), seeds.shape[-1]]
        adjoints.add(program.joint, self._scaled(frame, seeds).reshape(shape))
        adjoints.run(self._batched, last)
        return adjoints

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        """Derivatives by mantissas as derivatives by the numbers that the frame has."""
        return seeds

    def make_fallback(self) -> ByRow:
        return WideByRow(self.program, self.parameters, self.gammas)


def _doubles(array: Array) -> Floats:
    return array.astype(np.float64, copy=False)


def _stacked(by_state: list[dict[K, Floats]]) -> dict[K, Floats]:
    return {key: np.stack([arrays[key] for arrays in by_state]) for key in by_state[0]}


class WideByRow(ByRow, WideEngine):
    """Derivatives row by row on numbers with an exponent each, which cannot underflow."""

    def _scaled(self, frame: ArrayEvaluation, seeds: Array) -> Array:
        return Wide.of(seeds, -self._exponent(frame))  # type: ignore[return-value]

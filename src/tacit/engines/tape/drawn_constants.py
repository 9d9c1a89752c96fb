"""The constants of tapes under many sets of tables: what is computed of tables has draws in the place of rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.operations import Parameter
from tacit.compiler.operations.array_rules import Value
from tacit.compiler.operations.axes import Key
from tacit.compiler.operations.contract import AxisRoles
from tacit.compiler.program import Program
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.arrays.reverse import ArrayAdjoints
from tacit.engines.draws import Draws
from tacit.engines.results import Array
from tacit.engines.tape.tape import Tape

LEAST_WIDTH = 2  # of arrays: NumPy adds up along draws if there is but one


class _Arrays(NumpyArrays):
    """NumPy, in such a way that the digits of a draw do not depend on how many others there are."""

    def algorithm(self, layout: AxisRoles | None, tables: int) -> str:
        return "einsum"


class DrawnSteps:
    """How to compute the values of a program that depend on some tables, for many draws at once."""

    def __init__(self, program: Program, keys: frozenset[Key]) -> None:
        self.stale, self.arrays = changed(program, keys), _Arrays(np.float64)
        self.differs = frozenset(self.stale)
        batched = tuple(i in self.differs for i in range(len(program)))
        self.steps = Steps(replace(program, batched=batched), self.arrays, self.arrays)


class DrawnConstants:
    """The values without rows of one program under some draws; `reference` has the numbers that all draws share."""

    def __init__(self, steps: DrawnSteps, reference: NumpyEngine, draws: Draws) -> None:
        self._draws, self._steps, program = draws, steps, reference.program
        self._width = max(len(draws), LEAST_WIDTH)
        fixed = Fixed({i: value for i, value in reference.values.items() if i not in steps.differs})
        sources = Sources(self._table, reference.gammas, table_floor=reference.table_floor, through=False)
        self._frame = ArrayEvaluation(steps.steps, fixed, sources)
        self._constants: dict[Tape, Array] = {}
        self._in_doubt: dict[Tape, NDArray[np.bool_]] = {}
        for i in steps.stale:
            operation = program.operations[i]
            if isinstance(operation, Parameter):
                table = self._table(operation.node, operation.part)
                floor = steps.arrays.likelihood_floor(table.reshape(-1, self._width))
                self._frame.values[i] = Value(table, floor=floor)
            else:
                self._frame.follow([i])

    def _table(self, node: str, part: str) -> Array:
        return self._last_axis(self._draws.tables[node, part])

    def _last_axis(self, by_draw: Array) -> Array:
        """With the draws as the last axis, of which there are two, at least."""
        if len(by_draw) < self._width:
            by_draw = np.repeat(by_draw, self._width, axis=0)
        return np.ascontiguousarray(np.moveaxis(by_draw, 0, -1))

    def of(self, tape: Tape, dtype: np.dtype[np.floating], draw: int) -> Array:
        """The constants of a tape under one draw, but for slopes."""
        return np.asarray(self.of_all(tape, dtype)[draw])

    def of_all(self, tape: Tape, dtype: np.dtype[np.floating]) -> Array:
        """The constants of a tape but for slopes: (draws, constants)."""
        if tape not in self._constants:
            self._constants[tape] = self._computed(tape, dtype)
        return self._constants[tape]

    def _computed(self, tape: Tape, dtype: np.dtype[np.floating]) -> Array:
        count = len(self._draws)
        constants = np.tile(tape.structural_constants(dtype), (count, 1))
        for value, first in tape.constants:
            array = self._frame.values[value].array
            width = array.shape[-1] if value in self._steps.differs else 1  # 1 also where no draw makes a difference
            entries = array.reshape(-1, width)
            constants[:, first : first + len(entries)] = entries.T[:count]
        return constants

    def in_doubt(self, tape: Tape, dtype: np.dtype[np.floating], draw: int) -> bool:
        """Whether a number of a tape may have lost digits under one draw, in floats of some size."""
        return bool(self.doubts(tape, dtype)[draw])

    def doubts(self, tape: Tape, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
        """Under which draws (draws,) a number of a tape may have lost digits, in floats of some size."""
        if tape not in self._in_doubt:
            doubt = np.zeros(self._width, dtype=np.bool_)
            for value in tape.computed if dtype == np.float64 else [value for value, _ in tape.constants]:
                doubt |= self._frame.floor(value) < np.finfo(dtype).minexp
            self._in_doubt[tape] = doubt[: len(self._draws)]
        return self._in_doubt[tape]

    def gradients(self, tape: Tape, d_constants: Floats) -> dict[Key, Floats]:
        """Derivatives by the tables that differ, (draws, *shape), given those by the constants (draws, constants).

        What tests select counts as constant.
        """
        program, adjoints = self._steps.steps.program, ArrayAdjoints(self._frame)
        for value, first in tape.constants:
            if value in self._steps.differs:
                shape = [program.sizes[axis] for axis in program.operations[value].axes]
                own = d_constants[:, first : first + math.prod(shape)].reshape(-1, *shape)
                adjoints.add(value, self._last_axis(own))
        adjoints.run(self._steps.stale)
        tables = adjoints.by_table(self._steps.stale, [self._width])
        return {key: np.moveaxis(table, -1, 0)[: len(self._draws)] for key, table in tables.items()}

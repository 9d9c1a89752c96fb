"""The constants of tapes under many sets of tables: what is computed of tables has draws in the place of rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations import Parameter
from tacit.compiler.operations.array_rules import Value
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps, changed
from tacit.engines.arrays.numpy_arrays import NumpyArrays
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.draws import Draws
from tacit.engines.results import Array
from tacit.engines.tape.tape import Tape


class DrawnConstants:
    """The values without rows of one program under some draws; `reference` has the numbers that all draws share."""

    def __init__(self, reference: NumpyEngine, draws: Draws) -> None:
        self._draws, program = draws, reference.program
        stale = changed(program, frozenset(draws.tables))
        differs = set(stale)
        arrays, batched = NumpyArrays(np.float64), tuple(i in differs for i in range(len(program)))
        steps = Steps(replace(program, batched=batched), arrays, arrays)
        fixed = Fixed({i: value for i, value in reference.values.items() if i not in differs})
        sources = Sources(self._table, reference.gammas, table_floor=reference.table_floor)
        self._frame, self._differs = ArrayEvaluation(steps, fixed, sources), differs
        self._constants: dict[Tape, Array] = {}
        self._in_doubt: dict[Tape, NDArray[np.bool_]] = {}
        for i in stale:
            operation = program.operations[i]
            if isinstance(operation, Parameter):
                table = self._table(operation.node, operation.part)
                floor = arrays.likelihood_floor(table.reshape(-1, len(draws)))
                self._frame.values[i] = Value(table, floor=floor)
            else:
                self._frame.follow([i])

    def _table(self, node: str, part: str) -> Array:
        return np.ascontiguousarray(np.moveaxis(self._draws.tables[node, part], 0, -1))

    def of(self, tape: Tape, dtype: np.dtype[np.floating], draw: int) -> Array:
        """The constants of a tape under one draw, but for slopes."""
        return np.asarray(self.of_all(tape, dtype)[draw])

    def of_all(self, tape: Tape, dtype: np.dtype[np.floating]) -> Array:
        """The constants of a tape but for slopes: (draws, constants)."""
        if tape not in self._constants:
            self._constants[tape] = self._computed(tape, dtype)
        return self._constants[tape]

    def _computed(self, tape: Tape, dtype: np.dtype[np.floating]) -> Array:
        constants = np.tile(tape.structural_constants(dtype), (len(self._draws), 1))
        for value, first in tape.constants:
            array = self._frame.values[value].array
            draws = array.shape[-1] if value in self._differs else 1  # 1 also where no draw makes a difference
            entries = array.reshape(-1, draws)
            constants[:, first : first + len(entries)] = entries.T
        return constants

    def in_doubt(self, tape: Tape, dtype: np.dtype[np.floating], draw: int) -> bool:
        """Whether a number of a tape may have lost digits under one draw, in floats of some size."""
        if tape not in self._in_doubt:
            self._in_doubt[tape] = self._doubts(tape, dtype)
        return bool(self._in_doubt[tape][draw])

    def _doubts(self, tape: Tape, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
        doubt = np.zeros(len(self._draws), dtype=np.bool_)
        for value in tape.computed if dtype == np.float64 else [value for value, _ in tape.constants]:
            doubt |= self._frame.floor(value) < np.finfo(dtype).minexp
        return doubt

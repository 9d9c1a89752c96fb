"""Single rows by generated code, for which a batch would be a detour."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.engine import RowLayout
from tacit.engines.native.calls import EvidenceTable, Generated, WorkMemory, address_of, arguments_of
from tacit.engines.native.readers import ROWS_PER_TILE
from tacit.engines.results import Array
from tacit.engines.tape.tape_based import TapeBased

Describe = Callable[[Array, NDArray[np.int32]], EvidenceTable]  # likelihoods and states, as code reads them


class SingleRows:
    """Answers one row at a time: all that a call needs is prepared, and the row is written into its place."""

    def __init__(self, engine: TapeBased, generated: Generated, describe: Describe) -> None:
        self._engine, self._generated, self._describe = engine, generated, describe
        self.layout = RowLayout(generated.tape.inputs, generated.tape.codes)
        self._free: list[_RowBuffer] = []

    def posterior(self, row: bytes) -> Array | None:
        return self._answered(row, "posterior")

    def joint(self, row: bytes) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        outputs, tape = self._answered(row, "outputs"), self._generated.tape
        return None if outputs is None else (outputs[: tape.states].T, self._engine.exponent_of(tape, outputs))

    def _answered(self, row: bytes, array: str) -> Array | None:
        engine, tape = self._engine, self._generated.tape
        if engine.tables_in_doubt(tape):
            return None
        try:
            buffer = self._free.pop()
        except IndexError:
            buffer = _RowBuffer(engine.dtype, self._generated, self._describe)
        answer = getattr(buffer, array).copy() if buffer.run(row, engine.constants(tape)) else None
        self._free.append(buffer)
        return answer


class _RowBuffer:
    """Memory in which one thread has its single rows answered."""

    def __init__(self, dtype: np.dtype[np.floating], generated: Generated, describe: Describe) -> None:
        tape, inputs = generated.tape, generated.layout.inputs
        self._row = np.empty(8 * inputs + 4 * len(tape.codes), dtype=np.uint8)
        codes = self._row[8 * inputs :].view(np.int32).reshape(-1, 1)
        self._evidence = describe(self._row[: 8 * inputs].view(np.float64).reshape(-1, 1), codes)
        self._memory = WorkMemory(generated.layout.starts["end"])
        self.posterior, self.outputs = np.empty((1, tape.states), dtype), np.empty((tape.outputs, 1), dtype)
        self._notes = np.zeros(1, dtype=np.uint8)
        self._constants: Array | None = None
        self._note, self._place = self._notes.data, self._row.data
        self._run = generated.code.run_briefly
        places = {"posterior": self.posterior, "outputs": self.outputs, "notes": self._notes}
        self._memory.prepare(self._evidence.arguments | arguments_of(places) | {"stop": 1, "tile": ROWS_PER_TILE})

    def run(self, row: bytes, constants: Array) -> bool:
        """Answer a row, and say whether that is all there is to do."""
        if constants is not self._constants:
            self._memory.set("constants", address_of(constants))
            self._constants = constants
        self._place[:] = row
        self._run(self._memory.call_address)
        return not self._note[0]

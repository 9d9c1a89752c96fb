"""Tables that a tape reads as they are: the way to its constants, and back from derivatives by them, without detours.

Where nothing is computed of the tables before evidence comes in, there is nothing to evaluate when they change, which
happens in every step of learning.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.operations import Constant, Parameter
from tacit.compiler.operations.axes import Key
from tacit.compiler.program import Program
from tacit.engines.engine import Tables
from tacit.engines.results import Array
from tacit.engines.tape.tape import Tape


def reads_directly(program: Program) -> bool:
    """Whether nothing is computed before evidence comes in."""
    fixed = (op for i, op in enumerate(program) if not program.batched[i])
    return all(isinstance(op, Parameter | Constant) for op in fixed)


@dataclass(frozen=True, eq=False)
class Direct:
    """Where a tape reads tables: their keys, first constants and sizes; and all tables of the program, with shapes."""

    numbers: Array  # all constants, of which `entries` are those of tables
    entries: NDArray[np.intp]
    places: list[tuple[Key, int, int]]
    shapes: dict[Key, tuple[int, ...]]

    @staticmethod
    def of(tape: Tape, program: Program, numbers: Array) -> Direct:
        """Work it out, given all constants of the tape but for slopes."""
        shapes = {
            (operation.node, operation.part): tuple(program.sizes[axis] for axis in operation.axes)
            for operation in program
            if isinstance(operation, Parameter)
        }
        places = []
        for value, first in tape.constants:
            if isinstance(operation := program.operations[value], Parameter):
                places.append(((operation.node, operation.part), first, program.size(operation.axes)))
        entries = [np.arange(first, first + size) for _, first, size in places]
        return Direct(numbers, np.concatenate([np.empty(0, dtype=np.intp), *entries]), places, shapes)

    def constants(self, tables: Tables) -> Array:
        constants = self.numbers.copy()
        constants[self.entries] = self._read(tables)
        return constants

    def _read(self, tables: Tables) -> Array:
        """The entries of the tables that the tape reads, one table after the other."""
        return np.concatenate([tables[key] for key, _, _ in self.places] or [np.empty(0)], axis=None)

    def gradients(self, d_constants: Array) -> dict[Key, Floats]:
        """Derivatives by all tables, from those by the constants."""
        gradients: dict[Key, Floats] = {}
        doubles = d_constants.astype(np.float64, copy=False)
        for key, first, size in self.places:
            table = doubles[first : first + size].reshape(self.shapes[key])
            gradients[key] = gradients[key] + table if key in gradients else table
        for key, shape in self.shapes.items():
            if key not in gradients:
                gradients[key] = np.zeros(shape)
        return gradients

    def all_from(self, smallest: float, tables: Tables) -> bool:
        """Whether no entry of the tables is smaller than this, but for 0s."""
        numbers = self._read(tables)
        return bool(np.min(numbers, where=numbers > 0, initial=1.0) >= smallest)

"""Tables that a tape reads as they are: the way to its constants, and back from derivatives by them, without detours.

Where nothing is computed of the tables before evidence comes in, there is nothing to evaluate when they change, which
happens in every step of learning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.operations import Constant, Parameter
from tacit.compiler.operations.operation import Value
from tacit.compiler.program import Program
from tacit.engines.engine import Tables
from tacit.engines.results import Array
from tacit.engines.tape.assemble import ZERO_CONSTANT, Tape

Key = tuple[str, str]


def reads_directly(program: Program) -> bool:
    """Whether nothing is computed before evidence comes in."""
    fixed = (op for i, op in enumerate(program) if not program.batched[i])
    return all(isinstance(op, Parameter | Constant) for op in fixed)


@dataclass(frozen=True, eq=False)
class Direct:
    """Where a tape reads tables: their keys, first constants and sizes; and all tables of the program, with shapes."""

    numbers: Array  # all constants that are no entries of tables
    places: tuple[tuple[Key, int, int], ...]
    shapes: dict[Key, tuple[int, ...]]

    @staticmethod
    def of(tape: Tape, program: Program, values: Mapping[int, Value], dtype: np.dtype[np.floating]) -> Direct:
        """Work it out, given the program's values that evidence does not reach."""
        numbers, places = np.ones(tape.constant_count, dtype=dtype), []
        numbers[ZERO_CONSTANT] = 0.0
        for value, first in tape.constants:
            operation, table = program.operations[value], values[value].array
            numbers[first : first + table.size] = table.ravel()
            if isinstance(operation, Parameter):
                places.append(((operation.node, operation.part), first, table.size))
        for literals in tape.literals:
            literals.put(numbers)
        shapes = {
            (operation.node, operation.part): values[i].array.shape
            for i, operation in enumerate(program)
            if isinstance(operation, Parameter)
        }
        return Direct(numbers, tuple(places), shapes)

    def constants(self, tables: Tables) -> Array:
        """The constants, from the tables."""
        made = self.numbers.copy()
        for first, stop, keys in self._runs:
            np.concatenate([tables[key] for key in keys], axis=None, out=made[first:stop], casting="same_kind")
        return made

    @cached_property
    def _runs(self) -> list[tuple[int, int, list[Key]]]:
        """Tables that follow each other without a gap: their first constant, that after their last, and their keys."""
        runs: list[tuple[int, int, list[Key]]] = []
        for key, first, size in self.places:
            if runs and runs[-1][1] == first:
                begin, _, keys = runs.pop()
                runs.append((begin, first + size, [*keys, key]))
            else:
                runs.append((first, first + size, [key]))
        return runs

    def gradients(self, d_constants: Array) -> dict[Key, Floats]:
        """Derivatives by all tables, from those by the constants."""
        made, gradients = d_constants.astype(np.float64, copy=False), dict[Key, Floats]()
        for key, first, size in self.places:
            own = made[first : first + size].reshape(self.shapes[key])
            gradients[key] = gradients[key] + own if key in gradients else own
        for key, shape in self.shapes.items():
            if key not in gradients:
                gradients[key] = np.zeros(shape)
        return gradients

    def all_from(self, smallest: float, tables: Tables) -> bool:
        """Whether no entry of the tables is smaller than this, but for 0s."""
        numbers = np.concatenate([tables[key] for key, _, _ in self.places] or [np.ones(1)], axis=None)
        return bool(np.min(numbers, where=numbers > 0, initial=1.0) >= smallest)

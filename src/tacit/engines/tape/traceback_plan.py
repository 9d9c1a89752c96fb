"""From the decisions of a program to flat arrays, which the traceback on a tape follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations import Axes
from tacit.compiler.operations.operation import Ids
from tacit.compiler.program import Program
from tacit.engines.arrays.traceback import offsets_of, strides_of


class TracebackPlan(NamedTuple):
    """The decisions of a program as flat arrays.

    A row of `decisions` is (states to choose from, first operand, end, first chosen axis, end), one of `operands`
    (first entry, first stride, end, first offset, whether it is a table), of `strides` (axis, stride), of `chosen`
    (axis, stride, states). `offsets` leads to the entries of an operand for all states to choose from. Entries of a
    table are constants, one after the other; of other operands, `entries` are the slots. `most` is the largest number
    of states to choose from.
    """

    decisions: NDArray[np.int32]
    operands: NDArray[np.int32]
    strides: NDArray[np.int32]
    chosen: NDArray[np.int32]
    offsets: NDArray[np.int32]
    entries: NDArray[np.int32]
    most: int


def axes_with_states(program: Program) -> Axes:
    """The axes that have states in a traceback: those that rows observe, and then those that are chosen."""
    return (*program.observed, *(axis for decision in program.decisions for axis in decision.chosen))


def traceback_plan(
    program: Program, constant_of: Callable[[int], int], slots_of: Callable[[int], Ids]
) -> TracebackPlan:
    """The decisions of a program, given the first constant of a table, and the slots of what depends on evidence."""
    number = {axis: i for i, axis in enumerate(axes_with_states(program))}
    decisions: list[list[int]] = []
    operands: list[list[int]] = []
    strides: list[list[int]] = []
    chosen: list[list[int]] = []
    offsets, entries = _Flat(), _Flat()
    for decision in program.decisions:
        first_operand, first_chosen = len(operands), len(chosen)
        shape = [program.sizes[a] for a in decision.chosen]
        for i in decision.inputs:
            first, steps = len(strides), strides_of(program, i)
            strides += [[number[a], step] for a, step in steps.items() if a not in decision.chosen]
            places = offsets_of(program, decision.chosen, steps)
            entry = entries.add(slots_of(i).ravel()) if program.batched[i] else constant_of(i)
            operands.append([entry, first, len(strides), offsets.add(places), int(not program.batched[i])])
        for place, axis in enumerate(decision.chosen):
            chosen.append([number[axis], math.prod(shape[place + 1 :]), shape[place]])
        decisions.append([math.prod(shape), first_operand, len(operands), first_chosen, len(chosen)])
    return TracebackPlan(
        _table(decisions, 5),
        _table(operands, 5),
        _table(strides, 2),
        _table(chosen, 3),
        offsets.array(),
        entries.array(),
        most=max((states for states, *_ in decisions), default=1),
    )


class _Flat:
    """Arrays one after the other in a single one."""

    def __init__(self) -> None:
        self._blocks: list[Ids] = [np.empty(0, dtype=np.int64)]
        self._size = 0

    def add(self, block: Ids) -> int:
        """Append an array; returns where it begins."""
        first, self._size = self._size, self._size + len(block)
        self._blocks.append(block)
        return first

    def array(self) -> NDArray[np.int32]:
        return np.concatenate(self._blocks).astype(np.int32)


def _table(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int32]:
    return np.array(rows, dtype=np.int32).reshape(-1, width)

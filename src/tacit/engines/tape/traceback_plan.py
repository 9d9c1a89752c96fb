"""From the decisions of a program to flat arrays, which the traceback on a tape follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations import Axes
from tacit.compiler.operations.axes import Ids
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
    decisions, operands, strides, chosen = (list[list[int]]() for _ in range(4))
    offsets, entries = list[int](), list[int]()
    for decision in program.decisions:
        first_operand, first_chosen = len(operands), len(chosen)
        shape = [program.sizes[a] for a in decision.chosen]
        for i in decision.inputs:
            first_stride, steps, fixed = len(strides), strides_of(program, i), not program.batched[i]
            strides += [[number[a], step] for a, step in steps.items() if a not in decision.chosen]
            entry = constant_of(i) if fixed else len(entries)
            operands.append([entry, first_stride, len(strides), len(offsets), int(fixed)])
            offsets += offsets_of(program, decision.chosen, steps).tolist()
            entries += [] if fixed else slots_of(i).ravel().tolist()
        for place, axis in enumerate(decision.chosen):
            chosen.append([number[axis], math.prod(shape[place + 1 :]), shape[place]])
        decisions.append([math.prod(shape), first_operand, len(operands), first_chosen, len(chosen)])
    return TracebackPlan(
        _table(decisions, 5),
        _table(operands, 5),
        _table(strides, 2),
        _table(chosen, 3),
        np.array(offsets, dtype=np.int32),
        np.array(entries, dtype=np.int32),
        most=max((states for states, *_ in decisions), default=1),
    )


def _table(rows: Sequence[Sequence[int]], width: int) -> NDArray[np.int32]:
    return np.array(rows, dtype=np.int32).reshape(-1, width)

"""A program of tables alone as one of a single row, so that its numbers can be rescaled on the way."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tacit.compiler.operations import Contract, Operation, Parameter, Rescale
from tacit.compiler.program import Program


def in_one_row(program: Program, tables_per_scale: int) -> Program:
    """The program with a row of every value, and operands rescaled before more tables than that are multiplied."""
    operations: list[Operation] = []
    place, factors, scaled = dict[int, int](), list[int](), dict[int, int]()

    def added(operation: Operation, count: int) -> int:
        operations.append(operation)
        factors.append(count)
        return len(operations) - 1

    def rescaled(i: int) -> int:
        if i not in scaled:
            scaled[i] = added(Rescale((i,), operations[i].axes), 1)
        return scaled[i]

    for i, operation in enumerate(program):
        inputs = [place[j] for j in operation.inputs]
        if isinstance(operation, Contract) and sum(factors[j] for j in inputs) > tables_per_scale:
            inputs = [rescaled(j) if factors[j] > 1 else j for j in inputs]
        own: Any = operation
        moved = replace(own, inputs=tuple(inputs)) if inputs else operation
        place[i] = added(moved, int(isinstance(operation, Parameter)) + sum(factors[j] for j in inputs))
    batched = (True,) * len(operations)
    return replace(program, operations=tuple(operations), batched=batched, joint=place[program.joint])

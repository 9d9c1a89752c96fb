"""Posteriors of all variables from derivatives by tables, where evidence is known before anything is compiled.

The sum of all products is linear in every table. So the part of it that belongs to an entry is this entry times the
derivative by it, and the program needs no likelihoods: it is the one that finds the sum itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

import numpy as np

from tacit.base.floats import Floats
from tacit.base.machine import limited
from tacit.compiler.operations import Constant, Contract, Gather, Parameter
from tacit.compiler.program import Program
from tacit.compiler.rescaling import in_one_row
from tacit.engines.arrays.by_row import ByRow
from tacit.engines.engine import Slopes, Tables

THREADED_PRODUCT = 2**30  # multiply-adds from which products, often of many matrices, are worth the threads of BLAS
TABLES_PER_SCALE = 8  # that are multiplied before numbers are brought near 1: what underflows is computed again


def has_posteriors(program: Program, variables: Mapping[str, int]) -> bool:
    """Whether a program tells the posteriors of some variables, given with their numbers of states.

    It multiplies every table once, and sums down to a single number.
    """
    uses = Counter(j for operation in program for j in operation.inputs)
    simple = all(isinstance(op, Parameter | Constant | Gather | Contract) and not _largest(op) for op in program)
    if not simple or program.query or any(program.batched) or max(uses.values(), default=0) > 1:
        return False
    there = _holders(program)
    return all(name in there and program.sizes[name] == card for name, card in variables.items())


def _largest(operation: object) -> bool:
    return isinstance(operation, Contract) and operation.largest


def _holders(program: Program) -> dict[str, Parameter]:
    """The smallest table that has each axis."""
    tables = [operation for operation in program if isinstance(operation, Parameter)]
    tables.sort(key=lambda table: -program.size(table.axes))
    return {axis: table for table in tables for axis in table.axes}


def posteriors(
    program: Program, parameters: Tables, gammas: Slopes, variables: Mapping[str, int], pause: Callable[[], None]
) -> dict[str, Floats] | None:
    """The posteriors of variables that a program tells; None where the evidence is impossible."""
    scaled = in_one_row(program, TABLES_PER_SCALE)
    engine = ByRow(scaled, parameters, gammas)
    with limited(None if scaled.largest_product >= THREADED_PRODUCT else 1):
        found = engine.derivatives({}, 1, pause)
    if not found.posterior.all():
        return None
    holders, posteriors = _holders(program), {}
    for name in variables:
        table = holders[name]
        entries, by_entry = parameters[table.node, table.part], found.by_table[table.node, table.part][0, ..., 0]
        parts = np.multiply(entries, by_entry, out=np.zeros(entries.shape), where=entries > 0)
        posterior = parts.sum(axis=tuple(k for k, axis in enumerate(table.axes) if axis != name))
        posteriors[name] = posterior / posterior.sum()
    return posteriors

"""The backward pass over an evaluation: from derivatives by its joint to those by tables, slopes and likelihoods.

What depends on evidence is reversed first. That leaves adjoints of values that only depend on parameters, summed over
rows, from which a second pass goes on to the tables. The adjoint of a batched value has all rows, also where the
value is one row that speaks for all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.operations import Likelihood, Parameter
from tacit.compiler.operations.axes import Key
from tacit.engines.arrays.evaluation import ArrayEvaluation
from tacit.engines.arrays.numpy_arrays import as_floats
from tacit.engines.arrays.wide import Wide
from tacit.engines.results import Array, Gradients, added

ByParameter = tuple[dict[Key, Floats], dict[str, float]]  # derivatives by tables and by slopes


class ArrayAdjoints:
    """Derivatives by the values of an evaluation, and by slopes: those that the operations begin with are left."""

    def __init__(self, frame: ArrayEvaluation) -> None:
        self.frame = frame
        self.by_value: dict[int, Array] = {}
        self.slopes: dict[str, float] = {}

    def add(self, i: int, adjoint: Array) -> None:
        self.by_value[i] = self.by_value[i] + adjoint if i in self.by_value else adjoint

    def add_slope(self, node: str, derivative: Array) -> None:
        self.slopes[node] = self.slopes.get(node, 0.0) + float(as_floats(derivative))

    def run(self, operations: Sequence[int]) -> None:
        """Go from the results of some operations back to what they begin with."""
        steps = self.frame.steps
        for i in reversed(operations):
            if i in self.by_value and steps.program.operations[i].inputs:
                steps[i].reverse(self, self.by_value.pop(i))

    def by_log(self, i: int, rows: int) -> Floats:
        """Derivatives (states, rows) by the logarithms of some likelihoods."""
        value, adjoint = self.frame.values[i].array, self.by_value.get(i)
        shape = (math.prod(value.shape[:-1]), rows)
        if adjoint is None:
            return np.zeros(shape)
        with np.errstate(invalid="ignore"):  # what is no number is computed again
            return np.asarray(as_floats(value * adjoint).reshape(shape))

    def by_table(self, operations: Iterable[int], rows: Sequence[int] = ()) -> dict[Key, Floats]:
        """Derivatives by the tables that some operations read: (entries..., *rows)."""
        program, tables = self.frame.steps.program, dict[Key, Floats]()
        for i in operations:
            if isinstance(operation := program.operations[i], Parameter):
                key, adjoint = (operation.node, operation.part), self.by_value.get(i)
                if adjoint is None:
                    adjoint = np.zeros([*(program.sizes[a] for a in operation.axes), *rows])
                tables[key] = tables[key] + as_floats(adjoint) if key in tables else as_floats(adjoint)
        return tables


def gradients(
    frame: ArrayEvaluation, batched: Sequence[int], once: ArrayEvaluation, static: Sequence[int], seeds: Array
) -> Gradients:
    """Derivatives by everything, given those by the joint, `seeds` (states, rows).

    `frame` holds all values of the `batched` operations, `once` those of the `static` ones, with all digits.
    """
    program, adjoints = frame.steps.program, ArrayAdjoints(frame)
    by_joint = seeds.reshape([*(program.sizes[a] for a in program.query), seeds.shape[-1]])
    adjoints.add(program.joint, by_joint if program.batched[program.joint] else by_joint.sum(axis=-1))
    adjoints.run(batched)
    likelihoods = dict[str, Array]()
    for i in batched:
        if isinstance(operation := program.operations[i], Likelihood):
            nothing = np.zeros((program.sizes[operation.variable], seeds.shape[-1]), dtype=seeds.dtype)
            adjoint = adjoints.by_value.get(i, nothing)
            if isinstance(adjoint, Wide) and operation.of_density:  # by its logarithm, which is in the range of floats
                likelihoods[operation.variable] = adjoints.by_log(i, seeds.shape[-1])
            else:
                likelihoods[operation.variable] = as_floats(adjoint).reshape(nothing.shape)
    tables, slopes = parameter_gradients(once, static, adjoints.by_value)
    return Gradients(tables, added(slopes, adjoints.slopes), likelihoods)


def parameter_gradients(once: ArrayEvaluation, static: Sequence[int], by_value: Mapping[int, Array]) -> ByParameter:
    """Derivatives by the tables and by the slopes, given those by some values that only depend on parameters."""
    adjoints = ArrayAdjoints(once)
    for i in static:
        if i in by_value:
            adjoints.add(i, by_value[i].astype(np.float64, copy=False))
    adjoints.run(static)
    return adjoints.by_table(static), adjoints.slopes

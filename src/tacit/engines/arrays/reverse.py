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

    def run(self, operations: Sequence[int], last: bool = False) -> None:
        """Go from the results of some operations back to what they begin with.

        Derivatives by densities become those by their logarithms at once, while both are in the cache. Values are
        dropped on the way if this is the last run over the evaluation.
        """
        steps = self.frame.steps
        for i in reversed(operations):
            if i not in self.by_value:
                continue
            operation = steps.program.operations[i]
            if operation.inputs:
                steps[i].reverse(self, self.by_value.pop(i))
                if last:
                    del self.frame.values[i]
            elif isinstance(operation, Likelihood) and operation.of_density:
                with np.errstate(invalid="ignore"):  # what is no number is computed again
                    self.by_value[i] = self.by_value[i] * self.frame.values[i].array

    def by_likelihood(self, i: int, rows: int) -> Array:
        """Derivatives (states, rows) by some likelihoods; by their logarithms, if they are densities."""
        value, adjoint = self.frame.values[i].array, self.by_value.get(i)
        shape = (math.prod(value.shape[:-1]), rows)
        return np.zeros(shape, dtype=value.dtype) if adjoint is None else as_floats(adjoint).reshape(shape)

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
    adjoints.run(batched, last=True)
    likelihoods, by_log = dict[str, Array](), set[str]()
    for i in batched:
        if isinstance(operation := program.operations[i], Likelihood):
            likelihoods[operation.variable] = adjoints.by_likelihood(i, seeds.shape[-1])
            if operation.of_density:
                by_log.add(operation.variable)
    tables, slopes = parameter_gradients(once, static, adjoints.by_value)
    return Gradients(tables, added(slopes, adjoints.slopes), likelihoods, frozenset(by_log))


def parameter_gradients(once: ArrayEvaluation, static: Sequence[int], by_value: Mapping[int, Array]) -> ByParameter:
    """Derivatives by the tables and by the slopes, given those by some values that only depend on parameters."""
    adjoints = ArrayAdjoints(once)
    for i in static:
        if i in by_value:
            adjoints.add(i, by_value[i].astype(np.float64, copy=False))
    adjoints.run(static)
    return adjoints.by_table(static), adjoints.slopes

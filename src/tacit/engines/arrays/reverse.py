"""The backward pass over an evaluation: from derivatives by its joint to those by tables, slopes and likelihoods.

What depends on evidence is reversed first. That leaves adjoints of values that only depend on parameters, summed over
rows, from which a second pass goes on to the tables. The adjoint of a batched value has all rows, also where the
value is one row that speaks for all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.operations import Likelihood, Parameter
from tacit.engines.arrays.evaluation import ArrayEvaluation
from tacit.engines.arrays.numpy_arrays import as_floats
from tacit.engines.results import Array, Gradients


def gradients(
    frame: ArrayEvaluation, batched: Sequence[int], once: ArrayEvaluation, static: Sequence[int], seeds: Array
) -> Gradients:
    """Derivatives by everything, given those by the joint, `seeds` (states, rows).

    `frame` holds all values of the `batched` operations, `once` those of the `static` ones, with all digits.
    """
    program = frame.steps.program
    sweep = BackwardPass(frame)
    by_joint = seeds.reshape([*(program.sizes[a] for a in program.query), seeds.shape[-1]])
    sweep.add(program.joint, by_joint if program.batched[program.joint] else by_joint.sum(axis=-1))
    sweep.run(batched)
    likelihoods = {}
    for i in batched:
        if isinstance(operation := program.operations[i], Likelihood):
            nothing = np.zeros((program.sizes[operation.variable], seeds.shape[-1]), dtype=seeds.dtype)
            likelihoods[operation.variable] = as_floats(sweep.adjoints.get(i, nothing))
    tables, slopes = parameter_gradients(once, static, sweep.adjoints)
    for node, slope in sweep.slopes.items():
        slopes[node] = slopes.get(node, 0.0) + slope
    return Gradients(tables, slopes, likelihoods)


def parameter_gradients(
    once: ArrayEvaluation, static: Sequence[int], adjoints: Mapping[int, Array]
) -> tuple[dict[tuple[str, str], Floats], dict[str, float]]:
    """Derivatives by the tables and by the slopes, given those by some values that only depend on parameters."""
    sweep = BackwardPass(once)
    for i in static:
        if i in adjoints:
            sweep.add(i, adjoints[i].astype(np.float64, copy=False))
    sweep.run(static)
    tables: dict[tuple[str, str], Floats] = {}
    for i in static:
        if isinstance(operation := once.steps.program.operations[i], Parameter):
            key = operation.node, operation.part
            derivative = as_floats(sweep.adjoints[i]) if i in sweep.adjoints else np.zeros(once.values[i].array.shape)
            tables[key] = np.asarray(tables[key] + derivative if key in tables else derivative, dtype=np.float64)
    return tables, sweep.slopes


class BackwardPass:
    """Adjoints of values; in the end, of those that the operations began with."""

    def __init__(self, frame: ArrayEvaluation) -> None:
        self.frame = frame
        self.adjoints: dict[int, Array] = {}
        self.slopes: dict[str, float] = {}

    def add(self, i: int, adjoint: Array) -> None:
        self.adjoints[i] = self.adjoints[i] + adjoint if i in self.adjoints else adjoint

    def add_slope(self, node: str, derivative: Array) -> None:
        self.slopes[node] = self.slopes.get(node, 0.0) + float(as_floats(derivative))

    def run(self, operations: Sequence[int]) -> None:
        steps = self.frame.steps
        for i in reversed(operations):
            if i in self.adjoints and steps.program.operations[i].inputs:
                steps.step(i).reverse(self, self.adjoints.pop(i))

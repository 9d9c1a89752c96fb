"""The reverse sweep over a program: from derivatives by its joint to those by tables, slopes and likelihoods.

What depends on evidence is reversed first. That leaves adjoints of values that only depend on parameters, summed over
rows, from which a second sweep goes on to the tables. The adjoint of a batched value has all rows, also where the
value is one row that speaks for all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import Contract, Gather, Likelihood, Parameter, Rescale, Select, Slice
from tacit.engines.numpy_steps import Array, Plan, TableProduct, Value, as_floats, power
from tacit.engines.results import Gradients
from tacit.engines.wide import Wide
from tacit.evidence import Column
from tacit.floats import Floats


@dataclass(frozen=True)
class Trace:
    """A forward pass over some operations of a program: what they gave, and what they were made with.

    `matrices` holds the tables of matrix products as they are multiplied, `columns` the evidence.
    """

    plan: Plan
    operations: Sequence[int]
    gammas: Mapping[str, float | None]
    values: Mapping[int, Value]
    matrices: Mapping[int, Array] = field(default_factory=dict)
    columns: Mapping[str, Column] = field(default_factory=dict)


def gradients(batched: Trace, static: Trace, seeds: Array, through_selection: bool) -> Gradients:
    """Derivatives by everything, given those by the joint: `seeds` (states, rows)."""
    program = batched.plan.program
    sweep = _Sweep(batched, through_selection)
    sweep.add(program.joint, seeds if program.batched[program.joint] else seeds.sum(axis=-1))
    sweep.run()
    likelihoods = {}
    for i in batched.operations:
        if isinstance(operation := program.operations[i], Likelihood):
            nothing = np.zeros((program.sizes[operation.variable], seeds.shape[-1]), dtype=seeds.dtype)
            likelihoods[operation.variable] = as_floats(sweep.adjoints.get(i, nothing))
    tables, slopes = parameter_gradients(static, sweep.adjoints, through_selection)
    for node, slope in sweep.slopes.items():
        slopes[node] = slopes.get(node, 0.0) + slope
    return Gradients(tables, slopes, likelihoods)


def parameter_gradients(
    static: Trace, adjoints: Mapping[int, Array], through_selection: bool
) -> tuple[dict[tuple[str, str], Floats], dict[str, float]]:
    """Derivatives by the tables and by the slopes, given those by some values that only depend on parameters."""
    sweep = _Sweep(static, through_selection)
    for i in static.operations:
        if i in adjoints:
            sweep.add(i, adjoints[i].astype(np.float64, copy=False))
    sweep.run()
    tables: dict[tuple[str, str], Floats] = {}
    for i in static.operations:
        if isinstance(operation := static.plan.program.operations[i], Parameter) and operation.part != "test":
            key = operation.node, operation.part
            found = as_floats(sweep.adjoints[i]) if i in sweep.adjoints else np.zeros(static.values[i].array.shape)
            tables[key] = np.asarray(tables[key] + found if key in tables else found, dtype=np.float64)
    return tables, sweep.slopes


class _Sweep:
    """Adjoints on their way down; in the end, those of the values that the operations began with."""

    def __init__(self, trace: Trace, through_selection: bool) -> None:
        self.trace, self.program, self.through_selection = trace, trace.plan.program, through_selection
        self.adjoints: dict[int, Array] = {}
        self.slopes: dict[str, float] = {}

    def add(self, i: int, adjoint: Array) -> None:
        """One more way in which value i counts."""
        self.adjoints[i] = self.adjoints[i] + adjoint if i in self.adjoints else adjoint

    def run(self) -> None:
        for i in reversed(self.trace.operations):
            if i in self.adjoints and self.program.operations[i].inputs:
                self._reverse(i, self.adjoints.pop(i))

    def _reverse(self, i: int, adjoint: Array) -> None:
        operation = self.program.operations[i]
        match operation:
            case Slice():
                self.add(operation.inputs[0], self._slice(operation, adjoint))
            case Gather():
                self.add(operation.inputs[0], self._gather(operation, adjoint))
            case Contract():
                self._contract(i, operation, adjoint)
            case Select():
                self._select(i, operation, adjoint)
            case Rescale():
                self.add(operation.inputs[0], self._rescale(i, operation, adjoint))
            case _:
                raise AssertionError(f"operation {i} is not reversed")

    def _array(self, i: int) -> Array:
        return self.trace.values[i].array

    def _slice(self, operation: Slice, adjoint: Array) -> Array:
        sizes, axes = self.program.sizes, self.program.operations[operation.inputs[0]].axes
        cards = [sizes[v] for v in operation.variables]
        observed = np.ravel_multi_index([self.trace.columns[v].states() for v in operation.variables], cards)
        flat = adjoint.reshape(-1, adjoint.shape[-1])  # (entries, rows)
        states = math.prod(cards)
        made = _added_up(flat, np.arange(len(flat))[:, None] * states + observed, len(flat) * states)
        arranged = (*operation.axes, *operation.variables)
        return made.reshape([sizes[a] for a in arranged]).transpose([arranged.index(a) for a in axes])

    def _gather(self, operation: Gather, adjoint: Array) -> Array:
        shape = [self.program.sizes[a] for a in self.program.operations[operation.inputs[0]].axes]
        index = operation.index.ravel()
        rows = adjoint.shape[operation.index.ndim :]  # (rows,), or () where there are none
        flat = adjoint.reshape(index.size, -1)
        places = index[:, None] * flat.shape[1] + np.arange(flat.shape[1])
        real = index >= 0
        return _added_up(flat[real], places[real], math.prod([*shape, *rows])).reshape([*shape, *rows])

    def _contract(self, i: int, operation: Contract, adjoint: Array) -> None:
        step = self.trace.plan.contraction(i)
        arrays = [self._array(j) for j in operation.inputs]
        if isinstance(step, TableProduct):
            by_table, by_batch = step.by(adjoint, self.trace.matrices[i], arrays[step.batch])
            self.add(operation.inputs[step.table], by_table)
            self.add(operation.inputs[step.batch], by_batch)
        else:
            for k, j in enumerate(operation.inputs):
                self.add(j, step.by(k, adjoint, *arrays[:k], *arrays[k + 1 :]))

    def _select(self, i: int, operation: Select, adjoint: Array) -> None:
        inputs, gamma = [self._array(j) for j in operation.inputs], self.trace.gammas[operation.node]
        adjoints, slope = self.trace.plan.selection(i).by(adjoint, inputs, gamma, self.through_selection)
        for j, by in zip(operation.inputs, adjoints, strict=True):
            if by is not None:
                self.add(j, by)
        self.slopes[operation.node] = self.slopes.get(operation.node, 0.0) + slope

    def _rescale(self, i: int, operation: Rescale, adjoint: Array) -> Array:
        """The scale itself needs no derivative: what is asked of a joint does not depend on its scale."""
        before, after = self.trace.values[operation.inputs[0]].exponent, self.trace.values[i].exponent
        if after is None:  # numbers with an exponent each are not scaled
            return adjoint
        return adjoint * power((0 if before is None else before) - after, adjoint.dtype)


def _added_up(adjoint: Array, places: NDArray[np.int64], size: int) -> Array:
    """Entries of an adjoint added up by place."""
    everywhere = np.broadcast_to(places, adjoint.shape)
    if isinstance(adjoint, Wide):
        return adjoint.added_up(everywhere, size)
    return np.bincount(everywhere.ravel(), adjoint.ravel(), size).astype(adjoint.dtype, copy=False)

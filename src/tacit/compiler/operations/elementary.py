"""The operations that do no arithmetic on tables: where numbers come from, and entries that are picked or scaled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.arrangement import gathered, order_of
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value
from tacit.compiler.operations.axes import ONE, Array, Axes, Axis, Ids, Key, Setting
from tacit.compiler.operations.operation import Operation, Support, Target
from tacit.model.elements.distributions import structural_ones


@dataclass(frozen=True, slots=True)
class Parameter(Operation):
    """One table of a node's CPT: "table", "plus", "minus", "thresholds", ..."""

    node: str
    part: str
    axes: Axes
    inputs: tuple[int, ...] = field(default=(), init=False)

    @property
    def detail(self) -> str:
        return f"{self.node}.{self.part}"

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        table = tables[self.node, self.part]
        if self.part == "thresholds":  # they are compared, not multiplied: theirs are numbers like any others
            return Support.unknown(table.shape)
        return Support(table != 0, structural_ones(table))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _ReadyStep(lambda frame: Value(frame.table(self.node, self.part)))

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.parameters(self)


class _ReadyStep(ArrayStep):
    """A value that is there already."""

    def __init__(self, give: Callable[[Frame], Value]) -> None:
        self._give = give

    def forward(self, frame: Frame) -> Value:
        return self._give(frame)


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Operation):
    """A table of known 0s and 1s that stands for a rule."""

    table: NDArray[np.float64]
    axes: Axes
    inputs: tuple[int, ...] = field(default=(), init=False)

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert list(self.table.shape) == setting.shape(self.axes), "the shape of a constant"

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        return Support(self.table != 0, self.table == 1)

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        value = Value(xp.constant(self.table))
        return _ReadyStep(lambda frame: value)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.constants(self.table)


@dataclass(frozen=True, slots=True)
class Likelihood(Operation):
    """The soft evidence on a variable: one likelihood per state.

    The number of a continuous variable makes likelihoods of the joint states of its parents, `of_density`. A table that
    rows bring along holds those of the joint states of a family.
    """

    variable: str
    axes: Axes
    inputs: tuple[int, ...] = field(default=(), init=False)
    of_density: bool = False
    reads_evidence: ClassVar[bool] = True

    @property
    def detail(self) -> str:
        return self.variable

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _LikelihoodStep(xp, self.variable, setting.shape(self.axes))

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.likelihoods(self.variable).reshape(setting.shape(self.axes))


class _LikelihoodStep(ArrayStep):
    def __init__(self, xp: ArrayLibrary, variable: str, shape: Sequence[int]) -> None:
        self._xp, self._variable, self._shape = xp, variable, shape
        self._nothing = xp.ones(math.prod(shape))

    def forward(self, frame: Frame) -> Value:
        likelihood = frame.likelihood(self._variable)
        array = self._nothing if likelihood is None else likelihood
        own = self._xp.cast(array)
        if len(self._shape) != 1:  # of the joint states of a density's parents, or of a family
            own = self._xp.reshape(own, (*self._shape, -1))
        floor = frame.likelihood_floor(self._variable)
        return Value(own, floor=self._xp.likelihood_floor(array) if floor is None else floor)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        """The derivative by the evidence stays where it is."""


@dataclass(frozen=True, slots=True)
class Slice(Operation):
    """Index the axes of `variables` with their observed states, row by row."""

    inputs: tuple[int]
    variables: Axes
    axes: Axes
    reads_evidence: ClassVar[bool] = True

    @property
    def detail(self) -> str:
        return f"v{self.inputs[0]} at {' '.join(self.variables)}"

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        own = set(setting.axes[0])
        assert set(self.variables) <= own, "a slice indexes an axis that is not there"
        assert hard.issuperset(self.variables), "a slice indexes what is not observed"
        assert set(self.axes) == own - set(self.variables), "the axes of a slice"

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _SliceStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.slices(self, setting)


class _SliceStep(ArrayStep):
    def __init__(self, operation: Slice, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, self._source, self._variables = xp, operation.inputs[0], operation.variables
        self.table = self._source
        arranged = (*operation.axes, *operation.variables)
        self._cards = setting.shape(operation.variables)
        self._order, self._back = order_of(setting.axes[0], arranged), order_of(arranged, setting.axes[0])
        self._arranged = setting.shape(arranged)
        self._shape = [*setting.shape(operation.axes), -1]

    def arranged(self, table: Array) -> Array:
        """As (entries of a row, states of the observed variables)."""
        return self._xp.reshape(self._xp.permute(table, self._order), [-1, math.prod(self._cards)])

    def forward(self, frame: Frame) -> Value:
        place = frame.place(self._variables, self._cards)
        picked = self._xp.take(frame.ready(self), place, 1)
        return Value(self._xp.reshape(picked, self._shape), floor=frame.floor(self._source))

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        flat = adjoint.reshape(-1, adjoint.shape[-1])  # (entries, rows)
        states = math.prod(self._cards)
        places = np.arange(len(flat))[:, None] * states + backward.frame.place(self._variables, self._cards)
        by_source = added_up(flat, places, len(flat) * states)
        backward.add(self._source, by_source.reshape(self._arranged).transpose(self._back))


@dataclass(frozen=True, slots=True, eq=False)
class Gather(Operation):
    """Rearrange: each entry is an entry of the flattened input, or the constant 0 or 1."""

    inputs: tuple[int]
    index: NDArray[np.int64]
    axes: Axes

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert list(self.index.shape) == setting.shape(self.axes), "the shape of a gather"
        assert self.index.min() >= ONE, "a gather reaches outside"
        assert self.index.max() < setting.size(setting.axes[0]), "a gather reaches outside"

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        return Support(*(gathered(known.ravel(), self.index, False, True) for known in inputs[0]))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _GatherStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        target.same_scale(i, self.inputs)
        return gathered(target.value(self.inputs[0]).ravel(), self.index, target.zero, target.one)


class _GatherStep(ArrayStep):
    def __init__(self, operation: Gather, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, (self._source,), index = xp, operation.inputs, operation.index
        rows = [-1] * setting.batched[0]
        self._index, self._input = index, setting.shape(setting.axes[0])
        self._flat, self._shape = [math.prod(self._input), *rows], [*index.shape, *rows]
        self._taken = xp.index(np.maximum(index, 0).ravel())
        known = index.reshape([*index.shape, *[1] * len(rows)])
        self._real = None if (index >= 0).all() else xp.truth(known >= 0)
        self._known = None if self._real is None else xp.constant((known == ONE).astype(np.float64))
        self._has_ones = bool((index == ONE).any())

    def forward(self, frame: Frame) -> Value:
        value = frame.values[self._source]
        assert value.exponent is None or not self._has_ones, "a rescaled value has no constant 1"
        taken = self._xp.take(self._xp.reshape(value.array, self._flat), self._taken, 0)
        array = self._xp.reshape(taken, self._shape)
        if self._real is not None:
            array = self._xp.where(self._real, array, self._known)
        return Value(array, value.exponent, frame.floor(self._source) if len(self._flat) > 1 else None)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        index = self._index.ravel()
        rows = adjoint.shape[self._index.ndim :]  # (rows,), or () where there are none
        flat = adjoint.reshape(index.size, -1)
        places = index[:, None] * flat.shape[1] + np.arange(flat.shape[1])
        real = index >= 0
        by_source = added_up(flat[real], places[real], math.prod([*self._input, *rows]))
        backward.add(self._source, by_source.reshape([*self._input, *rows]))


def added_up(adjoint: Array, places: NDArray[np.int64], size: int) -> Array:
    """Entries of an adjoint added up by place."""
    everywhere = np.broadcast_to(places, adjoint.shape)
    if not isinstance(adjoint, np.ndarray):
        return adjoint.added_up(everywhere, size)
    return np.bincount(everywhere.ravel(), adjoint.ravel(), size).astype(adjoint.dtype, copy=False)


@dataclass(frozen=True, slots=True)
class Rescale(Operation):
    """Divide each row by a power of two that brings its largest entry near 1, and keep the exponent."""

    inputs: tuple[int]
    axes: Axes

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert set(self.axes) == set(setting.axes[0]), "rescaling changes axes"
        assert setting.batched[0], "rescaling of a value that is the same for all rows"

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _RescaleStep(self.inputs[0], len(self.axes), xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.rescaled(i, self.inputs[0])


class _RescaleStep(ArrayStep):
    def __init__(self, source: int, axes: int, xp: ArrayLibrary) -> None:
        self._xp, self._source, self._over = xp, source, tuple(range(axes))

    def forward(self, frame: Frame) -> Value:
        value = frame.values[self._source]
        scaled, exponent = self._xp.rescaled(value.array, self._over)
        if value.exponent is not None and exponent is not None:
            exponent = exponent + value.exponent
        return Value(scaled, exponent, self._xp.rescaled_floor(frame.floor(self._source), scaled, self._over))

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        """The scale itself needs no derivative: what is asked of a joint does not depend on its scale."""
        values = backward.frame.values
        before, after = values[self._source].exponent, values[self.place].exponent
        if after is not None:  # numbers with an exponent each are not scaled
            power = (0 if before is None else before) - after
            adjoint = adjoint * np.ldexp(adjoint.dtype.type(1), power.astype(np.int32))
        backward.add(self._source, adjoint)

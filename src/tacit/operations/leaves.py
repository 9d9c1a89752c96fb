"""Where numbers come from: parameters, tables of known 0s and 1s, and the likelihoods of soft evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.operations.base import (
    Array,
    Arrays,
    Axes,
    Axis,
    Frame,
    Ids,
    Key,
    Operation,
    Setting,
    Step,
    Support,
    Sweep,
    Target,
    Value,
)


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
        # thresholds are compared, not multiplied: theirs are numbers like any others
        return Support.unknown(table.shape) if self.part == "thresholds" else Support(table != 0, table == 1)

    def step(self, setting: Setting, xp: Arrays) -> Step:
        return _Parameter(self.node, self.part)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.parameters(self)


class _Parameter(Step):
    def __init__(self, node: str, part: str) -> None:
        self._key = node, part

    def forward(self, frame: Frame) -> Value:
        return Value(frame.table(*self._key))


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

    def step(self, setting: Setting, xp: Arrays) -> Step:
        return _Constant(xp.constant(self.table))

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.constants(self.table)


class _Constant(Step):
    def __init__(self, table: Array) -> None:
        self._value = Value(table)

    def forward(self, frame: Frame) -> Value:
        return self._value


@dataclass(frozen=True, slots=True)
class Likelihood(Operation):
    """The soft evidence on a variable: one likelihood per state."""

    variable: str
    axes: Axes
    inputs: tuple[int, ...] = field(default=(), init=False)
    reads_evidence: ClassVar[bool] = True

    @property
    def detail(self) -> str:
        return self.variable

    def step(self, setting: Setting, xp: Arrays) -> Step:
        return _Likelihood(xp, self.variable, setting.size(self.axes))

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.likelihoods(self.variable)


class _Likelihood(Step):
    def __init__(self, xp: Arrays, variable: str, states: int) -> None:
        self._xp, self._variable, self._nothing = xp, variable, xp.ones(states)

    def forward(self, frame: Frame) -> Value:
        given = frame.likelihood(self._variable)
        array = self._nothing if given is None else given
        return Value(self._xp.cast(array), floor=self._xp.likelihood_floor(array))

    def reverse(self, sweep: Sweep, adjoint: Array) -> None:
        """The derivative by the evidence stays where it is."""

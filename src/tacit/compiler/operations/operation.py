"""What every operation answers: how it is checked, what it costs, what is known of its entries, and how it is run.

Interpreters walk a program and ask each operation for its rule: `step` for arrays of any library, which also has the
rule of the backward pass, and `scalar` for entries one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Key, Mask, Setting


class Support(NamedTuple):
    """What is known of a table without knowing its numbers: which entries may differ from 0, which are 1."""

    nonzero: Mask
    ones: Mask

    @staticmethod
    def unknown(shape: Sequence[int]) -> Support:
        """Nothing is known."""
        return Support(np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_))


class Target(Protocol):
    """What the scalar rules write to: a tape or a circuit. Entries are ids: slots, constants or nodes."""

    zero: int
    one: int

    def value(self, i: int) -> Ids: ...
    def parameters(self, operation: Any) -> Ids: ...
    def constants(self, table: NDArray[np.float64]) -> Ids: ...
    def likelihoods(self, variable: str) -> Ids: ...
    def slices(self, operation: Any, setting: Setting) -> Ids: ...
    def same_scale(self, i: int, inputs: Sequence[int]) -> None: ...
    def sums(self, i: int, operation: Any, order: Axes, setting: Setting) -> Ids: ...
    def choices(self, operation: Any, setting: Setting) -> Ids: ...
    def shares(self, operation: Any, setting: Setting) -> Ids: ...
    def added(self, operation: Any, setting: Setting) -> Ids: ...
    def structured(self, operation: Any, setting: Setting) -> Ids: ...
    def rescaled(self, i: int, source: int) -> Ids: ...
    def extremes(self, operation: Any, setting: Setting) -> Ids: ...
    def corners(self, operation: Any, setting: Setting) -> Ids: ...


class Operation:
    """A frozen description of one step of a program. Each kind of operation is one class with all its rules."""

    __slots__ = ()

    inputs: tuple[int, ...]
    axes: Axes
    reads_evidence: ClassVar[bool] = False  # from the rows themselves, not only through its inputs

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        """Raise AssertionError unless the axes fit."""

    def union(self, setting: Setting) -> Axes:
        """The axes that the operation runs over: those of its result and those that it sums out."""
        return self.axes

    def multiply_adds(self, setting: Setting) -> int:
        """Multiply-adds, for one row if the result has rows."""
        return 0

    def elements(self, setting: Setting) -> int:
        """The numbers that are written, for one row if the result has rows."""
        return setting.size(self.axes)

    def live(self, setting: Setting) -> int:
        """The most of them that exist at one time."""
        return setting.size(self.axes)

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        """What the exact 0s and 1s of the parameters, which never change, say about the result."""
        return Support.unknown(setting.shape(self.axes))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        """The rule for arrays."""
        raise NotImplementedError

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        """The rule for entries one by one."""
        raise NotImplementedError

    def __str__(self) -> str:
        return f"{type(self).__name__.lower()} {self.detail}".rstrip()

    @property
    def detail(self) -> str:
        """What the operation is applied to, in words."""
        return " ".join(f"v{i}" for i in self.inputs)

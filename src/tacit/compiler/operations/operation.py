"""What every operation answers: how it is checked, what it costs, what is known of its entries, and how it is run.

A value that depends on evidence is an array (axes..., rows), one that does not is (axes...). Interpreters walk a
program and ask each operation for its rule: `step` for arrays of any library, which also has the rule of the reverse
sweep, and `scalar` for entries one by one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Axis = str
Axes = tuple[Axis, ...]
Key = tuple[str, str]  # the node and the part of a parameter
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = Any  # of NumPy, torch, or an ONNX graph

ZERO, ONE = -1, -2  # what a Gather may take besides entries of its input


class Setting(NamedTuple):
    """Where an operation stands in a program: the axes of its inputs, which of these have rows, the lengths of axes."""

    axes: tuple[Axes, ...]
    batched: tuple[bool, ...]
    sizes: Mapping[Axis, int]

    def size(self, axes: Sequence[Axis]) -> int:
        """The number of entries over some axes."""
        return math.prod(self.sizes[a] for a in axes)

    def shape(self, axes: Sequence[Axis]) -> list[int]:
        """The lengths of some axes."""
        return [self.sizes[a] for a in axes]


class Support(NamedTuple):
    """What is known of a table without knowing its numbers: which entries may differ from 0, which are 1."""

    nonzero: Mask
    ones: Mask

    @staticmethod
    def unknown(shape: Sequence[int]) -> Support:
        """Nothing is known."""
        return Support(np.ones(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_))


class Value(NamedTuple):
    """An array and, where it was rescaled, the exponent of each row: the number is array * 2**exponent.

    `floor` is a lower bound of the logarithms (base 2) of the entries that are not 0, for each row where the value
    depends on evidence; minus infinity says that digits may be lost, since some product was too small for a float.
    None stands for that of a table, which is worked out when it is asked for.
    """

    array: Array
    exponent: Array | None = None
    floor: Any = None
    weight: Array | None = None  # of `plus`, where the value is a selected table


class Frame(Protocol):
    """One evaluation of a program: its numbers and evidence, and the values found so far."""

    @property
    def values(self) -> Mapping[int, Value]:
        """The values by operation; those of tables are always there."""

    @property
    def through(self) -> bool:
        """Whether derivatives pass through the weights of selected tables."""

    def table(self, node: str, part: str) -> Array:
        """A table of parameters."""

    def gamma(self, node: str) -> Any:
        """The slope of a testing node; None for hard tests."""

    def likelihood(self, variable: str) -> Array | None:
        """The likelihoods of a variable's states, (states, rows), of any type; None where there is no evidence."""

    def place(self, variables: Axes, cards: Sequence[int]) -> Array:
        """The observed states of some variables as one index, the last fastest: (rows,)."""

    def ready(self, step: ArrayStep) -> Array:
        """The table that a step reads, as it wants it: arranged once for many runs."""

    def floor(self, i: int) -> Any:
        """The bound of value i, also where it is a table."""


class BackwardPass(Protocol):
    """A reverse sweep over a frame: adjoints on their way down, as NumPy arrays."""

    @property
    def frame(self) -> Frame:
        """What is reversed."""

    def add(self, i: int, adjoint: Array) -> None:
        """One more way in which value i counts."""

    def add_slope(self, node: str, derivative: Array) -> None:
        """One more way in which the slope of a testing node counts."""


class ArrayStep:
    """An operation planned for arrays of one kind: which axes move where is settled once, not in every run."""

    place: int = -1  # of the operation in its program
    table: int | None = None  # the value, without rows, that is arranged before it is read
    scratch: int = 0  # entries per row of a product that is written out before it is summed

    def forward(self, frame: Frame) -> Value:
        """The value, from those that `frame` holds."""
        raise NotImplementedError

    def arranged(self, table: Array) -> Array:
        """The table as `forward` reads it."""
        raise NotImplementedError

    def floor(self, frame: Frame, made: Value) -> Any:
        """A bound of the entries of a table that the step made, before they are looked at; None: nothing to add."""
        return None

    def reverse(self, sweep: BackwardPass, adjoint: Array) -> None:
        """Hand the adjoint of the value on to the inputs."""
        raise AssertionError(f"{type(self).__name__} has nothing below it")


class ArrayLibrary(Protocol):
    """What the array rules need of a library: the same few functions for NumPy, torch and a graph of ONNX.

    The bounds (`..._floor`) are left out by a library that does not watch how small numbers become.
    """

    def constant(self, table: NDArray[Any]) -> Array: ...
    def index(self, places: Ids) -> Array: ...
    def truth(self, mask: Mask) -> Array: ...
    def ones(self, states: int) -> Array: ...
    def permute(self, array: Array, order: Sequence[int]) -> Array: ...
    def reshape(self, array: Array, shape: Sequence[int]) -> Array: ...
    def take(self, array: Array, index: Array, axis: int) -> Array: ...
    def where(self, condition: Array, a: Any, b: Any) -> Array: ...
    def sum(self, array: Array, over: Sequence[int], keepdims: bool = False) -> Array: ...
    def maximum(self, a: Array, b: Array) -> Array: ...
    def compare(self, test: str, a: Array, b: Array) -> Array: ...
    def ratio(self, part: Array, total: Array, otherwise: Array) -> Array: ...
    def sigmoids(self, x: Array, like: Array) -> tuple[Array, Array]: ...
    def decays(self, x: Array, like: Array) -> tuple[Array, Array]:
        """e**-x and 1 - e**-x of numbers x >= 0."""

    def noticed(self, weight: Array, beside: Array) -> Array:
        """Weights up to 1, and 0 where they are nothing beside another number."""
        return self.where(self.compare(">", weight * 2.0**60, beside), weight, weight * 0.0)

    def rescaled(self, array: Array, over: Sequence[int]) -> tuple[Array, Array | None]: ...
    def concatenate(self, arrays: Sequence[Array]) -> Array:
        """Arrays (entries, rows) one after the other; one of a single row speaks for all rows."""

    def literals(self, mantissas: NDArray[np.float64], exponents: Ids) -> tuple[Array, bool]:
        """mantissas * 2**exponents, (count, 1), and whether all of them are in range."""

    def algorithm(self, roles: Any, tables: int) -> str:
        """How to contract, of those that `contract` knows; None: one value alone."""

    def cast(self, array: Array) -> Array:
        return array

    def fixed(self, array: Array) -> Array:
        """Without derivatives."""
        return array

    def in_order(self, array: Array) -> Array:
        """With its entries one after the other in memory, where that is worth a copy."""
        return array

    def matmul(self, a: Array, b: Array) -> Array:
        return a @ b

    def times(self, a: Array, b: Array) -> tuple[Array, Array | None]:
        """The product of (..., rows), and the rows in which it lost digits."""
        return a * b, None

    def either(self, a: Array, b: Array) -> Array:
        return a | b

    def both(self, a: Array, b: Array) -> Array:
        return a & b

    def likelihood_floor(self, array: Array) -> Any:
        return None

    def product_floor(self, frame: Frame, inputs: Sequence[int]) -> Any:
        return None

    def sum_floor(self, frame: Frame, inputs: Sequence[int]) -> Any:
        return None

    def selected_floor(
        self, frame: Frame, inputs: Sequence[int], tests: bool, table: Array, sides: tuple[Array, Array], rows: bool
    ) -> Any:
        return None

    def rescaled_floor(self, floor: Any, array: Array, over: Sequence[int]) -> Any:
        return None

    def listed_floor(
        self, frame: Frame, inputs: Sequence[int], array: Array, lost: Sequence[Array], in_range: bool
    ) -> Any:
        """Of an array (entries, rows) made of some inputs by products that lost digits in some rows."""
        return None


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

    def alive(self, setting: Setting) -> int:
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


def spread(array: NDArray[Any], axes: Axes, order: Axes) -> NDArray[Any]:
    """An array with its axes in a given order, length-1 axes where it has none: ready to broadcast."""
    present = [a for a in order if a in axes]
    moved = array.transpose([axes.index(a) for a in present])
    return moved.reshape([moved.shape[present.index(a)] if a in axes else 1 for a in order])


def order_of(axes: Sequence[Axis], wanted: Sequence[Axis], rows: bool = False) -> list[int]:
    """The permutation that brings `axes` into the order of `wanted`, rows last."""
    return [*(axes.index(a) for a in wanted), *([len(axes)] if rows else [])]


class View:
    """A value over other axes: length-1 axes where it has none, ready to broadcast; and back."""

    def __init__(
        self, xp: ArrayLibrary, axes: Axes, batched: bool, out: Axes, any_batch: bool, setting: Setting
    ) -> None:
        present = [a for a in out if a in axes]
        rows = [-1] * batched
        self._xp, self._same = xp, axes == out and batched == any_batch
        self._order, self._back = order_of(axes, present, batched), order_of(present, axes, batched)
        self._aligned = [setting.sizes[a] if a in axes else 1 for a in out] + (rows or [1]) * any_batch
        self._present = [*setting.shape(present), *rows]
        self._sum_rows = any_batch and not batched

    def aligned(self, array: Array) -> Array:
        return array if self._same else self._xp.reshape(self._xp.permute(array, self._order), self._aligned)

    def back(self, array: Array) -> Array:
        """An aligned array over the axes of the value, summed over the rows that the value does not have."""
        array = array.sum(axis=-1) if self._sum_rows else array
        return array.reshape(self._present).transpose(self._back)


def views(xp: ArrayLibrary, setting: Setting, out: Axes) -> list[View]:
    """Views of all inputs of an operation over the same axes."""
    batch = any(setting.batched)
    return [View(xp, axes, rows, out, batch, setting) for axes, rows in zip(setting.axes, setting.batched, strict=True)]

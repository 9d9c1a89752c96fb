"""What array rules are written with: steps and the frames they run in, for any array library.

A value that depends on evidence is an array (axes..., rows), one that does not is (axes...).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.axes import Array, Axes, Ids, Mask


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

    def likelihood_floor(self, variable: str) -> Any:
        """The bound of the likelihoods, if it is known before they are looked at."""

    def place(self, variables: Axes, cards: Sequence[int]) -> Array:
        """The observed states of some variables as one index, the last fastest: (rows,)."""

    def ready(self, step: ArrayStep) -> Array:
        """The table that a step reads, as it wants it: arranged once for many runs."""

    def floor(self, i: int) -> Any:
        """The bound of value i, also where it is a table."""


class BackwardPass(Protocol):
    """The backward pass over a frame: adjoints of values, as NumPy arrays."""

    @property
    def frame(self) -> Frame:
        """The evaluation that is differentiated."""

    def add(self, i: int, adjoint: Array) -> None:
        """Add to the adjoint of value i."""

    def add_slope(self, node: str, derivative: Array) -> None:
        """Add to the derivative by the slope of a testing node."""


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

    def floor(self, frame: Frame, value: Value) -> Any:
        """A bound of the entries of a table that the step made, before they are looked at; None: nothing to add."""
        return None

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        """Hand the adjoint of the value on to the inputs."""
        raise AssertionError(f"{type(self).__name__} has nothing below it")


class ArrayLibrary(Protocol):
    """What the array rules need of a library: the same few functions for NumPy, torch and a graph of ONNX.

    The bounds (`..._floor`) are left out by a library that does not watch how small numbers become.
    """

    dense: bool = False  # whether large tables are contracted by `dense`, that is, by kernels on NumPy's arrays

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
    def smallest(self, array: Array, axis: int) -> Array: ...
    def largest(self, array: Array, axis: int) -> Array: ...
    def compare(self, test: str, a: Array, b: Array) -> Array: ...
    def ratio(self, part: Array, total: Array, otherwise: Array | float) -> Array: ...
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

    def extremes_floor(self, floor: Any) -> Any:
        return None

    def listed_floor(self, frame: Frame, inputs: Sequence[int], array: Array, lost: list[Array], in_range: bool) -> Any:
        """Of an array (entries, rows) made of some inputs by products that lost digits in some rows."""
        return None


def total_exponent(frame: Frame, inputs: Sequence[int]) -> Array | None:
    """The exponents of some values, added up; None if none of them was rescaled."""
    total = None
    for i in inputs:
        exponent = frame.values[i].exponent
        if exponent is not None:
            total = exponent if total is None else total + exponent
    return total

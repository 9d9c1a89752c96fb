"""What an engine can be asked: everything that is used of one. What it answers with is in `results`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiler.program import Program
from tacit.engines.results import Array, Decided, Gradients, Results
from tacit.evidence import Column, take

__all__ = ["Array", "Decided", "Engine", "Gradients", "Kernel", "Packed", "Results", "SeedOfRows"]

T = TypeVar("T")
SeedOfRows = Callable[[Array, slice | NDArray[np.intp]], tuple[float, Array]]
Kernel = Callable[..., float]


class Engine(Protocol):
    """A program with its numbers, ready to run.

    Evidence comes as `columns` with so many `rows`, or with one row that speaks for all.
    """

    program: Program
    gammas: Mapping[str, float | None]  # the slope of every testing node, None for hard tests
    threads: int | None  # how many it may use; None: as many as BLAS and torch do
    chunk: int  # how many rows to run at a time
    gradient_chunk: int  # how many rows to ask gradients of at a time

    def run(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows of evidence; with `selections`, say how testing nodes were decided."""

    def gradients(
        self,
        columns: Mapping[str, Column],
        rows: int,
        seeds: ArrayLike,
        through_selection: bool = True,
        exponent: NDArray[np.int64] | None = None,
    ) -> Gradients:
        """Derivatives of a function of the joint, given those by its mantissas: `seeds` (states, rows).

        With `exponent` (rows,), they are given by the joint times 2**-exponent. Without `through_selection`, the
        weights of selected tables count as constants.
        """

    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives: `seed_of` gives its value and those by the mantissas."""

    # learning -------------------------------------------------------------------------------------------------

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes."""

    def twin(self) -> Engine:
        """The same with numbers of its own, for another thread."""

    def small(self, rows: int) -> bool:
        """Whether so many rows are too little work for several threads, so that twins may share them."""

    def pack(self, columns: Mapping[str, Column], rows: int) -> Packed:
        """Rows that are asked about again and again, for `fused` and `jacobian`."""

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A sum over rows of some function of the joint, and its derivatives by the parameters.

        `seed_of` takes the joint of some rows and which they are, and gives their sum and its derivatives by the joint.
        `kernel`, if there is one, does the same between the two sweeps of a tape, in which a row of weight 0 counts for
        nothing: `kernel(arrays, reverse, values, start, stop, weights, *arguments)`, see `kernels`. An engine that
        runs no tapes has no use for it.
        """

    def lacks_jacobian(self) -> str:
        """Why there is no `jacobian`; empty if there is one."""

    @property
    def jacobian_size(self) -> int:
        """How many derivatives `jacobian` stores for every row."""

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        """The probability that the query is in states first .. stop-1, and its derivatives by the tables.

        Row by row: (rows,) and (entries of a table, rows).
        """


@dataclass(frozen=True)
class Packed:
    """Rows of evidence, as columns and in the form that an engine reads: `arrays` whose last axis are the rows.

    `places` are the positions of the rows in the columns, None if they are all of them in their order.
    """

    columns: Mapping[str, Column]
    rows: int
    arrays: tuple[NDArray[Any], ...] = ()
    places: NDArray[np.int64] | None = None

    def take(self, rows: NDArray[np.int64]) -> Packed:
        """Some of the rows."""
        places = rows if self.places is None else self.places[rows]
        return Packed(self.columns, len(rows), tuple(array[:, rows] for array in self.arrays), places)

    def columns_of(self, rows: NDArray[np.int64] | None = None) -> Mapping[str, Column]:
        """The evidence of some rows, or of all, in columns."""
        if self.places is not None:
            rows = self.places if rows is None else self.places[rows]
        return self.columns if rows is None else take(self.columns, rows)

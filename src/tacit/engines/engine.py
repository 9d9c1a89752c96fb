"""What an engine can be asked: everything that is used of one. What it answers with is in `results`.

Rows whose numbers leave the range of floats are computed again, by another engine with a wider range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiler.program import Program
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse
from tacit.evidence import Column, blocks, take
from tacit.floats import Floats

T = TypeVar("T")
SeedOfRows = Callable[[Array, slice | NDArray[np.intp]], tuple[float, Array]]
Kernel = Callable[..., float]


class Sweep(Enum):
    """What a call asks of an engine: see `Engine.runner`."""

    FORWARD = "a forward pass"
    SELECTIONS = "a forward pass that says how testing nodes were decided"
    HELD = "a reverse pass in which the selected tables count as constants"
    THROUGH = "a reverse pass through the sigmoids that select tables"
    DESCENT = "a traceback: states or samples"


class Engine(ABC):
    """A program with its numbers, ready to run.

    Evidence comes as `columns` with so many `rows`, or with one row that speaks for all. An engine notices where its
    floats lose digits, and has these rows computed again. What only some engines can do, or do in a way of their own,
    is here as the others do it.
    """

    program: Program
    gammas: Mapping[str, float | None]  # the slope of every testing node, None for hard tests
    threads: int | None  # how many it may use; None: as many as BLAS and torch do
    chunk: int  # how many rows to run at a time
    gradient_chunk: int  # how many rows to ask gradients of at a time
    _again: Engine | None = None  # what computes doubtful rows, made on first use

    @abstractmethod
    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows in plain floats, and say which are doubtful."""

    @abstractmethod
    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> Reverse:
        """Derivatives in plain floats, given those by the mantissas that this engine's own forward pass finds."""

    @abstractmethod
    def attempt_descent(self, columns: Mapping[str, Column], rows: int, draws: Floats | None) -> Descent:
        """States from plain floats; the results say which rows are doubtful."""

    @abstractmethod
    def more_careful(self) -> Engine:
        """The same program and numbers, with a wider range of numbers."""

    @abstractmethod
    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes."""

    @abstractmethod
    def twin(self) -> Self:
        """The same with numbers of its own, for another thread."""

    def runner(self, rows: int, *sweeps: Sweep) -> Engine:
        """The engine that answers one public call, all of it, about so many rows: itself, unless this is "auto"."""
        return self

    def single(self) -> SingleRow | None:
        """What answers single rows that are in its layout, if there is such a thing without preparation."""
        return None

    def chunk_for(self, rows: int) -> int:
        """How many rows to run at a time, if there are so many, and nothing is made of them but posteriors."""
        return self.chunk

    @property
    def again(self) -> Engine:
        """The engine for doubtful rows."""
        if self._again is None:
            again = self.more_careful()
            again.threads = self.threads
            self._again = again
        return self._again

    @property
    def tracer(self) -> Engine:
        """The engine that follows the instructions of a traced program down: NumPy in float64."""
        return self.again

    def run(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows of evidence; with `selections`, say how testing nodes were decided."""
        found = self.attempt(columns, rows, selections)
        if found.doubtful is None:
            return found
        doubtful = np.flatnonzero(found.doubtful)
        return found.mended(doubtful, self.again.run(take(columns, doubtful), len(doubtful), selections))

    def run_trusting(self, columns: Mapping[str, Column], rows: int, least: int) -> tuple[Results, NDArray[np.intp]]:
        """Evaluate some rows, where what underflows counts for nothing beside a joint of 2**`least` and more.

        The second result are the rows that were computed again, for `gradients`.
        """
        found = self.attempt(columns, rows)
        if found.doubtful is None:
            return found, np.empty(0, dtype=np.intp)
        with np.errstate(divide="ignore"):
            trusted: NDArray[np.bool_] = np.log2(found.joint.min(axis=0)) + found.exponent >= least
        doubtful = np.flatnonzero(found.doubtful & ~trusted)
        if doubtful.size:
            found = found.mended(doubtful, self.again.run(take(columns, doubtful), len(doubtful)))
        return found, doubtful

    def posterior(self, columns: Mapping[str, Column], rows: int) -> Array:
        """P*(q) of some rows: (rows, states); NaN where the evidence has probability zero."""
        return self.run(columns, rows).posterior()

    def descend(self, columns: Mapping[str, Column], rows: int, draws: Floats | None = None) -> Descent:
        """States for every axis that the program sums out, or maximises: the way down from the joint.

        With `draws` (as many as the program takes, rows, samples), numbers between 0 and 1, they are samples given the
        evidence. Without, the program maximises, and they are the states that its joint belongs to. Give at most
        `gradient_chunk` rows. A traced program gives the states of variables in place of those of axes.
        """
        if self.program.traced and self.tracer is not self:
            return self.tracer.descend(columns, rows, draws)
        found = self.attempt_descent(columns, rows, draws)
        if found.results.doubtful is None:
            return found
        rare = np.flatnonzero(found.results.doubtful)
        theirs = None if draws is None else draws[:, rare]
        return found.mended(rare, self.again.descend(take(columns, rare), len(rare), theirs))

    def gradients(
        self,
        columns: Mapping[str, Column],
        rows: int,
        seeds: ArrayLike,
        exponent: ArrayLike,
        through_selection: bool = True,
        doubtful: NDArray[np.intp] | None = None,
    ) -> Gradients:
        """Derivatives by every parameter and every likelihood, from a forward and a reverse pass.

        `seeds` (states, rows) are the derivatives of some function by the mantissas of a run, of this engine or another
        one, and `exponent` (rows,) are the exponents of that run: together, by the joint times 2**-`exponent`. Engines
        may scale a row by different powers of two. Without `through_selection`, the weights of selected tables count
        as constants. `doubtful` are the rows that must be computed again, if that is known: see `run_trusting`.

        >>> import tacit
        >>> engine = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy").engine()
        >>> engine.gradients({}, 1, [[1.0], [0.0]], exponent=0).tables["A", "table"]  # of p*(B=true)
        array([0.2, 0.7])
        """
        scale = np.broadcast_to(np.asarray(exponent), (rows,))
        given = np.broadcast_to(np.asarray(seeds, dtype=np.float64), (self.program.outputs, rows))
        first = self.attempt_gradients(columns, rows, given, through_selection)
        own = given
        if (first.exponent != scale).any():
            with np.errstate(over="ignore"):  # in rows that are in doubt, which have others
                own = np.ldexp(given, (first.exponent - scale).astype(np.int32))
            if not first.doubtful:
                first = self.attempt_gradients(columns, rows, own, through_selection)
        if not first.doubtful and first.gradients.finite:
            return first.gradients
        # derivatives overflow where a probability is too small for a float to be their divisor
        lost = first.gradients.overflowing(rows)
        if doubtful is not None:
            lost[doubtful] = True
        elif (plain := self.attempt(columns, rows)).doubtful is not None:
            lost |= plain.doubtful
        rare = np.flatnonzero(lost if lost.any() or first.gradients.finite else np.ones(rows, dtype=np.bool_))
        if not rare.size and own is given:
            return first.gradients
        others = own.copy()
        others[:, rare] = 0.0
        found = self.attempt_gradients(columns, rows, others, through_selection).gradients
        if not rare.size:
            return found
        theirs = take(columns, rare), len(rare), given[:, rare], scale[rare], through_selection
        return found.mended(rare, self.again.gradients(*theirs))

    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives.

        `seed_of` takes the mantissas of the joint (states, rows) and returns anything, such as the value of the
        function, and its derivatives by the mantissas (states, rows).
        """
        found = self.run(columns, rows)
        value, seeds = seed_of(found.joint)
        return value, self.gradients(columns, rows, seeds, found.exponent)

    def small(self, rows: int) -> bool:
        """Whether so many rows are too little work for several threads, so that twins may share them.

        Not where BLAS or torch have threads of their own.
        """
        return False

    def pack(self, columns: Mapping[str, Column], rows: int) -> Packed:
        """Rows that are asked about again and again, for `fused` and `jacobian`."""
        return Packed(columns, rows)

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A sum over rows of some function of the joint, and its derivatives by the parameters.

        `seed_of` takes the joint of some rows and which they are, and gives their sum and its derivatives by the joint.
        `kernel`, if there is one, does the same between the two sweeps of a tape, in which a row of weight 0 counts for
        nothing: `kernel(arrays, reverse, values, start, stop, weights, *arguments)`, see `kernels`. An engine that
        runs no tapes has no use for it.
        """
        total, tables, slopes = 0.0, dict[tuple[str, str], Floats](), dict[str, float]()
        for rows, block in blocks(data.columns_of(), data.rows, self.gradient_chunk):

            def seed_of_block(joint: Array, rows: slice = rows) -> tuple[float, Array]:
                return seed_of(joint, rows)

            value, found = self.value_and_gradients(block.columns, block.rows, seed_of_block)
            total += value
            for key, table in found.tables.items():
                tables[key] = tables[key] + table if key in tables else table
            for node, slope in found.slopes.items():
                slopes[node] = slopes.get(node, 0.0) + slope
        return total, Gradients(tables, slopes, {})

    def lacks_jacobian(self) -> str:
        """Why there is no `jacobian`; empty if there is one."""
        return "the query runs on another engine than the tape"

    @property
    def jacobian_size(self) -> int:
        """How many derivatives `jacobian` stores for every row."""
        raise NotImplementedError(self.lacks_jacobian())

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        """The probability that the query is in states first .. stop-1, and its derivatives by the tables.

        Row by row: (rows,) and (entries of a table, rows).
        """
        raise NotImplementedError(self.lacks_jacobian())


class RowLayout(NamedTuple):
    """The order in which single rows are read.

    First the likelihoods of all states of the `inputs`, as doubles, then the states of the variables in `codes`, as
    integers of 32 bits.
    """

    inputs: Sequence[str]
    codes: Sequence[str]


class SingleRow(Protocol):
    """What answers one row at a time, for which a batch would be a detour."""

    @property
    def layout(self) -> RowLayout:
        """How a row is written."""

    def posterior(self, row: bytes) -> Array | None:
        """P*(q) of one row: (1, states); None where it needs a closer look."""

    def joint(self, row: bytes) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """p*(q) of one row, mantissas (1, states) and their exponent (1,); None where it needs a closer look."""


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


def rows_too_small(columns: Mapping[str, Column], rows: int, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """The rows with a likelihood that is too small for floats of some type: (rows,)."""
    found, smallest = np.zeros(rows, dtype=np.bool_), np.finfo(dtype).smallest_normal
    for column in columns.values():
        likelihoods = column.likelihoods()
        found |= ((likelihoods > 0) & (likelihoods < smallest)).any(axis=0)
    return found

"""What an engine can be asked: everything that is used of one. What it answers with is in `results`.

Rows whose numbers leave the range of floats are computed again, by another engine with a wider range.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.floats import Floats
from tacit.compiler.program import Program
from tacit.engines.draws import Draws
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse, added
from tacit.evidence.column import Column, blocks, take
from tacit.evidence.density_column import DensityColumn, lost_rows

T = TypeVar("T")
Columns = Mapping[str, Column]  # evidence by the names of variables
Tables = Mapping[tuple[str, str], Array]  # numbers by node and part
Slopes = Mapping[str, float | None]  # of testing nodes, None for hard tests
SeedOfRows = Callable[[Array, slice | NDArray[np.intp]], tuple[float, Array]]
Kernel = Callable[..., float]

MAX_CHUNK = 2**14  # rows
CHUNK_ELEMENTS = 2**19  # entries alive at one time: a few megabytes, about the size of the caches
LEAST_TRUSTED = {"float64": -128, "float32": -60}  # log2 of a joint beside which what underflows counts for nothing
GRADIENT_ELEMENTS = 2**22  # entries kept for a backward pass: 32 megabytes, beyond which more rows gain nothing


def rows_within(entries: int, each: int, most: int = MAX_CHUNK) -> int:
    """How many rows to run at a time, of so many entries each."""
    return max(1, min(most, entries // max(1, each)))


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
    gammas: Slopes  # the slope of every testing node, None for hard tests
    threads: int | None  # how many it may use; None: as many as BLAS and torch do
    chunk: int  # how many rows to run at a time
    gradient_chunk: int  # how many rows to ask gradients of at a time
    _fallback: Engine | None = None  # what computes imprecise rows, made on first use

    @abstractmethod
    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        """Evaluate some rows in plain floats, and say which are imprecise."""

    @abstractmethod
    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        """Derivatives in plain floats, given those by the mantissas that this engine's own forward pass finds."""

    @abstractmethod
    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        """States from plain floats; the results say which rows are imprecise."""

    @abstractmethod
    def make_fallback(self) -> Engine:
        """An engine of this program and its numbers with a wider range: float64, or an exponent for every number."""

    @abstractmethod
    def update(self, parameters: Tables, gammas: Slopes) -> None:
        """Take new numbers for some tables and slopes."""

    @abstractmethod
    def clone(self) -> Self:
        """A copy that shares program and code, with numbers of its own, for another thread."""

    def each(self, draws: Draws) -> Iterator[Engine]:
        """The engine with the numbers of one draw after the other; it is the same copy, so use each before the next."""
        copy = self.clone()
        for i in range(len(draws)):
            copy.update(*draws.of(i))
            yield copy

    def runner(self, rows: int, *sweeps: Sweep, calls: int = 1) -> Engine:
        """The engine that answers one public call, all of it, about so many rows: itself, unless this is "auto".

        Under many sets of tables, it is called that often.
        """
        return self

    def single(self) -> SingleRow | None:
        """What answers single rows that are in its layout, if there is such a thing without preparation."""
        return None

    def chunk_for(self, rows: int) -> int:
        """How many rows to run at a time, if there are so many, and nothing is made of them but posteriors."""
        return self.chunk

    def works_out(self, column: DensityColumn) -> bool:
        """Whether `posterior` takes the numbers of a column as they are, and no memory for their densities."""
        return False

    @property
    def fallback(self) -> Engine:
        """The engine for imprecise rows."""
        if self._fallback is None:
            fallback = self.make_fallback()
            fallback.threads = self.threads
            self._fallback = fallback
        return self._fallback

    @property
    def tracer(self) -> Engine:
        """The engine that follows the instructions of a traced program down: NumPy in float64."""
        return self.fallback

    def run(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        """Evaluate some rows of evidence; with `selections`, say how testing nodes were decided."""
        results = self.attempt(columns, rows, selections)
        doubtful = self.doubtful(columns, results)
        if doubtful is None:
            return results if results.imprecise is None else replace(results, imprecise=None)
        imprecise = np.flatnonzero(doubtful)
        replaced = self.fallback.run(take(columns, imprecise), len(imprecise), selections)
        return results.with_rows_replaced(imprecise, replaced)

    def doubtful(self, columns: Columns, results: Results) -> NDArray[np.bool_] | None:
        """The rows (rows,) that must be computed again, None if there is none: where digits may be lost.

        Observed numbers often make densities that underflow beside others. Where the joint is of ordinary size that
        counts for nothing, unless tests are decided by smaller sums on the way.
        """
        lost = lost_rows(columns, len(results.exponent))
        if lost is None:
            return results.imprecise
        if results.imprecise is not None:
            lost = lost | results.imprecise
        if lost.any() and not self.program.selections:
            with np.errstate(divide="ignore"):
                size = np.log2(results.joint.sum(axis=0, dtype=np.float64)) + results.exponent
            lost &= ~(size >= LEAST_TRUSTED[results.joint.dtype.name])
        return lost if lost.any() else None

    def run_trusting(self, columns: Columns, rows: int, least: int) -> tuple[Results, NDArray[np.intp]]:
        """Evaluate some rows, where what underflows counts for nothing beside a joint of 2**`least` and more.

        The second result are the rows that were computed again, for `gradients`.
        """
        results = self.attempt(columns, rows)
        imprecise = untrusted(columns, results, least)
        if imprecise.size:
            results = results.with_rows_replaced(imprecise, self.fallback.run(take(columns, imprecise), len(imprecise)))
        return results, imprecise

    def trusting_gradients(
        self, columns: Columns, rows: int, least: int, seed_of: Callable[[Results], Array]
    ) -> tuple[Results, Gradients]:
        """A run as by `run_trusting`, and derivatives, given those by its mantissas, with weights held constant."""
        results, imprecise = self.run_trusting(columns, rows, least)
        seeds = seed_of(results)
        return results, self.gradients(columns, rows, seeds, results.exponent, False, imprecise)

    def posterior(self, columns: Columns, rows: int) -> Array:
        """P*(q) of some rows: (rows, states); NaN where the evidence has probability zero."""
        return self.run(columns, rows).posterior()

    def posteriors(self, columns: Columns, rows: int, draws: Draws) -> Array:
        """P*(q) of some rows under each of several draws: (draws, rows, states)."""
        return np.stack([engine.posterior(columns, rows) for engine in self.each(draws)])

    def descend(self, columns: Columns, rows: int, draws: Floats | None = None) -> Descent:
        """States for every axis that the program sums out, or maximises: a traceback from the joint.

        With `draws` (as many as the program takes, rows, samples), numbers between 0 and 1, they are samples given the
        evidence. Without, the program maximises, and they are the states that its joint belongs to. Give at most
        `gradient_chunk` rows. A traced program gives the states of variables in place of those of axes.
        """
        if self.program.traced and self.tracer is not self:
            return self.tracer.descend(columns, rows, draws)
        descent = self.attempt_descent(columns, rows, draws)
        doubtful = self.doubtful(columns, descent.results)
        if doubtful is None:
            return descent
        rare = np.flatnonzero(doubtful)
        theirs = None if draws is None else draws[:, rare]
        return descent.with_rows_replaced(rare, self.fallback.descend(take(columns, rare), len(rare), theirs))

    def gradients(
        self,
        columns: Columns,
        rows: int,
        seeds: ArrayLike,
        exponent: ArrayLike,
        through_selection: bool = True,
        imprecise: NDArray[np.intp] | None = None,
    ) -> Gradients:
        """Derivatives by every parameter and every likelihood, from a forward and a reverse pass.

        Of observed numbers, those by the logarithms of their densities.

        `seeds` (states, rows) are the derivatives of some function by the mantissas of a run, of this engine or another
        one, and `exponent` (rows,) are the exponents of that run: together, by the joint times 2**-`exponent`. Engines
        may scale a row by different powers of two. Without `through_selection`, the weights of selected tables count
        as constants. `imprecise` are the rows that must be computed again, if that is known: see `run_trusting`.

        >>> import tacit
        >>> engine = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy").engine()
        >>> engine.gradients({}, 1, [[1.0], [0.0]], exponent=0).tables["A", "table"]  # of p*(B=true)
        array([0.2, 0.7])
        """
        self.program.require_derivatives()
        scale = np.broadcast_to(np.asarray(exponent), (rows,))
        by_joint = np.broadcast_to(np.asarray(seeds, dtype=np.float64), (self.program.outputs, rows))
        first = self.attempt_gradients(columns, rows, by_joint, through_selection)
        rescaled = by_joint
        if (first.exponent != scale).any():
            with np.errstate(over="ignore"):  # in rows that are in doubt, which have others
                rescaled = np.ldexp(by_joint, (first.exponent - scale).astype(np.int32))
            if not first.imprecise:
                first = self.attempt_gradients(columns, rows, rescaled, through_selection)
        underflown = lost_rows(columns, rows)
        if not first.imprecise and first.gradients.finite and (underflown is None or not underflown.any()):
            return first.gradients.by_logs(columns)
        # derivatives overflow where a probability is too small for a float to be their divisor
        lost = first.gradients.overflowing(rows)
        if imprecise is not None:
            lost[imprecise] = True
        elif (doubtful := self.doubtful(columns, self.attempt(columns, rows))) is not None:
            lost |= doubtful
        rare = np.flatnonzero(lost if lost.any() or first.gradients.finite else np.ones(rows, dtype=np.bool_))
        if not rare.size and rescaled is by_joint:
            return first.gradients.by_logs(columns)
        others = rescaled.copy()
        others[:, rare] = 0.0
        gradients = self.attempt_gradients(columns, rows, others, through_selection).gradients.by_logs(columns)
        if not rare.size:
            return gradients
        theirs = take(columns, rare), len(rare), by_joint[:, rare], scale[rare], through_selection
        return gradients.with_rows_replaced(rare, self.fallback.gradients(*theirs))

    def log_sums(self, data: WeightedRows, draws: Draws) -> LogSums | None:
        """The log-probability of all rows under each draw, and its derivatives with what tests select held fixed.

        The program has one output. None where there is no quicker way than `run_trusting` and `gradients`.
        """
        return None

    def value_and_gradients(
        self, columns: Columns, rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives.

        `seed_of` takes the mantissas of the joint (states, rows) and returns anything, such as the value of the
        function, and its derivatives by the mantissas (states, rows).
        """
        results = self.run(columns, rows)
        value, seeds = seed_of(results.joint)
        return value, self.gradients(columns, rows, seeds, results.exponent)

    def small(self, rows: int) -> bool:
        """Whether so many rows are too little work for several threads: then clones may share them."""
        return False  # where BLAS or torch have threads of their own

    def pack(self, columns: Columns, rows: int) -> Packed:
        """Rows that are asked about again and again, for `fused` and `jacobian`."""
        return Packed(columns, rows)

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A sum over rows of some function of the joint, and its derivatives by the parameters.

        `seed_of` takes the joint of some rows and which they are, and gives their sum and its derivatives by the joint.
        `kernel`, if there is one, does the same between the two passes of a tape, in which a row of weight 0 counts for
        nothing: `kernel(arrays, reverse, values, start, stop, weights, *arguments)`, see `tape_kernels`. An engine that
        runs no tapes has no use for it.
        """
        total, tables, slopes = 0.0, dict[tuple[str, str], Floats](), dict[str, float]()
        for rows, block in blocks(data.columns_of(), data.rows, self.gradient_chunk):

            def seed_of_block(joint: Array, rows: slice = rows) -> tuple[float, Array]:
                return seed_of(joint, rows)

            value, gradients = self.value_and_gradients(block.columns, block.rows, seed_of_block)
            total += value
            tables, slopes = added(tables, gradients.tables), added(slopes, gradients.slopes)
        return total, Gradients(tables, slopes, {})

    def lacks_jacobian(self) -> str:
        """Why there is no `jacobian`; empty if there is one."""
        return "the query runs on another engine than the tape"

    @property
    def jacobian_size(self) -> int:
        """How many derivatives `jacobian` stores for every row."""
        raise NotImplementedError(self.lacks_jacobian())

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        """The probability of states first .. stop-1, (rows,), and its derivatives by the tables: (entries, rows)."""
        raise NotImplementedError(self.lacks_jacobian())


@dataclass(eq=False)
class WeightedRows:
    """Rows to sum over again and again, with a weight each, and what an engine keeps of them.

    Beside a joint of 2**`least` and more, what underflows counts for nothing.
    """

    columns: Columns
    rows: int
    weights: Floats
    least: int
    kept: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "kept": None}  # which belongs to this process


class LogSums(NamedTuple):
    """Sums of weighted log-probabilities under each draw (draws,), and their derivatives by tables (draws, *shape).

    Under `doubtful` draws (draws,) they mean nothing: some row is impossible, or digits may be lost.
    """

    logs: Floats
    tables: Mapping[tuple[str, str], Floats]
    doubtful: NDArray[np.bool_]


class RowLayout(NamedTuple):
    """The order of a row: likelihoods of the states of `inputs`, as doubles, then `codes`, as 32-bit integers."""

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

    `places` are the positions of the rows in the columns, None if they are all of them in their order. In `lost` rows,
    a density underflows beside another one; None without densities.
    """

    columns: Columns
    rows: int
    arrays: tuple[NDArray[Any], ...] = ()
    places: NDArray[np.int64] | None = None
    lost: NDArray[np.bool_] | None = None

    @property
    def some_lost(self) -> bool:
        """Whether there are rows in which a density underflows."""
        return self.lost is not None and bool(self.lost.any())

    def take(self, rows: NDArray[np.int64]) -> Packed:
        places = rows if self.places is None else self.places[rows]
        lost = None if self.lost is None else self.lost[rows]
        return Packed(self.columns, len(rows), tuple(array[:, rows] for array in self.arrays), places, lost)

    def columns_of(self, rows: NDArray[np.int64] | None = None) -> Columns:
        """The evidence of some rows, or of all, in columns."""
        if self.places is not None:
            rows = self.places if rows is None else self.places[rows]
        return self.columns if rows is None else take(self.columns, rows)


def untrusted(columns: Columns, results: Results, least: int) -> NDArray[np.intp]:
    """The rows that are in doubt and have no joint of 2**`least` and more, beside which a loss counts for nothing."""
    lost = lost_rows(columns, len(results.exponent))
    if results.imprecise is not None:
        lost = results.imprecise if lost is None else lost | results.imprecise
    if lost is None or not lost.any():
        return np.empty(0, dtype=np.intp)
    with np.errstate(divide="ignore"):
        trusted: NDArray[np.bool_] = np.log2(results.joint.min(axis=0)) + results.exponent >= least
    return np.flatnonzero(lost & ~trusted)


def rows_too_small(columns: Columns, rows: int, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """The rows with a likelihood that is too small for floats of some type: (rows,)."""
    small, smallest = np.zeros(rows, dtype=np.bool_), np.finfo(dtype).smallest_normal
    for column in columns.values():
        if isinstance(column, DensityColumn) and dtype == np.float64:
            continue  # which says itself what is lost
        likelihoods = column.likelihoods()
        small |= ((likelihoods > 0) & (likelihoods < smallest)).any(axis=0)
    return small

"""What engines do about rows whose numbers leave the range of floats: another engine computes them again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.compiler.program import Program
from tacit.engines.protocol import Kernel, Packed, SeedOfRows
from tacit.engines.results import Array, Gradients, Results
from tacit.evidence import Column, blocks, take
from tacit.floats import Floats

T = TypeVar("T")


class Careful(ABC):
    """An engine that notices where its floats lose digits, and has these rows computed again.

    Whoever asks for derivatives gives them by the mantissas that `run` returns. What only some engines can do, or do
    in a way of their own, is here as the others do it.
    """

    program: Program
    gammas: Mapping[str, float | None]
    threads: int | None
    chunk: int
    gradient_chunk: int
    _again: Careful | None = None  # what computes doubtful rows, made on first use

    @abstractmethod
    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows in plain floats, and say which are doubtful."""

    @abstractmethod
    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> tuple[Gradients, bool]:
        """Derivatives in plain floats, and whether some rows may be doubtful."""

    @abstractmethod
    def more_careful(self) -> Careful:
        """The same program and numbers, with a wider range of numbers."""

    @property
    def again(self) -> Careful:
        """The engine for doubtful rows."""
        if self._again is None:
            again = self.more_careful()
            again.threads = self.threads
            self._again = again
        return self._again

    def run(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows; `columns` hold that many rows, or one that speaks for all."""
        found = self.attempt(columns, rows, selections)
        if found.doubtful is None:
            return found
        doubtful = np.flatnonzero(found.doubtful)
        return found.mended(doubtful, self.again.run(take(columns, doubtful), len(doubtful), selections))

    def gradients(
        self,
        columns: Mapping[str, Column],
        rows: int,
        seeds: ArrayLike,
        through_selection: bool = True,
        exponent: NDArray[np.int64] | None = None,
    ) -> Gradients:
        """Derivatives by every parameter and every likelihood, from one sweep up and one down.

        `seeds` (states, rows) are the derivatives of some function by the mantissas of the joint, as `run` gives
        them, or by the joint times 2**-`exponent`. Without `through_selection`, the weights of selected tables count
        as constants.

        >>> import tacit
        >>> engine = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], engine="numpy").engine()
        >>> engine.gradients({}, 1, [[1.0], [0.0]]).tables["A", "table"]  # of p*(B=true)
        array([0.2, 0.7])
        """
        states = self.program.sizes[self.program.query]
        by_joint = np.broadcast_to(np.asarray(seeds, dtype=np.float64), (states, rows))
        if exponent is not None:
            by_joint = np.ldexp(by_joint, (self.run(columns, rows).exponent - exponent).astype(np.int32))
        found, doubt = self.attempt_gradients(columns, rows, by_joint, through_selection)
        if not doubt and found.finite:
            return found
        # derivatives overflow where a probability is too small for a float to be their divisor
        lost = found.overflowing(rows)
        if (plain := self.attempt(columns, rows)).doubtful is not None:
            lost |= plain.doubtful
        doubtful = np.flatnonzero(lost if lost.any() or found.finite else np.ones(rows, dtype=np.bool_))
        if not doubtful.size:
            return found
        scale = self.run(columns, rows).exponent[doubtful]
        others, theirs = by_joint.copy(), by_joint[:, doubtful]
        others[:, doubtful] = 0.0
        found, _ = self.attempt_gradients(columns, rows, others, through_selection)
        more = self.again.gradients(take(columns, doubtful), len(doubtful), theirs, through_selection, scale)
        return found.mended(doubtful, more)

    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives.

        `seed_of` takes the mantissas of the joint (states, rows) and returns anything, such as the value of the
        function, and its derivatives by the mantissas (states, rows).
        """
        value, seeds = seed_of(self.run(columns, rows).joint)
        return value, self.gradients(columns, rows, seeds)

    def small(self, rows: int) -> bool:
        """Whether so many rows are too little work for several threads: not where BLAS or torch have their own."""
        return False

    def pack(self, columns: Mapping[str, Column], rows: int) -> Packed:
        """Rows that are asked about again and again."""
        return Packed(columns, rows)

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A sum over rows of a function of the joint, and its derivatives by the parameters, block by block."""
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
        """The probability of some states, and its derivatives by the tables, row by row."""
        raise NotImplementedError(self.lacks_jacobian())


def rows_too_small(columns: Mapping[str, Column], rows: int, dtype: np.dtype[np.floating]) -> NDArray[np.bool_]:
    """The rows with a likelihood that is too small for floats of some type: (rows,)."""
    found, smallest = np.zeros(rows, dtype=np.bool_), np.finfo(dtype).smallest_normal
    for column in columns.values():
        likelihoods = column.likelihoods()
        found |= ((likelihoods > 0) & (likelihoods < smallest)).any(axis=0)
    return found

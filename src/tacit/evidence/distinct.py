"""Distinct rows of evidence: what takes long is computed once for all rows that are equal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.evidence.column import Column, Evidence, take
from tacit.evidence.density_column import DensityColumn

N = TypeVar("N", bound=np.generic)
MIN_ROWS = 64  # rows that are not worth a look
SAMPLE_ROWS = 4096  # rows that tell whether a look at all of them pays
MAX_DISTINCT = 0.75  # of all rows may be different: where more are, the rest is not worth the trouble
MAX_KEY = 2**62  # of the numbers that rows are told apart by


class DistinctRows(NamedTuple):
    """Distinct rows of evidence, and the place of each row among them; None if they are all rows."""

    known: Evidence
    places: NDArray[np.intp] | None

    def for_all(self, answers: NDArray[N]) -> NDArray[N]:
        """The answers for all rows, (rows, ...), from those for the distinct ones."""
        return answers if self.places is None else np.take(answers, self.places, axis=0)


def distinct(known: Evidence) -> DistinctRows:
    """The distinct rows of evidence; all rows, where they are few or hardly ever equal."""
    if known.rows < MIN_ROWS:
        return DistinctRows(known, None)
    columns = [column for column in known.columns.values() if column.rows > 1]
    step = max(1, known.rows // SAMPLE_ROWS)
    some = [column.take(slice(None, None, step)) for column in columns]
    counts = np.unique(_numbers(some, len(range(0, known.rows, step))), return_counts=True)[1]
    once, twice = int((counts == 1).sum()), int((counts == 2).sum())
    if len(counts) + once * (once - 1) / (2 * (twice + 1)) > MAX_DISTINCT * known.rows:  # Chao's estimate
        return DistinctRows(known, None)
    different, places = np.unique(_numbers(columns, known.rows), return_inverse=True)
    if len(different) > MAX_DISTINCT * known.rows:
        return DistinctRows(known, None)
    chosen = np.empty(len(different), dtype=np.int64)
    chosen[places] = np.arange(known.rows)
    return DistinctRows(Evidence(len(chosen), take(known.columns, chosen)), places)


def _numbers(columns: Sequence[Column], rows: int) -> NDArray[np.int64]:
    """A number for every row, equal for equal rows."""
    numbers, limit = np.zeros(rows, dtype=np.int64), 1
    for column in columns:
        for own, count in _told_apart(column):
            if limit * count > MAX_KEY:
                different, numbers = np.unique(numbers, return_inverse=True)
                limit = len(different)
            numbers = numbers * count + own
            limit *= count
    return numbers


def _told_apart(column: Column) -> Iterator[tuple[NDArray[np.integer], int]]:
    """Numbers from 0 that tell the rows of a column apart, and how many there are: of states, or of each likelihood."""
    if column.codes is not None:
        yield column.codes.astype(np.int64) + 1, column.variable.card + 1
        return
    numbers = column.values.T if isinstance(column, DensityColumn) else column.likelihoods()
    for likelihoods in numbers:
        different, own = np.unique(likelihoods, return_inverse=True)
        yield own, len(different)

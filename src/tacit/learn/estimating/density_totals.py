"""What a first pass over the rows finds out about the columns of densities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.estimating.moments import Moments

SAMPLE = 1024  # rows, of which those are chosen that EM starts from
MIX = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # the constants of splitmix64


@dataclass(frozen=True, eq=False)
class DensityTotals:
    """The moments of one density's columns: of all rows in one component, and of complete rows in each."""

    whole: Moments
    complete: Moments

    def __add__(self, other: DensityTotals) -> DensityTotals:
        return DensityTotals(self.whole + other.whole, self.complete + other.complete)


@dataclass(frozen=True, eq=False)
class RowSample:
    """Random rows: the numbers of each density (rows, columns), NaN where they are missing.

    They are those with the smallest hashes of their numbers, so that it does not matter how rows come in batches.
    """

    hashes: NDArray[np.uint64]
    values: Mapping[str, Floats]

    @classmethod
    def of(cls, numbers: NDArray[np.int64], values: Mapping[str, Floats]) -> RowSample:
        """A sample of rows with these numbers."""
        return cls(_hashed(numbers), values)._few()

    def __add__(self, other: RowSample) -> RowSample:
        if not len(other.hashes):
            return self
        hashes = np.concatenate([self.hashes, other.hashes])
        columns = {name: own.shape[1] for own_values in (self.values, other.values) for name, own in own_values.items()}
        both = {name: np.concatenate([self._of(name, n), other._of(name, n)]) for name, n in columns.items()}
        return RowSample(hashes, both)._few()

    def _of(self, name: str, columns: int) -> Floats:
        own = self.values.get(name)
        return np.full((len(self.hashes), columns), np.nan) if own is None else own

    def _few(self) -> RowSample:
        if len(self.hashes) <= SAMPLE:
            return self
        chosen = np.sort(np.argpartition(self.hashes, SAMPLE)[:SAMPLE])
        return RowSample(self.hashes[chosen], {name: own[chosen] for name, own in self.values.items()})


def no_sample() -> RowSample:
    """A sample of no rows."""
    return RowSample(np.empty(0, dtype=np.uint64), {})


def _hashed(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Numbers that look random, after splitmix64."""
    mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(MIX[0])
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(MIX[1])
    return mixed ^ (mixed >> np.uint64(31))

"""Columns of a table as evidence on variables with few states: numbers by levels, text by its categories."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.base.text import rounded

MAX_CATEGORIES = 64  # rarer ones are no evidence
MAX_DEVIATIONS = 4.0  # from the mean: numbers beyond count as that far

Values = NDArray[Any]  # floats, or objects: text, None where there is none


@dataclass(frozen=True)
class DistinctNumbers:
    """The distinct numbers of a column that has few. One between two of them is evidence on both, in proportion.

    >>> DistinctNumbers(np.array([0.0, 1.0, 3.0]))(np.array([1.0, 2.5, np.nan]))
    array([[0.  , 1.  , 0.  ],
           [0.  , 0.25, 0.75],
           [ nan,  nan,  nan]])
    """

    numbers: Floats  # ascending

    @property
    def states(self) -> tuple[str, ...]:
        return _in_words(self.numbers)

    def __call__(self, column: Values) -> Floats:
        """Likelihoods (rows, numbers); NaN where there is no number."""
        places = np.interp(column, self.numbers, np.arange(len(self.numbers)))
        return np.asarray(np.maximum(1 - np.abs(places[:, None] - np.arange(len(self.numbers))), 0))


@dataclass(frozen=True)
class NumberLevels:
    """Levels of a column of numbers, a standard deviation apart. A number is evidence on those around it.

    The likelihoods of two neighbours have odds that are the exponential of `slope` times how many deviations the
    number is above their middle. So with two levels alone, they are its logistic.

    >>> NumberLevels(mean=5.0, deviation=2.0, count=2, slope=2.0)(np.array([5.0, 9.0, np.nan])).round(2)
    array([[0.5 , 0.5 ],
           [0.02, 0.98],
           [ nan,  nan]])
    """

    mean: float
    deviation: float
    count: int
    slope: float

    @classmethod
    def of(cls, column: Floats, weights: Floats, count: int, slope: float) -> NumberLevels | DistinctNumbers:
        """The levels of a column; a row of weight 2 counts as two rows, NaN as none."""
        known = ~np.isnan(column)
        seen, distinct = column[known], np.unique(column[known])
        if len(distinct) <= count:
            return DistinctNumbers(distinct)
        shares = weights[known] / weights[known].sum()
        mean = float(shares @ seen)
        widest = np.abs(seen - mean).max()  # whose square may be too large for a float
        return cls(mean, float(widest * np.sqrt(shares @ ((seen - mean) / widest) ** 2)), count, slope)

    @property
    def centres(self) -> Floats:
        """The levels, in deviations from the mean."""
        return np.arange(self.count, dtype=np.float64) - (self.count - 1) / 2

    @property
    def states(self) -> tuple[str, ...]:
        return _in_words(self.mean + self.deviation * self.centres)

    def __call__(self, column: Values) -> Floats:
        """Likelihoods (rows, levels)."""
        above = np.clip((column - self.mean) / self.deviation, -MAX_DEVIATIONS, MAX_DEVIATIONS)
        logs = self.slope * (above[:, None] - self.centres / 2) * self.centres
        odds = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def _in_words(numbers: Floats) -> tuple[str, ...]:
    short = tuple(rounded(number, 4) for number in numbers)
    return short if len(set(short)) == len(short) else tuple(map(repr, numbers.tolist()))


@dataclass(frozen=True)
class Categories:
    """The categories of a column of text. One that is not among them is no evidence.

    >>> Categories(("red", "green"))(np.array(["green", None, "blue"], dtype=object))
    array([[ 0.,  1.],
           [nan, nan],
           [nan, nan]])
    """

    states: tuple[str, ...]

    @classmethod
    def of(cls, column: Values, weights: Floats) -> Categories:
        """The most frequent texts of a column, sorted."""
        counts: dict[str, float] = {}
        for text, weight in zip(column.tolist(), weights.tolist(), strict=True):
            if text is not None:
                counts[text] = counts.get(text, 0.0) + weight
        frequent = sorted(counts, key=lambda text: (-counts[text], text))[:MAX_CATEGORIES]
        return cls(tuple(sorted(frequent)))

    def __call__(self, column: Values) -> Floats:
        """Likelihoods (rows, categories)."""
        places = {state: i for i, state in enumerate(self.states)}
        codes = np.array([places.get(text, -1) for text in column], dtype=np.intp)
        likelihoods = np.full((len(codes), len(self.states)), np.nan)
        likelihoods[codes >= 0] = np.eye(len(self.states))[codes[codes >= 0]]
        return likelihoods


Scale = DistinctNumbers | NumberLevels | Categories


def scales_of(columns: Sequence[Values], weights: Floats, levels: int, slope: float) -> dict[int, Scale]:
    """The scales of columns, by their place; a column with one value is left out."""
    scales: dict[int, Scale] = {}
    for i, column in enumerate(columns):
        text = column.dtype == object
        scale = Categories.of(column, weights) if text else NumberLevels.of(column, weights, levels, slope)
        if len(scale.states) > 1:
            scales[i] = scale
    return scales

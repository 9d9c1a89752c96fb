"""The transforms from weights to numbers, and back: rows of tables, thresholds and slopes, each kind together."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from tacit.base.floats import Floats, divide

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

SOFTMAX, LOGISTIC, EXPONENTIAL, SORTED = range(4)  # a threshold is logistic, several in a row are sorted
LIMIT = 30.0  # log-odds stay within +-30: learned numbers come within 1e-13 of 0 and 1 but never equal them
MIN_GAP = 1e-300  # between thresholds, where its logarithm is taken


class Units(NamedTuple):
    """Rows and thresholds that are made of weights of their own.

    A unit has `size` numbers from `entry` on, made of weights from `weight` on. Numbers of a row sum to `mass`;
    thresholds lie between `low` and `high`, which are `mass` apart.
    """

    kind: Ints
    weight: Ints
    entry: Ints
    size: Ints
    mass: Floats
    low: Floats
    high: Floats

    def only(self, some: Mask) -> Units:
        columns: Iterator[Any] = (column[some] for column in self)
        return Units(*columns)


class Transform(ABC):
    """Units of one kind. All vectors are whole: they have the weights, or the numbers, of all units."""

    @abstractmethod
    def make(self, weights: Floats, numbers: Floats) -> None:
        """Put the numbers that weights make into `numbers`."""

    @abstractmethod
    def derive(self, numbers: Floats, by_number: Floats, by_weight: Floats) -> None:
        """Put derivatives by the weights into `by_weight`, given those by the numbers; both have a column per row."""

    @abstractmethod
    def invert(self, numbers: Floats, weights: Floats) -> None:
        """Put the weights that make some numbers into `weights`."""

    @abstractmethod
    def complete(self, numbers: Floats, draws: Floats) -> None:
        """Replace numbers that are missing (NaN) by what draws make of them."""


def transforms(units: Units, entries: int) -> Iterator[Transform]:
    """The transforms of some units, which have so many numbers together."""
    sigmoids = (units.kind == LOGISTIC) | ((units.kind == SOFTMAX) & (units.size == 2))
    if sigmoids.any():
        yield Sigmoids(units.only(sigmoids), entries)
    kinds: dict[int, Callable[[Units], Transform]] = {SOFTMAX: Softmax, EXPONENTIAL: Exponential, SORTED: Sorted}
    rest = units.only(~sigmoids)
    for kind, count in sorted(set(zip(rest.kind.tolist(), rest.size.tolist(), strict=True))):
        yield kinds[kind](rest.only((rest.kind == kind) & (rest.size == count)))


class Sigmoids(Transform):
    """Units with one weight, through the logistic: rows with two learned entries, and single thresholds.

    A number lies between two ends, and its derivative is the product of its distances from them. Of a pair, one
    distance is the other number, which has digits where a difference has none.
    """

    def __init__(self, units: Units, entries: int) -> None:
        pairs, unit = units.size == 2, np.repeat(np.arange(len(units.kind)), units.size)
        self._pairs, self._singles = units.only(pairs), units.only(~pairs)
        paired, second = pairs[unit], np.diff(unit, prepend=-1) == 0
        self._entries, self._weight = units.entry[unit] + second, units.weight[unit]
        self._mass, self._sign = units.mass[unit], np.where(second, 1.0, -1.0)
        self._low, self._high = np.where(paired, 0.0, units.low[unit]), np.where(paired, self._mass, units.high[unit])
        self._other = np.where(paired, units.entry[unit] + ~second, self._entries)
        self._turned, self._end = np.where(paired, 1.0, -1.0), np.where(paired, 0.0, self._high)
        self._scale = -self._sign * divide(np.ones(len(unit)), self._mass, 0.0)
        ends = np.concatenate([[0], np.cumsum(units.size)])
        self._slopes = csr_array((self._scale, self._entries, ends), shape=(len(units.kind), entries))
        first, last = units.weight[[0, -1]].tolist()
        neighbours = bool((np.diff(units.weight) == 1).all())
        self._weights = slice(first, last + 1) if neighbours else units.weight  # a slice avoids a copy

    def make(self, weights: Floats, numbers: Floats) -> None:
        values = weights[self._weight]
        values *= self._sign
        np.exp(values, out=values)
        values += 1
        np.divide(self._mass, values, out=values)
        values += self._low
        numbers[self._entries] = np.minimum(values, self._high)

    def derive(self, numbers: Floats, by_number: Floats, by_weight: Floats) -> None:
        by_weight[self._weights] = self.by_weight(numbers, by_number)

    def by_weight(self, numbers: Floats, by_number: Floats) -> Floats:
        """Derivatives by the weights of these units, given those by all numbers."""
        slopes = numbers[self._other]
        slopes *= self._turned
        slopes += self._end
        slopes *= numbers[self._entries] - self._low
        slopes *= self._scale
        matrix = copy(self._slopes)  # every thread has its own
        matrix.data = slopes
        return np.asarray(matrix @ by_number)

    def invert(self, numbers: Floats, weights: Floats) -> None:
        pairs, singles = self._pairs, self._singles
        weights[pairs.weight] = np.log(numbers[pairs.entry]) - np.log(numbers[pairs.entry + 1])
        values = numbers[singles.entry]
        below, above = np.log(np.maximum([values - singles.low, singles.high - values], MIN_GAP))
        weights[singles.weight] = below - above

    def complete(self, numbers: Floats, draws: Floats) -> None:
        both = self._pairs.entry[:, None] + np.arange(2)
        numbers[both] = _shared(numbers[both], draws[both], self._pairs.mass[:, None])
        single, low, high = self._singles.entry, self._singles.low, self._singles.high
        numbers[single] = np.where(np.isnan(numbers[single]), low + (high - low) * draws[single], numbers[single])


class Exponential(Transform):
    """Slopes."""

    def __init__(self, units: Units) -> None:
        self._weights, self._entries = units.weight, units.entry

    def make(self, weights: Floats, numbers: Floats) -> None:
        numbers[self._entries] = np.exp(weights[self._weights])

    def derive(self, numbers: Floats, by_number: Floats, by_weight: Floats) -> None:
        by_weight[self._weights] = by_number[self._entries] * numbers[self._entries, None]

    def invert(self, numbers: Floats, weights: Floats) -> None:
        weights[self._weights] = np.log(numbers[self._entries])

    def complete(self, numbers: Floats, draws: Floats) -> None:
        """None is ever missing."""


class Softmax(Transform):
    """Rows of a table with more than two learned entries, which share the mass; or with one, which has all of it."""

    def __init__(self, units: Units) -> None:
        count = int(units.size[0])
        self._entries = units.entry[:, None] + np.arange(count)
        self._weights = units.weight[:, None] + np.arange(count if count > 1 else 0)
        self._mass = units.mass[:, None]

    def make(self, weights: Floats, numbers: Floats) -> None:
        if not self._weights.size:
            numbers[self._entries] = self._mass
            return
        logits = weights[self._weights]
        values = np.exp(logits - logits.max(axis=1, keepdims=True))
        values *= self._mass / values.sum(axis=1, keepdims=True)
        numbers[self._entries] = values

    def derive(self, numbers: Floats, by_number: Floats, by_weight: Floats) -> None:
        if not self._weights.size:
            return
        values, slopes = numbers[self._entries], by_number[self._entries]
        slopes -= np.einsum("uer,ue->ur", slopes, values / self._mass)[:, None]
        slopes *= values[..., None]
        by_weight[self._weights] = slopes

    def invert(self, numbers: Floats, weights: Floats) -> None:
        logs = np.log(numbers[self._entries])
        if self._weights.size:
            weights[self._weights] = logs - logs.mean(axis=1, keepdims=True)

    def complete(self, numbers: Floats, draws: Floats) -> None:
        numbers[self._entries] = _shared(numbers[self._entries], draws[self._entries], self._mass)


class Sorted(Transform):
    """Several thresholds in a row, which stay in order: the gaps between them are a softmax."""

    def __init__(self, units: Units) -> None:
        count = int(units.size[0])
        self._entries = units.entry[:, None] + np.arange(count)
        self._weights = units.weight[:, None] + np.arange(count + 1)
        self._mass, self._low, self._high = (end[:, None] for end in (units.mass, units.low, units.high))

    def make(self, weights: Floats, numbers: Floats) -> None:
        logits = weights[self._weights]
        sums = np.cumsum(np.exp(logits - logits.max(axis=1, keepdims=True)), axis=1)
        numbers[self._entries] = np.minimum(self._low + self._mass * (sums[:, :-1] / sums[:, -1:]), self._high)

    def derive(self, numbers: Floats, by_number: Floats, by_weight: Floats) -> None:
        """A gap that grows pushes what is above it, and shrinks all gaps in proportion."""
        values, slopes = numbers[self._entries], by_number[self._entries]
        shrinking = np.einsum("uer,ue->ur", slopes, divide(values - self._low, self._mass, 0.0))[:, None]
        above = np.cumsum(slopes[:, ::-1], axis=1)[:, ::-1]
        gaps = np.diff(np.concatenate([self._low, values, self._high], axis=1), axis=1)
        pushed = np.concatenate([above, np.zeros_like(above[:, :1])], axis=1)
        by_weight[self._weights] = gaps[..., None] * (pushed - shrinking)

    def invert(self, numbers: Floats, weights: Floats) -> None:
        values = numbers[self._entries]
        before = np.maximum.accumulate(np.concatenate([self._low, values], axis=1), axis=1)
        gaps = np.concatenate([values, self._high], axis=1) - before
        logs = np.log(np.maximum(gaps, np.maximum(self._mass * math.exp(-LIMIT), MIN_GAP)))
        # wide gaps keep their proportions beside narrow ones
        middle = np.maximum(logs.mean(axis=1, keepdims=True), logs.max(axis=1, keepdims=True) - LIMIT / 2)
        weights[self._weights] = logs - middle

    def complete(self, numbers: Floats, draws: Floats) -> None:
        for row, low, high in zip(self._entries, self._low[:, 0].tolist(), self._high[:, 0].tolist(), strict=True):
            numbers[row] = _spread(numbers[row], draws[row], low, high)


def _shared(numbers: Floats, draws: Floats, mass: Floats) -> Floats:
    """Rows whose missing numbers have shares, in proportion to draws, of the mass that the others leave."""
    missing = np.isnan(numbers)
    total = np.where(missing, draws, 0.0).sum(axis=1, keepdims=True)
    left = mass - np.where(missing, 0.0, numbers).sum(axis=1, keepdims=True)
    return np.where(missing, divide(draws, total, 0.0) * left, numbers)


def _spread(numbers: Floats, draws: Floats, low: float, high: float) -> Floats:
    """Fill in missing thresholds: one drawn in each of as many equal parts of the gap between given ones."""
    filled = numbers.copy()
    for start, stop, below, above in runs(numbers, np.isnan(numbers), low, high):
        shares = (np.arange(stop - start) + draws[start:stop]) / (stop - start)
        filled[start:stop] = below + (above - below) * shares
    return filled


def runs(row: Floats, mask: NDArray[np.bool_], low: float, high: float) -> Iterator[tuple[int, int, float, float]]:
    """The start and stop of each run of masked entries, and the numbers below and above it in a rising row.

    >>> list(runs(np.array([0.1, 0.2, 0.3, 0.4]), np.array([True, True, False, True]), 0.0, 1.0))
    [(0, 2, 0.0, 0.3), (3, 4, 0.3, 1.0)]
    """
    bounded, masked = [low, *row.tolist(), high], [False, *mask.tolist(), False]
    edges = [i for i, (a, b) in enumerate(pairwise(masked)) if a != b]
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        yield start, stop, bounded[start], bounded[stop + 1]

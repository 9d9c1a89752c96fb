"""Elimination inside a window: one table over the query and the boundary, for many rows at once.

Its numbers are sums of products of nonnegative ones, so rounding changes each by a small factor, which is counted. What
is too small for a float would count as impossible: tables are scaled before that can happen, and rows where scaling
does not help are marked as lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Self

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.row_numbers import Pair, RowNumbers
from tacit.bounds.windows import Window

LEAST, MOST = -960.0, 960.0  # powers of two between which all positive numbers are kept


class WindowTable:
    """The table of a window that grows: T(query, boundary) for every row, between a lower and an upper one."""

    def __init__(self, numbers: RowNumbers, query: str) -> None:
        self.numbers, self.surroundings = numbers, numbers.surroundings
        self.window = Window(query, (), (query,), (), self.surroundings.relaxed)
        ones = np.ones((self.surroundings.factors.cards[query], 1))
        self.table = Pair(ones, ones)
        self.roundings = 0  # on the longest path from a number of the network to one of the table
        self.lost = np.zeros(1, dtype=np.bool_)  # (rows or 1,): underflow may have changed what is possible
        self._floor, self._ceiling = np.zeros(1), 0.0  # powers of two between which positive numbers of the table are
        self._advance(self.surroundings.start(query))

    def absorb(self, name: str) -> None:
        """Let a variable of the boundary into the interior: multiply its factors in, and sum it out."""
        self._advance(self.surroundings.grown(self.window, name))

    @classmethod
    def of(cls, numbers: RowNumbers, window: Window) -> Self:
        """The table of a window that was chosen before."""
        if window.relaxed:
            numbers = replace(numbers, surroundings=numbers.surroundings.relax(window.relaxed))
        table = cls(numbers, window.query)
        for name in window.interior[1:]:
            table.absorb(name)
        return table

    @classmethod
    def smallest(cls, numbers: RowNumbers, query: str, most: int) -> Self:
        """The table of the smallest window around a variable; factors are relaxed where it would be too large."""
        surroundings = numbers.surroundings.small_enough(query, most)
        return cls(replace(numbers, surroundings=surroundings), query)

    def weighed(self) -> Self:
        """A copy with the likelihoods of the boundary, which rule states out: it must not grow."""
        weighed, axes = copy(self), (self.window.query, *self.window.boundary)
        known = {n: own for n in self.window.boundary if (own := self.numbers.likelihood(n)) is not None}
        for own in known.values():
            weighed._keep_in_range(Pair(own, own))
        operands = [(Pair(own, own), (name,)) for name, own in known.items()]
        weighed.table = _contracted([(weighed.table, axes), *operands], axes)
        weighed.roundings += len(operands)
        return weighed

    def _advance(self, window: Window) -> None:
        name = window.interior[-1]
        before = (window.query, *(n for n in self.window.boundary if n != window.query))
        after = (window.query, *window.boundary)
        operands: list[tuple[Pair, tuple[str, ...]]] = []
        for place in window.factors[len(self.window.factors) :]:
            operands.append((self.numbers.factor(place), self.surroundings.scopes[place]))
        likelihood = self.numbers.likelihood(name)
        if likelihood is not None:
            operands.append((Pair(likelihood, likelihood), (name,)))
        for pair, _ in operands:
            self._keep_in_range(pair)
        self.table = _contracted([(self.table, before), *operands], after)
        card = self.surroundings.factors.cards[name] if name != window.query else 1
        self._ceiling += math.log2(card)
        self.roundings += 3 * len(operands) + card - 1  # a relaxed table has two behind it
        self.window = window

    def _keep_in_range(self, factor: Pair) -> None:
        """Make room for products with the numbers of a factor."""
        least, most = _floor(factor.high), float(np.log2(max(factor.high.max(initial=0.0), 1.0)))
        if (self._floor + least < LEAST).any() or self._ceiling + most > MOST:
            self._scale()
        self._floor, self._ceiling = self._floor + least, self._ceiling + most
        self.lost = self.lost | (self._floor < LEAST)

    def _scale(self) -> None:
        axes = tuple(range(self.table.high.ndim - 1))
        _, power = np.frexp(self.table.high.max(axis=axes))
        low = np.ldexp(self.table.low, -power)
        self.table = Pair(low, low if self.table.exact else np.ldexp(self.table.high, -power))
        self._floor, self._ceiling = _floor(self.table.high), 0.0


def _contracted(operands: Sequence[tuple[Pair, tuple[str, ...]]], keep: tuple[str, ...]) -> Pair:
    """The product of tables, the first of which is the largest, summed over all axes but some."""
    low = _product([(pair.low, axes) for pair, axes in operands], keep)
    if all(pair.exact for pair, _ in operands):
        return Pair(low, low)
    return Pair(low, _product([(pair.high, axes) for pair, axes in operands], keep))


def _product(operands: Sequence[tuple[Floats, tuple[str, ...]]], keep: tuple[str, ...]) -> Floats:
    (first, axes), *others = operands
    if not others:
        return first if axes == keep else _einsum([(first, axes)], keep)
    # the small ones first: they often share their axes
    small, names = others[0]
    for table, own in others[1:]:
        union = tuple(dict.fromkeys((*names, *own)))
        small, names = _einsum([(small, names), (table, own)], union), union
    return _einsum([(first, axes), (small, names)], keep)


def _einsum(operands: Sequence[tuple[Floats, tuple[str, ...]]], keep: tuple[str, ...]) -> Floats:
    """einsum over named axes; the rows, which come last, are kept."""
    place = {name: i for i, name in enumerate(dict.fromkeys(n for _, axes in operands for n in axes))}
    parts: list[Any] = [part for table, axes in operands for part in (table, [*(place[n] for n in axes), len(place)])]
    return np.asarray(np.einsum(*parts, [*(place[n] for n in keep), len(place)]))


def _floor(table: Floats) -> Floats:
    """The power of two below the least positive number of each row: (rows or 1,)."""
    least = np.where(table > 0, table, np.inf).min(axis=tuple(range(table.ndim - 1)))
    return np.where(np.isfinite(least), np.floor(np.log2(np.where(np.isfinite(least), least, 1.0))), 0.0)

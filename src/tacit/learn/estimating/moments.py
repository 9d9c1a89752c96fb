"""Moments of numbers, by component: what counts are for tables, they are for densities.

Means and squares around them are merged, and sums are taken around a mean, so that no digits cancel (Chan, Golub and
LeVeque, 1983). The axes are (components, columns, rows).
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, divide
from tacit.model.densities.normal import blocks

MAX_CANCELLED = 2.0**10  # how many times as large as their difference two sums may be: three digits are lost then
ROWS_PER_BLOCK = 2**16  # of rows whose component is known


@dataclass(frozen=True, eq=False)
class Moments:
    """The weight of each component (components,), its mean (components, d), and the squares around it (.., d, d).

    `log_base` is what the values add to their log-likelihood whatever the numbers of their density are.
    """

    weight: Floats
    mean: Floats
    scatter: Floats
    log_base: float = 0.0

    @classmethod
    def none(cls, components: int, columns: int) -> Moments:
        """The moments of no rows."""
        shape = (components, columns)
        return cls(np.zeros(components), np.zeros(shape), np.zeros((*shape, columns)))

    @classmethod
    def alike(cls, weight: Floats, mean: Floats, cov: Floats) -> Moments:
        """Those of rows with a given mean (.., d) and covariance (.., d, d)."""
        return cls(weight, np.broadcast_to(mean, (len(weight), mean.shape[-1])), weight[:, None, None] * cov)

    @property
    def cov(self) -> Floats:
        """The mean square around the mean (components, d, d); 0 where there is no weight."""
        return divide(self.scatter, self.weight[:, None, None], otherwise=0.0)

    def __add__(self, other: Moments) -> Moments:
        weight = self.weight + other.weight
        share = divide(other.weight, weight, otherwise=0.0)
        off = other.mean - self.mean
        between = (self.weight * share)[:, None, None] * _outer(off)
        return Moments(
            weight,
            self.mean + share[:, None] * off,
            self.scatter + other.scatter + between,
            self.log_base + other.log_base,
        )

    def scaled(self, factor: float) -> Moments:
        """The moments of rows that count so many times."""
        return Moments(self.weight * factor, self.mean, self.scatter * factor, self.log_base * factor)

    def where(self, counted: NDArray[np.bool_]) -> Moments:
        """The moments of some components (components,), nothing of the others."""
        weight, scatter = np.where(counted, self.weight, 0.0), np.where(counted[:, None, None], self.scatter, 0.0)
        return Moments(weight, np.where(counted[:, None], self.mean, 0.0), scatter, self.log_base)


def weighted(values: Floats, weights: Floats) -> Moments:
    """The moments of values (d, rows) with a weight in each component (components, rows).

    The values may differ between components: (components, d, rows).
    """
    columns = values.shape[-2]
    if values.ndim == 2 and columns == 1:
        return _of_column(values, weights)
    parts = [_of_block(values[..., b], weights[:, b]) for b in blocks(weights.shape[1], len(weights) * columns)]
    return reduce(operator.add, parts) if parts else Moments.none(len(weights), columns)


def _of_column(values: Floats, weights: Floats) -> Moments:
    """The moments of one column (1, rows), from sums around one centre: a matrix product makes them all.

    Digits cancel where the numbers of a component lie close together and far from the centre: it is done again.
    """
    if not values.size:
        return Moments.none(len(weights), 1)
    centre = values.mean()
    off = values[0] - centre
    weight, first, second = (weights @ np.stack([np.ones_like(off), off, off * off], axis=1)).T
    mean = divide(first, weight, otherwise=0.0)
    scatter = second - first * mean
    moments = Moments(weight, (mean + centre)[:, None], scatter[:, None, None])
    if (close := np.flatnonzero(second > MAX_CANCELLED * scatter)).size:
        again = _of_block(values, weights[close])
        moments.mean[close], moments.scatter[close] = again.mean, again.scatter
    return moments


def _of_block(values: Floats, weights: Floats) -> Moments:
    weight = weights.sum(axis=1)
    per_row = divide(np.ones_like(weight), weight, otherwise=0.0)
    centre = values.mean(axis=-1, keepdims=True)
    centred = values - centre
    if values.ndim == 2:
        mean = weights @ centred.T * per_row[:, None]
    else:
        mean = np.einsum("cr,cdr->cd", weights, centred) * per_row[:, None]
    off = centred - mean[:, :, None]
    heavy = weights[:, None] * off
    left = heavy.sum(axis=-1) * per_row[:, None]  # by how much the mean is off through rounding
    if values.shape[-2] == 1:
        scatter = np.einsum("cdr,cdr->cd", heavy, off)[:, :, None]
    else:
        scatter = heavy @ np.swapaxes(off, 1, 2)
    scatter -= weight[:, None, None] * _outer(left)
    return Moments(weight, mean + left + centre[..., 0], (scatter + np.swapaxes(scatter, 1, 2)) / 2)


def grouped(values: Floats, components: NDArray[np.integer[Any]], weights: Floats, count: int) -> Moments:
    """The moments of values (d, rows), each in one of so many components (rows,)."""
    total = Moments.none(count, len(values))
    for start in range(0, len(components), ROWS_PER_BLOCK):
        block = slice(start, start + ROWS_PER_BLOCK)
        total += _of_group(values[:, block], components[block], weights[block], count)
    return total


def by_column(values: Floats, weights: Floats) -> Moments:
    """The moments of each column of values (rows, columns) by itself, as a component; NaN counts for nothing."""
    moments = []
    for column in values.T:
        known = ~np.isnan(column)
        own = column[None, known]
        moments.append(grouped(own, np.zeros(own.shape[1], dtype=np.int64), weights[known], 1))
    weight, mean = np.concatenate([m.weight for m in moments]), np.concatenate([m.mean for m in moments])
    return Moments(weight, mean, np.concatenate([m.scatter for m in moments]))


def _of_group(values: Floats, components: NDArray[np.integer[Any]], weights: Floats, count: int) -> Moments:
    def sums(terms: Floats) -> Floats:
        return np.asarray(np.bincount(components, terms, count), dtype=np.float64)

    weight = sums(weights)
    per_row = divide(np.ones(count), weight, otherwise=0.0)
    centre = values.mean(axis=1, keepdims=True)
    centred = values - centre
    mean = np.stack([sums(weights * own) for own in centred]) * per_row
    off = centred - mean[:, components]
    heavy = weights * off
    left = np.stack([sums(own) for own in heavy]) * per_row
    scatter = np.empty((count, len(values), len(values)))
    for i in range(len(values)):
        for j in range(i + 1):
            scatter[:, i, j] = scatter[:, j, i] = sums(heavy[i] * off[j]) - weight * left[i] * left[j]
    return Moments(weight, (mean + left + centre).T, scatter)


def _outer(vectors: Floats) -> Floats:
    """(components, d) as (components, d, d)."""
    return vectors[:, :, None] * vectors[:, None, :]

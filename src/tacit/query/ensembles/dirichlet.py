"""Dirichlet distributions of the rows of a table: what counts say about it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.base.floats import Floats, divide

Key = tuple[str, str]
SMALLEST = float(np.finfo(np.float64).smallest_normal)  # of a drawn entry: an exact 0 would make evidence impossible


@dataclass(frozen=True, eq=False)
class Dirichlet:
    """A table, and those tied to it. The free entries of a row share in what the known ones leave of 1.

    `alpha` are the parameters of the shares, 0 for known entries, and `known` these entries, 0 for free ones.
    """

    keys: tuple[Key, ...]
    alpha: Floats
    known: Floats

    @cached_property
    def total(self) -> Floats:
        """The sum of the parameters of each row: (rows..., 1); 0 of a row without free entries."""
        return np.asarray(self.alpha.sum(axis=-1, keepdims=True))

    @cached_property
    def left(self) -> Floats:
        """What free entries share in: (rows..., 1)."""
        return np.asarray(1 - self.known.sum(axis=-1, keepdims=True))

    @property
    def mean(self) -> Floats:
        """The expected table."""
        return self.known + self.left * divide(self.alpha, self.total, otherwise=0.0)

    def draws(self, n: int, rng: np.random.Generator) -> Floats:
        """Independent tables: (n, entries of the table...).

        Shares are those of gamma variates. With a small parameter a these are often beneath the range of floats, so
        their logarithms are drawn: that of one with a + 1, and that of a uniform number, divided by a.
        """
        shape, free = (n, *self.alpha.shape), self.alpha > 0
        alpha = np.where(free, self.alpha, 1.0)
        logs = np.log(rng.gamma(alpha + 1, size=shape)) + np.log1p(-rng.random(shape)) / alpha
        logs = np.where(free, logs, -np.inf)
        largest = logs.max(axis=-1, keepdims=True)
        sizes = np.exp(logs - np.where(np.isfinite(largest), largest, 0.0))
        shares = np.maximum(divide(sizes, sizes.sum(axis=-1, keepdims=True), otherwise=0.0), SMALLEST)
        return np.where(free, self.left * shares, self.known)

    def variances(self, slopes: Floats) -> Floats:
        """The variance (..., ) of linear functions of the table, given their slopes (..., entries of the table...)."""
        mean = divide(self.alpha, self.total, otherwise=0.0)
        centred = slopes - (mean * slopes).sum(axis=-1, keepdims=True)
        by_row = (mean * centred**2).sum(axis=-1) * (self.left**2 / (self.total + 1))[..., 0]
        return np.asarray(by_row.reshape(*by_row.shape[: slopes.ndim - self.alpha.ndim], -1).sum(axis=-1))

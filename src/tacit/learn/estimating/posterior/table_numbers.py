"""The posterior distributions of tables and of noisy-ors, given counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tacit.base.floats import Floats, divide
from tacit.learn.estimating.units import Causes, FreeTable
from tacit.model.rules import NoisyOr
from tacit.query.ensembles.dirichlet import Dirichlet, Key

LEAST = 1.0  # pseudo-counts of a row of a table that has none


def table_posterior(unit: FreeTable, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Dirichlet:
    """The posterior of a table: its counts and pseudo-counts.

    A row without pseudo-counts gets `LEAST` in all. Its free entries share them evenly, or, where the row was never
    seen, as they share what is left of it `now`.
    """
    seen, now = unit.counted(counts, negligible), now.reshape(unit.given.shape)
    free = unit.free.sum(axis=-1, keepdims=True)
    even = divide(unit.free.astype(np.float64), free, otherwise=0.0)
    kept = np.where(unit.free, now, 0.0)
    as_now = divide(kept, kept.sum(axis=-1, keepdims=True), otherwise=0.0)
    least = LEAST * np.where(seen.sum(axis=-1, keepdims=True) > 0, even, as_now)
    without = unit.prior.sum(axis=-1, keepdims=True) == 0
    return Dirichlet(unit.keys, seen + np.where(without, least, unit.prior), np.where(unit.free, 0.0, now))


@dataclass(frozen=True, eq=False)
class CausesPosterior:
    """The posterior of a noisy-or: a beta distribution for each of its free numbers."""

    unit: Causes
    now: Floats
    came: Floats
    failed: Floats

    @classmethod
    def of(cls, unit: Causes, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> CausesPosterior:
        """Counts and pseudo-counts; a number without the latter gets `LEAST` in all."""
        came, failed = unit.counted(counts, now, negligible)
        even = np.where(came + failed > 0, 0.5, now)
        least = LEAST * np.stack([even, 1 - even])
        prior = np.where(unit.prior.sum(axis=0) == 0, least, unit.prior)
        return cls(unit, now, came + prior[0], failed + prior[1])

    @property
    def mean(self) -> NoisyOr:
        """The noisy-or with the expected numbers."""
        return self.unit.filled(np.where(self.unit.free, divide(self.came, self.came + self.failed), self.now))

    def draws(self, n: int, rng: np.random.Generator) -> list[NoisyOr]:
        """Independent noisy-ors."""
        free = self.unit.free
        numbers = np.repeat(self.now[None], n, axis=0)
        pairs = np.stack([self.came[free], self.failed[free]], axis=-1)
        numbers[:, free] = Dirichlet((), pairs, np.zeros(pairs.shape)).draws(n, rng)[..., 0]
        return [self.unit.filled(own) for own in numbers]

"""Units of estimation, a table with those tied to it, or a noisy-or: their numbers, and the best ones for counts.

A row of a table has known entries, which stay, and free ones, which share the rest of 1 in proportion to their counts.
The numbers of a noisy-or are free probabilities, each with counts of its own. All numbers of a unit are one vector.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, divide
from tacit.model.rules import NoisyOr

Key = tuple[str, str]
Mask = NDArray[np.bool_]
WHOLE: Key = ("", "tables")  # of a group

# Where a pseudo-count is beneath the precision of its total, a free number is rounded to 0 or 1. Its logarithm is that
# of these numbers then, since none of a free number is infinite.
ALMOST_0, ALMOST_1 = float(np.finfo(np.float64).smallest_subnormal), 2.0**-54


def log_sum(counts: Floats, probabilities: Floats) -> Floats:
    """The sums of counts times logarithms of probabilities (sets, ...); a count of 0 adds nothing."""
    logs = np.log(probabilities, out=np.full_like(probabilities, -np.inf), where=probabilities > 0)
    products = np.multiply(counts, logs, out=np.zeros_like(logs), where=counts > 0)
    return np.asarray(products.reshape(len(products), -1).sum(axis=-1))


@dataclass(frozen=True, eq=False)
class FreeTable:
    """A table with free entries, and the tables that are tied to it."""

    keys: tuple[Key, ...]
    given: Floats  # NaN where there is no number
    free: Mask
    prior: Floats  # added to the counts of free entries, 0 for others

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.keys]

    @property
    def size(self) -> int:
        return self.given.size

    @property
    def count(self) -> int:
        """How many numbers can be chosen: of the free entries of a row, all but one."""
        return int(np.maximum(self.free.sum(axis=-1) - 1, 0).sum())

    @property
    def random(self) -> bool:
        """Whether some numbers have no start of their own."""
        return bool(np.isnan(self.given).any())

    def start(self, rng: np.random.Generator) -> Floats:
        """The given numbers, and random ones for those missing."""
        return self._completed(rng.gamma(1.0, size=self.given.shape)).ravel()

    def maximised(self, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Floats:
        """The most probable numbers; a row with a negligible count stays, or is uniform where it was never set.

        Counts and numbers are those of several sets: their first axis.
        """
        totals = self.counted(counts, negligible) + self.prior
        total = totals.sum(axis=-1, keepdims=True)
        left = 1 - np.where(self.free, 0.0, self.given).sum(axis=-1, keepdims=True)
        numbers = np.where(self.free, left * divide(totals, total, otherwise=0.0), self.given)
        if not (total > 0).all():
            unset = np.isnan(self.given).any(axis=-1, keepdims=True)
            unseen = np.where(unset, self._completed(np.ones(self.given.shape)), now.reshape(-1, *self.given.shape))
            numbers = np.where(total > 0, numbers, unseen)
        return np.broadcast_to(numbers, (len(now), *self.given.shape)).reshape(now.shape)

    def counted(self, counts: Mapping[Key, Floats], negligible: float) -> Floats:
        """The counts of free entries, of all tables together; a negligible row has none."""
        seen = np.zeros(self.given.shape)
        for key in self.keys:
            if key in counts:
                seen = seen + np.where(self.free, counts[key], 0.0)
        few = seen.sum(axis=-1, keepdims=True) < negligible
        return np.where(few, 0.0, seen)

    def log_prior(self, numbers: Floats) -> Floats:
        """The logarithm of the prior, up to a constant, for each of several sets of numbers."""
        if not self.prior.any():
            return np.zeros(len(numbers))
        return log_sum(self.prior.ravel(), np.maximum(numbers, ALMOST_0))

    def _completed(self, weights: Floats) -> Floats:
        """The given numbers; those that are missing share what is left of their row by some weights."""
        missing = np.isnan(self.given)
        known = np.where(missing, 0.0, self.given)
        shares = np.where(missing, weights, 0.0)
        left = 1 - known.sum(axis=-1, keepdims=True)
        return np.asarray(known + left * divide(shares, shares.sum(axis=-1, keepdims=True), otherwise=0.0))


@dataclass(frozen=True, eq=False)
class TableGroup:
    """Tables with as many states each, one below the other: for all of them, the M-step is that of one table."""

    tables: tuple[FreeTable, ...]
    places: NDArray[np.intp]  # of their numbers among all

    @cached_property
    def whole(self) -> FreeTable:
        """All tables as one (rows, states)."""
        given, free, prior = (
            np.concatenate([getattr(table, what).reshape(-1, table.given.shape[-1]) for table in self.tables])
            for what in ("given", "free", "prior")
        )
        return FreeTable((WHOLE,), given, free, prior)

    def maximised(self, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Floats:
        """The most probable numbers of several sets (sets, numbers), given the counts by table."""
        seen = [self._counted(table, counts, len(now)) for table in self.tables]
        return self.whole.maximised({WHOLE: np.concatenate(seen, axis=1)}, now, negligible)

    @staticmethod
    def _counted(table: FreeTable, counts: Mapping[Key, Floats], sets: int) -> Floats:
        found = [counts[key] for key in table.keys if key in counts] or [np.zeros((sets, *table.given.shape))]
        return sum(found[1:], start=found[0]).reshape(sets, -1, table.given.shape[-1])


@dataclass(frozen=True, eq=False)
class Causes:
    """A noisy-or: the leak, and for each state of each parent the probability that it brings about the effect."""

    node: str
    given: NoisyOr
    prior: Floats  # (2, numbers): added to how often each did, and did not, bring about the effect
    random = False

    @property
    def names(self) -> list[str]:
        return [self.node]

    @property
    def size(self) -> int:
        return len(causes_of(self.given))

    @property
    def count(self) -> int:
        return int(self.free.sum())

    @cached_property
    def free(self) -> Mask:
        """The numbers to estimate: all but those given as exact 0s and 1s."""
        numbers = causes_of(self.given)
        return (numbers > 0) & (numbers < 1)

    def start(self, rng: np.random.Generator) -> Floats:
        return causes_of(self.given)

    def filled(self, numbers: Floats) -> NoisyOr:
        causes = _split(self.given, numbers)
        named = causes if self.given.names is None else dict(zip(self.given.names, causes, strict=True))
        return NoisyOr(named, float(numbers[0]), learn=True)

    def maximised(self, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Floats:
        """The numbers that the counts of effects, before and after each cause, make most probable."""
        came, failed = self.counted(counts, now, negligible) + self.prior
        total = came + failed
        return np.where(self.free & (total > 0), divide(came, total, otherwise=0.0), now)

    def counted(self, counts: Mapping[Key, Floats], now: Floats, negligible: float) -> Floats:
        """How often each number brought about the effect, and did not: (2, numbers)."""
        known = [counts.get((self.node, part), np.zeros(table.shape)) for part, table in self.given.parts().items()]
        seen = np.concatenate(self._outcomes(known, now), axis=1)
        return np.where(seen.sum(axis=0) < negligible, 0.0, seen)

    def _outcomes(self, counts: list[Floats], now: Floats) -> list[Floats]:
        """How often the leak, and each cause, brought about the effect and did not: (2, numbers) for each of them."""
        leak, causes = now[0], _split(self.given, now)
        if not causes:
            return [counts[0].reshape(2, 1)]
        # the first table has the leak in it: both may have brought the effect about
        came, not_yet = counts[0].T
        whole = leak + (1 - leak) * causes[0]
        by_leak = divide(np.full_like(whole, leak), whole, otherwise=0.0)
        by_cause = divide(causes[0], whole, otherwise=0.0)
        leaked = np.array([[(came * by_leak).sum()], [(came * (1 - by_leak)).sum() + not_yet.sum()]])
        first = np.stack([came * by_cause, came * (1 - by_cause) + not_yet])
        # the others: of the cases in which nothing before brought it about, those in which this one did, and did not
        return [leaked, first, *(table[:, 1].T for table in counts[1:])]

    def log_prior(self, numbers: Floats) -> float:
        came, failed = self.prior[:, self.free]
        numbers = numbers[None, self.free]
        logs = log_sum(came, np.maximum(numbers, ALMOST_0)) + log_sum(failed, np.maximum(1 - numbers, ALMOST_1))
        return float(logs[0])


def causes_of(cpt: NoisyOr) -> Floats:
    """The numbers of a noisy-or: the leak first."""
    return np.concatenate([[cpt.leak], *cpt.causes])


def _split(cpt: NoisyOr, numbers: Floats) -> list[Floats]:
    return np.split(numbers[1:], np.cumsum([len(cause) for cause in cpt.causes])[:-1]) if cpt.causes else []

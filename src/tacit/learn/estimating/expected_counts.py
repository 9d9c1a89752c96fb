"""What the E-step of EM gives the M-step: counts of table entries, moments of densities, and the log-likelihood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.engines.draws import Draws
from tacit.learn.estimating.moments import Moments
from tacit.learn.estimating.units import Key
from tacit.model.densities import AnyDensity

Tables = Mapping[Key, Floats]
Densities = Mapping[str, AnyDensity]


class Summable(Protocol):
    """What can be added to its like."""

    def __add__(self, other: Any, /) -> Any: ...


K = TypeVar("K")
N = TypeVar("N", bound=Summable)


@dataclass(frozen=True)
class Numbers:
    """Several sets of numbers: tables with an axis for the sets, and the densities of each."""

    draws: Draws
    densities: Sequence[Densities]

    def __len__(self) -> int:
        return len(self.draws)


@dataclass(frozen=True)
class ExpectedCounts:
    """What rows count for with several sets of numbers, which are the first axis.

    Counts by node and part, the log-likelihood (sets,), and the moments of each set by node. Of the sets that make a
    row impossible, there is an error, and the rest means nothing.
    """

    tables: Tables
    log_likelihood: Floats
    moments: Sequence[Mapping[str, Moments]]
    impossible: Mapping[int, EvidenceError] = field(default_factory=dict)

    @classmethod
    def none(cls, sets: int) -> ExpectedCounts:
        """The counts of no rows."""
        return cls({}, np.zeros(sets), [{}] * sets)

    @classmethod
    def stacked(cls, sets: Sequence[ExpectedCounts]) -> ExpectedCounts:
        """Those of one set of numbers after the other; what is missing where a row is impossible is 0."""
        nothing = {key: np.zeros_like(table) for own in sets for key, table in own.tables.items()}
        tables = {key: np.concatenate([own.tables.get(key, zero) for own in sets]) for key, zero in nothing.items()}
        impossible = {i: error for i, own in enumerate(sets) for error in own.impossible.values()}
        logs = np.concatenate([own.log_likelihood for own in sets])
        return cls(tables, logs, [moments for own in sets for moments in own.moments], impossible)

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        total = self.log_likelihood + other.log_likelihood
        moments = [added(a, b) for a, b in zip(self.moments, other.moments, strict=True)]
        return ExpectedCounts(added(self.tables, other.tables), total, moments, {**other.impossible, **self.impossible})

    def tables_of(self, i: int, node: str) -> dict[Key, Floats]:
        """The counts of one node with one set of numbers."""
        return {key: table[i] for key, table in self.tables.items() if key[0] == node}

    def take(self, sets: Sequence[int]) -> ExpectedCounts:
        """Those of some sets of numbers."""
        tables = {key: table[sets] for key, table in self.tables.items()}
        impossible = {i: self.impossible[own] for i, own in enumerate(sets) if own in self.impossible}
        return ExpectedCounts(tables, self.log_likelihood[sets], [self.moments[i] for i in sets], impossible)


def added(first: Mapping[K, N], second: Mapping[K, N]) -> dict[K, N]:
    """The values of two mappings, summed where both have them."""
    return {**first, **{key: first[key] + value if key in first else value for key, value in second.items()}}

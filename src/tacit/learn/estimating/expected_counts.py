"""What the E-step of EM gives the M-step: counts of table entries, moments of densities, and the log-likelihood."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.learn.estimating.moments import Moments
from tacit.learn.estimating.units import Key

Tables = Mapping[Key, Floats]


class Summable(Protocol):
    """What can be added to its like."""

    def __add__(self, other: Any, /) -> Any: ...


K = TypeVar("K")
N = TypeVar("N", bound=Summable)


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts by node and part, moments by node, and the log-likelihood; an error about an impossible row, if any."""

    tables: Tables = field(default_factory=dict)
    log_likelihood: float = 0.0
    impossible: EvidenceError | None = None
    moments: Mapping[str, Moments] = field(default_factory=dict)

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        total = self.log_likelihood + other.log_likelihood
        moments = added(self.moments, other.moments)
        return ExpectedCounts(added(self.tables, other.tables), total, self.impossible or other.impossible, moments)


def added(first: Mapping[K, N], second: Mapping[K, N]) -> dict[K, N]:
    """The values of two mappings, summed where both have them."""
    return {**first, **{key: first[key] + value if key in first else value for key, value in second.items()}}

"""What rows of evidence say about a query, and the warning where they are impossible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, flat
from tacit.base.warnings import warn
from tacit.engines.results import normalised
from tacit.query.answers.selection import Selected


class ImpossibleEvidenceWarning(UserWarning):
    """Some rows of evidence have probability zero: their joint is 0 and their posterior NaN."""


class ObservedQueryWarning(UserWarning):
    """All rows of a frame observe the query itself: their posterior is what they say, and predicts nothing."""


@dataclass(frozen=True, eq=False)
class Answer:
    """What rows of evidence say about a query. Made by `TAC.ask`.

    The joint is `mantissa` (rows, states) times 2**`exponent` (rows,); `decided` tells of the testing nodes. Of several
    query variables, arrays are (rows, states of the first, states of the second, ...). Where numbers were observed, the
    joint is a density: that times exp(`scale`) (rows,).
    """

    mantissa: Floats
    exponent: NDArray[np.int64]
    decided: dict[str, Selected]
    scale: Floats | float = 0.0

    @property
    def posterior(self) -> Floats:
        """P*(q) for every state of the query: (rows, states); NaN where the evidence has probability zero."""
        posterior = normalised(self.mantissa)
        warn_impossible(self._total == 0, "their posterior is NaN")
        return posterior

    @property
    def joint(self) -> Floats:
        """p*(q) for every state of the query: (rows, states), in float64, which has the range that it needs."""
        exponent = self.exponent.reshape(-1, *[1] * (self.mantissa.ndim - 1))
        joint = np.ldexp(self.mantissa.astype(np.float64), exponent)
        if isinstance(self.scale, float):
            return joint
        halves = np.exp(0.5 * self.scale).reshape(exponent.shape)  # one factor alone might leave the range of floats
        return np.asarray(joint * halves * halves)

    @property
    def _total(self) -> Floats:
        total: Floats = flat(self.mantissa).sum(axis=1)
        return total

    @property
    def log_evidence(self) -> Floats:
        """The logarithm of p*(evidence) for every row; minus infinity where it is impossible."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._total) + self.exponent * np.log(2.0) + self.scale)

    @property
    def selected(self) -> dict[str, Selected]:
        """For every testing node that the query needs, how each row decided it; none, unless that was asked for."""
        undecided = [np.isnan(flat(how.posterior)[:, 0]) for how in self.decided.values()]
        if undecided:
            warn_impossible(np.logical_or.reduce(undecided), "the posterior of some testing node's parents is NaN")
        return self.decided


_QUIET: ContextVar[bool] = ContextVar("quiet", default=False)


@contextmanager
def quietly() -> Iterator[None]:
    """No warning of impossible evidence while this lasts, in this thread: for tables, in which empty cells tell.

    The filters of `warnings` belong to the whole process, where other threads may be at work.
    """
    before = _QUIET.set(True)
    try:
        yield
    finally:
        _QUIET.reset(before)


def warn_impossible(rows: NDArray[np.bool_], what: str) -> None:
    """One warning that counts the rows of impossible evidence, placed where the user called."""
    if rows.any() and not _QUIET.get():
        count = f"{int(rows.sum())} of {len(rows)} rows"
        why = "a 0 in some table rules it out; tables that are estimated with prior=1.0 have none"
        warn(f"the evidence of {count} has probability 0; {what} ({why})", ImpossibleEvidenceWarning)

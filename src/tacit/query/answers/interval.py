"""Intervals that certainly hold an exact answer, and an estimate inside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from tacit.base.floats import Floats
from tacit.base.warnings import warn
from tacit.model.elements.variable import Variable
from tacit.query.answers.ranges import P_co, Ranges


class WideIntervalWarning(UserWarning):
    """The interval of some rows is wider than was asked for: their estimate may be as far off as that."""


class Interval(Ranges[P_co]):
    """Ends between which posteriors certainly are, rounding included, and an estimate that lies between them.

    `low`, `high` and `estimate` are (rows, states), NaN in rows whose evidence is found to be impossible. Of a query
    that is exact, the ends are apart by rounding only. It prints as a table and converts to frames; with `labels=True`,
    its numbers have the names of states and rows.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> sure = tac.interval({"A": 0.8, "C": ["lo", "hi"]})
    >>> sure
    Estimates, and the intervals that hold the exact posterior
    B                  true                 false
    0  0.469 [0.469, 0.469]  0.531 [0.531, 0.531]
    1  0.676 [0.676, 0.676]  0.324 [0.324, 0.324]
    >>> bool((sure.width < 1e-12).all())
    True
    """

    middle, kind = "estimate", "interval"

    def __init__(
        self, low: Floats, high: Floats, estimate: Floats, variables: Sequence[Variable], index: Any = None
    ) -> None:
        super().__init__({"low": low, "high": high, "estimate": estimate}, variables, index)

    @property
    def estimate(self) -> P_co:
        """What the posterior is taken to be."""
        return cast(P_co, self._arrays["estimate"])

    @property
    def width(self) -> Floats:
        """How far the ends of each row are apart, for the state where that is most: (rows,)."""
        apart = self._labelled["high"].array - self._labelled["low"].array
        return np.asarray(apart.reshape(len(apart), -1).max(axis=1, initial=0.0))

    def _title(self) -> str:
        return "Estimates, and the intervals that hold the exact posterior"


@dataclass(frozen=True, eq=False)
class LogInterval:
    """Ends between which the logarithm of the probability of each row of evidence certainly is: (rows,) each.

    `estimate` lies between `low` and `high`, which are minus infinity where the evidence is impossible, and also where
    nothing better is known.
    """

    low: Floats
    high: Floats
    estimate: Floats

    @property
    def width(self) -> Floats:
        """How far the ends are apart: (rows,)."""
        return np.where(self.low == self.high, 0.0, self.high - np.where(self.low == self.high, 0.0, self.low))


def exact_interval(
    posterior: Floats, roundings: int, variables: Sequence[Variable], index: Any = None
) -> Interval[Floats]:
    """The interval of posteriors that come out of a program with so many roundings on the way to each number."""
    card = int(np.prod(posterior.shape[1:]))
    slack = (2 * roundings + card + 2) * float(np.finfo(posterior.dtype).eps)
    exact = posterior.astype(np.float64)
    low, high = np.maximum(exact * (1 - slack), 0.0), np.minimum(exact * (1 + slack), 1.0)
    return Interval(low, high, exact, variables, index)


def exact_log_interval(log_evidence: Floats, roundings: int, dtype: str) -> LogInterval:
    """The interval of logarithms that come out of a program with so many roundings on the way to each number."""
    exact = np.asarray(log_evidence, dtype=np.float64)
    slack = (roundings + 2) * float(np.finfo(dtype).eps) + 4 * np.spacing(np.where(np.isfinite(exact), exact, 0.0))
    return LogInterval(exact - np.abs(slack), exact + np.abs(slack), exact)


def warn_wide(widths: Floats, within: float, call: str) -> None:
    """One warning that counts the rows whose interval is wider than was asked for."""
    if wide := int((widths > within).sum()):
        how = f"the widest has {float(np.nanmax(widths)):.2g}; {call} tells them"
        warn(f"the intervals of {wide:,} of {len(widths):,} rows are wider than within={within:g}, {how}",
             WideIntervalWarning)  # fmt: skip

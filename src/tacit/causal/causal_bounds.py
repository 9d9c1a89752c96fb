"""What the probabilities of causation can be, as it is answered and printed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tacit.base.floats import Floats
from tacit.base.grid import GAP, Grid, ends

MAX_COLUMNS = 6  # rows that are printed
KINDS = ("necessity", "sufficiency", "both")


@dataclass(frozen=True)
class Interval:
    """What a probability can be, row by row: both (rows,); NaN where the rows are impossible."""

    low: Floats
    high: Floats


@dataclass(frozen=True, repr=False)
class CausalBounds:
    """What the probabilities of causation can be.

    `exact` says whether they are the bounds themselves. If not, they are inner bounds: each end is attained by some
    mechanisms, and others may go further.
    """

    necessity: Interval
    sufficiency: Interval
    both: Interval
    exact: bool

    @staticmethod
    def of(intervals: Iterable[Interval], exact: bool) -> CausalBounds:
        """Bounds of all three."""
        of_necessity, of_sufficiency, of_both = intervals
        return CausalBounds(of_necessity, of_sufficiency, of_both, exact)

    def __repr__(self) -> str:
        kinds = {"necessity": self.necessity, "sufficiency": self.sufficiency, "both": self.both}
        rows = ends(len(self.both.low), MAX_COLUMNS)
        cells = [
            (kind, *(GAP if i is None else f"{own.low[i]:.3f} to {own.high[i]:.3f}" for i in rows))
            for kind, own in kinds.items()
        ]
        title = "What the probabilities of causation can be"
        note = "" if self.exact else "Inner bounds: some mechanisms attain each end, and others may go further."
        return str(Grid([("", *(GAP if i is None else str(i) for i in rows))], cells, title=title, note=note))

"""What intervals cost, and what an exact answer would: the summary of a query that is too wide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tacit.base.grid import GAP, Grid, ends
from tacit.base.text import large
from tacit.bounds.windows import Window

MAX_LINES = 20  # of windows that are printed


@dataclass(frozen=True)
class WindowCost:
    """A window in numbers: how many variables are inside, what its boundary is, and the states of its largest table."""

    inside: int
    boundary: tuple[str, ...]
    states: int

    @classmethod
    def of(cls, window: Window, cards: Mapping[str, int]) -> WindowCost:
        names = dict.fromkeys((window.query, *window.boundary))
        return cls(len(window.interior), window.boundary, math.prod(cards[name] for name in names))


@dataclass(frozen=True)
class BoundedCost:
    """What was left out of a query that is too wide for an exact answer, where, and what that would cost.

    Attributes
    ----------
    windows
        The windows, by the variables whose posteriors they bound. What is beyond the boundary was left out.
    variables
        How many variables an exact answer would have to take into account.
    refusal
        Why there is no exact answer, with its cost.
    """

    windows: Mapping[str, WindowCost]
    variables: int
    refusal: str

    def _grid(self) -> Grid:
        shown = ends(len(self.windows), MAX_LINES)
        own = list(self.windows.items())
        body = [(GAP,) * 4 if place is None else self._line(*own[place]) for place in shown]
        note = f"of {self.variables:,} variables; an exact answer: {self.refusal}"
        return Grid([("variable", "inside", "boundary", "states")], body, title="Windows", note=note)

    def _line(self, name: str, window: WindowCost) -> tuple[str, ...]:
        return name, f"{window.inside:,}", f"{len(window.boundary):,}", large(window.states)

    def __repr__(self) -> str:
        return str(self._grid())

    def _repr_html_(self) -> str:
        return self._grid().html()

"""Bound propagation: what is known of the variables at the boundary of a window sharpens what the window says.

Of a variable v at the boundary, P(x) is the sum over its states of P(v) P(x | v). The window bounds P(x | v), and v's
own bounds leave a box of distributions; the extreme in it is found by sorting (Leisink and Kappen 2003; Mooij and
Kappen 2008 have many windows that sharpen one another).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from tacit.base.floats import Floats
from tacit.bounds.posterior_bounds import EPSILON, conditionals
from tacit.bounds.window_table import WindowTable


class Box(NamedTuple):
    """The ends between which the posterior of each state is: (states,) each."""

    low: Floats
    high: Floats

    @property
    def width(self) -> float:
        return float((self.high - self.low).max(initial=0.0))

    def within(self, other: Box | None) -> Box:
        """What is left of this box inside another one; what rounding leaves empty stays as it is.

        None has nothing inside: a box of NaN is left.
        """
        if other is None:
            return Box(np.full_like(self.low, np.nan), np.full_like(self.high, np.nan))
        low, high = np.maximum(self.low, other.low), np.minimum(self.high, other.high)
        kept = low <= high
        return Box(np.where(kept, low, self.low), np.where(kept, high, self.high)).tightened()

    def tightened(self) -> Box:
        """The box without what no distribution in it has: the states sum to 1."""
        slack = (len(self.low) + 2) * EPSILON
        low = np.maximum(self.low, (1 - (self.high.sum() - self.high)) - slack)
        high = np.minimum(self.high, (1 - (self.low.sum() - self.low)) + slack)
        return Box(low, high) if (low <= high).all() else self


def extreme(box: Box, numbers: Floats) -> Floats:
    """The most that distributions in a box can make of numbers (..., states), as their mean: (...)."""
    order = np.argsort(-numbers, axis=-1)
    room = (box.high - box.low)[order]
    left = np.maximum(1 - box.low.sum() - (np.cumsum(room, axis=-1) - room), 0.0)
    weights = box.low[order] + np.minimum(room, left)
    return np.asarray((weights * np.take_along_axis(numbers, order, axis=-1)).sum(axis=-1))


def sharpened(table: WindowTable, known: Mapping[str, Box]) -> Box | None:
    """The box of the query that a window of one row gives, where some variables have boxes; None if all is impossible.

    The table is one that has the likelihoods of its boundary.
    """
    lows, highs, possible = (array[..., 0] for array in conditionals(table))
    if not possible.any():
        return None
    lows, highs = np.where(possible, lows, np.inf), np.where(possible, highs, -np.inf)
    axes = range(1, lows.ndim)
    box = Box(lows.min(axis=tuple(axes)), highs.max(axis=tuple(axes))).tightened()
    for axis, name in zip(axes, table.window.boundary, strict=True):
        own = known.get(name)
        if own is None:
            continue
        others = tuple(other for other in axes if other != axis)
        least, most = lows.min(axis=others), highs.max(axis=others)  # (states, states of the other variable)
        open_states = np.isfinite(most[0])
        if own.low[~open_states].max(initial=0.0) > 0:
            continue  # rounding: a state that is impossible has no probability
        own = Box(own.low[open_states], own.high[open_states])
        if own.high.sum() < 1 or own.low.sum() > 1:
            continue
        slack = (2 * len(own.low) + 4) * EPSILON
        least, most = least[:, open_states], most[:, open_states]
        low = -extreme(own, -least) - slack * least.max(axis=1)
        high = extreme(own, most) + slack * most.max(axis=1)
        box = box.within(Box(np.maximum(low, 0.0), np.minimum(high, 1.0)))
    return box

"""The choice of a window: it grows from the query by what tells most about it, for what that costs."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.bounds.posterior_bounds import conditionals
from tacit.bounds.row_numbers import RowNumbers
from tacit.bounds.window_table import WindowTable

SMALL_GROWTH = 0.25  # of the logarithm of the boundary's states; what grows less counts as that


@dataclass(frozen=True)
class Budget:
    """What a window may cost, and when to stop before that.

    Attributes
    ----------
    multiply_adds
        Of one row, in each step of the elimination.
    within
        The width of intervals on typical evidence that is narrow enough.
    until
        The time, of `time.monotonic`, at which the search ends.
    """

    multiply_adds: int
    within: float = 0.0
    until: float = math.inf


def chosen(typical: RowNumbers, query: str, budget: Budget) -> WindowTable:
    """A window for a variable, with its table for some typical evidence."""
    table = WindowTable.smallest(typical, query, budget.multiply_adds)
    grow(table, budget)
    return table


def grow(table: WindowTable, budget: Budget) -> None:
    """Let a window grow as far as its budget goes."""
    while time.monotonic() < budget.until:
        name = _next(table, budget)
        if name is None:
            break
        table.absorb(name)


def _next(table: WindowTable, budget: Budget) -> str | None:
    """The variable of the boundary to absorb next; None if there is none to absorb, or no need."""
    window, surroundings = table.window, table.surroundings
    possible_next = [n for n in window.boundary if n not in surroundings.kept_out]
    affordable = [n for n in possible_next if surroundings.cost(window, n) <= budget.multiply_adds]
    before = surroundings.size(window.boundary)
    growth = {name: math.log2(surroundings.growth(window, name) / before) for name in affordable}
    free = [name for name in affordable if growth[name] <= 0]
    if free:
        return min(free, key=growth.__getitem__)
    if not affordable:
        return None
    low, high, possible = conditionals(table)
    if _width(low, high, possible) <= budget.within:
        return None
    influence = dict(zip(window.boundary, _influence(high, possible), strict=True))
    return max(affordable, key=lambda n: (influence[n] / max(growth[n], SMALL_GROWTH), -growth[n]))


def _width(low: Floats, high: Floats, possible: NDArray[np.bool_]) -> float:
    """The mean over rows of the widest interval."""
    axes = tuple(range(1, low.ndim - 1))
    width = np.where(possible, high, -np.inf).max(axis=axes) - np.where(possible, low, np.inf).min(axis=axes)
    return float(np.nan_to_num(width, nan=0.0, neginf=0.0).max(axis=0).mean())


def _influence(share: Floats, possible: NDArray[np.bool_]) -> list[float]:
    """By how much the state of each variable of the boundary can change the posterior, with the others fixed."""
    most, least = np.where(possible, share, -np.inf), np.where(possible, share, np.inf)
    return [
        float(np.maximum(most.max(axis=axis) - least.min(axis=axis), 0.0).max()) for axis in range(1, share.ndim - 1)
    ]

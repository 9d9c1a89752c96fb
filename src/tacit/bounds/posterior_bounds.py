"""The extremes of a posterior over the states of a window's boundary, made safe against rounding."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, divide
from tacit.bounds.row_numbers import Pair
from tacit.bounds.window_table import WindowTable

EPSILON = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).smallest_normal)
LIKELIHOODS = 4  # roundings that likelihoods and mixed tables have behind them


class Bounds(NamedTuple):
    """Numbers between which posteriors certainly are, and an estimate between them: (states, rows) each.

    They are NaN where the evidence of a row is certainly impossible.
    """

    low: Floats
    high: Floats
    estimate: Floats


def conditionals(table: WindowTable) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """What the posterior lies between given each state of the boundary, and which of them are possible.

    Axes: (states, boundary..., rows), and (boundary..., rows). Where a state is impossible, the numbers mean nothing.
    """
    pair = table.table
    total = pair.high.sum(axis=0)
    possible = np.asarray(total > 0)
    card = len(pair.low)
    slack = (2 * (table.roundings + card + LIKELIHOODS) + 2) * EPSILON
    if pair.exact:
        share = divide(pair.low, total, otherwise=0.0)
        low, high = share, share
    else:
        low, high = _between(pair, total)
    low = low * (1 - slack)
    high = np.where(pair.high > 0, np.clip(high * (1 + slack), TINY, 1.0), 0.0)
    return low, high, possible


def _between(pair: Pair, total: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest share of each state if numbers are anywhere between two."""
    others_high = np.stack([np.delete(pair.high, i, axis=0).sum(axis=0) for i in range(len(pair.high))])
    others_low = np.stack([np.delete(pair.low, i, axis=0).sum(axis=0) for i in range(len(pair.low))])
    low = divide(pair.low, pair.low + others_high, otherwise=0.0)
    low = np.where((others_high == 0) & (total > 0), 1.0, low)  # the only one that is possible at all
    high = divide(pair.high, pair.high + others_low, otherwise=0.0)
    return low, high


def bounds_of(table: WindowTable, rows: int) -> Bounds:
    """The bounds of the query's posterior that a window gives."""
    table = table.weighed()
    low, high, possible = conditionals(table)
    axes = tuple(range(1, low.ndim - 1))
    shape = (len(low), rows)
    lost = np.broadcast_to(table.lost, rows)
    impossible = np.broadcast_to(~possible.any(axis=tuple(range(possible.ndim - 1))), rows) & ~lost
    least = np.broadcast_to(np.where(possible, low, np.inf).min(axis=axes), shape)
    most = np.broadcast_to(np.where(possible, high, -np.inf).max(axis=axes), shape)
    least, most = np.where(lost | impossible, 0.0, least), np.where(lost | impossible, 1.0, most)
    middle = np.broadcast_to((table.table.low + table.table.high).sum(axis=axes), shape)
    estimate = inside(divide(middle, middle.sum(axis=0), otherwise=1 / len(low)), least, most)
    return Bounds(*(np.where(impossible, np.nan, own) for own in (least, most, estimate)))


def inside(estimate: Floats, low: Floats, high: Floats) -> Floats:
    """Distributions near an estimate, (states, rows), which are between two bounds."""
    clipped = np.clip(estimate, low, high)
    short = 1 - clipped.sum(axis=0)
    room = np.where(short > 0, high - clipped, clipped - low)
    share = divide(np.abs(short), room.sum(axis=0), otherwise=0.0)
    return np.asarray(np.clip(clipped + np.sign(short) * np.minimum(share, 1.0) * room, low, high))

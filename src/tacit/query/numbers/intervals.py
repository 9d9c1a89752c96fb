"""The numbers behind intervals: samples inside them, means and quantiles, with a uniform distribution in each.

A half-infinite interval has no uniform distribution: all of it counts as its finite edge, which a mean or a quantile
that it takes part in warns of. No number stands for an interval from -inf to inf.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import shown
from tacit.base.warnings import warn
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import Variable

NEGLIGIBLE = 1e-9  # probability of a half-infinite interval that no mean has to be warned of


class OpenIntervalWarning(UserWarning):
    """A mean or a quantile counts all numbers in a half-infinite interval as its finite edge, where they are not."""


def ends(edges: Edges) -> tuple[Floats, Floats]:
    """The ends of each interval; both are the finite edge of a half-infinite one, and NaN where both are infinite.

    >>> [end.tolist() for end in ends((0.0, 18.0, float("inf")))]
    [[0.0, 18.0], [18.0, 18.0]]
    """
    low, high = np.array(edges[:-1]), np.array(edges[1:])
    if np.isinf(low[0]) and np.isinf(high[0]):
        return np.array([np.nan]), np.array([np.nan])
    low[0] = high[0] if np.isinf(low[0]) else low[0]
    high[-1] = low[-1] if np.isinf(high[-1]) else high[-1]
    return low, high


def numbers_inside(variable: Variable, codes: NDArray[np.integer[Any]], random: np.random.Generator) -> Floats:
    """Random numbers in the intervals of these codes, uniform within each.

    Read as evidence, they are in the same interval again: of the edge that the next interval has, the number just
    below it is taken.
    """
    assert variable.bins is not None
    low, high = ends(variable.bins)
    shares = random.random(codes.shape)
    numbers = low[codes] * (1 - shares) + high[codes] * shares
    greatest = np.append(np.nextafter(high[:-1], -np.inf), high[-1])
    return np.asarray(np.minimum(numbers, greatest[codes]))


def means(variable: Variable, posterior: Floats) -> Floats:
    """The mean of a number by the posterior (rows, states) of its interval: (rows,)."""
    low, high = _finite_ends(variable, "a mean")
    _warn_of_open(variable, posterior > NEGLIGIBLE, "means")
    return np.asarray(posterior @ (low / 2 + high / 2))


def quantiles(variable: Variable, posterior: Floats, q: Any) -> Floats:
    """Quantiles of a number by the posterior (rows, states) of its interval: (rows,), or (rows, len(q)) of several."""
    levels = shares(q)
    low, high = _finite_ends(variable, "a quantile")
    upto = np.cumsum(posterior, axis=1)  # the probability of each interval and all before it
    answers, used = np.empty((len(posterior), levels.size)), np.zeros(posterior.shape, dtype=np.bool_)
    for i, share in enumerate(levels.reshape(-1).tolist()):
        wanted = np.minimum(share * upto[:, -1], upto[:, -1])[:, None]
        possible = posterior > 0
        place = ((upto >= wanted) & possible).argmax(axis=1)[:, None]
        np.put_along_axis(used, place, True, axis=1)
        own = np.take_along_axis(posterior, place, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            inside = (wanted - (np.take_along_axis(upto, place, axis=1) - own)) / own
        part = np.clip(inside, 0, 1)[:, 0]
        answers[:, i] = low[place[:, 0]] * (1 - part) + high[place[:, 0]] * part
    impossible = np.asarray(np.isnan(posterior).any(axis=1))
    answers[impossible] = np.nan
    _warn_of_open(variable, used & ~impossible[:, None], "quantiles")
    return answers[:, 0] if levels.ndim == 0 else answers


def shares(q: Any, name: str = "q") -> Floats:
    """Numbers from 0 to 1: one, or a sequence of them."""
    try:
        levels = np.asarray(q, dtype=np.float64)
    except (TypeError, ValueError):
        levels = np.array(np.nan)
    if levels.ndim > 1 or not ((levels >= 0) & (levels <= 1)).all():
        raise TacitError(f"{name} is {shown(q)}, expected a number from 0 to 1, or a sequence of them")
    return levels


def _warn_of_open(variable: Variable, used: NDArray[np.bool_], what: str) -> None:
    """One warning if half-infinite intervals are `used` (rows, states) for an answer: their finite edge is too near."""
    assert variable.bins is not None
    edge = {0: variable.bins[1]} if np.isinf(variable.bins[0]) else {}
    edge |= {variable.card - 1: variable.bins[-2]} if np.isinf(variable.bins[-1]) else {}
    places = [place for place in edge if used[:, place].any()]
    if places:
        rows = int(used[:, places].any(axis=1).sum())
        each = " and ".join(f"all of {variable.states[place]!r} as {edge[place]:g}" for place in places)
        count = f"{what} of {variable.name!r} in {rows:,} of {len(used):,} rows count {each}"
        warn(f"{count}; give finite outer edges in bins=, such as the least and the greatest number that can occur",
             OpenIntervalWarning)  # fmt: skip


def _finite_ends(variable: Variable, what: str) -> tuple[Floats, Floats]:
    if variable.bins is None:
        remedy = "give it bins= in place of states"
        raise TacitError(f"{variable.name!r} has {what} only if its states are intervals; {remedy}")
    low, high = ends(variable.bins)
    if np.isnan(low).any():
        raise TacitError(f"{variable.name!r} has one interval, from -inf to inf, and so no number that stands for it")
    return low, high

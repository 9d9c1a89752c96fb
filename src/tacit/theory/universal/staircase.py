"""Step functions close to a given function: the numbers behind universal approximation, before any network.

A curve is a step function of one input, in pieces on which it only rises or only falls. One of several inputs is
constant in the last input within each slab. Points are (rows, inputs).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats

SLACK = 1e-9  # what rounding may add to a function: beyond [0, 1], against its trend, above an error bound
TURN_SAMPLES = (501, 20_000)  # of the first input, in the search for turning points: at first, and about at most
SIDE_SAMPLES = 64  # of all other inputs together, where the change within a slab is estimated
GOLDEN_RATIO = (5**0.5 - 1) / 2
GOLDEN_STEPS = 75  # shrink a bracket by 2e-16
MAX_SLABS = 2**14
MAX_TESTS = 200_000


class Function:
    """A user's function with its answers checked; called on whole arrays if it takes them, else point by point."""

    def __init__(self, f: Callable[..., Any], inputs: int) -> None:
        self.f, self.inputs = f, inputs
        points = np.linspace(0.1, 0.9, 5 * inputs).reshape(5, inputs)
        values = self._one_by_one(points)
        try:
            together = np.asarray(f(*points.T.copy()), dtype=np.float64)
            self.takes_arrays = together.shape == values.shape and np.allclose(together, values, rtol=0, atol=1e-12)
        except Exception:  # whatever f does with arrays that it was not written for
            self.takes_arrays = False

    def __call__(self, points: Floats) -> Floats:
        """The values at some points, refused where they leave [0, 1]."""
        values = None
        if self.takes_arrays:
            with suppress(Exception):  # one point by one, the error can name the point
                values = np.asarray(self.f(*points.T.copy()), dtype=np.float64).reshape(len(points))
        if values is None:
            values = self._one_by_one(points)
        for row in np.flatnonzero(~((values >= -SLACK) & (values <= 1 + SLACK)))[:1].tolist():
            problem = f"{self.shown(points[row])} = {values[row]:g}, expected a number in [0, 1]"
            raise TacitError(f"{problem}; scale the function first")
        return np.clip(values, 0.0, 1.0)

    def shown(self, point: Floats) -> str:
        """A call of the function in a message."""
        return f"f({', '.join(f'{x:.6g}' for x in point.tolist())})"

    def _one_by_one(self, points: Floats) -> Floats:
        return np.array([self._number(point) for point in points], dtype=np.float64)

    def _number(self, point: Floats) -> float:
        try:
            value = self.f(*point.tolist())
        except Exception as error:
            raise TacitError(f"{self.shown(point)} failed: {type(error).__name__}: {error}") from error
        if isinstance(value, float):  # as nearly always
            return value
        with suppress(TypeError, ValueError):
            if np.ndim(value) == 0:
                return float(value)
        raise TacitError(f"{self.shown(point)} is {value!r}, expected a number in [0, 1]")


@dataclass(frozen=True, eq=False)
class MonotonicPiece:
    """Level i of N is reached where x >= thresholds[i - 1] (x <= it, if the piece is falling).

    An infinite threshold stands for a level that is reached everywhere or nowhere in the piece.
    """

    rising: bool
    thresholds: Floats

    def value(self, x: Floats) -> Floats:
        """The step function at some inputs (rows,)."""
        reached = x[:, None] >= self.thresholds if self.rising else x[:, None] <= self.thresholds
        return np.asarray(reached.mean(axis=1))


@dataclass(frozen=True, eq=False)
class Staircase:
    """A step function: which part applies is decided by the last input. A border belongs to the later part.

    The parts of a curve, a function of one input, are pieces; all others are step functions of the inputs before.
    """

    parts: tuple[MonotonicPiece | Staircase, ...]
    borders: Floats

    @property
    def is_curve(self) -> bool:
        """Whether this is a function of one input."""
        return isinstance(self.parts[0], MonotonicPiece)

    @property
    def pieces(self) -> int:
        """How many pieces there are in all parts."""
        return sum(1 if isinstance(part, MonotonicPiece) else part.pieces for part in self.parts)

    def value(self, points: Floats) -> Floats:
        """The step function at some points."""
        place, values = np.searchsorted(self.borders, points[:, -1], side="right"), np.empty(len(points))
        for i in np.unique(place).tolist():
            here = points[place == i]
            values[place == i] = self.parts[i].value(here[:, 0] if self.is_curve else here[:, :-1])
        return values


def staircase(
    f: Callable[[Floats], Floats], levels: int, slices: Sequence[int] = (), turning_points: Floats | None = None
) -> Staircase:
    """floor(levels f) / levels, where every input but the first is taken at the middle of its slab."""
    if not slices:
        return curve(lambda x: f(x[:, None]), levels, turning_points)
    *inner, count = slices

    def slab(k: int) -> Staircase:
        middle = (k + 0.5) / count
        return staircase(lambda points: f(np.insert(points, points.shape[1], middle, axis=1)), levels, inner)

    return Staircase(tuple(slab(k) for k in range(count)), np.arange(1, count) / count)


def curve(f: Callable[[Floats], Floats], levels: int, turning_points: Floats | None = None) -> Staircase:
    """floor(levels f) / levels for a function of one input; its turning points are searched for if not given."""
    turns = find_turning_points(f) if turning_points is None else turning_points
    require_size((len(turns) + 1) * levels, f"{levels:,} levels in each of {len(turns) + 1:,} pieces")
    ends = np.concatenate([[0.0], turns, [1.0]])
    values = f(ends)
    rising = values[:-1] <= values[1:]
    low, high = np.where(rising, (ends[:-1], ends[1:]), (ends[1:], ends[:-1]))
    at_low, at_high = np.where(rising, (values[:-1], values[1:]), (values[1:], values[:-1]))[:, :, None]
    goals = np.arange(1, levels + 1) / levels
    never = np.where(rising, np.inf, -np.inf)[:, None]
    thresholds = np.where(goals <= at_low, -never, never)  # (pieces, levels)
    piece, level = np.nonzero((at_low < goals) & (goals <= at_high))
    thresholds[piece, level] = _crossings(f, low[piece], high[piece], goals[level])
    return Staircase(tuple(map(MonotonicPiece, rising.tolist(), thresholds)), ends[1:-1])


def _crossings(f: Callable[[Floats], Floats], low: Floats, high: Floats, goals: Floats) -> Floats:
    """Where a monotonic f reaches its goals, by bisection down to neighbouring floats: f(low) < goals <= f(high)."""
    below, reached = low.copy(), high.copy()
    while True:
        middle = below + (reached - below) / 2
        apart = np.flatnonzero((middle != below) & (middle != reached))
        if not len(apart):
            return reached
        enough = f(middle[apart]) >= goals[apart]
        reached[apart[enough]] = middle[apart[enough]]
        below[apart[~enough]] = middle[apart[~enough]]


def find_turning_points(f: Callable[[Floats], Floats]) -> Floats:
    """Where a function of one input stops rising or falling, from samples: more of them until no more turns appear."""
    count, before = TURN_SAMPLES[0], -1
    while True:
        x = np.linspace(0.0, 1.0, count)
        turns, tops = _turns(f(x).tolist())
        if len(turns) == before or count > TURN_SAMPLES[1]:
            break
        count, before = 5 * count // 2, len(turns)
    left, right = x[turns - 1], x[turns + 1]
    sign = np.where(tops, 1.0, -1.0)
    for _ in range(GOLDEN_STEPS):
        width = GOLDEN_RATIO * (right - left)
        a, b = right - width, left + width
        in_left = sign * f(a) >= sign * f(b)
        left, right = np.where(in_left, left, a), np.where(in_left, b, right)
    return np.unique((left + right) / 2)


def _turns(values: Sequence[float]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The positions of the turning points among samples, and whether each is a maximum; rounding makes none."""
    turns, tops = [], []
    rising: bool | None = None
    last = 0  # the start, then the extreme value since the last turn
    for i, value in enumerate(values):
        step = value - values[last]
        if rising is None:
            if abs(step) > SLACK:
                rising, last = step > 0, i
        elif step >= 0 if rising else step <= 0:
            last = i
        elif abs(step) > SLACK:
            turns.append(last)
            tops.append(rising)
            rising, last = not rising, i
    return np.array(turns, dtype=np.int64), np.array(tops, dtype=bool)


def sizes(
    f: Function, error: float, levels: int | None, slices: tuple[int, ...] | None, slopes: tuple[float, ...] | None
) -> tuple[int, tuple[int, ...], float]:
    """Levels, slices and a bound of the error, of which each has an equal share: that makes the product least."""
    further = range(1, f.inputs)
    estimated = slopes or tuple(_slab_change(f, i, 1) for i in further)
    moving = [i for i, slope in zip(further, estimated, strict=True) if slope > SLACK]  # f depends on these
    share = error / (1 + len(moving))
    levels = levels or _ceil(1 / share)
    if slopes is not None:
        slices = slices or tuple(max(1, _ceil(slope / (2 * share))) for slope in slopes)
        changes = [slope / (2 * n) for slope, n in zip(slopes, slices, strict=True)]
    elif slices is not None:
        changes = [_slab_change(f, i, n) for i, n in zip(further, slices, strict=True)]
    else:
        slices = tuple(_slabs_needed(f, i, share) if i in moving else 1 for i in further)
        changes = [share] * len(moving)
    require_size(levels * math.prod(slices), f"{levels:,} levels, {' x '.join(map(str, slices)) or 'no'} slices")
    return levels, slices, 1 / levels + sum(changes)


def _ceil(x: float) -> int:
    """The next whole number, where 30.000000000000004 counts as 30."""
    return math.ceil(x * (1 - 1e-12))


def _slabs_needed(f: Function, which: int, change: float) -> int:
    """The least number of slabs of an input within which f changes by at most `change`, as far as samples show it."""
    few, many = 0, 1
    while _slab_change(f, which, many) > change + SLACK:
        few, many = many, 2 * many
        if many > MAX_SLABS:
            needed = f"more than {MAX_SLABS:,} slices of input {which + 1} would be needed"
            raise TooLargeError(f"{needed} for a change of at most {change:g} in each; allow a larger error")
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if _slab_change(f, which, middle) <= change + SLACK else (middle, many)
    return many


def _slab_change(f: Function, which: int, count: int) -> float:
    """The largest difference, seen at samples, between f in a slab of one input and in the middle of that slab."""
    middle = max(2, -(-SIDE_SAMPLES // (2 * count)))  # at least four samples beside it
    x = (np.arange(count)[:, None] + np.linspace(0.0, 1.0, 2 * middle + 1)) / count
    per_input = max(2, round(SIDE_SAMPLES ** (1 / (f.inputs - 1))))
    largest = 0.0
    for others in product(np.linspace(0.0, 1.0, per_input), repeat=f.inputs - 1):
        points = np.tile(np.insert(others, which, 0.0), (x.size, 1))
        points[:, which] = x.ravel()
        values = f(points).reshape(x.shape)
        largest = max(largest, float(np.abs(values - values[:, [middle]]).max()))
    return largest


def require_size(tests: int, what: str) -> None:
    """Refuse what would become too large a network."""
    if tests > MAX_TESTS:
        problem = f"the network would have at least {tests:,} testing nodes ({what}; limit {MAX_TESTS:,})"
        raise TooLargeError(f"{problem}; allow a larger error")

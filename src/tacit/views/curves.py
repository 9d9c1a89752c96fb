"""The distributions of numbers as curves: where to look at them, and the nodes of a drawing that show them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from tacit.base.floats import Floats
from tacit.base.text import rounded
from tacit.views.layout import Point, Size, text_width
from tacit.views.nodes import (
    BOLD_SCALE,
    LINE_HEIGHT,
    MAX_NAME_WIDTH,
    NAME_LINE,
    PADDING,
    RING_GAP,
    TITLE_HEIGHT,
    Known,
    look_of,
)
from tacit.views.picture import Area, Box, Item, Text
from tacit.views.words import true_minus, wrapped

POINTS, LEVELS = 121, np.linspace(0.01, 0.99, 25)  # of a curve: evenly spread, and quantiles
FINE, COARSE = 2e-4, 5e-3  # of its peak, by which a curve may be off: in a plot, and in the box of a node
MAX_ROUNDS = 16  # in which points are added to a curve
TAIL = 0.002  # of the probability that is left out at either end, and less where the density is not yet low there
TAILS = np.geomspace(TAIL, 1e-13, 18)  # the shares that are tried
LOW = 0.005  # a density, as a share of its peak
FLANKS = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)  # standard deviations from the mean of a component, to see narrow ones
LEAST_WEIGHT = 1e-4  # of a component that is looked at
MAX_PLACES, EXPONENTS_FROM = 6, 1e7  # decimals of a mean, and from where on it has an exponent
CURVE_HEIGHT, GAP = 30.0, 8.0


class Distributions(Protocol):
    """Distributions of numbers, one for each row, as a `Mixture` holds them."""

    weights: Floats
    components: Any
    columns: tuple[str, ...]
    index: Any

    @property
    def mean(self) -> Floats:
        """The mean of each row."""

    @property
    def sd(self) -> Floats:
        """The standard deviation of each row."""

    def quantile(self, q: Any) -> Floats:
        """The number below which the share q of each row lies."""

    def pdf(self, x: Any) -> Floats:
        """The density of each row at some numbers."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Any]: ...


def places(mixture: Distributions, error: float = FINE) -> Floats:
    """Numbers at which to draw the densities of all rows, in ascending order: counts, or enough for smooth curves.

    Straight lines between them are off by a share of the peak of each row, at most.
    """
    if mixture.components.counted:
        ends = np.nanmin(mixture.quantile(TAIL)), np.nanmax(mixture.quantile(1 - TAIL))
        return np.unique(np.linspace(*ends, POINTS).round())
    near = np.unique(np.concatenate([mixture.quantile(LEVELS).ravel(), _near_means(mixture)]))
    near = near[np.isfinite(near)]
    peaks = mixture.pdf(near).max(axis=1)
    known = [(own, peak) for own, peak in zip(mixture, peaks.tolist(), strict=True) if not math.isnan(peak)]
    low = min(_end(own, TAILS, peak) for own, peak in known)
    high = max(_end(own, 1 - TAILS, peak) for own, peak in known)
    start = np.concatenate([np.linspace(low, high, POINTS), near[(near > low) & (near < high)]])
    return _refined(mixture, np.unique(start), error)


def _near_means(mixture: Distributions) -> Floats:
    """Numbers around the means of all components that count."""
    means, sds = mixture.components.means(), np.sqrt(mixture.components.variances())
    seen = np.broadcast_to(mixture.weights > LEAST_WEIGHT, np.broadcast_shapes(mixture.weights.shape, means.shape))
    return np.concatenate([np.broadcast_to(means + flank * sds, seen.shape)[seen] for flank in FLANKS])


def _end(own: Distributions, levels: Floats, peak: float) -> float:
    """The first of some quantiles of a row where its density is low, so that its curve does not start in mid-air."""
    numbers = own.quantile(levels)[0]
    low = own.pdf(numbers)[0] <= LOW * peak
    return float(numbers[low.argmax() if low.any() else -1])


def _refined(mixture: Distributions, x: Floats, error: float) -> Floats:
    """These numbers, and more where the density of some row bends between them."""
    y = mixture.pdf(x)
    for _ in range(MAX_ROUNDS):
        middles = (x[:-1] + x[1:]) / 2
        between = mixture.pdf(middles)
        off = np.abs(between - (y[:, :-1] + y[:, 1:]) / 2)
        bent = (off > error * y.max(axis=1, keepdims=True)).any(axis=0)
        if not bent.any():
            break
        order = np.argsort(x := np.concatenate([x, middles[bent]]), kind="stable")
        x, y = x[order], np.concatenate([y, between[:, bent]], axis=1)[:, order]
    return x


class Column(NamedTuple):
    """A column of a continuous variable: what it is called, what is known of it, and its curve in a unit square."""

    label: str
    text: str
    curve: Sequence[Point] = ()
    ends: tuple[str, str] = ("", "")

    @classmethod
    def seen(cls, label: str, number: float) -> Column:
        """One whose number is known."""
        return cls(label, true_minus(f"= {number:.6g}"))

    @classmethod
    def of(cls, label: str, mixture: Distributions) -> Column:
        """The distribution of one row."""
        if not mixture.components.summarised:
            return cls(label, "a density")
        x = places(mixture, COARSE)
        y = mixture.pdf(x)[0]
        text, ends = (
            _mean_and_sd(mixture.mean[0], mixture.sd[0]),
            (true_minus(rounded(x[0])), true_minus(rounded(x[-1]))),
        )
        if mixture.components.counted:
            x, y = _steps(x), np.repeat(y, 2)
        across, up = (x - x[0]) / max(x[-1] - x[0], np.finfo(float).tiny), y / y.max()
        return cls(label, text, list(zip(across.tolist(), up.tolist(), strict=True)), ends)


def _mean_and_sd(mean: float, sd: float) -> str:
    """The mean in as many decimals as the standard deviation has in three digits, where both are of usual sizes."""
    places = 2 - math.floor(math.log10(sd)) if math.isfinite(sd) and sd > 0 else MAX_PLACES + 1
    if places > MAX_PLACES or max(abs(mean), sd) >= EXPONENTS_FROM:
        return true_minus(f"mean {rounded(mean, 4)}, sd {rounded(sd)}")
    return true_minus(f"mean {mean:.{max(places, 0)}f}, sd {rounded(sd)}")


def _steps(numbers: Floats) -> Floats:
    """Where the bar of each of some numbers begins and ends: half-way to the next ones."""
    between = (numbers[:-1] + numbers[1:]) / 2
    return np.repeat(np.concatenate([[numbers[0] - 0.5], between, [numbers[-1] + 0.5]]), 2)[1:-1]


@dataclass(frozen=True)
class Curves:
    """A node that shows the distribution of its numbers, or the numbers that were observed."""

    title: str
    columns: Sequence[Column]
    known: Known = ""
    ringed: bool = False

    @cached_property
    def _titles(self) -> list[str]:
        return wrapped(self.title, MAX_NAME_WIDTH, BOLD_SCALE)

    @property
    def _title_height(self) -> float:
        return TITLE_HEIGHT + NAME_LINE * (len(self._titles) - 1)

    @property
    def size(self) -> Size:
        lines = [text_width(own.label) + GAP + text_width(own.text) for own in self.columns]
        width = max(MAX_NAME_WIDTH, *lines, *(text_width(title, BOLD_SCALE) for title in self._titles))
        heights = [LINE_HEIGHT + (CURVE_HEIGHT + LINE_HEIGHT) * bool(own.curve) for own in self.columns]
        ring = 2 * RING_GAP * self.ringed
        return width + 2 * PADDING + ring, self._title_height + sum(heights) + PADDING / 2 + ring

    def depth(self, aside: float) -> float:
        """The top of a box is flat."""
        return 0.0

    def items(self, x: float, y: float) -> Iterator[Item]:
        """What is drawn, with its middle at a point."""
        look = look_of(shaded=False, known=self.known)
        for inside in (0.0, RING_GAP) if self.ringed else (0.0,):
            width, height = (length - 2 * inside for length in self.size)
            yield Box(x - width / 2, y - height / 2, width, height, look.fill, look.outline)
        left, right, top = x - width / 2 + PADDING, x + width / 2 - PADDING, y - height / 2
        for k, title in enumerate(self._titles):
            yield Text(x, top + 15 + k * NAME_LINE, title, bold=True)
        top += self._title_height
        for own in self.columns:
            yield Text(left, top + 12, own.label, "start")
            yield Text(right if own.label else x, top + 12, own.text, "end" if own.label else "middle")
            top += LINE_HEIGHT
            if own.curve:
                base = top + CURVE_HEIGHT
                points = [(left + (right - left) * u, base - CURVE_HEIGHT * v) for u, v in own.curve]
                yield Area([(left, base), *points, (right, base)], look.bar)
                yield Text(left, base + 12, own.ends[0], "start")
                yield Text(right, base + 12, own.ends[1], "end")
                top = base + LINE_HEIGHT

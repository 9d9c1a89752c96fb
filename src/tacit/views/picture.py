"""A picture before it is SVG, PNG or PDF: shapes, arrows and letters, in pixels from the top left corner."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

from tacit.views.layout import Point

FONT_SIZE = 12.0
INK, EDGE, LIGHT = "#1b2a41", "#5a667a", "#ffffff"
TIP_LENGTH, TIP_WIDTH = 7.0, 7.0  # of an arrow
HANDLE = 0.8  # of the way down, how long a curve keeps its direction: its corners are round
Anchor = Literal["start", "middle", "end"]


class Stroke(NamedTuple):
    """How a line looks: its colour, its width, and the lengths of its dashes and gaps, if it has any."""

    color: str = EDGE
    width: float = 1.0
    dashes: tuple[float, ...] = ()


PLAIN = Stroke()


OUTLINE = Stroke(INK, 1.2)  # of a node that is not marked


@dataclass(frozen=True)
class Oval:
    """An ellipse, by the box around it."""

    left: float
    top: float
    width: float
    height: float
    fill: str
    outline: Stroke = OUTLINE

    def moved(self, right: float) -> Oval:
        """The same, further to the right."""
        return replace(self, left=self.left + right)


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners; without an outline, if none is given."""

    left: float
    top: float
    width: float
    height: float
    fill: str
    outline: Stroke | None = None
    radius: float = 3.0

    def moved(self, right: float) -> Box:
        """The same, further to the right."""
        return replace(self, left=self.left + right)


@dataclass(frozen=True)
class Text:
    """A line of letters: where it starts, ends or has its middle, and the baseline it stands on."""

    x: float
    baseline: float
    text: str
    anchor: Anchor = "middle"
    color: str = INK
    size: float = FONT_SIZE
    bold: bool = False

    def moved(self, right: float) -> Text:
        """The same, further to the right."""
        return replace(self, x=self.x + right)


@dataclass(frozen=True)
class Arrow:
    """A line through some points, vertical at each of them, with a tip at the last one, unless it has none."""

    points: Sequence[Point]
    stroke: Stroke = PLAIN
    tipped: bool = True

    def moved(self, right: float) -> Arrow:
        """The same, further to the right."""
        return replace(self, points=[(x + right, y) for x, y in self.points])

    @property
    def curves(self) -> Iterator[tuple[Point, Point, Point]]:
        """A Bézier curve to each point but the first: two control points, and the point."""
        for (ax, ay), (bx, by) in pairwise(self.points):
            reach = HANDLE * (by - ay)
            yield (ax, ay + reach), (bx, by - reach), (bx, by)

    @property
    def tip(self) -> tuple[Point, Point, Point]:
        """The corners of the triangle at the end."""
        (left, before), (x, y) = self.points[-2:]
        if before == y:  # to the right, in a legend
            back = x - math.copysign(TIP_LENGTH, x - left)
            return (back, y - TIP_WIDTH / 2), (back, y + TIP_WIDTH / 2), (x, y)
        back = y - TIP_LENGTH if before < y else y + TIP_LENGTH
        return (x - TIP_WIDTH / 2, back), (x + TIP_WIDTH / 2, back), (x, y)


@dataclass(frozen=True)
class Area:
    """What lies inside the straight lines between some points."""

    points: Sequence[Point]
    fill: str

    def moved(self, right: float) -> Area:
        """The same, further to the right."""
        return replace(self, points=[(x + right, y) for x, y in self.points])


Item = Oval | Box | Text | Arrow | Area


@dataclass(frozen=True)
class Picture:
    """Items in the order in which they are drawn, and the size of the whole; it is shown `scale` times as large."""

    width: float
    height: float
    items: Sequence[Item]
    scale: float = 1.0

"""A picture before it is SVG, PNG or PDF: shapes, arrows and letters, in pixels from the top left corner."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tacit.views.layout import Point

FONT_SIZE = 12.0
INK, EDGE, LIGHT = "#1b2a41", "#5a667a", "#ffffff"
TIP_LENGTH, TIP_WIDTH = 7.0, 7.0  # of an arrow
Anchor = Literal["start", "middle", "end"]


@dataclass(frozen=True)
class Oval:
    """An ellipse, by the box around it."""

    left: float
    top: float
    width: float
    height: float
    fill: str
    line: str = INK


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners; without a line, if none is given."""

    left: float
    top: float
    width: float
    height: float
    fill: str
    line: str = ""
    radius: float = 3.0


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


@dataclass(frozen=True)
class Arrow:
    """A line through some points, vertical at each of them, with a tip at the last one."""

    points: Sequence[Point]

    @property
    def curves(self) -> Iterator[tuple[Point, Point, Point]]:
        """A Bézier curve to each point but the first: two control points, and the point."""
        for (ax, ay), (bx, by) in pairwise(self.points):
            middle = (ay + by) / 2
            yield (ax, middle), (bx, middle), (bx, by)

    @property
    def tip(self) -> tuple[Point, Point, Point]:
        """The corners of the triangle at the end."""
        (_, before), (x, y) = self.points[-2:]
        back = y - TIP_LENGTH if before < y else y + TIP_LENGTH
        return (x - TIP_WIDTH / 2, back), (x + TIP_WIDTH / 2, back), (x, y)


Item = Oval | Box | Text | Arrow


@dataclass(frozen=True)
class Picture:
    """Items in the order in which they are drawn, and the size of the whole."""

    width: float
    height: float
    items: Sequence[Item]

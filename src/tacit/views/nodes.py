"""The nodes of a drawing: a label in an outline, or a box with a bar for each state; and how they are told apart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from tacit.views.layout import Size, text_width
from tacit.views.picture import INK, LIGHT, OUTLINE, Area, Box, Item, Oval, Stroke, Text
from tacit.views.words import wrapped

NODE_HEIGHT, MIN_WIDTH, LABEL_PADDING, RING_GAP = 28.0, 34.0, 18.0, 3.0
OVAL_WIDENING = 1.15  # an oval is narrower at the top of its letters than in its middle, and capitals are wide
TITLE_HEIGHT, LINE_HEIGHT, PADDING = 22.0, 16.0, 7.0
BAR_WIDTH, BAR_HEIGHT, PERCENT_WIDTH, GAP = 58.0, 9.0, 54.0, 7.0
LABEL_WIDENING = 1.07  # of the states' names: matplotlib's own font is wider than that of SVG
BOLD_SCALE = 1.2
MAX_LABEL_WIDTH, MAX_BARS = 160.0, 12
MAX_NAME_WIDTH, NAME_LINE = 120.0, 15.0  # longer names are wrapped
DIAMOND_HEIGHT = 44.0
ROUND = 9.0  # the corners of a continuous variable's outline
LETTERS = 15.0  # the height of a line, with what hangs below it
Known = Literal["", "seen", "soft", "set"]


class Look(NamedTuple):
    """How a node is drawn: its colours are those of the explorer page, and outlines differ in grey print, too."""

    fill: str
    outline: Stroke
    track: str = "#e9edf3"
    bar: str = "#4b82be"


NORMAL, TESTING = Look(LIGHT, OUTLINE), Look("#d9dee7", OUTLINE, "#c8d0dc")
KNOWN: Mapping[Known, Look] = {
    "seen": Look("#fff6ea", Stroke("#a34a05", 2.8), "#f6e3cb", "#d97b1f"),
    "soft": Look("#ffffff", Stroke("#a34a05", 2.2, (2.0, 2.5)), "#f6e3cb", "#e8a864"),
    "set": Look("#f8f0fd", Stroke("#6a2c91", 1.8, (5.0, 3.0)), "#e6d6f1", "#9a5cc0"),
}


def look_of(shaded: bool, known: Known) -> Look:
    """How a node is drawn: what is known of it matters more than its kind."""
    return KNOWN[known] if known else TESTING if shaded else NORMAL


@dataclass(frozen=True)
class Labelled:
    """A node that shows its label in an outline."""

    label: str
    form: str = "ellipse"  # or "box", "text", "round" of a continuous variable, and "diamond" of a value node
    shaded: bool = False
    ringed: bool = False
    known: Known = ""

    @cached_property
    def lines(self) -> list[str]:
        """The label, wrapped where it is long."""
        return wrapped(self.label, MAX_NAME_WIDTH) if self.form in ("ellipse", "round") else [self.label]

    @property
    def size(self) -> Size:
        ring, height = 2 * RING_GAP * self.ringed, NODE_HEIGHT + NAME_LINE * (len(self.lines) - 1)
        widths = [text_width(line) * self._widening(k, height) for k, line in enumerate(self.lines)]
        if self.form == "diamond":
            return max(MIN_WIDTH, max(widths) / (1 - LETTERS / DIAMOND_HEIGHT) + LABEL_PADDING / 2), DIAMOND_HEIGHT
        return max(MIN_WIDTH, max(widths) + LABEL_PADDING) + ring, height + ring

    def _widening(self, line: int, height: float) -> float:
        """How much wider than a line its outline must be, since an oval is narrower above and below its middle."""
        if self.form != "ellipse" or len(self.lines) == 1:
            return OVAL_WIDENING if self.form == "ellipse" else 1.0
        outside = abs(line - (len(self.lines) - 1) / 2) * NAME_LINE + LETTERS / 2
        return 1 / math.sqrt(1 - (2 * outside / height) ** 2)

    def depth(self, aside: float) -> float:
        """How far the outline lies below its top, so many pixels aside from the middle."""
        width, height = self.size
        if self.form == "diamond":
            return height / 2 * min(1.0, 2 * abs(aside) / width)
        return height / 2 * (1 - math.sqrt(1 - (2 * aside / width) ** 2)) if self.form == "ellipse" else 0.0

    def items(self, x: float, y: float) -> Iterator[Item]:
        """What is drawn, with its middle at a point."""
        look = look_of(self.shaded, self.known)
        for inside in (0.0, RING_GAP) if self.ringed else (0.0,):
            width, height = (length - 2 * inside for length in self.size)
            place = (x - width / 2, y - height / 2, width, height)
            if self.form == "ellipse":
                yield Oval(*place, look.fill, look.outline)
            elif self.form == "diamond":
                yield from _diamond(x, y, width, height, look)
            elif self.form in ("box", "round"):
                yield Box(*place, look.fill, look.outline, radius=3.0 if self.form == "box" else ROUND)
        first = y + 4 - (len(self.lines) - 1) / 2 * NAME_LINE
        for k, text in enumerate(self.lines):
            yield Text(x, first + k * NAME_LINE, text, color=look.outline.color)


def _diamond(x: float, y: float, width: float, height: float, look: Look) -> Iterator[Item]:
    """A diamond with its outline: a smaller one on a larger one, as thick on all sides as the outline is."""
    line = look.outline.width * math.hypot(width, height)  # the same distance, along each of the axes
    for color, less in (look.outline.color, 0.0), (look.fill, line):
        across, up = (width - 2 * less / height) / 2, (height - 2 * less / width) / 2
        yield Area([(x - across, y), (x, y - up), (x + across, y), (x, y + up)], color)


class Bar(NamedTuple):
    """A state and its probability."""

    label: str
    probability: float


@dataclass(frozen=True)
class Bars:
    """A node that shows the probability of each state; of many states, the most probable ones."""

    title: str
    bars: Sequence[Bar]
    shaded: bool = False
    known: Known = ""
    ringed: bool = False

    @classmethod
    def of(
        cls, title: str, labels: Sequence[str], posterior: Sequence[float], shaded: bool, known: Known, ringed: bool
    ) -> Bars:
        """Bars in the order of the states; what they leave out of many states is the last one."""
        bars = [Bar(_shortened(label), p) for label, p in zip(labels, posterior, strict=True)]
        if len(bars) > MAX_BARS:
            ranked = sorted(range(len(bars)), key=lambda k: -bars[k].probability)
            kept, rest = sorted(ranked[: MAX_BARS - 1]), ranked[MAX_BARS - 1 :]
            others = Bar(f"{len(rest)} others", sum(bars[k].probability for k in rest))
            bars = [*(bars[k] for k in kept), others]
        return cls(title, bars, shaded, known, ringed)

    @property
    def _label_width(self) -> float:
        return max(text_width(bar.label, LABEL_WIDENING) for bar in self.bars)

    @property
    def _line_width(self) -> float:
        return self._label_width + GAP + BAR_WIDTH + PERCENT_WIDTH

    @cached_property
    def _titles(self) -> list[str]:
        return wrapped(self.title, max(self._line_width, MAX_NAME_WIDTH), BOLD_SCALE)

    @property
    def _title_height(self) -> float:
        return TITLE_HEIGHT + NAME_LINE * (len(self._titles) - 1)

    @property
    def size(self) -> Size:
        width = max(self._line_width, *(text_width(title, BOLD_SCALE) for title in self._titles)) + 2 * PADDING
        ring = 2 * RING_GAP * self.ringed
        return width + ring, self._title_height + LINE_HEIGHT * len(self.bars) + PADDING / 2 + ring

    def depth(self, aside: float) -> float:
        """The top of a box is flat."""
        return 0.0

    def items(self, x: float, y: float) -> Iterator[Item]:
        """What is drawn, with its middle at a point."""
        look = look_of(self.shaded, self.known)
        for inside in (0.0, RING_GAP) if self.ringed else (0.0,):
            width, height = (length - 2 * inside for length in self.size)
            yield Box(x - width / 2, y - height / 2, width, height, look.fill, look.outline)
        left, right, top = x - width / 2 + PADDING, x + width / 2 - PADDING, y - height / 2
        color = look.outline.color if self.known == "set" else INK
        for k, title in enumerate(self._titles):
            yield Text(x, top + 15 + k * NAME_LINE, title, bold=True, color=color)
        start = left + self._label_width + GAP
        length = right - PERCENT_WIDTH - start
        for k, bar in enumerate(self.bars):
            middle = top + self._title_height + LINE_HEIGHT * (k + 0.5)
            yield Text(left, middle + 4, bar.label, "start")
            yield Box(start, middle - BAR_HEIGHT / 2, length, BAR_HEIGHT, look.track, radius=2)
            if bar.probability > 0:
                filled = max(length * bar.probability, 1.0)  # a pixel shows that it is not 0
                yield Box(start, middle - BAR_HEIGHT / 2, filled, BAR_HEIGHT, look.bar, radius=2)
            yield Text(right, middle + 4, f"{bar.probability:.1%}", "end")


def _shortened(label: str) -> str:
    if text_width(label) <= MAX_LABEL_WIDTH:
        return label
    kept = next(k for k in range(len(label), -1, -1) if text_width(label[:k] + "…") <= MAX_LABEL_WIDTH)
    return label[:kept] + "…"

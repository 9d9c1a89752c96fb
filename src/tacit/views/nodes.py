"""The nodes of a drawing: a label in an outline, or a box with a bar for each state."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from tacit.views.layout import Size, text_width
from tacit.views.picture import INK, LIGHT, Box, Item, Oval, Text

SHADE, TRACK, BAR = "#d9dee7", "#e9edf3", "#4b82be"  # the colours of the explorer page
SHADED_TRACK = "#c8d0dc"
SEEN, SEEN_TRACK, SEEN_BAR, SEEN_LINE = "#fff6ea", "#f6e3cb", "#d97b1f", "#a34a05"
NODE_HEIGHT, MIN_WIDTH, LABEL_PADDING, RING_GAP = 28.0, 34.0, 18.0, 3.0
OVAL_WIDENING = 1.15  # an oval is narrower at the top of its letters than in its middle, and capitals are wide
TITLE_HEIGHT, LINE_HEIGHT, PADDING = 22.0, 16.0, 7.0
BAR_WIDTH, BAR_HEIGHT, PERCENT_WIDTH, GAP = 64.0, 9.0, 50.0, 7.0
SMALL, BOLD_SCALE = 11.0, 1.2  # the size of a state's letters, which get as much room as larger ones
MAX_LABEL_WIDTH, MAX_BARS = 160.0, 12


@dataclass(frozen=True)
class Labelled:
    """A node that shows its label in an outline."""

    label: str
    form: str = "ellipse"  # or "box", "text"
    shaded: bool = False
    ringed: bool = False

    @property
    def size(self) -> Size:
        ring = 2 * RING_GAP * self.ringed
        width = text_width(self.label) * (OVAL_WIDENING if self.form == "ellipse" else 1.0) + LABEL_PADDING
        return max(MIN_WIDTH, width) + ring, NODE_HEIGHT + ring

    def depth(self, aside: float) -> float:
        """How far the outline lies below its top, so many pixels aside from the middle."""
        width, height = self.size
        return height / 2 * (1 - math.sqrt(1 - (2 * aside / width) ** 2)) if self.form == "ellipse" else 0.0

    def items(self, x: float, y: float) -> Iterator[Item]:
        """What is drawn, with its middle at a point."""
        fill = SHADE if self.shaded else LIGHT
        for inside in (0.0, RING_GAP) if self.ringed else (0.0,):
            width, height = (length - 2 * inside for length in self.size)
            place = (x - width / 2, y - height / 2, width, height)
            if self.form == "ellipse":
                yield Oval(*place, fill)
            elif self.form == "box":
                yield Box(*place, fill, INK)
        yield Text(x, y + 4, self.label)


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
    seen: bool = False

    @classmethod
    def of(cls, title: str, labels: Sequence[str], posterior: Sequence[float], shaded: bool, seen: bool) -> Bars:
        """Bars in the order of the states; what they leave out of many states is the last one."""
        bars = [Bar(_shortened(label), p) for label, p in zip(labels, posterior, strict=True)]
        if len(bars) > MAX_BARS:
            ranked = sorted(range(len(bars)), key=lambda k: -bars[k].probability)
            kept, rest = sorted(ranked[: MAX_BARS - 1]), ranked[MAX_BARS - 1 :]
            others = Bar(f"{len(rest)} others", sum(bars[k].probability for k in rest))
            bars = [*(bars[k] for k in kept), others]
        return cls(title, bars, shaded, seen)

    @property
    def _label_width(self) -> float:
        return max(text_width(bar.label) for bar in self.bars)

    @property
    def size(self) -> Size:
        line = self._label_width + GAP + BAR_WIDTH + PERCENT_WIDTH
        width = max(line, text_width(self.title, BOLD_SCALE)) + 2 * PADDING
        return width, TITLE_HEIGHT + LINE_HEIGHT * len(self.bars) + PADDING / 2

    def depth(self, aside: float) -> float:
        """The top of a box is flat."""
        return 0.0

    def items(self, x: float, y: float) -> Iterator[Item]:
        """What is drawn, with its middle at a point."""
        width, height = self.size
        left, right, top = x - width / 2 + PADDING, x + width / 2 - PADDING, y - height / 2
        fill, line = (SEEN, SEEN_LINE) if self.seen else (SHADE if self.shaded else LIGHT, INK)
        track, bar_fill = (SEEN_TRACK, SEEN_BAR) if self.seen else (SHADED_TRACK if self.shaded else TRACK, BAR)
        yield Box(left - PADDING, top, width, height, fill, line)
        yield Text(x, top + 15, self.title, bold=True)
        start = left + self._label_width + GAP
        length = right - PERCENT_WIDTH - start
        for k, bar in enumerate(self.bars):
            middle = top + TITLE_HEIGHT + LINE_HEIGHT * (k + 0.5)
            yield Text(left, middle + 4, bar.label, "start", size=SMALL)
            yield Box(start, middle - BAR_HEIGHT / 2, length, BAR_HEIGHT, track, radius=2)
            if bar.probability > 0:
                filled = max(length * bar.probability, 1.0)  # a pixel shows that it is not 0
                yield Box(start, middle - BAR_HEIGHT / 2, filled, BAR_HEIGHT, bar_fill, radius=2)
            yield Text(right, middle + 4, f"{bar.probability:.1%}", "end", size=SMALL)


def _shortened(label: str) -> str:
    if text_width(label) <= MAX_LABEL_WIDTH:
        return label
    kept = next(k for k in range(len(label), -1, -1) if text_width(label[:k] + "…") <= MAX_LABEL_WIDTH)
    return label[:kept] + "…"

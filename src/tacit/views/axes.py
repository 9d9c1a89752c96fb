"""Axes of matplotlib that plots are drawn on, their colours, and the names of bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.version import how_to_install
from tacit.views.images import PIXELS_PER_INCH
from tacit.views.layout import text_width
from tacit.views.words import wrapped

Axes = Any  # of matplotlib, which carries no types
INK, ACCENT, PALE = "#1b2a41", "#c8553d", "#8d99ae"
GLUE = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
POINTS_PER_INCH = 72
LEGEND_SHARE = 0.7  # of a figure's width that a legend may take
LETTERS_MEASURED = 9.0  # points of the letters that `text_width` measures, in pixels of a 96th of an inch
WIDENING = 1.1  # matplotlib's own font is wider than those
LINE = 1.3  # the height of a line, in sizes of its letters
NAME_GAP = 0.01  # inches between a bar and the name above it


@dataclass(frozen=True)
class BarLook:
    """Where the names of bars are, and sizes: of letters in points, of all else in inches."""

    above: bool
    letters: float
    axis_letters: float
    bar: float
    gap: float

    def height(self, name: str) -> float:
        """How high a bar is with its name, and the gap to its neighbours."""
        lines = (name.count("\n") + 1) * self.letters * LINE / POINTS_PER_INCH
        return self.gap + (self.bar + lines if self.above else max(self.bar, lines))

    def middles(self, names: Sequence[str]) -> Floats:
        """The middle of each bar, from the bottom: that of its row, or where its name leaves room."""
        heights = np.array([self.height(name) for name in names])
        return np.asarray(np.cumsum(heights) - heights + (self.gap + self.bar if self.above else heights) / 2)

    def draw_names(self, ax: Axes, middles: Floats, names: Sequence[str]) -> None:
        """The name of each bar, to its left or above it, and room for all."""
        ax.set_ylim(0, sum(map(self.height, names)) or 1)
        ax.tick_params(axis="y", labelsize=self.letters, length=0)
        if self.above:
            ax.tick_params(axis="y", pad=0)
            ax.set_yticks(middles + self.bar / 2 + NAME_GAP, names, ha="left", va="bottom", linespacing=1.1)
            ax.spines["left"].set_visible(False)
        else:
            ax.set_yticks(middles, names)


def axes_of(ax: Any, size: tuple[float, float] = (5, 4), **how: Any) -> Axes:
    """The axes that are given, or those of a new figure of a size in inches."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise TacitError(f"pictures need matplotlib, which is not installed: {how_to_install('plot')}") from None
    if ax is None:
        ax = plt.figure(figsize=size, layout="constrained").add_subplot(**how)
        ax._ipython_display_ = _say_nothing
    return ax


def _say_nothing() -> None:
    """What a notebook prints of new axes that end a cell: it shows their figure anyway. Named, so that it pickles."""


def plain(ax: Any) -> Axes:
    """Axes without the lines above them and to their right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def with_legend(ax: Any, columns: int, **how: Any) -> Axes:
    """Axes with their legend above them, where it hides nothing, in as many columns as leave the axes their width."""
    figure, heights = ax.figure, []
    for count in range(columns, 0, -1):
        legend = ax.legend(frameon=False, ncols=count, loc="lower center", bbox_to_anchor=(0.5, 1), **how)
        extent = legend.get_window_extent()
        heights.append(extent.height)
        if extent.width <= LEGEND_SHARE * figure.bbox.width:
            break
    if len(figure.axes) == 1:  # what the legend takes more is added to the figure
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + (heights[-1] - heights[0]) / figure.dpi)
    return ax


def in_lines(text: str, width: float, letters: float) -> str:
    """A text in lines of some inches; where that fits, none ends in a word, or between a variable and its state."""
    scale, pixels = letters / LETTERS_MEASURED * WIDENING, width * PIXELS_PER_INCH
    for words in (text.replace(" = ", GLUE), text, _cut(text, pixels, scale)):
        lines = wrapped(words, pixels, scale)
        if all(text_width(line, scale) <= pixels for line in lines):
            break
    return "\n".join(lines).replace(GLUE, " = ")


def _cut(text: str, pixels: float, scale: float) -> str:
    """A text with spaces in words that are wider than so many pixels."""
    cut = ""
    for letter in text:
        last = cut.rpartition(" ")[2]
        cut += letter if not last or text_width(last + letter, scale) <= pixels else f" {letter}"
    return cut

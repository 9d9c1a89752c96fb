"""Axes of matplotlib that plots are drawn on, their colours and letters, and the names of bars."""

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
from tacit.views.lengths import inches
from tacit.views.words import wrapped

Axes = Any  # of matplotlib, which carries no types
INK, ACCENT, PALE = "#1b2a41", "#c8553d", "#8d99ae"
GLUE = "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
POINTS_PER_INCH = 72
WIDTH, SHAPE, LOWEST, HIGHEST = 5.0, 0.7, 2.2, 4.0  # of a new figure: inches, height / width, and its limits in inches
NARROW = 4.5  # inches: narrower figures, such as those of a column, have smaller letters
LETTERS, SMALL_LETTERS = 9, 8  # points
HANDLE, BESIDE_HANDLE = 1.4, 1.2  # of a legend: a line of it, and what is beside its text else, in sizes of its letters
SPILL = 1.02  # widths of the axes that a legend may take
SPARE = 1.04  # widths of a text, of whose lines some have wider letters than others
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
        from tacit.views.figures import PaperFigure

        ax = plt.figure(figsize=size, layout="constrained", FigureClass=PaperFigure).add_subplot(**how)
        ax._ipython_display_ = _say_nothing
    return ax


def _say_nothing() -> None:
    """What a notebook prints of new axes that end a cell: it shows their figure anyway. Named, so that it pickles."""


def wide_axes(ax: Any, width: float | str | None, shape: float = SHAPE, **how: Any) -> Axes:
    """The axes that are given, or those of a new figure of a width, which is not too high, with letters to match."""
    wide = figure_width(ax, width, WIDTH)
    if ax is not None:
        return axes_of(ax)
    ax = axes_of(None, (wide, min(max(shape * wide, LOWEST), HIGHEST)), **how)
    return lettered(ax, LETTERS if wide >= NARROW else SMALL_LETTERS)


def figure_width(ax: Any, width: float | str | None, usual: float) -> float:
    """How wide a new figure is, in inches."""
    if ax is not None and width is not None:
        raise TacitError("width= is for a new figure, but ax= has axes of a figure that is already there")
    return usual if width is None else inches(width)


def lettered(ax: Axes, letters: float) -> Axes:
    """Axes whose letters have so many points."""
    ax.tick_params(labelsize=letters)
    for axis in (ax.xaxis, ax.yaxis, *([ax.zaxis] if hasattr(ax, "zaxis") else [])):
        axis.label.set_size(letters)
    return ax


def plain(ax: Any) -> Axes:
    """Axes without the lines above them and to their right."""
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def row_title(index: Any) -> str:
    """What stands beside the names of rows: what the index of their frame is called, or "row" beside numbers."""
    if (name := getattr(index, "name", None)) is not None:
        return str(name)
    return "row" if index is None or all(isinstance(own, int | np.integer) for own in index) else ""


def with_legend(ax: Axes, columns: int, title: str | None = None, handle: float = HANDLE) -> Axes:
    """Axes with their legend above them, where it hides nothing, in as many columns as have room there.

    Its letters are those of the axis below. A figure of ours becomes higher by it.
    """
    letters, room = ax.xaxis.label.get_size(), width_of(ax)
    handles, names = ax.get_legend_handles_labels()
    how = {"frameon": False, "fontsize": letters, "title": title, "title_fontsize": letters, "alignment": "left"}
    how |= {"borderpad": 0.2, "handlelength": handle, "handletextpad": 0.6, "columnspacing": 1.2, "borderaxespad": 0.3}
    wide = room - (handle + BESIDE_HANDLE) * letters / POINTS_PER_INCH
    for count in range(columns, -1, -1):
        shown = [literal(name) if count else in_lines(name, wide, letters) for name in names]
        legend = ax.legend(handles, shown, ncols=max(count, 1), loc="lower left", bbox_to_anchor=(0, 1), **how)
        extent = legend.get_window_extent()
        if extent.width <= SPILL * room * ax.figure.dpi:
            break
    if _ours(ax):
        width, height = ax.figure.get_size_inches()
        ax.figure.set_size_inches(width, height + extent.height / ax.figure.dpi)
    return ax


def width_of(ax: Axes) -> float:
    """How wide axes are in inches, beside what stands to their left."""
    if _ours(ax):
        ax.figure.draw_without_rendering()  # only then have they their place
    return float(ax.get_window_extent().width / ax.figure.dpi)


def with_height(ax: Axes, height: float) -> Axes:
    """Axes of so many inches, if their figure is ours: it is as high as that and all around it."""
    if _ours(ax):
        figure = ax.figure
        figure.draw_without_rendering()
        width, before = figure.get_size_inches()
        figure.set_size_inches(width, before + height - ax.get_window_extent().height / figure.dpi)
    return ax


def _ours(ax: Axes) -> bool:
    from tacit.views.figures import PaperFigure

    return isinstance(ax.figure, PaperFigure) and len(ax.figure.axes) == 1


def in_lines(text: str, width: float, letters: float) -> str:
    """A text in lines of some inches; where that fits, none ends in a word, or between a variable and its state."""
    pixels, scale = width * PIXELS_PER_INCH, _measured(text, letters) / max(text_width(text), 1.0)
    for words in (text.replace(" = ", GLUE), text, _cut(text, pixels, scale)):
        lines = wrapped(words, pixels, scale)
        if all(text_width(line, scale) <= pixels for line in lines):
            break
    return literal("\n".join(lines).replace(GLUE, " = "))


def literal(text: str) -> str:
    """A text in which dollar signs are dollar signs, and not where mathematics begins."""
    return text.replace("$", r"\$")


def _measured(text: str, letters: float) -> float:
    """How wide a text is in the font of matplotlib, in pixels, with some to spare for lines that differ."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    points = text_to_path.get_text_width_height_descent(text, FontProperties(size=letters), ismath=False)[0]
    return float(SPARE * points * PIXELS_PER_INCH / POINTS_PER_INCH)


def _cut(text: str, pixels: float, scale: float) -> str:
    """A text with spaces in words that are wider than so many pixels."""
    cut = ""
    for letter in text:
        last = cut.rpartition(" ")[2]
        cut += letter if not last or text_width(last + letter, scale) <= pixels else f" {letter}"
    return cut

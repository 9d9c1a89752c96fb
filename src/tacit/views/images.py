"""Pictures as PNG and PDF, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import IO, Any

from tacit.base.version import package
from tacit.views.layout import Point
from tacit.views.picture import LIGHT, Area, Arrow, Box, Oval, Picture, Stroke, Text

PIXELS_PER_INCH = 96  # of CSS, so that SVG, PNG and PDF have one size on paper
POINTS_PER_PIXEL = 72 / PIXELS_PER_INCH
ALIGNMENTS = {"start": "left", "middle": "center", "end": "right"}
LETTERS_KEPT: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}  # TrueType: journals refuse the Type 3 that is usual
STYLE = {"text.usetex": False, "path.simplify": False, **LETTERS_KEPT}
FORMATS = ("png", "pdf")


def write_image(picture: Picture, file: IO[bytes], kind: str, dpi: float) -> None:
    """Write a picture as "png" or "pdf"; `dpi` says how fine a PNG is."""
    matplotlib = package("matplotlib", "plot", f"a drawing as {kind.upper()}")
    with matplotlib.rc_context(STYLE):
        how = {"facecolor": LIGHT} if kind == "png" else {"transparent": True, "metadata": {"CreationDate": None}}
        _figure(picture).savefig(file, format=kind, dpi=dpi, **how)


def _figure(picture: Picture) -> Any:
    """A figure whose axes count pixels from the top left corner. It is not one of pyplot, which would keep it."""
    from matplotlib.figure import Figure

    width, height = max(picture.width, 1.0), max(picture.height, 1.0)
    inches = picture.scale / PIXELS_PER_INCH  # of a pixel
    figure = Figure(figsize=(width * inches, height * inches))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    points = picture.scale * POINTS_PER_PIXEL
    arrows = [item for item in picture.items if isinstance(item, Arrow)]
    for stroke in dict.fromkeys(arrow.stroke for arrow in arrows):
        _draw_arrows(axes, [arrow for arrow in arrows if arrow.stroke == stroke], stroke, points)
    for item in picture.items:
        if isinstance(item, Text):
            _draw_text(axes, item, points)
        elif not isinstance(item, Arrow):
            axes.add_patch(_patch(item, points))
    return figure


def _draw_arrows(axes: Any, arrows: Sequence[Arrow], stroke: Stroke, points_per_pixel: float) -> None:
    """All arrows of one stroke as two patches: thousands would take seconds."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    def path(points: Iterable[Point], codes: Iterable[Any]) -> Any:
        return Path([*points] or [(0.0, 0.0)], [*codes] or [Path.MOVETO])

    lines = [[arrow.points[0], *(point for curve in arrow.curves for point in curve)] for arrow in arrows]
    codes = [Path.MOVETO if k == 0 else Path.CURVE4 for line in lines for k in range(len(line))]
    line = path((point for line in lines for point in line), codes)
    axes.add_patch(PathPatch(line, fill=False, zorder=1, **_line(stroke, points_per_pixel)))
    tipped = [arrow for arrow in arrows if arrow.tipped]
    corners = [point for arrow in tipped for point in (*arrow.tip, arrow.tip[0])]
    triangle = (Path.MOVETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY)
    axes.add_patch(PathPatch(path(corners, triangle * len(tipped)), facecolor=stroke.color, linewidth=0, zorder=1))


def _line(stroke: Stroke, points_per_pixel: float) -> dict[str, Any]:
    """How matplotlib draws a stroke, whose dashes it counts in widths."""
    dashes = (0, [length / stroke.width for length in stroke.dashes]) if stroke.dashes else "solid"
    width = stroke.width * points_per_pixel
    return {"edgecolor": stroke.color, "linewidth": width, "linestyle": dashes, "capstyle": "butt"}


def _draw_text(axes: Any, text: Text, points_per_pixel: float) -> None:
    axes.text(
        *(text.x, text.baseline, text.text),
        ha=ALIGNMENTS[text.anchor],
        va="baseline",
        color=text.color,
        fontsize=text.size * points_per_pixel,
        fontweight="bold" if text.bold else "normal",
        parse_math=False,  # a dollar sign is one
        zorder=2,
    )


def _patch(item: Oval | Box | Area, points_per_pixel: float) -> Any:
    from matplotlib.patches import BoxStyle, Ellipse, FancyBboxPatch, Polygon

    if isinstance(item, Area):
        return Polygon(list(item.points), facecolor=item.fill, linewidth=0, zorder=2)
    paint: dict[str, Any] = {"facecolor": item.fill, "edgecolor": "none", "linewidth": 0, "zorder": 2}
    if item.outline:
        paint |= _line(item.outline, points_per_pixel)
    if isinstance(item, Oval):
        middle = item.left + item.width / 2, item.top + item.height / 2
        return Ellipse(middle, item.width, item.height, **paint)
    corners = BoxStyle.Round(pad=0, rounding_size=min(item.radius, item.width / 2, item.height / 2))
    return FancyBboxPatch((item.left, item.top), item.width, item.height, boxstyle=corners, **paint)

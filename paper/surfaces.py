"""Pictures of functions of two inputs: surfaces, tables of them, and how the error falls with the number of tests."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paper.functions import GRID, Floats
from tacit.base.atomic import write_atomically

INK, PALE = "#1f2328", "#59636e"
SIZE, DPI = 2.0, 150  # inches; a picture of 300 x 270 pixels is sharp at 150


@dataclass(frozen=True)
class Cell:
    """A place in a table of pictures: a surface on the grid, and lines of text below it."""

    surface: Floats
    text: str


def surface_png(values: Sequence[float] | Floats) -> bytes:
    """A surface over the unit square, as the bytes of a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(SIZE, 0.9 * SIZE), dpi=DPI)
    axes = figure.add_axes((-0.06, -0.07, 1.12, 1.16), projection="3d")
    draw_surface(axes, np.asarray(values))
    return _png(figure)


def draw_surface(axes: Any, values: Floats) -> None:
    """Draw a surface; all have the same axes, view and colours, so that they can be compared."""
    steps = np.linspace(0, 1, GRID)
    x, y = np.meshgrid(steps, steps, indexing="ij")
    axes.plot_surface(
        x, y, values.reshape(GRID, GRID), cmap="viridis", vmin=0, vmax=1, rstride=1, cstride=1,
        linewidth=0.15, edgecolor=(1, 1, 1, 0.25), antialiased=True,
    )  # fmt: skip
    axes.set(xlim=(0, 1), ylim=(0, 1), zlim=(0, 1))
    axes.set_xticks((0, 1), ("0", "1"))
    axes.set_yticks((0, 1), ("", "1"))  # the 0 is that of x
    axes.set_zticks((0, 1), ("", "1"))  # below it is the 1 of y
    axes.patch.set_alpha(0)
    axes.view_init(elev=26, azim=-128)
    axes.set_box_aspect((1, 1, 0.72), zoom=0.88)
    axes.tick_params(labelsize=6, colors=PALE, pad=-4)
    for axis, name in ((axes.xaxis, "x"), (axes.yaxis, "y")):
        axis.set_label_text(name, fontsize=7, color=PALE)
        axis.labelpad = -14
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.pane.set(facecolor="white", edgecolor="#e4e8ec")
        axis.line.set_color("#c5ccd3")
        axis._axinfo["grid"].update(color="#eceff2", linewidth=0.5)


def table_png(path: Path, columns: Sequence[str], rows: Mapping[str, Sequence[Cell]]) -> None:
    """A table of surfaces with texts below them, as a PNG file."""
    from matplotlib.figure import Figure

    left, top, line = 0.8, 0.3, SIZE + 0.05  # inches
    width, height = left + SIZE * len(columns), top + line * len(rows) + 0.1
    figure = Figure(figsize=(width, height), dpi=DPI)

    def write(x: float, y: float, text: str, size: int, **more: Any) -> None:
        figure.text(x / width, y / height, text, fontsize=size, color=INK, va="center", **more)

    for j, title in enumerate(columns):
        write(left + SIZE * (j + 0.5), height - 0.2, title, 10, ha="center", weight="bold")
    for i, (name, cells) in enumerate(rows.items()):
        bottom = height - top - line * (i + 1)
        write(0.1, bottom + SIZE / 2 + 0.2, name, 10, weight="bold")
        for j, cell in enumerate(cells):
            box = (left + SIZE * j - 0.1) / width, (bottom + 0.1) / height, (SIZE + 0.2) / width, SIZE / height
            draw_surface(figure.add_axes(box, projection="3d"), cell.surface)
            write(left + SIZE * (j + 0.5), bottom + 0.1, cell.text, 9, ha="center")
    picture = _png(figure)
    write_atomically(path, lambda file: file.write(picture), binary=True)


def trend_png(tests: Sequence[int], lines: Mapping[str, Sequence[float]], ac: float) -> bytes:
    """How the error falls with the number of tests, one line per DAG, as the bytes of a PNG file."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.6, 2.7), dpi=DPI, layout="constrained")
    axes = figure.add_subplot()
    for (name, errors), colour in zip(lines.items(), ("#0969da", "#bc4c00", "#1a7f37"), strict=False):
        axes.plot(tests[: len(errors)], errors, "o-", color=colour, label=name, linewidth=1.8, markersize=4)
    axes.axhline(ac, color=PALE, linestyle=(0, (4, 3)), linewidth=1)
    axes.text(tests[0], ac * 1.25, "AC", fontsize=8, color=PALE)
    axes.set(xscale="log", yscale="log", ylim=(None, ac * 4), xticks=tests, xlabel="testing nodes", ylabel="MSE")
    axes.set_xticks(tests, labels=[str(t) for t in tests])
    axes.minorticks_off()
    axes.tick_params(labelsize=8, colors=PALE)
    axes.grid(axis="y", color="#eceff2")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8)
    return _png(figure)


def _png(figure: Any) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    buffer = io.BytesIO()
    FigureCanvasAgg(figure).print_figure(buffer, format="png")
    return _fewer_colours(buffer.getvalue())


def _fewer_colours(png: bytes) -> bytes:
    """The same picture with a palette: a third of the size, and no difference to be seen."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(128, method=Image.Quantize.MEDIANCUT).save(
        buffer, "PNG", optimize=True
    )
    return buffer.getvalue()

"""Pictures of the densities of continuous answers, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.grid import row_name
from tacit.views.axes import ACCENT, INK, PALE, Axes, literal, plain, row_title, wide_axes, with_legend
from tacit.views.charts import FILLED, IMPOSSIBLE, REST, Lines, lines_for
from tacit.views.curves import Distributions, places

MAX_CURVES = 40  # rows whose densities are drawn
MAX_OVERLAID = 3  # rows that share a baseline, with their components; more have one each
RIDGE, BETWEEN = 0.3, 0.1  # inches: how high the highest density of a row is, and from there to the next row
ASIDE = 0.02  # of an axis, beside its outer numbers
ALIKE = 0.1  # of the highest peak: where all are as high, rows share a scale
FAINTEST = 1e-3  # weight of a component that has a line
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)))  # tell rows apart in grey print
HANDLE = 3.2  # of a legend of dashes, in sizes of its letters
PARTS = "components, weighted"
SHAPE = 0.6  # height / width
LEGEND_COLUMNS = 4


def density(mixture: Distributions, x: Any = None, ax: Any = None, width: float | str | None = None) -> Axes:
    """The density of each row of a continuous answer: of up to three rows, in bold on their weighted components.

    More rows have a baseline each, and one axis below. Their scale is the same, unless one of them is ten times as high
    as another: the axis says so. `x` are the numbers to draw at; if left out, almost all of the probability is shown.
    Of counts, dots are their probabilities, or bars on a baseline. `width` is that of a new figure, in centimetres or
    as a text such as "3.3in".

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("Fault", cpt=[0.1, 0.9])
    >>> net.add("heat", ["Fault"], cpt=tacit.Gaussian([90, 60], [8, 4]))
    >>> density(net.posterior("heat")).get_xlabel()
    'heat'
    """
    _check(mixture, x)
    x = np.asarray(places(mixture) if x is None else x, dtype=np.float64)
    draw = _overlaid if len(mixture) <= MAX_OVERLAID else _stacked
    return draw(mixture, x, ax, width)


def _overlaid(mixture: Distributions, x: Floats, ax: Any, width: float | str | None) -> Axes:
    """A few rows, in colours of their own, with their components."""
    ax, counted, several = wide_axes(ax, width, SHAPE), mixture.components.counted, len(mixture) > 1
    kind = "probability" if counted else "density"
    dots = {"marker": "o", "markersize": 3} if counted else {}
    parted = []
    for row, (own, color) in enumerate(zip(mixture, _colors(len(mixture)), strict=True)):
        parts = np.exp(own.components.logs(x[None])[0]) * own.weights
        name, dashes = row_name(mixture.index, row) if several else kind, DASHES[row]
        ax.plot(x, parts.sum(axis=1), color=color, linewidth=1.8, linestyle=dashes, label=name, **dots)
        heavy = parts[:, own.weights[0] > FAINTEST]
        if heavy.shape[1] > 1:
            parted = ax.plot(x, heavy, color=color, linewidth=0.8, linestyle=dashes, alpha=0.6)
    ax.set(xlabel=literal(mixture.columns[0]), ylabel=kind, ylim=(0, None))
    if not several:
        if parted:
            parted[0].set_label(PARTS)
        return with_legend(plain(ax), 2) if parted else plain(ax)
    title = (row_title(mixture.index) or "row") + f" (thin: {PARTS})" * bool(parted)
    return with_legend(plain(ax), LEGEND_COLUMNS, literal(title), handle=HANDLE)


def _stacked(mixture: Distributions, x: Floats, ax: Any, width: float | str | None) -> Axes:
    """Many rows, each on a baseline of its own."""
    counted, table = mixture.components.counted, mixture.pdf(x)
    lines = lines_for(ax, width, [row_name(mixture.index, row) for row in range(len(table))], RIDGE, BETWEEN)
    peaks = np.array([own.max() for own in table])
    alike = bool(np.nanmin(peaks) >= ALIKE * np.nanmax(peaks))
    heights = lines.look.bar * table / (np.nanmax(peaks) if alike else peaks[:, None])
    for base, height in zip(lines.middles - lines.look.bar / 2, heights, strict=True):
        _draw_ridge(lines, x, base, height, counted)
    lines.ax.spines["left"].set_visible(False)
    lines.ax.set_xlim(*_around(x, counted))
    kind = "probabilities" if counted else "densities"
    scale = f"{kind} on one scale" if alike else f"{kind}, each on its own scale"
    return lines.done(f"{mixture.columns[0]} ({scale})", row_title(mixture.index))


def _draw_ridge(lines: Lines, x: Floats, base: float, height: Floats, counted: bool) -> None:
    lines.ax.hlines(base, *_around(x, counted), color=PALE, linewidth=0.6)
    if np.isnan(height).any():
        how = {"va": "bottom", "fontsize": lines.look.letters, "color": INK}
        lines.ax.text(x.min(), base, IMPOSSIBLE, **how)
    elif counted:
        lines.ax.vlines(x, base, base + height, color=FILLED, linewidth=2.4, clip_on=False)
    else:
        lines.ax.fill_between(x, base, base + height, color=REST, linewidth=0)
        lines.ax.plot(x, base + height, color=FILLED, linewidth=1.2, clip_on=False)


def _around(x: Floats, counted: bool) -> tuple[float, float]:
    """The ends of an axis with some room beside the outer numbers."""
    aside = 0.5 if counted else ASIDE * float(np.ptp(x))
    return float(x.min()) - aside, float(x.max()) + aside


def _check(mixture: Distributions, x: Any) -> None:
    """Raise an error about what cannot be drawn."""
    if not hasattr(mixture, "components"):
        expected = "expected the posterior of a continuous variable"
        raise TacitError(f"mixture is a {type(mixture).__name__}, {expected}; net.plot() draws a whole network")
    if isinstance(x, str):
        raise TacitError(f"x is {x!r}, expected the numbers to draw at; to write a file: .plot().figure.savefig({x!r})")
    if mixture.components.joint:
        advice = f"draw one of them, e.g. .column({mixture.columns[0]!r})"
        raise TacitError(f"a curve is of one number, and this is the joint distribution of {mixture.columns}; {advice}")
    if not 0 < len(mixture) <= MAX_CURVES:
        raise TacitError(f"a picture has 1 to {MAX_CURVES} rows, got {len(mixture)}; choose some, e.g. mixture[:3]")
    if np.isnan(mixture.weights).any(axis=1).all():
        raise TacitError("the evidence has probability 0 in all rows, so there is no density to draw")
    if x is None and not mixture.components.summarised:
        raise TacitError(f"where a Density lies is not known; give x=, the numbers to draw {mixture.columns[0]!r} at")


def _colors(count: int) -> list[Any]:
    """A colour for each row, from dark to light."""
    import matplotlib.pyplot as plt

    return [ACCENT] if count == 1 else list(plt.get_cmap("viridis")(np.linspace(0.0, 0.82, count)))

"""Pictures of the densities of continuous answers, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.grid import row_name
from tacit.views.axes import ACCENT, PALE, Axes, literal, plain, row_title, wide_axes, with_legend
from tacit.views.curves import Distributions, places

MAX_CURVES = 10  # rows whose densities are drawn
MAX_PARTED = 3  # rows whose components are drawn, too
FAINTEST = 1e-3  # weight of a component that has a line
DASHES = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))  # tell neighbours apart in grey print
SHAPE = 0.6  # height / width
LEGEND_COLUMNS = 4


def density(mixture: Distributions, x: Any = None, ax: Any = None, width: float | str | None = None) -> Axes:
    """The density of each row of a continuous answer, in bold; of up to three rows, also its weighted components.

    `x` are the numbers to draw it at; if left out, almost all of the probability is shown. Of counts, dots are their
    probabilities. `width` is that of a new figure, in centimetres or as a text such as "3.3in".

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("Fault", cpt=[0.1, 0.9])
    >>> net.add("heat", ["Fault"], cpt=tacit.Gaussian([90, 60], [8, 4]))
    >>> density(net.posterior("heat")).get_xlabel()
    'heat'
    """
    _check(mixture, x)
    ax, x = wide_axes(ax, width, SHAPE), np.asarray(places(mixture) if x is None else x, dtype=np.float64)
    counted, several = mixture.components.counted, len(mixture) > 1
    kind = "probability" if counted else "density"
    dots = {"marker": "o", "markersize": 3} if counted else {}
    parted = []
    for row, (own, color) in enumerate(zip(mixture, _colors(len(mixture)), strict=True)):
        parts = np.exp(own.components.logs(x[None])[0]) * own.weights
        name, dashes = row_name(mixture.index, row) if several else kind, DASHES[row % len(DASHES)]
        ax.plot(x, parts.sum(axis=1), color=color, linewidth=1.8, linestyle=dashes, label=name, **dots)
        heavy = parts[:, own.weights[0] > FAINTEST]
        if heavy.shape[1] > 1 and len(mixture) <= MAX_PARTED:
            parted = ax.plot(x, heavy, color=color, linewidth=0.8, linestyle=dashes, alpha=0.6)
    if parted:
        ax.plot([], [], color=PALE, linewidth=0.8, label="components, weighted")
    ax.set(xlabel=literal(mixture.columns[0]), ylabel=kind, ylim=(0, None))
    if not several and not parted:
        return plain(ax)
    return with_legend(plain(ax), LEGEND_COLUMNS, literal(row_title(mixture.index) or "row") if several else "")


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
    if x is None and not mixture.components.summarised:
        raise TacitError(f"where a Density lies is not known; give x=, the numbers to draw {mixture.columns[0]!r} at")


def _colors(count: int) -> list[Any]:
    """A colour for each row, from dark to light."""
    import matplotlib.pyplot as plt

    return [ACCENT] if count == 1 else list(plt.get_cmap("viridis")(np.linspace(0.0, 0.82, count)))

"""Pictures of the densities of continuous answers, with matplotlib."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.grid import row_name
from tacit.views.axes import Axes, axes_of, plain, with_legend
from tacit.views.curves import Distributions, places

MAX_CURVES = 10  # rows whose densities are drawn
FAINTEST = 1e-3  # weight of a component that has a line


def density(mixture: Distributions, x: Any = None, ax: Any = None) -> Axes:
    """The density of each row of a continuous answer, in bold, above those of its weighted components, which are faint.

    `x` are the numbers to draw it at; if left out, almost all of the probability is shown. Of counts, dots are their
    probabilities.

    >>> import tacit
    >>> net = tacit.Network()
    >>> net.add("Fault", cpt=[0.1, 0.9])
    >>> net.add("heat", ["Fault"], cpt=tacit.Gaussian([90, 60], [8, 4]))
    >>> density(net.posterior("heat")).get_xlabel()
    'heat'
    """
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
    ax, x = axes_of(ax), np.asarray(places(mixture) if x is None else x, dtype=np.float64)
    dots = {"marker": "o", "markersize": 3} if mixture.components.counted else {}
    for row, own in enumerate(mixture):
        parts = np.exp(own.components.logs(x[None])[0]) * own.weights
        (line,) = ax.plot(x, parts.sum(axis=1), linewidth=2, label=row_name(mixture.index, row), **dots)
        heavy = parts[:, own.weights[0] > FAINTEST]
        if heavy.shape[1] > 1:
            ax.plot(x, heavy, color=line.get_color(), linewidth=0.8, alpha=0.5)
    ax.set(xlabel=mixture.columns[0], ylabel="probability" if dots else "density", ylim=(0, None))
    return with_legend(plain(ax), len(mixture), title="row") if len(mixture) > 1 else plain(ax)

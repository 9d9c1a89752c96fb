"""The axes that pictures of queries are drawn on, of matplotlib."""

from __future__ import annotations

from typing import Any

from tacit.base.errors import TacitError
from tacit.base.version import how_to_install


def axes(ax: Any, size: tuple[float, float] = (5, 4), **how: Any) -> Any:
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


def plain(ax: Any) -> Any:
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def with_legend(ax: Any, columns: int, title: str | None = None) -> Any:
    """Axes with their legend above them, where it hides nothing."""
    ax.legend(frameon=False, ncols=columns, title=title, loc="lower center", bbox_to_anchor=(0.5, 1))
    return ax

"""Figures of matplotlib whose files journals take. Imported where one is made, since matplotlib is optional."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from tacit.views.images import LETTERS_KEPT


class PaperFigure(Figure):
    """A figure of `tacit.plot`: the letters of its PDF files stay letters."""

    def savefig(self, *args: Any, **how: Any) -> None:
        """Save as `Figure.savefig` does, but with fonts that journals take."""
        with rc_context(LETTERS_KEPT):
            super().savefig(*args, **how)

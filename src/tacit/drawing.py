"""Networks and circuits as SVG, PNG and PDF: `draw`, the `Drawing` it returns, and what it warns of."""

from tacit.views.drawing import Drawing, draw
from tacit.views.fitting import SmallLettersWarning

__all__ = ["Drawing", "SmallLettersWarning", "draw"]

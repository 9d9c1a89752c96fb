"""Networks and circuits as SVG: `draw`, and the `Drawing` it returns."""

from tacit.views.svg import Drawing, draw

__all__ = ["Drawing", "draw"]

"""Networks and circuits as SVG, PNG and PDF: `draw`, and the `Drawing` it returns."""

from tacit.views.drawing import Drawing, draw

__all__ = ["Drawing", "draw"]

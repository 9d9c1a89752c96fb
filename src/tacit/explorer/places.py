"""Where the boxes of a network go on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tacit.model import Model


def places(net: Model, titles: Sequence[str], states: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Boxes and edges, in pixels."""
    boxes = [[0, 100 * i, 160, 24 + 16 * len(own)] for i, own in enumerate(states)]
    return {"width": 160, "height": 100 * len(boxes), "boxes": boxes, "edges": []}

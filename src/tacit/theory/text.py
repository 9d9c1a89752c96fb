"""Selections and multilinear functions in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.model import Model
from tacit.variable import describe

NEGLIGIBLE = 1e-13  # beside the largest coefficient: what rounding leaves of a 0


def polynomial(coefficients: Mapping[tuple[str, ...], float]) -> str:
    """A multilinear function, without what is 0.

    >>> polynomial({(): 0.25, ("A",): -1.0, ("B",): 0.0, ("A", "B"): 0.5})
    '0.25 - A + 0.5 A B'
    """
    text, least = "", NEGLIGIBLE * max(map(abs, coefficients.values()))
    for names, value in coefficients.items():
        if abs(value) > least:
            number = "" if names and abs(value) == 1 else f"{abs(value):.6g}"
            sign = (" - " if value < 0 else " + ") if text else ("-" if value < 0 else "")
            text += sign + " ".join([number, *names] if number else names)
    return text or "0"


def selected_text(net: Model, selection: Mapping[str, NDArray[Any]], limit: int = 6) -> str:
    """Which table rules at each testing node: "B: plus at A='true', minus at A='false'"."""
    nodes = list(selection)
    shown = [f"{node}: {_sides(net, node, selection[node])}" for node in nodes[:limit]]
    if len(nodes) > limit:
        shown.append(f"and {len(nodes) - limit} more")
    return "; ".join(shown) or "no testing node"


def _sides(net: Model, node: str, plus: NDArray[Any], limit: int = 8) -> str:
    if plus.all() or not plus.any():
        return "plus" if plus.all() else "minus"
    parents = [net.variable(p) for p in net.parents(node)]
    states: Sequence[tuple[int, ...]] = list(np.ndindex(plus.shape))
    shown = [f"{'plus' if plus[u] else 'minus'} at {describe(parents, u)}" for u in states[:limit]]
    if len(states) > limit:
        shown.append(f"and {len(states) - limit} more")
    return ", ".join(shown)

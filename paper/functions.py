"""The functions of two inputs that the paper fits, on its grid."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

GRID = 32

FUNCTIONS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    "f1": lambda x, y: np.sin(np.pi * (1 - x) * (1 - y)),
    "f2": lambda x, y: np.sin(np.pi / 2 * (2 - x - y)),
    "f3": lambda x, y: 0.5 * np.exp(-5 * (x - 0.5) ** 2 - 5 * (y - 0.5) ** 2),
    "f4": lambda x, y: 1 / (1 + np.exp(-32 * (y - 0.5))),
    "f5": lambda x, y: 0.5 * x * y * (x + y),
    "g1": lambda x, y: 0.5 + 0.5 * np.sin(2 * np.pi * x),
    "g2": lambda x, y: np.exp(np.sin(np.pi * (x + y)) - 1),
}

# as a page shows them
FORMULAS: Mapping[str, str] = {
    "f1": "sin(π(1 − x)(1 − y))",
    "f2": "sin(½π(2 − x − y))",
    "f3": "½ exp(−5(x − ½)² − 5(y − ½)²)",
    "f4": "1 / (1 + exp(−32(y − ½)))",
    "f5": "½ xy(x + y)",
    "g1": "½ + ½ sin(2πx)",
    "g2": "exp(sin(π(x + y)) − 1)",
}


def examples(function: str) -> tuple[dict[str, Floats], Floats]:
    """The inputs of the grid as evidence on E1 and E2, and the labels."""
    steps = np.linspace(0, 1, GRID)
    x, y = (axis.ravel() for axis in np.meshgrid(steps, steps, indexing="ij"))
    return {"E1": x, "E2": y}, FUNCTIONS[function](x, y)

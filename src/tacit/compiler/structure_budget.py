"""What structured elimination is allowed, and where it gave up. Its code, which loads numba, is in `structured`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from tacit.compiler.operations import Axis


@dataclass(frozen=True)
class Structure:
    """How far structured elimination goes.

    `budgets` of nodes are tried in turn, and `most_factors` that depend on evidence are multiplied without rescaling. A
    part that takes fewer multiply-adds than `worth` with tables is left to them. So is one where diagrams end in more
    than so many `numbers` for each node: where there is structure, few are different. Min-fill `orders` that were found
    once are kept for the next run.
    """

    budgets: tuple[int, ...]
    most_factors: int
    worth: float = 0.0
    numbers: float = math.inf
    orders: dict[tuple[int, ...], list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """How far the last attempt came, and how many numbers there were for each node."""

    axis: Axis | None
    nodes: int
    numbers: float

    def __str__(self) -> str:
        at = "" if self.axis is None else f" at {self.axis!r}"
        return f"structured elimination gave up{at} after {self.nodes:,} nodes"

"""Interval variables: edges, as people give them, and the names of the intervals between them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.text import shown

Edges = tuple[float, ...]


def checked_edges(edges: Any) -> Edges:
    """Edges of intervals: at least two numbers, each larger than the one before; only the ends may be infinite.

    >>> checked_edges([0, 18, float("inf")])
    (0.0, 18.0, inf)
    """
    numbers = _numbers(edges)
    if len(numbers) < 2:
        raise NetworkError(f"bins has {len(numbers)} of the edges that it needs; expected at least two, as in [0, 10]")
    for place, edge in enumerate(numbers):
        if math.isnan(edge):
            raise NetworkError(f"edge {place} of bins is NaN; expected numbers")
        if math.isinf(edge) and (place not in (0, len(numbers) - 1) or (edge > 0) == (place == 0)):
            raise NetworkError(f"edge {place} of bins is {edge}; only the first may be -inf, and the last one inf")
    for place, (low, high) in enumerate(pairwise(numbers), start=1):
        if not low < high:
            problem = f"edge {place} of bins is {number_text(high)}, after {number_text(low)}"
            raise NetworkError(f"{problem}; each edge must be larger than the one before")
    return numbers


def _numbers(edges: Any) -> Edges:
    problem = f"bins must be a sequence of edges, got {shown(edges)}"
    if isinstance(edges, str | bytes | Mapping | Set) or not isinstance(edges, Iterable):
        raise NetworkError(problem)
    values = list(edges)
    if any(isinstance(value, str | bytes | bool | np.bool_) for value in values):
        raise NetworkError(f"{problem}; expected numbers")
    try:
        return tuple(float(value) + 0.0 for value in values)  # -0.0 becomes 0.0, which is named "0"
    except (TypeError, ValueError, OverflowError):
        raise NetworkError(f"{problem}; expected numbers") from None


def interval_names(edges: Sequence[float]) -> tuple[str, ...]:
    """The names of the intervals between edges: half open, but for the last one, which has both of its ends.

    >>> interval_names((float("-inf"), 3, 7.5, 10))
    ('(-inf, 3)', '[3, 7.5)', '[7.5, 10]')
    """
    last = len(edges) - 2
    return tuple(
        f"{'(' if low == -math.inf else '['}{number_text(low)}, {number_text(high)}"
        f"{']' if place == last and high < math.inf else ')'}"
        for place, (low, high) in enumerate(pairwise(edges))
    )


def number_text(number: float) -> str:
    """The shortest text of a float that no other float has.

    >>> number_text(18.0), number_text(0.1), number_text(float("inf"))
    ('18', '0.1', 'inf')
    """
    return repr(float(number)).removesuffix(".0")

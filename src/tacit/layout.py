"""Where the nodes of a drawing go: rows from top to bottom, long edges in rows of their own, nothing on top of another.

Edges lead from lower to higher numbers: parents first.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.floats import Floats

Point = tuple[float, float]
Edge = tuple[int, int]


def rows(count: int, edges: Sequence[Edge]) -> list[int]:
    """The row of every node: one below the lowest of those above it; roots come down to where they are used.

    >>> rows(4, [(0, 2), (1, 3), (2, 3)])
    [0, 1, 1, 2]
    """
    found = [0] * count
    above: dict[int, list[int]] = {i: [] for i in range(count)}
    for tail, head in edges:
        above[head].append(tail)
    for i in range(count):
        found[i] = max((found[j] + 1 for j in above[i]), default=0)
    lowest = {i: min((found[head] for tail, head in edges if tail == i), default=found[i] + 1) for i in range(count)}
    return [lowest[i] - 1 if not above[i] else found[i] for i in range(count)]


def chains(rows: Sequence[int], edges: Sequence[Edge]) -> tuple[list[int], list[Edge], list[list[int]]]:
    """Edges as steps from one row to the next: the rows with the added places, the steps, and the places of every edge.

    >>> chains([0, 1, 2], [(0, 1), (0, 2)])
    ([0, 1, 2, 1], [(0, 1), (0, 3), (3, 2)], [[0, 1], [0, 3, 2]])
    """
    layers, links, paths = list(rows), [], []
    for tail, head in edges:
        path = [tail, *range(len(layers), len(layers) + rows[head] - rows[tail] - 1), head]
        layers += range(rows[tail] + 1, rows[head])
        links += list(itertools.pairwise(path))
        paths.append(path)
    return layers, links, paths


def apart(x: Floats, widths: Floats, layers: NDArray[np.int64], gap: float) -> Floats:
    """The places nearest to `x` at which no two nodes of a row overlap, their order kept."""
    moved = x.copy()
    for row in range(int(layers.max()) + 1):
        here = np.flatnonzero(layers == row)
        here = here[np.argsort(x[here], kind="stable")]
        moved[here] = spread(x[here], widths[here], gap)
    return moved


def spread(x: Floats, widths: Floats, gap: float, weights: Floats | None = None) -> Floats:
    """The places nearest to `x` for nodes side by side, from left to right; `weights` say how much each one minds.

    >>> spread(np.array([0.0, 0.0]), np.array([10.0, 20.0]), gap=5.0).tolist()
    [-10.0, 10.0]
    """
    needed = np.concatenate([[0.0], np.cumsum((widths[:-1] + widths[1:]) / 2 + gap)])
    nearest: Floats = increasing(x - needed, np.ones(len(x)) if weights is None else weights) + needed
    return nearest


def increasing(x: Floats, weights: Floats) -> Floats:
    """The non-decreasing numbers nearest to `x`: neighbours that go down are pooled to their mean.

    SciPy has this, too, but takes long to load, and networks are shown where nothing else needs it.

    >>> increasing(np.array([1.0, 5.0, 2.0, 9.0]), np.array([1.0, 2.0, 1.0, 1.0])).tolist()
    [1.0, 4.0, 4.0, 9.0]
    """
    pools: list[tuple[float, float, int]] = []  # mean, weight, how many
    for mean, weight in zip(x.tolist(), weights.tolist(), strict=True):
        count = 1
        while pools and pools[-1][0] > mean:
            before, heavy, many = pools.pop()
            mean = (before * heavy + mean * weight) / (heavy + weight)
            weight, count = heavy + weight, many + count
        pools.append((mean, weight, count))
    return np.repeat(np.array([mean for mean, _, _ in pools]), [count for _, _, count in pools])

"""Where EM starts: rows that are far from each other, after k-means++ (Arthur and Vassilvitskii, 2007)."""

from __future__ import annotations

import numpy as np

from tacit.base.floats import Floats

JITTER = 0.1  # standard deviations that seeds of equal rows are apart: EM would never tell them from each other


def seeds(points: Floats, count: int, rng: np.random.Generator) -> Floats:
    """So many (count, columns) of some points (rows, columns), chosen with a chance that grows with their distance.

    Columns have variance 1, and NaN where a number is missing.
    """
    known = points[~np.isnan(points).all(axis=1)]
    if not len(known):
        return rng.standard_normal((count, points.shape[1]))
    known = np.nan_to_num(known)
    chosen = np.empty((count, known.shape[1]))
    distances = np.full(len(known), np.inf)
    for i in range(count):
        row = _row(distances, rng)
        chosen[i] = known[row]
        if distances[row] == 0.0:
            chosen[i] += JITTER * rng.standard_normal(known.shape[1])
        distances = np.minimum(distances, ((known - chosen[i]) ** 2).sum(axis=1))
    return chosen


def _row(distances: Floats, rng: np.random.Generator) -> int:
    """A row, with a chance in proportion to its squared distance from those that were chosen before."""
    total = distances.sum()
    if not 0 < total < np.inf:
        return int(rng.integers(len(distances)))
    return int(np.searchsorted(distances.cumsum(), rng.random() * total, side="right").clip(max=len(distances) - 1))

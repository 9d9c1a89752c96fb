"""The normal distribution of one column, for each of several components."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from tacit.base.double_double import Twofold, log
from tacit.base.floats import Floats

BLOCK = 2**15  # log-densities that stay in cache while all operations are done on them
MIN_ROWS = 2**8  # of a block
HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)


def blocks(rows: int, components: int) -> Iterator[slice]:
    """Rows in blocks whose log-densities stay in cache."""
    size = max(MIN_ROWS, BLOCK // max(components, 1))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def normal_terms(mean: Floats, sd: Floats) -> tuple[Floats, Floats, Floats]:
    """Of each component, the numbers of its log-density, `top - (scale * (x - mean))**2`: mean, scale and top."""
    return mean, np.sqrt(0.5) / sd, -HALF_LOG_TAU - np.log(sd)


def normal_logs(column: Floats, mean: Floats, sd: Floats) -> Floats:
    """The log-densities (components, rows) of a column (rows,); 0 where it is missing."""
    mean, scale, top = (term[:, None] for term in normal_terms(mean, sd))
    logs = np.empty((len(mean), len(column)))
    with np.errstate(over="ignore"):  # so far off that the log-density is -inf
        for block in blocks(len(column), len(mean)):
            x, out = column[block], logs[:, block]
            np.subtract(x, mean, out=out)
            out *= scale
            out *= out
            np.subtract(top, out, out=out)
            if (missing := np.isnan(x)).any():
                out[:, missing] = 0.0
    return logs


def exact_normal_logs(column: Floats | Twofold, mean: Floats, sd: Floats) -> Twofold:
    """The log-densities of `normal_logs` with twice the digits."""
    off = (Twofold.of(-mean[:, None]) + column) / sd[:, None]
    return off * off * -0.5 - log(sd)[:, None] - HALF_LOG_TAU


def normal_scores(column: Floats, mean: Floats, sd: Floats) -> dict[str, Floats]:
    """The derivatives of `normal_logs` by the means and the standard deviations, each (components, rows)."""
    scale = sd[:, None]
    off = (column - mean[:, None]) / scale
    scores = {"mean": off / scale, "sd": (off - 1) * (off + 1) / scale}
    return {part: np.where(np.isnan(column), 0.0, score) for part, score in scores.items()}

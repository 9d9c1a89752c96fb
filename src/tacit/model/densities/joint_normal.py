"""The normal distribution of several columns, for each of several components."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.base.double_double import Twofold, log, two_sum
from tacit.base.floats import Floats
from tacit.model.densities.missing import patterns
from tacit.model.densities.normal import HALF_LOG_TAU, blocks

Pattern = tuple[NDArray[np.intp], slice | NDArray[np.intp]]  # the columns that are observed, and in which rows
MOST_TOGETHER = 2**20  # numbers in the covariances that are factored together


def joint_logs(values: Floats, mean: Floats, cov: Floats) -> Floats:
    """The log-densities (components, rows) of the columns of each row (rows, columns) that are not missing."""
    logs = np.empty((len(mean), len(values)))
    for alike in _of_one_size(patterns(values), cov.size):
        choices = np.stack([observed for observed, _ in alike])
        factors, pivots = _factors(cov[:, choices[:, :, None], choices[:, None, :]])
        for i, (observed, rows) in enumerate(alike):
            part = values if isinstance(rows, slice) else values[rows][:, observed]
            own = [column[:, i] for column in factors], [pivot[:, i, None] for pivot in pivots]
            logs[:, rows] = _observed_logs(part, mean[:, observed], *own)
    return logs


def _of_one_size(found: Iterable[Pattern], size: int) -> Iterator[list[Pattern]]:
    """Patterns with as many columns observed, some at a time, which are factored faster together.

    `size` is that of the covariances of one pattern, at most.
    """
    by_count: dict[int, list[Pattern]] = {}
    for observed, rows in found:
        by_count.setdefault(len(observed), []).append((observed, rows))
    together = max(1, MOST_TOGETHER // size)
    for alike in by_count.values():
        yield from (alike[start : start + together] for start in range(0, len(alike), together))


def _factors(cov: Floats) -> tuple[list[Floats], list[Floats]]:
    """What `_triangular` makes of covariances (components, patterns, columns, columns), rounded."""
    components, together, columns = cov.shape[:3]
    factors, pivots = _triangular(cov.reshape(components * together, columns, columns))  # floats would lose digits
    lower = [one.high.reshape(components, together, one.high.shape[1]) for one in factors]
    return lower, [one.high.reshape(components, together) for one in pivots]


def _observed_logs(values: Floats, mean: Floats, factors: list[Floats], pivots: list[Floats]) -> Floats:
    """The log-densities (components, rows) of values of which none is missing."""
    weights = [0.5 / pivot for pivot in pivots]
    top = -HALF_LOG_TAU * len(pivots) - 0.5 * sum(map(np.log, pivots))
    logs = np.empty((len(mean), len(values)))
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks(len(values), mean.size):
            out = logs[:, block]
            out[...] = top
            left = [column[block] - mean[:, i, None] for i, column in enumerate(values.T)]
            for i, (column, weight) in enumerate(zip(factors, weights, strict=True)):
                for j, later in enumerate(left[i + 1 :]):
                    later -= column[:, j, None] * left[i]
                square = left[i] * left[i]
                square *= weight
                out -= square
            np.fmax(out, -np.inf, out=out)  # NaN is so far off that something overflowed
    return logs


def joint_scores(values: Floats, mean: Floats, cov: Floats) -> dict[str, Floats]:
    """The derivatives of `joint_logs` by the means, (components, columns, rows), and by the covariances.

    These, (components, columns, columns, rows), are by an entry and its mirror image together.
    """
    columns, rows = mean.shape[1], len(values)
    by_mean, by_cov = np.zeros((*mean.shape, rows)), np.zeros((*cov.shape, rows))
    twice = (2.0 - np.eye(columns))[..., None]
    for observed, some in patterns(values):
        within = np.arange(rows)[some]
        off = values[some][:, observed].T - mean[:, observed, None]  # (components, observed, rows)
        precision = np.linalg.inv(cov[:, observed[:, None], observed])
        pulled = precision @ off
        by_mean[:, observed[:, None], within] = pulled
        squares = pulled[:, :, None] * pulled[:, None] - precision[..., None]
        by_cov[:, observed[:, None, None], observed[:, None], within] = squares / 2
    return {"mean": by_mean, "cov": by_cov * twice}


def exact_joint_logs(values: Floats, mean: Floats, cov: Floats) -> Twofold:
    """The log-densities of `joint_logs` with twice the digits."""
    logs = Twofold.of(np.empty((len(mean), len(values))))
    for observed, rows in patterns(values):
        part = values[rows][:, observed]
        exact = _exact_observed_logs(part, mean[:, observed], cov[:, observed[:, None], observed])
        logs.high[:, rows], logs.low[:, rows] = exact
    return logs


def _exact_observed_logs(values: Floats, mean: Floats, cov: Floats) -> Twofold:
    logs = Twofold.of(np.full((len(mean), len(values)), -HALF_LOG_TAU * values.shape[1]))
    left = [two_sum(column, -mean[:, i, None]) for i, column in enumerate(values.T)]
    for i, (column, pivot) in enumerate(zip(*_triangular(cov), strict=True)):
        for j in range(i + 1, len(left)):
            left[j] = left[j] - column[:, j - i - 1, None] * left[i]
        logs = logs - (left[i] * left[i] / pivot[:, None] + log(pivot)[:, None]) * 0.5
    return logs


def _triangular(cov: Floats) -> tuple[list[Twofold], list[Twofold]]:
    """Each matrix as L D L', of twice the digits: the columns of L below the diagonal, which is 1, and D."""
    factors: list[Twofold] = []
    pivots: list[Twofold] = []
    rest = Twofold.of(cov)
    for _ in range(cov.shape[1]):
        pivot, below = rest[:, 0, 0], rest[:, 1:, 0]
        factors.append(below / pivot[:, None])
        pivots.append(pivot)
        rest = rest[:, 1:, 1:] - factors[-1][:, :, None] * below[:, None, :]
    return factors, pivots


def conditional(values: Floats, wanted: list[int], mean: Floats, cov: Floats) -> tuple[Floats, Floats]:
    """The means (rows, components, wanted) and covariances (components, wanted, wanted) of columns given others.

    The rows must agree in which columns are missing.
    """
    observed = np.flatnonzero(~np.isnan(values[0])) if len(values) else np.empty(0, dtype=np.intp)
    order, given = np.array([*observed, *wanted], dtype=np.intp), len(observed)
    factors = np.linalg.cholesky(cov[:, order[:, None], order])
    cross, rest = factors[:, given:, :given], factors[:, given:, given:]
    gain = np.linalg.solve(np.swapaxes(factors[:, :given, :given], 1, 2), np.swapaxes(cross, 1, 2))
    off = values[:, None, observed] - mean[:, observed]  # (rows, components, observed)
    means = mean[:, wanted] + np.einsum("rco,cow->rcw", off, gain)
    return means, np.einsum("cij,ckj->cik", rest, rest)

"""The normal distribution of several columns, for each of several components."""

from __future__ import annotations

import numpy as np

from tacit.base.double_double import Twofold, log, two_sum
from tacit.base.floats import Floats
from tacit.model.densities.missing import patterns
from tacit.model.densities.normal import HALF_LOG_TAU, blocks


def joint_logs(values: Floats, mean: Floats, cov: Floats) -> Floats:
    """The log-densities (components, rows) of the columns of each row (rows, columns) that are not missing."""
    logs = np.empty((len(mean), len(values)))
    for observed, rows in patterns(values):
        part = values if isinstance(rows, slice) else values[rows][:, observed]
        logs[:, rows] = _observed_logs(part, mean[:, observed], cov[:, observed[:, None], observed])
    return logs


def _observed_logs(values: Floats, mean: Floats, cov: Floats) -> Floats:
    """The log-densities (components, rows) of values of which none is missing."""
    factors = np.linalg.cholesky(cov)[..., None]
    scale = np.diagonal(factors, axis1=1, axis2=2).reshape(mean.shape)
    top = -HALF_LOG_TAU * values.shape[1] - np.log(scale).sum(axis=1, keepdims=True)
    logs = np.empty((len(mean), len(values)))
    with np.errstate(over="ignore", invalid="ignore"):
        for block in blocks(len(values), mean.size):
            out, solved = logs[:, block], list[Floats]()
            out[...] = 0.0
            for i in range(values.shape[1]):
                off = values[block, i] - mean[:, i, None]
                for j, before in enumerate(solved):
                    off -= factors[:, i, j] * before
                off /= scale[:, i, None]
                solved.append(off)
                out -= off * off
            out *= 0.5
            out += top
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
    factors, pivots = _triangular(cov)
    logs = Twofold.of(np.full((len(mean), len(values)), -HALF_LOG_TAU * values.shape[1]))
    solved: list[Twofold] = []
    for i, (row, pivot) in enumerate(zip(factors, pivots, strict=True)):
        off = two_sum(values[:, i], -mean[:, i, None])
        for factor, before in zip(row, solved, strict=True):
            off = off - factor[:, None] * before
        solved.append(off)
        logs = logs - (off * off / pivot[:, None] + log(pivot)[:, None]) * 0.5
    return logs


def _triangular(cov: Floats) -> tuple[list[list[Twofold]], list[Twofold]]:
    """Each matrix as L D L', of twice the digits: the rows of L left of the diagonal, which is 1, and D."""
    factors: list[list[Twofold]] = []
    pivots: list[Twofold] = []
    for i in range(cov.shape[1]):
        scaled: list[Twofold] = []  # the row of L D
        for j in range(i):
            scaled.append(_reduced(cov[:, i, j], scaled, factors[j]))
        factors.append([entry / pivot for entry, pivot in zip(scaled, pivots, strict=True)])
        pivots.append(_reduced(cov[:, i, i], scaled, factors[i]))
    return factors, pivots


def _reduced(entries: Floats, scaled: list[Twofold], factors: list[Twofold]) -> Twofold:
    """Entries of a matrix, less what the columns before contribute to them."""
    rest = Twofold.of(entries)
    for one, factor in zip(scaled, factors, strict=True):
        rest = rest - one * factor
    return rest


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

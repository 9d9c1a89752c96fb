"""What moments say about each kind of density: their statistic, the log-likelihood, and the best numbers.

A Gaussian is learned from the moments of its values, a log-normal from those of their logarithms, and of a Poisson only
the mean is of use.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.estimating.moments import Moments, weighted
from tacit.model.densities import AnyDensity, Gaussian, LogNormal, Poisson
from tacit.model.densities.missing import patterns

LOG_TAU = math.log(2 * math.pi)


def statistic(density: AnyDensity, values: Floats) -> Floats:
    """What the moments are of: (rows, columns), NaN where it is missing."""
    return np.log(values) if isinstance(density, LogNormal) else values


def log_base(density: AnyDensity, values: Floats) -> Floats:
    """The part (rows,) of the log-density of values without gaps that does not depend on any numbers."""
    if isinstance(density, LogNormal):
        return -np.log(values[:, 0])
    if isinstance(density, Poisson):
        from scipy.special import gammaln  # takes longer to load than all of tacit

        return np.asarray(-gammaln(values[:, 0] + 1))
    return np.zeros(len(values))


def log_likelihood(density: AnyDensity, moments: Moments) -> float:
    """The log-likelihood of rows, with these moments, whose component is known."""
    seen = np.flatnonzero(moments.weight > 0)
    weight, mean = moments.weight[seen], moments.mean[seen]
    if isinstance(density, Poisson):
        rate = density.flat("rate")[seen]
        return float((weight * (mean[:, 0] * np.log(rate) - rate)).sum()) + moments.log_base
    precision, log_determinant = _precision(covariances(density)[seen])
    off = mean - locations(density)[seen]
    squares = np.einsum("cij,cji->c", precision, moments.scatter[seen])
    squares += weight * np.einsum("ci,cij,cj->c", off, precision, off)
    constant = weight * (mean.shape[1] * LOG_TAU + log_determinant)
    return float(-0.5 * (constant + squares).sum()) + moments.log_base


def locations(density: AnyDensity) -> Floats:
    """The mean of the statistic (components, columns)."""
    name = "rate" if isinstance(density, Poisson) else "mean"
    return density.flat(name).reshape(density.components, density.dimension)


def covariances(density: AnyDensity) -> Floats:
    """The covariance of the statistic (components, columns, columns)."""
    if isinstance(density, Poisson):
        return density.flat("rate")[:, None, None]
    if isinstance(density, Gaussian) and density.cov is not None:
        return density.flat("cov")
    return density.flat("sd")[:, None, None] ** 2


def parts_of(density: AnyDensity, mean: Floats, cov: Floats) -> dict[str, Floats]:
    """The parts of a normal density, with one axis for the components, by its means and covariances."""
    if isinstance(density, Gaussian) and density.cov is not None:
        return {"mean": mean, "cov": cov}
    return {"mean": mean[:, 0], "sd": np.sqrt(cov[:, 0, 0])}


def _precision(cov: Floats) -> tuple[Floats, Floats]:
    if cov.shape[-1] == 1:
        return 1.0 / cov, np.log(cov[:, 0, 0])
    factors = np.linalg.cholesky(cov)
    half = np.linalg.inv(factors)
    return np.swapaxes(half, 1, 2) @ half, 2 * np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)


def expected_moments(density: AnyDensity, values: Floats, weights: Floats) -> Moments:
    """The moments of values (rows, columns) with a weight in each component (components, rows).

    What is missing of a row counts as it is expected given the rest of the row; a row without values does not count.
    """
    values = statistic(density, values)
    gaps = np.isnan(values)
    if not gaps.any():
        return weighted(values.T, weights)
    total = Moments.none(len(weights), values.shape[1])
    for observed, rows in patterns(values):
        some, own = values[rows], weights[:, rows]
        if len(observed) == values.shape[1]:
            total += weighted(some.T, own)
        elif len(observed):
            total += _completed(density, some, own, np.flatnonzero(gaps[rows][0]))
    return total


def _completed(density: AnyDensity, values: Floats, weights: Floats, missing: NDArray[np.intp]) -> Moments:
    """The moments of rows that all miss the same columns."""
    assert isinstance(density, Gaussian), "only Gaussians have several columns"
    means, covs = density.conditional(missing.tolist(), values)
    whole = np.repeat(values.T[None], len(weights), axis=0)
    whole[:, missing] = np.moveaxis(means, 0, 2)
    moments = weighted(whole, weights)
    moments.scatter[:, missing[:, None], missing] += moments.weight[:, None, None] * covs
    return moments

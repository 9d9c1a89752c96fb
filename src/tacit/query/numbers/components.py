"""What mixtures are made of: the densities of all components, one for each joint state of a node's parents.

Parameters are (rows, components, ...), or (1, components, ...) where all rows share them. What is computed at numbers
x, (rows, k) or (1, k), is (rows, k, components), or (1, k, components) where neither differs by row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from scipy.special import gammaln, ndtr, pdtr

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.query.numbers.quantiles import gaussian_quantiles, poisson_quantiles

LOG_ROOT_2PI = 0.5 * np.log(2 * np.pi)
STIRLING = (1 / 1188, -1 / 1680, 1 / 1260, -1 / 360, 1 / 12)  # of log k!, by powers of 1/k^2, the highest one first
MIN_STIRLING = 16  # from here on, these are all digits


class Components(ABC):
    """The densities of all components, in each row."""

    joint = False  # whether they are densities of several columns
    summarised = True  # whether more is known than densities
    counted = False  # whether the numbers are counts, with nothing between them

    @property
    def shared(self) -> bool:
        """Whether all rows have the same components."""
        return all(len(part) == 1 for part in vars(self).values() if isinstance(part, np.ndarray))

    def rows(self, place: Any) -> Self:
        """The components of some rows."""
        return type(self)(*(_of_rows(part, place) for part in vars(self).values()))

    @abstractmethod
    def logs(self, x: Floats) -> Floats:
        """The logarithm of each component's density."""

    @abstractmethod
    def cumulative(self, x: Floats) -> Floats:
        """Each component's probability of at most x."""

    @abstractmethod
    def quantile(self, weights: Floats, level: float) -> Floats:
        """The quantile (rows,) of the mixture with these weights (rows, components), which are numbers."""

    @abstractmethod
    def means(self) -> Floats:
        """The mean of each component: (rows | 1, components)."""

    @abstractmethod
    def variances(self) -> Floats:
        """The variance of each component: (rows | 1, components)."""


@dataclass(frozen=True, eq=False)
class GaussianComponents(Components):
    """Gaussians, by mean and standard deviation (rows | 1, components)."""

    mean: Floats
    sd: Floats

    def _standardised(self, x: Floats) -> Floats:
        return np.asarray((x[:, :, None] - self.mean[:, None]) / self.sd[:, None])

    def logs(self, x: Floats) -> Floats:
        return np.asarray(-0.5 * self._standardised(x) ** 2 - (np.log(self.sd) + LOG_ROOT_2PI)[:, None])

    def cumulative(self, x: Floats) -> Floats:
        return np.asarray(ndtr(self._standardised(x)))

    def quantile(self, weights: Floats, level: float) -> Floats:
        return gaussian_quantiles(weights, self.mean, self.sd, level)

    def means(self) -> Floats:
        return self.mean

    def variances(self) -> Floats:
        return self.sd**2


@dataclass(frozen=True, eq=False)
class LogNormalComponents(Components):
    """Numbers whose logarithms are Gaussian, by mean and standard deviation of these (rows | 1, components)."""

    mean: Floats
    sd: Floats

    def logs(self, x: Floats) -> Floats:
        log = _log(x)
        finite = np.isfinite(log)
        log = np.where(finite, log, 0.0)
        logs = GaussianComponents(self.mean, self.sd).logs(log) - log[:, :, None]
        return np.where(finite[:, :, None], logs, -np.inf)

    def cumulative(self, x: Floats) -> Floats:
        return GaussianComponents(self.mean, self.sd).cumulative(_log(x))

    def quantile(self, weights: Floats, level: float) -> Floats:
        return np.asarray(np.exp(gaussian_quantiles(weights, self.mean, self.sd, level)))

    def means(self) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(self.mean + 0.5 * self.sd**2))

    def variances(self) -> Floats:
        with np.errstate(over="ignore"):
            return np.asarray(np.expm1(self.sd**2) * self.means() ** 2)


@dataclass(frozen=True, eq=False)
class PoissonComponents(Components):
    """Counts, by their rate (rows | 1, components). The density is the probability of a count, and 0 between counts."""

    rate: Floats
    counted = True

    def logs(self, x: Floats) -> Floats:
        counts = (x >= 0) & (x == np.floor(x)) & np.isfinite(x)
        rate, k = self.rate[:, None], np.where(counts, x, 0.0)[:, :, None]
        some = np.maximum(k, 1.0)
        # log(rate^k e^-rate / k!), without the difference of large numbers that this is
        logs = (some - rate) - some * np.log1p((some - rate) / rate) - _log_excess(some)
        return np.where(counts[:, :, None], np.where(k == 0, -rate, logs), -np.inf)

    def cumulative(self, x: Floats) -> Floats:
        k = np.floor(x)[:, :, None]
        inside = (k >= 0) & np.isfinite(k)
        return np.where(inside, pdtr(np.where(inside, k, 0.0), self.rate[:, None]), np.where(k > 0, 1.0, 0.0))

    def quantile(self, weights: Floats, level: float) -> Floats:
        return poisson_quantiles(weights, self.rate, level)

    def means(self) -> Floats:
        return self.rate

    def variances(self) -> Floats:
        return self.rate


@dataclass(frozen=True, eq=False)
class DensityComponents(Components):
    """Densities of which only the logarithm is known: a function of numbers (n,) that gives (n, components)."""

    log_density: Callable[[Floats], Floats]
    summarised = False

    def logs(self, x: Floats) -> Floats:
        logs = np.asarray(self.log_density(x.reshape(-1)), dtype=np.float64)
        return logs.reshape(*x.shape, logs.shape[-1])

    def cumulative(self, x: Floats) -> Floats:
        raise _unknown("a probability of at most x")

    def quantile(self, weights: Floats, level: float) -> Floats:
        raise _unknown("a quantile")

    def means(self) -> Floats:
        raise _unknown("a mean")

    def variances(self) -> Floats:
        raise _unknown("a variance")


@dataclass(frozen=True, eq=False)
class JointGaussianComponents(Components):
    """Gaussians of several columns: mean (rows | 1, components, columns), cov (rows | 1, components, columns, columns).

    Points are (rows | 1, k, columns).
    """

    mean: Floats
    cov: Floats
    joint = True

    def column(self, place: int) -> GaussianComponents:
        """The densities of one column."""
        return GaussianComponents(self.mean[:, :, place], np.sqrt(self.cov[:, :, place, place]))

    def logs(self, x: Floats) -> Floats:
        roots = np.linalg.cholesky(self.cov)
        apart = np.swapaxes(x[:, None] - self.mean[:, :, None], -1, -2)  # (rows | 1, components, columns, k)
        standardised = np.linalg.solve(roots, apart)
        scale = np.log(np.diagonal(roots, axis1=-2, axis2=-1)).sum(axis=-1) + x.shape[-1] * LOG_ROOT_2PI
        return np.swapaxes(-0.5 * (standardised**2).sum(axis=-2) - scale[:, :, None], -1, -2)

    def cumulative(self, x: Floats) -> Floats:
        raise TacitError("the distribution of several columns has no cumulative probability")

    def quantile(self, weights: Floats, level: float) -> Floats:
        raise TacitError("the distribution of several columns has no quantile")

    def means(self) -> Floats:
        return self.mean

    def variances(self) -> Floats:
        return np.diagonal(self.cov, axis1=-2, axis2=-1)


def _of_rows(part: Any, place: Any) -> Any:
    """A parameter (rows | 1, ...) of some rows: itself where all rows share it."""
    return part[place] if isinstance(part, np.ndarray) and len(part) > 1 else part


def _log(x: Floats) -> Floats:
    """The logarithm of numbers, -inf of those that have none."""
    return np.asarray(np.log(x, out=np.full_like(x, -np.inf), where=x > 0))


def _log_excess(k: Floats) -> Floats:
    """log(k!) - (k log k - k) of counts from 1 on."""
    series = np.polyval(STIRLING, k**-2.0) / k + 0.5 * np.log(k) + LOG_ROOT_2PI
    return np.asarray(np.where(k < MIN_STIRLING, gammaln(k + 1) - (k * np.log(k) - k), series))


def _unknown(what: str) -> TacitError:
    remedy = "sum .pdf(x) over numbers x that are close together"
    return TacitError(f"{what} takes more than a log-density, which is all that a Density knows; {remedy}")

"""The posterior distributions of the numbers of densities, given moments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.estimating.density_forms import covariances, locations, parts_of
from tacit.learn.estimating.density_units import FreeDensity
from tacit.learn.estimating.moments import Moments
from tacit.model.densities import AnyDensity, Poisson
from tacit.query.ensembles.dirichlet import Key

JEFFREYS = 0.5  # events that the prior of a rate adds


@dataclass(frozen=True, eq=False)
class DensityPosterior:
    """The posterior of a density and of those tied to it: normal-inverse-Wishart, or gamma for rates.

    `own` are the moments of rows and prior. A component needs as many rows as columns, and one more, to say something
    of its covariance: what it lacks is in `filled`, with the mean and the variances of the whole column, or, if it has
    none at all, with those that it keeps.
    """

    unit: FreeDensity
    now: AnyDensity
    own: Moments
    filled: Moments

    @classmethod
    def of(cls, unit: FreeDensity, moments: Mapping[str, Moments], now: Floats, negligible: float) -> DensityPosterior:
        own, density = unit.gathered(moments, negligible), unit.density(now)
        reached = own.weight > 0
        mean = np.where(reached[:, None], unit.whole.mean, locations(density))
        cov = np.where(reached[:, None, None], unit.whole_cov, covariances(density))
        least = 1 if isinstance(density, Poisson) else density.dimension + 1
        return cls(unit, density, own, Moments.alike(np.maximum(least - own.weight, 0.0), mean, cov))

    def draws(self, n: int, rng: np.random.Generator) -> dict[Key, Floats]:
        """Independent numbers, by node and part: (n, *shape of the part)."""
        drawn = self._rates(n, rng) if isinstance(self.now, Poisson) else self._normal(n, rng)
        tables: dict[Key, Floats] = {}
        for part, free in self.unit.free.items():
            if free.any():
                numbers = np.where(free, drawn[part].reshape(n, *free.shape), self.now.flat(part))
                shaped = numbers.reshape(n, *self.now.parts()[part].shape)
                tables |= {(name, part): shaped for name in self.unit.names}
        return tables

    def _rates(self, n: int, rng: np.random.Generator) -> dict[str, Floats]:
        total = self.own + self.filled
        events = total.weight * total.mean[:, 0]
        by_prior = (self.unit.whole.prior.weight > 0) & (events > 0)
        rates = rng.gamma(np.where(by_prior, events, events + JEFFREYS), size=(n, len(events))) / total.weight
        return self.unit.parts(rates.reshape(-1, 1), np.empty(0))

    def _normal(self, n: int, rng: np.random.Generator) -> dict[str, Floats]:
        free = self._covariance_is_free[:, None, None]
        (cov, spread), centre = self._covariances(n, rng), (self.own + self.filled).mean
        known_centre, known_spread = self._means_with_known_covariance()
        spread = np.where(free, spread, known_spread)
        z = rng.standard_normal((*spread.shape[:-1], 1))
        mean = np.where(free[..., 0], centre, known_centre) + (spread @ z)[..., 0]
        flat_mean = mean.reshape(-1, mean.shape[-1])
        return parts_of(self.now, flat_mean, cov.reshape(-1, *cov.shape[2:]))

    def _covariances(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Inverse-Wishart covariances (n, components, d, d), and roots of those of the means.

        Beside the rows of the prior, the density of means and covariances is |cov|**(-(d + 1) / 2) before any rows.
        """
        total, free = self.own + self.filled, np.asarray(self.unit.mean_is_free.all(axis=1))
        off = np.where(free[:, None], 0.0, total.mean - locations(self.now))
        weight = total.weight[:, None, None]
        scatter = weight * self.unit.raised(total.cov + off[:, :, None] * off[:, None, :])
        roots = np.linalg.cholesky(scatter) @ _inverse_roots(total.weight - free, total.mean.shape[1], n, rng)
        cov = roots @ np.swapaxes(roots, -1, -2)
        return (cov + np.swapaxes(cov, -1, -2)) / 2, roots / np.sqrt(weight)

    def _means_with_known_covariance(self) -> tuple[Floats, Floats]:
        """The expectations (components, d) of means, and roots of their covariances (components, d, d)."""
        lacking = np.maximum(1 - self.own.weight, 0.0)[:, None, None]
        by_rows = self.own.weight[:, None, None] * np.linalg.inv(covariances(self.now))
        by_whole = lacking * np.linalg.inv(self.unit.whole_cov)
        cov = np.linalg.inv(by_rows + by_whole)
        pulled = by_rows @ self.own.mean[:, :, None] + by_whole @ self.filled.mean[:, :, None]
        return (cov @ pulled)[..., 0], np.linalg.cholesky(cov)

    @property
    def _covariance_is_free(self) -> NDArray[np.bool_]:
        free = list(self.unit.free.values())[-1]
        return np.asarray(free.reshape(len(free), -1).all(axis=1))


def _inverse_roots(freedom: Floats, columns: int, n: int, rng: np.random.Generator) -> Floats:
    """Roots (n, components, d, d) of inverse-Wishart matrices of scale 1 (Bartlett, 1933)."""
    shape = (n, len(freedom), columns, columns)
    lower = np.tril(rng.standard_normal(shape), -1)
    diagonal = np.arange(columns)
    lower[..., diagonal, diagonal] = np.sqrt(rng.chisquare(freedom[:, None] - diagonal, size=shape[:-1]))
    return np.swapaxes(np.linalg.inv(lower), -1, -2)

"""Densities: what the CPT of a continuous node holds, for each joint state of its discrete parents."""

from tacit.model.densities.base_density import BaseDensity
from tacit.model.densities.density import Density
from tacit.model.densities.gaussian import Gaussian
from tacit.model.densities.log_normal import LogNormal
from tacit.model.densities.poisson import Poisson

AnyDensity = Gaussian | LogNormal | Poisson | Density

__all__ = ["AnyDensity", "BaseDensity", "Density", "Gaussian", "LogNormal", "Poisson"]

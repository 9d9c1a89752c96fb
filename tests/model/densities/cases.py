"""Densities that belong to a node with parents F and L, and where they put their values."""

import numpy as np

from tacit import Gaussian, LogNormal, Poisson
from tacit.model.elements.variable import Variable

OWN, JOINT = Variable("T"), Variable("x, y, z", columns=("x", "y", "z"))
F, L = Variable("F", ("a", "b")), Variable("L", ("u", "v", "w"))
CARDS = (2, 3)


def gaussian(rng):
    return Gaussian(rng.normal(size=CARDS), rng.gamma(2, size=CARDS)).bind(OWN, [F, L])


def log_normal(rng):
    return LogNormal(rng.normal(size=CARDS), rng.gamma(2, size=CARDS) / 10).bind(OWN, [F, L])


def poisson(rng, size=5.0):
    return Poisson(size * rng.gamma(2, size=CARDS)).bind(OWN, [F, L])


def joint(rng):
    roots = rng.normal(size=(*CARDS, 3, 3))
    covs = roots @ np.swapaxes(roots, -1, -2) + 0.1 * np.eye(3)
    return Gaussian(rng.normal(size=(*CARDS, 3)), cov=covs).bind(JOINT, [F, L])


def with_gaps(values, rng):
    """Values of which a third is missing, of each column on its own."""
    return np.where(rng.random(values.shape) < 1 / 3, np.nan, values)

"""`Poisson`: distributions of counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.double_double import Twofold, log, two_sum
from tacit.base.floats import Floats
from tacit.model.densities.base_density import BaseDensity, check_positive
from tacit.model.densities.normal import blocks
from tacit.model.elements.base_cpt import check_tie
from tacit.model.elements.distributions import as_floats

FEW = 16  # counts from which on Stirling's series is exact to rounding
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)  # of 1/k, 1/k^3, ...
NEAR = 0.3  # |k - rate| / (k + rate) up to which the series of the deviance is used
TERMS = 16  # of that series: 0.3^32 is less than rounding


class Poisson(BaseDensity):
    """Distributions of counts: an expected number, the rate, for each joint state of the parents, or one for all.

    Its log-density is that of the counting measure: the logarithm of the probability of the count.

    >>> Poisson(rate=[2.0, 5.0]).logs(np.array([[0.0], [3.0]])).round(3).tolist()
    [[-2.0, -5.0], [-1.712, -1.963]]
    """

    kind = "poisson"
    rate: Floats

    def __init__(self, rate: ArrayLike | None = None, learn: bool = False, tie: str | None = None) -> None:
        self._set(rate=as_floats(np.nan if rate is None else rate, "rate"))
        check_positive("rate", self.rate)
        self._set(learn=bool(learn), tie=check_tie(tie))

    def trailing(self) -> dict[str, int]:
        return {"rate": 0}

    def logs_by_component(self, values: Floats) -> Floats:
        column = values[:, 0]
        missing, outside = np.isnan(column), self.wrong(values)[0]
        counts = np.where(missing | outside, 0.0, column)
        top = int(counts.max(initial=0.0))
        if top < len(counts):  # small counts come again and again
            logs = self._logs(np.arange(top + 1.0)).take(counts.astype(np.intp), axis=1)
        else:
            logs = self._logs(counts)
        logs[:, outside] = -np.inf
        logs[:, missing] = 0.0
        return logs

    def _logs(self, counts: Floats) -> Floats:
        """The log-probabilities (components, rows) of counts, after Loader's "Fast and accurate" (2000)."""
        exponent = np.log(np.maximum(counts, 1.0))
        saturated, rates = _saturated(counts, exponent), self.flat("rate")[:, None]
        logs = np.empty((len(rates), len(counts)))
        for block in blocks(len(counts), len(rates)):
            logs[:, block] = saturated[block] - _deviance(counts[block], exponent[block], rates)
        return logs

    def _exact_logs(self, values: Floats) -> Twofold:
        counts = np.where(self.wrong(values)[0] | np.isnan(values[:, 0]), 0.0, values[:, 0])
        exponent, rates = log(np.maximum(counts, 1.0)), self.flat("rate")[:, None]
        deviance = (exponent - log(rates)) * counts - two_sum(counts, -rates)
        return -deviance + _saturated(counts, exponent.high)

    def scores(self, values: Floats) -> dict[str, Floats]:
        counts, rates = values[:, 0], self.flat("rate")[:, None]
        return {"rate": np.where(np.isnan(counts), 0.0, (counts - rates) / rates)}

    def wrong(self, values: Floats) -> tuple[NDArray[np.bool_], str]:
        column = values[:, 0]
        return (column < 0) | (np.floor(column) < column) | np.isinf(column), "is not a whole number from 0 on"

    def draw(self, components: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        return np.asarray(rng.poisson(self.flat("rate")[components])[:, None], dtype=np.float64)

    def means(self) -> Floats:
        return self.flat("rate")[:, None]

    def variances(self) -> Floats:
        return self.means()


def _saturated(counts: Floats, exponent: Floats) -> Floats:
    """The log-probability of each count where it is the rate itself: k log k - k - log k!."""
    from scipy.special import gammaln, xlogy  # loaded by those who need it: it takes longer than all of tacit

    few = counts < FEW
    k = np.where(few, FEW, counts)
    series = np.polynomial.polynomial.polyval(k**-2.0, STIRLING) / k
    many = -(0.5 * (math.log(2 * math.pi) + exponent) + series)
    return np.where(few, xlogy(counts, counts) - counts - gammaln(counts + 1), many)


def _deviance(counts: Floats, exponent: Floats, rates: Floats) -> Floats:
    """k log(k / rate) - (k - rate), by a series where that is a difference of almost equal numbers: (rates, counts)."""
    off, total = counts - rates, counts + rates
    deviance = counts * (exponent - np.log(rates)) - off
    near = np.abs(off) < NEAR * total
    k, d = np.broadcast_to(counts, near.shape)[near], off[near]
    v = d / total[near]
    odd = 2 / np.arange(3, 2 * TERMS + 3, 2)
    deviance[near] = v * (d + k * v**2 * np.polynomial.polynomial.polyval(v**2, odd))
    return np.asarray(deviance)

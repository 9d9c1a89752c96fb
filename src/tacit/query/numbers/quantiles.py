"""Quantiles of mixtures, of many rows at once. Weights (rows, components) sum to about 1 in each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, pdtr

from tacit.base.floats import Floats

ROUNDING = 4 * np.finfo(np.float64).eps
NEAR = 1e-3  # relative error of a probability from which on Newton's method needs no probit
LARGEST = np.finfo(np.float64).max
ROOT_2PI = np.sqrt(2 * np.pi)


def gaussian_quantiles(weights: Floats, mean: Floats, sd: Floats, level: float) -> Floats:
    """The quantile (rows,) of a mixture of Gaussians, whose parameters are (rows | 1, components)."""
    if level in (0.0, 1.0):
        return np.full(len(weights), -np.inf if level == 0 else np.inf)
    if level > 0.5:  # seen from the other side, where small probabilities have all their digits
        return np.negative(gaussian_quantiles(weights, -mean, sd, 1 - level))
    return _lower_quantiles(weights, np.broadcast_to(mean, weights.shape), np.broadcast_to(sd, weights.shape), level)


def _lower_quantiles(weights: Floats, mean: Floats, sd: Floats, level: float) -> Floats:
    """Newton's method, with bisection where a step leaves the range that is left, or does not halve the one before."""
    total = weights.sum(axis=1)
    own = np.clip(mean + sd * ndtri(level), -LARGEST, LARGEST)  # of each component: the mixture's is between these
    low, high = _range(weights, own)
    x = np.fmax(np.fmin(_guess(weights, mean, sd, level), high), low)  # also where it is out of the range of floats
    found, rows, last = np.empty(len(weights)), np.arange(len(weights)), high - low
    while len(rows):
        excess, exact, step = _newton(x, weights, mean, sd, level * total)
        low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
        # a step that rounds to nothing would not tell whether the quantile has been passed
        step = np.copysign(np.maximum(np.abs(step), ROUNDING * np.abs(x)), -excess)
        newton, middle = x + step, _middle(low, high)
        trusted = (low < newton) & (newton < high) & (np.abs(step) < 0.5 * last)
        done = exact | np.isnan(excess) | (high - low <= 2 * ROUNDING * np.abs(x)) | (middle <= low) | (middle >= high)
        found[rows[done]] = x[done]
        x, last = np.where(trusted, newton, middle), np.where(trusted, np.abs(step), high - low)
        if done.any():
            left = ~done
            rows, x, low, high, last = rows[left], x[left], low[left], high[left], last[left]
            weights, mean, sd, total = weights[left], mean[left], sd[left], total[left]
    return found


def _newton(
    x: Floats, weights: Floats, mean: Floats, sd: Floats, wanted: Floats
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """By how much the probability of at most x exceeds what is wanted, whether only by rounding, and a step.

    The excess is a sum of tails, which have all their digits where components are far from each other. While it is
    large, the step is one on the probit, which is a straight line if there is one component.
    """
    z = (x[:, None] - mean) / sd
    before = z >= 0
    tails = weights * ndtr(-np.abs(z))
    whole = np.where(before, weights, 0.0).sum(axis=1) - wanted
    excess = whole + np.where(before, -tails, tails).sum(axis=1)
    exact = np.abs(excess) <= ROUNDING * (np.abs(whole) + tails.sum(axis=1))
    density = (weights / sd * np.exp(-0.5 * z * z)).sum(axis=1) / ROOT_2PI
    total = weights.sum(axis=1)
    probit = ndtri((wanted + excess) / total)
    slope = density / total * ROOT_2PI * np.exp(0.5 * probit * probit)
    far = np.abs(excess) > NEAR * wanted
    return excess, exact, np.where(far, (ndtri(wanted / total) - probit) / slope, -excess / density)


def _guess(weights: Floats, mean: Floats, sd: Floats, level: float) -> Floats:
    """The quantile (rows,) if components did not overlap: that of one component, after all before it.

    Where it is between two components, it is as many standard deviations from the one as from the other.
    """
    rows, order = np.arange(len(weights)), mean.argsort(axis=1)
    upto = np.take_along_axis(weights, order, axis=1).cumsum(axis=1)
    wanted = level * upto[:, -1]
    place = (upto >= wanted[:, None]).argmax(axis=1)
    after = (upto > wanted[:, None]).argmax(axis=1)
    one, other = (rows, order[rows, place]), (rows, order[rows, after])
    share = 1 - (upto[rows, place] - wanted) / weights[one]
    inside = mean[one] + sd[one] * ndtri(np.clip(share, ROUNDING, 1 - ROUNDING))
    between = mean[one] + (mean[other] - mean[one]) * (sd[one] / (sd[one] + sd[other]))
    return np.asarray(np.where(place == after, inside, between))


def poisson_quantiles(weights: Floats, rate: Floats, level: float) -> Floats:
    """The smallest counts (rows,) of which a mixture of Poisson distributions has at most that with this probability.

    A probability that misses the level by rounding counts, so that a count is the quantile of its own probability.
    """
    if level == 1:
        return np.full(len(weights), np.inf)
    rate = np.broadcast_to(rate, weights.shape)
    wanted = level * weights.sum(axis=1) * (1 - ROUNDING)
    low, high = _around(weights, rate, level, wanted)
    while (inside := high - low > 1).any():
        middle = np.floor(low + (high - low) / 2)
        if not (inside := inside & (low < middle) & (middle < high)).any():
            break  # floats this large leave out whole numbers
        reached = _upto(middle, weights, rate) >= wanted
        low, high = np.where(inside & ~reached, middle, low), np.where(inside & reached, middle, high)
    return high


def _around(weights: Floats, rate: Floats, level: float, wanted: Floats) -> tuple[Floats, Floats]:
    """Counts of which the first does not reach what is wanted, and the second does: -1 is the least."""
    z = float(np.clip(ndtri(level), -40, 40))
    low, high = _range(weights, rate + z * np.sqrt(rate) + (z * z - 1) / 6)  # close to the quantile of each component
    low, high = np.maximum(np.floor(low) - 2, -1), np.maximum(np.ceil(high) + 2, 0)
    more = np.sqrt(high) + 1
    while (reached := (low >= 0) & (_upto(low, weights, rate) >= wanted)).any():
        low, more = np.where(reached, np.maximum(low - more, -1), low), 2 * more
    while (short := _upto(high, weights, rate) < wanted).any():
        high, more = np.where(short, high + more, high), 2 * more
    return low, high


def _upto(count: Floats, weights: Floats, rate: Floats) -> Floats:
    """The probability of at most a count (rows,), 0 of a negative one."""
    return np.where(count < 0, 0.0, (weights * pdtr(np.maximum(count, 0)[:, None], rate)).sum(axis=1))


def _range(weights: Floats, numbers: Floats) -> tuple[Floats, Floats]:
    """The least and the greatest number (rows,) of components that have a weight."""
    possible = weights > 0
    return np.where(possible, numbers, np.inf).min(axis=1), np.where(possible, numbers, -np.inf).max(axis=1)


def _middle(low: Floats, high: Floats) -> Floats:
    """The float that has as many floats on either side: halving a range takes 64 steps at most, whatever its scale."""
    a, b = _ordinal(low), _ordinal(high)
    middle = (a >> 1) + (b >> 1) + (a & b & 1)
    return np.asarray(np.copysign(np.abs(middle).view(np.float64), middle))


def _ordinal(x: Floats) -> NDArray[np.int64]:
    """The place of floats among all floats, 0 for 0."""
    return np.where(x < 0, -np.abs(x).view(np.int64), np.abs(x).view(np.int64))

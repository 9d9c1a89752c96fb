"""Densities in the place of intervals, for columns of numbers that cause nothing, where the rows are likelier so."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.evidence.density_column import density_columns
from tacit.learn.estimating.density_units import CollapsedDensityWarning
from tacit.learn.estimating.estimation import Estimate, estimate
from tacit.learn.estimating.sources import row_batches
from tacit.model.densities import AnyDensity, Gaussian, LogNormal, Poisson
from tacit.query.network import Network


def with_densities(net: Network, rows: Any, weights: Any = None) -> Network:
    """A network in which intervals that cause nothing are densities where these have the better BIC.

    Intervals are densities, too: uniform within each. So the numbers have a probability under both. Counts may be
    Poisson, whose probabilities compare with densities, as whole numbers are 1 apart.
    """
    if isinstance(rows, Iterator):
        raise TacitError("rows are read several times, and an iterator comes but once; give a list, a frame or a path")
    leaves = [name for name in net if net.bins(name) is not None and not net.children(name)]
    chosen: dict[str, AnyDensity] = {}
    for name, spread in _spreads(net, leaves, rows, weights).items():
        found = _estimated(_with_leaf(net, name, None), rows, weights)
        best = -math.inf if found is None else -found.bic / 2 - spread.log_widths
        for density in _forms(spread):
            found = _estimated(_with_leaf(net, name, density), rows, weights)
            if found is not None and -found.bic / 2 > best:
                best, chosen[name] = -found.bic / 2, found.network.density(name)
    for name, density in chosen.items():
        net = _with_leaf(net, name, density)
    return net


def _forms(spread: _Spread) -> Iterator[AnyDensity]:
    """The densities that a column may have, without their numbers."""
    yield Gaussian()
    if spread.whole and spread.least >= 0:
        yield Poisson()
    if spread.least > 0:
        yield LogNormal()


def _with_leaf(net: Network, name: str, density: AnyDensity | None) -> Network:
    """The network with another leaf; None stands for intervals whose table is to be estimated."""
    changed = Network(net.name)
    for own in net:
        bins = net.bins(own)
        if own == name and density is not None:
            changed.add(own, net.parents(own), cpt=density)
        else:
            states = net.states(own) if bins is None and own not in net.continuous else None
            changed.add(own, net.parents(own), states, None if own == name else net.cpt(own), bins=bins)
    return changed


def _estimated(net: Network, rows: Any, weights: Any) -> Estimate | None:
    """The network with what it leaves out; None where the numbers of a parents' state lie in one point."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapsedDensityWarning)
        try:
            return estimate(net, rows, weights=weights, progress=False)
        except CollapsedDensityWarning:
            return None


class _Spread:
    """The range of a column of numbers, and how many lie in each of some intervals."""

    def __init__(self, edges: Iterable[float]) -> None:
        self._edges = np.array(tuple(edges))
        self._counts: Floats = np.zeros(len(self._edges) - 1)
        self.least, self.greatest = math.inf, -math.inf
        self.whole = True

    def add(self, numbers: Floats, weights: Floats) -> None:
        known = ~np.isnan(numbers)
        numbers, weights = numbers[known], weights[known]
        if len(numbers):
            self.least, self.greatest = min(self.least, numbers.min()), max(self.greatest, numbers.max())
            self.whole = self.whole and bool((numbers == np.rint(numbers)).all())
            places = np.searchsorted(self._edges[1:-1], numbers, side="right")
            self._counts += np.bincount(places, weights, minlength=len(self._counts))

    @property
    def log_widths(self) -> float:
        """The sum of the logarithms of the widths of intervals over all numbers; infinite ones end where these do."""
        ends = np.clip(self._edges, self.least, self.greatest)
        widths = np.maximum(np.diff(ends), np.finfo(np.float64).tiny)
        return float(self._counts @ np.log(widths))


def _spreads(net: Network, names: Iterable[str], rows: Any, weights: Any) -> Mapping[str, _Spread]:
    """The spreads of columns of numbers over the intervals of a network."""
    spreads, numbers = {}, net
    for name in names:
        spreads[name], numbers = _Spread(net.bins(name) or ()), _with_leaf(numbers, name, Gaussian())
    if spreads:
        for batch in row_batches(numbers, rows, weights):
            for column in density_columns(batch.columns):
                spreads[column.variable.name].add(column.values[:, 0], batch.weights)
    return spreads

"""What queries answer about continuous variables: mixtures over the joint states of their parents, and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.evidence.column import Column
from tacit.evidence.density_column import DensityColumn
from tacit.model.densities import AnyDensity, BaseDensity, Density, Gaussian, LogNormal, Poisson
from tacit.model.elements.variable import Variable
from tacit.query.numbers.mixture import Mixture

if TYPE_CHECKING:
    from tacit.query.numbers.components import Components

Codes = NDArray[np.integer]


def mixture(
    density: AnyDensity, variable: Variable, asked: Sequence[str], weights: Floats, column: Column | None, index: Any
) -> Mixture:
    """The distribution of some columns of a variable: `weights` (rows, components) are those of the parents' states.

    `column` is what was observed of the variable itself. Where that is all that is asked for, weights are NaN.
    """
    places = [variable.columns.index(name) for name in asked]
    if not isinstance(column, DensityColumn):
        return Mixture(weights, _components(density.marginal(places)), asked, index)
    values = np.broadcast_to(column.values, (len(weights), len(variable.columns)))
    known = np.asarray(~np.isnan(values[:, places]).any(axis=1))
    weights = np.where(known[:, None], np.nan, weights)
    if len(variable.columns) == 1:
        return Mixture(weights, _components(density), asked, index)
    assert isinstance(density, Gaussian), "only Gaussians have several columns"
    return Mixture(weights, _conditional(density, places, np.where(known[:, None], np.nan, values)), asked, index)


def drawn(
    density: AnyDensity, variable: Variable, components: Codes, column: Column | None, random: np.random.Generator
) -> dict[str, Floats]:
    """Values by column (rows, samples), given the states of the parents, (rows, samples), and what was observed."""
    rows, samples = components.shape
    if not isinstance(column, DensityColumn):
        numbers = density.draw(components.reshape(-1), random).reshape(rows, samples, -1)
    else:
        values = np.broadcast_to(column.values, (rows, len(variable.columns)))
        numbers = np.repeat(values[:, None], samples, axis=1)
        for some, missing in _patterns(values):
            if len(missing) == len(variable.columns):
                drawn_here = density.draw(components[some].reshape(-1), random)
                numbers[some] = drawn_here.reshape(len(some), samples, -1)
            elif missing:
                assert isinstance(density, Gaussian), "only Gaussians have several columns"
                means, covs = density.conditional(missing, values[some])
                own = components[some]
                factors = np.linalg.cholesky(covs)[own]
                normal = random.standard_normal((*own.shape, len(missing)))
                spread = np.take_along_axis(means, own[:, :, None], axis=1)
                numbers[_crossed(some, np.arange(samples), missing)] = spread + np.einsum(
                    "rsij,rsj->rsi", factors, normal
                )
    return {name: numbers[..., i] for i, name in enumerate(variable.columns)}


def expected(density: AnyDensity, variable: Variable, components: Codes, column: Column | None) -> dict[str, Floats]:
    """By column (rows,), what was observed, or else the mean given the states of the parents; NaN of a `Density`."""
    rows = len(components)
    means = np.full((density.components, 1), np.nan) if isinstance(density, Density) else density.means()
    if not isinstance(column, DensityColumn):
        numbers = means[components]
    else:
        numbers = np.array(np.broadcast_to(column.values, (rows, len(variable.columns))))
        for some, missing in _patterns(numbers):
            if len(missing) == len(variable.columns):
                numbers[some] = means[components[some]]
            elif missing:
                assert isinstance(density, Gaussian), "only Gaussians have several columns"
                given, _ = density.conditional(missing, numbers[some])
                numbers[_crossed(some, missing)] = given[np.arange(len(some)), components[some]]
    return {name: numbers[:, i] for i, name in enumerate(variable.columns)}


def _components(density: BaseDensity) -> Components:
    """The components of a density, which are the same in all rows."""
    from tacit.query.numbers import components

    match density:
        case Gaussian() if density.cov is None:
            return components.GaussianComponents(density.flat("mean")[None], density.flat("sd")[None])
        case Gaussian():
            return components.JointGaussianComponents(density.flat("mean")[None], density.flat("cov")[None])
        case LogNormal():
            return components.LogNormalComponents(density.flat("mean")[None], density.flat("sd")[None])
        case Poisson():
            return components.PoissonComponents(density.flat("rate")[None])
    return components.DensityComponents(lambda x: density.logs(x[:, None]))


def _conditional(density: Gaussian, places: list[int], values: Floats) -> Components:
    """The components of some columns, in each row given the others that were observed there."""
    from tacit.query.numbers import components

    count, columns = density.components, len(places)
    mean = np.empty((len(values), count, columns))
    cov = np.empty((len(values), count, columns, columns))
    for some, _ in _patterns(values):
        mean[some], cov[some] = density.conditional(places, values[some])
    if columns == 1:
        return components.GaussianComponents(mean[..., 0], np.sqrt(cov[..., 0, 0]))
    return components.JointGaussianComponents(mean, cov)


def _crossed(*places: NDArray[np.integer] | list[int]) -> tuple[NDArray[np.intp], ...]:
    """The index of all entries in these places of each axis."""
    return np.ix_(*(np.asarray(own, dtype=np.intp) for own in places))


def _patterns(values: Floats) -> Iterator[tuple[NDArray[np.intp], list[int]]]:
    """The rows that miss the same columns, and which these are."""
    missing, places = np.unique(np.isnan(values), axis=0, return_inverse=True)
    for number, pattern in enumerate(missing):
        yield np.flatnonzero(places.reshape(-1) == number), np.flatnonzero(pattern).tolist()

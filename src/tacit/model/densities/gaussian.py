"""`Gaussian`: normal distributions of one column, or of several together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.double_double import Twofold
from tacit.base.errors import NetworkError, TableError
from tacit.base.floats import Floats
from tacit.model.densities.base_density import BaseDensity, Column, check_finite, check_positive
from tacit.model.densities.joint_normal import conditional, exact_joint_logs, joint_logs, joint_scores
from tacit.model.densities.normal import exact_normal_logs, normal_logs, normal_scores, normal_terms
from tacit.model.elements.base_cpt import check_tie
from tacit.model.elements.distributions import as_floats
from tacit.model.elements.variable import Variable

ROUNDING = 1e-14  # of correlations


class Gaussian(BaseDensity):
    """Normal distributions: a mean and a standard deviation for each joint state of the parents.

    A number stands for all states of the parents; what is left out, or NaN, is learned. With `cov`, the node has
    several columns: `mean` is then (parents..., d), and `cov` (parents..., d, d), or (d, d) for all states.

    >>> Gaussian(mean=[90.0, 70.0], sd=[5.0, 4.0]).logs(np.array([[78.0]])).round(2).tolist()
    [[-5.41, -4.31]]
    >>> Gaussian(mean=[0.0, 1.0], cov=[[1.0, 0.5], [0.5, 2.0]]).dimension
    2
    """

    kind = "gaussian"
    mean: Floats
    sd: Floats | None
    cov: Floats | None

    def __init__(
        self,
        mean: ArrayLike | None = None,
        sd: ArrayLike | None = None,
        cov: ArrayLike | None = None,
        learn: bool = False,
        tie: str | None = None,
    ) -> None:
        if cov is None:
            deviations = as_floats(np.nan if sd is None else sd, "sd")
            check_positive("sd", deviations)
            self._set(sd=deviations, cov=None, dimension=1, mean=_means(mean, ()))
        elif sd is not None:
            raise NetworkError("a Gaussian takes sd, for one column, or cov, for several; give either")
        else:
            matrices = _covariances(cov)
            columns = matrices.shape[-1:]
            self._set(sd=None, cov=matrices, dimension=columns[0], mean=_means(mean, columns))
        self._set(learn=bool(learn), tie=check_tie(tie))

    def trailing(self) -> dict[str, int]:
        return {"mean": 0, "sd": 0} if self.cov is None else {"mean": 1, "cov": 2}

    def logs_by_component(self, values: Floats) -> Floats:
        if self.cov is None:
            return normal_logs(values[:, 0], self.flat("mean"), self.flat("sd"))
        return joint_logs(values, self.flat("mean"), self.flat("cov"))

    def normal_terms(self) -> Floats | None:
        if self.cov is not None:
            return None
        return np.stack(normal_terms(self.flat("mean"), self.flat("sd")), axis=1)

    def _exact_logs(self, values: Floats) -> Twofold:
        if self.cov is None:
            return exact_normal_logs(values[:, 0], self.flat("mean"), self.flat("sd"))
        return exact_joint_logs(values, self.flat("mean"), self.flat("cov"))

    def scores(self, values: Floats) -> dict[str, Floats]:
        """An entry of a covariance changes together with its mirror image."""
        if self.cov is None:
            return normal_scores(values[:, 0], self.flat("mean"), self.flat("sd"))
        return joint_scores(values, self.flat("mean"), self.flat("cov"))

    def marginal(self, columns: Sequence[int]) -> BaseDensity:
        """The normal distribution of some columns, in this order."""
        if self.cov is None:
            return super().marginal(columns)
        places = np.array(columns, dtype=np.intp)
        mean, cov = self.mean[..., places], self.cov[..., places[:, None], places]
        if len(places) == 1:
            return Gaussian(mean[..., 0], sd=np.sqrt(cov[..., 0, 0]), learn=self.learn)
        return Gaussian(mean, cov=cov, learn=self.learn)

    def conditional(self, columns: Sequence[int], values: Floats) -> tuple[Floats, Floats]:
        """The means (rows, components, k) and covariances (components, k, k) of k missing columns given the others.

        All rows of `values` (rows, dimension) must have NaN in the same columns.
        """
        if self.cov is None:
            raise NetworkError("a Gaussian of one column has no other ones to be given")
        return conditional(values, list(columns), self.flat("mean"), self.flat("cov"))

    def draw(self, components: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        z = rng.standard_normal((len(components), self.dimension))
        if self.cov is None:
            return self.flat("mean")[components, None] + self.flat("sd")[components, None] * z
        factors = np.linalg.cholesky(self.flat("cov"))
        return np.asarray(self.flat("mean")[components] + np.einsum("nij,nj->ni", factors[components], z))

    def means(self) -> Floats:
        return self.flat("mean").reshape(self.components, self.dimension)

    def variances(self) -> Floats:
        if self.cov is None:
            return self.flat("sd")[:, None] ** 2
        return np.diagonal(self.flat("cov"), axis1=1, axis2=2).copy()

    def _columns(self, own: Variable) -> list[Column]:
        if self.cov is None:
            return super()._columns(own)
        names = list(own.columns)
        names = names if len(names) == self.dimension else [str(i) for i in range(self.dimension)]
        means = [Column(f"mean {name}", self.mean[..., i]) for i, name in enumerate(names)]
        pairs = [(i, j) for i in range(self.dimension) for j in range(i, self.dimension)]
        return means + [Column(f"cov {names[i]}, {names[j]}", self.cov[..., i, j]) for i, j in pairs]


def _means(mean: ArrayLike | None, columns: tuple[int, ...]) -> Floats:
    """Means with the columns as the last axis, if they have one."""
    means = as_floats(np.full(columns, np.nan) if mean is None else mean, "mean")
    if columns and means.shape[-1:] != columns:
        expected = f"(parents' cardinalities..., {columns[0]}), a mean for each row of cov"
        raise NetworkError(f"mean has shape {means.shape}, expected {expected}")
    check_finite("mean", means, len(columns))
    return means


def _covariances(values: ArrayLike) -> Floats:
    """Covariance matrices (..., d, d), after a check."""
    covs = as_floats(values, "cov")
    if covs.ndim < 2 or covs.shape[-1] != covs.shape[-2] or not covs.shape[-1]:
        raise NetworkError(f"cov has shape {covs.shape}, expected (parents' cardinalities..., d, d) for d columns")
    check_finite("cov", covs, 2)
    variances = np.diagonal(covs, axis1=-2, axis2=-1)
    check_positive("cov", variances, 1, "the variance ")
    scale = np.sqrt(variances)
    correlations = covs / (scale[..., None] * scale[..., None, :])
    _check_symmetric(covs, correlations)
    _check_definite(correlations)
    return as_floats(covs / 2 + np.swapaxes(covs, -1, -2) / 2, "cov")


def _check_symmetric(covs: Floats, correlations: Floats) -> None:
    mirrored = np.swapaxes(correlations, -1, -2)
    unequal = (np.abs(correlations - mirrored) > ROUNDING) | (np.isnan(correlations) != np.isnan(mirrored))
    for *state, i, j in np.argwhere(unequal)[:1].tolist():
        one, other = covs[*state, i, j], covs[*state, j, i]
        problem = f"[{i}, {j}] is {one:g} but [{j}, {i}] is {other:g}, expected both to be the same"
        raise TableError("cov", tuple(state), problem)


def _check_definite(correlations: Floats) -> None:
    """Refuse matrices of which some sum of the columns would have no variance, but for rounding."""
    known = ~np.isnan(correlations).any(axis=(-2, -1), keepdims=True)
    least = np.linalg.eigvalsh(np.where(known, correlations, np.eye(correlations.shape[-1])))[..., 0]
    for state in map(tuple, np.argwhere(least < ROUNDING)[:1].tolist()):
        problem = f"the smallest eigenvalue of the correlations is {least[state]:.3g}"
        raise TableError("cov", state, f"{problem}; a covariance matrix is positive definite")

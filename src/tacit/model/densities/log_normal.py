"""`LogNormal`: distributions of positive numbers whose logarithm is normal."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.double_double import Twofold, log
from tacit.base.floats import Floats
from tacit.model.densities.base_density import BaseDensity, check_finite, check_positive
from tacit.model.densities.normal import exact_normal_logs, normal_logs, normal_scores
from tacit.model.elements.base_cpt import check_tie
from tacit.model.elements.distributions import as_floats


class LogNormal(BaseDensity):
    """Distributions of positive numbers: mean and standard deviation of their natural logarithm.

    The arrays are those of `Gaussian`: a number for each joint state of the parents, or one for all.

    >>> LogNormal(mean=[0.0, 1.0], sd=[0.5, 0.5]).means().round(3).tolist()
    [[1.133], [3.08]]
    """

    kind = "log-normal"
    mean: Floats
    sd: Floats

    def __init__(
        self,
        mean: ArrayLike | None = None,
        sd: ArrayLike | None = None,
        learn: bool = False,
        tie: str | None = None,
    ) -> None:
        self._set(mean=as_floats(np.nan if mean is None else mean, "mean"))
        self._set(sd=as_floats(np.nan if sd is None else sd, "sd"))
        check_finite("mean", self.mean)
        check_positive("sd", self.sd)
        self._set(learn=bool(learn), tie=check_tie(tie))

    def trailing(self) -> dict[str, int]:
        return {"mean": 0, "sd": 0}

    def logs_by_component(self, values: Floats) -> Floats:
        x = values[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            exponent = np.log(x)
        logs = normal_logs(exponent, self.flat("mean"), self.flat("sd"))
        logs -= np.where(np.isfinite(exponent), exponent, 0.0)
        logs[:, x <= 0] = -np.inf
        return logs

    def _exact_logs(self, values: Floats) -> Twofold:
        exponent = log(values[:, 0])
        return exact_normal_logs(exponent, self.flat("mean"), self.flat("sd")) - exponent

    def scores(self, values: Floats) -> dict[str, Floats]:
        return normal_scores(np.log(values[:, 0]), self.flat("mean"), self.flat("sd"))

    def wrong(self, values: Floats) -> tuple[NDArray[np.bool_], str]:
        column = values[:, 0]
        return (column <= 0) | np.isinf(column), "is not a positive, finite number"

    def draw(self, components: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        z = rng.standard_normal((len(components), 1))
        return np.exp(self.flat("mean")[components, None] + self.flat("sd")[components, None] * z)

    def means(self) -> Floats:
        with np.errstate(over="ignore"):
            return np.exp(self.flat("mean") + self.flat("sd") ** 2 / 2)[:, None]

    def variances(self) -> Floats:
        with np.errstate(over="ignore"):
            return np.expm1(self.flat("sd")[:, None] ** 2) * self.means() ** 2

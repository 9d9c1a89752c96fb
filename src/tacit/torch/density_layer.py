"""Densities on tensors: log-densities of observed numbers, differentiable in the numbers and in what is learned."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tacit.base.errors import NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.density_column import DensityColumn
from tacit.model.densities import AnyDensity, Density, Gaussian, LogNormal, Poisson
from tacit.model.densities.missing import patterns
from tacit.model.elements.variable import Variable

HALF_LOG_TAU = 0.5 * math.log(2 * math.pi)
FREE = "mean"  # the part that takes any number; the others are positive, and learned as their logarithm


class DensityLayer(nn.Module):  # type: ignore[misc, unused-ignore]
    """The density of a continuous variable. What is learned are its `weights`: means, and logarithms of the rest.

    Log-densities are worked out in float64: what counts are their differences.
    """

    def __init__(
        self,
        variable: Variable,
        density: AnyDensity,
        dtype: torch.dtype,
        random: np.random.Generator,
        leader: DensityLayer | None = None,
    ) -> None:
        super().__init__()
        self.variable, self._density = variable, density
        self._places = {part: _learned(density, numbers) for part, numbers in density.parts().items()}
        self.weights: nn.ParameterDict = nn.ParameterDict() if leader is None else leader.weights
        if "cov" in self._places and len(self._places["cov"]):
            problem = "covariances are not learned by gradients"
            raise NetworkError(f"node {variable.name!r}: {problem}; give them, or learn them by tacit.estimate")
        for part, places in self._places.items() if leader is None else ():
            if len(places):
                numbers = density.parts()[part].ravel()[places]
                draws = random.normal(size=len(places)) if part == FREE else np.ones(len(places))
                start = _as_weights(part, np.where(np.isnan(numbers), draws, numbers))
                self.weights[part] = nn.Parameter(torch.tensor(start, dtype=dtype))

    def forward(self, values: Tensor) -> Tensor:
        """The log-densities (components, rows) of values (rows, columns); missing ones (NaN) are integrated out."""
        match self._density:
            case Gaussian() if self._density.cov is None:
                return self._normal(values[:, 0])
            case Gaussian():
                return self._joint(values)
            case LogNormal():
                return self._log_normal(values[:, 0])
            case Poisson():
                return self._counts(values[:, 0])
        return self._given(values, self._density)

    def column(self, values: Tensor) -> DensityColumn:
        """The values (rows, columns) as evidence with this density."""
        return DensityColumn(self.variable, values.detach().cpu().double().numpy()).bound(self.density())

    def density(self) -> AnyDensity:
        """The density with the learned numbers filled in."""
        known = self._density.parts()
        parts = {part: self._part(part).detach().cpu().numpy().reshape(known[part].shape) for part in self.weights}
        return self._density.with_parts(parts) if parts else self._density

    def load(self, density: AnyDensity) -> None:
        """Take the learned numbers of another density, with the same known numbers."""
        given = density.parts()
        for part, known in self._density.parts().items():
            places, same = self._places[part], (known == given[part]).ravel()
            same[places] = True
            if not same.all():
                problem = f"{part} differs in numbers that are known; only learned ones may"
                raise NetworkError(f"node {self.variable.name!r}: {problem}")
            if part in self.weights:
                weights = _as_weights(part, given[part].ravel()[places])
                with torch.no_grad():
                    self.weights[part].copy_(torch.from_numpy(weights))

    def extra_repr(self) -> str:
        learned = sum(weights.numel() for weights in self.weights.values())
        return f"{self.variable.name!r}, {self._density.kind}, {plural(learned, 'weight')}"

    def _part(self, part: str) -> Tensor:
        """The numbers of a part, with one axis for the components in place of those of the parents."""
        known = torch.tensor(self._density.flat(part))
        if part not in self.weights:
            return known
        learned, places = self.weights[part].double(), torch.from_numpy(self._places[part])
        numbers = learned if part == FREE else learned.exp()
        known, places = known.to(learned.device), places.to(learned.device)
        return known.flatten().index_copy(0, places, numbers).view(known.shape)

    def _normal(self, column: Tensor) -> Tensor:
        seen = ~column.isnan()
        off, log_sd = self._deviation(torch.where(seen, column, 0.0))
        return torch.where(seen, -0.5 * off**2 - log_sd - HALF_LOG_TAU, 0.0)

    def _log_normal(self, column: Tensor) -> Tensor:
        seen = ~column.isnan()
        exponent = torch.where(seen, column, 1.0).log()
        off, log_sd = self._deviation(exponent)
        return torch.where(seen, -0.5 * off**2 - log_sd - HALF_LOG_TAU - exponent, 0.0)

    def _deviation(self, column: Tensor) -> tuple[Tensor, Tensor]:
        """By how many standard deviations numbers are off (components, rows), and the logarithms of these."""
        mean, sd = (self._part(part).to(column.device)[:, None] for part in ("mean", "sd"))
        return (column - mean) / sd, sd.log()

    def _counts(self, column: Tensor) -> Tensor:
        seen, rate = ~column.isnan(), self._part("rate").to(column.device)[:, None]
        counts = torch.where(seen, column, 0.0)
        return torch.where(seen, counts * rate.log() - rate - torch.lgamma(counts + 1), 0.0)

    def _joint(self, values: Tensor) -> Tensor:
        mean, cov = (self._part(part).to(values.device) for part in ("mean", "cov"))
        logs = values.new_zeros((len(mean), len(values)))
        for seen, some in patterns(values.detach().cpu().numpy()):
            if not len(seen):
                continue
            columns = torch.from_numpy(seen).to(values.device)
            rows = torch.arange(len(values))[some].to(values.device)
            factors = torch.linalg.cholesky(cov[:, columns[:, None], columns])
            off = values[rows][:, columns].T - mean[:, columns, None]  # (components, columns, rows)
            solved = torch.linalg.solve_triangular(factors, off, upper=False)
            top = -HALF_LOG_TAU * len(columns) - factors.diagonal(dim1=1, dim2=2).log().sum(dim=1)
            logs = logs.index_copy(1, rows, top[:, None] - 0.5 * (solved**2).sum(dim=1))
        return logs

    def _given(self, values: Tensor, density: Density) -> Tensor:
        if values.requires_grad and torch.is_grad_enabled():
            problem = "is the density of a function of arrays, which has no gradient by its values"
            raise TacitError(f"{self.variable.name!r} {problem}; detach() them")
        return torch.from_numpy(density.logs_by_component(values.detach().cpu().numpy())).to(values.device)


def _learned(density: AnyDensity, numbers: Floats) -> NDArray[np.int64]:
    """The places of the numbers of a part that are to be learned."""
    return np.flatnonzero(np.full(numbers.shape, density.learn) | np.isnan(numbers))


def _as_weights(part: str, numbers: Floats) -> Floats:
    return numbers if part == FREE else np.log(numbers)

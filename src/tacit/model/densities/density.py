"""`Density`: any log-density, given as a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.double_double import Twofold
from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.base.grid import Grid
from tacit.model.densities.base_density import BaseDensity
from tacit.model.elements.base_cpt import Family
from tacit.model.elements.distributions import as_floats


class Density(BaseDensity):
    """Any density: `f(values)` gives the log-densities (rows, *parents' states) of an array of values (rows,).

    It is all that is known, so that values can be observed, but not predicted, drawn or learned.

    >>> laplace = Density(lambda x: -np.abs(x[:, None] - np.array([0.0, 3.0])) - np.log(2))
    """

    kind = "density"
    f: Callable[[Floats], Any]

    def __init__(self, f: Callable[[Floats], Any]) -> None:
        if not callable(f):
            raise NetworkError(f"a Density takes a function of values that gives log-densities, got {f!r}")
        self._set(f=f, _shape=())

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = vars(self)["_shape"]
        return shape

    def _fitted(self, cards: Sequence[int], names: Sequence[str]) -> Self:
        return self._with(_shape=tuple(cards))

    def with_parts(self, parts: Mapping[str, ArrayLike]) -> Self:
        """Itself: it holds no numbers."""
        return self

    def logs_by_component(self, values: Floats) -> Floats:
        column = values[:, 0]
        seen = ~np.isnan(column)
        logs = np.zeros((self.components, len(column)))
        logs[:, seen] = self._checked(column[seen]).reshape(-1, self.components).T
        return logs

    def _exact_logs(self, values: Floats) -> Twofold:
        return Twofold.of(self.logs_by_component(values))

    def _checked(self, column: Floats) -> Floats:
        """What the function gives for values (rows,)."""
        name = getattr(self.f, "__name__", "f")
        logs = as_floats(self.f(column), f"what {name} gives")
        if logs.shape != (expected := (len(column), *self.shape)):
            axes = "(values, *states of the parents)"
            raise NetworkError(f"what {name} gives has shape {logs.shape}, expected {expected} = {axes}")
        for place in map(tuple, np.argwhere(np.isnan(logs) | (logs == np.inf))[:1].tolist()):
            state = f", parent state {place[1:]}" if self.shape else ""
            problem = f"{logs[place]} is not a log-density: give a number, or -inf where the density is 0"
            raise NetworkError(f"{name} of {column[place[0]]:g}{state}: {problem}")
        return logs

    def draw(self, components: NDArray[np.integer], rng: np.random.Generator) -> Floats:
        self._refuse("values cannot be drawn from it")

    def means(self) -> Floats:
        self._refuse("it has no means")

    def variances(self) -> Floats:
        self._refuse("it has no variances")

    def _refuse(self, consequence: str) -> NoReturn:
        raise NetworkError(f"a Density knows its log-density only: {consequence}; use Gaussian, LogNormal or Poisson")

    def grid(self, family: Family) -> Grid | None:
        """Nothing: a function is no table."""
        return None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Density) and self.f is other.f and self.shape == other.shape

    def __repr__(self) -> str:
        return f"Density({getattr(self.f, '__name__', self.f)})"

"""The testing network that is learned where none is given: tests of the ranks of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError
from tacit.base.floats import Floats
from tacit.model.elements.variable import DEFAULT_STATES, Label
from tacit.query.network import Network

DEFAULT_SLOPE = 16.0  # of tests
KNOTS = 256  # points of the scaling of a feature that are kept, at most


def default_network(
    features: int, states: Sequence[Label] = DEFAULT_STATES, tests: int = 2, components: int = 2
) -> Network:
    """The network that is learned where none is given: a mixture of naive Bayes models whose factors are tested.

    - `C`, a root, has `components` states for each state of the query `Q`, which it determines.
    - `E0`, `E1`, ... are the features. Their prior is uniform, so that the likelihood of the first state, a feature
      scaled into [0, 1], is also the posterior that tests compare with their thresholds.
    - `T0.0`, `T0.1`, ... are `tests` testing nodes for each feature.
    - `V0.0`, `V0.1`, ... have a test and `C` as parents, and are observed to be "true": their tables say how well
      each outcome of the test fits each component.

    So the posterior of a component is proportional to a product of one curve per feature, which tests bend; that of
    a state of `Q` is the sum over its components, through which features interact. A table has at most four numbers
    per component, and the circuit grows linearly with the number of features.

    >>> default_network(features=30, states=["benign", "malignant"])
    Network('default': 152 nodes, 181 edges, 60 testing, 1,512 parameters, 120 thresholds)
    """
    for name, value in (("features", features), ("tests", tests), ("components", components)):
        if not isinstance(value, int | np.integer) or value < 1:
            raise NetworkError(f"{name} is {value!r}, expected a whole number >= 1")
    state_of_component = np.repeat(np.eye(len(states)), components, axis=0)
    net = Network("default")
    net.add("C", states=len(state_of_component))
    net.add("Q", ["C"], states, state_of_component)
    for i in range(features):
        net.add(f"E{i}", cpt=[0.5, 0.5])
        for j in range(tests):
            net.add(f"T{i}.{j}", [f"E{i}"], testing=True, gamma=DEFAULT_SLOPE)
            net.add(f"V{i}.{j}", [f"T{i}.{j}", "C"])
    return net


@dataclass(frozen=True)
class Ranks:
    """The ranks of numbers among those of a column, from 0 for the lowest to 1; linear between them.

    >>> Ranks.of(np.array([1.0, 10.0, 100.0]), np.ones(3))(np.array([-5.0, 10.0, 55.0, np.nan]))
    array([0.  , 0.5 , 0.75,  nan])
    """

    values: Floats  # ascending
    ranks: Floats

    @classmethod
    def of(cls, column: Floats, weights: Floats) -> Ranks:
        """The ranks of the numbers of a column; a row of weight 2 counts as two rows, NaN as none."""
        counted = (weights > 0) & ~np.isnan(column)
        if not counted.any():
            return cls(np.zeros(1), np.full(1, np.nan))
        values, inverse = np.unique(column[counted], return_inverse=True)
        shares = np.bincount(inverse, weights[counted])
        middles = np.cumsum(shares) - shares / 2  # equal numbers share the middle of their places
        if len(values) == 1:
            return cls(values, np.full(1, 0.5))
        ranks = (middles - middles[0]) / (middles[-1] - middles[0])
        kept = np.unique(np.searchsorted(ranks, np.linspace(0, 1, KNOTS))) if len(ranks) > KNOTS else slice(None)
        return cls(values[kept], ranks[kept])

    def __call__(self, column: Floats) -> Floats:
        """The ranks of these numbers: 0 or 1 beyond those seen, NaN for NaN."""
        return np.interp(column, self.values, self.ranks)


@dataclass(frozen=True)
class Scaled:
    """X as evidence for the default network: features by their ranks, and every `V` observed."""

    ranks: tuple[Ranks, ...]
    observed: tuple[str, ...]

    def __call__(self, X: Floats) -> dict[str, Any]:
        return {f"E{i}": ranks(X[:, i]) for i, ranks in enumerate(self.ranks)} | dict.fromkeys(self.observed, "true")

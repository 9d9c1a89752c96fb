"""`TACRegressor`: a testing Bayesian network as a regressor of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.model.elements.variable import DEFAULT_STATES
from tacit.sklearn.estimator import TACEstimator
from tacit.sklearn.explanation import Feature, Prediction
from tacit.sklearn.rows import as_one_row


class TACRegressor(RegressorMixin, TACEstimator):  # type: ignore[misc]
    """A regressor whose predictions are the posterior of a testing Bayesian network.

    What it predicts is the probability of the query's first state. Without a network, the range of y in training is
    scaled to [0, 1] and back, and no prediction leaves it. With a network, y is that probability itself.

    Parameters
    ----------
    network, query, evidence, tests, components, gamma, optimizer, steps, restarts, validation, random_state
        As for `TACClassifier`.
    loss
        "mse" if left out, "cross_entropy", or a function; see `tacit.fit`.
    prior
        As for `TACClassifier`, but None is 0.03 pseudo-counts for the default network.

    Attributes
    ----------
    network_, tac_, fit_, n_features_in_, feature_names_in_
        As for `TACClassifier`.

    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(200, noise=0.1, random_state=0)
    >>> TACRegressor(random_state=0).fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.8
    True
    """

    _loss, _prior = "mse", 0.03

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their numbers y."""
        X, y, weights = self._labelled(X, y, sample_weight)
        try:
            y = np.asarray(y, dtype=np.float64)
        except (TypeError, ValueError):
            raise EvidenceError("y holds other things than numbers; expected one number per row") from None
        self._range = (0.0, 1.0)
        if self.network is None:
            self._range = low, high = y[weights > 0].min(), y[weights > 0].max()
            # rows without weight may lie outside
            y = np.clip((y - low) / (high - low), 0, 1) if high > low else np.full(len(y), 0.5)
        return self._learn(X, y, DEFAULT_STATES, weights)

    def predict(self, X: Any) -> Floats:
        """The number that the posterior of every row stands for."""
        return self._number(self._posterior(X)[:, 0])

    def explain(self, X: Any) -> Prediction:
        """Why one row gets its prediction: by how much each of its values raises it, given all others.

        With the default network, also its tests, in the units of the features.

        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = TACRegressor(steps=10, random_state=0).fit(X, y)
        >>> prediction = model.explain(X[:1])
        >>> prediction.features[2].name, prediction.features[2].value, prediction.tests[0].feature
        ('bmi', 32.1, 'age')
        """
        X = as_one_row(X)
        names_and_values, posterior = self._explained(X)
        predicted = self._number(posterior[:, :1])
        pairs = zip(names_and_values, predicted[1:], strict=True)
        features = tuple(Feature(*pair, without, predicted[0] - without) for pair, without in pairs)
        return Prediction(None, predicted[0], features, self._compared(X))

    def _number(self, p: Floats) -> Floats:
        low, high = self._range
        return low + (high - low) * p

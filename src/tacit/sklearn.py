"""`TACClassifier` and `TACRegressor`: testing Bayesian networks as scikit-learn estimators.

Rows of X become evidence, y is what the posterior of the query is learned from, and predictions are read from that
posterior. The network is the user's, and the columns of X are variables of it; or it is `default_network`, and the
columns of X are any numbers, which `Scaled` turns into likelihoods.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.installation import how_to_install

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"tacit.sklearn needs scikit-learn: {how_to_install('sklearn')}", name="sklearn"
    ) from error  # fmt: skip
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tacit.containers import as_array
from tacit.errors import EvidenceError, NetworkError, TacitError
from tacit.evidence import read_column
from tacit.floats import Floats
from tacit.learn import Fit, arguments, fit
from tacit.learn.fitting import FULL_BATCH_ROWS
from tacit.learn.losses import Loss
from tacit.network import Network
from tacit.tac import TAC, compile
from tacit.variable import DEFAULT_STATES, Label, Variable, similar
from tacit.words import plural

__all__ = ["TACClassifier", "TACRegressor", "default_network"]

SLOPE = 16.0  # of the default network's tests
STEPS = 100  # of the default network's training on all rows; 500 take four times as long and score the same
KNOTS = 256  # the most points by which the scaling of a feature is remembered


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
            net.add(f"T{i}.{j}", [f"E{i}"], testing=True, gamma=SLOPE)
            net.add(f"V{i}.{j}", [f"T{i}.{j}", "C"])
    return net


@dataclass(frozen=True)
class Ranks:
    """Where numbers stand among those of a column, from 0 for the lowest to 1; linear between them.

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
        """The evidence of rows of features."""
        return {f"E{i}": ranks(X[:, i]) for i, ranks in enumerate(self.ranks)} | dict.fromkeys(self.observed, "true")


@dataclass(frozen=True)
class Named:
    """X as evidence for a given network: columns by name in a frame, by place in an array."""

    names: tuple[str, ...]
    soft: frozenset[str] = frozenset()  # whose columns held likelihoods when a frame was learned from

    def __call__(self, X: Any) -> dict[str, Any]:
        """The evidence of rows of a frame or of an array."""
        if not hasattr(X, "columns"):
            return {name: X[:, i] for i, name in enumerate(self.names)}
        # a plain array is likelihoods also where these rows hold only 0 and 1, which in a frame might be codes
        return {name: as_array(X[name]) if name in self.soft else X[name] for name in self.names}


class _TACEstimator(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor share: from X to evidence, training, and the posterior."""

    _loss: str
    _prior: float  # pseudo-counts, for the default network

    def __init__(
        self,
        network: Network | None = None,
        query: str | None = None,
        evidence: Sequence[str] | None = None,
        tests: int = 2,
        components: int = 2,
        gamma: float | str | None = None,
        loss: Loss | None = None,
        optimizer: str = "auto",
        steps: int | None = None,
        restarts: int | None = None,
        prior: float | None = None,
        validation: float | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.network = network
        self.query = query
        self.evidence = evidence
        self.tests = tests
        self.components = components
        self.gamma = gamma
        self.loss = loss
        self.optimizer = optimizer
        self.steps = steps
        self.restarts = restarts
        self.prior = prior
        self.validation = validation
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is no evidence
        tags.input_tags.string = tags.input_tags.categorical = self.network is not None
        return tags

    def to_evidence(self, X: Any) -> dict[str, Any]:
        """Rows of X as evidence, to ask `tac_` for more than predictions: `tac_.selected(model.to_evidence(X))`."""
        check_is_fitted(self)
        return self._encoder(self._read(X, reset=False))

    def _posterior(self, X: Any) -> Floats:
        evidence = self.to_evidence(X)
        return self.tac_.posterior(evidence)

    # training ---------------------------------------------------------------------------------------------

    def _read(self, X: Any, reset: bool) -> Any:
        """X after scikit-learn's checks: an array of floats for the default network, else a frame or any array."""
        if self.network is None:
            return validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
        if hasattr(X, "columns"):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _labelled(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, NDArray[Any], Floats]:
        """X, y and the weights of the same rows."""
        X, y = self._read(X, reset=True), column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise EvidenceError("sample_weight is 0 in all rows; at least one row must count")
        return X, y, weights

    def _learn(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Self:
        """Compile the query and learn its network; `states` are those that the default network's query has."""
        tac = self._default(X, states, weights) if self.network is None else self._given(X)
        rows = len(weights)
        prior = arguments.not_negative(
            "prior", self._setting(self.prior, default=self._prior, given=0.0), "None, or a number of pseudo-counts"
        )
        all_rows = self.optimizer != "adam" and rows <= FULL_BATCH_ROWS
        self.fit_: Fit = fit(
            tac,
            self._encoder(X),
            targets,
            loss=self._loss if self.loss is None else self.loss,
            optimizer=self.optimizer,
            steps=self._setting(self.steps, default=STEPS if all_rows else None, given=None),
            restarts=self._setting(self.restarts, default=1, given=None),
            seed=self._seed(),
            validation=self.validation,
            progress=False,
            weights=weights,
            gamma=self.gamma,
            # a row of weight 2 counts as two rows, also against pseudo-counts
            prior=prior * np.count_nonzero(weights) / weights.sum(),
        )
        self.tac_: TAC = self.fit_.tac
        self.network_: Network = self.fit_.network
        return self

    def _seed(self) -> int:
        try:
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        except (TypeError, ValueError):
            raise TacitError(
                f"random_state is {self.random_state!r}, expected None, a whole number from 0 to 2**32 - 1, or a "
                "numpy.random.RandomState"
            ) from None

    def _setting(self, value: Any, default: Any, given: Any) -> Any:
        """A value, or what None stands for, with the default network and with a given one."""
        if value is not None:
            return value
        return default if self.network is None else given

    def _default(self, X: Floats, states: Sequence[Label], weights: Floats) -> TAC:
        """The query of the default network."""
        net = default_network(X.shape[1], states, self.tests, self.components)
        features = [name for name in net if name.startswith("E")]
        observed = tuple(name for name in net if name.startswith("V"))
        self._encoder: Scaled | Named = Scaled(tuple(Ranks.of(column, weights) for column in X.T), observed)
        return compile(net, "Q", features, hard=observed, effort="low")  # a tree of families: nothing to search for

    def _given(self, X: Any) -> TAC:
        """The query of the network that the user gave."""
        net, query = self._network_and_query()
        names = self._names(X)
        tac = compile(net, query, names)
        soft = [name for name in names if _is_soft(net.variable(name), X[name])] if hasattr(X, "columns") else []
        self._encoder = Named(names, frozenset(soft))
        return tac

    def _network_and_query(self) -> tuple[Network, str]:
        if not isinstance(self.network, Network):
            raise TacitError(f"network is a {type(self.network).__name__}, expected a tacit.Network or None")
        if self.query is None:
            raise TacitError("a network is given without a query; name the variable that y is about: query=...")
        if not isinstance(self.query, str):
            raise TacitError(f"query is {self.query!r}, expected the name of a variable")
        return self.network, self.query

    def _names(self, X: Any) -> tuple[str, ...]:
        """The variables that the columns of X speak about."""
        frame = hasattr(X, "columns")
        if self.evidence is None and not frame:
            raise TacitError("X is an array; name the variable of each column, evidence=[...], or pass a data frame")
        given = X.columns if self.evidence is None else self.evidence
        names = tuple(given) if isinstance(given, Iterable) and not isinstance(given, str) else (given,)
        if isinstance(given, str) or not all(isinstance(name, str) for name in names):
            raise TacitError(f"evidence is {given!r}, expected a list of the names of variables")
        if self.query in names:
            raise TacitError(f"the query {self.query!r} is among the evidence; leave its column out of X")
        if frame:
            for name in names:
                if name not in X.columns:
                    raise EvidenceError(f"X has no column {name!r}, which evidence= names{similar(name, X.columns)}")
        elif len(names) != X.shape[1]:
            raise EvidenceError(f"X has {plural(X.shape[1], 'column')}, expected {len(names)}: {', '.join(names)}")
        return names


class TACClassifier(ClassifierMixin, _TACEstimator):  # type: ignore[misc]
    """A classifier whose probabilities are the posterior of a testing Bayesian network.

    Without a network, X holds any numbers and y any classes. `default_network` is learned; each feature is given to
    it by its rank among the training rows, linear in between, so that neither units nor outliers matter. With a
    network, X holds evidence on its variables, and what the network knows stays as it is.

    Parameters
    ----------
    network, query
        The network to learn and the variable that y is about: y holds states of it.
    evidence
        The variables that the columns of X are evidence on: by name in a data frame (all columns, if left out), by
        place in an array. A column holds labels, or likelihoods of the first state of a binary variable.
    tests, components
        For the default network: testing nodes per feature, components per class.
    gamma
        The slope to train with, or "learn". None: each testing node's own, 16 in the default network.
    loss
        "cross_entropy" if left out, "mse", or a function; see `tacit.fit`.
    optimizer, validation
        As for `tacit.fit`; `validation` is a share of the rows to hold out.
    steps, restarts, prior
        As for `tacit.fit`, also where None. But for the default network None is 100 steps (2,000 of "adam", which is
        taken for more than 20,000 rows), one start, and 0.1 pseudo-counts.
    random_state
        Where the random start comes from.

    Attributes
    ----------
    classes_
        The classes, sorted; with a network, all states of the query.
    network_, tac_, fit_
        The learned network, its compiled query, and the whole result of `tacit.fit`.
    n_features_in_, feature_names_in_
        The columns of X.

    Notes
    -----
    NaN is no evidence: X may have missing values, in training and in prediction. `fit` takes weights of rows; a row
    of weight 2 counts as two. Evidence of probability 0, which needs a network with known zeros, gives NaN from
    `predict_proba` and is an error in `predict`.

    All of scikit-learn's estimator checks pass (without a network).

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TACClassifier(steps=50, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.tac_.selected(model.to_evidence(X[:1]))["T2.0"].posterior.round(1)  # petal length, by its rank
    array([[0.1, 0.9]])
    """

    _loss, _prior = "cross_entropy", 0.1

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their classes y."""
        X, y, weights = self._labelled(X, y, sample_weight)
        check_classification_targets(y)
        if self.network is None:
            self.classes_ = np.unique(y)
            states = tuple(self.classes_.tolist())
        else:
            net, query = self._network_and_query()
            states = net.states(query)
            self.classes_ = _sorted(query, states)
        if len(states) == 1:
            raise TacitError(f"there is one class only, {states[0]!r}; expected two or more")
        return self._learn(X, _indicators(y, states), states, weights)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of every class: (rows, classes)."""
        posterior = self._posterior(X)
        states = self.tac_.variable.states
        return posterior[:, [states.index(label) for label in self.classes_.tolist()]]

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        p = self.predict_proba(X)
        for row in np.flatnonzero(np.isnan(p[:, 0]))[:1].tolist():
            raise EvidenceError(f"row {row}: the evidence has probability 0; no class is the most probable one")
        return np.asarray(self.classes_[p.argmax(axis=1)])


class TACRegressor(RegressorMixin, _TACEstimator):  # type: ignore[misc]
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
        p = self._posterior(X)[:, 0]
        low, high = self._range
        return low + (high - low) * p


def _is_soft(variable: Variable, values: Any) -> bool:
    """Whether a column holds likelihoods."""
    column, _ = read_column(variable, values)
    return column is not None and column.soft is not None


def _sorted(query: str, states: Sequence[Label]) -> NDArray[Any]:
    try:
        return np.array(sorted(states))  # type: ignore[type-var]
    except TypeError:
        raise TacitError(
            f"the states of {query!r} are of different kinds, {list(states)}; expected all strings or all numbers"
        ) from None


def _indicators(y: NDArray[Any], states: Sequence[Label]) -> Floats:
    """Classes as distributions (rows, states)."""
    places = {label: i for i, label in enumerate(states)}
    for row, label in enumerate(y.tolist()):
        if label not in places:
            raise EvidenceError(f"y, row {row}: {label!r} is not a state of the query; expected one of {list(states)}")
    return np.eye(len(states))[[places[label] for label in y.tolist()]]

"""`TACClassifier` and `TACRegressor`: Bayesian networks, testing ones among them, as scikit-learn estimators.

Rows of X become evidence, y is what the posterior of the query is learned from, and predictions are read from that
posterior. The network is the user's, and the columns of X are variables of it; or it is made for the table: one of
several structures that validation chooses, or `default_network`, whose tests compare the ranks of numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.frames import as_array
from tacit.evidence.read import read_column
from tacit.learn import Fit, estimate, fit
from tacit.learn import options as arguments
from tacit.learn.fitting.losses import Loss, check_loss
from tacit.learn.fitting.training import FULL_BATCH_ROWS
from tacit.model.cpt import CPT, check_gamma
from tacit.model.variable import DEFAULT_STATES, Label, Variable, similar
from tacit.query.network import Network
from tacit.query.tac import TAC, compile
from tacit.sklearn.default import Ranks, Scaled, default_network
from tacit.sklearn.explanation import Feature, FeatureTest, Prediction, compared, weights_of
from tacit.sklearn.model_selection import STRENGTHS, LabelledTable, candidates, choose
from tacit.sklearn.table import FeatureTable, read_numbers, read_table
from tacit.theory.findings import without_each

COUNTED_PRIOR = 1.0  # pseudo-counts of the tables that a given network starts from
EM_STEPS = 20
HOLD = 10.0  # how many rows these count as in training
CHOSEN_ROWS = 200_000  # up to which it sees all rows in every step: it starts near its end
CHOSEN_STEPS = 30  # of the chosen network's training on all rows, from where its validation led
TESTS, COMPONENTS = 2, 2  # of the default network
STEPS = 100  # of the default network's training on all rows; 500 take four times as long and score the same


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


Encoder = Callable[[Any], dict[str, Any]]  # from X, as read, to evidence


@dataclass(frozen=True, eq=False)
class Start:
    """A query to train, with the settings that suit it; `prior` is for every entry, or for the tables of `centre`."""

    tac: TAC
    prior: float = 0.0
    steps: int | None = None
    restarts: int | None = None
    centre: Network | None = None
    optimizer: str = "auto"


class _TACEstimator(BaseEstimator):  # type: ignore[misc]
    """What classifier and regressor share: from X to evidence, training, and the posterior."""

    _loss: str
    _prior: float  # pseudo-counts, for the default network

    def __init__(
        self,
        network: Network | None = None,
        query: str | None = None,
        evidence: Sequence[str] | None = None,
        tests: int | None = None,
        components: int | None = None,
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

    def _explained(self, X: Any) -> tuple[list[tuple[str, Any]], Floats]:
        """The names and values of the features that one row has, and the posterior with all, and without each one."""
        check_is_fitted(self)
        read = self._read(X, reset=False)
        if (rows := _num_samples(X)) != 1:
            raise EvidenceError(f"explain takes one row, got {rows:,}; give X[:1], or X.iloc[[0]] of a frame")
        known = self.tac_.read(self._encoder(read))
        features = {
            variable: (name, value)
            for (variable, name), value in zip(self._features(), _values(read), strict=True)
            if variable in known.columns and not known.columns[variable].empty
        }
        posterior = without_each(self.tac_, known.columns, list(features))
        if np.isnan(posterior[0]).any():
            raise EvidenceError("the evidence has probability 0, so there is no prediction to explain")
        return list(features.values()), posterior

    def _features(self) -> list[tuple[str, str]]:
        """For every column of X, its variable and its name."""
        names = list(map(str, getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])))
        if self.network is None:
            return [(f"E{i}", name) for i, name in enumerate(names)]
        named = self._encoder.names if isinstance(self._encoder, Named) else ()
        return [(name, name) for name in (names if hasattr(self, "feature_names_in_") else named)]

    def _compared(self, X: Any) -> tuple[FeatureTest, ...]:
        """The tests of the default network, if that was learned, for one row."""
        if not isinstance(self._encoder, Scaled):
            return ()
        row, names = self._read(X, reset=False)[0], [name for _, name in self._features()]
        return compared(self.network_, self.tac_.selected(self.to_evidence(X)), self._encoder.ranks, names, row)

    def _posterior(self, X: Any) -> Floats:
        evidence = self.to_evidence(X)
        posterior = self.tac_.posterior(evidence)
        return np.broadcast_to(posterior, (_num_samples(X), posterior.shape[1]))  # no column may say anything

    def _read(self, X: Any, reset: bool) -> Any:
        """X after scikit-learn's checks: an array of floats for the default network, else a frame or any array."""
        if self.network is None:
            return read_numbers(self, X, reset)
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
        """Compile the query and learn its network; `states` are those of the query of a network made for the table."""
        self._check_settings()
        # a row of weight 2 counts as two rows, also against pseudo-counts
        scale = np.count_nonzero(weights) / weights.sum()
        start = self._start(X, targets, states, weights)
        prior = start.prior if self.prior is None or start.centre is not None else self.prior
        self.fit_: Fit = fit(
            start.tac,
            self._encoder(X),
            targets,
            loss=self._loss if self.loss is None else self.loss,
            optimizer=start.optimizer if self.optimizer == "auto" else self.optimizer,
            steps=start.steps if self.steps is None else self.steps,
            restarts=start.restarts if self.restarts is None else self.restarts,
            seed=self._seed(),
            validation=self.validation,
            progress=False,
            weights=weights,
            gamma=self.gamma,
            prior=prior * scale if start.centre is None else (start.centre, prior * scale),
        )
        self.tac_: TAC = self.fit_.tac
        self.network_: Network = self.fit_.network
        return self

    def _check_settings(self) -> None:
        """Say what is wrong before long work, not after it."""
        if self.prior is not None:
            arguments.not_negative("prior", self.prior, "None, or a number of pseudo-counts")
        for name in ("steps", "restarts"):
            arguments.whole_or_none(name, getattr(self, name))
        if self.validation is not None:
            arguments.share("validation", self.validation, "a share of the rows")
        if self.loss is not None:
            check_loss(self.loss)
        if not isinstance(self.gamma, str):
            check_gamma(self.gamma)

    def _start(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        """What to train, and what the settings are where none are given."""
        return Start(self._given(X)) if self.network is not None else self._default(X, states, weights)

    def _seed(self) -> int:
        try:
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        except (TypeError, ValueError):
            raise TacitError(
                f"random_state is {self.random_state!r}, expected None, a whole number from 0 to 2**32 - 1, or a "
                "numpy.random.RandomState"
            ) from None

    def _default(self, X: Floats, states: Sequence[Label], weights: Floats) -> Start:
        """The query of the default network."""
        tests = TESTS if self.tests is None else self.tests
        components = COMPONENTS if self.components is None else self.components
        net = default_network(X.shape[1], states, tests, components)
        features = [name for name in net if name.startswith("E")]
        observed = tuple(name for name in net if name.startswith("V"))
        self._encoder: Encoder = Scaled(tuple(Ranks.of(column, weights) for column in X.T), observed)
        tac = compile(net, "Q", features, hard=observed, effort="low")  # a tree of families: nothing to search for
        all_rows = self.optimizer != "adam" and len(weights) <= FULL_BATCH_ROWS
        return Start(tac, self._prior, STEPS if all_rows else None, restarts=1)

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
    """A classifier whose probabilities are the posterior of a Bayesian network.

    Without a network, X holds numbers and text, and y any classes. One of a few networks is learned, which rows held
    out choose: naive Bayes, or with two components per class, through which columns interact; and, where values are
    missing, with a tree of the columns, which tells what they may have been. Numbers become soft evidence on a few
    levels. The tables say nothing about the class at first; training leaves that as far as the rows demand, and
    validation says how strongly to hold on to it.

    With a network, X holds evidence on its variables, and what the network knows stays as it is. The rest is estimated
    from X and y (`tacit.estimate`), and then trained on to predict y (`tacit.fit`), from these tables and around them.

    Parameters
    ----------
    network, query
        The network to learn and the variable that y is about: y holds states of it.
    evidence
        The variables that the columns of X are evidence on: by name in a data frame (all columns, if left out), by
        place in an array. A column holds labels, or likelihoods of the first state of a binary variable.
    tests, components
        Testing nodes per feature and components per class, to learn `default_network` instead: X holds numbers, and
        tests compare their ranks with thresholds. If only one of them is given, the other is 2.
    gamma
        The slope to train with, or "learn". None: each testing node's own, 16 in the default network.
    loss
        "cross_entropy" if left out, "mse", or a function; see `tacit.fit`.
    optimizer, validation
        As for `tacit.fit`; `validation` is a share of the rows to hold out.
    steps, restarts
        As for `tacit.fit`, also where None. But without a network None is one start, and 30 steps from where validation
        led; with `tests`, 100 steps. (2,000 of "adam", which is taken for very many rows.)
    prior
        Without a network, how many rows the tables that say nothing count as; None: validation chooses. With one, or
        with `tests`, pseudo-counts as for `tacit.fit`; None: the estimated tables count as 10 rows, and with `tests`,
        0.1 pseudo-counts.
    random_state
        Where random starts, and the choice of the rows to hold out, come from.

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
    NaN and None are no evidence: X may have missing values, in training and in prediction. So is a category that was
    never seen. `fit` takes weights of rows; a row of weight 2 counts as two. Evidence of probability 0, which needs a
    network with known zeros, gives NaN from `predict_proba` and is an error in `predict`.

    All of scikit-learn's estimator checks pass (without a network).

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = TACClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.95
    True
    >>> model.network_.states("petal length (cm)")  # levels, a standard deviation apart
    ('0.2392', '1.999', '3.758', '5.517', '7.277')
    >>> model.to_evidence(X[:1])["petal length (cm)"].round(1)  # 1.4 cm
    array([[0.3, 0.6, 0. , 0. , 0. ]])
    """

    _loss, _prior = "cross_entropy", 0.1

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn may expect of the estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = not self._tested
        return tags

    @property
    def _tested(self) -> bool:
        """Whether the default network is asked for, whose tests compare numbers."""
        return self.network is None and (self.tests is not None or self.components is not None)

    def _read(self, X: Any, reset: bool) -> Any:
        """X after scikit-learn's checks: a list of columns for a network that is made for the table."""
        return super()._read(X, reset) if self.network is not None or self._tested else read_table(self, X, reset)

    def _start(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        if self.network is not None:
            return self._counted(X, targets, weights)
        start = super()._start if self._tested else self._chosen
        return start(X, targets, states, weights)

    def _chosen(self, X: FeatureTable, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        """The network that validation chooses."""
        strengths = STRENGTHS if self.prior is None else (float(self.prior),)
        rows = LabelledTable(X, self._columns(), targets, states, weights)
        choice = choose(candidates(X), strengths, rows, self._seed())
        self._encoder = choice.built.evidence
        tac = choice.built.with_numbers(choice.weights)
        optimizer = "lbfgs" if self.optimizer == "auto" and len(weights) <= CHOSEN_ROWS else self.optimizer
        steps = CHOSEN_STEPS if optimizer == "lbfgs" else None
        return Start(tac, choice.strength, steps, 1, choice.built.centre, optimizer)

    def _features(self) -> list[tuple[str, str]]:
        features = super()._features()
        if self.network is not None or self._tested:
            return features
        return [(variable, name) for variable, (_, name) in zip(self._columns(), features, strict=True)]

    def _columns(self) -> list[str]:
        """Names for the variables of the columns: their own, unless these are taken."""
        given = getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])
        return [f"{name} (column {i})" if name in ("C", "Q", "") else str(name) for i, name in enumerate(given)]

    def _counted(self, X: Any, targets: Floats, weights: Floats) -> Start:
        """The user's network, its tables estimated from the rows: where training starts, and what it holds on to."""
        tac = self._given(X)
        try:
            rows = self._encoder(X) | {tac.variable.name: targets}
            centre = estimate(tac.network, rows, COUNTED_PRIOR, weights, steps=EM_STEPS, progress=False).network
        except TacitError:  # unset thresholds, nothing to learn, impossible rows: training learns them or says so
            return Start(tac)
        start = tac.with_network(_startable(tac.network, centre))
        prior = HOLD if self.prior is None else float(self.prior)
        return Start(start, prior, None, None, centre if self.prior is None else None)

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
        return self._by_class(self._posterior(X))

    def _by_class(self, posterior: Floats) -> Floats:
        """Columns in the order of `classes_`."""
        states = self.tac_.variable.states
        return posterior[:, [states.index(label) for label in self.classes_.tolist()]]

    def explain(self, X: Any) -> Prediction:
        """Why one row gets its prediction: what each of its values adds, given all others.

        That is the weight of evidence of the value: by how much the log-odds of a class are higher than they would be
        if it were missing. With `tests`, also the tests of the default network, in the units of the features. For a
        network of your own, see also `tac_.explain(model.to_evidence(X))`.

        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = TACClassifier(prior=1.0, steps=5, random_state=0).fit(X, y)
        >>> prediction = model.explain(X[:1])
        >>> [(one.name, one.value) for one in prediction.features][2:]
        [('petal length (cm)', 1.4), ('petal width (cm)', 0.2)]
        """
        known, posterior = self._explained(X)
        posterior = self._by_class(posterior)
        pairs = zip(known, posterior[1:], weights_of(posterior), strict=True)
        features = tuple(Feature(name, value, without, weight) for (name, value), without, weight in pairs)
        return Prediction(tuple(self.classes_.tolist()), posterior[0], features, self._compared(X))

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
        known, posterior = self._explained(X)
        predicted = self._number(posterior[:, :1])
        pairs = zip(known, predicted[1:], strict=True)
        features = tuple(Feature(name, value, without, predicted[0] - without) for (name, value), without in pairs)
        return Prediction(None, predicted[0], features, self._compared(X))

    def _number(self, p: Floats) -> Floats:
        """The numbers that probabilities stand for."""
        low, high = self._range
        return low + (high - low) * p


def _values(X: Any) -> list[Any]:
    """The values of one row of X, as read."""
    if isinstance(X, FeatureTable):
        values = [column[0] for column in X.columns]
    elif hasattr(X, "columns"):
        values = [as_array(X[name])[0] for name in X.columns]
    else:
        values = list(X[0])
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _is_soft(variable: Variable, values: Any) -> bool:
    """Whether a column holds likelihoods."""
    column, _ = read_column(variable, values)
    return column is not None and column.soft is not None


def _startable(net: Network, estimated: Network) -> Network:
    """The network with estimated numbers where a whole table is to be learned; training fills other gaps."""
    cpts = {}
    for name in net.variables:
        cpt, own = net.cpt(name), estimated.cpt(name)
        if isinstance(cpt, CPT) and isinstance(own, CPT) and (cpt.learn or np.isnan(cpt.table).all()):
            cpts[name] = CPT(own.table, True, cpt.tie)
    return net.with_cpts(cpts)


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

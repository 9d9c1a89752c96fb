"""The base of `TACClassifier` and `TACRegressor`: from X to evidence, training, and the posterior.

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
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    assert_all_finite,
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)

from tacit.base.errors import EvidenceError, NetworkError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.frames import as_array
from tacit.evidence.read import read_column
from tacit.learn import Fit, fit, options
from tacit.learn.fitting.losses import Loss, check_loss
from tacit.learn.fitting.training import FULL_BATCH_ROWS
from tacit.model.cpt import check_gamma
from tacit.model.elements.variable import Label, similar
from tacit.query.network import Network
from tacit.query.tac import TAC, compile
from tacit.sklearn.default import Ranks, Scaled, default_network
from tacit.sklearn.explanation import FeatureTest, compared
from tacit.sklearn.rows import as_one_row, row_values
from tacit.sklearn.table import read_numbers
from tacit.theory.findings import without_each

DEFAULT_TESTS, DEFAULT_COMPONENTS = 2, 2  # of the default network
DEFAULT_STEPS = 100  # of the default network's training on all rows; 500 take four times as long and score the same


@dataclass(frozen=True)
class Named:
    """X as evidence for a given network: columns by name in a frame, by place in an array."""

    names: tuple[str, ...]
    soft: frozenset[str] = frozenset()  # whose columns held likelihoods when a frame was learned from

    def __call__(self, X: Any) -> dict[str, Any]:
        if not hasattr(X, "columns"):
            return {name: X[:, i] for i, name in enumerate(self.names)}
        # a plain array is likelihoods also where these rows hold only 0 and 1, which in a frame might be codes
        return {name: as_array(X[name]) if name in self.soft else X[name] for name in self.names}


@dataclass(frozen=True, eq=False)
class Start:
    """A query to train, with the settings that suit it; `prior` is for every entry, or for the tables of `centre`."""

    tac: TAC
    prior: float = 0.0
    steps: int | None = None
    restarts: int | None = None
    centre: Network | None = None
    optimizer: str = "auto"


class TACEstimator(BaseEstimator):  # type: ignore[misc]
    """A network as an estimator: the common part of classifier and regressor."""

    _loss: str
    _prior: float  # pseudo-counts, for the default network
    _without_tests = ""  # how to leave them out, where that is possible
    _encoder: Callable[[Any], dict[str, Any]]  # from X, as read, to evidence

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
        self.network, self.query, self.evidence = network, query, evidence
        self.tests, self.components, self.gamma = tests, components, gamma
        self.loss, self.optimizer, self.steps, self.restarts = loss, optimizer, steps, restarts
        self.prior, self.validation, self.random_state = prior, validation, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # NaN is no evidence
        tags.input_tags.string = tags.input_tags.categorical = self.network is not None
        return tags

    def to_evidence(self, X: Any) -> dict[str, Any]:
        """Rows of X as evidence, to ask `tac_` for more than predictions: `tac_.selected(model.to_evidence(X))`."""
        check_is_fitted(self)
        return self._encoder(self._read(X, reset=False))

    def _explained(self, X: Any) -> tuple[list[tuple[str, Any]], Floats]:
        """The names and values of one row's features, and the posteriors with all of them and without each."""
        read = self._one_row(X)
        columns = self.tac_.read(self._encoder(read)).columns
        features = {
            variable: (name, value)
            for (variable, name), value in zip(self._features(), row_values(read), strict=True)
            if variable in columns and not columns[variable].empty
        }
        posterior = without_each(self.tac_, columns, list(features))
        if np.isnan(posterior[0]).any():
            raise EvidenceError("the evidence has probability 0, so there is no prediction to explain")
        return list(features.values()), posterior

    def _one_row(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._read(as_one_row(X), reset=False)

    def _features(self) -> list[tuple[str, str]]:
        """The variable and the name of every column of X."""
        names = [str(name) for name in self._column_names()]
        if self.network is None:
            return [(f"E{i}", name) for i, name in enumerate(names)]
        if isinstance(self._encoder, Named) and not hasattr(self, "feature_names_in_"):
            names = list(self._encoder.names)
        return [(name, name) for name in names]

    def _column_names(self) -> Sequence[Any]:
        return getattr(self, "feature_names_in_", [f"x{i}" for i in range(self.n_features_in_)])

    def _compared(self, X: Any) -> tuple[FeatureTest, ...]:
        """The tests of the default network, if that was learned, for one row."""
        if not isinstance(self._encoder, Scaled):
            return ()
        row, names = self._read(X, reset=False)[0], [name for _, name in self._features()]
        return compared(self.network_, self.tac_.selected(self.to_evidence(X)), self._encoder.ranks, names, row)

    def _posterior(self, X: Any) -> Floats:
        evidence = self.to_evidence(X)  # raises an error before training
        posterior = self.tac_.posterior(evidence)
        return np.broadcast_to(posterior, (_num_samples(X), posterior.shape[1]))  # there may be no evidence at all

    def _read(self, X: Any, reset: bool) -> Any:
        """X after scikit-learn's checks: an array of floats for the default network, else a frame or any array."""
        if self.network is None:
            return read_numbers(self, X, reset)
        if hasattr(X, "columns"):
            return validate_data(self, X, reset=reset, skip_check_array=True)
        return validate_data(self, X, reset=reset, dtype=None, ensure_all_finite=False)

    def _labelled(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> tuple[Any, NDArray[Any], Floats]:
        X, y = self._read(X, reset=True), column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weights.any():
            raise EvidenceError("sample_weight is 0 in all rows; at least one row must count")
        return X, y, weights

    def _learn(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Self:
        """Compile the query and learn its network; `states` are the query's, if the network is made for the table."""
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
        """Raise errors about settings before long work, not after it."""
        if self.prior is not None:
            options.not_negative("prior", self.prior, "None, or a number of pseudo-counts")
        for name in ("steps", "restarts"):
            options.whole_or_none(name, getattr(self, name))
        if self.validation is not None:
            options.share("validation", self.validation, "a share of the rows")
        if self.loss is not None:
            check_loss(self.loss)
        if not isinstance(self.gamma, str):
            check_gamma(self.gamma)

    def _start(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        """The query to train, and default settings."""
        return Start(self._given(X)) if self.network is not None else self._default(X, states, weights)

    def _seed(self) -> int:
        try:
            return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        except (TypeError, ValueError):
            expected = "None, a whole number from 0 to 2**32 - 1, or a numpy.random.RandomState"
            raise TacitError(f"random_state is {self.random_state!r}, expected {expected}") from None

    def _default(self, X: Floats, states: Sequence[Label], weights: Floats) -> Start:
        tests = DEFAULT_TESTS if self.tests is None else self.tests
        components = DEFAULT_COMPONENTS if self.components is None else self.components
        try:
            net = default_network(X.shape[1], states, tests, components)
        except NetworkError as error:
            raise NetworkError(f"{error}{self._without_tests}") from None
        features = [name for name in net if name.startswith("E")]
        observed = tuple(name for name in net if name.startswith("V"))
        self._encoder = Scaled(tuple(Ranks.of(column, weights) for column in X.T), observed)
        tac = compile(net, "Q", features, hard=observed, effort="low")  # a tree of families: nothing to search for
        all_rows = self.optimizer != "adam" and len(weights) <= FULL_BATCH_ROWS
        return Start(tac, self._prior, DEFAULT_STEPS if all_rows else None, restarts=1)

    def _given(self, X: Any) -> TAC:
        net, query = self._network_and_query()
        names = self._names(X)
        tac = compile(net, query, names)
        framed = names if hasattr(X, "columns") else ()
        columns = [(name, read_column(net.variable(name), X[name])[0]) for name in framed]
        soft = (name for name, column in columns if column is not None and column.soft is not None)
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
        """The variables that the columns of X are evidence on."""
        frame = hasattr(X, "columns")
        if self.evidence is None and not frame:
            raise TacitError("X is an array; name the variable of each column, evidence=[...], or pass a data frame")
        listed = X.columns if self.evidence is None else self.evidence
        names = tuple(listed) if isinstance(listed, Iterable) else (listed,)
        if isinstance(listed, str) or not all(isinstance(name, str) for name in names):
            raise TacitError(f"evidence is {listed!r}, expected a list of the names of variables")
        if self.query in names:
            raise TacitError(f"the query {self.query!r} is among the evidence; leave its column out of X")
        if frame:
            for name in names:
                if name not in X.columns:
                    raise EvidenceError(f"X has no column {name!r}, which evidence= names{similar(name, X.columns)}")
        elif len(names) != X.shape[1]:
            raise EvidenceError(f"X has {plural(X.shape[1], 'column')}, expected {len(names)}: {', '.join(names)}")
        return names

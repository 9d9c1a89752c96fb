"""`TACClassifier`: a Bayesian network as a classifier of scikit-learn."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.learn import estimate
from tacit.learn.fitting.losses import Loss
from tacit.model.cpt import CPT
from tacit.model.elements.variable import Label
from tacit.query.network import Network
from tacit.sklearn.estimator import Start, TACEstimator
from tacit.sklearn.explanation import Feature, Prediction, differing
from tacit.sklearn.model_selection import STRENGTHS, Candidate, LabelledTable, candidates, choose
from tacit.sklearn.number_choice import choose_gaussian, choose_together
from tacit.sklearn.pool import Member, pooled
from tacit.sklearn.rows import as_one_row, mixed, row_values, stacked
from tacit.sklearn.table import FeatureTable, read_table
from tacit.theory.explain_difference import Comparison, compared, row_names
from tacit.theory.findings import weights_of_evidence

ESTIMATED_PRIOR = 1.0  # pseudo-counts of the tables that a given network starts from
ESTIMATED_STRENGTH = 10.0  # how many rows these tables count as in training
EM_STEPS = 20
CHOSEN_STEPS = 30  # of the chosen network's training on all rows, from where its validation led
FINE = (Candidate(13, slope=8.0, components=8),)  # curves of every kind, which interact: for many rows
NUMBERS = ("bins", "gaussian", "auto")
CHOSEN_FULL_BATCH_ROWS = 200_000  # up to which it sees all rows in every step: it starts near its end


class TACClassifier(ClassifierMixin, TACEstimator):  # type: ignore[misc]
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
    numbers
        Without a network, what becomes of numbers. "bins": soft evidence on levels, as above. "gaussian": they stay
        what they are, normally distributed given the class or hidden components of it; rows held out choose one of
        about 60 such networks. "auto": networks of both kinds predict together. The posterior is then the weighted
        mean of theirs, each taken to a power that calibrates it; weights and powers are what predicts the rows held out
        best, and are in `members_`.

    Attributes
    ----------
    classes_
        The classes, sorted; with a network, all states of the query.
    network_, tac_, fit_
        The learned network, its compiled query, and the whole result of `tacit.fit`. With `numbers="auto"`, those of
        the member with most weight; there is no `fit_` with Gaussian leaves, which are not trained but counted.
    members_
        With other `numbers` than "bins": what predicts together, each with its `tac`, `weight` and `power`.
    n_features_in_, feature_names_in_
        The columns of X.

    The variable of the classes is called as y is, if that has a name, as a Series of pandas may, and `Q` otherwise.

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
    _without_tests = "; to learn a network without tests, leave tests and components None"
    _kinds: Sequence[Candidate] | None = None  # to choose from; None: those that suit the table
    _target = "Q"  # what the variable of the classes is called, in a network that is made for the table

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
        numbers: str = "bins",
    ) -> None:
        super().__init__(
            network, query, evidence, tests, components, gamma, loss, optimizer, steps, restarts, prior, validation,
            random_state,
        )  # fmt: skip
        self.numbers = numbers

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.categorical = not self._tested
        return tags

    @property
    def _tested(self) -> bool:
        """Whether to learn the default network, whose tests compare numbers."""
        return self.network is None and (self.tests is not None or self.components is not None)

    def _read(self, X: Any, reset: bool) -> Any:
        return super()._read(X, reset) if self.network is not None or self._tested else read_table(self, X, reset)

    def _start(self, X: Any, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        if self.network is not None:
            return self._estimated(X, targets, weights)
        start = super()._start if self._tested else self._chosen
        return start(X, targets, states, weights)

    def _chosen(self, X: FeatureTable, targets: Floats, states: Sequence[Label], weights: Floats) -> Start:
        """The start of the network that validation chooses."""
        strengths = STRENGTHS if self.prior is None else (float(self.prior),)
        rows = self._rows(X, targets, states, weights)
        choice = choose(self._kinds or candidates(X), strengths, rows, self._seed())
        self._encoder = choice.built.evidence
        tac = choice.built.with_numbers(choice.weights)
        optimizer = "lbfgs" if self.optimizer == "auto" and len(weights) <= CHOSEN_FULL_BATCH_ROWS else self.optimizer
        steps = CHOSEN_STEPS if optimizer == "lbfgs" else None
        return Start(tac, choice.strength, steps, 1, choice.built.centre, optimizer)

    def _features(self) -> list[tuple[str, str]]:
        features = super()._features()
        if self.network is not None or self._tested:
            return features
        return [(variable, name) for variable, (_, name) in zip(self._columns(), features, strict=True)]

    def _columns(self) -> list[str]:
        """Names for the variables of the columns: their own, unless these are taken."""
        names = enumerate(self._column_names())
        return [f"{name} (column {i})" if name in ("C", self._target, "") else str(name) for i, name in names]

    def _rows(self, X: FeatureTable, targets: Floats, states: Sequence[Label], weights: Floats) -> LabelledTable:
        return LabelledTable(X, self._columns(), targets, states, weights, self._target)

    def _name_of(self, y: Any) -> str:
        """What the variable of the classes is called: as y is, if it has a name that no other variable has."""
        name = getattr(y, "name", None)
        taken = {"C", *map(str, getattr(self, "feature_names_in_", ()))}
        return name if isinstance(name, str) and name.strip() and name not in taken else "Q"

    def _estimated(self, X: Any, targets: Floats, weights: Floats) -> Start:
        """The start of the user's network, whose tables are estimated from the rows, and held on to in training."""
        tac = self._given(X)
        try:
            rows = self._encoder(X) | {tac.variable.name: targets}
            centre = estimate(tac.network, rows, ESTIMATED_PRIOR, weights, steps=EM_STEPS, progress=False).network
        except TacitError:  # unset thresholds, nothing to learn, impossible rows: training learns them or says so
            return Start(tac)
        start = tac.with_network(_startable(tac.network, centre))
        prior = ESTIMATED_STRENGTH if self.prior is None else float(self.prior)
        return Start(start, prior, None, None, centre if self.prior is None else None)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from rows X and their classes y."""
        named = y
        X, y, weights = self._labelled(X, y, sample_weight)
        self._target = self._name_of(named)
        check_classification_targets(y)
        if self.network is None:
            self.classes_ = np.unique(y)
            states = tuple(self.classes_.tolist())
        else:
            net, query = self._network_and_query()
            states = net.states(query)
            try:
                self.classes_ = np.array(sorted(states))  # type: ignore[type-var]
            except TypeError:
                problem = f"the states of {query!r} are of different kinds, {list(states)}"
                raise TacitError(f"{problem}; expected all strings or all numbers") from None
        if len(states) == 1:
            raise TacitError(f"there is one class only, {states[0]!r}; expected two or more")
        learn = self._learn if self.numbers == "bins" else self._learn_members
        return learn(X, _indicators(y, states), states, weights)

    def _check_settings(self) -> None:
        super()._check_settings()
        if self.numbers not in NUMBERS:
            raise TacitError(f"numbers is {self.numbers!r}, expected one of {', '.join(map(repr, NUMBERS))}")
        if self.numbers != "bins" and (self.network is not None or self._tested):
            given = "a network" if self.network is not None else "tests or components"
            raise TacitError(f"numbers={self.numbers!r} is for networks that are made for the table; leave out {given}")

    def _learn_members(self, X: FeatureTable, targets: Floats, states: Sequence[Label], weights: Floats) -> Self:
        """Learn networks with Gaussian leaves, and with `numbers="auto"` those of other kinds, to predict together."""
        self._check_settings()
        rows, seed = self._rows(X, targets, states, weights), self._seed()
        learners = [partial(self._on_levels, kinds) for kinds in (None, FINE)]
        gaussian = self.numbers == "gaussian"
        self.members_ = choose_gaussian(rows, seed) if gaussian else choose_together(rows, seed, learners)
        first = max(self.members_, key=lambda member: member.weight)
        self.tac_, self.network_, self._encoder = first.tac, first.tac.network, first.encoder
        return self

    def _on_levels(self, kinds: Sequence[Candidate] | None, rows: LabelledTable) -> Member:
        """What is learned from some rows if numbers are evidence on levels."""
        model = clone(self).set_params(numbers="bins", random_state=self._seed())
        model._kinds, model._target, model.n_features_in_ = kinds, rows.query, self.n_features_in_
        if hasattr(self, "feature_names_in_"):
            model.feature_names_in_ = self.feature_names_in_
        model._learn(rows.table, rows.targets, rows.classes, rows.weights)
        return Member(model.tac_, model._encoder)

    def _posterior(self, X: Any) -> Floats:
        if self.numbers == "bins":
            return super()._posterior(X)
        check_is_fitted(self)
        return pooled(self.members_, self._read(X, reset=False))

    def _explained(self, X: Any) -> tuple[list[tuple[str, Any]], Floats]:
        if self.numbers == "bins":
            return super()._explained(X)
        row = self._one_row(X)
        pairs = list(zip(map(str, self._column_names()), row_values(row), strict=True))
        known = [i for i, (_, value) in enumerate(pairs) if value is not None and value == value]
        return [pairs[i] for i in known], pooled(self.members_, row.without_each(known))

    def predict_proba(self, X: Any) -> Floats:
        """The probability of every class: (rows, classes)."""
        return self._by_class(self._posterior(X))

    def _by_class(self, posterior: Floats) -> Floats:
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
        X = as_one_row(X)
        names_and_values, posterior = self._explained(X)
        posterior = self._by_class(posterior)
        triples = zip(names_and_values, posterior[1:], weights_of_evidence(posterior), strict=True)
        features = tuple(Feature(*pair, without, weight) for pair, without, weight in triples)
        return Prediction(tuple(self.classes_.tolist()), posterior[0], features, self._compared(X))

    def compare(self, first: Any, second: Any, label: Any = None) -> Comparison:
        """Why two rows get different predictions: the values that differ, and what each adds, set in turn.

        Rows are given as for `explain`. Weights, which sum to the whole difference of the log-odds, are those of the
        class `label`; if left out, of the first row's most probable one.

        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = TACClassifier(prior=1.0, steps=5, random_state=0).fit(X, y)
        >>> why = model.compare(X.iloc[0], X.iloc[60])
        >>> why.query, [(one.name, one.first, one.second) for one in why.differences][0]
        ('target', ('petal length (cm)', '1.4', '3.5'))
        """
        check_is_fitted(self)
        both = stacked(*(as_one_row(row, "compare") for row in (first, second)))
        read = self._read(both, reset=False)
        names = list(map(str, self._column_names()))
        places = {name: i for i, name in enumerate(names)}

        def ask(changes: Sequence[Collection[str]]) -> Floats:
            picks = np.zeros((len(changes), len(names)), dtype=np.intp)
            for row, changed in enumerate(changes):
                picks[row, [places[name] for name in changed]] = 1
            return self._by_class(self._posterior(mixed(both, picks)))

        classes = tuple(self.classes_.tolist())
        if label is not None and label not in classes:
            raise TacitError(f"label is {label!r}, expected one of {', '.join(map(repr, classes))}")
        place = None if label is None else classes.index(label)
        query = "class" if self.network is None and self._target == "Q" else self.tac_.variable.name
        words = differing(names, row_values(read, 0), row_values(read, 1))
        return compared(query, classes, words, ask, place, row_names(first, second))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of every row."""
        p = self.predict_proba(X)
        for row in np.flatnonzero(np.isnan(p[:, 0]))[:1].tolist():
            raise EvidenceError(f"row {row}: the evidence has probability 0; no class is the most probable one")
        return np.asarray(self.classes_[p.argmax(axis=1)])


def _startable(net: Network, estimated: Network) -> Network:
    """The network with estimated numbers where a whole table is to be learned; training fills other gaps."""
    cpts = {}
    for name in net.variables:
        cpt, learned = net.cpt(name), estimated.cpt(name)
        if isinstance(cpt, CPT) and isinstance(learned, CPT) and (cpt.learn or np.isnan(cpt.table).all()):
            cpts[name] = CPT(learned.table, True, cpt.tie)
    return net.with_cpts(cpts)


def _indicators(y: NDArray[Any], states: Sequence[Label]) -> Floats:
    """Classes as distributions (rows, states)."""
    places = {label: i for i, label in enumerate(states)}
    for row, label in enumerate(y.tolist()):
        if label not in places:
            raise EvidenceError(f"y, row {row}: {label!r} is not a state of the query; expected one of {list(states)}")
    return np.eye(len(states))[[places[label] for label in y.tolist()]]

"""The questions that users ask of Bayesian and Markov networks alike, beside those about a query variable."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, overload

from tacit.base.floats import Floats
from tacit.evidence.read import EvidenceLike
from tacit.query.answers.by_variable import Information
from tacit.query.answers.credible import Credible
from tacit.query.answers.interval import Interval, LogInterval, exact_interval, exact_log_interval
from tacit.query.answers.probabilities import (
    Marginals,
    Probabilities,
    index_of,
    wants_labels,
    with_labels,
)
from tacit.query.asking.options import checked_limits
from tacit.query.assignments import Assignment, Labels, Prediction, most_probable, prediction, samples
from tacit.query.ensembles.base_ensemble import AnyEnsemble
from tacit.query.marginals import information, marginals, marginals_under
from tacit.query.numbers.mixture import Mixture
from tacit.query.query import OTHER_QUERY, Query

ALL_VARIABLES = "the answer has all variables, by name"
THEIR_NAMES = "variables=[...] names the variables to answer for"
INTERNAL = frozenset(  # public for other rooms only; tab completion leaves them out
    [
        *("always_known", "asks_for_numbers", "companion", "given_columns", "hidden", "in_dtype", "labelled"),
        *("log_scale", "mixture", "multiply_adds", "numbers", "one_row", "options", "plan", "program", "question"),
        *("refused", "require_no_do", "require_no_tables", "require_posterior", "require_query", "states_asked"),
        *("under", "with_network"),
    ]
)


class UserQuery(Query):
    """A query that users hold: what `TAC` and `FactorQuery` have in common."""

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in INTERNAL]

    @overload
    def marginals(
        self,
        evidence: EvidenceLike | None = None,
        labels: Literal[False] = False,
        tables: AnyEnsemble | None = None,
    ) -> dict[str, Floats]: ...

    @overload
    def marginals(
        self, evidence: EvidenceLike | None = None, *, labels: Literal[True], tables: None = None
    ) -> Marginals: ...

    def marginals(
        self, evidence: EvidenceLike | None = None, labels: bool = False, tables: AnyEnsemble | None = None
    ) -> dict[str, Floats] | Marginals:
        """The posterior of *every* variable, each (rows, states), from one forward and one backward pass.

        The derivative of p*(evidence) by the likelihood of a state is the probability of that state with the rest of
        the evidence (Darwiche's differential approach). Selected tables count as they were selected. With `labels`,
        the dictionary prints as one table, converts to one frame, and its values are labelled as in `posterior`. Of
        continuous variables, each column has a `Mixture`, unless all rows observe it. With `tables`, an `Ensemble`,
        under each of its networks, without continuous variables: (draws, rows, states) each.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> marginals = tac.marginals({"A": 0.8, "C": "lo"})
        >>> {name: p.round(4).tolist() for name, p in marginals.items()}
        {'A': [[0.4615, 0.5385]], 'B': [[0.4692, 0.5308]], 'C': [[1.0, 0.0]]}
        """
        if tables is not None:
            self._require_no_labels(labels)
            return marginals_under(self.under(tables), evidence)
        labels = wants_labels(labels, ALL_VARIABLES)
        posteriors = marginals(self, evidence)
        if not labels:
            return posteriors
        net = self.network
        return Marginals({
            name: p if isinstance(p, Mixture) else with_labels(p, [net.variable(name)], evidence)
            for name, p in posteriors.items()
        })  # fmt: skip

    exact: bool = True
    """Whether answers are exact; those of a `BoundedQuery` are not."""

    def interval(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Interval[Any]:
        """Ends between which the posterior certainly is: (rows, states) each; here, they are apart by rounding only.

        A query that is too wide for an exact answer gives real intervals: see `BoundedQuery`, and `within` of
        `tacit.compile`. With `labels`, numbers have the names of states and rows. Tables of testing nodes are taken to
        be those that the row's tests select in floats.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> sure = tac.interval({"A": 0.8, "C": "lo"})
        >>> tac.exact, sure.estimate.round(4).tolist(), bool(sure.width[0] < 1e-12)
        (True, [[0.4692, 0.5308]], True)
        """
        labels = wants_labels(labels, OTHER_QUERY)
        self.require_query("interval")
        variables = [self.network.variable(name) for name in self.question.query]
        posterior = self.posterior(evidence)
        index = index_of(evidence, len(posterior))
        sure = exact_interval(posterior, self.program.roundings, variables, index)
        return sure.labelled() if labels else sure

    def marginal_intervals(
        self, evidence: EvidenceLike | None = None, labels: bool = False
    ) -> dict[str, Interval[Any]]:
        """The intervals of all variables that have states, by name: see `interval`."""
        labels = wants_labels(labels, ALL_VARIABLES)
        answers = {}
        for name, posterior in self.marginals(evidence).items():
            if isinstance(posterior, Mixture):
                continue
            variable, index = self.network.variable(name), index_of(evidence, len(posterior))
            sure = exact_interval(posterior, 2 * self.program.roundings, [variable], index)
            answers[name] = sure.labelled() if labels else sure
        return answers

    def log_evidence_interval(self, evidence: EvidenceLike | None = None) -> LogInterval:
        """Ends between which `log_evidence` certainly is: (rows,) each; here, they are apart by rounding only."""
        return exact_log_interval(self.log_evidence(evidence), self.program.roundings, self.dtype)

    def refine(
        self, evidence: EvidenceLike | None = None, seconds: float = 10.0, labels: bool = False
    ) -> Interval[Any]:
        """The same as `interval`: there is nothing to refine in an exact answer."""
        checked_limits(None, seconds)
        return self.interval(evidence, labels)

    @overload
    def credible(
        self,
        evidence: EvidenceLike | None,
        ensemble: AnyEnsemble,
        level: float = 0.9,
        method: str = "draws",
        labels: Literal[False] = False,
    ) -> Credible[Floats]: ...

    @overload
    def credible(
        self,
        evidence: EvidenceLike | None,
        ensemble: AnyEnsemble,
        level: float = 0.9,
        method: str = "draws",
        *,
        labels: Literal[True],
    ) -> Credible[Probabilities]: ...

    def credible(
        self,
        evidence: EvidenceLike | None,
        ensemble: AnyEnsemble,
        level: float = 0.9,
        method: str = "draws",
        labels: bool = False,
    ) -> Credible[Floats] | Credible[Probabilities]:
        """How sure the posterior is: its mean under the networks of an ensemble, and intervals of probability `level`.

        The interval of each state leaves as many networks below it as above. The result has `.mean`, `.low` and
        `.high`, each (rows, states), or (rows, states of the first, ...) of several query variables; with `labels`,
        these have the names of states and rows. Rows are worked on in blocks, so that memory does not grow with the
        number of networks times that of rows.

        With `method="delta"`, no network of the ensemble is asked: the answer under their mean has derivatives by all
        tables, from one backward pass for each state, and these tell the variance of the log-odds. Variances of drawn
        tables are those of their Dirichlet distributions, so that one draw is enough; of other numbers, those of the
        networks. Tests are taken to come out as they do under the mean, and log-odds to be almost straight lines over
        the interval, as they are after many rows.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("fault", states=["yes", "no"])
        >>> net.add("noise", ["fault"], states=["loud", "quiet"])
        >>> rows = {"fault": ["yes"] * 10 + ["no"] * 20, "noise": ["loud"] * 8 + ["quiet"] * 22}
        >>> found = tacit.estimate(net, rows, prior=1.0)
        >>> tac = tacit.compile(found.network, query="fault", evidence=["noise"])
        >>> sure = tac.credible({"noise": ["loud", "quiet"]}, found.draws(1000))
        >>> sure.low.round(2).tolist(), sure.high.round(2).tolist()
        ([[0.7, 0.0], [0.03, 0.75]], [[1.0, 0.3], [0.25, 0.97]])
        """
        from tacit.query.credible import credible

        labels = wants_labels(labels, OTHER_QUERY)
        sure = credible(self, evidence, ensemble, level, method)
        return sure.labelled() if labels else sure

    def predict(self, evidence: EvidenceLike | None = None) -> Prediction:
        """The most probable state of the query for every row: its `labels` (rows,) and their `probability` (rows,).

        It can be used as the array of its labels. Of several query variables, it is the most probable joint state of
        these. Of states that are equally probable, the first is taken.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> predicted = tac.predict({"A": 0.8, "C": ["lo", "hi"]})
        >>> predicted.labels.tolist(), predicted.probability.round(4).tolist()
        (['false', 'true'], [0.5308, 0.676])
        >>> (predicted == ["false", "false"]).tolist()
        [True, False]
        """
        return prediction(self, evidence)

    def mpe(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The most probable explanation: the states of all variables that are jointly most probable, for every row.

        That is one assignment with the largest p*(all states, evidence). The most probable state of each variable by
        itself, which `marginals` tells, may be another, and all of those together may even be impossible. What is
        observed with certainty keeps its state. Of several that are equally probable, the same one is always taken.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query=None, evidence=["A", "C"])
        >>> best = tac.mpe({"A": 0.8, "C": ["lo", "hi"]})
        >>> {name: states.tolist() for name, states in best.states.items()}
        {'A': ['false', 'true'], 'B': ['false', 'true'], 'C': ['lo', 'hi']}
        >>> best.log_probability.round(4)
        array([-2.7646, -1.8202])
        """
        return most_probable(self, self.variables, evidence)

    def map(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The states of the query variables that are jointly most probable, with all others summed out, for every row.

        The order of elimination is constrained: sums first, then the maximum. That can be much more work than a
        posterior or an `mpe`, but it needs no table of all joint states of the query.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query=["A", "B"], evidence=["C"])
        >>> best = tac.map({"C": ["lo", "hi"]})
        >>> best.states["A"].tolist(), best.states["B"].tolist()
        (['false', 'false'], ['true', 'true'])
        """
        self.require_query("map")
        return most_probable(self, self.question.query, evidence)

    def sample(
        self, evidence: EvidenceLike | None = None, n: int = 1, seed: int | None = 0, numbers: bool = False
    ) -> dict[str, Labels]:
        """Exact, independent samples of all variables given the evidence of each row: labels (rows, n).

        They come from the network that the row's evidence selects. No sample is rejected or weighted, so improbable
        evidence costs nothing; where it is impossible, samples are None. The same seed gives the same samples,
        None others each time. With `numbers`, interval variables have floats inside their intervals, as in
        `Network.sample`.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query=None, evidence=["A", "C"])
        >>> drawn = tac.sample({"A": "true", "C": ["lo", "hi"]}, n=1000)
        >>> (drawn["B"] == "true").mean(axis=1).round(1)
        array([0.9, 0.9])
        """
        return samples(self, evidence, n, seed, numbers)

    @overload
    def information(
        self,
        evidence: EvidenceLike | None = None,
        labels: Literal[False] = False,
        variables: Iterable[str] | None = None,
    ) -> dict[str, Floats]: ...

    @overload
    def information(
        self, evidence: EvidenceLike | None = None, *, labels: Literal[True], variables: Iterable[str] | None = None
    ) -> Information: ...

    def information(
        self, evidence: EvidenceLike | None = None, labels: bool = False, variables: Iterable[str] | None = None
    ) -> dict[str, Floats] | Information:
        """For every variable, by how much the query's entropy is expected to drop if its state were observed: (rows,).

        In nats; apart from the query itself, the variable with the largest value is the one to ask about next. NaN
        where the state is observed already. All of it is said of the network that the present evidence selects. Where
        testing nodes are below a variable, observing it may also select other tables, which is not counted. Several
        query variables may have 1,024 joint states, since each takes a sweep.

        `variables` names those that can be asked about, where others are hidden; without it, all are answered for. With
        `labels`, the dictionary prints as a table of the ten that tell most, without the query, and converts to a frame
        of all.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> {name: drop.round(4).tolist() for name, drop in tac.information({"C": "lo"}).items()}
        {'A': [0.0766], 'B': [0.668], 'C': [nan]}
        """
        labels = wants_labels(labels, THEIR_NAMES)
        drops = information(self, evidence, variables=variables)
        if not labels:
            return drops
        rows = len(next(iter(drops.values()), ()))
        unasked = () if variables is not None else self.network.continuous
        return Information(drops, index_of(evidence, rows), self.question.query, unasked)

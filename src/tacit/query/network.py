"""The network that a user holds: the model, and what can be asked of it."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from tacit.base import pickling
from tacit.base.errors import EvidenceError, NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.lru import LRUCache
from tacit.base.text import shown
from tacit.base.version import package
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike, named_columns, read, read_column
from tacit.evidence.summaries.column_summary import summary_of
from tacit.evidence.summaries.discretizing import How, discretize, warn_of_default_bins
from tacit.evidence.summaries.observed_states import observed_states, warn_of_states
from tacit.model.adjustment import adjustment_set
from tacit.model.as_dict import network_from_dict, network_to_dict
from tacit.model.cpt import CPT
from tacit.model.densities import AnyDensity
from tacit.model.elements.intervals import Edges, checked_edges
from tacit.model.elements.variable import Label, Variable, listed_states, similar
from tacit.model.graph import Node, in_topological_order, parents_of
from tacit.model.mechanisms import Kind, with_mechanisms
from tacit.model.model import Model
from tacit.model.rendering import network_dot, network_html
from tacit.query.answers.by_variable import Information
from tacit.query.answers.probabilities import Marginals, index_of, wants_labels, with_labels
from tacit.query.answers.selection import selected_network
from tacit.query.asking.options import Asked, CompileOptions, checked_query, names_of
from tacit.query.assignments import Assignment, Labels, Prediction, Samples, samples
from tacit.query.label_issues import BELOW, LabelIssues, checked_label, label_issues
from tacit.query.one_row import OneRow
from tacit.query.query import Query, compiled, for_one_row
from tacit.query.user_query import ALL_VARIABLES, THEIR_NAMES, UserQuery

if TYPE_CHECKING:  # loaded by the methods that show it
    from tacit.query.ensembles.base_ensemble import AnyEnsemble
    from tacit.query.sensitivity import Sensitivity
    from tacit.theory.explain import Explanation
    from tacit.theory.explain_difference import Comparison
    from tacit.views.drawing import Drawing
    from tacit.views.page import Explorer

LITTLE_EFFORT = CompileOptions(effort="low")
INTERNAL = frozenset(["cut", "empty_copy", "node", "require_numbers", "with_unknown_tables"])  # not for tab completion
MAX_COMPILED = 16  # queries that Network.posterior keeps compiled


class Network(Model):
    """A Bayesian network, classical or testing. Nodes are added parents first.

    `selection` says which evidence the testing nodes see: that on their proper ancestors ("ancestral"), or all but that
    at or below testing nodes which are not their ancestors ("general").

    >>> net = Network("rain")
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> net.add("wet", parents=["rain"], cpt=[[0.9, 0.1], [0.05, 0.95]])
    >>> net
    Network('rain': 2 nodes, 1 edge, 6 parameters)
    """

    def __init__(self, name: str | None = None, selection: str = "ancestral") -> None:
        if isinstance(name, Iterable) and not isinstance(name, str):
            problem = f"a network's name must be a string or None, got {shown(name)}"
            raise NetworkError(f"{problem}; Network.from_edges(edges, rows) makes a network of edges")
        super().__init__(name, selection)
        self._compiled: LRUCache[UserQuery | TooLargeError] = LRUCache(MAX_COMPILED)  # or why there is no such query
        self._of_labels: LRUCache[OneRow] = LRUCache(MAX_COMPILED)  # by the query and the names of one row of labels

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_compiled", "_of_labels")

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._compiled, self._of_labels = LRUCache(MAX_COMPILED), LRUCache(MAX_COMPILED)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in INTERNAL]

    def _insert(self, node: Node) -> None:
        super()._insert(node)
        self._compiled.clear()
        self._of_labels.clear()

    def do(self, states: Mapping[str, Any]) -> Self:
        """A copy in which variables are set to states from outside: each loses its parents and is sure of its state.

        A state is named as in evidence. Unlike evidence, an intervention says nothing about what is above: asking
        `net.do({"X": "x"})` is asking what follows from making X equal to x, not from seeing it. All else stays as
        it is, and a node that was tied leaves its tie to the others.

        >>> from tacit import examples
        >>> net = examples.kidney_stones()
        >>> net.posterior("recovery", {"treatment": ["A", "B"]})[:, 0].round(3)  # seen
        array([0.78 , 0.826])
        >>> for treatment in ("A", "B"):
        ...     done = net.do({"treatment": treatment})
        ...     print(done.posterior("recovery")[0, 0].round(3))
        0.833
        0.779
        """
        if not isinstance(states, Mapping):
            raise NetworkError(f"do takes a mapping from variables to states, got {shown(states)}")
        fixed = {name: _fixed(self.variable(self.named(name)), state) for name, state in states.items()}
        return self._with_nodes(fixed, self.selection)

    def mechanisms(self, kind: Kind = "response", would: Iterable[str] | None = None) -> Self:
        """A network that answers as this one does, and in which chance is apart from what it decides.

        Each random node with parents becomes a function of them and of a new node, `NAME.response`. Questions about
        what would have been need that: `tacit.compile(..., would=[...])`. **The choice is an assumption**: the tables
        do not say how chance works, and other mechanisms with the same tables answer such questions in another way.
        `tacit.causal.bounds` says how far apart these answers can be.

        Parameters
        ----------
        kind
            "response": chance answers every state of the parents by itself, so that a state of the response is a
            function of the parents. Their number grows exponentially with the states of the parents. "monotone":
            chance is a level between 0 and 1, and the node has the state that is the quantile of this level. Where a
            parent's next state makes higher states more probable, it then never brings about a lower one: refused where
            it does not make them all more, or all less, probable. A mapping gives the kinds of some nodes, and None to
            leave one as it is; others are "response".
        would
            The variables that the other world will set, those of `compile(..., would=)`: only nodes below them get
            mechanisms. Parents that setting these does not change are in the same state in both worlds, so that
            responses are functions of the other parents, and "monotone" speaks of these alone. Answers are the same,
            and the network is smaller.

        >>> from tacit import examples
        >>> net = examples.kidney_stones().mechanisms()
        >>> net.parents("recovery"), len(net.states("recovery.response"))
        (('size', 'treatment', 'recovery.response'), 16)
        >>> net.posterior("recovery", {"treatment": ["A", "B"]})[:, 0].round(3)  # as before
        array([0.78 , 0.826])
        >>> small = examples.kidney_stones().mechanisms(would=["treatment"])
        >>> small.parents("recovery"), small.parents("recovery.response"), len(small.states("recovery.response"))
        (('treatment', 'recovery.response'), ('size',), 4)
        """
        return with_mechanisms(self, kind, None if would is None else names_of(self, would, "would"))

    def adjustment(
        self, x: str | Iterable[str], y: str | Iterable[str], latent: Iterable[str] = ()
    ) -> tuple[str, ...] | None:
        """Variables to adjust for, so that the effect of setting `x` on `y` can be told from what is merely observed.

        That is P(y | do(x)) = sum over z of P(y | x, z) P(z). None of the variables could be left out; there may be
        other sets. Where there is no such set among the variables that are not `latent`, the answer is None, and a
        `NoAdjustmentWarning` says why; the effect may be identifiable in other ways.

        >>> from tacit import examples
        >>> examples.kidney_stones().adjustment("treatment", "recovery")
        ('size',)
        """
        return adjustment_set(self, self._names(x), self._names(y), self._names(latent))

    def posterior(self, query: str | Sequence[str], evidence: EvidenceLike | None = None, labels: bool = False) -> Any:
        """P*(q) for every row of evidence: (rows, states of the query).

        Of several query variables, their joint posterior: (rows, states of the first, states of the second, ...).
        With `labels`, the same with the names of states and rows: it prints as a table, and converts to a frame. Of a
        continuous query, a `Mixture`, as of `TAC.posterior`.

        The query is compiled on first use, for the kinds of evidence it sees (a column with a state in every row is
        indexed), and kept: the next call with evidence on the same variables only evaluates it. Where that is refused,
        or takes seconds for every row, a single row is compiled for its own states, as by `given=`.

        The column of the query in a frame is not used, as a warning says: tables of test cases have one. In a mapping
        it is evidence like any other.

        >>> from tacit import examples
        >>> examples.abc().posterior("B", {"A": 0.8, "C": ["lo", "hi"]}).round(4)
        array([[0.4692, 0.5308],
               [0.676 , 0.324 ]])
        >>> examples.abc().posterior("B", {"A": 0.8, "C": ["lo", "hi"]}, labels=True)
        B      true     false
        0  0.469231  0.530769
        1  0.676000  0.324000
        """
        names = None
        if type(evidence) is dict and labels is False and type(query) is str:
            names = (query, *evidence)
            if (one := self._of_labels.peek(names)) and (answer := one.posterior(evidence)) is not None:
                return answer
        labels = wants_labels(labels, "name several variables to ask for in a list, as the query")
        asked = checked_query(self, query)
        known = self._read(evidence, (asked,) if isinstance(asked, str) else asked or ())
        tac = self._query(asked, known)
        if names and known.rows == 1 and len(tac.hard) == len(names) - 1 and (one := tac.one_row()):  # all are labels
            self._of_labels.get(names, lambda: one)
        answer = tac.posterior(known)  # not read again: the columns of an array follow the network, not the query
        if not labels or tac.asks_for_numbers:
            return answer
        return with_labels(answer, [self.variable(name) for name in tac.question.query], evidence)

    def explain(
        self,
        query: str,
        evidence: EvidenceLike | None = None,
        state: Label | None = None,
        threshold: float | None = None,
    ) -> Explanation:
        """Why one row of evidence gets its answer, as `TAC.explain` tells it of a query compiled for that evidence.

        The query is kept, as that of `posterior` is. The answer to an intervention is that of `net.do({...})`.

        >>> from tacit import examples
        >>> print(examples.kidney_stones().explain("recovery", {"size": "small", "treatment": "B"}))
        recovery=yes is the most probable with 86.7%, mainly because of size: small
        (82.6% without it), in spite of treatment: B (88.2% without it).
        <BLANKLINE>
        P*(recovery | size: small, treatment: B)
        yes  0.866667  ██████████████████████████
         no  0.133333  ████
        <BLANKLINE>
        What each finding adds to the log-odds of recovery=yes, given the others (nats)
        finding       without it  weight
        size: small     0.825714  +0.316
        treatment: B    0.882353  -0.143
        all together    0.802857  +0.468
        <BLANKLINE>
        No change of a single finding makes another state than recovery=yes the most probable.
        """
        from tacit.theory.explain import explain, one_row

        asked = checked_query(self, query)
        known = one_row(self._read(evidence, (asked,) if isinstance(asked, str) else asked or ()))
        try:
            tac = self._kept(asked, tuple(sorted(known.columns)), (), {})  # answers without each finding, too
        except TooLargeError:
            tac = self._query(asked, known)
        others = Evidence(1, {n: c for n, c in known.columns.items() if n not in tac.given})
        return explain(tac, others, state, threshold)

    def compare(self, query: str, first: EvidenceLike, second: EvidenceLike, state: Label | None = None) -> Comparison:
        """Why two rows of evidence get different answers; see `TAC.compare`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> net = examples.kidney_stones()
        >>> why = net.compare("recovery", {"size": "small", "treatment": "B"}, {"size": "large", "treatment": "B"})
        >>> [(one.name, one.first, one.second, one.weight[0].round(2).item()) for one in why.differences]
        [('size', 'small', 'large', -1.08)]
        """
        from tacit.theory.explain_difference import compare, read_rows, row_names

        asked = checked_query(self, query)
        queries = (asked,) if isinstance(asked, str) else asked or ()
        rows = row_names(first, second)
        one, other = read_rows(rows, first, second, lambda row: self._read(row, queries))
        names = sorted({*one.columns, *other.columns})
        try:
            tac = self._kept(asked, tuple(names), (), {})
        except TooLargeError:
            hard = sorted({*one.fully_observed} & {*other.fully_observed})
            tac = self._kept(asked, tuple(name for name in names if name not in hard), tuple(hard), {})
        return compare(tac, one, other, state, rows)

    def predict(self, query: str | Sequence[str], evidence: EvidenceLike | None = None) -> Prediction:
        """The most probable state of a query for every row; see `TAC.predict`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> examples.abc().predict("B", {"A": 0.8, "C": ["lo", "hi"]})
               B  probability
        0  false     0.530769
        1   true     0.676000
        """
        tac, known = self._asked(query, evidence)
        return tac.predict(known)

    def label_issues(self, name: str, rows: EvidenceLike, below: float = BELOW) -> LabelIssues:
        """The rows of a table whose label is improbable, given all else in the row: it may be wrong.

        Parameters
        ----------
        name
            The variable whose labels are judged.
        rows
            The table, with a column of these labels; where a label is missing, there is nothing to judge.
        below
            The probability below which a label is listed.

        >>> from tacit import examples
        >>> rows = {"smoke": ["yes", "no"], "bronc": ["yes", "yes"], "dysp": ["no", "yes"]}
        >>> examples.asia().label_issues("dysp", rows, below=0.3)
           dysp  probability  likely  probability
        0    no     0.189064     yes     0.810936
        [1 row; about 0.387 expected without errors]
        """
        own = self.variable(self.named(name))
        limit, known = checked_label(own, below), self._read(rows)
        others = Evidence(known.rows, {other: one for other, one in known.columns.items() if other != own.name})
        posterior = self._query(own.name, others).posterior(others)
        return label_issues(own, known.columns.get(own.name), posterior, limit, index_of(rows, known.rows))

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> dict[str, Floats]: ...

    @overload
    def marginals(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Marginals: ...

    def marginals(self, evidence: EvidenceLike | None = None, labels: bool = False) -> dict[str, Floats] | Marginals:
        """The posterior of every variable for every row; see `TAC.marginals`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> {name: p.round(4).tolist() for name, p in examples.abc().marginals({"A": 0.8, "C": "lo"}).items()}
        {'A': [[0.4615, 0.5385]], 'B': [[0.4692, 0.5308]], 'C': [[1.0, 0.0]]}
        """
        labels = wants_labels(labels, ALL_VARIABLES)
        tac, known = self._asked(None, evidence)
        return tac.marginals(known, labels=True) if labels else tac.marginals(known)

    def mpe(self, evidence: EvidenceLike | None = None) -> Assignment:
        """The jointly most probable states of all variables; see `TAC.mpe`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> {name: states[0] for name, states in examples.abc().mpe({"C": "hi"}).states.items()}
        {'A': 'false', 'B': 'true', 'C': 'hi'}
        """
        tac, known = self._asked(None, evidence)
        return tac.mpe(known)

    @overload
    def information(
        self,
        query: str | Sequence[str],
        evidence: EvidenceLike | None = None,
        labels: Literal[False] = False,
        variables: Iterable[str] | None = None,
    ) -> dict[str, Floats]: ...

    @overload
    def information(
        self,
        query: str | Sequence[str],
        evidence: EvidenceLike | None = None,
        *,
        labels: Literal[True],
        variables: Iterable[str] | None = None,
    ) -> Information: ...

    def information(
        self,
        query: str | Sequence[str],
        evidence: EvidenceLike | None = None,
        labels: bool = False,
        variables: Iterable[str] | None = None,
    ) -> dict[str, Floats] | Information:
        """What each variable would tell about a query; see `TAC.information`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> {name: drop.round(4).tolist() for name, drop in examples.abc().information("B", {"C": "lo"}).items()}
        {'A': [0.0766], 'B': [0.668], 'C': [nan]}
        """
        labels = wants_labels(labels, THEIR_NAMES)
        tac, known = self._asked(query, evidence)
        if labels:
            return tac.information(known, labels=True, variables=variables)
        return tac.information(known, variables=variables)

    def sensitivity(self, query: str | Sequence[str], evidence: EvidenceLike | None = None) -> Sensitivity:
        """How a posterior depends on the numbers; see `TAC.sensitivity`. The query is kept, as by `posterior`.

        >>> from tacit import examples
        >>> examples.abc().sensitivity("B", {"A": 0.8, "C": "lo"}).entries()[0].name
        "P(A='true')"
        """
        from tacit.query.sensitivity import sensitivity

        return sensitivity(*self._asked(query, evidence))

    def log_likelihood(self, rows: EvidenceLike | None = None) -> Floats:
        """The logarithm of p*(evidence) of every row: (rows,); minus infinity where it is impossible.

        >>> from tacit import examples
        >>> examples.abc().log_likelihood({"A": ["true", "false"], "C": ["lo", "hi"]}).round(4)
        array([-2.5903, -1.0498])
        """
        known = self._read(rows)
        return self._query(None, known).log_evidence(known)

    def _asked(self, query: str | Sequence[str] | None, evidence: EvidenceLike | None) -> tuple[UserQuery, Evidence]:
        """A query for evidence, and the evidence, which was read once."""
        asked = checked_query(self, query)
        known = self._read(evidence, (asked,) if isinstance(asked, str) else asked or ())
        return self._query(asked, known), known

    def _query(self, asked: Asked, known: Evidence) -> UserQuery:
        """A query for such evidence; of one row, where that is refused or slow, for its own states."""
        hard = tuple(sorted(known.fully_observed))
        soft = tuple(sorted(n for n in known.columns if n not in hard))

        def special() -> UserQuery:
            given = {name: self.states(name)[int(known.columns[name].states()[0])] for name in hard}
            return self._kept(asked, soft, (), given)

        return for_one_row(lambda: self._kept(asked, soft, hard, {}), special if hard and known.rows == 1 else None)

    def _kept(
        self, asked: Asked, soft: tuple[str, ...], hard: tuple[str, ...], given: Mapping[str, Label]
    ) -> UserQuery:
        """A query that is compiled on first use and kept; if it is refused, the reason is kept."""

        def make() -> UserQuery | TooLargeError:
            try:
                return compiled(UserQuery, self, asked, soft, hard, CompileOptions(given=given))
            except TooLargeError as error:
                return TooLargeError(str(error))

        query = self._compiled.get((asked, soft, hard, *given.items()), make)
        if isinstance(query, TooLargeError):
            raise TooLargeError(str(query))  # not the one that is kept, which would gather tracebacks
        return query

    def sample(self, n: int, seed: int | None = 0, numbers: bool = False) -> dict[str, Labels]:
        """Samples of all variables from the network as it stands, without evidence: labels (n,), by name.

        The columns can be given as evidence, or to pandas. See `TAC.sample` for samples given evidence.

        With `numbers`, interval variables have floats in place of labels, uniform inside the interval. A half-infinite
        interval gives its finite edge, or where the next interval has that, the number just below it; one from -inf
        to inf gives NaN.

        >>> from tacit import examples
        >>> drawn = examples.abc().sample(10_000)
        >>> float((drawn["A"] == "true").mean().round(2))
        0.3
        >>> net = Network()
        >>> net.add("Age", bins=[0, 18, 65], cpt=[0.5, 0.5])
        >>> ages = net.sample(1000, numbers=True)["Age"]
        >>> bool((ages >= 0).all() and (ages <= 65).all()), float(ages.mean().round())
        (True, 25.0)
        """
        tac = self._query(None, self._read(None))
        return Samples({name: drawn[0] for name, drawn in samples(tac, None, n, seed, numbers).items()})

    def select(self, evidence: EvidenceLike | None = None) -> Self:
        """The Bayesian network, with no testing node, that one row of evidence selects.

        See `TAC.selected` for many rows.
        """
        known = self._read(evidence)
        if known.rows != 1:
            raise EvidenceError(f"select explains one row of evidence, got {known.rows} rows; see TAC.selected")
        self.require_numbers()
        if not self.testing_nodes:
            return self.copy()
        # naming the testing nodes as evidence keeps all of them in the query; without a value they say nothing
        tac = compiled(Query, self, self.testing_nodes[-1], [*known.columns, *self.testing_nodes], (), LITTLE_EFFORT)
        return selected_network(self, tac.ask(known, selected=True).selected)

    def _read(self, evidence: EvidenceLike | None, queries: Sequence[str] = ()) -> Evidence:
        return read(evidence, [self.variable(name) for name in self], empty=True, queries=queries)

    def to_dict(self) -> dict[str, Any]:
        """The network as plain data, ready for JSON; see `docs/format.md`."""
        return network_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The network that `to_dict` wrote."""
        return network_from_dict(data, cls)

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[tuple[str, str]],
        rows: EvidenceLike | None = None,
        states: Mapping[str, int | Sequence[Label]] | None = None,
        nodes: Iterable[str] = (),
        bins: How | Mapping[str, How] | None = None,
        densities: Mapping[str, AnyDensity] | None = None,
    ) -> Self:
        """A network of these edges, parent first, whose tables are to be learned.

        Parameters
        ----------
        edges
            Pairs (parent, child), in any order.
        rows
            A frame, or columns by name, whose values are the states of the variables: those that occur, sorted.
        states
            Labels, or their number, of variables for which `rows` are not to decide. Without either, a variable has the
            states "true" and "false".
        nodes
            Further variables, which need not have edges.
        bins
            Makes numeric columns of `rows` interval variables: edges by column, or anything else that
            `tacit.discretize` takes. Measurements that it does not name, which are fractions or more than 12 different
            whole numbers, have intervals of about as many rows each, as in `tacit.discover`; a `DefaultBinsWarning`
            says so. A category is no measurement.
        densities
            The densities of variables without children whose values stay numbers, such as
            `{"heat": tacit.Gaussian()}`.

        >>> import tacit
        >>> rows = {"rain": ["yes", "no", "no", "no"], "wet": ["wet", "dry", "wet", "dry"]}
        >>> net = tacit.Network.from_edges([("rain", "wet")], rows)
        >>> net.states("wet"), net.edges
        (('dry', 'wet'), (('rain', 'wet'),))
        >>> tacit.estimate(net, rows).network.posterior("rain", {"wet": "wet"})
        array([[0.5, 0.5]])
        >>> rows = {"age": [17.5, 30, 45, 80], "retired": [False, False, False, True]}
        >>> net = tacit.Network.from_edges([("age", "retired")], rows, bins={"age": [0, 18, 65, 120]})
        >>> net.states("age")
        ('[0, 18)', '[18, 65)', '[65, 120]')
        """
        net, columns = cls(), {} if rows is None else named_columns(rows)
        if columns is None:
            raise NetworkError(
                f"rows of type {type(rows).__name__} are not understood; expected a frame, or columns by name"
            )
        parents = parents_of(edges, nodes)
        listed = dict(states or {})
        for name in listed:
            if name not in parents:
                raise NetworkError(f"states= names {name!r}, which no edge does{similar(name, parents)}")
        continuous = dict(densities or {})
        for name in continuous:
            if name not in parents:
                raise NetworkError(f"densities= names {name!r}, which no edge does{similar(name, parents)}")
            if name in listed:
                raise NetworkError(f"{name!r} is named in states= and in densities=; expected one of them")
        intervals = _intervals(columns, bins, parents, {**listed, **continuous})
        observed = [name for name in parents if name in columns and not (name in listed or name in continuous)]
        for name in in_topological_order(parents):
            if name in intervals or name in continuous:
                net.add(name, parents[name], bins=intervals.get(name), cpt=continuous.get(name))
                continue
            if name in observed:
                listed[name] = observed_states(name, columns[name])
            elif columns and name not in listed:
                problem = f"the edges name {name!r}, of which the rows have no column{similar(name, columns)}"
                raise NetworkError(f"{problem}; if it is never observed, give its states in states=")
            net.add(name, parents[name], listed.get(name))
        variables = [net.variable(name) for name in observed]
        warn_of_states(variables, lambda name: _counts(net.variable(name), columns[name]))
        return net

    def to_networkx(self) -> Any:
        """The graph as a `networkx.DiGraph`, whose nodes have their labels as `states`.

        >>> from tacit import examples
        >>> graph = examples.diamond().to_networkx()
        >>> list(graph.edges), graph.nodes["A"]["states"]
        ([('A', 'B'), ('A', 'C'), ('B', 'D'), ('C', 'D')], ('true', 'false'))
        """
        graph = package("networkx", "networkx", "to_networkx").DiGraph(name=self.name or "")
        graph.add_nodes_from((name, {"states": self.states(name)}) for name in self)
        graph.add_edges_from(self.edges)
        return graph

    def to_dot(self) -> str:
        """A Graphviz drawing; testing nodes are shaded, as in the paper."""
        return network_dot(self)

    def plot(
        self,
        evidence: EvidenceLike | None = None,
        *,
        do: Mapping[str, Any] | None = None,
        query: str | Iterable[str] = (),
        captions: Mapping[str, str] | str | os.PathLike[str] | None = None,
        nodes: Iterable[str] | None = None,
        width: float | str | None = None,
        strength: Mapping[tuple[str, str], float] | None = None,
        undirected: Iterable[tuple[str, str]] = (),
    ) -> Drawing:
        """A picture of the network, which a notebook shows; testing nodes are shaded.

        Its `save` writes .svg, .png and .pdf files; the last two need matplotlib.

        Parameters
        ----------
        evidence
            One row of evidence, `{}` for none: every node shows its posterior as bars, and what is observed is orange
            with a thick outline, which is dotted for soft evidence. If left out, nodes only show their names.
        do
            States that variables are set to from outside, as by `do`: they are violet with a dashed outline, and the
            edges into them, which are cut, are dotted.
        query
            Variables that are asked for, which have a double outline.
        captions
            The name to show in place of a variable's own, by variable, or the TOML file that `page` takes, with labels
            and states. Long names are wrapped.
        nodes
            Draw only these variables, and the edges between them.
        width
            How wide the picture is, in centimetres or as a text such as "3.3in"; letters have 9 points, or down to 6 to
            fit a page. Where that is not enough, they are smaller, and a warning says what helps.
        strength
            The share of bootstrap samples that have an edge (parent, child), from 0 to 1: edges below 1 are dashed, and
            a legend says so.
        undirected
            Edges whose direction is not known, drawn without a tip.

        >>> from tacit import examples
        >>> picture = examples.abc().plot({"C": "lo"})
        >>> "C" in picture.svg and "100.0%" in picture.svg
        True
        """
        from tacit.views.drawing import draw
        from tacit.views.page import Captions

        words = Captions.read(captions, self) if isinstance(captions, str | os.PathLike) else captions
        return draw(
            self,
            evidence,
            do=do,
            query=query,
            captions=words,
            nodes=nodes,
            width=width,
            strength=strength,
            undirected=undirected,
        )

    def page(
        self,
        path: str | os.PathLike[str],
        captions: Mapping[str, str] | str | os.PathLike[str] | None = None,
        query: str | None = None,
        tables: AnyEnsemble | None = None,
        decide: str | None = None,
    ) -> None:
        """Write the explorer of the network: one HTML file that shows every posterior and takes evidence by clicks.

        The page computes its answers itself, without a server or a network connection.

        Parameters
        ----------
        path
            The file to write.
        captions
            The names to show, by variable; or a TOML file with a title, labels, groups and shown states, as
            `docs/howto/explorer.md` describes it.
        query
            The variable that the page opens with; another can be chosen there.
        tables
            An ensemble, such as `estimate.draws(1000)`: lines on the bars are then 90% intervals of the posteriors
            under 200 of its networks, or fewer where these have very many numbers.
        decide
            Of a network with value nodes, the variable to decide: the page says which action is best, click by click.

        >>> import tempfile, pathlib
        >>> from tacit import examples
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "abc.html"
        >>> examples.abc().page(path, query="C")
        >>> path.stat().st_size < 500_000
        True
        """
        from tacit.views.page import Captions, write_page

        write_page(self, path, Captions.chosen(self, captions, query, decide), tables=tables)

    def explore(
        self,
        captions: Mapping[str, str] | str | os.PathLike[str] | None = None,
        query: str | None = None,
        tables: AnyEnsemble | None = None,
        decide: str | None = None,
    ) -> Explorer:
        """The explorer of the network in a cell of a notebook; the parameters are those of `page`."""
        from tacit.views.page import Captions, Explorer, page_html

        return Explorer(page_html(self, Captions.chosen(self, captions, query, decide), tables=tables))

    def _repr_html_(self) -> str:
        return network_html(self)


def _counts(own: Variable, values: Any) -> NDArray[Any]:
    """How many rows of a column have each state."""
    column, _ = read_column(own, values)
    assert column is not None
    assert column.codes is not None
    return np.bincount(column.codes[column.codes >= 0], minlength=own.card)


def _intervals(
    columns: Mapping[Any, Any],
    bins: How | Mapping[str, How] | None,
    nodes: Collection[str],
    listed: Collection[str],
) -> dict[str, Edges]:
    """The edges of the numeric columns among some nodes whose states are not listed.

    Measurements that `bins` does not name have the intervals that `tacit.discover` gives them.
    """
    chosen = {} if bins is None else _chosen_intervals(columns, bins, nodes, listed)
    if bins is not None and not isinstance(bins, Mapping):
        return chosen
    free = [name for name in nodes if name in columns and name not in listed and name not in chosen]
    summaries = {name: summary_of(name, columns[name]) for name in free}
    for name, summary in summaries.items():
        summary.require_values(name)
    measured = [name for name, summary in summaries.items() if summary.measured]
    warn_of_default_bins(measured)
    return chosen | {name: summaries[name].edges(name, "quantile") for name in measured}


def _chosen_intervals(
    columns: Mapping[Any, Any],
    bins: How | Mapping[str, How],
    nodes: Collection[str],
    listed: Collection[str],
) -> dict[str, Edges]:
    """The edges that `bins` asks for."""
    if isinstance(bins, Mapping):
        for name in bins:
            if name not in nodes:
                raise NetworkError(f"bins= names {name!r}, which no edge does{similar(name, nodes)}")
            if name in listed:
                raise NetworkError(f"{name!r} is named in states= and in bins=; expected one of them")
        explicit = {name: how for name, how in bins.items() if name not in columns and not isinstance(how, str | int)}
        known = {name: checked_edges(how) for name, how in explicit.items()}
        for name in bins:
            if name in columns:
                summary_of(name, columns[name]).require_numbers(name)
        return known | discretize(columns, {name: how for name, how in bins.items() if name not in explicit})
    return discretize({name: columns[name] for name in nodes if name in columns and name not in listed}, bins)


def _fixed(own: Variable, state: Any) -> Node:
    """A node without parents that is sure of its state."""
    if own.continuous:
        problem = "it is continuous, and nothing is below it, so setting it changes nothing else"
        raise NetworkError(f"do cannot set {own.name!r}: {problem}; leave it out")
    possible = np.zeros(0)
    with suppress(EvidenceError):
        column, single = read_column(own, state)
        if column is not None and single:
            possible = np.asarray(column.likelihoods()[:, 0] > 0, dtype=np.float64)
    if possible.sum() != 1:
        raise NetworkError(f"do cannot set {own.name!r} to {shown(state)}; expected one of {listed_states(own)}")
    return Node(own, (), CPT(possible).named(own, ()))

"""The compiled query that a user holds."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from tacit.base import machine
from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.html import facts
from tacit.base.text import large, listed
from tacit.compiler import trace
from tacit.compiler.jointree import Jointree, jointree
from tacit.compiler.program import Cost
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.lower import lower
from tacit.evidence.column import Evidence
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.model.factor_graph import FactorGraph
from tacit.query.answers.selection import Selected
from tacit.query.asking.counterfactual import counterfactual
from tacit.query.asking.options import CompileOptions, Limits, checked_limits
from tacit.query.factor_query import FactorQuery, compiled_graph
from tacit.query.filtering import filtered
from tacit.query.network import Network
from tacit.query.numbers.intervals import means, quantiles
from tacit.query.query import compiled
from tacit.query.user_query import UserQuery

if TYPE_CHECKING:  # methods that need more than a posterior does load it when they are called
    from tacit.bounds.querying.bounded_decision import BoundedDecisionQuery
    from tacit.bounds.querying.bounded_query import BoundedQuery
    from tacit.query.decisions.decision_query import DecisionQuery
    from tacit.query.sensitivity import Sensitivity
    from tacit.theory.explain import Explanation
    from tacit.theory.explain_difference import Comparison

# What is done once: marginals of wide Markov networks took 0.9 nanoseconds for each multiply-add, and 31 for each entry
# of a table, there and back. Two numbers of 8 bytes are kept of an entry, and copies of the largest tables are made.
STATIC_SPEED, ENTRY, STATIC_BYTES = 1e9, 35, 24
MAX_EXACT = 5_000_000  # multiply-adds of a row, milliseconds, up to which an exact answer is preferred to an interval


@overload
def compile(
    net: Network,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = ...,
    hard: Sequence[str] = ...,
    do: Sequence[str] = ...,
    given: Mapping[str, Label] | None = ...,
    engine: str = ...,
    dtype: str = ...,
    order: Sequence[str] | None = ...,
    effort: str = ...,
    threads: int | None = ...,
    per_row: Sequence[str] = ...,
    would: Sequence[str] = ...,
) -> TAC: ...


@overload
def compile(
    net: Network,
    query: None = ...,
    evidence: Sequence[str] = ...,
    hard: Sequence[str] = ...,
    do: Sequence[str] = ...,
    given: Mapping[str, Label] | None = ...,
    engine: str = ...,
    dtype: str = ...,
    order: Sequence[str] | None = ...,
    effort: str = ...,
    threads: int | None = ...,
    per_row: Sequence[str] = ...,
    *,
    decide: str,
) -> DecisionQuery: ...


@overload
def compile(
    net: Network,
    query: None = ...,
    evidence: Sequence[str] = ...,
    hard: Sequence[str] = ...,
    do: Sequence[str] = ...,
    given: Mapping[str, Label] | None = ...,
    engine: str = ...,
    dtype: str = ...,
    order: Sequence[str] | None = ...,
    effort: str = ...,
    threads: int | None = ...,
    per_row: Sequence[str] = ...,
    *,
    decide: str,
    within: float,
    seconds: float = ...,
) -> DecisionQuery | BoundedDecisionQuery: ...


@overload
def compile(
    net: Network | FactorGraph,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = ...,
    hard: Sequence[str] = ...,
    do: Sequence[str] = ...,
    given: Mapping[str, Label] | None = ...,
    engine: str = ...,
    dtype: str = ...,
    order: Sequence[str] | None = ...,
    effort: str = ...,
    threads: int | None = ...,
    per_row: Sequence[str] = ...,
    would: Sequence[str] = ...,
    *,
    within: float,
    seconds: float = ...,
) -> TAC | FactorQuery | BoundedQuery: ...


@overload
def compile(
    net: FactorGraph,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = ...,
    hard: Sequence[str] = ...,
    do: Sequence[str] = ...,
    given: Mapping[str, Label] | None = ...,
    engine: str = ...,
    dtype: str = ...,
    order: Sequence[str] | None = ...,
    effort: str = ...,
    threads: int | None = ...,
    per_row: Sequence[str] = ...,
) -> FactorQuery: ...


def compile(
    net: Network | FactorGraph,
    query: str | Sequence[str] | None = None,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    do: Sequence[str] = (),
    given: Mapping[str, Label] | None = None,
    engine: str = "auto",
    dtype: str = "float64",
    order: Sequence[str] | None = None,
    effort: str = "auto",
    threads: int | None = None,
    per_row: Sequence[str] = (),
    would: Sequence[str] = (),
    *,
    decide: str | None = None,
    within: float | None = None,
    seconds: float = 30.0,
) -> TAC | FactorQuery | BoundedQuery | DecisionQuery | BoundedDecisionQuery:
    """Compile a query once, to be evaluated on many rows of evidence.

    Parameters
    ----------
    net, query
        The network (or a `FactorGraph`, for a `FactorQuery`), and the variable whose joint and posterior are wanted;
        several of them, for the joint posterior of their states; or None, to ask for `log_evidence`, `marginals`,
        `mpe` or `sample` only.
    evidence
        The variables that take soft or hard evidence; a row may leave any of them out.
    hard
        The variables that are observed, with certainty, in every row. Tables are indexed by their states,
        which is much cheaper than a likelihood per state.
    do
        The variables that every row sets to a state, as an intervention: what is above them learns nothing from it.
        A row is answered as `net.do({...})` would answer it.
    given
        States that are known when the query is compiled, the same for all rows. They count as evidence, also in
        `joint` and `log_evidence`, and cost nothing: other states are not compiled.
    engine
        What evaluates the query: "native" (machine code generated for it), "tape" (an interpreter), "numpy", "torch",
        "cuda" (kernels generated for it, on an NVIDIA GPU), or "auto" to choose by cost, and to generate code when the
        rows repay it.
    dtype
        "float64" or "float32".
    order
        An elimination order to follow, instead of a search for a cheap one.
    effort
        How long to search: "low", "auto", or "high" (seconds; uses cotengra if it is installed).
    threads
        How many threads the query may use, here and in `fit`. None: as many as the environment variable
        `TACIT_THREADS` says, or else one for every core that the process and its container may use.
    per_row
        The variables whose tables every row brings along. That of `T` is in the column `"T.table"` of the evidence,
        (rows, states of each parent, states of T), or one table for all rows. What the network says of it does not
        count, and need not be known.
    would
        The variables of a question about what would have been. The evidence is what was; rows also say, in a column
        `X.would`, which state X would have been in, and the answer is that of the world which shares everything random
        with this one. Variables that this may change have a counterpart `Y.would`, and must be functions of their
        parents: see `Network.mechanisms`.
    decide
        In place of a query, the variable whose state is to be chosen for each row, so that the value nodes of the
        network are expected to be worth most: for a `DecisionQuery`. Nothing below it can be evidence.
    within
        Where the query is too wide for an exact answer: the width of intervals that is narrow enough, such as 0.01, for
        a `BoundedQuery`, whose intervals certainly hold the posterior. It changes nothing where an exact answer takes
        at most 5 million multiply-adds for each row, and what is done once for all rows takes about `seconds` or less.
        Without it, only what is too wide for any answer is refused, with a `TooLargeError`.
    seconds
        How long to look for narrow intervals at most, where `within` is given. What comes before, an attempt to find
        an exact answer, leaves out searches that may take longer.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> tac.posterior({"A": 0.8, "C": [[0.6, 0.4]]}).round(6)
    array([[0.585393, 0.414607]])
    >>> net = tacit.Network()
    >>> net.add("Drug", cpt=[0.5, 0.5])
    >>> net.add("Luck", cpt=[0.3, 0.7])
    >>> net.add("Cured", ["Drug", "Luck"], cpt=[[[1, 0], [1, 0]], [[1, 0], [0, 1]]])
    >>> tac = tacit.compile(net, query="Cured", evidence=["Drug", "Cured"], would=["Drug"])
    >>> tac.posterior({"Drug": "true", "Cured": "true", "Drug.would": "false"})  # cured by the drug, or anyway?
    array([[0.3, 0.7]])
    """
    options = CompileOptions(do, given, engine, dtype, order, effort, threads, per_row)
    checked_limits(within, seconds)
    if decide is not None:
        if query is not None or would:
            other = "would" if query is None else "query"
            raise TacitError(f"{other}= and decide= are two questions; compile each by itself")
        return _decision(net, decide, evidence, hard, options, None if within is None else Limits(within, seconds))
    if would:
        net, query, evidence, hard, options = counterfactual(net, query, evidence, hard, would, options)
    try:
        patient = options if within is None else replace(options, patience=seconds)
        exact = _exact(net, query, evidence, hard, patient)
    except TooLargeError as refusal:
        if within is None:
            remedy = "or give within=0.01, for intervals that certainly hold the answer"
            raise TooLargeError(f"{refusal}; {remedy}") from None
        return _bounded(net, query, evidence, hard, options, Limits(within, seconds), refusal)
    if within is not None and (slow := _too_slow(exact.program.cost, seconds)):
        with suppress(TooLargeError):  # where there are no intervals, it stays exact
            return _bounded(net, query, evidence, hard, options, Limits(within, seconds), TooLargeError(slow))
    return exact


def _too_slow(cost: Cost, seconds: float) -> str | None:
    """Why intervals are preferred to an exact answer, if they are."""
    if cost.multiply_adds > MAX_EXACT:
        return f"{large(cost.multiply_adds)} multiply-adds for each row (limit {MAX_EXACT:,} with within=)"
    if (work := cost.static_multiply_adds + ENTRY * cost.static_elements) > seconds * STATIC_SPEED:
        once = large(cost.static_multiply_adds)
        return f"{once} multiply-adds once, which may take {work / STATIC_SPEED:.0f} seconds (limit {seconds:g})"
    if (size := STATIC_BYTES * cost.static_elements) > machine.memory():
        return f"all tables at one time would take {size:.3g} bytes (limit {machine.memory():.3g})"
    return None


def _exact(
    net: Network | FactorGraph, query: Any, evidence: Sequence[str], hard: Sequence[str], options: CompileOptions
) -> TAC | FactorQuery:
    if isinstance(net, FactorGraph):
        return compiled_graph(net, query, evidence, hard, options)
    return compiled(TAC, net, query, evidence, hard, options)


def _decision(
    net: Any, decide: str, evidence: Sequence[str], hard: Sequence[str], options: CompileOptions, limits: Limits | None
) -> DecisionQuery | BoundedDecisionQuery:
    from tacit.query.decisions.decision_query import compiled_decision

    try:
        return compiled_decision(net, decide, evidence, hard, options, needed=limits is not None)
    except TooLargeError as refusal:
        if limits is None:
            raise
        from tacit.bounds.querying.bounded_decision import BoundedDecisionQuery

        return BoundedDecisionQuery(net, decide, evidence, hard, options, limits, refusal)


def _bounded(*question: Any) -> BoundedQuery:
    from tacit.bounds.querying.bounded_query import bounded

    return bounded(*question)


class TAC(UserQuery):
    """A query compiled once, evaluated on many rows. Made by `tacit.compile`."""

    network: Network

    def mean(self, evidence: EvidenceLike | None = None) -> Floats:
        """The mean of the query, an interval variable, given each row of evidence: (rows,).

        Numbers are taken to be uniform within each interval; all of a half-infinite one counts as its finite edge, of
        which an `OpenIntervalWarning` tells.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Job", cpt=[0.5, 0.5])
        >>> net.add("Age", ["Job"], bins=[0, 20, 60], cpt=[[0.1, 0.9], [0.7, 0.3]])
        >>> tac = tacit.compile(net, query="Age", evidence=["Job"])
        >>> tac.mean({"Job": ["true", "false"]})
        array([37., 19.])
        """
        if self.asks_for_numbers:
            return self.mixture(evidence).mean
        return means(self.variable, self.posterior(evidence))

    def quantile(self, evidence: EvidenceLike | None = None, q: float | Sequence[float] = 0.5) -> Floats:
        """Quantiles of the query, an interval variable, given each row of evidence; the median, if `q` is left out.

        Of a number `q`, (rows,); of several, (rows, len(q)). As for `mean`, numbers are taken to be uniform within
        each interval, and a half-infinite one to be its finite edge, with the same warning.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Age", bins=[0, 20, 60], cpt=[0.5, 0.5])
        >>> tacit.compile(net, query="Age").quantile({}, [0.25, 0.5, 0.75])
        array([[10., 20., 40.]])
        """
        if self.asks_for_numbers:
            return self.mixture(evidence).quantile(q)
        return quantiles(self.variable, self.posterior(evidence), q)

    def selected(self, evidence: EvidenceLike | None = None) -> dict[str, Selected]:
        """For every testing node that the query needs, how each row of evidence decided it."""
        return self.ask(evidence, selected=True).selected

    def circuit(self, fold: bool = True) -> Circuit:
        """The scalar testing arithmetic circuit: sums, products and tests.

        With `fold`, the circuit of the program that runs, in which known 0s and 1s have disappeared. Without, the
        paper's trace, with every node kept: evidence is entered into the tables, one elimination order serves
        selection and inference, and hard evidence is a likelihood of 1.
        """
        self.require_posterior()
        self.require_no_tables("a circuit")
        if fold:
            return lower(self.program, self.network)
        self.require_no_do()
        named = dict.fromkeys((*self.evidence, *(name for name, _ in self.question.given)))
        return lower(trace(self.network, self.question.query, tuple(named)), self.network, fold=False)

    def jointree(self) -> Jointree:
        """The plan of the inference phase as clusters of variables in a tree."""
        if self.plan.structured:
            problem = "the query was compiled by structured elimination, which has no clusters and so no jointree"
            raise TacitError(f"{problem}; give an order= to compile it with tables")
        return jointree(self.plan.problem, self.plan.path)

    def explain(
        self, evidence: EvidenceLike | None = None, state: Label | None = None, threshold: float | None = None
    ) -> Explanation:
        """Why one row of evidence gets its answer: every test and its margin, and the function that applies there.

        The first sentence, `conclusion`, says what the answer is mainly due to. Of a network without testing nodes, the
        explanation shows what each finding adds given all the others: the posterior without it, and its weight of
        evidence, the logarithm of how much it raises the odds of a state (see `Finding`). Findings with the largest
        weights come first, and all of them together last: several that say the same weigh little each. Weights are
        those of the most probable state; `state` chooses another. Then come the changes of a single finding that make
        another state the most probable one, the smallest first. What the row sets (`do=`) is no finding.

        Where one would decide otherwise from a probability of `state` on, say 10% of a disease, give it as `threshold`:
        the changes are then those that make the state cross it.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> print(tac.explain({"A": 0.8, "C": "lo"}))
        B=false is the most probable with 53.1%; the closest of its 2 tests, B at
        A='false', fails by 0.0316 (0.368 >= 0.4).
        <BLANKLINE>
        P*(B | A: true 0.8, C: lo)
         true  0.469231  ██████████████
        false  0.530769  ████████████████
        <BLANKLINE>
        test            comparison       margin   selects  changes at
        B at A='true'   0.631579 >= 0.5  +0.132   plus     A = 0.7
        B at A='false'  0.368421 >= 0.4  -0.0316  minus    A = 0.777778
        <BLANKLINE>
        With this selection, as a function of the likelihoods of A = true:
        p*(B=true) = 0.035 + 0.0325 A
        p*(B=false) = 0.315 - 0.3075 A
        >>> stones = tacit.compile(tacit.examples.kidney_stones(), query="recovery", evidence=["size", "treatment"])
        >>> print(stones.explain({"size": "small", "treatment": "B"}))
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

        self.require_no_tables("an explanation")
        if not self.do:
            return explain(self, evidence, state, threshold)
        known = one_row(self.read(evidence))
        states = {name: self.network.states(name)[int(known.columns[name].states()[0])] for name in self.do}
        others = [name for name in self.evidence if name not in self.always_known]
        options = replace(self.options, do=(), given=self.given, order=None)
        after = compiled(TAC, self.network.do(states), self.query, others, self.hard, options)
        seen = {n: c for n, c in known.columns.items() if n not in states and n not in self.given}
        why = explain(after, Evidence(1, seen), state, threshold)
        return replace(why, evidence={f"do({name})": str(value) for name, value in states.items()} | dict(why.evidence))

    def compare(self, first: EvidenceLike, second: EvidenceLike, state: Label | None = None) -> Comparison:
        """Why two rows of evidence get different answers: the findings that differ, and what each adds.

        Each finding is set in its turn to what the second row says, and its weight is by how much that raises the
        log-odds of a state: the most probable one of the first row, or `state`. Those that move the answer most by
        themselves are set first; other orders share the same difference out in other ways. Rows of a pandas frame are
        `frame.iloc[0]`, or `frame.loc["name"]`; they are called by their names in what is printed.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.kidney_stones(), query="recovery", evidence=["size", "treatment"])
        >>> print(tac.compare({"size": "small", "treatment": "B"}, {"size": "large", "treatment": "A"}))
        recovery=yes falls from 86.7% to 73.0%, mainly because size changes from small
        to large.
        <BLANKLINE>
        P*(recovery) of two rows
        recovery     first    second  difference
        yes       0.866667  0.730038   -0.136629
        no        0.133333  0.269962   +0.136629
        <BLANKLINE>
        What each finding adds to the log-odds of recovery=yes, set in turn (nats)
        finding    first  second   with it  weight
        size       small  large   0.687500   -1.08
        treatment  B      A       0.730038  +0.206
        """
        from tacit.theory.explain_difference import compare

        self.require_no_tables("a comparison")
        return compare(self, first, second, state)

    def filtered(self, name: str, evidence: EvidenceLike | None = None) -> Floats:
        """The posterior of every step `name[t]`, from the evidence of steps up to t alone: (rows, steps, states).

        This is for networks of `tacit.unroll`. All steps are answered in one run, in time proportional to their number
        (several times that of the log-likelihood). Evidence on variables without a number is known from the start.
        The posterior given all evidence, of later steps, too, is that of `marginals`. Where selection is general, and a
        testing node may see evidence of later steps, each step would have tables of its own: that is refused.

        >>> import tacit
        >>> weather = tacit.Network("weather")
        >>> weather.add("Rain[0]", cpt=[0.5, 0.5])
        >>> weather.add("Rain[1]", ["Rain[0]"], cpt=[[0.7, 0.3], [0.3, 0.7]])
        >>> for t in (0, 1):
        ...     weather.add(f"Umbrella[{t}]", [f"Rain[{t}]"], cpt=[[0.9, 0.1], [0.2, 0.8]])
        >>> net = tacit.unroll(weather, steps=3)
        >>> tac = tacit.compile(net, None, evidence=["Umbrella[0]", "Umbrella[1]", "Umbrella[2]"])
        >>> rows = {"Umbrella[0]": "true", "Umbrella[1]": ["true", "false"], "Umbrella[2]": None}
        >>> tac.filtered("Rain", rows)[..., 0].round(3)
        array([[0.818, 0.883, 0.653],
               [0.818, 0.174, 0.37 ]])
        """
        return filtered(self, name, evidence)

    def sensitivity(self, evidence: EvidenceLike | None = None) -> Sensitivity:
        """How the posterior depends on the numbers: its derivatives by every entry of every table and density.

        While an entry changes, the rest of its row changes in proportion. Numbers of densities, such as means, change
        alone. Derivatives pass through sigmoids; hard tests are constant. Tied entries count one by one. All
        derivatives of a row come from one forward pass, and one backward pass for each state of the query; several
        query variables may have 1,024 joint states.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> sensitivity = tac.sensitivity({"A": 0.8, "C": "lo"})
        >>> sensitivity.derivatives["A", "table"].round(4).tolist()
        [[[0.9467, -0.9467], [-0.9467, 0.9467]]]
        >>> first = sensitivity.entries()[0]
        >>> f"{first.name} is {first.value}; the decision changes at {first.flips_at:.4f}"
        "P(A='true') is 0.3; the decision changes at 0.3333"
        """
        from tacit.query.sensitivity import sensitivity

        return sensitivity(self, evidence)

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the query, with its numbers, as an ONNX model (opset 17) that runs without tacit.

        Inputs are the variables of `evidence`: likelihoods (rows, states) in the query's `dtype`, ones where a row has
        no evidence; for a variable in `hard`, the positions (rows,) of the observed states, as int64; for a continuous
        variable, its numbers (rows,) or (rows, columns), NaN where they are missing. For each `T` in `per_row` there is
        `T.table`. Likelihoods and tables count as they are given and are not scaled to sum to 1. Of joint numbers, all
        must be missing or none. Outputs are `posterior` (rows, states), NaN where the evidence has probability zero,
        and `log_evidence` (rows,). The model's metadata has the labels of all states. It cannot compute a row again
        whose numbers leave the range of floats, as `posterior` does: of such rows it may answer wrongly (see "Small
        numbers" in the documentation).

        >>> import onnxruntime, pathlib, tempfile, tacit
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "abc.onnx"
        >>> net = tacit.examples.abc()
        >>> tacit.compile(net, query="B", evidence=["A"], hard=["C"]).to_onnx(path)
        >>> session = onnxruntime.InferenceSession(path)
        >>> session.run(["posterior"], {"A": [[0.8, 0.2]], "C": [0]})[0].round(6)
        array([[0.469231, 0.530769]])
        """
        from tacit.io.bridges.onnx import write_onnx

        write_onnx(self, path)

    def _repr_html_(self) -> str:
        cost = self.program.cost
        return facts(
            repr(self),
            {
                "query": self.query if isinstance(self.query, str) else ", ".join(self.query or ()),
                "evidence": listed([name for name in self.evidence if name not in self.always_known]),
                "always observed": listed(self.hard),
                "set by intervention": listed(self.do),
                "with a table in every row": listed(self.per_row),
                "given": ", ".join(f"{name}={state}" for name, state in self.given.items()),
                "operations": len(self.program),
                "multiply-adds per row": cost.multiply_adds,
                "bytes written per row": cost.bytes,
                "numbers": f"{self.dtype}, engine {self.options.engine}",
            },
        )

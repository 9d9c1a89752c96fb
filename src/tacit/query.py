"""A query, compiled once and evaluated on many rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np

from tacit import engines, machine, pickling
from tacit.answer import Answer, ObservedQueryWarning, warn_impossible
from tacit.circuit import Circuit
from tacit.circuit.lower import lower
from tacit.compiler import compile_program, trace
from tacit.compiler.built_in import holds_for
from tacit.compiler.eliminate import Plan
from tacit.compiler.jointree import Jointree, jointree
from tacit.compiler.program import Cost, Program
from tacit.compiler.prune import certain, possible_states
from tacit.compiler.question import Question
from tacit.cpt import CPT, TestingCPT
from tacit.engines.engine import Engine, Sweep
from tacit.errors import EvidenceError, NetworkError, TacitError, TooLargeError
from tacit.evidence import Column, Evidence, EvidenceLike, blocks, is_frame, read
from tacit.factored import FunctionCPT, Mux, NoisyOr
from tacit.floats import Floats
from tacit.model import Model
from tacit.naming import warn_missing
from tacit.one_row import Encoder, OneRow
from tacit.probabilities import Labelling, Probabilities
from tacit.selection import Selected, join_rows, no_rows, selected_rows
from tacit.variable import Label, Variable
from tacit.warned import warn
from tacit.words import large, plural

DTYPES = ("float64", "float32")
Q = TypeVar("Q", bound="Query")
N = TypeVar("N", bound=np.generic)
Asked = str | tuple[str, ...] | None  # one query variable, several, or none
MAX_JOINT = 2**22  # joint states of several query variables up to which their posterior is compiled
DEAR = 1e9  # multiply-adds of one row, seconds, from which it pays to compile a query for the states of that row alone
MAX_COMPANIONS = 16  # other questions that a query keeps compiled
MAX_COUNTED = 2_000_000  # multiply-adds up to which cost() counts the nodes of the circuit


class Query:
    """A query compiled once, evaluated on many rows. Made by `compiled`; `TAC` is the one that users hold."""

    def __init__(
        self,
        net: Model,
        query: Asked,
        question: Question,
        program: Program,
        plan: Plan,
        dtype: str = "float64",
        engine: str = "auto",
        threads: int | None = None,
        effort: str = "auto",
        refused: TooLargeError | None = None,
        order: tuple[str, ...] | None = None,
    ) -> None:
        self.query, self.question, self.program, self.plan, self.dtype = query, question, program, plan, dtype
        self._refused = refused  # why there is no posterior: the program is that of the evidence alone
        self.network = net.copy()  # nodes added to the user's network later are none of ours
        self._variables = [net.variable(n) for n in net]
        self.choice, self.threads, self.effort, self.order = engine, threads, effort, order
        self._engine: Engine | None = None
        self._one_row: OneRow | None = None
        self._companions: dict[Question, Query] = {}  # other questions about the same network, the newest ones

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_engine", "_one_row", "_companions")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state), _engine=None, _one_row=None, _companions={})

    @property
    def evidence(self) -> tuple[str, ...]:
        """The variables that may have evidence."""
        return self.question.evidence

    @property
    def hard(self) -> tuple[str, ...]:
        """The variables that are observed in every row."""
        return self.question.hard

    @property
    def do(self) -> tuple[str, ...]:
        """The variables that every row sets, as interventions."""
        return self.question.do

    @property
    def given(self) -> dict[str, Label]:
        """The states that are known of every row."""
        return {name: self.network.states(name)[state] for name, state in self.question.given}

    @property
    def variable(self) -> Variable:
        """The query variable; an error where there are several, or none: some things can be done with one only."""
        if not isinstance(self.query, str):
            found = f"asks for {self.query!r} together" if self.query else "has none (query=None)"
            raise TacitError(f"a query of one variable is needed here, and this one {found}; compile one with a name")
        return self.network.variable(self.query)

    @property
    def certain(self) -> tuple[str, ...]:
        """The variables that have a state in every row: those in `hard` and in `do`."""
        return (*self.hard, *self.do)

    def require_no_do(self) -> None:
        """An error where the query has interventions, for what is not offered with them."""
        if self.do:
            name = self.do[0]
            raise TacitError(f"this is not offered for queries with do=; compile net.do({{{name!r}: STATE}}) instead")

    # asking -----------------------------------------------------------------------------------------------

    def ask(self, evidence: EvidenceLike | None = None, selected: bool = False) -> Answer:
        """Posterior, joint and log-probability of the evidence for every row, from one run.

        With `selected`, also how each row decided the testing nodes.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A"])
        >>> answer = tac.ask({"A": [0.8, 0.1]})
        >>> answer.posterior.round(4).tolist(), answer.log_evidence.round(4).tolist()
        ([[0.6053, 0.3947], [0.6773, 0.3227]], [-0.9676, -0.4155])
        """
        if not selected and (one := self._one_row or self.one_row()) and (found := one.answer(evidence)) is not None:
            return found
        self.require_posterior()
        return self._answer(evidence, self._states, selected)

    def _answer(self, evidence: EvidenceLike | None, shape: tuple[int, ...], selected: bool = False) -> Answer:
        known = self._read(evidence, lazily=True)
        engine = self.engine().runner(known.rows, Sweep.SELECTIONS if selected else Sweep.FORWARD)
        found, decided = [], []
        for block in known.blocks(engine.chunk):  # so that memory does not grow with the number of rows
            result = engine.run(block.columns, block.rows, selected)
            found.append((result.joint.T.reshape(block.rows, *shape), result.exponent))
            decided.append({
                node: selected_rows(self.network, self.program, node, how, block.columns)
                for node, how in result.selections.items()
            })  # fmt: skip
        nodes = self.program.selections if selected else ()
        if not known.rows:
            found.append((np.empty((0, *shape), self.dtype), np.empty(0, np.int64)))
            decided.append({node: no_rows(self.network, node) for node in nodes})
        mantissa, exponent = (np.concatenate(blocks) for blocks in zip(*found, strict=True))
        return Answer(mantissa, exponent, {node: join_rows([block[node] for block in decided]) for node in nodes})

    @property
    def _states(self) -> tuple[int, ...]:
        """How many states each of the query variables has."""
        return tuple(self.network.variable(name).card for name in self.question.query)

    @overload
    def posterior(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> Floats: ...

    @overload
    def posterior(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Probabilities: ...

    def posterior(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Floats | Probabilities:
        """P*(q) for every state of the query: (rows, states); NaN where the evidence has probability zero.

        Of several query variables, their joint posterior: (rows, states of the first, states of the second, ...).
        With `labels`, the same with the names of states and rows: it prints as a table, and converts to a frame.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> tac.posterior({"A": 0.8, "C": ["lo", "hi"]}, labels=True)
        B      true     false
        0  0.469231  0.530769
        1  0.676000  0.324000
        """
        if not labels and (one := self._one_row or self.one_row()) and (answer := one.posterior(evidence)) is not None:
            return answer
        self.require_query("posterior")
        self.require_posterior()
        known = self._read(evidence, lazily=True)
        if self._query_is_evidence and is_frame(evidence):
            self._warn_observed(known)
        engine = self.engine().runner(known.rows, Sweep.FORWARD)
        found = np.empty((known.rows, math.prod(self._states)), self.dtype)
        for rows, block in blocks(known.columns, known.rows, engine.chunk_for(known.rows)):
            found[rows] = engine.posterior(block.columns, block.rows)
        warn_impossible(np.isnan(found[:, 0]), "their posterior is NaN")
        found = found.reshape(known.rows, *self._states)
        return self._labelled(found, evidence) if labels else found

    def one_row(self) -> OneRow | None:
        """What answers single rows of labels by the shortest way: there is one as soon as there is generated code."""
        if self._one_row is None:
            engine = self._engine
            single = None if engine is None else engine.single()
            if single is None or len(self.question.query) != 1 or self._refused is not None:
                return None
            known, query = dict(self.question.given), self.question.query
            variables = [self.network.variable(name) for name in (*self.evidence, *known)]
            made = OneRow(single, Encoder(variables, single.layout, self.certain, known, without=query))
            if self._engine is engine:  # another thread may have set other numbers meanwhile
                self._one_row = made
            return made
        return self._one_row

    @overload
    def joint(self, evidence: EvidenceLike | None = None, labels: Literal[False] = False) -> Floats: ...

    @overload
    def joint(self, evidence: EvidenceLike | None = None, *, labels: Literal[True]) -> Probabilities: ...

    def joint(self, evidence: EvidenceLike | None = None, labels: bool = False) -> Floats | Probabilities:
        """p*(q) for every state of the query: (rows, states), in float64, which has the range that it needs.

        Of several query variables, their joint: (rows, states of the first, states of the second, ...). `labels` are
        those of `posterior`.
        """
        self.require_query("joint")
        found = self.ask(evidence).joint
        return self._labelled(found, evidence) if labels else found

    def _labelled(self, found: Floats, evidence: EvidenceLike | None) -> Probabilities:
        return Labelling.of(evidence)(found, [self.network.variable(name) for name in self.question.query])

    def require_posterior(self) -> None:
        """An error where the query variables have too many joint states for a table."""
        if self._refused is not None:
            raise TooLargeError(str(self._refused))

    def require_query(self, what: str) -> None:
        """An error where no variable is asked for."""
        if not self.question.query:
            raise TacitError(
                f"this was compiled without a query (query=None), so there is no {what}; it answers log_evidence, "
                "marginals, mpe and sample"
            )

    def log_evidence(self, evidence: EvidenceLike | None = None) -> Floats:
        """The logarithm of p*(evidence) for every row; minus infinity where it is impossible."""
        return self._answer(evidence, () if self._refused else self._states).log_evidence

    def selected(self, evidence: EvidenceLike | None = None) -> dict[str, Selected]:
        """For every testing node that the query needs, how each row of evidence decided it."""
        return self.ask(evidence, selected=True).selected

    def companion(self, question: Question, extended: Callable[[Model], Model] | None = None) -> Query:
        """The same network, or an extended one, asked something else, compiled on first use."""
        found = self._companions.get(question)
        if found is None:
            net = self.network if extended is None else extended(self.network)
            program, plan = compile_program(net, question, effort=self.effort, dtype=self.dtype)
            how = (self.dtype, self.choice, self.threads, self.effort)
            found = self._companions[question] = Query(net, question.query or None, question, program, plan, *how)
            for oldest in list(self._companions)[:-MAX_COMPANIONS]:
                self._companions.pop(oldest, None)  # another thread may have been faster
        return found

    def read(self, evidence: EvidenceLike | None) -> Evidence:
        """Evidence that is checked once, to be asked about often: every method that takes evidence takes it.

        It is a copy, which no later change of the frame or the arrays changes. Other queries of the network take it,
        too, if they were compiled for evidence on all of its variables; one that they do not know is an error. What
        was read before stays as it is.

        >>> import tacit
        >>> net = tacit.examples.abc()
        >>> tac = tacit.compile(net, query="B", evidence=["A", "C"])
        >>> rows = tac.read({"A": [0.8, 0.1], "C": ["lo", "hi"]})
        >>> tac.posterior(rows).round(4).tolist(), tac.log_evidence(rows).round(4).tolist()
        ([[0.4692, 0.5308], [0.6667, 0.3333]], [-2.0402, -1.0862])
        >>> tacit.compile(net, query="A", evidence=["A"], hard=["C"]).posterior(rows).round(4).tolist()
        [[0.4615, 0.5385], [0.0667, 0.9333]]
        """
        return self._read(evidence)

    def _read(self, evidence: EvidenceLike | None, lazily: bool = False) -> Evidence:
        """Checked evidence. If `lazily`, the engine checks likelihoods: it reads all of them."""
        if isinstance(evidence, Evidence) and self.question.given:  # which were read before
            evidence = self._beside_given(evidence)
        known = read(evidence, self._variables, self.evidence, True, lazily, self.question.query)
        if self.question.given:
            known = Evidence(known.rows, {**known.columns, **self.known_columns})
        for name in self.certain:
            if name not in known.columns:
                done = name in self.do
                raise EvidenceError(
                    f"there is no {'state' if done else 'evidence'} on {name!r}, which the query was compiled to "
                    f"{'set' if done else 'have'} in every row ({'do' if done else 'hard'}=); "
                    f"{'give the state that it is set to' if done else 'name it in evidence= to leave it out'}"
                )
            if name in self.do and not (seen := known.columns[name].observed).all():
                problem = "a state is needed in every row (do=); it may be neither missing nor soft"
                subject = f"intervention on {name!r}"
                raise EvidenceError(problem, variable=name, subject=subject, row=int(seen.argmin()))
            known.columns[name].certain_codes()  # an error where a row has none
        if known.rows and is_frame(evidence):
            warn_missing([name for name in self.evidence if name not in known.columns])
        return known

    @cached_property
    def _query_is_evidence(self) -> bool:
        """Whether rows may observe all that is asked."""
        return bool(self.question.query) and set(self.question.query) <= set(self.evidence)

    def _warn_observed(self, known: Evidence) -> None:
        """Say that nothing is predicted where all rows of a frame hold the answer, as test cases do."""
        names = self.question.query
        if known.rows and all(name in known.columns and known.columns[name].settled for name in names):
            asked = ", ".join(map(repr, names))
            warn(f"all rows observe the query itself, {asked}: their posterior is the state that they give; leave it "
                 "out of the evidence to predict it", ObservedQueryWarning)  # fmt: skip

    def _beside_given(self, evidence: Evidence) -> Evidence:
        """Evidence that was read before, without what is given; an error where it says something else."""
        others = dict(evidence.columns)
        for name, state in self.question.given:
            column = others.pop(name, None)
            if column is None:
                continue
            agrees = (column.likelihoods() == np.eye(column.variable.card)[:, [state]]).all(axis=0)
            nothing = (column.likelihoods() == 1).all(axis=0)
            if not (agrees | nothing).all():
                problem = f"the query was compiled for {self.given[name]!r} in all rows (given=), and this row differs"
                raise EvidenceError(problem, variable=name, row=int((agrees | nothing).argmin()))
        return Evidence(evidence.rows, others)

    @cached_property
    def known_columns(self) -> dict[str, Column]:
        """What is known of every row."""
        return {name: Column(self.network.variable(name), np.array([state])) for name, state in self.question.given}

    # numbers ----------------------------------------------------------------------------------------------

    def set_parameters(self, net: Model) -> None:
        """Take the numbers (and slopes) of another network of the same structure.

        Nothing is compiled again, unless the program is structured and has numbers built in that differ.
        """
        check_same_structure(self, net)
        self.program, self.plan = self._compiled_for(net, self.dtype)
        self.network = net.copy()
        self._engine = self._one_row = None
        companions, self._companions = self._companions, {}
        for question, companion in companions.items():
            if not holds_for(companion.program, companion.network, net):
                continue  # compiled again when it is asked
            with suppress(NetworkError):  # known 0s differ in a part that this query does not need
                companion.set_parameters(net)
                self._companions[question] = companion

    def with_network(self, net: Model, dtype: str | None = None, engine: str | None = None) -> Self:
        """The same query with the numbers of another network of the same structure, as by `set_parameters`.

        `dtype` and `engine` stay as they are unless others are given.
        """
        if net is not self.network:
            check_same_structure(self, net)
        program, plan = self._compiled_for(net, dtype or self.dtype)
        how = (dtype or self.dtype, engine or self.choice, self.threads, self.effort)
        return type(self)(net, self.query, self.question, program, plan, *how, self._refused, self.order)

    def _compiled_for(self, net: Model, dtype: str) -> tuple[Program, Plan]:
        """The program and its plan; new ones where numbers are built in that differ in another network."""
        if holds_for(self.program, self.network, net):
            return self.program, self.plan
        question = self.question if self._refused is None else replace(self.question, query=())
        return compile_program(net, question, self.order, self.effort, dtype)

    def in_dtype(self, dtype: str) -> Self:
        """The same query, compiled anew for numbers of another type."""
        self.require_posterior()
        program, plan = compile_program(self.network, self.question, self.order, self.effort, dtype)
        how = (dtype, self.choice, self.threads, self.effort)
        return type(self)(self.network, self.query, self.question, program, plan, *how, order=self.order)

    def engine(self) -> Engine:
        """The program with its numbers, ready to run."""
        if self._engine is None:
            self._engine = engines.build(self.choice, self.program, *self.numbers(), self.dtype, self.threads)
        return self._engine

    def numbers(self) -> tuple[dict[tuple[str, str], Floats], dict[str, float | None]]:
        """The tables that the program reads, and the slopes of its testing nodes."""
        nodes = self.program.nodes
        self.network.require_numbers(nodes)
        tables = {(node, part): table for node in nodes for part, table in self.network.cpt(node).parts().items()}
        gammas = {n: cpt.gamma for n in nodes if isinstance(cpt := self.network.cpt(n), TestingCPT)}
        return tables, gammas

    # looking ----------------------------------------------------------------------------------------------

    def circuit(self, fold: bool = True) -> Circuit:
        """The scalar testing arithmetic circuit: sums, products and tests.

        With `fold`, the circuit of the program that runs, in which known 0s and 1s have disappeared. Without, the
        paper's trace, with every node kept: evidence is entered into the tables, one elimination order serves
        selection and inference, and hard evidence is a likelihood of 1.
        """
        self.require_posterior()
        if fold:
            return lower(self.program, self.network)
        self.require_no_do()
        named = dict.fromkeys((*self.evidence, *(name for name, _ in self.question.given)))
        return lower(trace(self.network, self.question.query, tuple(named)), self.network, fold=False)

    def jointree(self) -> Jointree:
        """The plan of the inference phase as clusters of variables in a tree."""
        if self.plan.structured:
            raise TacitError(
                "the query was compiled by structured elimination, which has no clusters and so no jointree; give an "
                "order= to compile it with tables"
            )
        return jointree(self.plan.problem, self.plan.path)

    @property
    def dear(self) -> bool:
        """Whether the first row takes seconds, or is refused."""
        return self._refused is not None or self.work > DEAR

    @property
    def work(self) -> int:
        """The multiply-adds that the first row takes."""
        return self.program.cost.multiply_adds + self.program.cost.static_multiply_adds

    def cost(self) -> Cost:
        """Width, multiply-adds and bytes per row, circuit nodes (None where the circuit would be very large)."""
        cost = self.program.cost
        small = self._refused is None and cost.multiply_adds + cost.static_multiply_adds <= MAX_COUNTED
        return replace(cost, circuit_nodes=len(self.circuit())) if small else cost

    def __repr__(self) -> str:
        cost = self.program.cost
        return (
            f"{type(self).__name__}(query={self.query!r}, {plural(len(self.evidence), 'evidence variable')}, "
            f"width {cost.width}, {cost.multiply_adds:,} multiply-adds per row)"
        )


def compiled(
    kind: type[Q],
    net: Model,
    query: str | Sequence[str] | None,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    do: Sequence[str] = (),
    given: Mapping[str, Label] | None = None,
    engine: str = "auto",
    dtype: str = "float64",
    order: Sequence[str] | None = None,
    effort: str = "auto",
    threads: int | None = None,
) -> Q:
    """A query of a given class, `Query` or one that stands on it. The parameters are those of `tacit.compile`."""
    if not isinstance(net, Model):
        raise TacitError(f"net is a {type(net).__name__}, expected a Network: tacit.read reads a file, "
                         "tacit.from_pgmpy and tacit.from_pyagrum take networks of other libraries")  # fmt: skip
    engines.check(engine)
    machine.threads_wanted(threads)  # an error, if it is no number of threads
    number = _dtype(dtype)
    asked = checked_query(net, query)
    wanted = (asked,) if isinstance(asked, str) else asked or ()
    certain, done = _names(net, hard, "hard"), _names(net, do, "do")
    maybe = _names(net, evidence, "evidence")
    known = _given(net, given)
    if both := [name for name, _ in known if name in (*maybe, *certain, *done)]:
        raise TacitError(f"{both[0]!r} is in given=, the same for all rows; leave it out of evidence=, hard= and do=")
    if both := [name for name in done if name in maybe or name in certain]:
        raise TacitError(f"{both[0]!r} is in do= and in {'hard' if both[0] in certain else 'evidence'}=; a row sets it "
                         "or observes it, so name it in one of them")  # fmt: skip
    question = Question(wanted, tuple(dict.fromkeys((*maybe, *certain, *done))), certain, done, known)
    steps = None if order is None else _names(net, order, "order")
    try:
        _check_joint(net, wanted)
        program, plan = compile_program(net, question, steps, effort, number)
    except TooLargeError as error:
        if len(wanted) < 2:
            raise
        # map() needs no table of all joint states
        program, plan = compile_program(net, replace(question, query=()), steps, effort, number)
        return kind(net, asked, question, program, plan, number, engine, threads, effort, error, steps)
    return kind(net, asked, question, program, plan, number, engine, threads, effort, order=steps)


def attempted(
    net: Model,
    query: Asked,
    evidence: Sequence[str] = (),
    hard: Sequence[str] = (),
    given: Mapping[str, Label] | None = None,
) -> Query | TooLargeError:
    """A query, or why it is refused."""
    try:
        return compiled(Query, net, query, evidence, hard, given=given)
    except TooLargeError as error:
        return TooLargeError(str(error))


def cheaper(first: Query | TooLargeError, second: Query | TooLargeError) -> Query | TooLargeError:
    """The query that takes less work for one row; if both are refused, why the second one is."""
    if isinstance(second, TooLargeError):
        return second if isinstance(first, TooLargeError) else first
    if isinstance(first, TooLargeError) or first._refused:
        return second
    return min(first, second, key=lambda query: query.work)


def _check_joint(net: Model, names: tuple[str, ...]) -> None:
    """Stop before a table of all joint states is planned that nobody could look at."""
    states = math.prod(net.variable(name).card for name in names)
    if len(names) > 1 and states > MAX_JOINT:
        raise TooLargeError(
            f"the {len(names)} query variables have {large(states)} joint states (limit {MAX_JOINT:,}); ask for the "
            "posterior of fewer, or for the most probable states, map(...)"
        )


def checked_query(net: Model, query: Any) -> Asked:
    """The query as it is kept: a name, a tuple of several, or None."""
    if query is None or isinstance(query, str):
        if query is not None:
            _check_name(net, query)
        return query
    if isinstance(query, set | frozenset):
        raise TacitError("query is a set, which has no order; give a list, whose order the axes of the answer follow")
    if isinstance(query, Mapping):
        raise TacitError(f"query is a mapping; give the name of a variable, or a list of names: {list(query)!r}")
    if not isinstance(query, Iterable):
        raise TacitError(f"query is {query!r}; give the name of a variable, a list of names, or None")
    wanted = list(query)
    names = _names(net, wanted, "query")
    if len(names) != len(wanted):
        raise TacitError(f"query names a variable twice: {wanted!r}")
    if not names:
        raise TacitError("query is an empty sequence; give at least one name, or None to ask without a query")
    return names


def _check_name(net: Model, query: str) -> None:
    """An error where there is no such variable; several names with commas are not taken for one that is misspelt."""
    names = [name.strip() for name in query.split(",")]
    if query not in net and len(names) > 1 and all(name in net for name in names):
        raise TacitError(f"query is {query!r}; give the names of several variables as a list: query={names!r}")
    net.node(query)


def _given(net: Model, given: Mapping[str, Label] | None) -> tuple[tuple[str, int], ...]:
    """Variables and the states that they are known to be in."""
    if given is not None and not isinstance(given, Mapping):
        raise TacitError(f"given is {given!r}, expected a mapping from variables to states")
    states = dict(given or {})
    found = read({name: [label] for name, label in states.items()}, [net.variable(n) for n in net])
    for name, label in states.items():
        if name not in found.columns or not found.columns[name].observed.all():
            raise TacitError(f"given[{name!r}] is {label!r}, expected one of its states: {list(net.states(name))}")
    return tuple((name, int(column.states()[0])) for name, column in found.columns.items())


def _dtype(dtype: Any) -> str:
    try:
        name = str(np.dtype(dtype).name)
    except TypeError:
        name = ""
    if name not in DTYPES:
        raise TacitError(f"dtype is {dtype!r}, expected one of {', '.join(map(repr, DTYPES))}")
    return name


def _names(net: Model, names: Iterable[str] | None, what: str) -> tuple[str, ...]:
    if isinstance(names, Mapping):
        raise TacitError(
            f"{what} takes names, not states: {what}={list(names)!r}; the states of each row go to posterior(...), and "
            "those that are the same in all rows to given="
        )
    if isinstance(names, str):
        meant = "; an engine is given by name: engine=..." if what == "do" and names in engines.ENGINES else ""
        several = [name.strip() for name in names.split(",")]
        raise TacitError(f"{what} must be a sequence of names, e.g. {several!r}{meant}")
    try:
        found = tuple(dict.fromkeys(() if names is None else names))
    except TypeError:
        raise TacitError(f"{what} must be a sequence of names, got {names!r}") from None
    for name in found:
        net.node(name)
    return found


def check_same_structure(query: Query, new: Model) -> None:
    """The same variables, families and kinds of CPT, and no state possible that was not before.

    A structured program is compiled again where states are: see `holds_for`.
    """
    old, program, question = query.network, query.program, query.question
    if new.selection != old.selection:
        raise NetworkError(
            f"selection is {new.selection!r} and was {old.selection!r} when the query was compiled; compile it again"
        )
    for name in program.states:
        a, b = old.node(name), new.node(name)
        same = (a.variable, a.parents, type(a.cpt)) == (b.variable, b.parents, type(b.cpt))
        if same and isinstance(a.cpt, TestingCPT) and isinstance(b.cpt, TestingCPT):
            same = len(a.cpt.tables) == len(b.cpt.tables) and bool((a.cpt.test == b.cpt.test).all())
        elif same and not isinstance(a.cpt, CPT | NoisyOr):
            same = a.cpt == b.cpt
        if not same:
            raise NetworkError(
                f"node {name!r} differs in states, parents, kind of CPT or tests from the compiled network; "
                "compile the query again"
            )
    if program.structured:
        return
    asked = new.cut(question.do) if question.do else new
    now = possible_states(asked, program.states, program.hard, dict(question.given), question.evidence)
    read = set(program.nodes)
    for name, states in now.items():
        extra = set(states) - set(program.states[name])
        if extra:
            label = new.states(name)[min(extra)]
            raise NetworkError(
                f"node {name!r}: state {label!r} was impossible (known 0s) when the query was compiled, and is "
                "possible now; compile the query again"
            )
        ruled = isinstance(asked.cpt(name), FunctionCPT | Mux)  # the same as before
        if question.given and name not in read and not ruled and not certain(asked, name, program.states):
            raise NetworkError(
                f"node {name!r}: its known 0s and 1s said nothing beside given= when the query was compiled, and now "
                "others do; compile the query again"
            )

"""A query, compiled once and evaluated on many rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar, overload

import numpy as np

from tacit.base import machine, pickling
from tacit.base.errors import NetworkError, TacitError, TooLargeError
from tacit.base.floats import Floats, flat
from tacit.base.text import large
from tacit.base.warnings import warn
from tacit.compiler.contraction import Plan
from tacit.compiler.program import Program, holds_for
from tacit.compiler.question import Question
from tacit.engines.engine import Sweep
from tacit.evidence.column import Evidence, blocks
from tacit.evidence.density_column import density_columns, scale_of
from tacit.evidence.read import EvidenceLike, is_frame
from tacit.model.model import Model
from tacit.query.answers.answer import Answer, ObservedQueryWarning, warn_impossible
from tacit.query.answers.probabilities import Probabilities, index_of, wants_labels, with_labels
from tacit.query.answers.selection import join_rows, no_rows, selected_rows
from tacit.query.asking.options import CompileOptions, checked_query, checked_question
from tacit.query.compiled_query import CompiledQuery, check_families, check_same_structure, possible_again
from tacit.query.ensembles.base_ensemble import AnyEnsemble, BaseEnsemble
from tacit.query.numbers.continuous import mixture
from tacit.query.numbers.mixture import Mixture
from tacit.query.one_row import OneRow
from tacit.query.under_draws import UnderDraws

Q = TypeVar("Q", bound="Query")
SLOW_ROW = 1e9  # multiply-adds of one row, seconds, from which a query for the states of that row alone pays
MAX_JOINT = 2**22  # joint states of several query variables up to which their posterior is compiled
OTHER_QUERY = "a query answers for its own variables: compile another query to ask about others"
DENSITY_ROWS = 2**13  # whose densities are worked out at a time, and stay in cache
MAX_COMPANIONS = 16  # other questions that a query keeps compiled
DEFAULTS = CompileOptions()


class Query(CompiledQuery):
    """A query compiled once, evaluated on many rows. Made by `compiled`; `TAC` is the one that users hold."""

    def _forget(self) -> None:
        super()._forget()
        self._one_row: OneRow | None = None
        self._companions: dict[Question, Query] = {}  # other questions about the same network, the newest ones
        # of the ensemble of the last call, whose rows often come in parts
        self._last_under: UnderDraws[Self] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_engine", "_one_row", "_companions", "_last_under")

    def ask(self, evidence: EvidenceLike | None = None, selected: bool = False) -> Answer:
        """Posterior, joint and log-probability of the evidence for every row, from one run.

        With `selected`, also how each row decided the testing nodes.

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A"])
        >>> answer = tac.ask({"A": [0.8, 0.1]})
        >>> answer.posterior.round(4).tolist(), answer.log_evidence.round(4).tolist()
        ([[0.6053, 0.3947], [0.6773, 0.3227]], [-0.9676, -0.4155])
        """
        if not selected and (one := self._one_row or self.one_row()) and (answer := one.answer(evidence)) is not None:
            return answer
        if self.asks_for_numbers:
            self.require_query("joint answer")
        self.require_posterior()
        return self._answer(evidence, self.states_asked, selected)

    def _answer(self, evidence: EvidenceLike | None, shape: tuple[int, ...], selected: bool = False) -> Answer:
        known = self._read(evidence, lazily=True)
        engine = self.engine().runner(known.rows, Sweep.SELECTIONS if selected else Sweep.FORWARD)
        joints, decided, scales = [], [], []
        for block in known.blocks(engine.chunk):  # so that memory does not grow with the number of rows
            result = engine.run(block.columns, block.rows, selected)
            joints.append((result.joint.T.reshape(block.rows, *shape), result.exponent))
            scales.append(scale_of(block.columns, block.rows))
            of_block = result.selections.items()
            decided.append({n: selected_rows(self.network, self.program, n, how, block.columns) for n, how in of_block})
        nodes = self.program.selections if selected else ()
        if not known.rows:
            joints.append((np.empty((0, *shape), self.dtype), np.empty(0, np.int64)))
            decided.append({node: no_rows(self.network, node) for node in nodes})
        mantissa, exponent = (np.concatenate(blocks) for blocks in zip(*joints, strict=True))
        how = {node: join_rows([block[node] for block in decided]) for node in nodes}
        return Answer(mantissa, exponent, how, np.concatenate(scales) if density_columns(known.columns) else 0.0)

    @overload
    def posterior(
        self,
        evidence: EvidenceLike | None = None,
        labels: Literal[False] = False,
        tables: AnyEnsemble | None = None,
    ) -> Floats: ...

    @overload
    def posterior(
        self, evidence: EvidenceLike | None = None, *, labels: Literal[True], tables: None = None
    ) -> Probabilities: ...

    def posterior(
        self, evidence: EvidenceLike | None = None, labels: bool = False, tables: AnyEnsemble | None = None
    ) -> Any:
        """P*(q) for every state of the query: (rows, states); NaN where the evidence has probability zero.

        Of several query variables, their joint posterior: (rows, states of the first, states of the second, ...).
        With `labels`, the same with the names of states and rows: it prints as a table, and converts to a frame. Of a
        continuous query, a `Mixture`: densities of numbers for all rows. With `tables`, an `Ensemble`, there is one
        answer under each of its networks: (draws, rows, states).

        >>> import tacit
        >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
        >>> tac.posterior({"A": 0.8, "C": ["lo", "hi"]}, labels=True)
        B      true     false
        0  0.469231  0.530769
        1  0.676000  0.324000
        >>> net = tacit.Network()
        >>> net.add("Fault", cpt=[0.1, 0.9])
        >>> net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[90, 60], sd=[8, 4]))
        >>> net.add("Alarm", ["Fault"], cpt=[[0.9, 0.1], [0.01, 0.99]])
        >>> tacit.compile(net, query="Heat", evidence=["Alarm"]).posterior({"Alarm": ["true", "false"]}).mean.round(2)
        array([87.27, 60.33])
        """
        if tables is not None:
            self._require_no_labels(labels)
            return self.under(tables).posterior(evidence)
        if (
            labels is False
            and (one := self._one_row or self.one_row())
            and (answer := one.posterior(evidence)) is not None
        ):
            return answer
        labels = wants_labels(labels, OTHER_QUERY)
        if self.asks_for_numbers:
            return self.mixture(evidence)
        self.require_query("posterior")
        self.require_posterior()
        known = self._read(evidence, lazily=True)
        if is_frame(evidence):
            self._warn_observed(known)
        posterior = self._posterior(known)
        warn_impossible(np.isnan(posterior[:, 0]), "their posterior is NaN")
        posterior = posterior.reshape(known.rows, *self.states_asked)
        return self.labelled(posterior, evidence) if labels else posterior

    def _posterior(self, known: Evidence) -> Floats:
        """The posteriors of all joint states, (rows, states). Threads share the rows where densities are worked out."""
        engine = self.engine().runner(known.rows, Sweep.FORWARD)
        posterior = np.empty((known.rows, math.prod(self.states_asked)), self.dtype)
        numbers = [column for column in density_columns(known.columns) if not engine.works_out(column)]
        parts = blocks(known.columns, known.rows, DENSITY_ROWS if numbers else engine.chunk_for(known.rows))

        def answer(part: tuple[slice, Evidence]) -> None:
            rows, block = part
            posterior[rows] = engine.posterior(block.columns, block.rows)

        if numbers and known.rows > DENSITY_ROWS and engine.small(DENSITY_ROWS):
            with ThreadPoolExecutor(machine.threads(engine.threads)) as pool:
                list(pool.map(answer, parts))
        else:
            for part in parts:
                answer(part)
        return posterior

    def mixture(self, evidence: EvidenceLike | None) -> Mixture:
        """The distribution of a continuous query: the posterior of its parents' states weighs its densities."""
        known, variable = self._read(evidence), self.variable
        if self.question.query:
            weights = flat(self._answer(known, self.states_asked).posterior)
        else:  # without parents, there is one density
            weights = np.where(np.isneginf(self.log_evidence(known)), np.nan, 1.0)[:, None]
        asked = variable.columns if self.query == variable.name else (str(self.query),)
        column, density = known.columns.get(variable.name), self.network.density(variable.name)
        return mixture(density, variable, asked, weights, column, index_of(evidence, known.rows))

    def one_row(self) -> OneRow | None:
        """The shortcut for single rows of labels: there is one as soon as there is generated code."""
        if self._one_row is not None:
            return self._one_row
        engine = self._engine
        single = None if engine is None or self.per_row else engine.single()
        if single is None or len(self.question.query) != 1 or self.refused is not None or self.asks_for_numbers:
            return None
        known = dict(self.question.given)
        variables = [self.network.variable(name) for name in (*self.evidence, *known)]
        without = (*self.question.query, *self.network.continuous)
        one_row = OneRow(single, variables, self.always_known, known, without)
        if self._engine is engine:  # another thread may have set other numbers meanwhile
            self._one_row = one_row
        return one_row

    @overload
    def joint(
        self,
        evidence: EvidenceLike | None = None,
        labels: Literal[False] = False,
        tables: AnyEnsemble | None = None,
    ) -> Floats: ...

    @overload
    def joint(
        self, evidence: EvidenceLike | None = None, *, labels: Literal[True], tables: None = None
    ) -> Probabilities: ...

    def joint(
        self, evidence: EvidenceLike | None = None, labels: bool = False, tables: AnyEnsemble | None = None
    ) -> Floats | Probabilities:
        """p*(q) for every state of the query: (rows, states), in float64, which has the range that it needs.

        Of several query variables, their joint: (rows, states of the first, states of the second, ...). Of a factor
        graph, sums of products of all factors. `labels` and `tables` are those of `posterior`.
        """
        if tables is not None:
            self._require_no_labels(labels)
            self.require_query("joint")
            self.require_posterior()
            with np.errstate(over="ignore"):
                return np.stack([answer.joint for answer in self.under(tables).answers(evidence)])
        labels = wants_labels(labels, OTHER_QUERY)
        self.require_query("joint")
        answer = self.ask(evidence)
        with np.errstate(over="ignore"):  # sums over a factor graph may be infinite
            joint = answer.joint
        return self.labelled(joint, evidence) if labels else joint

    def labelled(self, array: Floats, evidence: EvidenceLike | None) -> Probabilities:
        """An answer with the names of states and rows."""
        return with_labels(array, [self.network.variable(name) for name in self.question.query], evidence)

    def log_evidence(self, evidence: EvidenceLike | None = None, tables: AnyEnsemble | None = None) -> Floats:
        """The logarithm of p*(evidence) for every row; minus infinity where it is impossible.

        Of a factor graph, that is the logarithm of the partition function with the evidence. With `tables`, an
        `Ensemble`, under each of its networks: (draws, rows).
        """
        if tables is not None:
            return np.stack([answer.log_evidence for answer in self.under(tables).answers(evidence)])
        return self._answer(evidence, () if self.refused else self.states_asked).log_evidence + self.log_scale

    def _warn_observed(self, known: Evidence) -> None:
        """Warn that nothing is predicted where all rows of a frame hold the answer, as test cases do."""
        names = self.question.query
        columns = [known.columns[name] for name in names if name in self.evidence and name in known.columns]
        if known.rows and len(columns) == len(names) and all(column.known_in_all_rows for column in columns):
            what = f"all rows observe the query itself, {', '.join(map(repr, names))}: their posterior is the state"
            warn(f"{what} that they give; leave it out of the evidence to predict it", ObservedQueryWarning)

    def under(self, tables: AnyEnsemble) -> UnderDraws[Self]:
        """The query under each network of an ensemble."""
        if not isinstance(tables, BaseEnsemble):
            expected = "expected an Ensemble: estimate.draws(n), or tacit.Ensemble.of(networks)"
            raise TacitError(f"tables is a {type(tables).__name__}, {expected}")
        last = self._last_under
        if last is None or last.ensemble is not tables:
            net = tables.learnable
            check_families(self, net)
            if possible_again(self, net):  # what was estimated as 0 is possible in draws
                query = self._clone(net, self.options, self._compile(net, self.options))
            else:
                query = self.with_network(net)
            self._last_under = last = UnderDraws(query, tables)
        return last

    @staticmethod
    def _require_no_labels(labels: bool) -> None:
        if labels:
            raise TacitError("labels name the rows and states of one answer, and tables= gives one for each network; "
                             "credible(rows, ensemble, labels=True) has one for all")  # fmt: skip

    def companion(self, question: Question, extended: Callable[[Model], Model] | None = None) -> Query:
        """Another question about the network, or about an extended one, compiled on first use."""
        query = self._companions.get(question)
        if query is None:
            net = self.network if extended is None else extended(self.network)
            options = replace(self.options, order=None)
            query = Query(net, question.query or None, question, options, options.compile(net, question))
            self._companions[question] = query
            for oldest in list(self._companions)[:-MAX_COMPANIONS]:
                self._companions.pop(oldest, None)  # another thread may have been faster
        return query

    def set_parameters(self, net: Model) -> None:
        """Take the numbers (and slopes) of another network of the same structure.

        Nothing is compiled again, unless the program is structured and has numbers built in that differ.
        """
        check_same_structure(self, net)
        self.program, self.plan = self._compiled_for(net, self.options)
        self.network, companions = net.copy(), self._companions
        self._forget()
        for question, companion in companions.items():
            if not holds_for(companion.program, companion.network, net):
                continue  # compiled again when it is asked
            with suppress(NetworkError):  # known 0s differ in a part that this query does not need
                companion.set_parameters(net)
                self._companions[question] = companion

    def with_network(self, net: Model, dtype: str | None = None, engine: str | None = None) -> Self:
        """A query with the numbers of another network of the same structure, as by `set_parameters`.

        `dtype` and `engine` stay as they are unless others are given.
        """
        if net is not self.network:
            check_same_structure(self, net)
        options = replace(self.options, dtype=dtype or self.dtype, engine=engine or self.options.engine)
        return self._clone(net, options, self._compiled_for(net, options))

    def _compiled_for(self, net: Model, options: CompileOptions) -> tuple[Program, Plan]:
        """The program and its plan; new ones where numbers are built in that differ in another network."""
        if holds_for(self.program, self.network, net):
            return self.program, self.plan
        return self._compile(net, options)

    def _compile(self, net: Model, options: CompileOptions) -> tuple[Program, Plan]:
        return options.compile(net, self.question if self.refused is None else replace(self.question, query=()))

    def in_dtype(self, dtype: str) -> Self:
        """The query, compiled anew for numbers of another type."""
        self.require_posterior()
        options = replace(self.options, dtype=dtype)
        return self._clone(self.network, options, options.compile(self.network, self.question))

    def _clone(self, net: Model, options: CompileOptions, compiled: tuple[Program, Plan]) -> Self:
        clone = type(self)(net, self.query, self.question, options, compiled, self.refused)
        clone.hidden, clone.log_scale = self.hidden, self.log_scale
        return clone


def compiled(
    kind: type[Q],
    net: Model,
    query: Any,
    evidence: Iterable[str] = (),
    hard: Iterable[str] = (),
    options: CompileOptions = DEFAULTS,
) -> Q:
    """A query of a given class, `Query` or one that stands on it. The parameters are those of `tacit.compile`."""
    if not isinstance(net, Model):
        raise TacitError(f"net is a {type(net).__name__}, expected a Network: tacit.read reads a file, "
                         "tacit.from_pgmpy and tacit.from_pyagrum take networks of other libraries")  # fmt: skip
    options, asked = options.checked(net), checked_query(net, query)
    question = checked_question(net, asked, evidence, hard, options)
    count, states = len(question.query), math.prod(net.variable(name).card for name in question.query)
    try:
        if count > 1 and states > MAX_JOINT:  # nobody could look at a table of all of them
            joint = f"the {count} query variables have {large(states)} joint states (limit {MAX_JOINT:,})"
            remedy = "ask for the posterior of fewer, or for the most probable states, map(...)"
            raise TooLargeError(f"{joint}; {remedy}")
        return kind(net, asked, question, options, options.compile(net, question))
    except TooLargeError as error:
        if count < 2:
            raise
        # map() needs no table of all joint states
        return kind(net, asked, question, options, options.compile(net, replace(question, query=())), error)


def for_one_row(usual: Callable[[], Q], special: Callable[[], Q] | None) -> Q:
    """The usual query; if it is refused or slow, the cheaper of that and a special one for the states of a row."""
    if special is None:
        return usual()
    query = None
    with suppress(TooLargeError):
        query = usual()
    if query is None:
        return special()
    if query.refused is not None or query.multiply_adds > SLOW_ROW:
        with suppress(TooLargeError):
            other = special()
            return other if query.refused or other.multiply_adds < query.multiply_adds else query
    return query

"""What is asked of a network, and the evidence that it takes, whether it is compiled or not."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cached_property

import numpy as np

from tacit.base.errors import EvidenceError, TacitError
from tacit.compiler.question import Question
from tacit.evidence.column import Column, Evidence
from tacit.evidence.column_names import warn_missing
from tacit.evidence.density_column import DensityColumn, with_densities
from tacit.evidence.read import EvidenceLike, is_frame, read
from tacit.evidence.records import is_records, with_names
from tacit.model.elements.variable import Label, Variable
from tacit.model.model import Model
from tacit.query.asking.options import Asked
from tacit.query.asking.row_tables import RowTables, with_tables


class AskedQuery:
    """A question about a network, and the evidence that it takes."""

    hidden: Collection[str] = ()  # nodes of a factor graph that its users know nothing of
    log_scale = 0.0  # of a factor graph, the logarithm of a factor of all probabilities

    def __init__(self, net: Model, query: Asked, question: Question) -> None:
        self.query, self.question = query, question
        self.network = net.copy()  # nodes added to the user's network later are none of ours
        self._variables = [net.variable(n) for n in net]

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
    def per_row(self) -> tuple[str, ...]:
        """The variables whose tables every row brings along."""
        return self.question.per_row

    @cached_property
    def _row_tables(self) -> RowTables:
        return RowTables(self.network, self.per_row)

    @property
    def always_known(self) -> tuple[str, ...]:
        """The variables that have a state in every row: those in `hard` and in `do`."""
        return (*self.hard, *self.do)

    @property
    def given(self) -> dict[str, Label]:
        """The states that are known of every row."""
        given = [(name, state) for name, state in self.question.given if name not in self.hidden]
        return {name: self.network.states(name)[state] for name, state in given}

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name in self.network.variables if name not in self.hidden)

    @property
    def variable(self) -> Variable:
        """The query variable; an error where there are several, or none: some things can be done with one only."""
        if not isinstance(self.query, str):
            asked = f"asks for {self.query!r} together" if self.query else "has none (query=None)"
            raise TacitError(f"a query of one variable is needed here, and this one {asked}; compile one with a name")
        return self.network.variable(self.network.named(self.query))

    @cached_property
    def asks_for_numbers(self) -> bool:
        """Whether the query is continuous; `question` then asks for its parents."""
        return isinstance(self.query, str) and self.network.variable(self.network.named(self.query)).continuous

    @property
    def states_asked(self) -> tuple[int, ...]:
        """How many states each of the query variables has."""
        return tuple(self.network.variable(name).card for name in self.question.query)

    def require_no_do(self) -> None:
        """An error where the query has interventions, for what is not offered with them."""
        if self.do:
            name = self.do[0]
            raise TacitError(f"this is not offered for queries with do=; compile net.do({{{name!r}: STATE}}) instead")

    def require_no_tables(self, what: str) -> None:
        """An error where rows bring tables along, for what is about one network."""
        if self.per_row:
            row = f"net.with_cpts({{{self.per_row[0]!r}: TABLE}})"
            problem = "is about one network, and here every row has tables of its own (per_row=)"
            raise TacitError(f"{what} {problem}; compile a query of {row} for one of them")

    def require_query(self, what: str) -> None:
        """An error where no variable is asked for, or one that has numbers in place of states."""
        if self.asks_for_numbers:
            answers = "it answers posterior (a Mixture), mean, quantile, log_evidence, marginals, mpe and sample"
            raise TacitError(f"the query, {self.query!r}, is continuous, so there is no {what}; {answers}")
        if not self.question.query:
            answers = "it answers log_evidence, marginals, mpe and sample"
            raise TacitError(f"this was compiled without a query (query=None), so there is no {what}; {answers}")

    def read(self, evidence: EvidenceLike | None, columns: Iterable[str] | None = None) -> Evidence:
        """Evidence that is checked once, to be asked about often: every method that takes evidence takes it.

        `columns` names the columns of a 2-D array, or of a list of rows. Without it, they are those of the variables
        that the query was compiled for, in their order.

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
        return self._read(evidence if columns is None else with_names(evidence, columns))

    def _read(self, evidence: EvidenceLike | None, lazily: bool = False) -> Evidence:
        """Checked evidence. If `lazily`, the engine checks likelihoods: it reads all of them."""
        if self.per_row:
            others, tables = self._row_tables.split(evidence, keep=not lazily)
            return with_tables(self._read_others(others, lazily), tables, others)
        return self._read_others(evidence, lazily)

    def _read_others(self, evidence: EvidenceLike | None, lazily: bool) -> Evidence:
        """Evidence but for tables."""
        if isinstance(evidence, Evidence) and self.question.given:  # which were read before
            evidence = self._beside_given(evidence)
        known = read(evidence, self._variables, self.evidence, True, lazily, self._asked)
        known = with_densities(self._without_query(known) if self.asks_for_numbers else known, self.network)
        if self.question.given:
            known = Evidence(known.rows, {**known.columns, **self.given_columns})
        for name in self.hard:
            if name not in known.columns:
                problem = "was compiled to have in every row (hard=); name it in evidence= to leave it out"
                raise EvidenceError(f"there is no evidence on {name!r}, which the query {problem}")
            known.columns[name].certain_codes()  # an error where a row has none
        for name in self.do:
            column = known.columns.get(name)
            if column is None:
                problem = "was compiled to set in every row (do=); give the state that it is set to"
                raise EvidenceError(f"there is no state on {name!r}, which the query {problem}")
            if not (seen := column.observed).all():
                problem = "a state is needed in every row (do=); it may be neither missing nor soft"
                subject, row = f"intervention on {name!r}", int(seen.argmin())
                raise EvidenceError(problem, variable=name, subject=subject, row=row).indexed(column.index)
            column.certain_codes()
        if known.rows and is_frame(evidence):
            warn_missing([name for name in self.evidence if name not in known.columns], is_records(evidence))
        return known

    def _without_query(self, known: Evidence) -> Evidence:
        """Evidence without the numbers that are asked for, which the columns beside them may come with."""
        variable = self.variable
        column = known.columns.get(variable.name)
        if not isinstance(column, DensityColumn):
            return known
        values = column.values.copy()
        places = [i for i, name in enumerate(variable.columns) if self.query in (name, variable.name)]
        values[:, places] = np.nan
        others = DensityColumn(variable, values, numbers=column.numbers)
        others.index = column.index
        return Evidence(known.rows, {**known.columns, variable.name: others})

    @property
    def _asked(self) -> tuple[str, ...]:
        """The variables that the user asks for."""
        return (self.variable.name,) if self.asks_for_numbers else self.question.query

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
                label = self.network.states(name)[state]
                problem = f"the query was compiled for {label!r} in all rows (given=), and this row differs"
                raise EvidenceError(problem, variable=name, row=int((agrees | nothing).argmin()))
        return Evidence(evidence.rows, others)

    @cached_property
    def given_columns(self) -> dict[str, Column]:
        """The states of `given` as columns."""
        return {name: Column(self.network.variable(name), np.array([state])) for name, state in self.question.given}

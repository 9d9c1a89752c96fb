"""The columns of a table that answer a question about every row."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.base.errors import TacitError
from tacit.base.floats import flat
from tacit.evidence.column import Evidence
from tacit.evidence.tables.columns import column_names, written, written_type
from tacit.model.densities import Density
from tacit.model.elements.variable import Variable
from tacit.query.answers.answer import Answer, quietly
from tacit.query.answers.probabilities import joint_columns
from tacit.query.asking.options import checked_query
from tacit.query.ensemble import Ensemble
from tacit.query.network import Network
from tacit.query.numbers.mixture import IN_FILES
from tacit.query.tac import TAC

MAX_COLUMNS = 1_000  # for the combinations of a joint posterior; 65,536 rows of them take half a gigabyte


class AnswerColumns:
    """A question about every row of a table, and the columns of its answer.

    The first column is empty where the evidence has probability 0, and only there. (Of `LogEvidence`, it is minus
    infinity.)
    """

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that are asked for by name: their columns are not evidence."""
        return ()

    @property
    def queries(self) -> Sequence[str | tuple[str, ...] | None]:
        """What to compile; for None, no variable is asked for."""
        return [None]

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """The names of the columns, and their pyarrow types: a column for each variable, if nothing else is said."""
        variables = [_variable(net, name) for name in self.names or net.variables]
        return [(name, written_type(variable)) for variable in variables for name in column_names([variable])]

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """The columns for some rows, answered by the compiled queries."""
        raise NotImplementedError


@dataclass(frozen=True)
class OfGroups(AnswerColumns):
    """Questions about groups of variables; more than one variable in a group are asked for together."""

    groups: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(itertools.chain(*self.groups))

    @property
    def queries(self) -> list[str | tuple[str, ...]]:
        return [group if len(group) > 1 else group[0] for group in self.groups]


@dataclass(frozen=True)
class PosteriorColumns(OfGroups):
    """The posteriors of groups of variables.

    Of a continuous variable, the mean, the standard deviation and quantiles of each of its columns.
    """

    argmax: bool = False
    log_evidence: bool = False
    dtype: str = "float64"  # of the compiled queries

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """A column for each combination of states, and for each most probable state."""
        kind = pa.from_numpy_dtype(self.dtype)
        fields: list[tuple[str, Any]] = []
        for group in self.groups:
            checked_query(net, group if len(group) > 1 else group[0])  # an error where one of several is continuous
            if numbers := _numbers(net, group):
                self._check(net, group)
                fields += [(f"{name}.{part}", pa.float64()) for name in numbers for part in IN_FILES]
                continue
            fields += [(name, kind) for name in _combinations(net, group)]
            if self.argmax:
                fields += [(f"{name}.argmax", written_type(net.variable(name))) for name in group]
        return fields + [("log_evidence", pa.float64())] * self.log_evidence

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """Probabilities, the states of the largest, and the logarithm of the probability of the evidence."""
        columns: list[Any] = []
        answer = None
        for group, tac in zip(self.groups, tacs, strict=True):
            if numbers := _numbers(net, group):
                columns += _of_mixture(tac, numbers, known)
            else:
                answer = tac.ask(known)
                columns += self._of_states(net, group, answer)
        if self.log_evidence:
            columns.append(pa.array(tacs[0].log_evidence(known) if answer is None else answer.log_evidence))
        return columns

    def _of_states(self, net: Network, group: tuple[str, ...], answer: Answer) -> list[Any]:
        with quietly():
            posterior = answer.posterior
        table = flat(posterior)
        impossible = np.isnan(table[:, 0])
        columns = [pa.array(column, mask=impossible) for column in table.T]
        best = np.unravel_index(table.argmax(axis=1), posterior.shape[1:]) if self.argmax else ()
        for name, codes in zip(group, best, strict=self.argmax):
            labels = written(net.variable(name), net.states(name))
            columns.append(labels.take(pa.array(codes, mask=impossible)))
        return columns

    def _check(self, net: Network, group: tuple[str, ...]) -> None:
        """Refuse what a continuous variable has no columns for."""
        name = net.named(group[0])
        if isinstance(net.density(name), Density):
            problem = "has a Density, of which no mean and no quantile is known"
            raise TacitError(f"the query, {group[0]!r}, {problem}; use tac.posterior(rows).pdf(x)")
        if self.argmax:
            raise TacitError(
                f"the query, {group[0]!r}, is continuous and has no most probable state; ask without argmax"
            )


@dataclass(frozen=True)
class CredibleColumns(OfGroups):
    """The posteriors of groups of variables under many networks: means, and the ends of their intervals.

    `source` says where the ensemble is from, and takes its place where two questions are compared.
    """

    ensemble: Ensemble = field(repr=False, compare=False)
    level: float
    source: str
    log_evidence: bool = False

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        """Three columns for each combination of states: `A.true`, `A.true.low` and `A.true.high`."""
        for name in self.names:
            if _variable(net, name).continuous:
                raise TacitError(f"the query, {name!r}, is continuous; credible intervals are of probabilities")
        names = [name for group in self.groups for name in _combinations(net, group)]
        ends = [(f"{name}{end}", pa.float64()) for name in names for end in ("", ".low", ".high")]
        return ends + [("log_evidence", pa.float64())] * self.log_evidence

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """Empty where the evidence is impossible under one of the networks."""
        columns: list[Any] = []
        for tac in tacs:
            with quietly():
                found = tac.credible(known, self.ensemble, self.level).columns()
            columns += [pa.array(column, mask=np.isnan(column)) for column in found.values()]
        if self.log_evidence:
            columns.append(pa.array(tacs[0].log_evidence(known)))
        return columns


@dataclass(frozen=True)
class MostProbable(AnswerColumns):
    """The jointly most probable states: of all variables, or of some with the others summed out."""

    names: tuple[str, ...] = ()
    log_evidence: bool = False

    @property
    def queries(self) -> list[tuple[str, ...] | None]:
        return [self.names or None]

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        names = ["log_probability", *["log_evidence"] * self.log_evidence]
        return super().fields(net) + [(name, pa.float64()) for name in names]

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """States, and the logarithm of their probability together with the evidence."""
        (tac,) = tacs
        with quietly():
            best = tac.map(known) if self.names else tac.mpe(known)
        columns = [written(_variable(net, name), labels) for name, labels in best.states.items()]
        columns.append(pa.array(best.log_probability))
        if self.log_evidence:
            columns.append(pa.array(tac.log_evidence(known)))
        return columns


@dataclass(frozen=True)
class LogEvidence(AnswerColumns):
    """The logarithm of the probability of the evidence, and nothing else."""

    def fields(self, net: Network) -> list[tuple[str, Any]]:
        return [("log_evidence", pa.float64())]

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        """Minus infinity where the evidence is impossible."""
        (tac,) = tacs
        return [pa.array(tac.log_evidence(known))]


@dataclass(frozen=True)
class SampleColumns(AnswerColumns):
    """One draw of all variables for each row. The same seeds give the same draws; none gives others each time."""

    seeds: tuple[int, ...] = ()

    def columns(self, net: Network, tacs: Sequence[TAC], known: Evidence) -> list[Any]:
        (tac,), seed = tacs, None
        if self.seeds:  # they are mixed, so that neighbours have nothing in common
            seed = int(np.random.SeedSequence(self.seeds).generate_state(1, np.uint64)[0])
        with quietly():
            drawn = tac.sample(known, seed=seed)
        return [written(_variable(net, name), labels[:, 0]) for name, labels in drawn.items()]


def _of_mixture(tac: TAC, names: tuple[str, ...], known: Evidence) -> list[Any]:
    """Mean, standard deviation and quantiles of some columns of numbers."""
    with quietly():
        mixture = tac.mixture(known)
    summaries = np.concatenate([mixture.summary(name).T for name in names])
    return [pa.array(column, mask=np.isnan(column)) for column in summaries]


def _variable(net: Network, column: str) -> Variable:
    """The variable that a column is of."""
    return net.variable(net.named(column))


def _numbers(net: Network, group: tuple[str, ...]) -> tuple[str, ...]:
    """The columns of numbers that a group asks for; none where it asks for states."""
    variable = _variable(net, group[0])
    return variable.columns if group[0] == variable.name else group if variable.continuous else ()


def _combinations(net: Network, names: Sequence[str]) -> list[str]:
    """The names of the columns for all combinations of states: `A.true,B.lo`."""
    count = prod(net.variable(name).card for name in names)
    if count > MAX_COLUMNS and len(names) > 1:
        limit = f"at most {MAX_COLUMNS:,} can be columns; name fewer variables"
        remedy = f"ask for the most probable combination (tac.map; --mpe --only {','.join(names)})"
        raise TacitError(f"{', '.join(names)} have {count:,} combinations of states, and {limit}, or {remedy}")
    return list(joint_columns((name, net.states(name)) for name in names))

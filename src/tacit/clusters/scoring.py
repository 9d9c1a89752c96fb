"""Scoring a table part by part: which of its columns are read, which columns the answer has, and the answer itself.

What is asked is planned from the names of the columns alone, before any row is read. The plan is sent to the workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tacit.clusters.places import in_partition
from tacit.clusters.remote import Remote
from tacit.errors import EvidenceError, TacitError
from tacit.evidence import AmbiguousEvidenceError, Evidence
from tacit.floats import Floats
from tacit.rows.columns import Source, columns_of, find, floats_of, refuse_misspelt, state_column
from tacit.rows.files import repeated
from tacit.tac import TAC
from tacit.variable import similar
from tacit.wanted import Posteriors, Samples, Wanted
from tacit.words import listed

SHOWN = 20  # names of columns in a message


@dataclass(frozen=True)
class Request:
    """What is asked of every row of a table, whatever columns it has.

    `keep` are columns of the table that the answer has, too, `names` are other names for columns of the result, and
    `likelihoods` are the variables whose columns hold likelihoods of the first of two states, even if some part of the
    table has only 0s and 1s.
    """

    tac: TAC
    wanted: Wanted
    keep: Sequence[str] = ()
    names: Mapping[str, str] | None = None
    likelihoods: Sequence[str] = ()

    def scorer(self, columns: Sequence[Any]) -> Scorer:
        """The plan for a table with these columns; an error if they do not fit."""
        self.tac.numbers()  # an error, now rather than in a worker, where some are not set
        names = [name for name in columns if isinstance(name, str)]
        keep = self._kept(columns)
        sources = self._sources(names, keep)
        scorer = Scorer(Remote(self.tac), self.wanted, sources, self._soft(sources), keep, self._fields())
        for name in repeated(list(columns)):
            if name in scorer.columns:
                raise EvidenceError(f"the table has two columns {name!r}; expected one")
        for name in repeated([*keep, *scorer.results])[:1]:
            raise TacitError(
                f"the answer would have two columns {name!r}; give the result another name with names=, or do not keep "
                "the column of the table"
            )
        return scorer

    def _kept(self, columns: Sequence[Any]) -> tuple[str, ...]:
        keep = (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)
        for name in keep:
            if name not in columns:
                raise EvidenceError(f"the table has no column {name!r} to keep; {_has(columns)}")
        return keep

    def _sources(self, names: Sequence[str], keep: Sequence[str]) -> tuple[Source, ...]:
        """The columns that are evidence."""
        tac, present = self.tac, set(names)
        found = {name: find(tac.network.variable(name), present) for name in tac.evidence}
        sources = tuple(source for source in found.values() if source is not None)
        used = {*columns_of(sources), *keep}
        refuse_misspelt(tac.evidence, names, [name for name in names if name not in used])
        for name in tac.certain:
            if found[name] is None:
                how = "set" if name in tac.do else "observed"
                raise EvidenceError(f"the table has no column {name!r}, which is {how} in every row; {_has(names)}")
        if not sources and tac.evidence:
            raise EvidenceError(f"no column of the table is evidence ({listed(tac.evidence, SHOWN)}); {_has(names)}")
        if not sources:
            raise TacitError("the query was compiled without evidence, so all rows have the same answer")
        return sources

    def _soft(self, sources: Sequence[Source]) -> frozenset[str]:
        """The variables whose one column is known to hold likelihoods."""
        names = (self.likelihoods,) if isinstance(self.likelihoods, str) else tuple(self.likelihoods)
        by_name = {source.variable.name: source for source in sources}
        for name in names:
            if name not in by_name:
                hint = similar(name, by_name)
                raise EvidenceError(f"likelihoods= names {name!r}, on which the table has no evidence{hint}")
            variable = by_name[name].variable
            if variable.card != 2:
                expected = [state_column(name, state) for state in variable.states]
                raise EvidenceError(
                    f"likelihoods= names {name!r}, which has {variable.card} states; a single column of likelihoods is "
                    f"enough for two states only, expected columns {listed(expected, SHOWN)}"
                )
        return frozenset(name for name in names if not by_name[name].per_state)

    def _fields(self) -> tuple[tuple[str, Any], ...]:
        """The columns of the result, by the names that they are given."""
        fields, called = self.wanted.fields(self.tac.network), dict(self.names or {})
        known = [name for name, _ in fields]
        for name in called:
            if name not in known:
                raise TacitError(
                    f"names= renames {name!r}, which is no column of the result{similar(name, known)}; it has "
                    f"{listed(known, SHOWN)}"
                )
        return tuple((called.get(name, name), kind) for name, kind in fields)


@dataclass(frozen=True)
class Scorer:
    """What workers do with each part of a table: a plan, and the query. Made by `Request.scorer`."""

    query: Remote[TAC]
    wanted: Wanted
    sources: tuple[Source, ...]
    soft: frozenset[str]
    keep: tuple[str, ...]
    fields: tuple[tuple[str, Any], ...]  # of the result: names and pyarrow types

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are needed."""
        return list(dict.fromkeys([*self.keep, *columns_of(self.sources)]))

    @property
    def results(self) -> list[str]:
        """The names of the columns of the result."""
        return [name for name, _ in self.fields]

    def score(self, rows: Any, partition: int | None = None, first: int = 0) -> Any:
        """The result for rows of a pandas frame or a pyarrow table, as a pyarrow table.

        In messages, the rows are those of a partition from `first` on.
        """
        schema = pa.schema(self.fields)
        if not len(rows):
            return schema.empty_table()
        tac = self.query.get()
        known = self._read(tac, rows, partition, first)
        wanted = self.wanted
        if isinstance(wanted, Samples) and partition is not None:
            wanted = wanted.of_part(partition, first)
        return pa.Table.from_arrays(wanted.columns(tac.network, [tac], known), schema=schema)

    def with_kept(self, rows: Any, partition: int | None = None, first: int = 0) -> Any:
        """The answer for rows of a pyarrow table: the columns that are kept, and the result."""
        found = self.score(rows, partition, first)
        kept = {name: rows[name] for name in self.keep}
        return pa.table({**kept, **{name: found[name] for name in found.column_names}})

    def _read(self, tac: TAC, rows: Any, partition: int | None, first: int) -> Evidence:
        try:
            return tac.read({source.variable.name: self._values(source, rows) for source in self.sources})
        except AmbiguousEvidenceError as error:
            hint = "if it holds likelihoods in other partitions, name the variable in likelihoods="
            raise in_partition(EvidenceError(f"{error}; {hint}"), partition, first) from None
        except EvidenceError as error:
            raise in_partition(error, partition, first) from None

    def _values(self, source: Source, rows: Any) -> Any:
        """What some rows say about a variable: as it stands, or as likelihoods (rows, states)."""
        if source.per_state:
            return np.column_stack([_floats(name, rows[name]) for name in source.columns])
        (column,) = source.columns
        if source.variable.name in self.soft:
            likelihood = _floats(column, rows[column])
            return np.column_stack([likelihood, 1.0 - likelihood])  # they sum to exactly 1
        return rows[column]


def posteriors(tac: TAC) -> Posteriors:
    """The posterior of a query, as what is wanted of every row."""
    tac.require_query("posterior")
    tac.require_posterior()
    return Posteriors((tac.question.query,), dtype=tac.dtype)


def _floats(name: str, column: Any) -> Floats:
    """A column of numbers, of pandas or pyarrow."""
    if isinstance(column, pa.Array | pa.ChunkedArray):
        return floats_of(name, column)
    try:
        return floats_of(name, pa.array(column, from_pandas=True))
    except pa.ArrowException as error:
        raise EvidenceError(f"column {name!r}: expected numbers ({error})") from None


def _has(names: Sequence[Any]) -> str:
    return f"it has {listed(names, SHOWN) or 'none'}"

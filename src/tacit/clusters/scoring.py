"""Scoring a table part by part: a request becomes a plan for its columns, which is sent to the workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.text import listed
from tacit.clusters.plan import MAX_NAMES, Columns, has, hinting, planned
from tacit.clusters.work import Remote
from tacit.evidence.tables.csv_parquet import repeated
from tacit.evidence.tables.messages import in_partition
from tacit.model.elements.variable import similar
from tacit.query.answer_columns import AnswerColumns, PosteriorColumns, SampleColumns
from tacit.query.tac import TAC

Names = Sequence[str]
Renamed = Mapping[str, str] | None  # other names for columns of the result


@dataclass(frozen=True)
class Request:
    """A question about every row of a table, whatever columns it has."""

    tac: TAC
    wanted: AnswerColumns
    keep: Names = ()  # columns of the table that the answer has, too
    names: Renamed = None
    likelihoods: Names = ()  # variables whose columns hold likelihoods, even where a part has only 0s and 1s

    def scorer(self, columns: Sequence[Any]) -> Scorer:
        """The plan for a table with these columns; an error if they do not fit."""
        self.tac.require_no_tables("the answer of a cluster")
        self.tac.numbers()  # an error, now rather than in a worker, where some are not set
        keep, fields = self._kept(columns), self._fields()
        scorer = Scorer(self._query, self.wanted, self._columns(columns, keep), keep, fields)
        for name in repeated([*keep, *(name for name, _ in scorer.fields)])[:1]:
            raise TacitError(
                f"the answer would have two columns {name!r}; give the result another name with names=, or do not keep "
                "the column of the table"
            )
        return scorer

    def announced(self, columns: Sequence[Any]) -> Scorer:
        """The plan; warns where the table has nothing on some variables, which workers should not do again."""
        scorer = self.scorer(columns)
        scorer.evidence.warn_missing(self.tac.evidence)
        return scorer

    @cached_property
    def _query(self) -> Remote[TAC]:
        return Remote(self.tac)

    def _kept(self, columns: Sequence[Any]) -> tuple[str, ...]:
        keep = (self.keep,) if isinstance(self.keep, str) else tuple(self.keep)
        for name in keep:
            if name not in columns:
                raise EvidenceError(f"the table has no column {name!r} to keep; {has(columns)}")
        for name in repeated(list(columns)):
            if name in keep:
                raise EvidenceError(f"the table has two columns {name!r}; expected one")
        return keep

    def _columns(self, names: Sequence[Any], keep: Sequence[str]) -> Columns:
        tac = self.tac
        if not tac.evidence:
            raise TacitError("the query was compiled without evidence, so all rows have the same answer")
        variables = [tac.network.variable(name) for name in tac.evidence]
        columns = planned(variables, names, self.likelihoods, kept=keep)
        for name in tac.always_known:
            if name not in columns.variables:
                how = "set" if name in tac.do else "observed"
                raise EvidenceError(f"the table has no column {name!r}, which is {how} in every row; {has(names)}")
        return columns

    def _fields(self) -> tuple[tuple[str, Any], ...]:
        """The columns of the result, renamed."""
        fields, called = self.wanted.fields(self.tac.network), dict(self.names or {})
        columns = [name for name, _ in fields]
        for name in called:
            if name not in columns:
                raise TacitError(
                    f"names= renames {name!r}, which is not a column of the result{similar(name, columns)}; it has "
                    f"{listed(columns, MAX_NAMES)}"
                )
        return tuple((called.get(name, name), kind) for name, kind in fields)


@dataclass(frozen=True)
class Scorer:
    """The plan by which workers score each part of a table, and the query. Made by `Request.scorer`."""

    query: Remote[TAC]
    wanted: AnswerColumns
    evidence: Columns
    keep: tuple[str, ...]
    fields: tuple[tuple[str, Any], ...]  # of the result: names and pyarrow types

    @property
    def columns(self) -> list[str]:
        """The columns of the table that are needed."""
        return list(dict.fromkeys([*self.keep, *self.evidence.names]))

    def score(self, rows: Any, partition: int | None = None, first: int = 0) -> Any:
        """The result, a pyarrow table, for rows of a frame or table: those of a partition from `first` on."""
        schema = pa.schema(self.fields)
        if not len(rows):
            return schema.empty_table()
        tac = self.query.get()
        try:
            with hinting():
                evidence = tac.read(self.evidence.of(rows))
        except EvidenceError as error:
            raise in_partition(error, partition, first) from None
        wanted = self.wanted
        if isinstance(wanted, SampleColumns) and wanted.seeds and partition is not None:
            wanted = SampleColumns((*wanted.seeds, partition, first))  # each part has draws of its own
        return pa.Table.from_arrays(wanted.columns(tac.network, [tac], evidence), schema=schema)

    def with_kept(self, rows: Any, partition: int | None = None, first: int = 0, sent: Any = None) -> Any:
        """The answer for rows of a pyarrow table: the columns that are kept, from what was `sent`, and the result."""
        result = self.score(rows, partition, first)
        kept = {name: (rows if sent is None else sent)[name] for name in self.keep}
        return pa.table({**kept, **dict(zip(result.column_names, result.columns, strict=True))})


def posteriors(tac: TAC) -> PosteriorColumns:
    """The columns of the posterior of a query; of a continuous one, of its mean, standard deviation and quantiles."""
    if tac.asks_for_numbers:
        return PosteriorColumns(((str(tac.query),),))
    tac.require_query("posterior")
    tac.require_posterior()
    return PosteriorColumns((tac.question.query,), dtype=tac.dtype)

"""Scoring on Spark: the answers to all rows of a DataFrame, lazily, in Spark's Python workers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql.types import BooleanType, DoubleType, FloatType, LongType, StringType, StructField, StructType

from tacit import machine
from tacit.assignments import checked_seed
from tacit.clusters.scoring import Request, Scorer, posteriors
from tacit.errors import EvidenceError, TacitError
from tacit.rows.places import in_partition
from tacit.spark.coding import Coding
from tacit.tac import TAC
from tacit.wanted import LogEvidence, MostProbable, Samples

CHUNK = 2**16  # rows that are scored at once; Spark's own batches have 10,000
TYPES = {
    pa.float64(): DoubleType,
    pa.float32(): FloatType,
    pa.int64(): LongType,
    pa.bool_(): BooleanType,
    pa.string(): StringType,
}


def posterior(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The posterior of the query for every row of a Spark DataFrame, computed where the rows are.

    Nothing is computed yet: the answer is another DataFrame. In Spark's expressions, names with a dot need backticks.

    Parameters
    ----------
    tac
        The compiled query.
    rows
        A DataFrame. Columns named like variables in `tac.evidence` are read as `tac.posterior` reads a pyarrow table;
        columns `A.lo` and `A.hi` hold one likelihood for each state of `A`. All other columns are left alone.
    keep
        Columns of the DataFrame that the answer begins with.
    names
        Other names for columns of the result, which are named `QUERY.STATE`, or `A.true,B.lo` for a joint posterior.
    likelihoods
        Variables of two states whose column holds likelihoods of the first state. Needed where some rows in a row may
        happen to hold only 0s and 1s, which could be codes.

    A row whose evidence has probability 0 gets nulls. An error in the rows names the partition, and the row in it; both
    are counted from 0. Each task uses as many threads as `spark.task.cpus` says.

    >>> import tacit  # doctest: +SKIP
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])  # doctest: +SKIP
    >>> posterior(tac, spark.read.parquet("rows.parquet"), keep=["id"]).first()  # doctest: +SKIP
    Row(id=7, B.true=0.9, B.false=0.1)
    """
    return _scored(Request(tac, posteriors(tac), keep, names, likelihoods), rows)


def log_evidence(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The logarithm of the probability of the evidence for every row of a Spark DataFrame: a column `log_evidence`.

    Parameters are those of `posterior`. Where the evidence is impossible, it is minus infinity.
    """
    return _scored(Request(tac, LogEvidence(), keep, names, likelihoods), rows)


def mpe(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
) -> Any:
    """The states of all variables that are jointly most probable, for every row of a Spark DataFrame.

    The result has a column for each variable, named like it, and `log_probability`. Parameters are as in `posterior`.
    Of a column that is kept, the result of the same name needs another one. Where the evidence is impossible, states
    are null.
    """
    return _scored(Request(tac, MostProbable(), keep, names, likelihoods), rows)


def sample(
    tac: TAC,
    rows: Any,
    keep: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    likelihoods: Sequence[str] = (),
    seed: int | None = 0,
) -> Any:
    """One draw of all variables given the evidence, for every row of a Spark DataFrame.

    The result has a column for each variable, named like it. Parameters are as in `posterior`. The same seed gives the
    same draws if the rows are in the same partitions and in the same order; None gives others at each call.
    """
    return _scored(Request(tac, Samples((checked_seed(seed),)), keep, names, likelihoods), rows)


def _scored(request: Request, rows: Any) -> Any:
    """The answers to all rows of a DataFrame."""
    if not isinstance(rows, DataFrame):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Spark DataFrame; rows that are in memory can be "
            "given to the method of the compiled query"
        )
    scorer = request.announced(rows.columns)
    coding = Coding.of(rows, scorer.evidence, scorer.keep)
    return coding.sent(rows).mapInArrow(_Task(scorer, coding), _schema(scorer, rows.schema))


def _schema(scorer: Scorer, table: Any) -> Any:
    """The columns of the answer."""
    kept = [table[name] for name in scorer.keep]
    return StructType(kept + [StructField(name, TYPES[kind]()) for name, kind in scorer.fields])


class _Task:
    """What Spark calls with the batches of a partition."""

    def __init__(self, scorer: Scorer, coding: Coding) -> None:
        self._scorer, self._coding = scorer, coding

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        context = TaskContext.get()
        partition, threads = (None, 1) if context is None else (context.partitionId(), context.cpus())
        first = 0
        for chunk in _chunks(batches):
            with machine.within(machine.Share(threads=threads)):
                answer = self._answer(chunk, partition, first)
            first += len(chunk)
            yield from answer.to_batches()

    def _answer(self, chunk: Any, partition: int | None, first: int) -> Any:
        try:
            rows = self._coding.received(chunk)
        except EvidenceError as error:
            raise in_partition(error, partition, first) from None
        found = self._scorer.score(rows, partition, first)
        kept = {name: rows.plain[name] for name in self._scorer.keep}
        return pa.table({**kept, **{name: found[name] for name in found.column_names}})


def _chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """All rows as tables of `CHUNK` rows, and the rest: a batch is small, and its size is a setting of Spark."""
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += len(batch)
        while count >= CHUNK:
            rows = pa.Table.from_batches(waiting)
            yield rows.slice(0, CHUNK)
            waiting, count = rows.slice(CHUNK).to_batches(), count - CHUNK
    if count:
        yield pa.Table.from_batches(waiting)

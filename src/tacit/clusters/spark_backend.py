"""Spark: DataFrames that are scored lazily in its Python workers, and their partitions as parts to learn from."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import BooleanType, DoubleType, FloatType, LongType, StringType, StructField, StructType

from tacit.base import machine
from tacit.base.errors import EvidenceError
from tacit.clusters.front import ClusterBackend
from tacit.clusters.learning import Tables
from tacit.clusters.plan import Columns
from tacit.clusters.scoring import Request, Scorer
from tacit.clusters.spark_coding import Coding
from tacit.clusters.work import FAN_IN, ClusterParts, apply_work, identity, plain_errors, summed
from tacit.evidence.tables.messages import in_partition
from tacit.learn.partitions import Distributed

T = TypeVar("T")
S = TypeVar("S")

CHUNK = 2**16  # rows that are scored at once; Spark's own batches have 10,000
TYPES = {
    pa.float64(): DoubleType,
    pa.float32(): FloatType,
    pa.int64(): LongType,
    pa.bool_(): BooleanType,
    pa.string(): StringType,
}
MOST_HERE = 4 * FAN_IN  # partial sums that are added here
SCHEMA = "part int, made binary"
ARROW = pa.schema([("part", pa.int32()), ("made", pa.binary())])


class SparkBackend(ClusterBackend):
    """Spark DataFrames."""

    kind, table_type = "Spark DataFrame", DataFrame

    def columns(self, rows: Any) -> list[Any]:
        """The names of the columns of a DataFrame."""
        return list(rows.columns)

    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        """The partitions of a DataFrame."""
        return Partitions(rows, Coding.of(rows, evidence, others))

    def score(self, request: Request, rows: Any) -> Any:
        """Another DataFrame."""
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
            with machine.within(machine.Quota(threads=threads)):
                answer = self._answer(chunk, partition, first)
            first += len(chunk)
            yield from answer.to_batches()

    def _answer(self, chunk: Any, partition: int | None, first: int) -> Any:
        try:
            rows = self._coding.received(chunk)
        except EvidenceError as error:
            raise in_partition(error, partition, first) from None
        return self._scorer.with_kept(rows, partition, first, rows.plain)


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


class Partitions(ClusterParts[Tables]):
    """The partitions of a DataFrame, which stream through the workers."""

    def __init__(self, rows: Any, coding: Coding) -> None:
        self.rows, self.coding = coding.sent(rows), coding

    def map(self, work: Callable[[Tables, int | None], S]) -> Distributed[S]:
        """What work makes of every partition, kept by Spark in memory, or on disk."""
        coding = self.coding

        def made(batches: Iterator[Any]) -> Iterator[Any]:
            number = _partition()
            yield _row(number, apply_work(work, _received(coding, batches), number))

        return SparkParts(self.rows.mapInArrow(made, SCHEMA))

    def sum(self, work: Callable[[Tables, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum over all partitions."""
        return self.map(work).sum(identity, add)


class SparkParts(ClusterParts[T]):
    """A DataFrame with a row for each part: its number, and a pickle of the thing."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts.persist(StorageLevel.MEMORY_AND_DISK)
        weakref.finalize(self, self.parts.unpersist)

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """What work makes of every part, kept by Spark in memory, or on disk."""
        return SparkParts(self._applied(work))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours: of groups of parts by Spark, of the groups here."""
        partial = self._applied(work)
        with plain_errors():
            for _ in range(self._levels):
                partial = partial.groupBy((functions.col("part") / FAN_IN).cast("int").alias("group"))
                partial = partial.applyInArrow(_summing(add), SCHEMA)
            collected = sorted((row["part"], bytes(row["made"])) for row in partial.collect())
        partial_sums: list[S] = [pickle.loads(made) for _, made in collected]
        return summed(add, partial_sums)

    @property
    def _levels(self) -> int:
        """How often groups are summed before the rest comes here."""
        parts, levels = self.parts.rdd.getNumPartitions(), 0
        while parts > MOST_HERE:
            parts, levels = parts // FAN_IN, levels + 1
        return levels

    def _applied(self, work: Callable[[T, int | None], S]) -> Any:
        def made(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number, thing in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield _row(number, apply_work(work, pickle.loads(thing), number))

        return self.parts.mapInArrow(made, SCHEMA)


def _summing(add: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function that sums a group of parts."""

    def sum_of(rows: Any) -> Any:
        group = sorted(zip(*(rows.column(name).to_pylist() for name in ("part", "made")), strict=True))
        made = summed(add, [pickle.loads(made) for _, made in group])
        return pa.Table.from_batches([_row(group[0][0] // FAN_IN, made)])

    return sum_of


def _received(coding: Coding, batches: Iterator[Any]) -> Iterator[Any]:
    first = 0
    for batch in batches:
        try:
            yield coding.received(pa.Table.from_batches([batch]))
        except EvidenceError as error:
            raise error.moved(first) from None
        first += len(batch)


def _row(number: int, made: Any) -> Any:
    return pa.record_batch([[number], [pickle.dumps(made, protocol=5)]], schema=ARROW)


def _partition() -> int:
    context = TaskContext.get()
    return 0 if context is None else context.partitionId()

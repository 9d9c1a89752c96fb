"""Spark DataFrames, scored lazily in Spark's Python workers, and their partitions as parts to learn from."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
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
from tacit.clusters.work import FAN_IN, ClusterParts, apply_work, plain_errors
from tacit.evidence.tables.messages import in_partition
from tacit.learn.partitions import Distributed

T = TypeVar("T")
S = TypeVar("S")

ROWS_PER_CHUNK = 2**16  # scored at once; Spark's own batches have 10,000
TYPES = {
    pa.float64(): DoubleType,
    pa.float32(): FloatType,
    pa.int64(): LongType,
    pa.bool_(): BooleanType,
    pa.string(): StringType,
}
MAX_COLLECTED = 4 * FAN_IN  # partial sums that are added here
SCHEMA = "part int, pickle binary"
ARROW = pa.schema([("part", pa.int32()), ("pickle", pa.binary())])


class SparkBackend(ClusterBackend):
    """Spark DataFrames."""

    kind, table_type = "Spark DataFrame", DataFrame

    def parts(self, rows: Any, evidence: Columns, others: Sequence[str]) -> Distributed[Tables]:
        return Partitions(rows, Coding.of(rows, evidence, others))

    def score(self, request: Request, rows: Any) -> Any:
        scorer = request.announced(rows.columns)
        coding = Coding.of(rows, scorer.evidence, scorer.keep)
        kept = [rows.schema[name] for name in scorer.keep]
        schema = StructType(kept + [StructField(name, TYPES[kind]()) for name, kind in scorer.fields])
        return coding.sent(rows).mapInArrow(partial(_scored, scorer, coding), schema)


def _scored(scorer: Scorer, coding: Coding, batches: Iterable[Any]) -> Iterator[Any]:
    """The answers to the batches of a partition, as Spark asks for them."""
    context = TaskContext.get()
    partition, threads = (None, 1) if context is None else (context.partitionId(), context.cpus())
    first = 0
    for chunk in _chunks(batches):
        try:
            rows = coding.received(chunk, first)
        except EvidenceError as error:
            raise in_partition(error, partition) from None
        with machine.within(machine.Quota(threads=threads)):
            answer = scorer.with_kept(rows, partition, first, rows.plain)
        first += len(chunk)
        yield from answer.to_batches()


def _chunks(batches: Iterable[Any]) -> Iterator[Any]:
    """All rows as tables of `ROWS_PER_CHUNK`, and the rest: Spark's own batches are small, by its settings."""
    waiting: list[Any] = []
    count = 0
    for batch in batches:
        waiting.append(batch)
        count += len(batch)
        while count >= ROWS_PER_CHUNK:
            rows = pa.Table.from_batches(waiting)
            yield rows.slice(0, ROWS_PER_CHUNK)
            waiting, count = rows.slice(ROWS_PER_CHUNK).to_batches(), count - ROWS_PER_CHUNK
    if count:
        yield pa.Table.from_batches(waiting)


class Partitions(ClusterParts[Tables]):
    """The partitions of a DataFrame, which stream through the workers."""

    def __init__(self, rows: Any, coding: Coding) -> None:
        self.rows, self.coding = coding.sent(rows), coding

    def map(self, work: Callable[[Tables, int | None], S]) -> Distributed[S]:
        """The result of the work on every partition, kept by Spark in memory, or on disk."""
        coding = self.coding

        def worked(batches: Iterator[Any]) -> Iterator[Any]:
            context = TaskContext.get()
            number = 0 if context is None else context.partitionId()
            yield _row(number, apply_work(work, _received(coding, batches), number))

        return SparkParts(self.rows.mapInArrow(worked, SCHEMA))


class SparkParts(ClusterParts[T]):
    """A DataFrame with a row for each part: its number, and a pickle of the thing."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts.persist(StorageLevel.MEMORY_AND_DISK)
        weakref.finalize(self, self.parts.unpersist)

    def map(self, work: Callable[[T, int | None], S]) -> Distributed[S]:
        """The result of the work on every part, kept by Spark in memory, or on disk."""
        return SparkParts(self._applied(work))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours: of groups of parts by Spark, of the groups here."""

        def summed(rows: Any) -> Any:
            group = sorted(zip(*(rows.column(name).to_pylist() for name in ARROW.names), strict=True))
            total = reduce(add, [pickle.loads(packed) for _, packed in group])
            return pa.Table.from_batches([_row(group[0][0] // FAN_IN, total)])

        sums = self._applied(work)
        with plain_errors():
            parts = self.parts.rdd.getNumPartitions()
            while parts > MAX_COLLECTED:
                sums = sums.groupBy((functions.col("part") / FAN_IN).cast("int").alias("group"))
                sums = sums.applyInArrow(summed, SCHEMA)
                parts //= FAN_IN
            collected = sorted((row["part"], bytes(row["pickle"])) for row in sums.collect())
        partial_sums: list[S] = [pickle.loads(packed) for _, packed in collected]
        return reduce(add, partial_sums)

    def _applied(self, work: Callable[[T, int | None], S]) -> Any:
        def worked(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number, packed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield _row(number, apply_work(work, pickle.loads(packed), number))

        return self.parts.mapInArrow(worked, SCHEMA)


def _received(coding: Coding, batches: Iterator[Any]) -> Iterator[Any]:
    first = 0
    for batch in batches:
        yield coding.received(pa.Table.from_batches([batch]), first)
        first += len(batch)


def _row(number: int, thing: Any) -> Any:
    return pa.record_batch([[number], [pickle.dumps(thing, protocol=5)]], schema=ARROW)

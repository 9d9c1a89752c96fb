"""The partitions of a Spark DataFrame as parts that learning sums over."""

from __future__ import annotations

import pickle
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import StorageLevel, TaskContext
from pyspark.sql import DataFrame, functions

from tacit.clusters.columns import Columns
from tacit.clusters.learning import Table, Tables
from tacit.clusters.work import FAN_IN, ClusterParts, done, itself, plain_errors, summed
from tacit.errors import EvidenceError, TacitError
from tacit.learn.parts import Parts
from tacit.spark.coding import Coding

T = TypeVar("T")
S = TypeVar("S")

MOST_HERE = 4 * FAN_IN  # partial sums that are added here
SCHEMA = "part int, made binary"
ARROW = pa.schema([("part", pa.int32()), ("made", pa.binary())])


def table(rows: Any) -> Table:
    """A DataFrame as a table to learn from."""
    if not isinstance(rows, DataFrame):
        raise TacitError(
            f"the rows are of type {type(rows).__name__}, expected a Spark DataFrame; rows that are in memory can be "
            "given to tacit.estimate and tacit.fit"
        )

    def parts(evidence: Columns, others: Sequence[str]) -> Parts[Tables]:
        return Partitions(rows, Coding.of(rows, evidence, others))

    return Table(list(rows.columns), parts)


class Partitions(ClusterParts[Tables]):
    """The partitions of a DataFrame, which stream through the workers."""

    def __init__(self, rows: Any, coding: Coding) -> None:
        self.rows, self.coding = coding.sent(rows), coding

    def map(self, work: Callable[[Tables, int | None], S]) -> Parts[S]:
        """What work makes of every partition, kept by Spark in memory, or on disk."""
        coding = self.coding

        def made(batches: Iterator[Any]) -> Iterator[Any]:
            number = _partition()
            yield _row(number, done(work, _received(coding, batches), number))

        return SparkParts(self.rows.mapInArrow(made, SCHEMA))

    def sum(self, work: Callable[[Tables, int | None], S], add: Callable[[S, S], S]) -> S:
        """The sum over all partitions."""
        return self.map(work).sum(itself, add)


class SparkParts(ClusterParts[T]):
    """A DataFrame with a row for each part: its number, and a pickle of the thing."""

    def __init__(self, parts: Any) -> None:
        self.parts = parts.persist(StorageLevel.MEMORY_AND_DISK)
        weakref.finalize(self, self.parts.unpersist)

    def map(self, work: Callable[[T, int | None], S]) -> Parts[S]:
        """What work makes of every part, kept by Spark in memory, or on disk."""
        return SparkParts(self._done(work))

    def sum(self, work: Callable[[T, int | None], S], add: Callable[[S, S], S]) -> S:
        """A tree of sums of neighbours: of groups of parts by Spark, of the groups here."""
        partial = self._done(work)
        with plain_errors():
            for _ in range(self._levels):
                partial = partial.groupBy((functions.col("part") / FAN_IN).cast("int").alias("group"))
                partial = partial.applyInArrow(_summing(add), SCHEMA)
            found = sorted((row["part"], bytes(row["made"])) for row in partial.collect())
        partial_sums: list[S] = [pickle.loads(made) for _, made in found]
        return summed(add, partial_sums)

    @property
    def _levels(self) -> int:
        """How often groups are summed before the rest comes here."""
        parts, levels = self.parts.rdd.getNumPartitions(), 0
        while parts > MOST_HERE:
            parts, levels = parts // FAN_IN, levels + 1
        return levels

    def _done(self, work: Callable[[T, int | None], S]) -> Any:
        def made(batches: Iterator[Any]) -> Iterator[Any]:
            for batch in batches:
                for number, thing in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    yield _row(number, done(work, pickle.loads(thing), number))

        return self.parts.mapInArrow(made, SCHEMA)


def _summing(add: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A function that sums a group of parts."""

    def sum_of(rows: Any) -> Any:
        found = sorted(zip(*(rows.column(name).to_pylist() for name in ("part", "made")), strict=True))
        made = summed(add, [pickle.loads(made) for _, made in found])
        return pa.Table.from_batches([_row(found[0][0] // FAN_IN, made)])

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

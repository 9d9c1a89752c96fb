"""Learning on Spark."""

from typing import Any

import pandas as pd
import pytest

from tests.scale.killing import kill_one
from tests.scale.learning_contract import LearningContract

pytest.importorskip("pyspark", reason="PySpark is not installed")
pa = pytest.importorskip("pyarrow")

from pyspark.sql.pandas.types import from_arrow_schema  # noqa: E402

import tacit.spark  # noqa: E402
from tacit.clusters.plan import Columns  # noqa: E402
from tacit.clusters.spark_backend import SparkBackend  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


class Spark:
    learning = tacit.spark

    def __init__(self, session: Any) -> None:
        self.session = session

    def table(self, frames: list[pd.DataFrame]) -> Any:
        """Spark has one type for a column, and each frame becomes a partition."""
        whole = pa.Table.from_pandas(pd.concat([frame.astype(object) for frame in frames]), preserve_index=False)
        schema = whole.schema
        tables = [pa.Table.from_pandas(frame.astype(object), schema, preserve_index=False) for frame in frames]

        def part(batches: Any) -> Any:
            for batch in batches:
                for number in batch.column(0).to_pylist():
                    yield from tables[number].to_batches()

        return self.session.range(0, len(frames), 1, len(frames)).mapInArrow(part, from_arrow_schema(schema))

    def kill_worker(self) -> int:
        return kill_one(lambda process: "pyspark.daemon" in process.cmdline() and is_daemon(process.parent()))


@pytest.fixture
def engine(spark: Any) -> Spark:
    return Spark(spark)


class TestSpark(LearningContract):
    pass


def is_daemon(process: Any) -> bool:
    """Whether it is the process that forks Spark's Python workers."""
    return process is not None and "pyspark.daemon" in process.cmdline()


def test_many_parts_are_summed_in_groups_and_in_order(spark: Any) -> None:
    rows = spark.range(0, 70, 1, 70)
    parts = SparkBackend().parts(rows, Columns((), frozenset()), ["id"])
    assert parts.sum(numbers, add) == list(range(70))


def numbers(tables: Any, number: int | None) -> list[int]:
    return [row for rows in tables for row in rows["id"].to_pylist()]


def add(first: list[int], second: list[int]) -> list[int]:
    return first + second

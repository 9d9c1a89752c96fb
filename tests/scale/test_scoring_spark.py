"""Scoring on Spark."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tests.scale import scoring_cases as cases
from tests.scale.scoring_contract import ScoringContract, fail

pytest.importorskip("pyspark", reason="PySpark is not installed")

import tacit.spark

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning")


class Spark:
    scoring = tacit.spark

    def __init__(self, session: Any) -> None:
        self.session = session

    def table(self, frames: list[pd.DataFrame]) -> Any:
        """Spark has one type for a column: that of all rows together."""
        whole = pd.concat([frame for frame in frames if len(frame)])
        schema = pa.Table.from_pandas(whole, preserve_index=False).schema.remove_metadata()
        tables = [pa.Table.from_pandas(frame, schema, preserve_index=False) for frame in frames]

        def source(batches: Iterator[Any]) -> Iterator[Any]:
            for number in (number.as_py() for batch in batches for number in batch["id"]):
                yield from tables[number].to_batches(max_chunksize=7)

        types = self.session.createDataFrame(schema.empty_table()).schema
        return self.session.range(0, len(frames), 1, len(frames)).mapInArrow(source, types)

    def collect(self, answer: Any) -> pd.DataFrame:
        return answer.toArrow().to_pandas()

    def failing(self, frame: pd.DataFrame) -> Any:
        table = self.table([frame])
        return table.mapInArrow(refuse, table.schema)


def refuse(batches: Iterator[Any]) -> Iterator[Any]:
    for batch in batches:
        yield fail(batch)


@pytest.fixture
def engine(spark: Any) -> Spark:
    return Spark(spark)


class TestSpark(ScoringContract):
    pass


def test_a_seed_repeats_samples(engine):
    made = cases.testing()
    drawn = [engine.collect(tacit.spark.sample(made.tac, engine.table(made.frames), seed=seed)) for seed in (1, 1, 2)]
    assert drawn[0].equals(drawn[1])
    assert not drawn[1].equals(drawn[2])


def test_text_names_states_in_any_case(engine):
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    frame = pd.DataFrame({"A": ["TRUE", "false", " True "], "C": ["lo", "HI", "Lo"]})
    scored = engine.collect(tacit.spark.posterior(tac, engine.table([frame])))
    np.testing.assert_array_equal(scored.to_numpy(), tac.posterior(frame))
    with pytest.raises(Exception, match=r"'A', row 1: '\\ttrue' differs from a state in white space"):
        engine.collect(tacit.spark.posterior(tac, engine.table([frame.assign(A=["true", "\ttrue", "true"])])))

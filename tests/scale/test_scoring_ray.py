"""Scoring on Ray."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.scale import scoring_cases as cases
from tests.scale.scoring_contract import ScoringContract, fail

ray = pytest.importorskip("ray", reason="Ray is not installed")
pytest.importorskip("ray.data", reason="Ray Data is not installed")

import tacit.ray  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\..*"),  # what Ray says about itself
    pytest.mark.filterwarnings("ignore:.*ray-data:pytest.PytestUnraisableExceptionWarning"),  # logs that it left open
]


class Ray:
    scoring = tacit.ray

    def table(self, frames: list[pd.DataFrame]) -> Any:
        return ray.data.from_pandas(frames)

    def collect(self, answer: Any) -> pd.DataFrame:
        return answer.to_pandas()

    def failing(self, frame: pd.DataFrame) -> Any:
        return ray.data.from_pandas(frame).map_batches(fail)


@pytest.fixture
def engine(ray_cluster: Any) -> Ray:
    ray.data.DataContext.get_current().enable_progress_bars = False
    return Ray()


class TestRay(ScoringContract):
    pass


def test_actors(engine):
    made = cases.testing()
    answer = tacit.ray.posterior(made.tac, engine.table(made.frames), keep=["id"], concurrency=1)
    found = engine.collect(answer).sort_values("id").drop(columns="id").to_numpy()
    np.testing.assert_array_equal(found, made.tac.posterior(made.known))
    frames = [frame.copy() for frame in made.frames]
    frames[1].loc[frames[1].index[0], "A"] = 7.0
    with pytest.raises(Exception, match="partition 1: evidence on 'A', row 0"):
        engine.collect(tacit.ray.posterior(made.tac, engine.table(frames), concurrency=(1, 2)))

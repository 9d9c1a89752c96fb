"""Scoring on Ray."""

from typing import Any

import pandas as pd
import pytest

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

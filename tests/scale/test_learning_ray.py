"""Learning on Ray."""

from typing import Any

import pandas as pd
import pytest

from tests.scale.killing import kill_one
from tests.scale.learning_contract import LearningContract

data = pytest.importorskip("ray.data", reason="Ray is not installed")

import tacit.ray  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings(r"ignore::DeprecationWarning:ray\..*"),  # what Ray says about itself
    pytest.mark.filterwarnings("ignore:.*ray-data:pytest.PytestUnraisableExceptionWarning"),  # logs that it left open
]


class Ray:
    learning = tacit.ray

    def table(self, frames: list[pd.DataFrame]) -> Any:
        return data.from_pandas(frames)

    def kill_worker(self) -> int:
        return kill_one(lambda process: " ".join(process.cmdline()).startswith("ray::_sum"))


@pytest.fixture
def engine(ray_cluster: Any) -> Ray:
    return Ray()


class TestRay(LearningContract):
    pass

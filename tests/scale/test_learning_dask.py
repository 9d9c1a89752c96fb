"""Learning on Dask."""

from typing import Any

import pandas as pd
import pytest

from tests.scale.learning_contract import LearningContract

dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")

import tacit.dask  # noqa: E402


class Dask:
    learning = tacit.dask

    def table(self, frames: list[pd.DataFrame]) -> Any:
        return dd.from_map(lambda frame: frame, frames, meta=frames[0].iloc[:0])


@pytest.fixture
def engine(dask_client: Any) -> Dask:
    return Dask()


class TestDask(LearningContract):
    pass

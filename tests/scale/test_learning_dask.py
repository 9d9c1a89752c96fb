"""Learning on Dask."""

import os
from typing import Any

import pandas as pd
import pytest

from tests.scale.killing import kill_one
from tests.scale.learning_contract import LearningContract

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")

import tacit.dask  # noqa: E402


class Dask:
    learning = tacit.dask

    def table(self, frames: list[pd.DataFrame]) -> Any:
        return dd.from_map(lambda frame: frame, frames, meta=frames[0].iloc[:0])

    def kill_worker(self) -> int:
        pids = distributed.get_client().run(os.getpid)
        return kill_one(lambda process: process.pid in pids.values())


@pytest.fixture
def engine(dask_client: Any) -> Dask:
    return Dask()


class TestDask(LearningContract):
    pass

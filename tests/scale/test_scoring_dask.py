"""Scoring on Dask."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tests.helpers import impossible
from tests.scale import scoring_cases as cases
from tests.scale.scoring_contract import ScoringContract, fail

dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
da = pytest.importorskip("dask.array", reason="Dask is not installed")

import tacit.dask  # noqa: E402


class Dask:
    scoring = tacit.dask

    def table(self, frames: list[pd.DataFrame]) -> Any:
        return dd.from_map(lambda frame: frame, frames, meta=frames[0].iloc[:0])

    def collect(self, answer: Any) -> pd.DataFrame:
        return answer.compute()

    def failing(self, frame: pd.DataFrame) -> Any:
        return dd.from_map(fail, range(2), meta=frame.iloc[:0])


@pytest.fixture
def engine(dask_client: Any) -> Dask:
    return Dask()


class TestDask(ScoringContract):
    pass


@impossible
@pytest.mark.parametrize("what", ["posterior", "log_evidence", "mpe", "sample"])
def test_types_are_known_beforehand(what):
    for made in (cases.alarm(), cases.impossible()):
        answer = getattr(tacit.dask, what)(made.tac, Dask().table(made.frames))
        for part in answer.to_delayed():
            assert part.compute(scheduler="sync").dtypes.to_dict() == answer.dtypes.to_dict()


def test_partitions_and_index_stay(engine):
    made = cases.testing()
    frame = made.whole.assign(when=pd.date_range("2026-01-01", periods=len(made.whole))).set_index("when")
    answer = tacit.dask.posterior(made.tac, dd.from_pandas(frame, npartitions=3))
    assert answer.known_divisions
    pd.testing.assert_index_equal(answer.compute().index, frame.index)


def test_a_seed_repeats_samples(engine):
    made = cases.testing()
    drawn = [
        tacit.dask.sample(made.tac, engine.table(made.frames), seed=seed).compute() for seed in (1, 1, 2, None, None)
    ]
    assert drawn[0].equals(drawn[1])
    assert not any(drawn[i].equals(drawn[i + 1]) for i in (1, 2, 3))


def test_arrays(engine):
    net = tacit.examples.etq()
    for query in ("Q", ["Q", "E"]):
        tac = tacit.compile(net, query, evidence=["E", "T"])
        rows = np.random.default_rng(0).random((50, 2))
        found = tacit.dask.posterior(tac, da.from_array(rows, chunks=(20, 1)))
        assert found.chunks == ((20, 20, 10), *[(2,)] * (1 if query == "Q" else 2))
        np.testing.assert_array_equal(found.compute(), tac.posterior(rows))
        np.testing.assert_array_equal(
            tacit.dask.log_evidence(tac, da.from_array(rows, chunks=(20, 2))).compute(), tac.log_evidence(rows)
        )


def test_arrays_that_do_not_fit(engine):
    tac = tacit.compile(tacit.examples.etq(), "Q", evidence=["E", "T"])
    rows = np.full((40, 2), 0.5)
    with pytest.raises(EvidenceError, match=r"shape \(40, 1\), expected \(rows, 2\)"):
        tacit.dask.posterior(tac, da.from_array(rows[:, :1]))
    with pytest.raises(TacitError, match="an Array has no names"):
        tacit.dask.posterior(tac, da.from_array(rows), keep=["id"])
    with pytest.raises(TacitError, match="expected a Dask DataFrame"):
        tacit.dask.mpe(tac, da.from_array(rows))
    rows[33, 1] = 1.5
    with pytest.raises(EvidenceError, match=r"partition 3: evidence on 'T', row 3: 1\.5 is not a likelihood"):
        tacit.dask.posterior(tac, da.from_array(rows, chunks=(10, 2))).compute()


def test_numbers_of_another_type():
    made = cases.testing()
    tac = made.tac.in_dtype("float32")
    table = dd.from_pandas(made.whole, npartitions=2)
    answer = tacit.dask.posterior(tac, table)
    assert set(answer.dtypes) == {np.dtype("float32")}
    np.testing.assert_array_equal(answer.compute(scheduler="sync").to_numpy(), tac.posterior(made.known))

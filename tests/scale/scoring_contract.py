"""What scoring must do on every cluster engine: each of them runs these tests, by a small adapter."""

import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pytest
from bench.networks import network

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tests.helpers import impossible
from tests.scale import scoring_cases as cases
from tests.scale.scoring_cases import CASES, Case


class Adapter(Protocol):
    """An engine under test."""

    scoring: Any  # tacit.dask, tacit.ray or tacit.spark

    def table(self, frames: list[pd.DataFrame]) -> Any:
        """A table on the cluster with one partition for each frame."""
        ...

    def collect(self, answer: Any) -> pd.DataFrame:
        """All rows of an answer."""
        ...

    def failing(self, frame: pd.DataFrame) -> Any:
        """A table with the columns of a frame, whose rows cannot be read: a lazy call does not notice."""
        ...


def scored(engine: Adapter, case: Case, what: str = "posterior", **more: Any) -> pd.DataFrame:
    """The answers to all rows of a case, by the numbers of the rows."""
    options = {**case.options, **more}
    keep = ["id", *options.pop("keep", ())]
    answer = getattr(engine.scoring, what)(case.tac, engine.table(case.frames), keep=keep, **options)
    found = engine.collect(answer).sort_values("id", ignore_index=True)
    assert list(found.columns[: len(keep)]) == keep
    np.testing.assert_array_equal(found["id"], case.whole["id"])
    for name in keep[1:]:
        np.testing.assert_array_equal(found[name], case.whole[name])
    return found.drop(columns=keep)


@impossible
class ScoringContract:
    """All tests; a subclass has the fixture `engine`."""

    @pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
    def test_posteriors_have_the_bits_of_one_machine(self, engine, case):
        made = case()
        found, expected = scored(engine, made), made.tac.posterior(made.known)
        np.testing.assert_array_equal(floats(found), expected.reshape(len(expected), -1))
        assert list(found.columns) == made.names

    def test_log_evidence(self, engine):
        made = cases.impossible()
        found = scored(engine, made, "log_evidence")
        np.testing.assert_array_equal(found["log_evidence"], made.tac.log_evidence(made.known))

    def test_most_probable_states(self, engine):
        made = cases.impossible()
        found, expected = scored(engine, made, "mpe"), made.tac.mpe(made.known)
        assert list(found.columns) == [*made.tac.network.variables, "log_probability"]
        np.testing.assert_array_equal(found["log_probability"], expected.log_probability)
        for name, states in expected.states.items():
            assert plain(found[name]) == plain(states), name

    def test_samples_agree_with_what_is_known(self, engine):
        made = cases.impossible()
        found = scored(engine, made, "sample")
        possible = ~np.isneginf(made.tac.log_evidence(made.known))
        assert found["Z"].notna().tolist() == possible.tolist()
        for name in ("X", "Y"):
            seen = (made.whole[name].notna() & possible).to_numpy()
            assert found[name][seen].tolist() == made.whole[name][seen].tolist()
        assert found["X"][possible].tolist() == found["Y"][possible].tolist()

    def test_samples_of_partitions_differ(self, engine):
        net = tacit.examples.abc()
        frames = cases.divided({"C": ["lo"] * 400}, [100] * 4)
        case = Case("alike", tacit.compile(net, None, evidence=["C"]), frames)
        drawn = scored(engine, case, "sample")["B"].to_numpy().reshape(4, 100)
        assert len({tuple(part) for part in drawn}) == 4

    def test_a_bad_value_is_named_with_its_place(self, engine):
        net = network("alarm")
        frames = cases.divided({"HISTORY": cases.labels(net, "HISTORY", 160, 0)}, [20] * 8)
        frames[3].loc[11, "HISTORY"] = "PERHAPS"
        tac, start = tacit.compile(net, "LVFAILURE", evidence=["HISTORY"]), time.monotonic()
        with pytest.raises(Exception, match="HISTORY") as caught:
            engine.collect(engine.scoring.posterior(tac, engine.table(frames)))
        assert "partition 3: evidence on 'HISTORY', row 11: 'PERHAPS' is not a state" in str(caught.value)
        assert time.monotonic() - start < 30

    def test_zeros_and_ones_of_one_partition_may_be_codes(self, engine):
        made = cases.likelihoods()
        with pytest.raises(Exception, match="may be a code") as caught:
            engine.collect(engine.scoring.posterior(made.tac, engine.table(made.frames[:2])))
        assert "name the variable in likelihoods=" in str(caught.value)

    def test_mistakes_show_before_anything_is_read(self, engine):
        made, posterior = cases.certain(), engine.scoring.posterior
        whole = engine.table(made.frames)
        with pytest.raises(EvidenceError, match="no column 'HRBP', which is observed in every row"):
            posterior(made.tac, engine.table([made.frames[0].drop(columns="HRBP")]))
        with pytest.raises(EvidenceError, match="no column 'ID' to keep; it has HRBP, CVP, HYPOVOLEMIA, id"):
            posterior(made.tac, whole, keep=["ID"])
        with pytest.raises(TacitError, match=r"'LVFAILURE\.true', which is not a column of the result; did you mean"):
            posterior(made.tac, whole, names={"LVFAILURE.true": "risk"})
        with pytest.raises(TacitError, match="two columns 'id'"):
            posterior(made.tac, whole, keep=["id"], names={"LVFAILURE.TRUE": "id"})
        with pytest.raises(TacitError, match="without a query"):
            posterior(tacit.compile(made.tac.network, None, evidence=["CVP"]), whole)
        with pytest.raises(TacitError, match="the rows are of type dict"):
            posterior(made.tac, {"CVP": ["LOW"]})

    def test_nothing_is_computed_yet(self, engine):
        made = cases.testing()
        answer = engine.scoring.posterior(made.tac, engine.failing(made.frames[0]))
        with pytest.raises(Exception, match="no rows for you"):
            engine.collect(answer)

    def test_a_worker_that_dies_changes_nothing(self, engine, tmp_path):
        net = network("alarm")
        frames = cases.divided({"HISTORY": cases.labels(net, "HISTORY", 163, 0)}, [25, 25, 25, 13, 25, 25, 25])
        tac = tacit.compile(net, "LVFAILURE", evidence=["HISTORY"])
        marker = tmp_path / "dead"
        found = scored(engine, Case("deadly", cases.deadly(tac, marker), frames))
        assert marker.exists()
        np.testing.assert_array_equal(floats(found), tac.posterior({"HISTORY": pd.concat(frames)["HISTORY"]}))

    def test_two_jobs_at_once(self, engine):
        made = [cases.alarm(), cases.testing()]
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda case: scored(engine, case), made))
        for case, answer in zip(made, found, strict=True):
            np.testing.assert_array_equal(floats(answer), case.tac.posterior(case.known))


def floats(frame: pd.DataFrame) -> np.ndarray:
    """All columns; NaN where there is nothing, whatever an engine has there."""
    return frame.to_numpy(dtype=np.float64, na_value=np.nan)


def plain(labels: Any) -> list[Any]:
    """Labels, and None where there is none."""
    return [None if pd.isna(label) else label for label in labels]


def fail(*_: Any) -> Any:
    """What a source does that cannot be read."""
    raise OSError("no rows for you")

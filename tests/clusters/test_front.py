"""The functions that all clusters offer, on a backend whose cluster is a list of frames in this process."""

import inspect
import itertools
import pickle
import warnings
from functools import reduce

import numpy as np
import pytest

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.learn.discovering import coded_table

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

from tacit.clusters.front import ClusterBackend  # noqa: E402
from tacit.clusters.work import ClusterParts, apply_work  # noqa: E402
from tests.clusters.discoveries import mixed, same_discovery  # noqa: E402


class Frames(list):
    """A table in partitions."""

    @property
    def columns(self):
        return list(self[0].columns)


class FrameParts(ClusterParts):
    def __init__(self, things):
        self.things = things

    def map(self, work):
        work = pickle.loads(pickle.dumps(work))
        return FrameParts([apply_work(work, thing, number) for number, thing in enumerate(self.things)])

    def sum(self, work, add):
        return reduce(add, self.map(work).things)


class FramesBackend(ClusterBackend):
    kind, table_type = "list of frames", Frames

    def columns(self, rows):
        return rows.columns

    def parts(self, rows, evidence, others):
        return FrameParts([[frame[[*evidence.names, *others]]] for frame in rows])

    def score(self, request, rows):
        scorer = request.announced(rows.columns)
        parts = [scorer.score(frame, number).to_pandas() for number, frame in enumerate(rows)]
        return pd.concat(parts, ignore_index=True)


frames = FramesBackend()
WHOLE = pd.DataFrame({"A": ["true", None, "false", "true"], "C": ["lo", "hi", "hi", None]})
ROWS = Frames([WHOLE[:3], WHOLE[3:]])


def test_scoring():
    tac = tacit.compile(tacit.examples.abc(), "B", evidence=["A", "C"])
    np.testing.assert_array_equal(frames.posterior(tac, ROWS).to_numpy(), tac.posterior(WHOLE))
    np.testing.assert_array_equal(frames.log_evidence(tac, ROWS)["log_evidence"], tac.log_evidence(WHOLE))
    best = tac.mpe(WHOLE)
    np.testing.assert_array_equal(frames.mpe(tac, ROWS)["log_probability"], best.log_probability)
    assert frames.mpe(tac, ROWS)["B"].tolist() == list(best.states["B"])
    drawn = frames.sample(tac, ROWS, seed=3)
    assert drawn.equals(frames.sample(tac, ROWS, seed=3))
    assert drawn["C"].tolist()[:3] == ["lo", "hi", "hi"]


def test_estimating():
    net = tacit.Network()
    net.add("A")
    net.add("C", ["A"], states=["lo", "hi"])
    how = {"tolerance": 0, "steps": 3, "progress": False}
    found, expected = frames.estimate(net, ROWS, **how), tacit.estimate(net, WHOLE, **how)
    np.testing.assert_allclose(found.network.table("C"), expected.network.table("C"), atol=1e-12)


def labelled(rows, seed=0):
    x = np.random.default_rng(seed).random(rows)
    return pd.DataFrame({"E": x, "Q": 0.2 + 0.5 * x})


def test_fitting_with_other_rows_or_a_share_for_validation():
    net = tacit.Network()
    net.add("E")
    net.add("Q", ["E"])
    tac, how = tacit.compile(net, "Q", ["E"]), {"optimizer": "lbfgs", "progress": False}
    frame, others = labelled(60), labelled(20, seed=1)
    expected = tacit.fit(tac, frame[["E"]], frame["Q"], validation=(others[["E"]], others["Q"]), restarts=1, **how)
    rows = Frames([frame[:40], frame[40:]])
    found = frames.fit(tac, rows, validation=Frames([others]), restarts=1, **how)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    # where the loss is flat, sums in another order end at weights that differ by the root of their rounding
    assert found.validation_loss == pytest.approx(expected.validation_loss, rel=1e-6)
    assert frames.fit(tac, rows, validation=0.25, restarts=4, **how).validation_loss < 1e-4


def cut(frame, *places):
    """A table in partitions, whose columns have types of their own."""
    ends = [0, *places, len(frame)]
    return Frames([frame[a:b].reset_index(drop=True).infer_objects() for a, b in itertools.pairwise(ends)])


@pytest.fixture(scope="module", params=itertools.product([None, "times"], [0.0, 0.1]), ids=str)
def discovered(request):
    """A table, how its network is searched for, and what one machine finds."""
    weights, gaps = request.param
    frame = mixed(600, gaps)
    if weights is None:
        frame = frame.drop(columns="times")
    how = {"weights": weights, "bootstrap": 2, "progress": False}
    with warnings.catch_warnings(action="ignore", category=tacit.DefaultBinsWarning):
        return frame, how, tacit.discover(frame, **how)


@pytest.mark.filterwarnings("ignore::tacit.DefaultBinsWarning")
@pytest.mark.parametrize("places", [(), (0, 150, 150, 151, 400), (599, 600)])
def test_discovering_is_that_of_one_machine(discovered, places):
    frame, how, expected = discovered
    same_discovery(frames.discover(cut(frame, *places), **how), expected)


def test_discovering_where_few_rows_are_equal():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{i}": rng.choice(list("abcd"), 6000) for i in range(8)})
    frame["y"] = frame["x0"].where(rng.random(6000) < 0.8, frame["x1"])
    how = {"bootstrap": 1, "progress": False}
    same_discovery(frames.discover(cut(frame, 50, 5500), **how), tacit.discover(frame, **how))


@pytest.mark.filterwarnings("ignore::tacit.DefaultBinsWarning")
def test_discovering_with_weights_that_have_fractions_and_with_options():
    frame = mixed(400).assign(times=np.random.default_rng(1).random(400))
    how = {"weights": "times", "bins": {"size": 3}, "forbid": [("kind", "size")], "progress": False}
    found, expected = frames.discover(cut(frame, 10, 200), **how), tacit.discover(frame, **how)
    assert found.score == pytest.approx(expected.score, rel=1e-12)
    assert found.network.edges == expected.network.edges


def test_rows_are_put_together_in_the_middle_without_a_change(monkeypatch):
    frame = mixed(600).drop(columns=["times", "size"])
    expected = tacit.discover(frame, progress=False)
    monkeypatch.setattr(coded_table, "MIN_MERGED_ROWS", 40)
    same_discovery(frames.discover(cut(frame, *range(50, 600, 50)), progress=False), expected)


def test_mistakes_in_what_is_discovered():
    frame = mixed(60).drop(columns="size")
    rows = cut(frame, 20, 40)
    with pytest.raises(TacitError, match=r"rows that are in memory can be given to tacit\.discover"):
        frames.discover(frame)
    with pytest.raises(TacitError, match="search is 'greedy'"):
        frames.discover(rows, search="greedy")
    with pytest.raises(TacitError, match="then weights are the name of one of their columns"):
        frames.discover(rows, weights=frame["times"])
    with pytest.raises(EvidenceError, match="no column 'time' of weights; did you mean 'times'"):
        frames.discover(rows, weights="time")
    with pytest.raises(EvidenceError, match="there are no rows"):
        frames.discover(Frames([frame[:0], frame[:0]]))
    with pytest.raises(EvidenceError, match="the table has two columns 'kind'"):
        frames.discover(Frames([pd.concat([frame, frame[["kind"]]], axis=1)]))
    rows[1] = rows[1].assign(times=-1.0)
    with pytest.raises(EvidenceError, match=r"partition 1: .*weight"):
        frames.discover(rows, weights="times")
    rows[2] = rows[2].assign(word=[["no"]] * 20)
    with pytest.raises(EvidenceError, match=r"partition 2: column 'word', row 0: .* is not a single value"):
        frames.discover(rows)


def test_what_is_no_table_or_no_query():
    tac = tacit.compile(tacit.examples.abc(), "B", evidence=["A", "C"])
    message = "the rows are of type DataFrame, expected a list of frames; rows that are in memory can be given to "
    with pytest.raises(TacitError, match=message + "the method of the compiled query"):
        frames.mpe(tac, WHOLE)
    for call in (frames.estimate, frames.fit):
        with pytest.raises(TacitError, match=message + r"tacit\.estimate and tacit\.fit"):
            call(tacit.examples.abc().learnable() if call == frames.estimate else tac, WHOLE)
    with pytest.raises(TacitError, match=message):
        frames.fit(tac, Frames([WHOLE.assign(B="true")]), validation=WHOLE)
    with pytest.raises(TacitError, match="tac is a Network, expected a compiled query"):
        frames.fit(tacit.examples.abc(), ROWS)
    with pytest.raises(EvidenceError, match="no column 'B' of labels; it has A, C"):
        frames.fit(tac, ROWS)


@pytest.mark.scale
@pytest.mark.parametrize("name", ["dask", "ray", "spark"])
def test_every_cluster_offers_the_same_functions(name):
    pytest.importorskip({"spark": "pyspark"}.get(name, f"{name}.data" if name == "ray" else "dask.dataframe"))
    module = pytest.importorskip(f"tacit.{name}")
    for function in module.__all__:
        own, shared = getattr(module, function), getattr(frames, function)
        assert inspect.getdoc(own)
        assert own.__name__ == function
        expected = dict(inspect.signature(shared).parameters)
        if name == "ray" and shared not in (frames.estimate, frames.fit, frames.discover):
            expected.pop("seed", None)
            expected |= {one: inspect.signature(own).parameters[one] for one in ("num_cpus", "num_gpus", "concurrency")}
        assert dict(inspect.signature(own).parameters) == expected

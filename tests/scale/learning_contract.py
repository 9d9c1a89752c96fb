"""What learning must do on every cluster engine: each of them runs these tests, by a small adapter."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest
from bench.networks import network

import tacit
from tacit.base.errors import EvidenceError, TacitError
from tacit.learn import session
from tests.clusters.discoveries import mixed, same_discovery
from tests.scale.scoring_cases import divided

QUIET = {"progress": False}


def drawn(name, count, holes=0.0, seed=0):
    """A network and rows drawn from it, some of whose values are missing."""
    net = network(name)
    rows = {name: column[0] for name, column in tacit.compile(net, None).sample({}, n=count, seed=seed).items()}
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in rows.items()})
    return net, frame.mask(rng.random(frame.shape) < holes)


def parts(frame, *sizes):
    """The frame in pieces of some sizes, and the rest of it."""
    ends = np.cumsum([0, *sizes])
    return [frame.iloc[a:b].reset_index(drop=True) for a, b in zip(ends, [*ends[1:], len(frame)], strict=True)]


def same(found, expected, tolerance=1e-12):
    """Two estimates that differ in rounding only."""
    np.testing.assert_allclose(found.history, expected.history, rtol=tolerance)
    np.testing.assert_allclose(found.log_likelihood, expected.log_likelihood, rtol=tolerance)
    assert (found.rows, found.parameters, found.converged) == (expected.rows, expected.parameters, expected.converged)
    for name in expected.network:
        for part, table in expected.network.cpt(name).parts().items():
            np.testing.assert_allclose(found.network.cpt(name).parts()[part], table, rtol=0, atol=tolerance)


def layer():
    """A testing network to be learned from soft evidence, and rows."""
    rng = np.random.default_rng(1)
    x, z = rng.random((2, 400))
    frame = pd.DataFrame({"E1": x, "E2": z, "Q": 0.2 + 0.5 * x * z, "w": rng.integers(1, 4, size=400)})
    return tacit.compile(tacit.examples.chain(2), "Q", ["E1", "E2"]), frame


class LearningContract:
    """All tests; a subclass has the fixture `engine`."""

    def test_complete_rows_are_counted_exactly(self, engine):
        net, frame = drawn("alarm", 2000)
        for prior in (0.0, 1.0):
            expected = tacit.estimate(net.learnable(), frame, prior=prior, **QUIET)
            found = engine.learning.estimate(
                net.learnable(), engine.table(parts(frame, 500, 600, 700)), prior=prior, **QUIET
            )
            for name in net:
                np.testing.assert_array_equal(found.network.table(name), expected.network.table(name))
            same(found, expected)

    def test_em_is_that_of_one_machine(self, engine):
        net, frame = drawn("alarm", 600, holes=0.2)
        how = {"steps": 4, "tolerance": 0, **QUIET}
        expected = tacit.estimate(net.learnable(), frame, **how)
        same(engine.learning.estimate(net.learnable(), engine.table(parts(frame, 150, 100, 250)), **how), expected)

    @pytest.mark.filterwarnings("ignore:columns that are missing. class")
    def test_starts_share_a_pass(self, engine):
        net = tacit.Network()
        net.add("class", states=3)
        for i in range(4):
            net.add(f"x{i}", ["class"], states=["a", "b", "c"])
        rng = np.random.default_rng(0)
        kind = rng.integers(3, size=300)
        noise = rng.integers(3, size=(4, 300))
        frame = pd.DataFrame(
            {f"x{i}": np.array(list("abc"))[np.where(rng.random(300) < 0.7, kind, noise[i])] for i in range(4)}
        )
        frame["times"] = rng.integers(0, 4, size=300).astype(float)
        how = {"restarts": 3, "steps": 6, "tolerance": 0, "prior": 0.5, **QUIET}
        expected = tacit.estimate(net, frame, weights="times", **how)
        same(engine.learning.estimate(net, engine.table(parts(frame, 70, 80)), weights="times", **how), expected)

    def test_a_testing_network_with_soft_evidence(self, engine):
        net = tacit.examples.abc().learnable()
        rng = np.random.default_rng(3)
        a = rng.random(200)
        c = rng.random(200)
        frame = pd.DataFrame({"A": a, "C.lo": c, "C.hi": 1 - c, "B": rng.choice(["true", "false"], 200)})
        how = {"steps": 3, "tolerance": 0, **QUIET}
        whole = {"A": a, "C": np.stack([c, 1 - c], axis=1), "B": frame["B"].to_numpy()}
        same(
            engine.learning.estimate(net, engine.table(parts(frame, 60, 80)), **how), tacit.estimate(net, whole, **how)
        )

    def test_awkward_partitions(self, engine):
        net = tacit.Network()
        net.add("code", states=[0, 1, 2])
        net.add("word", ["code"], states=["low", "mid", "high"])
        rng = np.random.default_rng(5)
        code, word = rng.integers(3, size=60), rng.choice(["low", "mid", "high"], 60)
        pieces = [
            {"code": code[:20], "word": word[:20]},
            {"code": code[:0], "word": word[:0]},
            {"code": code[20:21], "word": word[20:21]},
            {"code": np.where(np.arange(19) % 3 == 0, np.nan, code[21:40]), "word": np.full(19, None)},
            {"code": np.full(20, np.nan), "word": pd.Categorical(word[40:], categories=["mid", "low", "high"])},
        ]
        frames = [pd.DataFrame(piece) for piece in pieces]
        whole = {
            "code": [
                None if np.isnan(v) else int(v) for piece in pieces for v in np.asarray(piece["code"], dtype=float)
            ],
            "word": [v for piece in pieces for v in np.asarray(piece["word"], dtype=object)],
        }
        how = {"steps": 3, "tolerance": 0, **QUIET}
        same(engine.learning.estimate(net.learnable(), engine.table(frames), **how),
             tacit.estimate(net.learnable(), whole, **how))  # fmt: skip

    def test_a_bad_value_is_named_with_its_place(self, engine):
        net, frame = drawn("alarm", 160)
        frames = divided({name: frame[name] for name in frame}, [20] * 8)
        frames[3].loc[11, "HISTORY"] = "PERHAPS"
        start = time.monotonic()
        with pytest.raises(EvidenceError, match=r"partition 3: evidence on 'HISTORY', row 11: 'PERHAPS' is not"):
            engine.learning.estimate(net.learnable(), engine.table(frames), **QUIET)
        assert time.monotonic() - start < 30

    def test_an_impossible_row_is_named_with_its_place(self, engine):
        net = tacit.Network()
        net.add("A")
        net.add("B", ["A"], cpt=[[1.0, 0.0], [np.nan, np.nan]])
        net.add("C", ["B"])
        frames = [pd.DataFrame({"A": ["true"], "B": ["true"], "C": ["true"]}) for _ in range(3)]
        frames[2].loc[0, "B"] = "false"
        with pytest.raises(EvidenceError, match=r"partition 2: row 0: the evidence has probability 0"):
            engine.learning.estimate(net, engine.table(frames), **QUIET)
        for frame in frames:
            frame["C"] = pd.Series([None], dtype=object)
        with pytest.raises(EvidenceError, match=r"partition 2: row 0: the evidence has probability 0"):
            engine.learning.estimate(net, engine.table(frames), **QUIET)

    @pytest.mark.parametrize("optimizer", ["lbfgs", "lm"])
    def test_fit_is_that_of_one_machine(self, engine, optimizer):
        tac, frame = layer()
        how = {"optimizer": optimizer, "steps": 3, "restarts": 2, **QUIET}
        expected = tacit.fit(tac, frame[["E1", "E2"]], frame["Q"], weights=frame["w"], **how)
        found = engine.learning.fit(tac, engine.table(parts(frame, 100, 50, 0)), weights="w", **how)
        assert (found.optimizer, len(found.history)) == (optimizer, len(expected.history))
        np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
        np.testing.assert_allclose(found.hard_loss, expected.hard_loss, rtol=1e-12)
        for name in tac.network:
            for part, table in expected.network.cpt(name).parts().items():
                np.testing.assert_allclose(found.network.cpt(name).parts()[part], table, rtol=0, atol=1e-12)

    def test_fit_with_labels_prior_and_validation(self, engine):
        net, frame = drawn("asia", 400)
        net = net.with_cpts({"dysp": None, "bronc": None})
        evidence = [name for name in net if name not in ("bronc", "dysp")]
        tac = tacit.compile(net, "dysp", evidence)
        how = {"loss": "cross_entropy", "optimizer": "lbfgs", "steps": 3, "prior": 1.0, **QUIET}
        rest, others = frame.iloc[:300], frame.iloc[300:]
        expected = tacit.fit(
            tac, rest[evidence], rest["dysp"], validation=(others[evidence], others["dysp"]), restarts=1, **how
        )
        table = engine.table(parts(rest, 100, 120))
        found = engine.learning.fit(tac, table, validation=engine.table(parts(others, 50)), restarts=1, **how)
        np.testing.assert_allclose(found.loss, expected.loss, rtol=1e-12)
        np.testing.assert_allclose(found.validation_loss, expected.validation_loss, rtol=1e-12)
        held_out = engine.learning.fit(tac, table, label="dysp", validation=0.25, restarts=1, **how)
        assert held_out.validation_loss == pytest.approx(expected.validation_loss, rel=0.5)

    def test_what_is_not_offered_is_said(self, engine):
        tac, frame = layer()
        table = engine.table(parts(frame, 100))
        with pytest.raises(TacitError, match="'adam' needs all rows in one place"):
            engine.learning.fit(tac, table, optimizer="adam", **QUIET)
        with pytest.raises(TacitError, match="harden=True needs all rows in one place"):
            engine.learning.fit(tac, table, harden=True, **QUIET)
        with pytest.raises(EvidenceError, match="no column 'P' of labels"):
            engine.learning.fit(tac, table, label="P", **QUIET)
        with pytest.raises(TacitError, match="rows that are in memory"):
            engine.learning.fit(tac, frame, **QUIET)
        with pytest.raises(EvidenceError, match="no column 'times' of weights"):
            engine.learning.estimate(network("asia").learnable(), table, weights="times", **QUIET)

    def test_a_loss_of_ones_own(self, engine):
        tac, frame = layer()
        how = {"optimizer": "lbfgs", "steps": 2, "restarts": 1, **QUIET}
        own = engine.learning.fit(tac, engine.table(parts(frame, 100)), loss=_squared, **how)
        known = engine.learning.fit(tac, engine.table(parts(frame, 100)), loss="mse", **how)
        assert own.loss == pytest.approx(known.loss, rel=1e-9)

    def test_a_checkpoint_goes_on_to_the_same_result(self, engine, tmp_path):
        net, frame = drawn("asia", 200, holes=0.3)
        table, path = engine.table(parts(frame, 100)), tmp_path / "em.npz"
        how = {"tolerance": 0, **QUIET}
        engine.learning.estimate(net.learnable(), table, checkpoint=path, steps=2, **how)
        found = engine.learning.estimate(net.learnable(), table, checkpoint=path, steps=4, **how)
        same(found, engine.learning.estimate(net.learnable(), table, steps=4, **how), tolerance=1e-15)
        with pytest.raises(tacit.FormatError, match="other data"):
            engine.learning.estimate(net.learnable(), engine.table(parts(frame, 90)), checkpoint=path, steps=4, **how)

    @pytest.mark.filterwarnings("ignore::tacit.DefaultBinsWarning")
    @pytest.mark.parametrize(("weights", "gaps"), [(None, 0.1), ("times", 0.0), ("times", 0.1)])
    def test_discover_is_that_of_one_machine(self, engine, weights, gaps):
        frame = mixed(300, gaps).drop(columns=[] if weights else ["times"])
        truths = {"step": "boolean"}  # of truths with gaps that are Python's objects, Dask makes text
        frames = [piece.infer_objects().astype(truths) for piece in parts(frame, 80, 0, 1, 120)]
        how = {"weights": weights, "bootstrap": 1, **QUIET}
        same_discovery(engine.learning.discover(engine.table(frames), **how), tacit.discover(frame, **how))

    def test_discover_names_the_partition_and_what_is_missing(self, engine):
        frames = parts(mixed(40).drop(columns=["size"]), 10, 10)
        frames[2].loc[3, "times"] = -1.0
        with pytest.raises(EvidenceError, match=r"partition 2: .*weight"):
            engine.learning.discover(engine.table(frames), weights="times", **QUIET)
        with pytest.raises(EvidenceError, match="no column 'time' of weights; did you mean 'times'"):
            engine.learning.discover(engine.table(frames), weights="time", **QUIET)
        with pytest.raises(EvidenceError, match="there are no rows"):
            engine.learning.discover(engine.table([frames[0][:0], frames[0][:0]]), **QUIET)

    def test_a_worker_that_is_killed_changes_nothing(self, engine, tmp_path, monkeypatch):
        net, frame = drawn("alarm", 4000, holes=0.2)
        table, path = engine.table(parts(frame, 1000, 1000, 1000)), tmp_path / "em.npz"
        how = {"steps": 6, "tolerance": 0, **QUIET}
        expected = engine.learning.estimate(net.learnable(), table, **how)
        monkeypatch.setattr(session, "CHECKPOINT_EVERY", 0.0)
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(engine.learning.estimate, net.learnable(), table, checkpoint=path, **how)
            until = time.monotonic() + 60
            while not path.exists() and time.monotonic() < until:
                time.sleep(0.01)
            assert not running.done()
            killed = engine.kill_worker()
            found = running.result(timeout=120)
        assert killed
        same(found, expected, tolerance=1e-15)


def _squared(p, y):
    return ((p - y) ** 2).mean(axis=1), 2 * (p - y) / p.shape[1]

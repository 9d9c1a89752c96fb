"""`tacit.fit`: what is learned, what stays, and that it can be repeated, stopped and taken up again."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import tacit
from tacit import CPT, FormatError, Network, TestingCPT, examples
from tacit.learn import session
from tacit.learn.fitting.data import read_data
from tacit.learn.fitting.labelled import LabelledRows
from tacit.learn.fitting.optimizers import LBFGS
from tacit.learn.fitting.run import Stage
from tacit.learn.fitting.training import Training
from tacit.learn.options import FitOptions
from tacit.learn.partitions import Local
from tests.conformance_files import read

RNG = np.random.default_rng(0)
X = RNG.random((200, 2))
Y = 0.5 + 0.4 * np.sin(4 * X[:, 0]) * X[:, 1]


def chain():
    return tacit.compile(examples.chain(2), "Q", ["E1", "E2"])


def child():
    """A class with three findings, all to be learned but the structure."""
    net = Network("findings")
    net.add("C", states=["a", "b", "c"])
    for i in range(3):
        net.add(f"F{i}", ["C"], states=["no", "some", "much"])
    return net


def sample(rows, seed=0):
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 3, rows)
    findings = {f"F{i}": np.array(["no", "some", "much"])[(c + (rng.random(rows) < 0.3) * i) % 3] for i in range(3)}
    return findings, np.array(["a", "b", "c"])[c]


@pytest.mark.parametrize("optimizer", ["lm", "lbfgs", "adam"])
def test_every_optimizer_learns_a_surface(optimizer):
    found = tacit.fit(chain(), X, Y, optimizer=optimizer, seed=1, restarts=4, steps=300)
    assert found.optimizer == optimizer
    assert found.loss < 0.2 * np.var(Y)
    np.testing.assert_allclose(np.mean((found.tac.posterior(X)[:, 0] - Y) ** 2), found.loss, rtol=1e-9)
    if optimizer != "adam":  # which records the mean of its last steps
        assert found.loss == pytest.approx(min(r.loss for r in found.history), rel=1e-6)


@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_every_engine_learns_the_same(engine):
    tac = tacit.compile(examples.chain(2), "Q", ["E1", "E2"], engine=engine)
    found = tacit.fit(tac, X, Y, optimizer="lbfgs", restarts=1, steps=20)
    assert found.loss == pytest.approx(tacit.fit(chain(), X, Y, optimizer="lbfgs", restarts=1, steps=20).loss, rel=1e-6)


def test_auto_picks_by_size_and_loss():
    tac = chain()
    assert tacit.fit(tac, X, Y, steps=2, restarts=1).optimizer == "lm"
    assert tacit.fit(tac, X, Y, loss="cross_entropy", steps=2, restarts=1).optimizer == "lbfgs"
    many = np.random.default_rng(0).random((20_001, 2))
    rows = LabelledRows(Local(read_data(tac, many, many[:, 0], None)))
    training = Training(tac, rows, FitOptions(loss="cross_entropy"))
    assert training.chosen().optimizer == "adam"


def test_auto_picks_adam_for_large_tables():
    for tests, optimizer, rate in ((12, "lbfgs", 0.05), (14, "adam", 0.2)):
        tac = tacit.compile(examples.split_layer(tests), "Q", ["E1", "E2"])
        chosen = Training(tac, LabelledRows(Local(read_data(tac, X[:3], Y[:3], None))), FitOptions()).chosen()
        assert (chosen.optimizer, chosen.rate) == (optimizer, rate)


def test_classes_from_labels_with_hard_evidence():
    evidence, y = sample(400)
    for roles in ({"evidence": list(evidence)}, {"hard": list(evidence)}):
        found = tacit.fit(tacit.compile(child(), "C", **roles), evidence, y, loss="cross_entropy", steps=60, prior=1.0)
        states = np.array(["a", "b", "c"])[found.tac.posterior(evidence).argmax(axis=1)]
        assert (states == y).mean() > 0.95


def test_known_and_structural_numbers_are_the_same_bits_afterwards():
    net = Network()
    net.add("E1", cpt=[0.3, 0.7])
    net.add("E2")
    plus = CPT([[[1, 0], [0.5, 0.5]], [[0.2, 0.8], [0, 1]]], learn=True)
    net.add("T1", ["E1", "E2"], cpt=TestingCPT(plus.table, np.full((2, 2, 2), np.nan), np.full((2, 2), 0.25), gamma=16))
    net.add("Q", ["T1"], cpt=plus.table[0])
    net = net.with_cpts({"Q": CPT(plus.table[1], learn=True)})
    found = tacit.fit(tacit.compile(net, "Q", ["E1", "E2"]), X, Y, steps=30)
    after = found.network
    assert after.cpt("E1") == net.cpt("E1")
    np.testing.assert_array_equal(after.cpt("T1").plus, net.cpt("T1").plus)
    np.testing.assert_array_equal(after.cpt("T1").thresholds, net.cpt("T1").thresholds)
    assert after.cpt("Q").table[1].tolist() == [0, 1]
    assert after.cpt("Q").table[0, 0] != net.cpt("Q").table[0, 0]
    assert not np.isnan(after.cpt("T1").minus).any()


def test_thresholds_stay_in_the_unit_interval():
    thresholds = tacit.fit(chain(), X, (X[:, 0] > 0.99).astype(float), steps=50).network.cpt("T1").thresholds
    assert ((thresholds >= 0) & (thresholds <= 1)).all()


def test_the_same_seed_gives_the_same_numbers():
    first, again, other = (tacit.fit(chain(), X, Y, steps=20, seed=s) for s in (3, 3, 4))
    assert first.network == again.network
    assert first.network != other.network


def test_weights_of_rows():
    doubled = np.concatenate([X, X[:50]]), np.concatenate([Y, Y[:50]])
    counts = np.where(np.arange(200) < 50, 2.0, 1.0)
    one, other = tacit.fit(chain(), *doubled, steps=15), tacit.fit(chain(), X, Y, weights=counts, steps=15)
    assert one.loss == pytest.approx(other.loss, rel=1e-3)


@pytest.mark.parametrize("rows", [2048, 30_000])
def test_adam_goes_where_the_weights_pull(rows):
    """One row weighs as much as all others: the best constant lies halfway."""
    net = Network()
    net.add("Q")
    net.add("E", ["Q"], cpt=[[0.5, 0.5]] * 2)
    weights = np.where(np.arange(rows) == 0, rows - 1.0, 1.0)
    y = np.where(np.arange(rows) == 0, 0.98, 0.02)
    evidence = {"E": np.full(rows, 0.5)}
    found = tacit.fit(tacit.compile(net, "Q", ["E"]), evidence, y, optimizer="adam", weights=weights, steps=300)
    assert found.network.cpt("Q").table[0] == pytest.approx(0.5, abs=1e-3)
    assert found.loss == pytest.approx(0.48**2, rel=1e-4)
    # losses on the way are those of all rows, too
    assert found.history[-1].loss == pytest.approx(0.48**2, rel=1e-2)


def test_a_loss_of_ones_own():
    def squared(p, y):
        return ((p - y) ** 2).mean(axis=1), 2 * (p - y) / p.shape[1]

    own, built_in = (
        tacit.fit(chain(), X, Y, loss=f, optimizer="lbfgs", steps=30, restarts=1) for f in (squared, "mse")
    )
    assert own.loss == pytest.approx(built_in.loss, rel=1e-6)
    with pytest.raises(tacit.TacitError, match="loss returned shapes"):
        tacit.fit(chain(), X, Y, loss=lambda p, y: (p, y), steps=2)


def test_a_query_of_three_states_with_probabilities_of_the_first():
    evidence, y = sample(100)
    targets = np.where(y == "a", 0.9, 0.2)
    for loss in ("mse", "cross_entropy"):
        tac = tacit.compile(child(), "C", list(evidence))
        found = tacit.fit(tac, evidence, targets, loss=loss, optimizer="lbfgs", steps=80)
        p = found.tac.posterior(evidence)[:, 0]
        assert abs(p[y == "a"].mean() - 0.9) < 0.1
        if loss == "mse":
            assert found.loss == pytest.approx(np.mean((p - targets) ** 2))


def test_validation_keeps_the_best_and_stops_early():
    rng = np.random.default_rng(0)
    noisy = np.clip(Y + rng.normal(scale=0.2, size=len(Y)), 0, 1)
    tac = tacit.compile(examples.layer(6), "Q", ["E1", "E2"])
    found = tacit.fit(tac, X, noisy, validation=0.4, optimizer="lbfgs", steps=2000, restarts=1, patience=2)
    assert found.validation_loss == pytest.approx(min(r.validation for r in found.history))
    assert found.history[-1].step < 2000
    other = tacit.fit(tac, X[:100], noisy[:100], validation=(X[100:], noisy[100:]), steps=20)
    assert other.validation_loss == pytest.approx(np.mean((other.tac.posterior(X[100:])[:, 0] - noisy[100:]) ** 2))


def test_slopes_are_learned():
    found = tacit.fit(chain(), X, Y, gamma="learn", steps=60)
    slopes = [found.network.cpt(f"T{i}").gamma for i in (1, 2)]
    assert all(slope > 0 and slope != 16.0 for slope in slopes)
    assert tacit.fit(chain(), X, Y, gamma=5.0, steps=5).network.cpt("T1").gamma == 5.0


def test_hardening_makes_the_hard_network_good():
    x = np.linspace(0, 1, 100)
    net = Network()
    net.add("E")
    net.add("T", ["E"], testing=True, gamma=16.0)
    net.add("Q", ["T"])
    tac = tacit.compile(net, "Q", ["E"])
    y = 0.5 + 0.4 * np.sin(3 * x)
    soft, hard = tacit.fit(tac, {"E": x}, y), tacit.fit(tac, {"E": x}, y, harden=True)
    assert soft.hard_loss > 2 * soft.loss
    assert hard.hard_loss < 0.7 * soft.hard_loss
    adam = tacit.fit(tac, {"E": x}, y, harden=True, optimizer="adam", steps=400)
    assert {record.stage for record in adam.history} == {0, 1}
    assert hard.loss == hard.hard_loss
    assert hard.network.cpt("T").gamma is None


def test_priors_pull_towards_uniform():
    evidence, y = sample(30)
    tables = [
        tacit.fit(tacit.compile(child(), "C", list(evidence)), evidence, y, "cross_entropy", steps=50, prior=prior)
        .network.cpt("F0").table
        for prior in (0.01, 1000.0)
    ]  # fmt: skip
    assert np.abs(tables[1] - 1 / 3).max() < 0.1 < np.abs(tables[0] - 1 / 3).max()


def test_priors_pull_towards_given_tables():
    evidence, y = sample(60)
    tac = tacit.compile(child(), "C", list(evidence))
    how = {"loss": "cross_entropy", "steps": 60, "restarts": 1, "progress": False}
    expert = tacit.fit(tac, evidence, y, prior=5.0, **how).network
    strong = tacit.fit(tac, *sample(60, seed=1), prior=(expert, 1e6), **how).network
    for name in expert.variables:
        np.testing.assert_allclose(strong.table(name), expert.table(name), atol=1e-3)
    with pytest.raises(tacit.TacitError, match="prior: that network has no node 'C' with the same states"):
        tacit.fit(tac, evidence, y, prior=(examples.chain(2), 1.0), **how)
    with pytest.raises(tacit.TacitError, match="prior: node 'C' of that network has unset numbers"):
        tacit.fit(tac, evidence, y, prior=(child(), 1.0), **how)
    with pytest.raises(tacit.TacitError, match="prior is -1"):
        tacit.fit(tac, evidence, y, prior=(expert, -1), **how)


def test_tied_tables_stay_equal():
    net = Network()
    net.add("E1")
    net.add("H1", ["E1"])
    for t in (2, 3):
        net.add(f"H{t}", [f"H{t - 1}"], testing=True, gamma=16.0, tie="transition")
    found = tacit.fit(tacit.compile(net, "H3", ["E1"]), {"E1": X[:, 0]}, Y, steps=20, restarts=2)
    assert found.network.cpt("H2") == found.network.cpt("H3")


def test_learn_true_is_where_training_starts():
    trained = tacit.fit(chain(), X, Y, steps=40).network
    cpts = {}
    for name in trained.variables:
        cpt = trained.cpt(name)
        if isinstance(cpt, CPT):
            cpts[name] = CPT(cpt.table, learn=True)
        else:
            cpts[name] = cpt.with_parts({}, learn=True)
    again = tacit.compile(trained.with_cpts(cpts), "Q", ["E1", "E2"])
    before = np.mean((tacit.compile(trained, "Q", ["E1", "E2"]).posterior(X)[:, 0] - Y) ** 2)
    assert tacit.fit(again, X, Y, steps=1).history[0].loss <= before * (1 + 1e-9)


def test_callbacks_see_every_round_and_can_stop():
    seen = []
    tacit.fit(chain(), X, Y, steps=100, restarts=4, callbacks=[lambda run: seen.append(len(run.alive))])
    assert seen[0] > seen[-1] == 1

    seen.clear()
    tacit.fit(chain(), X, Y, optimizer="adam", callbacks=[lambda run: seen.append(1) or len(seen) == 3])
    assert len(seen) == 3


def test_an_interrupted_training_gives_the_best_so_far():
    def stop(run):
        raise KeyboardInterrupt

    with pytest.warns(UserWarning, match="training was interrupted"):
        found = tacit.fit(chain(), X, Y, callbacks=[stop])
    assert found.interrupted
    assert found.loss < 1


KINDS = {
    "lm": {"steps": 120, "restarts": 4},
    "lbfgs": {"steps": 600, "restarts": 2},
    "adam": {"steps": 600, "batch": 64},
}


def long_training(optimizer, path, pause):
    return tacit.fit(
        tacit.compile(examples.chain(3), "Q", ["E1", "E2"]), X, Y, optimizer=optimizer, checkpoint=path, seed=5,
        harden=optimizer == "lm", validation=0.2, patience=100, callbacks=[lambda run: time.sleep(pause)],
        **KINDS[optimizer],
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["lm", "lbfgs", "adam"])
def test_killed_and_resumed_ends_the_same(tmp_path, monkeypatch, optimizer):
    monkeypatch.setattr(session, "CHECKPOINT_EVERY", 0.0)
    straight = long_training(optimizer, tmp_path / "straight", 0.0)
    script = (
        "import sys\nfrom tacit.learn import session\nsession.CHECKPOINT_EVERY = 0.0\n"
        "from tests.learn.test_fit import long_training\nlong_training(*sys.argv[1:], 0.5)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, optimizer, str(tmp_path / "killed")])
    deadline = time.monotonic() + 60
    while not (tmp_path / "killed").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    resumed = long_training(optimizer, tmp_path / "killed", 0.0)
    assert resumed.network == straight.network
    assert resumed.history == straight.history


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    path = tmp_path / "run"
    first = tacit.fit(chain(), X, Y, steps=5, checkpoint=path)
    assert tacit.fit(chain(), X, Y, steps=5, checkpoint=path).network == first.network
    with pytest.raises(FormatError, match="another network, other data or other settings"):
        tacit.fit(chain(), X, Y, steps=6, checkpoint=path)
    path.write_bytes(b"something else")
    with pytest.raises(FormatError, match="is not a checkpoint"):
        tacit.fit(chain(), X, Y, steps=5, checkpoint=path)


def power(n):
    """A loss that is told from others by a closure cell only."""
    return lambda p, y: (((p - y) ** n).mean(axis=1), n * (p - y) ** (n - 1) / p.shape[1])


def test_a_checkpoint_goes_on_with_the_same_loss_only(tmp_path):
    path = tmp_path / "run"
    first = tacit.fit(chain(), X, Y, loss=power(2), steps=5, restarts=1, checkpoint=path)
    assert tacit.fit(chain(), X, Y, loss=power(2), steps=5, restarts=1, checkpoint=path).network == first.network
    with pytest.raises(FormatError, match="other settings"):
        tacit.fit(chain(), X, Y, loss=power(6), steps=5, restarts=1, checkpoint=path)
    generator = np.random.default_rng(0)
    noisy = lambda p, y: ((p - y).sum(axis=1) * generator.random(), 1 + 0 * p)  # noqa: E731
    with pytest.raises(tacit.TacitError, match="loss gives other numbers each time"):
        tacit.fit(chain(), X, Y, loss=noisy, steps=5, checkpoint=tmp_path / "other")


ALTERATIONS = {
    "a missing name": lambda head, arrays: head.pop("run"),
    "a stage that is none": lambda head, arrays: head["run"].update(stage=7),
    "a restart that is none": lambda head, arrays: head["run"].update(alive=[99], stage=0, finished=False),
    "text for a number": lambda head, arrays: head["states"][0].update(steps="many"),
    "too few weights": lambda head, arrays: arrays.update(best=arrays["best"][:1]),
    "weights of another kind": lambda head, arrays: arrays.update(weights0=arrays["weights0"].astype(str)),
    "a missing array": lambda head, arrays: arrays.pop("weights0"),
    "a changed number": lambda head, arrays: arrays["best"].fill(0.5),
}


@pytest.mark.parametrize("alteration", ALTERATIONS)
def test_an_altered_checkpoint_is_refused(tmp_path, alteration):
    path = tmp_path / "run.npz"
    stop = [lambda run: run.steps >= 2]
    tacit.fit(chain(), X, Y, optimizer="lm", steps=120, restarts=2, checkpoint=path, callbacks=stop)
    with np.load(path) as stored:
        arrays = dict(stored)
    head = json.loads(str(arrays.pop("head")))
    ALTERATIONS[alteration](head, arrays)
    np.savez(path, head=np.array(json.dumps(head)), **arrays)
    with pytest.raises(FormatError, match="is not a checkpoint"):
        tacit.fit(chain(), X, Y, optimizer="lm", steps=120, restarts=2, checkpoint=path)


@pytest.mark.parametrize("case", read("grads.json")["cases"], ids=lambda case: case["id"])
def test_gradients_by_weights_against_the_conformance_file(case):
    from tests.conformance_files import network

    net = network(case["network"])
    learned = {}
    for name in net.variables:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT):
            learned[name] = CPT(cpt.table, learn=True)
        else:
            learned[name] = cpt.with_parts({}, learn=True)
    net = net.with_cpts(learned)
    names = sorted({name for row in case["data"] for name in row["evidence"]})
    tac = tacit.compile(net, case["query"], names)
    evidence = {name: np.array([row["evidence"][name] for row in case["data"]]) for name in names}
    y = np.array([row["label"] for row in case["data"]])
    problem = Training(tac, LabelledRows(Local(read_data(tac, evidence, y, None))), FitOptions())
    objective, _ = problem.objectives(Stage("own", 1, 1, LBFGS()))
    weights = problem.parameters.start(np.random.default_rng(0))
    loss, gradient = objective.value_and_gradient(weights)
    assert loss == pytest.approx(case["loss"], abs=1e-12)
    # rows of two have one weight, the difference of their logits; a threshold's weight is its log-odds
    expected = []
    for name in net.variables:
        of, cpt = case["grad"][name], net.cpt(name)
        for part in ("z", "z_plus", "z_minus"):
            expected += [d for row in of.get(part, []) for d in (row[:1] if len(row) == 2 else row)]
        if "thresholds" in of:
            expected += [d * t * (1 - t) for d, t in zip(of["thresholds"], cpt.thresholds.ravel(), strict=True)]
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-8)


def hard_step():
    """E -> T -> Q with hard tests, of which only the thresholds are open."""
    net = Network()
    net.add("E", cpt=[0.5, 0.5])
    nan = np.nan
    net.add("T", ["E"], cpt=TestingCPT([[0.9, 0.1]] * 2, [[0.1, 0.9]] * 2, [nan, nan], test=[">=", "<="]))
    net.add("Q", ["T"], cpt=[[1, 0], [0, 1]])
    return tacit.compile(net, "Q", ["E"])


STEP = np.linspace(0, 1, 50)


def test_thresholds_of_hard_tests_are_searched_for_and_not_descended():
    y = np.where(STEP >= 0.6, 0.9, 0.1)
    stuck = tacit.fit(hard_step(), {"E": STEP}, y, steps=5, restarts=1)  # nothing has a gradient
    found = tacit.fit(hard_step(), {"E": STEP}, y, harden=True, steps=40)
    assert found.loss < 1e-3 < stuck.loss
    assert np.abs(found.network.cpt("T").thresholds - [0.6, 0.4]).max() < 0.03


def test_the_seed_reaches_the_search_for_thresholds():
    y = 0.5 + 0.4 * np.sin(3 * STEP)
    net = hard_step().network
    test = net.cpt("T")
    net = net.with_cpts({"T": TestingCPT(test.plus, test.minus, [0.5, 0.5], test.test, learn=True)})
    tac = tacit.compile(net, "Q", ["E"])  # everything has a start: only the search is random
    found = [tacit.fit(tac, {"E": STEP}, y, harden=True, steps=4, seed=seed).network for seed in (1, 1, 2)]
    assert found[0] == found[1] != found[2]


def test_rows_with_labels_that_known_zeros_rule_out_change_nothing():
    net = Network()
    net.add("C", cpt=[np.nan, np.nan])
    net.add("Q", ["C"], ["a", "b", "c"], [[np.nan, np.nan, 0.0]] * 2)
    net.add("F", ["C"])
    tac = tacit.compile(net, "Q", ["F"])
    labels = np.array(["a", "b", "a", "a"] * 10)
    evidence = np.tile([0.9, 0.2, 0.8, 0.4], 10)
    some = tacit.fit(tac, {"F": evidence}, labels, "cross_entropy", "lbfgs", steps=30, restarts=1)
    ruled_out = np.concatenate([labels, ["c"] * 40])
    more = tacit.fit(tac, {"F": np.tile(evidence, 2)}, ruled_out, "cross_entropy", "lbfgs", steps=30, restarts=1)
    assert more.loss == pytest.approx((some.loss + 100 * np.log(10) + 0.5) / 2, rel=1e-4)
    np.testing.assert_allclose(more.tac.posterior({"F": evidence}), some.tac.posterior({"F": evidence}), atol=0.01)


def test_learned_slopes_are_hardened_too():
    found = tacit.fit(chain(), X, Y, gamma="learn", harden=True, steps=40, restarts=2)
    assert found.network.cpt("T1").gamma is None
    assert found.loss == pytest.approx(min(r.loss for r in found.history if r.stage == 1), rel=1e-6)


def test_a_training_that_is_stopped_has_the_slopes_it_was_trained_with():
    found = tacit.fit(
        chain(), X, Y, harden=True, steps=40, restarts=2, callbacks=[lambda run: np.bool_(run.stage == 1)]
    )
    assert found.network.cpt("T1").gamma == 16.0
    assert found.loss == pytest.approx(min(r.loss for r in found.history), rel=1e-6)


def test_rows_of_weight_zero_do_not_count():
    weights = np.where(np.arange(200) < 40, 1.0, 0.0)
    one = tacit.fit(chain(), X, Y, weights=weights, steps=10, validation=0.2)
    other = tacit.fit(chain(), X[:40], Y[:40], steps=10, validation=0.2)
    assert one.network == other.network


@pytest.mark.parametrize("steps", [1, 7, 30])
def test_no_more_steps_than_asked_for(steps):
    assert max(r.step for r in tacit.fit(chain(), X, Y, steps=steps).history) <= steps


def test_checkpoints_tell_apart_what_differs(tmp_path):
    path = tmp_path / "run"
    tacit.fit(chain(), {"E1": X[:, 0]}, Y, steps=5, checkpoint=path, gamma="learn")
    for evidence, gamma in (({"E2": X[:, 0]}, "learn"), ({"E1": X[:, 0]}, None)):
        with pytest.raises(FormatError, match="another network"):
            tacit.fit(chain(), evidence, Y, steps=5, checkpoint=path, gamma=gamma)

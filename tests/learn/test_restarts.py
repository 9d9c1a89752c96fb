"""Restarts of EM side by side: the same to the bit as one after another, and by all engines to rounding."""

import numpy as np
import pytest

import tacit
from tacit import Gaussian, NoisyOr, TestingCPT
from tacit.learn.estimating import counting, sources
from tacit.learn.estimating.counting import ExpectationStep
from tacit.learn.estimating.em import EM
from tacit.learn.estimating.estimation import Estimation
from tacit.learn.estimating.sources import row_batches
from tacit.learn.options import EstimateOptions
from tacit.learn.partitions import Local
from tests.helpers import close

RESTARTS, STEPS = 3, 12
HOW = {"steps": STEPS, "tolerance": 0, "progress": False}


def classes(*features, **how):
    """A hidden class with some features, each a name and its CPT."""
    net = tacit.Network()
    net.add("class", states=3)
    for name, cpt in features:
        net.add(name, ["class"], None if isinstance(cpt, Gaussian) else 2, cpt, **how)
    return net


def drawn(*names, rows=300, holes=0.0):
    rng = np.random.default_rng(1)
    kind, gone = rng.integers(3, size=rows), rng.random((len(names), rows)) < holes
    share = rng.random((len(names), 3))[:, kind]
    return {
        n: np.where(g, None, (rng.random(rows) < p).astype(int)) for n, g, p in zip(names, gone, share, strict=True)
    }


def hidden_class():
    return classes(*((f"x{i}", None) for i in range(5))), drawn(*(f"x{i}" for i in range(5)))


def holes_below_what_is_not_observed():
    """Something is computed of tables before evidence comes in."""
    net, rows = hidden_class()
    net.add("y", ["x0", "x1"], 2)
    net.add("z", ["y"], 2)
    return net, rows | drawn("x0", "x3", "z", holes=0.3)


def ties():
    tied = tacit.CPT(np.full((3, 2), np.nan), tie="alike")
    return classes(("x", tied), ("y", tied), ("z", None)), drawn("x", "y", "z")


def a_testing_node(gamma=None):
    net = tacit.Network()
    net.add("class", states=2)
    net.add("x", ["class"], 2)
    unset = np.full((2, 2), np.nan)
    net.add("T", ["class"], 2, TestingCPT(plus=unset, minus=unset, thresholds=[0.55, 0.45], gamma=gamma))
    net.add("y", ["T"], 2)
    return net, drawn("x", "y", rows=60)


def a_sigmoid():
    """Of numbers that no evidence reaches: what it selects is fixed, and passes no derivatives on."""
    return a_testing_node(gamma=8.0)


def noisy_or():
    net = classes(("x", None), ("y", None))
    net.add("effect", ["x", "y"], 2, NoisyOr([[0.0, 0.4], [0.0, 0.7]], leak=0.1, learn=True))
    return net, drawn("x", "y", "effect", holes=0.2)


def gaussian_leaves():
    rng = np.random.default_rng(2)
    x = rng.normal(rng.choice([-2.0, 0.0, 3.0], 300), 0.5)
    return classes(("x", Gaussian()), ("y", None), ("z", Gaussian([0, 1, 2], 1))), {"x": x, "z": x + 1} | drawn("y")


def gaussian_leaves_of_what_is_observed():
    net, rows = gaussian_leaves()
    net.add("s", ["y"], 2)
    net.add("v", ["s"], cpt=Gaussian())
    return net, rows | drawn("s") | {"v": rows["x"] ** 2}


def rare_states():
    """Products of many small numbers, which underflow: these rows are computed again."""
    names = [f"x{i}" for i in range(40)]
    rare = tacit.CPT([[1e-20, 1 - 1e-20]] * 3)
    rows = dict.fromkeys(names, [0] * 20 + [1] * 20) | drawn("y", rows=40)
    return classes(*((name, rare) for name in names), ("y", None)), rows


def products_that_lose_digits():
    """They are too small for all digits of a float, and yet not 0."""
    tiny = np.array([1.1e-157, 2.3e-157, 3.7e-157])
    rare = tacit.CPT(np.stack([tiny, 1 - tiny], axis=1))
    return classes(("x", rare), ("y", rare), ("z", None)), {"x": [0] * 40, "y": [0] * 40} | drawn("z", rows=40)


CASES = [
    hidden_class,
    holes_below_what_is_not_observed,
    ties,
    a_testing_node,
    a_sigmoid,
    noisy_or,
    gaussian_leaves,
    gaussian_leaves_of_what_is_observed,
    rare_states,
    products_that_lose_digits,
]


def em_of(net, rows):
    """EM over some rows, as `tacit.estimate` sets it up."""
    options = EstimateOptions(restarts=RESTARTS, steps=STEPS, tolerance=0, progress=False)
    estimation = Estimation(net, options)
    expectation = ExpectationStep(
        estimation.first_pass.structure, Local(estimation.first_pass.scan(row_batches(net, rows), []))
    )
    totals = expectation.totals
    return EM(estimation.estimable.looked(totals.densities, totals.sample), expectation, options)


def finished(em, runs):
    em.run(runs, lambda: None)
    return runs


@pytest.mark.parametrize("case", CASES)
def test_restarts_are_those_of_one_after_another(case):
    net, rows = case()
    em = em_of(net, rows)
    together, fresh = finished(em, em.begin()), em.begin()
    assert len({run.history[0] for run in together}) == RESTARTS
    for run, start in zip(together, fresh, strict=True):
        close(run.log_likelihood, em.estimable.filled(run.numbers).log_likelihood(rows).sum(), 1e-8)
        (alone,) = finished(em, [start])
        assert run.history == alone.history
        assert np.array_equal(run.numbers, alone.numbers)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("engine", ["numpy", "tape"])
def test_restarts_by_engines_that_go_through_them_one_by_one(case, engine, monkeypatch):
    em = em_of(*case())
    at_once = finished(em, em.begin())
    monkeypatch.setattr(counting, "engine_for_many_passes", lambda *_: engine)
    em = em_of(*case())
    for run, other in zip(at_once, finished(em, em.begin()), strict=True):
        np.testing.assert_allclose(run.history, other.history, 1e-12)
        close(run.numbers, other.numbers)


def test_a_restart_that_ends_leaves_the_others_as_they_are():
    """One that cannot get better, and is as good as the best."""
    net, rows = hidden_class()
    found = tacit.estimate(net, rows, restarts=RESTARTS, progress=False)
    em = em_of(net, rows)
    alone = [tacit.estimate(em.estimable.filled(run.numbers).learnable(), rows, progress=False) for run in em.begin()]
    assert len({len(own.history) for own in alone}) > 1
    best = max(alone, key=lambda own: own.log_likelihood)
    assert found.history == best.history
    for name in net:
        assert np.array_equal(found.network.table(name), best.network.table(name))


@pytest.mark.parametrize("most", [10**6, 250, 1])
def test_rows_that_are_equal_count_once(most, monkeypatch):
    """Also those of a stream, which stay in a file where too many are different."""
    net, rows = holes_below_what_is_not_observed()
    how = HOW | {"restarts": RESTARTS, "weights": np.arange(300) % 4}
    whole = tacit.estimate(net, rows, **how)
    batches = [{name: column[start : start + 100] for name, column in rows.items()} for start in range(0, 300, 100)]
    monkeypatch.setattr(counting, "MAX_KEPT_ROWS", most)
    monkeypatch.setattr(sources, "MIN_BATCH_ROWS", 100)
    streamed = tacit.estimate(net, iter(batches), **how)
    monkeypatch.setattr(counting, "merged", lambda batch: batch)
    apart = tacit.estimate(net, rows, **how)
    for other in (streamed, apart):
        np.testing.assert_allclose(other.history, whole.history, 1e-12)
        for name in net:
            close(other.network.table(name), whole.network.table(name))


def test_tables_below_what_is_always_observed_are_counted():
    """The rest of the network is all that EM goes through."""
    net, rows = hidden_class()
    net.add("y", ["x0", "x1"], 2)
    net.add("z", ["y"], 2)
    rows |= drawn("y", "z")
    em = em_of(net, rows)
    finished(em, em.begin())
    assert {node for node, _ in em.expectation._query.get().program.parameters} == {
        "class",
        *(f"x{i}" for i in range(5)),
    }
    found = tacit.estimate(net, rows, **HOW)
    close(found.log_likelihood, found.network.log_likelihood(rows).sum(), 1e-9)
    alone = tacit.estimate(net, {name: rows[name] for name in ("x0", "x1", "y", "z")}, **HOW).network
    for name in "yz":
        close(found.network.table(name), alone.table(name))


@pytest.mark.parametrize("forbidden", ["x0", "z"])
def test_the_first_impossible_row_is_named_whatever_finds_it(forbidden):
    net, rows = hidden_class()
    net.add("z", ["x0"], 2)
    net = net.with_cpts({forbidden: tacit.CPT([[0.0, 1.0]] * (3 if forbidden == "x0" else 2))})
    rows |= {"z": np.ones(300, dtype=int), "x0": np.ones(300, dtype=int)}
    wrong = [120, 130, 250]  # the first and the last are equal, and come after the other when rows are sorted
    for name, column in rows.items():
        column[wrong] = [1, 0, 1] if name == "x1" else 0
    with pytest.raises(tacit.EvidenceError, match=r"row 120\b"):
        tacit.estimate(net, rows, **HOW)

"""No underflow passes unnoticed: rows whose numbers leave the range of floats are computed again."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tacit
from tacit.engines.arrays.numpy_engine import NumpyEngine, WideEngine
from tacit.engines.tape import tape_kernels as kernels
from tacit.engines.tape import underflow_flag as flags
from tacit.engines.tape.instructions import INDEX, OUTPUT, TABLE
from tacit.engines.tape.tape_engine import TapeEngine
from tests import exact
from tests.fuzz import extreme
from tests.helpers import ENGINES, ENGINES_OF_MANY

FLOATS = ("float64", "float32")


def sensors(count: int, error: float) -> tuple[tacit.Network, list[str]]:
    """A cause and sensors of it that are wrong with some probability."""
    net, names = tacit.Network(), [f"E{i}" for i in range(count)]
    net.add("Q", cpt=[0.5, 0.5])
    for name in names:
        net.add(name, ["Q"], cpt=[[1 - error, error], [error, 1 - error]])
    return net, names


def votes(names: list[str], true: int) -> dict[str, list[str]]:
    return {name: ["true" if i < true else "false"] for i, name in enumerate(names)}


# (sensors, their error, how many say true): two more say false
CONTRADICTIONS = [(50, 0.01, 24), (122, 1e-6, 60)]
MANY_CONTRADICTIONS = [(74, 0.05, 36), (102, 0.1, 50), (482, 0.01, 240), (602, 1e-3, 300)]
CONTRADICTIONS += [pytest.param(*many, marks=pytest.mark.slow) for many in MANY_CONTRADICTIONS]


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("role", ["evidence", "hard"])
@pytest.mark.parametrize(("count", "error", "true"), CONTRADICTIONS)
def test_blocks_of_findings_that_contradict_each_other(count, error, true, role, dtype, engine):
    net, names = sensors(count, error)
    tac = tacit.compile(net, "Q", **{role: names}, engine=engine, dtype=dtype, effort="low")
    row = votes(names, true)
    odds = (error / (1 - error)) ** 2
    tolerance = 1e-9 if dtype == "float64" else 1e-5
    np.testing.assert_allclose(tac.posterior(row), [[odds / (1 + odds), 1 / (1 + odds)]], rtol=tolerance)
    log_evidence = true * math.log(error * (1 - error)) + math.log(0.5 * (error**2 + (1 - error) ** 2))
    np.testing.assert_allclose(tac.log_evidence(row), log_evidence, rtol=1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("role", ["evidence", "hard"])
@pytest.mark.parametrize(("count", "small"), [(2, 1e-200), (8, 1e-45), (4, 1e-100), (10, 1e-40), (3, 1e-300)])
def test_findings_that_are_very_improbable(count, small, role, engine):
    net, names = tacit.Network(), [f"E{i}" for i in range(count)]
    net.add("Q", cpt=[0.5, 0.5])
    for name in names:
        net.add(name, ["Q"], cpt=[[small, 1 - small], [2 * small, 1 - 2 * small]])
    tac = tacit.compile(net, "Q", **{role: names}, engine=engine)
    row = dict.fromkeys(names, "true")
    np.testing.assert_allclose(tac.posterior(row), [[1 / (1 + 2**count), 2**count / (1 + 2**count)]], rtol=1e-12)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_only_the_rows_concerned_are_computed_again(engine, monkeypatch):
    net, names = sensors(122, 1e-6)
    tac = tacit.compile(net, "Q", names, engine=engine, effort="low")
    counted: list[int] = []
    run = WideEngine.attempt
    monkeypatch.setattr(
        WideEngine, "attempt", lambda self, c, rows, *a: (counted.append(rows), run(self, c, rows, *a))[1]
    )
    few = {name: np.array(["true"] * 300, dtype=object) for name in names[:3]}
    tac.posterior(few)
    assert counted == []
    mixed = {name: np.array([None] * 300, dtype=object) for name in names}
    for i, name in enumerate(names):
        mixed[name][100] = "true" if i < 60 else "false"
    found = tac.posterior(mixed)
    np.testing.assert_allclose(found[100], [1e-12, 1], rtol=1e-5)
    assert sum(counted) <= 8  # the rows of the narrowest tile at most


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_impossible_evidence_is_told_from_improbable_evidence(engine, dtype):
    net, names = sensors(122, 1e-6)
    net.add("never", cpt=[1.0, 0.0])
    tac = tacit.compile(net, "Q", [*names, "never"], engine=engine, dtype=dtype, effort="low")
    row = {name: values * 2 for name, values in votes(names, 60).items()}
    with pytest.warns(tacit.ImpossibleEvidenceWarning, match="1 of 2 rows"):
        posterior = tac.posterior({**row, "never": ["true", "false"]})
    assert np.isnan(posterior[1]).all()
    np.testing.assert_allclose(posterior[0], [1e-12, 1], rtol=1e-5)
    assert np.isneginf(tac.log_evidence({**row, "never": ["true", "false"]})).tolist() == [False, True]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_marginals_of_rows_that_are_computed_again(engine):
    net, names = sensors(122, 1e-6)
    net.add("Z", ["Q"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    marginals = tacit.compile(net, "Q", names, engine=engine, effort="low").marginals(votes(names, 60))
    odds = (1e-6 / (1 - 1e-6)) ** 2
    np.testing.assert_allclose(marginals["Q"], [[odds / (1 + odds), 1 / (1 + odds)]], rtol=1e-9)
    np.testing.assert_allclose(marginals["Z"], [[0.2, 0.8]], rtol=1e-9)
    np.testing.assert_allclose(marginals["E0"], [[1.0, 0.0]], rtol=1e-12)
    single = tacit.compile(net, "Q", names, engine=engine, dtype="float32", effort="low")
    for name, found in single.marginals({**votes(names, 60), "E0": [[1.0, 1e-90]]}).items():
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_derivatives_of_rows_that_are_computed_again(engine):
    """Of the log-odds of Q by its prior, and by a likelihood that speaks for it."""
    net, names = sensors(122, 1e-6)
    tac = tacit.compile(net, "Q", ["Q", *names], engine=engine, effort="low")
    known = tac.read({**votes(names, 60), "Q": [[0.5, 0.5]]})
    run = tac.engine().run(known.columns, 1)
    seeds = np.array([[1.0], [-1.0]]) / run.joint  # of log p*(true) - log p*(false)
    found = tac.engine().gradients(known.columns, 1, seeds, run.exponent)
    np.testing.assert_allclose(found.tables["Q", "table"], [2, -2], rtol=1e-9)
    np.testing.assert_allclose(found.likelihoods["Q"], [[2], [-2]], rtol=1e-9)
    np.testing.assert_allclose(found.tables["E0", "table"], [[1 / (1 - 1e-6), 0], [-1e6, 0]], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_fit_takes_rows_that_are_computed_again(engine):
    """The prior of Q is learned from a row that leaves the range of floats, and one that does not."""
    net, names = sensors(8, 1e-120)
    net = net.with_cpts({"Q": tacit.CPT([0.5, 0.5], learn=True)})
    rows = {name: [*values, None] for name, values in votes(names, 3).items()}
    odds = 1e-240
    right = odds * 0.8 / (0.2 + odds * 0.8), 0.8
    for optimizer in ("lbfgs", "adam") if engine == "tape" else ("lbfgs",):
        tac = tacit.compile(net, "Q", names, engine=engine, effort="low")
        steps = 200 if optimizer == "adam" else 20
        fit = tacit.fit(tac, rows, np.array(right), optimizer=optimizer, steps=steps, restarts=1, progress=False)
        assert fit.loss < 1e-4
        np.testing.assert_allclose(fit.network.table("Q"), [0.8, 0.2], atol=2e-2)


def test_the_jacobian_of_rows_that_are_computed_again():
    """Likelihoods of 1e-300 and 1e-100 are the same to the posterior, but not to floats."""
    net = tacit.examples.chain(tests=2, gamma=16.0)
    rng = np.random.default_rng(0)
    learned = tacit.learn.Parameters(net, net.variables)
    tac = tacit.compile(learned.fill(learned.start(rng)), "Q", ["E1", "E2"], engine="tape")
    engine = tac.engine()
    found = []
    for small in (1e-100, 1e-300):
        rows = {"E1": [[small, 1.0], [0.5, 0.5]], "E2": [[small, 1.0], [0.25, 0.75]]}
        packed = engine.pack(tac.read(rows).columns, 2)
        found.append(engine.jacobian(packed, 0, 1))
        assert (engine.attempt(packed.columns_of(), 2).imprecise is not None) == (small == 1e-300)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    for key, table in found[0][1].items():
        np.testing.assert_allclose(table, found[1][1][key], rtol=1e-9, atol=1e-14)


# sigmoids -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("gamma", [16.0, 64.0, 100.0, 130.0, 400.0, 2000.0, 1e5])
def test_the_weight_of_minus_keeps_its_digits(gamma, dtype, engine):
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[1, 0]] * 2, [[0, 1]] * 2, [0.1, 0.2], gamma=gamma))
    tac = tacit.compile(net, "A", ["A", "T"], engine=engine, dtype=dtype)
    row = {"A": 0.5, "T": "false"}
    # sigmoid(-0.4 gamma) : sigmoid(-0.3 gamma)
    right = exact.query(net, "A", {"A": [0.5, 0.5], "T": [0, 1]})
    tolerance = {"rtol": 1e-9} if dtype == "float64" else {"rtol": 1e-4, "atol": 1e-37}
    np.testing.assert_allclose(tac.posterior(row)[0], right.posterior, **tolerance)
    np.testing.assert_allclose(tac.log_evidence(row), right.log_evidence, rtol=1e-9 if dtype == "float64" else 1e-4)
    if gamma <= 130:
        np.testing.assert_allclose(tac.circuit().evaluate(row)[0], [float(p) for p in right.joint], rtol=1e-9)
        np.testing.assert_allclose(tacit.semantics.posterior(net, "A", row)[0], right.posterior, rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_steep_sigmoids_between_positive_tables_are_no_matter_of_doubt(engine, monkeypatch):
    monkeypatch.setattr(WideEngine, "attempt", lambda *_: pytest.fail("computed again"))
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[0.9, 0.1]] * 2, [[0.3, 0.7]] * 2, [0.1, 0.9], gamma=5000.0))
    tac = tacit.compile(net, "A", ["A", "T"], engine=engine)
    np.testing.assert_allclose(tac.posterior({"A": 0.5, "T": "false"}), [[0.125, 0.875]])


@pytest.mark.parametrize("role", ["evidence", "hard"])
def test_tables_with_zeros_are_doubted_only_where_a_weight_ends(role):
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=tacit.TestingCPT([[1, 0]] * 2, [[0, 1]] * 2, [0.1, 0.2], gamma=16.0))
    for gamma, imprecise in ((16.0, False), (2000.0, True)):
        tac = tacit.compile(net.with_gamma(gamma), "T", **{role: ["A"]}, engine="tape")
        columns = tac.read({"A": ["true", "false"]}).columns
        assert (tac.engine().attempt(columns, 2).imprecise is not None) == imprecise
        learned = tac.engine()._tape(pin=True)
        assert learned.states == 2


# what explains is what answered ------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("dtype", FLOATS)
def test_the_selection_is_that_of_the_run_that_answered(engine, dtype):
    """With thresholds at the posterior itself, two ways of rounding decide differently."""
    rng = np.random.default_rng(0)
    for _ in range(8):
        net, names = tacit.Network(), [f"V{i}" for i in range(5)]
        for i, name in enumerate(names):
            parents = names[max(0, i - 2) : i]
            net.add(name, parents, 3, rng.dirichlet(np.ones(3), size=[3] * len(parents)))
        row = {name: rng.dirichlet(np.ones(3), size=1) for name in names}
        limits = tacit.compile(net, "V4", names, engine=engine, dtype=dtype).posterior(row)[0]
        plus, minus = [[1, 0]] * 3, [[0, 1]] * 3
        net.add("T", ["V4"], cpt=tacit.TestingCPT(plus, minus, np.clip(limits, 0, 1)))
        tac = tacit.compile(net, "T", names, engine=engine, dtype=dtype)
        how = tac.selected(row)["T"]
        np.testing.assert_allclose((how.posterior * how.weight).sum(), tac.posterior(row)[0, 0], atol=1e-5)
        by_hand = sum(how.posterior[0] * how.weight[0])
        np.testing.assert_allclose(tac.explain(row).network.posterior("T", row)[0, 0], by_hand, atol=1e-5)


# the parts ------------------------------------------------------------------------------------------------


def test_the_processor_notes_what_is_too_small():
    flags.clear_underflow()
    assert not flags.underflowed()
    flags.raise_underflow()
    assert flags.underflowed()
    assert not flags.underflowed()  # the question clears it


@pytest.mark.parametrize("dtype", FLOATS)
def test_tables_that_are_computed_once_are_watched_too(dtype):
    """A product of tables, without evidence, that leaves the range of floats."""
    net = tacit.Network()
    net.add("A", cpt=[0.5, 0.5])
    for above, name in ("AB", "BC", "CD"):
        net.add(name, [above], cpt=[[1 - 1e-180, 1e-180], [1 - 1e-180, 1e-180]])
    net.add("E", ["A"], cpt=[[1e-200, 1.0], [3e-200, 1.0]])
    right = exact.query(net, "A", {"E": [1.0, 0.0], "D": [0.0, 1.0]})
    for engine in ENGINES:
        tac = tacit.compile(net, "A", ["E", "D"], engine=engine, dtype=dtype, order=["C", "B", "D", "E"])
        found = tac.posterior({"E": "true", "D": "false"})[0]
        np.testing.assert_allclose(found, right.posterior, rtol=1e-9 if dtype == "float64" else 1e-5)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_likelihoods_that_float32_cannot_hold(engine):
    net, names = sensors(4, 0.1)
    tac = tacit.compile(net, "Q", names, engine=engine, dtype="float32")
    row = dict.fromkeys(names, np.array([[0.5, 0.5], [1e-60, 1.0]])) | {"E0": np.array([[0.5, 0.5], [1.0, 1e-60]])}
    right = exact.query(net, "Q", {n: values[1].tolist() for n, values in row.items()})
    np.testing.assert_allclose(tac.posterior(row), [[0.5, 0.5], right.posterior], rtol=1e-5)
    only = {"E0": np.array([[1.0, 0.0]]), "E1": np.array([[0.0, 1.0]])}
    blocked = sensors(4, 1e-50)[0]
    tac = tacit.compile(blocked, "Q", names, engine=engine, dtype="float32")  # tables that it cannot hold, too
    np.testing.assert_allclose(tac.posterior(only), [[0.5, 0.5]], rtol=1e-5)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_a_query_without_any_evidence_in_doubt(engine):
    net = tacit.Network()
    net.add("A", cpt=[1e-200, 1.0])
    net.add("B", ["A"], cpt=[[1e-200, 1.0], [0.0, 1.0]])
    right = exact.query(net, "B", {})
    np.testing.assert_allclose(tacit.compile(net, "B", engine=engine).log_evidence(), [right.log_evidence], atol=1e-12)


@pytest.mark.parametrize("kind", [NumpyEngine, TapeEngine])
def test_new_numbers_make_a_new_engine_for_doubtful_rows(kind):
    net, names = sensors(122, 1e-6)
    tac = tacit.compile(net, "Q", names, effort="low")
    engine = kind(tac.program, *tac.numbers())
    columns = tac.read(votes(names, 60)).columns
    before = engine.run(columns, 1).joint[:, 0]
    engine.update({("Q", "table"): np.array([0.9, 0.1])}, {})
    after = engine.run(columns, 1).joint[:, 0]
    np.testing.assert_allclose(after[0] / after[1], 9 * before[0] / before[1], rtol=1e-9)


@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
@pytest.mark.parametrize("seed", range(8))
def test_random_extremes_against_numbers_of_any_size(engine, seed):
    trial = extreme.trial(np.random.default_rng(1000 + seed))
    assert extreme.compare(trial, engine) == ""


def test_an_index_beyond_what_float32_counts():
    """A table of more than 2**24 entries, in which a float32 would point to the neighbour."""
    size = 2**24 + 8
    constants = np.zeros(size + 2, dtype=np.float32)
    constants[:2] = 1.0, 0.0
    constants[2 + 2**24 + 1] = 0.5
    instructions = np.array([[INDEX, 1, 0, 2], [TABLE, 2, 2, 3], [OUTPUT, 0, 3, 4]], np.int32)
    terms = np.array([[0, 4], [1, 1], [2, 1], [2, 0]], np.int32)  # 4 * first + second
    codes = np.array([[2**22, 0], [1, 0]], np.int32)
    outputs, doubts = np.empty((1, 2), np.float32), np.empty(2, np.bool_)
    values = np.empty((3, 8), np.float32)
    inputs = np.empty((0, 2), np.float32)
    kernels.forward(instructions, terms, constants, inputs, codes, outputs, doubts, values, 0, 2)
    assert outputs.tolist() == [[0.5, 0.0]]

"""Generated code that learns: losses between the sweeps, sums over groups of rows, and tables read directly."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit import examples
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.tape.direct import reads_directly
from tacit.engines.tape.instructions import CROSS_ENTROPY, MEAN_SQUARED
from tacit.learn.fitting.loss_kernels import learn
from tacit.learn.fitting.losses import KINDS, evaluate

ROWS = 77  # a tile, a few vectors and a part of one
NAMES = {number: name for name, number in KINDS.items()}


def chain_of_causes() -> tacit.Network:
    """Three states each; what is observed comes through tables that are multiplied beforehand."""
    rng, net = np.random.default_rng(5), tacit.Network()
    net.add("A", states=["a", "b", "c"], cpt=rng.dirichlet(np.ones(3)))
    for parent, name in zip("ABCD", "BCDE", strict=True):
        net.add(name, [parent], states=["a", "b", "c"], cpt=rng.dirichlet(np.ones(3), 3))
    return net


CASES = {
    "layer": (examples.layer(1, gamma=16.0), "Q", ["E1", "E2"]),
    "chain": (chain_of_causes(), "A", ["C", "E"]),
}


def engine_and_rows(case, dtype="float64", engine="native"):
    net, query, evidence = CASES[case]
    tac = tacit.compile(tacit.learn.Parameters(net, net.variables).fill(start(net)), query, evidence,
                        engine=engine, dtype=dtype)  # fmt: skip
    rng = np.random.default_rng(1)
    known = tac.read({name: rng.dirichlet(np.ones(len(net.states(name))), ROWS) for name in evidence})
    return tac.engine(), known


def start(net):
    return tacit.learn.Parameters(net, net.variables).start(np.random.default_rng(0))


@pytest.mark.parametrize(("case", "groups"), [("layer", 2), ("chain", 2), ("chain", 3)])
@pytest.mark.parametrize("loss", [MEAN_SQUARED, CROSS_ENTROPY])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_loss_and_its_derivatives_in_one_sweep(case, groups, loss, dtype):
    engine, known = engine_and_rows(case, dtype)
    rng = np.random.default_rng(2)
    targets, weights = rng.dirichlet(np.ones(groups), ROWS).T.copy(), rng.random(ROWS)
    weights[[3, ROWS - 1]] = 0.0

    def seed_of(joint, rows):
        return evaluate(NAMES[loss], joint, targets[:, rows], weights[rows])

    packed = engine.pack(known.columns, known.rows)
    value, found = engine.fused(packed, seed_of, learn, weights, loss, targets)
    reference, columns = engine_and_rows(case, engine="numpy")
    expected, by = reference.fused(reference.pack(columns.columns, ROWS), seed_of, None, weights)
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    assert value == pytest.approx(expected, rel=tolerance)
    assert found.tables.keys() == by.tables.keys()
    largest = max(np.abs(table).max() for table in by.tables.values())
    for key, table in by.tables.items():
        np.testing.assert_allclose(found.tables[key], table, atol=tolerance * largest, err_msg=str(key))


def test_a_row_without_weight_may_be_impossible():
    """Its joint is 0, of which no loss is a number."""
    net = tacit.Network()
    net.add("A", cpt=[0.3, 0.7])
    net.add("B", ["A"], cpt=[[1.0, 0.0], [1.0, 0.0]])
    tac = tacit.compile(net, "A", ["B"], engine="native")
    known = tac.read({"B": [[1.0, 1.0], [0.0, 1.0]]})
    engine, targets = tac.engine(), np.array([[0.5, 0.5], [0.5, 0.5]])
    packed = engine.pack(known.columns, 2)
    for loss in (MEAN_SQUARED, CROSS_ENTROPY):
        value, found = engine.fused(
            packed, lambda *_: (0.0, np.zeros((2, 1))), learn, np.array([1.0, 0.0]), loss, targets
        )
        assert np.isfinite(value)
        assert found.finite


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_new_numbers_reach_the_code_and_what_is_asked_of_others(case, dtype):
    engine, known = engine_and_rows(case, dtype)
    assert reads_directly(engine.program) == (case == "layer")
    before = engine.run(known.columns, ROWS).joint
    tables = {key: table[..., ::-1].copy() for key, table in engine.reference.parameters.items()}
    engine.update(tables, {})
    fresh = type(engine)(engine.program, tables, engine.gammas, dtype)
    after = engine.run(known.columns, ROWS).joint
    np.testing.assert_array_equal(after, fresh.run(known.columns, ROWS).joint)
    assert np.abs(after - before).max() > 1e-3
    clone = engine.clone()
    clone.update({key: table[..., ::-1].copy() for key, table in tables.items()}, {})
    np.testing.assert_array_equal(clone.run(known.columns, ROWS).joint, before)
    np.testing.assert_array_equal(engine.run(known.columns, ROWS).joint, after)
    np.testing.assert_array_equal(engine.reference.parameters["Q" if case == "layer" else "A", "table"],
                                  tables["Q" if case == "layer" else "A", "table"])  # fmt: skip


@pytest.mark.parametrize("small", [1e-3, 1e-30, 1e-60, 1e-120, 1e-200])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("case", CASES)
def test_a_quick_look_at_the_tables_never_overlooks_a_doubt(case, dtype, small, monkeypatch):
    engine, _ = engine_and_rows(case, dtype)
    key = ("Q", "table") if case == "layer" else ("C", "table")
    table = engine.reference.parameters[key].copy()
    table[..., 0], table[..., 1] = small, 1 - small
    tape = engine._tape()
    engine.update({key: table}, {})
    found = engine.tables_in_doubt(tape)
    assert found == engine._some_in_doubt(tape)
    if small == 1e-3:  # and is enough as a rule
        monkeypatch.setattr(NumpyEngine, "in_doubt", lambda *_: pytest.fail("a quick look was not enough"))
        engine.update({key: table}, {})
        assert not engine.tables_in_doubt(tape)

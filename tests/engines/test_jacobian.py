"""Derivatives by the tables row by row, from generated code: against the interpreter, and one row at a time."""

from __future__ import annotations

import numpy as np
import pytest

import tacit
from tacit.engines.native.readers import ROWS_PER_TILE

ROWS = 2 * ROWS_PER_TILE + 17  # two tiles, a few vectors and a part of one
SOME = [0, 3, ROWS_PER_TILE - 1, ROWS_PER_TILE, ROWS - 1]
TOLERANCE = {"float64": 1e-12, "float32": 2e-5}


def random_network(seed):
    """Classical and testing nodes, hard and soft, with two or three states."""
    rng, net = np.random.default_rng(seed), tacit.Network(selection="general" if seed % 2 else "ancestral")
    for i in range(6):
        parents = rng.permutation(list(net))[: rng.integers(0, 3)].tolist() if i else []
        shape, card = [len(net.states(p)) for p in parents], int(rng.integers(2, 4))
        cpt = rng.dirichlet(np.ones(card), shape or None)
        if parents and rng.random() < 0.7:
            gamma = None if rng.random() < 0.3 else float(rng.uniform(2, 40))
            other = rng.dirichlet(np.ones(card), shape)
            cpt = tacit.TestingCPT(cpt, other, rng.uniform(0.1, 0.9, shape), gamma=gamma)
        net.add(f"V{i}", parents, [f"s{k}" for k in range(card)], cpt)
    return net


def asked(net, engine, dtype, likelihoods):
    tac = tacit.compile(net, "V2", list(net), engine=engine, dtype=dtype)
    return tac.engine(), tac.read(likelihoods)


def jacobian(net, engine, dtype, likelihoods, states):
    made, known = asked(net, engine, dtype, likelihoods)
    assert made.lacks_jacobian() == ""
    return made.jacobian(made.pack(known.columns, known.rows), *states)


def one_by_one(net, likelihoods, states, rows):
    """Shares of some rows and their derivatives by the reference, a sweep for each."""
    engine, known = asked(net, "numpy", "float64", likelihoods)

    def seed_of(joint):
        total, chosen = joint.sum(), np.zeros((len(joint), 1))
        chosen[slice(*states)] = 1.0
        share = (chosen * joint).sum() / total
        return share, (chosen - share) / total

    found = [
        engine.value_and_gradients({n: c.block(row, row + 1) for n, c in known.columns.items()}, 1, seed_of)
        for row in rows
    ]
    tables = {key: np.stack([by.tables[key].ravel() for _, by in found], axis=1) for key in found[0][1].tables}
    return np.array([share for share, _ in found]), tables


def same(found, expected, rows, tolerance):
    np.testing.assert_allclose(found[0][rows], expected[0], rtol=tolerance)
    largest = max(np.abs(table).max() for table in expected[1].values())
    for key, table in found[1].items():
        np.testing.assert_allclose(table[:, rows], expected[1][key], atol=tolerance * largest, err_msg=str(key))


@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_random_networks(seed, dtype):
    net = random_network(seed)
    rng = np.random.default_rng(seed)
    likelihoods = {name: rng.dirichlet(np.ones(len(net.states(name))), ROWS) for name in net}
    states = [(0, 1), (1, 2)][seed % 2]
    found = jacobian(net, "native", dtype, likelihoods, states)
    if dtype == "float64":
        by_tape = jacobian(net, "tape", dtype, likelihoods, states)
        assert found[1].keys() == by_tape[1].keys()
        same(found, by_tape, slice(None), TOLERANCE[dtype])
    same(found, one_by_one(net, likelihoods, states, SOME), SOME, TOLERANCE[dtype])


def test_rows_in_doubt_are_computed_again():
    net = random_network(2)
    rng = np.random.default_rng(0)
    likelihoods = {name: rng.dirichlet(np.ones(len(net.states(name))), ROWS) for name in net}
    tiny = [3, ROWS_PER_TILE, ROWS - 1]
    for own in likelihoods.values():
        own[tiny] *= [1.0] + [1e-300] * (own.shape[1] - 1)
    for dtype in ("float64", "float32"):
        engine, known = asked(net, "native", dtype, likelihoods)
        imprecise = engine.attempt(known.columns, ROWS).imprecise
        assert imprecise[tiny].all()
        assert imprecise.sum() < 50  # the rows of a vector are in doubt together
        found = jacobian(net, "native", dtype, likelihoods, (0, 1))
        same(found, one_by_one(net, likelihoods, (0, 1), SOME), SOME, TOLERANCE[dtype])


def test_tables_that_are_multiplied_beforehand_stand_in_the_way():
    net = random_network(0)
    reasons = [asked(net, engine, "float64", {})[0].lacks_jacobian() for engine in ("native", "tape")]
    assert reasons == ["hard evidence, or products of parameters, stand in the way"] * 2


def test_numpy_has_none():
    engine, known = asked(random_network(2), "numpy", "float64", {})
    with pytest.raises(NotImplementedError, match=engine.lacks_jacobian()):
        engine.jacobian(engine.pack(known.columns, 1), 0, 1)

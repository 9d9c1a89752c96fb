"""The way down after generated code: states as the other engines find them, and no interpreter."""

import numpy as np
import pytest

import tacit
from tacit.engines.native import native_engine as native
from tests.engines.test_jacobian import random_network

ROWS = 300  # two tiles
KINDS = {"V0": "soft", "V1": "hard", "V4": "soft"}


def rows_of(net, seed):
    rng = np.random.default_rng(seed)
    soft = {n: rng.dirichlet(np.ones(len(net.states(n))), ROWS) for n, kind in KINDS.items() if kind == "soft"}
    return {**soft, "V1": rng.choice(np.array(net.states("V1"), dtype=object), ROWS)}


def tac(net, engine, dtype="float64"):
    return tacit.compile(net, None, ["V0", "V4"], ["V1"], engine=engine, dtype=dtype)


@pytest.mark.parametrize("seed", range(4))
def test_states_are_those_of_other_engines(seed, monkeypatch):
    net = random_network(seed)
    rows = rows_of(net, seed)
    monkeypatch.setattr(native, "DESCENT_ELEMENTS", 20_000)  # several blocks
    found, expected = (
        [one.mpe(rows), one.sample(rows, n=3, seed=1)] for one in (tac(net, "native"), tac(net, "numpy"))
    )
    np.testing.assert_allclose(found[0].log_probability, expected[0].log_probability, rtol=1e-12)
    for name in net:
        assert (found[0].states[name] == expected[0].states[name]).all(), name
        assert (found[1][name] == expected[1][name]).all(), name


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rows_in_doubt_are_computed_again(dtype):
    net = random_network(1)
    rows = rows_of(net, 0)
    for name in ("V0", "V4"):
        rows[name][[2, ROWS - 1], 0] = 1e-300
    found, expected = (tac(net, engine, dtype).mpe(rows) for engine in ("native", "numpy"))
    np.testing.assert_allclose(
        found.log_probability, expected.log_probability, rtol=1e-12 if dtype == "float64" else 1e-5
    )
    assert all((found.states[name] == expected.states[name]).all() for name in net)


def test_no_interpreter_is_needed():
    net = random_network(3)
    asked = tac(net, "native")
    asked.mpe(rows_of(net, 0))
    asked.sample(rows_of(net, 0))
    assert all(native.DESCENT in one.engine()._generated for one in asked._companions.values())

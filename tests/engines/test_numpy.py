"""The NumPy engine: scales that neither underflow nor lose digits."""

import numpy as np
import pytest

import tacit
from tacit import Network, TestingCPT
from tests.helpers import ENGINES, close

engines = pytest.mark.parametrize("engine", ENGINES)

# scales ---------------------------------------------------------------------------------------------------


def log_sum(values, axis):
    top = values.max(axis=axis, keepdims=True)
    return np.log(np.exp(values - top).sum(axis=axis)) + np.squeeze(top, axis)


def star(children, rare=None):
    """A root with many children; `rare`: the probability of their first state."""
    rng = np.random.default_rng(0)
    tables = rng.dirichlet(np.ones(2), (children, 2))
    if rare is not None:
        tables = np.stack([tables[..., 0] * rare, 1 - tables[..., 0] * rare], axis=-1)
    net = Network()
    net.add("R", cpt=[0.3, 0.7])
    for i in range(children):
        net.add(f"X{i}", ["R"], cpt=tables[i])
    return net, tables


def star_in_logs(tables, likelihoods):
    """log p*(r) for both states of the root: (rows, 2)."""
    return np.log(np.einsum("nrx,bnx->bnr", tables, likelihoods)).sum(axis=1) + np.log([0.3, 0.7])


def compare_in_logs(tac, columns, logs, tolerance=1e-10):
    """`logs` (rows, states) holds log p*(q)."""
    total = log_sum(logs, axis=1)
    np.testing.assert_allclose(tac.log_evidence(columns), total, rtol=tolerance)
    np.testing.assert_allclose(tac.posterior(columns), np.exp(logs - total[:, None]), rtol=10 * tolerance, atol=1e-300)


@engines
def test_thousands_of_children_with_soft_evidence(engine):
    net, tables = star(2000)
    x = np.random.default_rng(1).random((3, 2000))
    tac = tacit.compile(net, "R", [f"X{i}" for i in range(2000)], engine=engine, effort="low")
    compare_in_logs(tac, x, star_in_logs(tables, np.stack([x, 1 - x], axis=-1)))
    assert (tac.joint(x) == 0).all()  # below what a float64 can hold: that is what log_evidence is for


def chain(length, x):
    """X0 -> X1 -> ..., and log p*(last) (rows, 2) for the likelihoods `x` (rows, length) of all first states."""
    tables = np.random.default_rng(0).dirichlet(np.ones(2), (length, 2))
    net = Network()
    net.add("X0", cpt=tables[0, 0])
    likelihoods = np.log(np.stack([x, 1 - x], axis=-1))
    logs = np.log(tables[0, 0]) + likelihoods[:, 0]
    for i in range(1, length):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=tables[i])
        logs = log_sum(logs[:, :, None] + np.log(tables[i]), axis=1) + likelihoods[:, i]
    return net, logs


@engines
def test_a_chain_of_two_thousand_with_soft_evidence(engine):
    x = np.random.default_rng(1).random((3, 2000))
    net, logs = chain(2000, x)
    compare_in_logs(tacit.compile(net, "X1999", list(net), engine=engine), x, logs)


@engines
def test_a_chain_without_evidence_deeper_than_python_recurses(engine):
    """Every table is made of the one before: nothing that walks them may call itself for each."""
    net, logs = chain(1500, np.full((1, 1500), 0.5))
    tac = tacit.compile(net, "X1499", engine=engine)
    np.testing.assert_allclose(tac.posterior(), np.exp(logs - log_sum(logs, axis=1)[:, None]), rtol=1e-12)


@engines
@pytest.mark.parametrize("rare", [1e-2, 1e-4, 1e-8])
def test_rare_states_observed_in_many_children(engine, rare):
    net, tables = star(300, rare)
    names = [f"X{i}" for i in range(300)]
    logs = star_in_logs(tables, np.broadcast_to([1.0, 0.0], (1, 300, 2)))
    columns = dict.fromkeys(names, "true")
    compare_in_logs(tacit.compile(net, "R", hard=names, engine=engine), columns, logs)
    compare_in_logs(tacit.compile(net, "R", names, engine=engine), columns, logs)


@engines
def test_float32_keeps_its_range(engine):
    net, tables = star(500)
    names = [f"X{i}" for i in range(500)]
    x = np.random.default_rng(1).random((3, 500))
    logs = star_in_logs(tables, np.stack([x, 1 - x], axis=-1))
    tac = tacit.compile(net, "R", names, engine=engine, dtype="float32")
    compare_in_logs(tac, x, logs, 1e-4)
    np.testing.assert_allclose(tac.joint(x), np.exp(logs), rtol=1e-3)


@engines
def test_tests_are_decided_by_scaled_marginals(engine):
    """A testing node below hundreds of evidence variables sees their posterior, not an underflowed 0."""
    x, thresholds = np.random.default_rng(2).random((4, 600)), [0.45, 0.55]
    net, logs = chain(600, x)
    net.add("T", ["X599"], cpt=TestingCPT([[1, 0]] * 2, [[0, 1]] * 2, thresholds))
    tac = tacit.compile(net, "T", [f"X{i}" for i in range(600)], engine=engine)
    p = np.exp(logs - log_sum(logs, axis=1)[:, None])
    found = tac.selected(x)["T"]
    np.testing.assert_allclose(found.posterior, p, rtol=1e-9)
    np.testing.assert_array_equal(found.weight, p >= thresholds)
    close(tac.posterior(x)[:, 0], ((p >= thresholds) * p).sum(axis=1), 1e-9)


@engines
def test_memory_does_not_grow_with_the_rows(engine):
    tac = tacit.compile(tacit.examples.diamond(), "D", ["A"], engine=engine)
    assert 1 <= tac.engine().chunk <= (2**17 if engine == "native" else 2**14)  # generated code packs no evidence

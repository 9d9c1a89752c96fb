"""What a test could gain with all other numbers held, against the network that has it."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Network, TestingCPT, semantics
from tacit.learn import Parameters
from tacit.learn.fitting.data import read_data
from tacit.learn.placing.refitting import with_tests
from tacit.learn.placing.splitting import Held, Rows, Selection, cuts, parent_posterior, slopes, split, with_every_state
from tests.helpers import close, tries
from tests.strategies import evidence, networks, rngs

ROWS = 4


def mixed(table, share=0.2):
    """A table without 0s, so that all evidence is possible."""
    return (1 - share) * table + share / table.shape[-1]


@st.composite
def cases(draw):
    """A network, a query, evidence, and a node with parents that the query needs."""
    net = draw(networks(testing=False, factored=False))
    net = net.with_cpts({name: mixed(net.table(name)) for name in net})
    net = net.with_selection(draw(st.sampled_from(["ancestral", "general"])))
    below = [name for name in net if net.parents(name)]
    assume(below)
    node = draw(st.sampled_from(below))
    return net, draw(st.sampled_from(net.variables)), draw(evidence(net, rows=ROWS)), node


def random_cpt(rng, table, gamma):
    plus, minus = (mixed(rng.dirichlet(np.ones(table.shape[-1]), table.shape[:-1])) for _ in range(2))
    return TestingCPT(plus, minus, rng.random(table.shape[:-1]), gamma=gamma)


def rows_of(net, query, columns, nodes, y, loss="mse"):
    tac = tacit.compile(net, query, list(columns))
    data = read_data(tac, columns, y, None)
    shape = with_tests(net, nodes, 16.0)
    seen = {node: shape.seen_by(node, data.columns) for node in nodes}
    posteriors = [parent_posterior(net, data, net.parents(node), seen[node]) for node in nodes]
    return Rows.of(slopes(with_every_state(tac), data, nodes), nodes, posteriors, data, loss)


@tries(60)
@given(cases(), rngs, st.sampled_from([None, 3.0, 16.0]))
def test_the_loss_with_a_test_is_that_of_the_testing_network(case, rng, gamma):
    net, query, columns, node = case
    assume(columns)
    y = rng.dirichlet(np.ones(len(net.states(query))), ROWS)
    rows = rows_of(net, query, columns, [node], y)
    cpt, table = random_cpt(rng, net.table(node), gamma), net.table(node)
    tested = net.with_cpts({node: cpt})
    selected = [semantics.select(tested, {n: column[i : i + 1] for n, column in columns.items()}) for i in range(ROWS)]
    close(rows.posterior[0].T, [row.nodes[node].posterior.ravel() for row in selected])
    own = Selection(cpt.parts(), gamma, rows.posterior, (table[..., 0].size, table.shape[-1]))
    expected = ((semantics.posterior(tested, query, columns) - y) ** 2).mean(axis=1)
    close(rows.losses(own.change(table.reshape(-1, table.shape[-1]))), expected)


def tied(gamma=8.0):
    """Two tied nodes with a row that is known in part, as a regular and as a testing network."""
    net = Network()
    for name in ("A", "B"):
        net.add(name, states=3, cpt=np.full(3, 1 / 3))
        net.add(f"{name}2", [name], 3, np.array([[0.2, 0.3, 0.5], [0.1, 0.8, 0.1], [0.0, 0.4, 0.6]]), tie="same")
    net.add("Q", ["A2", "B2"], cpt=np.random.default_rng(1).dirichlet([1, 1], (3, 3)))
    open_ = np.where(net.table("A2") == 0, 0, np.nan)
    open_[0] = [0.2, np.nan, np.nan]
    unset = np.full(3, np.nan)
    free = net.with_cpts(dict.fromkeys(["A2", "B2"], CPT(open_, tie="same")))
    return (
        net,
        free,
        net.with_cpts(dict.fromkeys(["A2", "B2"], TestingCPT(open_, open_, unset, gamma=gamma, tie="same"))),
    )


@pytest.mark.parametrize("loss", ["mse", "cross_entropy"])
@pytest.mark.parametrize("which", [1, 2])
def test_gradients_are_those_of_finite_differences(loss, which):
    rng, networks_ = np.random.default_rng(0), tied()
    nodes = ["A2", "B2"]
    columns = {name: rng.dirichlet(np.ones(3), 9) for name in "AB"}
    rows = rows_of(networks_[0], "Q", columns, nodes, rng.random(9), loss)
    parameters = Parameters(networks_[which], nodes)
    held = Held(parameters, rows, networks_[0].table("A2"), np.full(parameters.entries, 0.01) * (parameters.kinds == 0))
    weights = parameters.start(rng)
    value, gradient = held.value_and_gradient(weights)
    for i in range(len(weights)):
        step = np.eye(len(weights))[i] * 1e-6
        slope = (held.value_and_gradient(weights + step)[0] - held.value_and_gradient(weights - step)[0]) / 2e-6
        assert gradient[i] == pytest.approx(slope, abs=1e-6)
    assert np.isfinite(value)


def bump(seed=0, count=600):
    """E -> Q, where Q is likely for middling evidence only: one table cannot say so, two can."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("Q", ["E"], cpt=[[0.5, 0.5], [0.5, 0.5]])
    x = rng.random(count)
    return net, {"E": x}, (rng.random(count) < np.where(x > 0.7, 0.1, 0.9)).astype(float)


@pytest.mark.parametrize("gamma", [None, 16.0])
def test_a_cut_is_found_where_labels_change(gamma):
    net, columns, y = bump()
    rows = rows_of(net, "Q", columns, ["Q"], y, "cross_entropy")
    found = cuts(rows, net.table("Q"), gamma)
    assert found[0] == pytest.approx(0.7, abs=0.08)
    assert found[1] == pytest.approx(0.3, abs=0.12)


def test_a_split_is_the_best_of_the_tables_of_one_node():
    net, columns, y = bump()
    rows = rows_of(net, "Q", columns, ["Q"], y, "cross_entropy")
    shapes = net.with_cpts({"Q": np.full((2, 2), np.nan)}), with_tests(net, ["Q"], 16.0)
    found = split(*(Parameters(shape, ["Q"]) for shape in shapes), net.table("Q"), rows, [None, None])
    for cpt in (found.free, found.tested):
        tac = tacit.compile(shapes[isinstance(cpt, TestingCPT)], "Q", ["E"])
        fitted = tacit.fit(tac, columns, y, "cross_entropy", progress=False)
        p = net.with_cpts({"Q": cpt}).posterior("Q", columns)[:, 0]
        loss = -np.log(np.where(y == 1, p, 1 - p))
        assert loss.mean() < fitted.loss + 1e-4
        if cpt is found.free:
            without = loss
    close(found.gains(rows), without - loss)
    assert rows.weights @ found.gains(rows) == pytest.approx((without - loss).mean())
    assert (without - loss).mean() > 0.1

"""Posteriors of all variables where all that is known is given: by the tables of the program, and by likelihoods."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.engines.arrays import by_row
from tacit.query import marginals
from tests.helpers import tries


@pytest.fixture
def eager(monkeypatch):
    """However little work it is, the program of the query itself tells, if it can."""
    monkeypatch.setattr(marginals, "WORTH_DERIVING", 0)


@pytest.fixture
def alone(monkeypatch):
    """No other program may be compiled."""

    def refused(*_):
        raise AssertionError("another program was asked for")

    monkeypatch.setattr(marginals, "companion_for", refused)


def random_graph(seed: int, zeros: float) -> tacit.FactorGraph:
    """Some factors over seven variables, of which one has a single state."""
    rng, graph = np.random.default_rng(seed), tacit.FactorGraph()
    cards = {f"V{i}": (2, 3, 1, 2, 4, 2, 3)[i] for i in range(7)}
    for name, card in cards.items():
        graph.add(name, card)
    for _ in range(8):
        scope = rng.choice(list(cards), rng.integers(1, 4), replace=False).tolist()
        table = rng.exponential(size=[cards[name] for name in scope])
        graph.add_factor(scope, np.where(rng.random(table.shape) < zeros, 0.0, table))
    return graph


def by_enumeration(graph: tacit.FactorGraph, known: dict[str, int]) -> dict[str, np.ndarray] | None:
    """The same from the table of all joint states; None where they are all impossible."""
    names = list(graph)
    joint = np.ones([len(graph.states(name)) for name in names])
    for factor in graph.factors:
        order = [factor.variables.index(name) for name in names if name in factor.variables]
        shape = [n if name in factor.variables else 1 for name, n in zip(names, joint.shape, strict=True)]
        joint *= factor.table.transpose(order).reshape(shape)
    for name, state in known.items():
        axis = names.index(name)
        mask = np.arange(joint.shape[axis]) == state
        joint *= mask.reshape([-1 if i == axis else 1 for i in range(joint.ndim)])
    if joint.sum() == 0:
        return None
    sums = {name: joint.sum(axis=tuple(i for i in range(joint.ndim) if names[i] != name)) for name in names}
    return {name: p / p.sum() for name, p in sums.items()}


@pytest.mark.usefixtures("eager")
@tries(40)
@given(
    seed=st.integers(0, 2**32 - 1), zeros=st.sampled_from([0.0, 0.3]), known=st.sampled_from([{}, {"V1": 2, "V4": 0}])
)
def test_posteriors_are_those_of_the_joint(seed, zeros, known):
    graph = random_graph(seed, zeros)
    expected = by_enumeration(graph, known)
    if expected is None:
        return
    for query in (None, "V0"):
        found = tacit.compile(graph, query, given=known).marginals()
        assert list(found) == list(graph)
        for name, p in expected.items():
            np.testing.assert_allclose(found[name], p[None], rtol=1e-12, atol=1e-15)


@pytest.mark.usefixtures("eager", "alone")
def test_no_other_program_is_needed():
    graph = random_graph(2, 0.0)
    for name in graph:
        graph.add_factor([name], np.ones(len(graph.states(name))))
    found = tacit.compile(graph, None, given={"V3": 1}, dtype="float32").marginals()
    assert {p.dtype for p in found.values()} == {np.dtype("float32")}
    assert found["V3"].tolist() == [[0.0, 1.0]]
    assert found["V2"].tolist() == [[1.0]]


@pytest.mark.usefixtures("eager", "alone")
def test_numbers_beyond_the_range_of_floats(monkeypatch):
    """Products of very many small numbers are rescaled on the way: no number needs an exponent of its own."""
    monkeypatch.setattr(by_row, "WideByRow", None)
    graph, n = tacit.FactorGraph(), 400
    for i in range(n):
        graph.add(f"V{i}", 2)
    for i in range(1, n):
        graph.add_factor([f"V{i - 1}", f"V{i}"], [[1.0, 1e-3], [1e-3, 1e-6]])
    found = tacit.compile(graph, None, given={"V0": 1}).marginals()
    middle = found["V200"][0]
    assert middle == pytest.approx([1 / (1 + 1e-6), 1e-6 / (1 + 1e-6)], rel=1e-12)


@pytest.mark.usefixtures("eager")
def test_what_is_impossible_is_told():
    graph = tacit.FactorGraph()
    graph.add("A", 2)
    graph.add("B", 2)
    graph.add_factor(["A", "B"], [[1.0, 0.0], [1.0, 1.0]])
    with pytest.warns(UserWarning, match="probability 0"):
        found = tacit.compile(graph, None, given={"A": 0, "B": 1}).marginals()
    assert np.isnan(found["A"]).all()


@pytest.mark.usefixtures("eager")
def test_networks_with_nodes_that_have_no_say():
    net = tacit.examples.asia()
    known = {"either": net.states("either")[0]}
    found = tacit.compile(net, None, given=known).marginals()
    for name in net:
        np.testing.assert_allclose(found[name], net.posterior(name, known), rtol=1e-12, atol=1e-15)

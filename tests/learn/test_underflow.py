"""Expected counts where numbers leave the range of floats: what is lost counts for nothing, or is computed again."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, NoisyOr, TestingCPT
from tacit.engines.engine import Engine
from tacit.learn.estimating import counting
from tests.helpers import close, tries
from tests.strategies import rngs


@pytest.fixture(params=["tape", "native", "numpy"])
def engine(request, monkeypatch):
    monkeypatch.setattr(counting, "engine_for_many_passes", lambda *_: request.param)


def estimate(net, rows, exactly=False, **settings):
    """With all doubtful rows computed again, or only those that need it."""
    with pytest.MonkeyPatch.context() as patch:
        if exactly:
            patch.setattr(counting, "MIN_TRUSTED_EXPONENT", counting.NEVER_TRUSTED)
        return tacit.estimate(net, rows, tolerance=0, progress=False, **settings)


def agree(net, rows, **settings):
    """Both ways to compute doubtful rows lead to the same numbers."""
    found, exact = (estimate(net, rows, exactly, **settings) for exactly in (False, True))
    np.testing.assert_allclose(
        [*found.history, found.log_likelihood], [*exact.history, exact.log_likelihood], 1e-12, 1e-12
    )
    for name in net:
        for part, table in exact.network.cpt(name).parts().items():
            close(found.network.cpt(name).parts()[part], table)


def star(row, other, leaves=4):
    """A hidden cause, and effects with one row for each of its two states."""
    net = tacit.Network()
    net.add("A", cpt=CPT([0.5, 0.5], learn=True))
    for i in range(leaves):
        net.add(f"B{i}", ["A"], cpt=CPT([row, other], learn=True))
    return net


def test_what_underflows_beside_a_probability_is_left(engine, monkeypatch):
    """Given A = false, the effects have 1e-680, which no float holds, and which is nothing beside A = true."""
    net, rows = star([0.9, 0.1], [1e-170, 1.0]), {f"B{i}": ["true", "true", "false", None] for i in range(4)}
    agree(net, rows, steps=3)
    monkeypatch.setattr(Engine, "fallback", property(lambda _: pytest.fail("rows were computed again")))
    found = estimate(net, rows, steps=1)
    assert found.history[0] == pytest.approx(2 * math.log(0.5 * 0.9**4) + math.log(0.5 + 0.5e-4), rel=1e-12)


@pytest.mark.parametrize(("leaves", "least"), [(2, 1e-160), (4, 1e-170)])
def test_rows_that_are_improbable_altogether_are_computed_again(engine, leaves, least):
    """Of the first, a few digits would be left, and of the second none."""
    net = star([least, 1.0], [1e-5 * least, 1.0], leaves)
    rows = {f"B{i}": ["true", "false", None] for i in range(leaves)}
    found = estimate(net, rows, steps=1)
    assert found.history[0] == pytest.approx(math.log(0.5) + leaves * math.log(least), rel=1e-12)
    close(found.network.table("A"), [2 / 3, 1 / 3], 1e-9)
    agree(net, rows, steps=2)


def tiny(rng, *shape):
    """Distributions with numbers down to 1e-300."""
    table = rng.dirichlet(np.ones(shape[-1]), shape[:-1])
    table *= 10.0 ** -np.where(rng.random(shape) < 0.5, rng.uniform(0, 300, shape), 0)
    return np.maximum(table / table.sum(axis=-1, keepdims=True), 1e-300)


@tries(30)
@given(rng=rngs, nodes=st.integers(2, 8), noisy=st.booleans())
def test_counts_are_those_of_wider_numbers(rng, nodes, noisy):
    net = tacit.Network()
    for i in range(nodes):
        parents = [f"V{j}" for j in rng.choice(i, min(i, 2), replace=False)]
        cards = [len(net.states(parent)) for parent in parents]
        if noisy and i % 3 == 2:
            net.add(f"V{i}", parents, 2, NoisyOr([tiny(rng, card) for card in cards], leak=1e-200, learn=True))
        else:
            card = int(rng.integers(2, 4))
            net.add(f"V{i}", parents, card, CPT(tiny(rng, *cards, card), learn=True))
    drawn = net.sample(12, seed=3)
    rows = {name: [None if rng.random() < 0.4 else state for state in column] for name, column in drawn.items()}
    agree(net, rows, steps=2, weights=rng.choice([1.0, 0.5, 1e-14], 12))


def test_where_what_underflows_may_count():
    net = star([0.9, 0.1], [0.2, 0.8], leaves=1)
    testing = net.with_cpts({"B0": TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.0, 0.0], test=">")})
    plain, tests = (tacit.compile(each, None, ["A", "B0"]).program for each in (net, testing))
    one = np.ones(2)
    assert counting._trusted_from(plain, one) == counting._trusted_from(plain, 0 * one) == counting.MIN_TRUSTED_EXPONENT
    assert counting._trusted_from(plain, np.array([1.0, 1e-20])) == counting.NEVER_TRUSTED
    assert counting._trusted_from(tests, one) == counting.NEVER_TRUSTED


def test_parent_states_with_next_to_no_count_stay():
    net = tacit.Network()
    net.add("A", cpt=CPT([1.0, 1e-80], learn=True))
    net.add("B", ["A"], cpt=CPT([[0.5, 0.5], [0.3, 0.7]], learn=True))
    found = estimate(net, {"B": ["true"] * 3 + ["false"]}, steps=1).network
    close(found.table("B"), [[0.75, 0.25], [0.3, 0.7]], 1e-15)
    assert 0 < found.table("A")[1] < 1e-79

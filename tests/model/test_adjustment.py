"""Adjustment sets: right on every network, without a variable too many, and found wherever there is one."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import NetworkError, examples
from tests.helpers import close, tries
from tests.strategies import rngs


@st.composite
def graphs(draw):
    """A random network of binary variables, two of them, and some that nobody measures."""
    rng = draw(rngs)
    count = draw(st.integers(3, 6))
    net = tacit.Network()
    for i in range(count):
        parents = [f"N{j}" for j in range(i) if rng.random() < 0.45]
        net.add(f"N{i}", parents, cpt=rng.dirichlet([1, 1], [2] * len(parents)))
    x, y, *others = rng.permutation(count)
    latent = [f"N{i}" for i in others if rng.random() < 0.3]
    return net, f"N{x}", f"N{y}", latent


def adjusted(net, x, y, chosen):
    """P(y | do(x)) by the formula: (states of x, states of y)."""
    joint = np.asarray(tacit.compile(net, [x, y, *chosen]).posterior())[0]
    cards = joint.reshape(2, 2, -1)
    given_x = cards / cards.sum(axis=1, keepdims=True)
    return (given_x * cards.sum(axis=(0, 1))).sum(axis=2)


def works(net, x, y, chosen):
    set_to = [net.do({x: state}).posterior(y)[0] for state in net.states(x)]
    return np.abs(adjusted(net, x, y, chosen) - set_to).max() < 1e-9


@tries(100)
@given(case=graphs())
def test_sets_work_and_none_is_smaller(case):
    net, x, y, latent = case
    with warnings.catch_warnings(action="ignore", category=tacit.NoAdjustmentWarning):
        chosen = net.adjustment(x, y, latent)
    others = [name for name in net if name not in (x, y, *latent)]
    if chosen is None:  # random tables: what works by numbers works by the graph
        assert not any(
            works(net, x, y, some) for k in range(len(others) + 1) for some in itertools.combinations(others, k)
        )
        return
    assert not set(chosen) & {x, y, *latent}
    assert works(net, x, y, chosen)
    assert not any(works(net, x, y, [n for n in chosen if n != left]) for left in chosen)


def test_several_causes():
    net = examples.diamond()
    close([len(net.adjustment(["B", "C"], "D"))], [0])  # nothing is above both causes and D but through them


def test_why_there_is_none():
    net = examples.kidney_stones()
    with pytest.warns(tacit.NoAdjustmentWarning, match="'treatment' is a cause of 'recovery', not its effect"):
        assert net.adjustment("recovery", "treatment") is None
    with pytest.warns(tacit.NoAdjustmentWarning, match="it would need latent variables, of 'size'"):
        assert net.adjustment("treatment", "recovery", latent=["size"]) is None
    with pytest.raises(NetworkError, match="'size' is named twice"):
        net.adjustment("size", "size")

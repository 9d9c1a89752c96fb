"""What no selection can repair: the bound holds for every table, and is reached where it can be."""

import doctest

import numpy as np
import pytest
from paper import limits
from tests.helpers import close

import tacit


def test_examples_in_docstrings():
    found = doctest.testmod(limits)
    assert found.attempted
    assert not found.failed


def test_no_mixture_comes_below_the_bound_wherever_the_search_stops():
    rng = np.random.default_rng(0)
    p, parts = rng.dirichlet([1] * 4, 20), rng.dirichlet([0.5] * 4, (20, 3)).swapaxes(1, 2)
    best = limits.least_loss(p, parts, steps=2000)
    for steps in (0, 3, 2000):
        bound = limits.least_loss(p, parts, steps)
        assert (bound <= best + 1e-12).all()
        for weights in rng.dirichlet([1] * 3, 100):
            assert (bound <= -(p * np.log(parts @ weights)).sum(axis=1) + 1e-12).all()
    inside = parts @ [0.2, 0.3, 0.5]
    close(limits.least_loss(inside, parts, 2000), -(inside * np.log(inside)).sum(axis=1), 1e-6)


def fork(edge):
    """D -> U -> X -> F and D -> V: in truth, V -> X as well."""
    rng = np.random.default_rng(3)
    net = tacit.Network()
    net.add("D", states=3, cpt=rng.dirichlet([1] * 3))
    net.add("U", ["D"], cpt=rng.dirichlet([1] * 2, 3))
    net.add("V", ["D"], cpt=rng.dirichlet([1] * 2, 3))
    table = rng.dirichlet([0.3] * 3, (2, 2))
    net.add("X", ["U", "V"] if edge else ["U"], 3, table if edge else table.mean(axis=1))
    net.add("F", ["X"], 3, rng.dirichlet([0.3] * 3, 3))
    return net


def test_no_table_at_the_missing_edge_comes_below_the_floor():
    truth, wrong = fork(edge=True), fork(edge=False)
    rows = {"F": [0, 1, 2, None]}
    found = limits.limit(truth, wrong, "D", "X", rows)
    assert found.truth < found.floor < found.wrong
    assert found.repairable == pytest.approx((found.wrong - found.floor) / (found.wrong - found.truth))
    rng, p = np.random.default_rng(0), truth.posterior("D", rows)
    for _ in range(50):
        other = wrong.with_cpts({"X": rng.dirichlet([0.2] * 3, 2), "F": rng.dirichlet([0.2] * 3, 3)})
        assert limits.cross_entropy(p, other.posterior("D", rows)) > found.floor


def test_a_node_that_reaches_the_rest_in_another_way_is_refused():
    with pytest.raises(ValueError, match="'U' and what is below it must touch"):
        limits.limit(fork(edge=True), fork(edge=True), "D", "U", {"F": [0]})

"""Sweep orders."""

import math

import pytest
from hypothesis import given

from tacit.compiler.order import search as order
from tacit.compiler.order.exact import neighbours
from tacit.compiler.order.sweep import sweep_order, widest_front
from tacit.compiler.order.tree import Problem, Tree, bits
from tests.compiler.test_order import problem, problems


def grid(side):
    """The families of a grid whose nodes have the node above and the one to the left as parents; the last is asked."""
    at = {(i, j): 1 << i * side + j for i in range(side) for j in range(side)}
    masks = [at[i, j] | at.get((i - 1, j), 0) | at.get((i, j - 1), 0) for i, j in at]
    return Problem(masks, [False] * len(masks), [f"v{i}" for i in range(side**2)], [2] * side**2, 1 << side**2 - 1)


def test_a_chain_is_swept_from_end_to_end():
    p = problem("ca", "ae", "eb", "bd")
    assert "".join(p.names[i] for i in sweep_order(p)) in ("caebd", "dbeac")


def test_every_part_is_swept():
    assert sorted(sweep_order(problem("ab", "cd", "e", "fg", keep="a", hard="g"))) == [1, 2, 3, 4, 5]


@given(problems())
def test_all_axes_that_are_summed_are_swept_once(p):
    present = 0
    for mask in p.masks:
        present |= mask
    assert sorted(sweep_order(p)) == bits(present & ~p.keep & ~p.hard)


def test_neighbours_of_a_grid_are_one_layer_apart():
    p = grid(12)
    place = {axis: i for i, axis in enumerate([*sweep_order(p), 143])}
    around = neighbours(p)
    assert max(abs(place[a] - place[b]) for a in around if a != 143 for b in around[a] if b != 143) <= 2 * 12


def test_the_front_of_a_sweep_is_a_layer():
    p = grid(12)
    order_ = sweep_order(p)
    assert 2**12 <= widest_front(p, order_) <= 2**13
    assert widest_front(p, order_) <= Tree(p, order.by_elimination(p, order_)).total
    assert widest_front(problem("ab", "bc", sizes={"a": 3, "b": 5, "c": 7}), [0, 1, 2]) == pytest.approx(35)
    far = Problem([1 | 1 << i for i in range(1, 1500)], [False] * 1499, [str(i) for i in range(1500)], [2] * 1500, 0)
    assert math.isfinite(widest_front(far, sweep_order(far)))


def test_a_large_grid_is_planned_by_a_sweep(monkeypatch):
    monkeypatch.setattr(order, "anneal", lambda tree, *_args, **_kinds: tree)
    monkeypatch.setattr(order, "_dear", lambda *_: False)  # no compiled search either
    p = grid(26)
    plan = Tree(p, order.search(p))
    assert math.log2(plan.total) < 35.5  # min-fill: 43.4
    assert math.log2(plan.largest_step) < 28

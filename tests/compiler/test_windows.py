"""Plans made window by window."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.compiler.order import search as order
from tacit.compiler.order import sweep
from tacit.compiler.order.search import search
from tacit.compiler.order.sweep import by_windows
from tacit.compiler.order.tree import Problem, Tree
from tests.compiler.test_order import problems
from tests.compiler.test_sweep import grid
from tests.helpers import close

EMISSION = [[[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]], [[0.25, 0.5, 0.25], [0.1, 0.1, 0.8]]]


def ladder(length, hub=False):
    """Two chains side by side that meet at every step, and an axis that all steps share, or none."""
    masks = []
    for t in range(length):
        top, low, shared = 1 << 2 * t, 1 << 2 * t + 1, (1 << 2 * length) * hub
        masks += [top | low | shared] + [top | top << 2, low | low << 2] * (t < length - 1)
    count = 2 * length + hub
    return Problem(masks, [i % 3 == 0 for i in range(len(masks))], [f"v{i}" for i in range(count)], [2] * count, 0)


@given(p=problems(), size=st.integers(1, 4))
def test_a_plan_has_every_factor_once_and_leaves_what_is_kept(p, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweep, "WINDOW_AXES", size)
        path = by_windows(p, search)
    assert path is not None
    assert sorted(i for pair in path for i in pair) == list(range(len(p.masks) + len(path) - 1))
    tree = Tree(p, path)
    present = 0
    for mask in p.masks:
        present |= mask
    assert not path or tree.out[tree.root] & ~p.hard == present & p.keep & ~p.hard


@pytest.mark.slow
@pytest.mark.parametrize("hub", [False, True])
def test_a_ladder_costs_what_a_search_of_all_of_it_finds(hub):
    p = ladder(150, hub)
    path = by_windows(p, search)
    assert path is not None
    assert Tree(p, path).total <= 1.1 * Tree(p, search(p)).total


def test_equal_windows_are_planned_once():
    planned = []

    def plan(part):
        planned.append(part)
        return search(part)

    assert by_windows(ladder(2000), plan) is not None
    assert len(planned) < 10


def test_what_is_not_thin_is_left_to_other_searches():
    assert by_windows(grid(14), search) is None


def test_a_long_factorial_model_is_planned_by_windows(monkeypatch):
    rng = np.random.default_rng(0)
    net = tacit.Network()
    for t in (0, 1):
        for chain in "AB":
            net.add(f"{chain}[{t}]", [f"{chain}[0]"] * t, cpt=rng.dirichlet(np.ones(2), (2,) * t))
        net.add(f"E[{t}]", [f"A[{t}]", f"B[{t}]"], 3, tacit.CPT(EMISSION, tie="E"))
    net = tacit.unroll(net, 60)
    seen = [f"E[{t}]" for t in range(60)]
    rows = {name: rng.integers(3, size=5) for name in seen}
    expected = tacit.compile(net, "A[30]", seen).posterior(rows)
    monkeypatch.setattr(order, "MAX_SEARCHED", 50)
    monkeypatch.setattr(sweep, "WINDOW_AXES", 12)
    for hard in (False, True):
        close(tacit.compile(net, "A[30]", *((), seen) if hard else (seen,)).posterior(rows), expected)

"""Plans without search: the best of all for few factors, and orders that add no edge for very many."""

import itertools
import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import Network, TooLargeError
from tacit.compiler.order import search as order
from tacit.compiler.order.exact import cheapest_path, perfect_order
from tacit.compiler.order.search import search
from tacit.compiler.order.tree import MAX_STATIC, MAX_STEP, ROWS, Problem, Tree, bits
from tests.compiler.test_order import complete, named, problem, problems
from tests.helpers import tries


def all_paths(nodes, new):
    if len(nodes) < 2:
        yield []
    for i, j in itertools.combinations(nodes, 2):
        for rest in all_paths([k for k in nodes if k not in (i, j)] + [new], new + 1):
            yield [(i, j), *rest]


def least_total(p):
    leaves = len(p.masks)
    return min(Tree(p, path).total for path in all_paths(list(range(leaves)), leaves))


@tries(100)
@given(problems(max_factors=5))
def test_the_cheapest_path_is_the_cheapest_of_all(p):
    path = cheapest_path(p)
    complete(p, path)
    assert Tree(p, path).total == pytest.approx(least_total(p), rel=1e-12)


def test_the_cheapest_path_minds_when_tables_are_indexed():
    """Two static tables may be multiplied for all observed states, or indexed first if that would be too large."""
    for states in (2, 100, 3000):
        p = problem("abh", "bci", "ca", keep="a", hard="hi", sizes={"h": states, "i": states})
        path = cheapest_path(p)
        assert Tree(p, path).total == least_total(p)
    assert states**2 > MAX_STATIC > ROWS


def test_few_factors_are_planned_exhaustively():
    p = problem("ab", "bc", "cd", "da", keep="a")
    assert len(list(all_paths([0, 1, 2, 3], 4))) == 18  # 6 * 3 * 1
    for effort in order.EFFORTS:
        assert Tree(p, search(p, effort)).total == least_total(p)


@tries(30)
@given(problems(max_factors=7))
def test_the_highest_effort_finds_the_cheapest_plan_of_a_small_problem(p):
    assert Tree(p, search(p, "high")).total <= Tree(p, search(p, "auto")).total * (1 + 1e-12)


def fail(*_args, **_kinds):
    raise AssertionError("this search cannot pay")


def test_the_highest_effort_does_not_anneal_a_network_of_four_nodes(monkeypatch):
    monkeypatch.setattr(order, "anneal", fail)
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    for name, parent in ("BA", "CA", "DB"):
        net.add(name, [parent], cpt=[[0.9, 0.1], [0.2, 0.8]])
    assert tacit.compile(net, "A", ["B", "C", "D"], effort="high").cost().width == 1


def test_the_highest_effort_stops_where_no_heat_finds_anything(monkeypatch):
    moves = []

    def anneal(tree, count, rng, start):
        moves.append(count)
        return tree

    monkeypatch.setattr(order, "anneal", anneal)
    monkeypatch.setattr(order, "_restarts", lambda *_: 0)
    monkeypatch.setattr(order, "_cotengra", lambda _: [])
    rng = random.Random(0)

    def tried(factors):
        moves.clear()
        axes = "abcdefghijklmnopqrstuvwxyz"
        p = problem(*["".join(rng.sample(axes, 3)) for _ in range(factors)], keep="a")
        p.soft = [True] * factors
        search(p, "high")
        return moves.count(200_000)

    assert tried(order.MAX_SETTLED) == 5  # one run to begin with, then one for every heat
    assert tried(order.MAX_SETTLED + 1) == 16


def edges_added(p, eliminated):
    """How many pairs of axes an order makes neighbours that no factor (nor the result) has together."""
    groups = [{*bits(m & ~p.hard)} for m in (*p.masks, p.keep)]
    known = {pair for g in groups for pair in itertools.permutations(g, 2)}
    added = 0
    for axis in eliminated:
        around = {b for a, b in known if a == axis}
        new = set(itertools.permutations(around, 2)) - known
        added += len(new) // 2
        known = {(a, b) for a, b in known | new if axis not in (a, b)}
    return added


@pytest.mark.parametrize(
    ("factors", "kinds", "expected"),
    [
        (["ab", "bc", "cd"], {"keep": "d"}, "abc"),
        (["ab", "bc", "cd"], {"keep": "b"}, "dca"),
        (["ab", "ac", "ad"], {"keep": "a"}, "dcb"),
        (["ab", "bc", "cd", "da"], {"keep": "a"}, None),
        (["ab", "bc", "cd", "da", "bd"], {"keep": "a"}, "cdb"),
        (["ab", "bc", "cd", "da"], {"keep": "a", "hard": "c"}, "db"),
        (["ab", "bc"], {"keep": "ac"}, "b"),
        (["ab", "bc", "cd"], {"keep": "ad"}, None),  # the result joins a and d
        (["a", "b"], {"keep": "a"}, "b"),
    ],
)
def test_an_order_that_adds_no_edge_is_found_where_there_is_one(factors, kinds, expected):
    p = problem(*factors, **kinds)
    found = perfect_order(p)
    assert (None if found is None else named(p, found)) == expected


@given(problems())
def test_perfect_orders_eliminate_everything_and_add_nothing(p):
    found = perfect_order(p)
    assume(found is not None)
    present = 0
    for mask in p.masks:
        present |= mask
    assert sorted(found) == bits(present & ~p.keep & ~p.hard)
    assert edges_added(p, found) == 0


@tries(40)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(4, 12))
def test_trees_of_cliques_have_perfect_orders(seed, width, count):
    """A k-tree: every new axis is joined to a clique of k axes that is there."""
    rng = random.Random(seed)
    cliques = [tuple(range(width + 1))]
    for axis in range(width + 1, count):
        cliques.append((*rng.sample(rng.choice(cliques), width), axis))
    axes = cliques[-1][-1] + 1
    names = rng.sample(range(axes), axes)
    masks = [sum(1 << names[a] for a in clique) for clique in cliques] + [1 << a for a in names]
    p = Problem(masks, [True] * len(masks), [f"v{i}" for i in range(axes)], [2] * axes, keep=1 << names[0])
    found = perfect_order(p)
    assert found is not None
    assert edges_added(p, found) == 0
    tree = Tree(p, order.by_elimination(p, found))
    assert max(tree.union(i).bit_count() for i in range(len(tree.out))) == width + 1


def test_a_long_chain_needs_no_search(monkeypatch):
    monkeypatch.setattr(order, "_portfolio", fail)
    net = Network()
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, 1300):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    cost = tacit.compile(net, "X700", list(net)).program.cost
    assert cost.width == 1
    assert cost.multiply_adds <= 6 * 1300  # a message times a likelihood, times a table


def test_a_large_problem_that_is_neither_a_tree_nor_thin_is_still_searched(monkeypatch):
    tried = []
    monkeypatch.setattr(order, "by_windows", lambda *_: None)
    monkeypatch.setattr(order, "_portfolio", lambda p, *_: tried.append(p) or [(0.0, order.by_elimination(p, []))])
    axes = 2100
    masks = [1 << i | 1 << (i + 1) % axes for i in range(axes)]  # a cycle
    search(Problem(masks, [True] * axes, [f"v{i}" for i in range(axes)], [2] * axes, keep=1), "low")
    assert len(tried) == 1


def grid(side, size):
    """Factors of neighbours in a grid, whose axes all have the same length."""
    at = {(i, j): 1 << i * side + j for i in range(side) for j in range(side)}
    masks = [at[i, j] | at[n] for i, j in at for n in ((i + 1, j), (i, j + 1)) if n in at]
    return Problem(masks, [True] * len(masks), [f"v{i}" for i in range(side**2)], [size] * side**2, keep=1)


@pytest.fixture
def runs(monkeypatch):
    """The runs of annealing, which here finds nothing, where no compiled search can take its place."""
    found = []
    monkeypatch.setattr(order, "_dear", lambda *_: False)
    monkeypatch.setattr(order, "anneal", lambda tree, *_args, **_kinds: found.append(tree) or tree)
    monkeypatch.setattr(order, "_cotengra", lambda _: [])
    return found


def excess(p):
    """How many times beyond what is accepted the largest step of the first plans is."""
    return Tree(p, search(p, "low")).largest_step / MAX_STEP


def test_a_hopeless_plan_is_not_searched_any_further(runs, monkeypatch):
    p = grid(9, 200)
    assert excess(p) > order.MAX_EXCESS
    first = search(p, "low")
    monkeypatch.setattr(order, "_restarts", lambda total, leaves, effort: 0 if effort == "low" else fail())
    assert search(p) == first
    assert not runs


def test_what_search_may_bring_back_is_searched(runs):
    p = grid(9, 13)
    assert 1 < excess(p) < order.MAX_EXCESS_ANNEALED
    search(p)
    assert len(runs) > 1


def test_annealing_that_does_not_come_near_ends(runs, monkeypatch):
    monkeypatch.setattr(order, "_sweeps", lambda *_: [])
    p = grid(9, 20)
    assert order.MAX_EXCESS_ANNEALED < excess(p) < order.MAX_EXCESS
    search(p)
    assert len(runs) == 1


def test_sweeps_that_do_not_come_near_end_the_search(runs):
    p = grid(9, 20)
    plan = search(p)
    assert Tree(p, plan).largest_step > order.MAX_EXCESS_SWEPT * MAX_STEP
    assert Tree(p, plan).total < Tree(p, order.by_elimination(p, order.elimination_order(p, order.min_fill))).total
    assert not runs


def test_the_highest_effort_always_searches(runs):
    search(grid(7, 2000), "high")
    assert len(runs) >= 16


def test_the_largest_step_counts_what_is_summed():
    p = problem("ab", "bc", "cd", sizes={"a": 3, "b": 5, "c": 7, "d": 2}, keep="a")
    assert Tree(p, [(0, 1), (3, 2)]).largest_step == 3 * 5 * 7
    assert Tree(p, [(1, 2), (3, 0)]).largest_step == 5 * 7 * 2


def test_a_plan_that_is_too_wide_is_refused():
    """However small the tables that a step reads and writes are, it may run over too much."""
    net = Network()
    net.add("R", states=3, cpt=[0.2, 0.3, 0.5])
    names = [f"X{i}" for i in range(40)]
    for name in names:
        net.add(name, ["R"], cpt=[[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
    net.add("Q", ["X0"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(TooLargeError, match="too wide to compile"):
        tacit.compile(net, "Q", names, order=["R"])

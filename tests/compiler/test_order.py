"""The order search: known graphs by hand, properties on random problems."""

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit.compiler.order import search as order
from tacit.compiler.order.search import by_elimination, elimination_order, greedy, search
from tacit.compiler.order.tree import Problem, Tree, anneal, bits
from tests.helpers import tries

ELIMINATIONS = [order.min_fill, order.weighted_min_fill, order.min_size]
SCORES = [order.score_cost, order.score_growth, order.score_relative]


def problem(*factors, sizes=None, keep="", hard="", soft=()):
    """Factors as strings of one-letter axes."""
    names = sorted({a for f in factors for a in f})
    bit = {a: 1 << i for i, a in enumerate(names)}
    return Problem(
        masks=[sum(bit[a] for a in f) for f in factors],
        soft=[f in soft for f in factors],
        names=names,
        sizes=[(sizes or {}).get(a, 2) for a in names],
        keep=sum(bit.get(a, 0) for a in keep),
        hard=sum(bit.get(a, 0) for a in hard),
    )


@st.composite
def problems(draw, max_factors=12):
    axes = draw(st.integers(2, 9))
    mask = st.integers(1, 2**axes - 1).map(lambda m: _at_most(m, 4))
    masks = draw(st.lists(mask, min_size=1, max_size=max_factors))
    soft = draw(st.lists(st.booleans(), min_size=len(masks), max_size=len(masks)))
    sizes = draw(st.lists(st.integers(2, 5), min_size=axes, max_size=axes))
    keep = 1 << draw(st.integers(0, axes - 1))
    hard = draw(st.integers(0, 2**axes - 1)) & draw(st.integers(0, 2**axes - 1)) & ~keep
    return Problem(masks, soft, [f"v{i}" for i in range(axes)], sizes, keep, hard)


def _at_most(mask, count):
    return sum(1 << b for b in list(bits(mask))[:count])


def complete(p, path):
    """Every factor and every product is used once, and what is left holds the kept axes only."""
    assert len(path) == len(p.masks) - 1
    used = [i for pair in path for i in pair]
    assert sorted(used) == list(range(2 * len(path)))
    assert all(max(pair) < len(p.masks) + k for k, pair in enumerate(path))
    tree = Tree(p, path)
    if path:
        assert tree.out[tree.root] & ~p.keep & ~p.hard == 0


def named(p, found):
    return "".join(p.names[i] for i in found)


@pytest.mark.parametrize("weigh", ELIMINATIONS)
def test_a_path_is_eliminated_from_its_ends(weigh):
    p = problem("ab", "bc", "cd", "de")
    found = named(p, elimination_order(p, weigh))
    assert sorted(found) == list("abcde")
    assert found[0] in "ae"
    assert Tree(p, by_elimination(p, elimination_order(p, weigh))).union(p_root(p)).bit_count() <= 2


def p_root(p):
    return 2 * len(p.masks) - 2


def test_the_centre_of_a_star_comes_after_its_rays():
    p = problem("ab", "ac", "ad", "ae")
    assert named(p, elimination_order(p, order.min_fill)).index("a") >= 3


def test_min_fill_counts_the_edges_that_elimination_adds():
    p = problem("ab", "ac", "ad", "bc")
    adjacent = [0b1110, 0b0101, 0b0011, 0b0001]
    assert [order.min_fill(p, adjacent, v) for v in range(4)] == [2, 0, 0, 0]
    assert order.min_size(p, adjacent, 0) == 16
    p = problem("ab", "ac", "ad", "bc", sizes=dict(zip("abcd", [2, 3, 5, 7], strict=True)))
    assert order.weighted_min_fill(p, adjacent, 0) == 2 * (3 * 7 + 5 * 7)


def test_cycles_get_one_chord_at_a_time():
    p = problem("ab", "bc", "cd", "de", "ea")
    tree = Tree(p, by_elimination(p, elimination_order(p, order.min_fill)))
    assert max(tree.union(i).bit_count() for i in range(len(tree.out))) == 3


def test_kept_and_observed_axes_are_not_eliminated():
    p = problem("ab", "bc", "cd", keep="a", hard="d")
    assert sorted(named(p, elimination_order(p, order.min_fill))) == ["b", "c"]


def test_an_observed_axis_stays_until_something_soft_indexes_it():
    p = problem("ah", "ab", "b", hard="h", soft=["b"], keep="a")
    tree = Tree(p, [(0, 1), (3, 2)])  # (ah * ab) is static and keeps h
    assert tree.out[3] == p.masks[0] | p.masks[1]
    assert not tree.soft[3]
    assert named(p, bits(tree.out[4])) == "a"
    assert tree.soft[4]


def test_a_large_group_is_merged_without_comparing_all_pairs():
    p = problem(*["a"] * 5000, keep="a")
    complete(p, by_elimination(p, []))


@given(problems())
def test_every_method_makes_a_complete_plan(p):
    rng = random.Random(0)
    for jitter in (None, rng):
        for weigh in ELIMINATIONS:
            complete(p, by_elimination(p, elimination_order(p, weigh, jitter)))
        for score in SCORES:
            complete(p, greedy(p, score, jitter))


@tries(100)
@given(problems())
def test_search_is_never_worse_than_min_fill_and_repeatable(p):
    found = search(p)
    complete(p, found)
    min_fill = by_elimination(p, elimination_order(p, order.min_fill))
    assert Tree(p, found).total <= Tree(p, min_fill).total
    assert search(p) == found
    assert Tree(p, search(p, "low")).total >= Tree(p, found).total


@given(problems(), st.integers(0, 99))
def test_annealing_keeps_a_valid_tree_and_never_loses(p, seed):
    path = greedy(p, order.score_cost, random.Random(seed))
    before = Tree(p, path).total
    after = anneal(Tree(p, path), 300, random.Random(seed))
    complete(p, after.path())
    assert after.total <= before * (1 + 1e-9)
    assert Tree(p, after.path()).total == pytest.approx(after.total)


def order_by_definition(p, weigh):
    """Always the axis of least weight, on a graph in which the neighbours of what has gone are joined."""
    live = ~p.hard
    adjacent = [0] * len(p.sizes)
    for mask in p.masks:
        for v in bits(mask & live):
            adjacent[v] |= mask & live & ~(1 << v)
    free = [v for v in range(len(p.sizes)) if any(m >> v & 1 for m in p.masks) and not (p.keep | p.hard) >> v & 1]
    found = []
    while free:
        v = min(free, key=lambda v: (weigh(p, adjacent, v), v))
        for u in bits(adjacent[v]):
            adjacent[u] = (adjacent[u] | adjacent[v]) & ~(1 << u) & ~(1 << v)
        free.remove(v)
        found.append(v)
    return found


@pytest.mark.parametrize("weigh", ELIMINATIONS)
@given(p=problems())
def test_weights_follow_the_edges_that_elimination_adds(weigh, p):
    assert elimination_order(p, weigh) == order_by_definition(p, weigh)


@given(problems())
def test_the_factors_of_a_growing_plan_are_those_of_its_tree(p):
    pool, made = order.Pool(p), {}
    while len(pool.nodes) > 1:
        new = pool.merge(*list(pool.nodes)[:2])
        made[new] = pool.nodes[new]
    tree = Tree(p, pool.path)
    assert made == {i: (tree.out[i], tree.soft[i]) for i in range(tree.leaves, len(tree.out))}


@pytest.mark.parametrize("score", SCORES)
@given(p=problems())
def test_greedy_begins_with_the_best_pair_of_factors_that_share_an_axis(score, p):
    pool = order.Pool(p)
    pairs = [(i, j) for i in pool.nodes for j in pool.neighbours(i) if i < j]
    assume(pairs)
    assert greedy(p, score)[0] == min(pairs, key=lambda pair: (score(pool, *pair), pair))


@given(problems())
def test_trees_keep_their_paths(p):
    path = greedy(p, order.score_growth)
    tree = Tree(p, path)
    again = Tree(p, tree.path())
    complete(p, tree.path())
    assert again.total == pytest.approx(tree.total)


def test_high_effort_is_at_least_as_good():
    rng = random.Random(1)
    p = problem(*["".join(rng.sample("abcdefghijklmnop", 3)) for _ in range(11)], keep="a")
    p.soft = [True] * 11
    assert Tree(p, search(p, "high")).total <= Tree(p, search(p)).total <= Tree(p, search(p, "low")).total


def test_foreign_paths_are_split_into_pairs():
    assert order._from_ssa([(0, 1, 2), (4, 3)], 4) == [(0, 1), (4, 2), (5, 3)]

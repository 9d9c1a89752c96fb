"""Problems and trees: sizes, costs, and when a table is indexed by observed states."""

import random

import pytest

from tacit.compiler.order import search as order
from tacit.compiler.order.search import by_elimination, search
from tacit.compiler.order.tree import MAX_STATIC, MEMO_AXES, ROWS, STEP_COST, WRITE_COST, Problem, Tree, anneal, bits
from tests.compiler.test_order import named, problem


def test_sizes_are_products_of_lengths():
    p = problem("abc", sizes={"a": 2, "b": 3, "c": 5})
    assert [p.size(m) for m in (0, 0b1, 0b110, 0b111, 0b110)] == [1, 2, 15, 30, 15]


def test_sizes_of_many_axes_are_not_kept():
    axes = MEMO_AXES + 1
    p = Problem([1 << axes - 1 | 1], [True], [f"v{i}" for i in range(axes)], [3] * axes, keep=1)
    assert p.size(p.masks[0]) == 9
    assert not p._sizes


@pytest.mark.parametrize("mask", [0, 1, 0b101001, 1 << 200 | 1 << 65 | 1])
def test_bits_are_the_positions_that_are_set_from_low_to_high(mask):
    assert sum(1 << b for b in bits(mask)) == mask
    assert bits(mask) == sorted(set(bits(mask)))


def test_a_step_costs_its_products_its_writing_and_itself():
    p = problem("ab", "bc", sizes={"a": 2, "b": 3, "c": 5})
    assert p.cost(0b111, 0b101, soft=False) == 30 + WRITE_COST * 10 + STEP_COST
    assert p.cost(0b111, 0b101, soft=True) == ROWS * (30 + WRITE_COST * 10) + STEP_COST


def test_a_product_is_soft_if_a_factor_is():
    p = problem("ab", "bc", sizes={"a": 2, "b": 3, "c": 5})
    for a in (False, True):
        for b in (False, True):
            assert p.meet(0b011, a, 0b110, b) == (0b111, a or b)


@pytest.mark.parametrize(
    ("observed", "other", "static"),
    [
        (ROWS, 10, True),  # as many states as rows: computed for every state
        (ROWS + 1, 10, False),  # cheaper row by row
        (ROWS, MAX_STATIC // ROWS, True),
        (ROWS, MAX_STATIC // ROWS + 1, False),  # too large to be computed ahead
    ],
)
def test_a_table_is_indexed_once_that_is_cheaper_or_it_is_too_large(observed, other, static):
    p = problem("ah", "a", hard="h", sizes={"a": other, "h": observed})
    assert p.meet(p.masks[0], False, p.masks[1], False) == ((0b11, False) if static else (0b01, True))


def test_uniform_means_that_all_axes_are_equally_long():
    assert problem("ab").uniform
    assert not problem("ab", sizes={"a": 3}).uniform


def test_an_axis_is_summed_when_the_last_factor_that_holds_it_is_multiplied():
    p = problem("ab", "bc", "bd", keep="d")
    tree = Tree(p, [(0, 1), (3, 2)])
    assert [named(p, bits(tree.out[i])) for i in (3, 4)] == ["b", "d"]
    assert [named(p, bits(tree.union(i))) for i in (0, 3, 4)] == ["ab", "abc", "bd"]
    assert tree.costs == [0, 0, 0, p.cost(0b0111, 0b0010, False), p.cost(0b1010, 0b1000, False)]
    assert tree.total == sum(tree.costs)
    assert tree.root == 4


def test_a_kept_axis_is_never_summed():
    p = problem("ab", "b", keep="ab")
    assert Tree(p, [(0, 1)]).out[2] == 0b11


def test_a_soft_factor_has_no_observed_axis():
    p = problem("ah", "ab", hard="h", soft=["ah"], keep="b")
    tree = Tree(p, [(0, 1)])
    assert named(p, bits(tree.out[0])) == "a"
    assert (named(p, bits(tree.out[2])), tree.soft[2]) == ("b", True)


def test_paths_put_children_first():
    p = problem("ab", "bc", "cd", "de", keep="a")
    tree = Tree(p, [(2, 3), (0, 1), (5, 4)])
    assert Tree(p, tree.path()).total == tree.total
    assert tree.path()[-1] in [(4, 5), (5, 4)]
    assert Tree(problem("a", keep="a"), []).path() == []


def test_rotations_are_priced_as_the_tree_they_make():
    p = problem("ab", "bc", "cd", keep="ad", sizes={"a": 2, "b": 3, "c": 5, "d": 7})
    tree, other = Tree(p, [(0, 1), (3, 2)]), Tree(p, [(1, 2), (3, 0)])
    out, soft, inner, outer = tree.rotated(4, 1, 0, 2)
    assert (out, soft, inner, outer) == (other.out[3], False, other.costs[3], other.costs[4])


def test_a_rotation_that_would_index_elsewhere_is_refused():
    p = problem("hx", "x", "hy", hard="h", keep="y", sizes={"h": ROWS, "x": MAX_STATIC // ROWS, "y": 4})
    tree = Tree(p, [(0, 1), (3, 2)])  # x is summed first, and all stays static
    assert not tree.soft[4]
    assert tree.rotated(4, 0, 1, 2) is None  # over h, x and y it would be too large, and indexed
    assert tree.rotated(4, 1, 0, 2) is None


def test_annealing_improves_a_bad_tree():
    axes = "abcdefghij"
    p = problem(*[axes[i : i + 2] for i in range(9)], keep="a")
    p.soft = [True] * 9
    bad = [(0, 8), (9, 1), (10, 7), (11, 2), (12, 6), (13, 3), (14, 5), (15, 4)]
    best = Tree(p, search(p)).total
    start = Tree(p, bad)
    assert start.total > 2 * best
    assert anneal(Tree(p, bad), 5000, random.Random(0)).total == pytest.approx(best)
    assert anneal(start, 0, random.Random(0)) is start
    assert anneal(Tree(p, bad), 1000, random.Random(0)).path() == anneal(Tree(p, bad), 1000, random.Random(0)).path()


def test_scores_of_a_pair():
    p = problem("ab", "bc", keep="ac", sizes={"a": 2, "b": 4, "c": 8})

    def score(by, *soft):
        p.soft = [factor in soft for factor in ("ab", "bc")]
        return by(order.Pool(p), 0, 1)

    assert score(order.score_cost, "bc") == p.cost(0b111, 0b101, True)
    assert score(order.score_growth) == 16 - 8 - 32
    assert score(order.score_growth, "bc") == ROWS * 16 - 8 - ROWS * 32
    assert score(order.score_growth, "ab") == ROWS * 16 - ROWS * 8 - 32
    assert score(order.score_relative) == pytest.approx(-1, abs=0.02)
    assert score(order.score_relative, "ab") == pytest.approx(1, abs=0.03)
    assert score(order.score_relative, "bc") == pytest.approx(-1, abs=0.03)
    cheap = problem("abc", "b", keep="ac", sizes={"a": 2, "b": 2, "c": 8})  # of equal results, the one that costs less
    assert order.score_relative(order.Pool(cheap), 0, 1) < score(order.score_relative)


def test_weights_of_a_hub_are_estimates():
    degree = order.HUB_NEIGHBOURS + 1
    p = Problem([], [], [str(i) for i in range(degree + 1)], [2] * degree + [3], keep=0)
    adjacent = [1 << degree] * degree + [(1 << degree) - 1]
    assert order.min_fill(p, adjacent, degree) == degree * (degree - 1) / 2
    assert order.weighted_min_fill(p, adjacent, degree) == (2 * degree) ** 2
    fewer = [1 << degree] * degree + [(1 << order.HUB_NEIGHBOURS) - 1]
    assert order.min_fill(p, fewer, degree) == order.HUB_NEIGHBOURS * (order.HUB_NEIGHBOURS - 1) / 2
    assert order.weighted_min_fill(p, fewer, degree) == 4 * order.HUB_NEIGHBOURS * (order.HUB_NEIGHBOURS - 1)


def test_weights_do_not_depend_on_how_they_are_summed():
    rng = random.Random(0)
    for size in (2, 3):
        p = problem(*["".join(rng.sample("abcdefgh", 3)) for _ in range(6)], sizes=dict.fromkeys("abcdefgh", size))
        mixed = problem("abcdefgh", sizes={**dict.fromkeys("abcdefgh", size), "h": 7})
        adjacent = [0] * len(p.sizes)
        for mask in p.masks:
            for v in bits(mask):
                adjacent[v] |= mask & ~(1 << v)
        for v in range(len(p.sizes)):
            around = bits(adjacent[v])
            pairs = [(u, w) for u in around for w in around if u != w and not adjacent[u] >> w & 1]
            for q in (p, mixed):
                assert order.weighted_min_fill(q, adjacent, v) == sum(q.sizes[u] * q.sizes[w] for u, w in pairs)
            assert order.min_fill(p, adjacent, v) == len(pairs) / 2


@pytest.mark.parametrize(
    ("total", "leaves", "effort", "expected"),
    [
        (1e9, 100, "low", 0),
        (STEP_COST * 100 + 3.5 * 2e4, 100, "auto", 3),  # as much as there is to win
        (1e12, 100, "auto", 15),  # no more than 1,500 factors in all
        (1e12, 1500, "auto", 2),
        (1e12, 40, "auto", 20),
        (1e12, 39, "auto", 4),
        (1e12, 5000, "auto", 2),
        (1e12, 20, "high", 120),
        (1e12, 100, "high", 60),
        (0.0, 1500, "high", 8),
    ],
)
def test_how_many_plans_are_tried_again(total, leaves, effort, expected):
    assert order._restarts(total, leaves, effort) == expected


@pytest.mark.parametrize(
    ("size", "expected"),
    [(2, 1), (20, 2), (60, 2)],
)
def test_annealing_stops_when_it_finds_next_to_nothing(size, expected, monkeypatch):
    runs = []
    monkeypatch.setattr(order, "anneal", lambda tree, *_args, **_kinds: runs.append(1) or tree)
    axes = [f"{i}" for i in range(55)]
    masks = [1 << i | 1 << (i + 1) % 55 for i in range(55)]
    p = Problem(masks, [True] * 55, axes, [size] * 55, keep=1)
    order._annealed(p, [by_elimination(p, order.elimination_order(p, order.min_fill))], "auto", random.Random(0))
    assert len(runs) == expected


def test_groups_take_parameters_before_evidence_and_small_before_large():
    count = order.MAX_GROUP + 2
    p = Problem([0b1] * count, [i < 2 for i in range(count)], ["a"], [2], keep=1)
    assert by_elimination(p, [])[0] == (2, 3)  # the first two are soft
    p = Problem([0b11] * 2 + [0b1] * (count - 2), [True] * count, ["a", "b"], [2, 2], keep=0b11)
    assert by_elimination(p, [])[:2] == [(2, 3), (4, 5)]


def test_a_small_group_takes_its_cheapest_pair():
    p = problem("abc", "bcd", "a", "d", keep="a", sizes={"a": 9, "d": 2})
    first = by_elimination(p, [])[0]
    assert (
        first
        == min(
            ((i, j) for i in range(4) for j in range(i)),
            key=lambda pair: Tree(problem("abc", "bcd", "a", "d", keep="a", sizes={"a": 9, "d": 2}), [pair]).costs[-1],
        )[::-1]
    )


def test_jitter_changes_orders_and_keeps_them_complete():
    p = problem(*["abcdefghijklmnop"[i : i + 3] for i in range(14)], keep="a")
    plain = order.elimination_order(p, order.min_fill)
    jittered = {tuple(order.elimination_order(p, order.min_fill, random.Random(i))) for i in range(10)}
    assert len(jittered) > 1
    assert all(sorted(o) == sorted(plain) for o in jittered)


@pytest.mark.parametrize("size", [2, 3, 7])
def test_equal_lengths_have_the_same_sizes_as_others(size):
    rng = random.Random(0)
    equal = Problem([], [], [str(i) for i in range(80)], [size] * 80, keep=0)
    mixed = Problem([], [], [str(i) for i in range(81)], [size] * 80 + [5], keep=0)
    assert (equal.uniform, mixed.uniform) == (True, False)
    for mask in (0, *(rng.getrandbits(80) for _ in range(50))):
        assert equal.size(mask) == mixed.size(mask)

"""The long search for plans that are dear: compiled annealing."""

import random

import pytest

from tacit.compiler.order import search
from tacit.compiler.order.long_search import annealed, long_search
from tacit.compiler.order.tree import Problem, Tree
from tacit.compiler.planners import searching


def problem(soft: bool) -> Problem:
    """Factors of two and three of 80 axes, more than a word has bits, of different lengths."""
    rng = random.Random(5)
    masks = [sum(1 << i for i in rng.sample(range(80), rng.choice((2, 3)))) for _ in range(130)]
    softs = [soft and rng.random() < 0.3 for _ in masks]
    return Problem(masks, softs, [f"x{i}" for i in range(80)], [2 + i % 3 for i in range(80)], keep=0b1001)


@pytest.mark.parametrize("soft", [False, True])
def test_annealing_finds_cheaper_plans_of_the_same_product(soft: bool) -> None:
    asked = problem(soft)
    path = search.by_elimination(asked, search.elimination_order(asked, search.min_fill))
    before = Tree(asked, path)
    cost, found = annealed(asked, path, 20_000, 0.1, seed=1)
    after = Tree(asked, found)
    assert cost == after.total < before.total
    assert after.out[after.root] == before.out[before.root]
    assert sorted(i for pair in found for i in pair) == list(range(2 * len(asked.masks) - 2))
    assert annealed(asked, path, 20_000, 0.1, seed=1) == (cost, found)
    assert annealed(asked, path, 20_000, 0.1, seed=2)[1] != found


def test_the_search_ends_when_a_plan_is_good_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.compiler.order.long_search.SHORT", 100)
    monkeypatch.setattr("tacit.compiler.order.long_search.LONG", 2000)
    asked = problem(False)
    path = search.by_elimination(asked, search.elimination_order(asked, search.min_fill))
    first = long_search(asked, [path, path], enough=float("inf"))
    assert long_search(asked, [path, path], enough=0.0)[0] < first[0]


def test_dear_plans_are_searched_for_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(False)
    usual = Tree(asked, search.search(asked)).total
    monkeypatch.setattr(search, "DEAR", 0.0)
    monkeypatch.setattr(search, "DEAR_START", 0.0)
    longer = Tree(asked, search.search(asked)).total
    assert longer < 1.2 * usual
    asked.hard = 1 << 79  # where tables are indexed changes with the order, which the kernel does not know
    monkeypatch.setattr(search, "long_search", None)
    search.search(asked)


def test_where_there_is_no_time_for_it_there_is_no_long_search(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = problem(False)
    monkeypatch.setattr(search, "DEAR", 0.0)
    monkeypatch.setattr(search, "DEAR_START", 0.0)
    monkeypatch.setattr(search, "long_search", None)
    searching("auto", patience=1.0)(asked)
    with pytest.raises(TypeError, match="not callable"):
        searching("auto", patience=60.0)(asked)

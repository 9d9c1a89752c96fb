"""Plans that need no search: the best one for few factors, and orders that add no edge for very many."""

from __future__ import annotations

import heapq
from itertools import combinations, product
from typing import NamedTuple

from tacit.compiler.order.tree import Path, Problem, bits, union_of


class _Best(NamedTuple):
    """The cheapest product of a set of factors: its cost, its axes, and the two halves it is made of."""

    cost: float
    out: int
    halves: tuple[_Key, _Key] | None


_Key = tuple[int, bool]  # a set of factors, and whether their product is soft


def cheapest_path(problem: Problem) -> Path:
    """The cheapest plan of all, by dynamic programming over sets of factors: 3^n / 2 pairs of sets.

    What a product costs depends on its two operands' axes and softness alone, and these on which factors are in
    them: so one best product of each set, soft or not, is enough.
    """
    best: dict[_Key, _Best] = {}
    for i, (mask, soft) in enumerate(zip(problem.masks, problem.soft, strict=True)):
        best[1 << i, soft] = _Best(0.0, mask & ~problem.hard if soft else mask, None)
    everything = (1 << len(problem.masks)) - 1
    for group in range(1, everything + 1):
        outside = union_of(problem.masks[i] for i in bits(everything & ~group))
        wanted = problem.keep | problem.hard | outside
        rest = part = group ^ (1 << (group.bit_length() - 1))
        while part:  # every subset of the group without its highest element
            _improve(problem, best, group ^ part, part, wanted)
            part = (part - 1) & rest
    last = min((key for key in best if key[0] == everything), key=lambda key: (best[key].cost, key))
    return _as_path(best, last, len(problem.masks))


def _improve(problem: Problem, best: dict[_Key, _Best], a: int, b: int, wanted: int) -> None:
    """Note the product of the sets a and b, where it is the cheapest of their union so far."""
    for soft_a, soft_b in product((False, True), repeat=2):
        left, right = best.get((a, soft_a)), best.get((b, soft_b))
        if left is None or right is None:
            continue
        union, soft = problem.meet(left.out, soft_a, right.out, soft_b)
        out = union & wanted
        cost = left.cost + right.cost + problem.cost(union, out, soft)
        cheapest = best.get((a | b, soft))
        if cheapest is None or cost < cheapest.cost:
            best[a | b, soft] = _Best(cost, out, ((a, soft_a), (b, soft_b)))


def _as_path(best: dict[_Key, _Best], last: _Key, leaves: int) -> Path:
    path: Path = []

    def node(key: _Key) -> int:
        halves = best[key].halves
        if halves is None:
            return key[0].bit_length() - 1
        path.append((node(halves[0]), node(halves[1])))
        return leaves + len(path) - 1

    node(last)
    return path


def perfect_order(problem: Problem) -> list[int] | None:
    """An elimination order that joins no two axes which no factor joins; None if there is none.

    Its clusters are cliques of the graph, which every plan must hold: no other order has smaller ones. Found by
    maximum cardinality search, in time about linear in the size of the factors (Tarjan and Yannakakis, 1984).
    """
    around = neighbours(problem)
    visited = _maximum_cardinality(around, bits(problem.keep & ~problem.hard))
    place = {axis: i for i, axis in enumerate(visited)}
    for axis in visited:
        earlier = [other for other in around[axis] if place[other] < place[axis]]
        if earlier:
            last = max(earlier, key=place.__getitem__)
            if any(other != last and other not in around[last] for other in earlier):
                return None
    return [axis for axis in reversed(visited) if not problem.keep >> axis & 1]


def neighbours(problem: Problem) -> dict[int, set[int]]:
    """The axes that meet in some factor, or in the result. Observed axes are indices, and no part of it."""
    around: dict[int, set[int]] = {}
    for mask in (*problem.masks, problem.keep):
        axes = bits(mask & ~problem.hard)
        for axis in axes:
            around.setdefault(axis, set())
        for a, b in combinations(axes, 2):
            around[a].add(b)
            around[b].add(a)
    return around


def _maximum_cardinality(around: dict[int, set[int]], first: list[int]) -> list[int]:
    """Every axis once: those in `first`, then always one with the most neighbours among the axes before it."""
    seen: dict[int, None] = {}
    weight = dict.fromkeys(around, 0)
    heap = [(0, axis) for axis in sorted(around)]
    waiting = first[::-1]
    while waiting or heap:
        if waiting:
            axis = waiting.pop()
        else:
            negative, axis = heapq.heappop(heap)
            if axis in seen or -negative != weight[axis]:
                continue
        seen[axis] = None
        for other in around[axis]:
            if other not in seen:
                weight[other] += 1
                heapq.heappush(heap, (-weight[other], other))
    return list(seen)

"""Functions in copies: the factor of a known function may stand more than once in a product.

If x = f(u), then the sum over x of [x = f(u)] g(x) h(x) is g(f(u)) h(f(u)): the sum of [x = f(u)] g(x), times that of
[x = f(u)] h(x). So each of the factors that hold x can have a copy of the function, and an axis of its own for x, and x
need not be carried from one to the other. Where a node has many children this may bring a wide network down to the
width of the arguments (Darwiche, "An Advance on Variable Elimination", ECAI 2020).

Which factors share a copy is settled by a quick elimination, cheapest axis first. It only says which copies there are;
the order in which they are multiplied is then searched as always.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations, count
from typing import NamedTuple

from tacit.compiler.order.tree import Problem, bits, union_of
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.model.cpt import CPT
from tacit.model.model import Model
from tacit.model.rules import FunctionCPT

MAX_LEAVES = 20_000  # factors with all copies
MAX_COMPARED = 16  # groups up to which all pairs are compared
MIN_SAVING = 3  # times less work than without copies: both are rough estimates

Names = tuple[tuple[int, int], ...]  # axes that have another name in a copy: axis, number of the name
Leaf = tuple[int, Names]  # a factor, by its place in the problem


class Copies(NamedTuple):
    """The factors of a problem, some of them several times, and an order in which to eliminate axes, by any name."""

    leaves: list[Leaf]
    order: list[int]


def can_copy(net: Model, pruned: Pruned, question: Question) -> bool:
    """Whether some node is a known function that is used twice, and copies of it disturb nobody."""
    # a traceback needs one axis for each variable; derivatives by what stands there twice are not the network's
    if question.best or question.every_node or question.every_state:
        return False
    uses = Counter(parent for name in pruned.nodes for parent in net.parents(name))
    uses.update(question.soft)
    return any(uses[name] > 1 and known_function(net, name) for name in pruned.nodes)


def known_function(net: Model, name: str) -> bool:
    """Whether a node is a function of its parents that is known and stays: every entry of its table is 0 or 1."""
    cpt = net.cpt(name)
    if not isinstance(cpt, CPT | FunctionCPT) or getattr(cpt, "learn", False) or not net.parents(name):
        return False
    return all(bool(((table == 0) | (table == 1)).all()) for table in cpt.parts().values())


@dataclass(frozen=True)
class _Product:
    """A product of factors, some of them copies, over the axes of a mask."""

    mask: int
    soft: bool
    leaves: tuple[Leaf, ...]


def copies(problem: Problem, functions: Mapping[int, int]) -> Copies | None:
    """The factors with copies, if these save much; `functions` gives axes, each with the place of its function."""
    fixed = problem.keep | problem.hard
    functions = {axis: place for axis, place in functions.items() if not fixed >> axis & 1}
    if not functions:
        return None
    copying = _QuickElimination(problem, functions)
    copying.run()
    if not copying.copied:
        return None
    plain = _QuickElimination(problem, {})
    plain.run(limit=MIN_SAVING * copying.work)
    return Copies(copying.leaves, copying.order) if plain.work >= MIN_SAVING * copying.work else None


class _QuickElimination:
    """All axes eliminated, cheapest first, which gives the work that this takes, and the copies that were made."""

    def __init__(self, problem: Problem, functions: Mapping[int, int]) -> None:
        self.problem, self.work, self.copied = problem, 0.0, False
        self.order: list[int] = []
        self._names, self._numbers = count(1), count()
        self._parts: dict[int, _Product] = {}
        self._holders: list[set[int]] = [set() for _ in problem.sizes]
        for i, (mask, soft) in enumerate(zip(problem.masks, problem.soft, strict=True)):
            self._add(_Product(mask & ~problem.hard, soft or bool(mask & problem.hard), ((i, ()),)))
        self._definition = dict(functions)  # axis -> part, as long as that is nothing but the function
        self._defined = {part: axis for axis, part in functions.items()}
        self._leaves = len(problem.masks)

    @property
    def leaves(self) -> list[Leaf]:
        """All factors and copies, in which every axis keeps its own name in one place."""
        leaves = [leaf for part in self._parts.values() for leaf in part.leaves]
        own = dict(reversed([pair for _, names in leaves for pair in names]))  # the first name of each axis
        return [(factor, tuple(pair for pair in names if own[pair[0]] != pair[1])) for factor, names in leaves]

    def run(self, limit: float = math.inf) -> None:
        """Eliminate until nothing is left, or until it takes more work than the limit."""
        keep = self.problem.keep | self.problem.hard
        current = {v: self._cost(v) for v, parts in enumerate(self._holders) if parts and not keep >> v & 1}
        heap = [(cost, v) for v, cost in current.items()]
        heapq.heapify(heap)
        while heap and self.work < limit:
            cost, v = heapq.heappop(heap)
            if current.get(v) != cost:
                continue
            del current[v]
            around = union_of(self._parts[part].mask for part in self._holders[v])
            self._eliminate(v)
            for u in bits(around):
                if u in current and (new := self._cost(u)) != current[u]:
                    current[u] = new
                    heapq.heappush(heap, (new, u))

    def _add(self, part: _Product) -> int:
        number = next(self._numbers)
        self._parts[number] = part
        for axis in bits(part.mask):
            self._holders[axis].add(number)
        return number

    def _remove(self, number: int) -> _Product:
        part = self._parts.pop(number)
        for axis in bits(part.mask):
            self._holders[axis].discard(number)
        if number in self._defined:
            del self._definition[self._defined.pop(number)]
        return part

    def _cost(self, v: int) -> float:
        """What it takes to eliminate an axis in one row, also where none is needed: else functions would go first."""
        return sum(self.problem.size(self._product([*group, *self._function(v)])[0]) for group in self._groups(v))

    def _price(self, group: Iterable[int], v: int) -> float:
        mask, soft = self._product([*group, *self._function(v)])
        return self.problem.cost(mask, mask & ~(1 << v), soft)

    def _product(self, group: Iterable[int]) -> tuple[int, bool]:
        parts = [self._parts[number] for number in group]
        return union_of(part.mask for part in parts), any(part.soft for part in parts)

    def _function(self, v: int) -> list[int]:
        """The part that says how an axis follows from others, if it still does."""
        return [self._definition[v]] if v in self._definition else []

    def _groups(self, v: int) -> list[list[int]]:
        """The parts that hold an axis, in groups to have a copy of its function each; other functions stay alone."""
        function = self._function(v)
        others = sorted(self._holders[v].difference(function))
        size = sum(len(self._parts[number].leaves) for number in function)
        if not function or len(others) < 2 or self._leaves + size * len(others) > MAX_LEAVES:
            return [others]
        alone = [[number] for number in others if number in self._defined]
        alike: dict[int, list[int]] = {}
        for number in others:
            if number not in self._defined:
                alike.setdefault(self._parts[number].mask, []).append(number)
        return alone + self._joined(list(alike.values()), v)

    def _joined(self, groups: list[list[int]], v: int) -> list[list[int]]:
        """Groups, two of them joined as long as that costs less."""
        if len(groups) > MAX_COMPARED:
            return groups
        while len(groups) > 1:
            gain, a, b = max(
                (self._price(groups[a], v) + self._price(groups[b], v) - self._price(groups[a] + groups[b], v), a, b)
                for a, b in combinations(range(len(groups)), 2)
            )
            if gain <= self.problem.cost(0, 0, False):  # what a step costs by itself is always saved
                break
            groups[a] = groups[a] + groups.pop(b)
        return groups

    def _eliminate(self, v: int) -> None:
        groups, place = self._groups(v), self._definition.get(v)
        self.order.append(v)
        self.work += sum(self._price(group, v) for group in groups)
        function = None if place is None else self._remove(place)
        self.copied |= len(groups) > 1
        self._leaves += 0 if function is None else (len(groups) - 1) * len(function.leaves)
        for group in groups:
            self._replace(group, v, function)

    def _replace(self, group: list[int], v: int, function: _Product | None) -> None:
        """Multiply parts, and a copy of a function that gives an axis a new name, and sum the axis out."""
        mask, soft = self._product(group)
        defined = self._defined.get(group[0]) if function is not None and len(group) == 1 else None
        leaves = [leaf for number in group for leaf in self._remove(number).leaves]
        if function is not None:
            mask, soft, name = mask | function.mask, soft or function.soft, next(self._names)
            new = {old: next(self._names) for old in {old for _, names in function.leaves for _, old in names}}
            leaves += [(i, tuple((axis, new[old]) for axis, old in names)) for i, names in function.leaves]
            holds = [self.problem.masks[factor] >> v & 1 for factor, _ in leaves]
            leaves = [(i, (*names, (v, name)) if own else names) for (i, names), own in zip(leaves, holds, strict=True)]
        number = self._add(_Product(mask & ~(1 << v), soft, tuple(leaves)))
        if defined is not None:  # a function of a function
            self._definition[defined], self._defined[number] = number, defined

"""Mini-buckets: variables are eliminated one by one, and tables that would be too large are split into several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.compiler.order.search import elimination_order, min_fill
from tacit.compiler.order.tree import Problem, mask_of

Scope = tuple[int, ...]  # variables by their places in the order of elimination, increasing


@dataclass(frozen=True)
class MiniBucket:
    """Some tables that are multiplied; then the first variable of their scope is summed out.

    `inputs` are numbers of tables: those of the factors come first, then one message of each mini-bucket.
    """

    scope: Scope
    inputs: tuple[int, ...]


@dataclass(frozen=True)
class Bucket:
    """All that has one variable when it is eliminated.

    Attributes
    ----------
    measure
        The tables of this variable alone. They weigh its states in every mini-bucket, as likelihoods do, so that
        splitting loses nothing where they leave a single state.
    parts
        The mini-buckets, by number. One of them is exact; several bound their product.
    shared
        The scope that all of them have in common: functions of it may be moved from one to another.
    """

    measure: tuple[int, ...]
    parts: range
    shared: Scope


@dataclass(frozen=True)
class Plan:
    """An order of elimination, and the mini-buckets of each variable.

    `scalars` are the tables without variables: the logarithms of all of them add up to the result.
    """

    order: tuple[str, ...]
    cards: tuple[int, ...]
    scopes: tuple[Scope, ...]  # of the factors
    buckets: tuple[Bucket, ...]
    parts: tuple[MiniBucket, ...]
    scalars: tuple[int, ...]

    @property
    def exact(self) -> bool:
        """Whether no bucket is split."""
        return len(self.parts) == len(self.buckets)

    @property
    def largest(self) -> int:
        """The number of entries of the largest table."""
        return max((self.size(part.scope) for part in self.parts), default=1)

    @property
    def entries(self) -> int:
        """The number of entries of all tables together."""
        return sum(self.size(part.scope) for part in self.parts) or 1

    def size(self, scope: Scope) -> int:
        """The number of entries over some variables."""
        return math.prod(self.cards[place] for place in scope)

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """How many states some variables have."""
        return tuple(self.cards[place] for place in scope)


def plan_of(
    cards: Mapping[str, int], scopes: Sequence[Sequence[str]], size: float, order: Sequence[str] | None = None
) -> Plan:
    """A plan whose tables have at most `size` entries, but where a factor alone has more.

    The order is min-fill, if none is given.

    >>> plan = plan_of({"A": 2, "B": 2, "C": 2}, [("A", "B"), ("B", "C"), ("A", "C")], 4)
    >>> [len(bucket.parts) for bucket in plan.buckets], plan.exact
    ([2, 1, 1], False)
    """
    order = _order(cards, scopes) if order is None else tuple(order)
    place = {name: i for i, name in enumerate(order)}
    ordered = tuple(tuple(sorted(place[name] for name in scope)) for scope in scopes)
    planner = _Planner(tuple(cards[name] for name in order), ordered, size)
    buckets = tuple(planner.eliminate(v) for v in range(len(order)))
    return Plan(order, planner.cards, ordered, buckets, tuple(planner.parts), tuple(planner.scalars))


def _order(cards: Mapping[str, int], scopes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Min-fill; variables without a factor first."""
    names = list(cards)
    axes = {name: i for i, name in enumerate(names)}
    masks = [mask_of(axes[name] for name in scope) for scope in scopes]
    problem = Problem(masks, [True] * len(masks), names, list(cards.values()), keep=0)
    places = elimination_order(problem, min_fill)
    return tuple(names[i] for i in (*sorted(set(axes.values()) - set(places)), *places))


class _Planner:
    def __init__(self, cards: tuple[int, ...], scopes: Sequence[Scope], size: float) -> None:
        self.cards, self.limit = cards, size
        self.parts: list[MiniBucket] = []
        self.scalars: list[int] = []
        self._factors = len(scopes)
        self._waiting: list[list[tuple[int, Scope]]] = [[] for _ in cards]
        for number, scope in enumerate(scopes):
            self._put(number, scope)

    def eliminate(self, v: int) -> Bucket:
        tables = self._waiting[v]
        measure = tuple(number for number, scope in tables if len(scope) == 1)
        first = len(self.parts)
        self.parts += self._split(v, [(number, scope) for number, scope in tables if len(scope) > 1])
        parts = range(first, len(self.parts))
        for i in parts:
            self._put(self._factors + i, self.parts[i].scope[1:])
        common = set.intersection(*(set(self.parts[i].scope) for i in parts))
        return Bucket(measure, parts, tuple(sorted(common)))

    def _put(self, number: int, scope: Scope) -> None:
        if scope:
            self._waiting[scope[0]].append((number, scope))
        else:
            self.scalars.append(number)

    def _split(self, v: int, tables: Sequence[tuple[int, Scope]]) -> list[MiniBucket]:
        """Large tables first, each to where it makes the table larger by the least factor."""
        scopes: list[set[int]] = []
        inputs: list[list[int]] = []
        for number, scope in sorted(tables, key=lambda table: (-self._size(table[1]), table[0])):
            fitting = [i for i, held in enumerate(scopes) if self._fits(held, scope)]
            if not fitting:
                scopes.append(set())
                inputs.append([])
                fitting = [len(scopes) - 1]
            best = min(fitting, key=lambda i: (self._size(set(scope) - scopes[i]), -len(scopes[i]), i))
            scopes[best] |= set(scope)
            inputs[best].append(number)
        if not scopes:
            return [MiniBucket((v,), ())]
        return [MiniBucket(tuple(sorted(s)), tuple(sorted(i))) for s, i in zip(scopes, inputs, strict=True)]

    def _fits(self, held: set[int], scope: Scope) -> bool:
        union = held | set(scope)
        return self._size(union) <= self.limit or len(union) == max(len(held), len(scope))

    def _size(self, scope: set[int] | Scope) -> int:
        return math.prod(self.cards[place] for place in scope)

"""Windows: a part of a question's factors around a variable, which bounds its posterior whatever the rest says.

Let some factors be in the window, and all factors of the variables in its interior. Then the posterior of an interior
variable is a mixture of its distributions given the states of the boundary, the other variables of the window: the rest
of the question only decides the weights. The extremes over the states of the boundary hold for every row, soft evidence
included. Nothing global enters, and far boundaries say little.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tacit.bounds.factor_list import FactorList


@dataclass(frozen=True)
class Window:
    """Some factors of a question, by their places in its list.

    `interior` has the variables all of whose factors are in the window: the query, then the others in the order in
    which they are summed out. `boundary` has the other ones; variables with a state in every row are in neither.
    Factors that are too large are `relaxed`: some of their variables, which are named, may have any state.
    """

    query: str
    interior: tuple[str, ...]
    boundary: tuple[str, ...]
    factors: tuple[int, ...]
    relaxed: tuple[tuple[int, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class Surroundings:
    """Where windows grow: the factors of a question, some of which may not count, and what each row knows for sure.

    `settled` variables have a state in every row, which cuts all ties that go through them. `barren` factors sum to 1
    over a variable that nothing else tells about, and are left out. Of factors that are `relaxed`, some variables are
    left out: whatever their states are, the factor is between its extremes over them, up to a scale. They are never
    summed out, since the scale is different in each of these states.
    """

    factors: FactorList
    settled: frozenset[str] = frozenset()
    barren: frozenset[int] = frozenset()
    relaxed: tuple[tuple[int, tuple[str, ...]], ...] = ()

    @cached_property
    def left_out(self) -> Mapping[int, tuple[str, ...]]:
        """The variables that each relaxed factor is without."""
        return dict(self.relaxed)

    @cached_property
    def kept_out(self) -> frozenset[str]:
        """The variables that some factor is without: none of them can be in the interior of a window."""
        return frozenset(name for _, names in self.relaxed for name in names)

    @cached_property
    def scopes(self) -> tuple[tuple[str, ...], ...]:
        """The variables of each factor whose states are open."""
        return tuple(
            tuple(n for n in factor.scope if n not in self.settled and n not in self.left_out.get(place, ()))
            for place, factor in enumerate(self.factors.factors)
        )

    @cached_property
    def places(self) -> Mapping[str, tuple[int, ...]]:
        """The factors of each variable."""
        places: dict[str, list[int]] = {name: [] for name in self.factors.cards}
        for place, scope in enumerate(self.scopes):
            if place not in self.barren:
                for name in scope:
                    places[name].append(place)
        return {name: tuple(own) for name, own in places.items()}

    @cached_property
    def excluding(self) -> frozenset[int]:
        """The factors that rule some states out."""
        return frozenset(i for i, factor in enumerate(self.factors.factors) if (factor.high == 0).any())

    def size(self, names: Iterable[str]) -> int:
        """How many joint states some variables have."""
        return math.prod(self.factors.cards[name] for name in names)

    def start(self, query: str) -> Window:
        """The smallest window around a variable."""
        return self._absorbed(Window(query, (), (query,), (), self.relaxed), query)

    def without(self, barren: frozenset[int]) -> Surroundings:
        """These without some more factors. What does not change is not worked out again: there may be many of them."""
        new = replace(self, barren=self.barren | barren)
        places = {name: tuple(i for i in own if i not in barren) for name, own in self.places.items()}
        vars(new).update(scopes=self.scopes, excluding=self.excluding, places=places)
        return new

    def relax(self, relaxed: tuple[tuple[int, tuple[str, ...]], ...]) -> Surroundings:
        """These, of whose factors none was relaxed, with some that are."""
        new, scopes, places = replace(self, relaxed=relaxed), list(self.scopes), dict(self.places)
        for place, names in relaxed:
            scopes[place] = tuple(name for name in scopes[place] if name not in names)
            places |= {name: tuple(i for i in places[name] if i != place) for name in names}
        vars(new).update(scopes=tuple(scopes), excluding=self.excluding, places=places)
        return new

    def small_enough(self, query: str, most: int) -> Surroundings:
        """These, with factors of a variable relaxed so far that its smallest window has a table of so many entries."""
        names = sorted(set(self.start(query).boundary), key=lambda n: (-len(self.places[n]), n))
        left_out: dict[int, tuple[str, ...]] = {}
        while names and self.size({query, *names}) > most:
            name = names.pop()  # what has few factors is easily left out
            left_out |= {i: (*left_out.get(i, ()), name) for i in self.places[query] if name in self.scopes[i]}
        return self.relax(tuple(sorted(left_out.items()))) if left_out else self

    def grown(self, window: Window, name: str) -> Window:
        """A window whose interior has a variable of the boundary, too, with all its factors."""
        return self._absorbed(window, name)

    def cost(self, window: Window, name: str) -> int:
        """The entries of the table from which a variable is summed out when it is absorbed: multiply-adds of a row."""
        return self.size({window.query, *window.boundary, *self._beside(window, name)})

    def growth(self, window: Window, name: str) -> int:
        """How many states the boundary would have if a variable were absorbed."""
        return self.size({*window.boundary, *self._beside(window, name)} - {name, window.query})

    def _beside(self, window: Window, name: str) -> set[str]:
        """The variables that share a factor with a variable, but for the interior."""
        return {n for place in self.places[name] for n in self.scopes[place]}.difference(window.interior)

    def _absorbed(self, window: Window, name: str) -> Window:
        interior = (*window.interior, name)
        new = [place for place in self.places[name] if place not in window.factors]
        boundary = [n for n in window.boundary if n != name]
        boundary += sorted({n for place in new for n in self.scopes[place]}.difference(boundary, interior))
        # factors among the boundary alone change nothing but which of its states are possible
        known, inside = {*window.factors, *new}, {*boundary, *interior}
        beside = {place for n in boundary for place in self.places[n]} - known
        new += sorted(place for place in beside & self.excluding if inside.issuperset(self.scopes[place]))
        return Window(window.query, interior, tuple(boundary), (*window.factors, *new), self.relaxed)

"""Regions beyond the boundary of a window: what they say about it at least, whatever is beyond them in turn.

A region has all factors outside of the window of some variables of the boundary. Given what is beyond the region, its
message to these variables is one of few, so all messages lie above the smallest share that each of their states can
have. The window then need not fear every state of these variables, but only the corners of what is above. Regions share
no factors; where they meet, the variable between them is left to the window, as if nothing were known of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tacit.bounds.windows import Surroundings, Window

MAX_INSIDE = 8  # joint states of what a region speaks about: for each, the window has a corner
INWARD = 2  # how much more a state counts there than one beyond


@dataclass(frozen=True)
class Region:
    """Some factors beyond a window.

    `speaks_of` has the variables of the boundary all of whose factors are in the window or here, `given` other ones of
    the boundary, and `beyond` the variables that yet other factors have.
    """

    factors: tuple[int, ...]
    speaks_of: tuple[str, ...]
    given: tuple[str, ...]
    beyond: tuple[str, ...]


def shortened(surroundings: Surroundings, window: Window, states: int) -> Window:
    """The part of a window, as it grew, whose boundary has so many joint states at most; its beginning at least."""
    part = surroundings.start(window.query)
    for name in window.interior[1:]:
        larger = surroundings.grown(part, name)
        if surroundings.size(larger.boundary) > states:
            break
        part = larger
    return part


def regions_around(surroundings: Surroundings, window: Window, entries: int) -> tuple[Region, ...]:
    """Regions that share no factors, each of so many joint states at most."""
    taken, regions = set(window.factors), list[Region]()
    for name in window.boundary:
        factors = () if name in surroundings.kept_out else _new(surroundings, name, window.factors)
        if factors and taken.isdisjoint(factors):
            region = _grown(surroundings, window, factors, taken, entries)
            if region is not None:
                taken.update(region.factors)
                regions.append(region)
    return tuple(regions)


def _grown(
    surroundings: Surroundings, window: Window, factors: tuple[int, ...], taken: set[int], entries: int
) -> Region | None:
    """A region that begins with some factors and takes in those of what is near; None if it is too large."""
    region = _region(surroundings, window, factors)
    if _weight(surroundings, region) > math.log2(entries):
        return None
    while True:
        larger = []
        for near in (*region.speaks_of, *region.given, *region.beyond):
            new = _new(surroundings, near, (*window.factors, *region.factors))
            if new and not taken.intersection(new):
                grown = _region(surroundings, window, (*region.factors, *new))
                if _fits(surroundings, grown, entries):
                    larger.append(grown)
        if not larger:
            return region
        region = min(larger, key=lambda grown: _weight(surroundings, grown, INWARD))


def _new(surroundings: Surroundings, name: str, known: Sequence[int]) -> tuple[int, ...]:
    """The factors of a variable that are not known yet."""
    return tuple(place for place in surroundings.places[name] if place not in known)


def _region(surroundings: Surroundings, window: Window, factors: tuple[int, ...]) -> Region:
    scope = dict.fromkeys(n for place in factors for n in surroundings.scopes[place])
    own = {*window.factors, *factors}
    outer = [name for name in scope if name in window.boundary]
    closed = {n for n in scope if n not in surroundings.kept_out and own.issuperset(surroundings.places[n])}
    speaks_of = tuple(name for name in outer if name in closed)
    given = tuple(name for name in outer if name not in closed)
    beyond = tuple(name for name in scope if name not in outer and name not in closed)
    return Region(factors, speaks_of, given, beyond)


def _fits(surroundings: Surroundings, region: Region, entries: int) -> bool:
    inside = surroundings.size(region.speaks_of)
    return inside <= MAX_INSIDE and inside * surroundings.size((*region.given, *region.beyond)) <= entries


def _weight(surroundings: Surroundings, region: Region, inward: int = 1) -> float:
    """The logarithm of a region's joint states, of which those of the boundary count several times."""
    near, far = surroundings.size((*region.speaks_of, *region.given)), surroundings.size(region.beyond)
    return inward * math.log2(near) + math.log2(far)

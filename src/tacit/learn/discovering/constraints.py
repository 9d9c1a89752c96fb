"""What a user knows of a structure: edges that must be there, or must not; tiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TacitError
from tacit.base.text import shown
from tacit.model.elements.variable import similar
from tacit.model.graph import in_topological_order

Mask = NDArray[np.bool_]
Edge = tuple[str, str]


@dataclass(frozen=True, eq=False)
class Constraints:
    """Matrices [parent, child] of the edges that are allowed, and of those that must be there."""

    allowed: Mask
    required: Mask


def constraints(
    names: Sequence[str],
    tiers: Sequence[Sequence[str]] | None = None,
    forbid: Iterable[Edge] = (),
    require: Iterable[Edge] = (),
) -> Constraints:
    """Check constraints against each other; an error names those that cannot both hold."""
    place = {name: i for i, name in enumerate(names)}
    allowed = ~np.eye(len(names), dtype=bool)
    tier = _tiers(names, tiers)
    for a in names:
        for b in names:
            if a in tier and b in tier and tier[a] > tier[b]:
                allowed[place[a], place[b]] = False
    forbidden = list(checked_edges("forbid", forbid, place))
    for a, b in forbidden:
        allowed[place[a], place[b]] = False
    required = np.zeros_like(allowed)
    for a, b in checked_edges("require", require, place):
        if (a, b) in forbidden:
            raise TacitError(f"the edge {a!r} -> {b!r} is both required and forbidden")
        if required[place[b], place[a]]:
            raise TacitError(f"the edge between {a!r} and {b!r} is required in both directions; expected one of them")
        if not allowed[place[a], place[b]]:
            raise TacitError(f"the edge {a!r} -> {b!r} is required, but tiers= has {b!r} before {a!r}")
        required[place[a], place[b]] = True
        allowed[place[b], place[a]] = False
    try:
        in_topological_order({b: [a for a in names if required[place[a], place[b]]] for b in names})
    except (CycleError, TacitError):
        cycle = ", ".join(f"{names[a]!r} -> {names[b]!r}" for a, b in np.argwhere(required))
        raise TacitError(f"the required edges form a cycle: {cycle}") from None
    return Constraints(allowed, required)


def is_cyclic(edges: Mask) -> bool:
    """Whether some path leads back to where it began."""
    reach = edges.copy()
    for middle in range(len(reach)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return bool(reach.diagonal().any())


def checked_edges(option: str, edges: Iterable[Any], place: Mapping[str, int]) -> Iterator[Edge]:
    """The edges of an option, whose names are all columns."""
    if isinstance(edges, str):
        raise TacitError(f"{option} is {shown(edges)}, expected pairs (parent, child)")
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise TacitError(f"{option} has {shown(edge)}, expected pairs (parent, child)")
        for name in edge:
            if not isinstance(name, str) or name not in place:
                near = similar(name, place) if isinstance(name, str) else ""
                raise TacitError(f"{option} names {name!r}, which is not a column{near}")
        if edge[0] == edge[1]:
            raise TacitError(f"{option} has an edge from {edge[0]!r} to itself")
        yield edge[0], edge[1]


def _tiers(names: Sequence[str], tiers: Sequence[Sequence[str]] | None) -> dict[str, int]:
    """The number of each column's tier; columns without one may be anywhere."""
    tier: dict[str, int] = {}
    whole: Any = () if tiers is None else tiers
    if isinstance(whole, str | Mapping) or not all(isinstance(one, str | Sequence) for one in whole):
        raise TacitError(f"tiers is {shown(tiers)}, expected groups of columns, earliest first: [['a', 'b'], ['c']]")
    for number, members in enumerate(whole):
        for name in [members] if isinstance(members, str) else members:
            if name not in names:
                raise TacitError(f"tiers names {name!r}, which is not a column{similar(name, names)}")
            if name in tier:
                raise TacitError(f"tiers names {name!r} twice")
            tier[name] = number
    return tier

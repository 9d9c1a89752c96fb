"""What takes part when the tables of testing nodes are selected.

A selection is the marginal of a testing node's parents, given the evidence that it sees. Its factors are those of the
node's proper ancestors and, where selection is general, of all evidence that is neither at nor below a testing node
which is no ancestor, with the ancestors of that evidence. Evidence that has nothing to do with the parents is left out:
it would only scale their marginal. Sets of nodes are bit masks over the nodes of a query, parents first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tacit.compiler.order.tree import bits, mask_of
from tacit.model.model import Model


def taking_part(net: Model, nodes: Sequence[str], evidence: Iterable[str], known: Collection[str]) -> dict[str, int]:
    """For every testing node, the nodes whose factors make the marginal of its parents.

    `known` are the variables with one state in each row: they connect nothing.
    """
    position = {name: i for i, name in enumerate(nodes)}
    families = [mask_of(position[n] for n in (name, *net.parents(name))) for name in nodes]
    above = _ancestries(families)
    testing = mask_of(position[name] for name in nodes if net.cpt(name).testing)
    proper = {i: above[i] & ~(1 << i) for i in bits(testing)}
    if net.selection == "ancestral":
        return {nodes[i]: mask for i, mask in proper.items()}
    closed = mask_of(position[name] for name in known if name in position)
    frontiers = _frontiers(families, testing)
    sight = _Sight(frontiers, above, [position[name] for name in evidence if name in position])
    part: dict[int, int] = {}
    for i, ancestors in proper.items():
        nearest = _union(frontiers[p] for p in bits(families[i] & ~(1 << i)))
        start = ancestors | _union(part[t] for t in bits(nearest))
        part[i] = _connected(start, sight.of(i, nearest, ancestors) & ~start, families, closed)
    return {nodes[i]: mask for i, mask in part.items()}


def reporting(net: Model, nodes: Sequence[str], reports: Iterable[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """The same for testing nodes that report the posterior of their parents (see `Question`)."""
    position = {name: i for i, name in enumerate(nodes)}
    above = _ancestries([mask_of(position[n] for n in (name, *net.parents(name))) for name in nodes])
    found, known = {}, 0
    for name, new in reports:
        known |= _union(above[position[n]] for n in new if n in position)
        found[name] = known | _union(above[position[n]] for n in net.parents(name))
    return found


def selections_of(net: Model, nodes: Sequence[str], evidence: Collection[str]) -> dict[str, int]:
    """For every node, the testing nodes whose selection it may take part in, as a bit mask."""
    position = {name: i for i, name in enumerate(nodes)}
    families = [mask_of(position[n] for n in (name, *net.parents(name))) for name in nodes]
    testing = mask_of(position[name] for name in nodes if net.cpt(name).testing)
    below = _upwards(families, [testing & (1 << i) for i in range(len(nodes))])
    if net.selection == "ancestral" or not testing:
        return dict(zip(nodes, below, strict=True))
    frontiers = _frontiers(families, testing)
    viewers = [0] * len(nodes)  # of evidence: the testing nodes that see it
    for i in (position[name] for name in evidence if name in position):
        viewers[i] = testing
        for t in bits(frontiers[i]):
            viewers[i] &= below[t]
    shared = _upwards(families, viewers)
    return {name: below[i] | viewers[i] | shared[i] for name, i in position.items()}


def _ancestries(families: Sequence[int]) -> list[int]:
    """Of every node, itself and its ancestors."""
    found: list[int] = []
    for i, family in enumerate(families):
        found.append((1 << i) | _union(found[p] for p in bits(family & ~(1 << i))))
    return found


def _upwards(families: Sequence[int], own: Sequence[int]) -> list[int]:
    """Of every node, what its proper descendants own."""
    found = [0] * len(families)
    for i in reversed(range(len(families))):
        below = found[i] | own[i]
        if below:
            for parent in bits(families[i] & ~(1 << i)):
                found[parent] |= below
    return found


def _frontiers(families: Sequence[int], testing: int) -> list[int]:
    """Of every node, the first testing nodes on the ways up from it: itself, if it is one."""
    found: list[int] = []
    for i, family in enumerate(families):
        own = 1 << i
        found.append(own if testing & own else _union(found[p] for p in bits(family & ~own)))
    return found


class _Sight:
    """What testing nodes see: evidence, with its ancestors. They are asked for ancestors first."""

    def __init__(self, frontiers: Sequence[int], above: Sequence[int], evidence: Iterable[int]) -> None:
        self._behind: dict[int, int] = {}  # by frontier: evidence that is seen from below all of it
        self._at: dict[int, list[int]] = {}  # by testing node: the frontiers that it is part of
        for i in evidence:
            if frontiers[i] not in self._behind:
                for t in bits(frontiers[i]):
                    self._at.setdefault(t, []).append(frontiers[i])
            self._behind[frontiers[i]] = self._behind.get(frontiers[i], 0) | above[i]
        self._found: dict[int, int] = {}

    def of(self, node: int, nearest: int, ancestors: int) -> int:
        """What a testing node sees, given the nearest testing nodes above it, and all its ancestors.

        Right below a single one, only evidence behind that one is new, so that long chains stay linear.
        """
        above = bits(nearest)
        new = self._at.get(above[0], []) if len(above) == 1 else list(self._behind)
        found = _union(self._found[t] for t in above)
        self._found[node] = found | _union(self._behind[f] for f in new if not f & ~ancestors)
        return self._found[node]


def _connected(start: int, others: int, families: Sequence[int], closed: int) -> int:
    """`start` and those of `others` that are linked to it, through families of `others` but for `closed` variables."""
    found, reached, waiting = start, start & ~closed, bits(others)
    while linked := [i for i in waiting if families[i] & reached]:
        found |= mask_of(linked)
        reached |= _union(families[i] for i in linked) & ~closed
        waiting = [i for i in waiting if not found >> i & 1]
    return found


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found

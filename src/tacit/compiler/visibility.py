"""Which nodes take part when the tables of testing nodes are selected.

A selection is the marginal of a testing node's parents, given the evidence that it sees. Its factors are those of the
node's proper ancestors and, where selection is general, of all evidence that is neither at nor below a testing node
which is no ancestor, with the ancestors of that evidence. Evidence that has nothing to do with the parents is left out:
it would only scale their marginal. Sets of nodes are bit masks over the nodes of a query, parents first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from tacit.compiler.order.tree import bits, mask_of, union_of
from tacit.model.model import Model


def selection_scopes(net: Model, nodes: Sequence[str], evidence: Iterable[str], known: Iterable[str]) -> dict[str, int]:
    """For every testing node, the nodes whose factors make its parents' marginal; `known` variables connect nothing."""
    position, families, testing = _graph(net, nodes)
    above = _ancestries(families)
    proper = {i: above[i] & ~(1 << i) for i in bits(testing)}
    if net.selection == "ancestral":
        return {nodes[i]: mask for i, mask in proper.items()}
    closed = mask_of(position[name] for name in known if name in position)
    frontiers = _frontiers(families, testing)
    sight = _Sight(frontiers, above, [position[name] for name in evidence if name in position])
    scopes: dict[int, int] = {}
    for i, ancestors in proper.items():
        nearest = union_of(frontiers[p] for p in bits(families[i] & ~(1 << i)))
        start = ancestors | union_of(scopes[t] for t in bits(nearest))
        scopes[i] = _connected(start, sight.of(i, nearest, ancestors) & ~start, families, closed)
    return {nodes[i]: mask for i, mask in scopes.items()}


def report_scopes(net: Model, nodes: Sequence[str], reports: Iterable[tuple[str, Sequence[str]]]) -> dict[str, int]:
    """The scopes of testing nodes that report the posterior of their parents (see `Question`)."""
    position, families, _ = _graph(net, nodes)
    above, scopes, known = _ancestries(families), {}, 0
    for name, new in reports:
        known |= union_of(above[position[n]] for n in new if n in position)
        scopes[name] = known | union_of(above[position[n]] for n in net.parents(name))
    return scopes


def selections_by_node(net: Model, nodes: Sequence[str], evidence: Collection[str]) -> dict[str, int]:
    """For every node, the testing nodes whose selection it may take part in, as a bit mask."""
    position, families, testing = _graph(net, nodes)
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


def _graph(net: Model, nodes: Sequence[str]) -> tuple[dict[str, int], list[int], int]:
    """The position of every node, its family (the node and its parents), and the testing nodes."""
    position = {name: i for i, name in enumerate(nodes)}
    families = [mask_of(position[n] for n in (name, *net.parents(name))) for name in nodes]
    return position, families, mask_of(i for i, name in enumerate(nodes) if net.cpt(name).testing)


def _ancestries(families: Sequence[int]) -> list[int]:
    """Every node with its ancestors."""
    above: list[int] = []
    for i, family in enumerate(families):
        above.append((1 << i) | union_of(above[p] for p in bits(family & ~(1 << i))))
    return above


def _upwards(families: Sequence[int], marks: Sequence[int]) -> list[int]:
    """The marks of each node's proper descendants."""
    below = [0] * len(families)
    for i in reversed(range(len(families))):
        if passed := below[i] | marks[i]:
            for parent in bits(families[i] & ~(1 << i)):
                below[parent] |= passed
    return below


def _frontiers(families: Sequence[int], testing: int) -> list[int]:
    """The nearest testing nodes above each node: itself, if it is one."""
    frontiers: list[int] = []
    for i, family in enumerate(families):
        own = 1 << i
        frontiers.append(own if testing & own else union_of(frontiers[p] for p in bits(family & ~own)))
    return frontiers


class _Sight:
    """The evidence that testing nodes see, with its ancestors. Nodes are looked at ancestors first."""

    def __init__(self, frontiers: Sequence[int], above: Sequence[int], evidence: Iterable[int]) -> None:
        self._behind: dict[int, int] = {}  # by frontier: evidence that is seen from below all of it
        self._at: dict[int, list[int]] = {}  # by testing node: the frontiers that it is part of
        for i in evidence:
            if frontiers[i] not in self._behind:
                for t in bits(frontiers[i]):
                    self._at.setdefault(t, []).append(frontiers[i])
            self._behind[frontiers[i]] = self._behind.get(frontiers[i], 0) | above[i]
        self._seen: dict[int, int] = {}

    def of(self, node: int, nearest: int, ancestors: int) -> int:
        """What a testing node sees, given the nearest testing nodes above it, and all its ancestors."""
        above = bits(nearest)
        # right below a single one, only evidence behind that one is new: so long chains stay linear
        new = self._at.get(above[0], []) if len(above) == 1 else list(self._behind)
        inherited = union_of(self._seen[t] for t in above)
        self._seen[node] = inherited | union_of(self._behind[f] for f in new if not f & ~ancestors)
        return self._seen[node]


def _connected(start: int, others: int, families: Sequence[int], closed: int) -> int:
    """`start` and those of `others` that are linked to it, through families of `others` but for `closed` variables."""
    connected, reached, waiting = start, start & ~closed, bits(others)
    while linked := [i for i in waiting if families[i] & reached]:
        connected |= mask_of(linked)
        reached |= union_of(families[i] for i in linked) & ~closed
        waiting = [i for i in waiting if not connected >> i & 1]
    return connected

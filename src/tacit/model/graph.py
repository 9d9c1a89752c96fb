"""What can be read off a directed acyclic graph: descendants, Markov blankets, d-separation.

A graph is a mapping from every node to its parents, in an order in which parents come before children. All of
it takes linear time and no recursion.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

Parents = Mapping[str, Sequence[str]]


def descendants(parents: Parents, node: str) -> set[str]:
    """The nodes that a directed path leads to, without the node itself.

    >>> sorted(descendants({"A": [], "B": ["A"], "C": ["B"], "D": []}, "A"))
    ['B', 'C']
    """
    found = {node}
    for other, above in parents.items():
        if not found.isdisjoint(above):
            found.add(other)
    return found - {node}


def markov_blanket(parents: Parents, node: str) -> set[str]:
    """The parents, the children, and the children's other parents.

    >>> sorted(markov_blanket({"A": [], "B": ["A"], "C": [], "D": ["B", "C"], "E": ["D"]}, "B"))
    ['A', 'C', 'D']
    """
    found = set(parents[node])
    for other, above in parents.items():
        if node in above:
            found.update(above, [other])
    return found - {node}


def separated(parents: Parents, a: Collection[str], b: Collection[str], given: Collection[str]) -> bool:
    """Whether every path between `a` and `b` is blocked by `given`; the three are disjoint.

    A ball rolls from `a` along paths that are not blocked (Shachter's Bayes-ball): at most once into each node from
    below, and once from above. A node that is given stops it, but for a collider: there, the ball passes from one
    parent to another exactly if the node or a descendant of it is given.

    >>> collider = {"A": [], "B": [], "C": ["A", "B"], "D": ["C"]}
    >>> separated(collider, {"A"}, {"B"}, ()), separated(collider, {"A"}, {"B"}, {"D"})
    (True, False)
    """
    given, goals = set(given), set(b)
    open_colliders = _with_ancestors(parents, given)
    children = _children(parents)
    seen: set[tuple[str, bool]] = set()
    rolling = [(node, True) for node in a]
    while rolling:
        node, from_below = rolling.pop()
        if (node, from_below) in seen:
            continue
        seen.add((node, from_below))
        if node in goals:
            return False
        if node not in given:
            rolling.extend((child, False) for child in children[node])
        passes_up = node not in given if from_below else node in open_colliders
        if passes_up:
            rolling.extend((parent, True) for parent in parents[node])
    return True


def _with_ancestors(parents: Parents, nodes: Collection[str]) -> set[str]:
    found = set(nodes)
    for node in reversed(list(parents)):
        if node in found:
            found.update(parents[node])
    return found


def _children(parents: Parents) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {node: [] for node in parents}
    for node, above in parents.items():
        for parent in above:
            found[parent].append(node)
    return found

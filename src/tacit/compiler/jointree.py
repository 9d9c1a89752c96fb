"""The jointree view of a plan: clusters of variables in a tree, for inspection, drawing and tests.

Every factor is a leaf cluster, every product an inner one over the axes it runs over. Since an axis is summed
out as soon as no other factor holds it, the clusters that contain a variable are connected; since products
are binary, no cluster has more than three neighbours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tacit.base.text import quote
from tacit.compiler.order.tree import Problem, Tree, bits


@dataclass(frozen=True)
class Jointree:
    """Clusters (sets of variables) and the edges between them; the last cluster is the root."""

    clusters: tuple[frozenset[str], ...]
    edges: tuple[tuple[int, int], ...]

    @property
    def width(self) -> int:
        """The size of the largest cluster, less one."""
        return max(map(len, self.clusters)) - 1

    def separator(self, edge: tuple[int, int]) -> frozenset[str]:
        """The variables that two neighbouring clusters share."""
        return self.clusters[edge[0]] & self.clusters[edge[1]]

    def neighbours(self, i: int) -> list[int]:
        """The clusters next to cluster i."""
        return [b if a == i else a for a, b in self.edges if i in (a, b)]

    def to_dot(self) -> str:
        """A Graphviz drawing; edges carry their separators."""
        lines = ["graph jointree {", '  node [shape=box, style=rounded, fontname="Helvetica"];']
        lines += [f"  {i} [label={quote(' '.join(sorted(c)) or '1')}];" for i, c in enumerate(self.clusters)]
        lines += [f"  {a} -- {b} [label={quote(' '.join(sorted(self.separator((a, b)))))}];" for a, b in self.edges]
        return "\n".join([*lines, "}"]) + "\n"


def jointree(problem: Problem, path: Sequence[tuple[int, int]]) -> Jointree:
    """The jointree that a plan amounts to. Axes of hard evidence are indices, and in no cluster."""
    tree = Tree(problem, list(path))
    clusters, edges = [], []
    for i in range(len(tree.out)):
        mask = tree.union(i) & ~problem.hard
        clusters.append(frozenset(problem.names[axis] for axis in bits(mask)))
        if i >= tree.leaves:
            edges += [(tree.left[i], i), (tree.right[i], i)]
    return Jointree(tuple(clusters), tuple(edges))

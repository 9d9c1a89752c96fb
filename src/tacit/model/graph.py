"""The directed acyclic graph of a network, and what can be read off it: descendants, Markov blankets, d-separation.

Parents come before children in the order of the nodes, so everything takes linear time and no recursion.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from tacit.base.errors import NetworkError
from tacit.base.text import shown
from tacit.model.cpt import AnyCPT
from tacit.model.densities import AnyDensity
from tacit.model.elements.variable import Label, Variable, similar


@dataclass(frozen=True)
class Node:
    """A variable of the network with its parents and its CPT."""

    variable: Variable
    parents: tuple[str, ...]
    cpt: AnyCPT


class Graph:
    """Nodes by name, parents before children."""

    def __init__(self) -> None:
        self._nodes: dict[str, Node] = {}

    @property
    def variables(self) -> tuple[str, ...]:
        """The names of all variables, parents before children."""
        return tuple(self._nodes)

    def node(self, name: str) -> Node:
        """Variable, parents and CPT of a node."""
        try:
            return self._nodes[name]
        except (KeyError, TypeError):
            if isinstance(name, Collection) and not isinstance(name, str | bytes):
                raise NetworkError(f"expected the name of one variable, got {shown(name)}") from None
            for own in (node.variable for node in self._nodes.values() if name in node.variable.columns):
                raise NetworkError(f"{name!r} is a column of the node {own.name!r}; name the node") from None
            hint = similar(name, self._nodes) or self._state_of(name)
            raise NetworkError(f"{name!r} is not a variable of the network{hint}") from None

    def _state_of(self, name: str) -> str:
        """The end of a message about a name that is a state of one variable."""
        owners = [own for own, node in self._nodes.items() if name in node.variable.states]
        return f"; it is a state of {owners[0]!r}" if len(owners) == 1 else ""

    def variable(self, name: str) -> Variable:
        """Name and states of a variable."""
        return self.node(name).variable

    def parents(self, name: str) -> tuple[str, ...]:
        """The parents of a variable, in the order of its CPT's axes."""
        return self.node(name).parents

    def children(self, name: str) -> tuple[str, ...]:
        """The variables of which this one is a parent, in the order of the network.

        >>> from tacit import examples
        >>> examples.diamond().children("A")
        ('B', 'C')
        """
        self.node(name)  # an error where there is none
        return tuple(other for other, node in self._nodes.items() if name in node.parents)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """All pairs of a parent and its child, in the order of the children.

        >>> from tacit import examples
        >>> examples.diamond().edges
        (('A', 'B'), ('A', 'C'), ('B', 'D'), ('C', 'D'))
        """
        return tuple((parent, name) for name, node in self._nodes.items() for parent in node.parents)

    @property
    def roots(self) -> tuple[str, ...]:
        """The variables without parents."""
        return tuple(name for name, node in self._nodes.items() if not node.parents)

    @property
    def leaves(self) -> tuple[str, ...]:
        """The variables without children.

        >>> from tacit import examples
        >>> examples.diamond().roots, examples.diamond().leaves
        (('A',), ('D',))
        """
        inner = {parent for node in self._nodes.values() for parent in node.parents}
        return tuple(name for name in self._nodes if name not in inner)

    def states(self, name: str) -> tuple[Label, ...]:
        """The labels of a variable's states; none of a continuous one, whose values are numbers."""
        variable = self.node(name).variable
        return () if variable.continuous else variable.states

    @property
    def continuous(self) -> tuple[str, ...]:
        """The variables whose values are numbers that have a density.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Fault", cpt=[0.1, 0.9])
        >>> net.add("Heat", ["Fault"], cpt=tacit.Gaussian(mean=[90, 60], sd=[8, 4]))
        >>> net.continuous, net.states("Heat")
        (('Heat',), ())
        """
        return tuple(name for name, node in self._nodes.items() if node.variable.continuous)

    def density(self, name: str) -> AnyDensity:
        """The density of a continuous variable."""
        cpt = self.node(name).cpt
        if not isinstance(cpt, AnyDensity):
            raise NetworkError(f"{name!r} has states and a table, not a density")
        return cpt

    def named(self, name: str) -> str:
        """The variable of a name, or of a column of numbers: of a node of several columns, each names the node."""
        for other, node in self._nodes.items() if name not in self._nodes else ():
            if name in node.variable.columns:
                return other
        return self.node(name).variable.name

    def bins(self, name: str) -> tuple[float, ...] | None:
        """The edges between which the states of a variable are intervals; None of other variables.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Age", bins=[0, 18, 65, 120])
        >>> net.bins("Age"), net.states("Age")
        ((0.0, 18.0, 65.0, 120.0), ('[0, 18)', '[18, 65)', '[65, 120]'))
        """
        return self.node(name).variable.bins

    def ancestors(self, name: str) -> tuple[str, ...]:
        """The proper ancestors of a variable, parents before children."""
        return self._in_order(self._with_ancestors(self.parents(name)))

    def descendants(self, name: str) -> tuple[str, ...]:
        """The proper descendants of a variable, parents before children.

        >>> from tacit import examples
        >>> examples.diamond().descendants("A")
        ('B', 'C', 'D')
        """
        below = {self.variable(name).name}
        for other, node in self._nodes.items():
            if not below.isdisjoint(node.parents):
                below.add(other)
        return self._in_order(below - {name})

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """The parents, the children and the children's other parents, in the order of the network.

        Given their states, the variable is independent of all others.

        >>> from tacit import examples
        >>> examples.diamond().markov_blanket("B")
        ('A', 'C', 'D')
        """
        blanket = set(self.parents(name))
        for other, node in self._nodes.items():
            if name in node.parents:
                blanket.update(node.parents, [other])
        return self._in_order(blanket - {name})

    def independent(self, a: str | Iterable[str], b: str | Iterable[str], given: str | Iterable[str] = ()) -> bool:
        """Whether the graph makes `a` and `b` independent where the states of `given` are known (d-separation).

        Each is a name or several. True holds whatever the numbers are: once `given` is observed, evidence on `b`, hard
        or soft, does not change the posterior of `a`. That is proved for testing networks, too (Shen, Huang, Choi and
        Darwiche, *Conditional Independence in Testing Bayesian Networks*, ICML 2019): the evidence may select other
        tables, but none that matters. False says that some numbers make them dependent; those of this network may not.

        >>> from tacit import examples
        >>> net = examples.diamond()
        >>> [net.independent("B", "C", given) for given in ((), "A", ["A", "D"])]
        [False, True, False]
        """
        sets = {"a": self._names(a), "b": self._names(b), "given": self._names(given)}
        for one, other in (("a", "b"), ("a", "given"), ("b", "given")):
            for name in self._in_order(sets[one] & sets[other])[:1]:
                raise NetworkError(f"{name!r} is both in {one} and in {other}; a variable may be in one of them only")
        return self._separated(**sets)

    def _separated(self, a: set[str], b: set[str], given: set[str]) -> bool:
        """Whether every path between `a` and `b` is blocked by `given`; the three are disjoint.

        A ball rolls from `a` along paths that are not blocked (Shachter's Bayes-ball): at most once into each node from
        below, and once from above. A node that is given stops it, but for a collider: there, the ball passes from one
        parent to another exactly if the node or a descendant of it is given.
        """
        open_colliders = self._with_ancestors(given)
        children: dict[str, list[str]] = {name: [] for name in self._nodes}
        for name, node in self._nodes.items():
            for parent in node.parents:
                children[parent].append(name)
        seen: set[tuple[str, bool]] = set()
        rolling = [(name, True) for name in a]
        while rolling:
            name, from_below = rolling.pop()
            if (name, from_below) in seen:
                continue
            seen.add((name, from_below))
            if name in b:
                return False
            if name not in given:
                rolling.extend((child, False) for child in children[name])
            if name not in given if from_below else name in open_colliders:
                rolling.extend((parent, True) for parent in self._nodes[name].parents)
        return True

    def _with_ancestors(self, names: Iterable[str]) -> set[str]:
        above = set(names)
        for name in reversed(self._nodes):
            if name in above:
                above.update(self._nodes[name].parents)
        return above

    def _names(self, names: str | Iterable[str]) -> set[str]:
        """A name or several, all of them known."""
        several = [names] if isinstance(names, str) or not isinstance(names, Iterable) else list(names)
        return {self.variable(name).name for name in several}

    def _in_order(self, names: Container[str]) -> tuple[str, ...]:
        """These names, parents before children."""
        return tuple(name for name in self._nodes if name in names)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def parents_of(edges: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> dict[str, list[str]]:
    """The parents of some nodes, and of every node that edges name, in the order in which they are named."""
    parents: dict[str, list[str]] = {node: [] for node in nodes}
    for edge in edges:
        ends = tuple(edge) if isinstance(edge, Collection) and not isinstance(edge, str) else ()
        if len(ends) != 2 or not all(isinstance(end, str) and end for end in ends):
            raise NetworkError(f"{shown(edge)} is not an edge; expected two names, (parent, child)")
        above, below = ends
        parents.setdefault(above, [])
        if above in parents.setdefault(below, []):
            raise NetworkError(f"the edge from {above!r} to {below!r} is listed twice")
        parents[below].append(above)
    return parents


def in_topological_order(parents: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Nodes by their parents, parents first; an error that names a cycle if there is one."""
    try:
        return tuple(TopologicalSorter(parents).static_order())
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise NetworkError(f"the edges lead in a circle, {cycle}; a network has none") from None

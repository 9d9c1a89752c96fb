"""The model: a DAG of variables, each with a CPT, regular or testing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from tacit.base import pickling
from tacit.base.errors import NetworkError, TableError, TooLargeError, UnsetError
from tacit.base.floats import Floats
from tacit.base.text import large, plural, short
from tacit.model.cpt import CPT, AnyCPT, TestingCPT, check_gamma, difference
from tacit.model.densities import AnyDensity, Density
from tacit.model.elements.distributions import as_floats, check_shape
from tacit.model.elements.value_node import ValueNode
from tacit.model.elements.variable import Variable, continuous_variable, describe, variable
from tacit.model.graph import Graph, Node
from tacit.model.rules import MAX_DENSE, FunctionCPT, Mux, NoisyOr, check_axes

SELECTIONS = ("ancestral", "general")


@dataclass(frozen=True)
class Counts:
    """How large a network is, in the paper's terms; also readable as `counts["static"]`.

    `static` parameters are those of regular CPTs, `dynamic` ones those of testing CPTs. A factored CPT counts
    the numbers it holds (a `Mux` none), not the dense table it stands for. The numbers of a tie count once for
    each of its nodes.
    """

    nodes: int
    edges: int
    testing_nodes: int
    static: int
    dynamic: int
    thresholds: int

    @property
    def parameters(self) -> int:
        """Static and dynamic parameters together."""
        return self.static + self.dynamic

    def __getitem__(self, name: str) -> int:
        try:
            return int(getattr(self, name))
        except AttributeError:
            raise KeyError(name) from None


class Model(Graph):
    """A Bayesian network, classical or testing. Nodes are added parents first. `Network` also answers queries.

    `selection` says which evidence takes part when the table of a testing node is selected: "ancestral", that on its
    proper ancestors; "general", all evidence but that at or below testing nodes which are not its ancestors (the node
    itself is none of them). See `seen_by`.

    >>> net = Model("rain")
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> net.add("wet", parents=["rain"], cpt=[[0.9, 0.1], [0.05, 0.95]])
    >>> net
    Model('rain': 2 nodes, 1 edge, 6 parameters)
    """

    def __init__(self, name: str | None = None, selection: str = "ancestral") -> None:
        if name is not None and not isinstance(name, str):
            raise NetworkError(f"a network's name must be a string or None, got {name!r}")
        if selection not in SELECTIONS:
            expected = f"expected one of {', '.join(map(repr, SELECTIONS))}"
            raise NetworkError(f"selection is {short(repr(selection), 60)}, {expected}")
        super().__init__()
        self.name, self.selection = name, str(selection)
        self._first_tied: dict[
            str, tuple[str, CPT | TestingCPT | AnyDensity]
        ] = {}  # a node to compare each next one of a tie with
        self._values: dict[str, ValueNode] = {}

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state))

    def add(
        self,
        name: str | Iterable[str],
        parents: Iterable[str] = (),
        states: int | Iterable[Any] | None = None,
        cpt: AnyCPT | Any = None,
        testing: bool = False,
        gamma: float | None = None,
        tie: str | None = None,
        bins: Iterable[float] | None = None,
    ) -> None:
        """Add a node.

        Parameters
        ----------
        name, parents
            The node and its parents, which must be in the network already. Of several columns of numbers that vary
            together, the names of all of them.
        states
            Labels, or a number k (labels 0..k-1). Two states, "true" and "false", if left out.
        cpt
            An array of shape (parents' cardinalities..., own cardinality), a `CPT`, a `TestingCPT`, a factored
            CPT, or None: to be learned. With a density (`Gaussian`, `LogNormal`, `Poisson`, `Density`), the values of
            the node are numbers, and it has no children.
        testing, gamma
            With `cpt=None`: learn a testing CPT, selected by hard tests or by a sigmoid of slope `gamma`.
        tie
            With `cpt=None` or an array: nodes of the same tie share their numbers. A `CPT` names its own.
        bins
            Edges, in place of `states`: the states are the intervals between them, which numbers in evidence fall
            into. An interval has its lower edge but not its upper one; the last interval has both. The first edge
            may be -inf, and the last one inf.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("H1", cpt=[0.5, 0.5])
        >>> net.add("H2", parents=["H1"], tie="transition")
        >>> net.add("H3", parents=["H2"], tie="transition")
        >>> net.ties
        {'transition': ('H2', 'H3')}
        >>> net.add("Age", bins=[0, 18, 65, float("inf")], cpt=[0.2, 0.6, 0.2])
        >>> net.states("Age")
        ('[0, 18)', '[18, 65)', '[65, inf)')
        >>> net.posterior("Age", {"Age": [17.5, 18]}).argmax(axis=1)
        array([0, 1])
        """
        if isinstance(cpt, AnyDensity):
            self._add_density(name, parents, cpt, states, bins, tie, testing or gamma is not None)
            return
        own = variable(name, states, bins)
        name = own.name
        self._check_new(own)
        parents = self._known_parents(name, parents)
        if not parents and isinstance(cpt, AnyCPT):
            parents = self._known_parents(name, cpt.implied_parents() or ())
        self._insert(self._node(own, parents, cpt, testing, gamma, tie))

    def _node(
        self, own: Variable, parents: tuple[str, ...], cpt: Any, testing: bool, gamma: float | None, tie: str | None
    ) -> Node:
        """A node of checked names, whose CPT is checked now."""
        name, above = own.name, [self._nodes[p].variable for p in parents]
        try:
            bound = _as_cpt(cpt, own, above, testing, gamma, tie).bind(own, above)
        except TableError as error:  # once more, with names in place of numbers
            fits = len(error.row) == len(above) and all(i < p.card for i, p in zip(error.row, above, strict=True))
            place = f", row {describe(above, error.row)}" if error.row and fits else ""
            verb = "" if error.problem.startswith("sums") else "is wrong: "
            raise NetworkError(f"node {name!r}: {error.part}{place} {verb}{error.problem}") from None
        except (NetworkError, TooLargeError) as error:
            raise type(error)(f"node {name!r}: {error}") from None
        return Node(own, parents, bound.named(own, above))

    def _add_density(
        self,
        columns: Any,
        parents: Iterable[str],
        density: AnyDensity,
        states: Any,
        bins: Any,
        tie: str | None,
        testing: bool,
    ) -> None:
        """Add a node whose values are numbers: its states, which nobody sees, are the joint states of its parents."""
        called = columns if isinstance(columns, str) else ", ".join(map(str, columns))
        above = [self._nodes[p].variable for p in self._known_parents(called, parents)]
        own = continuous_variable(columns, above)
        self._check_new(own)
        for what, given in (("states", states), ("bins", bins)):
            if given is not None:
                raise NetworkError(f"node {own.name!r} has a density, whose values are numbers; leave out {what}=")
        if testing or tie is not None:
            remedy = f"write {type(density).__name__}(..., tie={tie!r})" if tie else "only tables can be selected"
            raise NetworkError(f"node {own.name!r} has a density, which takes no testing=, gamma= or tie=; {remedy}")
        self._insert(self._density_node(own, above, density))

    @staticmethod
    def _density_node(own: Variable, above: Sequence[Variable], density: AnyDensity) -> Node:
        """A node of checked names, whose density is checked now."""
        if density.dimension != len(own.columns):
            given = f"a {type(density).__name__} of {plural(density.dimension, 'column')}"
            raise NetworkError(f"node {own.name!r} names {plural(len(own.columns), 'column')}, but its CPT is {given}")
        if math.prod(parent.card for parent in above) > MAX_DENSE:
            raise TooLargeError(f"node {own.name!r}: its parents have {large(own.card)} joint states")
        try:
            bound = density.bind(own, above)
        except TableError as error:
            place = f", {describe(above, error.row)}" if error.row and len(error.row) == len(above) else ""
            raise NetworkError(f"node {own.name!r}: {error.part}{place} is wrong: {error.problem}") from None
        except NetworkError as error:
            raise NetworkError(f"node {own.name!r}: {error}") from None
        return Node(own, tuple(v.name for v in above), bound.named(own, above))

    def value(self, name: str, parents: Iterable[str], table: Any) -> None:
        """Add a value node: what each joint state of its parents is worth, in any unit, the same for all value nodes.

        Large numbers are good; costs are negative. Several value nodes add up. They are kept beside the variables, and
        are none of them: a query for the best decision, `tacit.compile(net, decide=...)`, takes them into account, and
        all others do not.

        >>> import tacit
        >>> net = tacit.Network()
        >>> net.add("Disease", states=["yes", "no"], cpt=[0.1, 0.9])
        >>> net.add("Treat", states=["yes", "no"], cpt=[0.5, 0.5])
        >>> net.value("Health", ["Disease", "Treat"], [[-20, -100], [0, 0]])
        >>> net.value("Price", ["Treat"], [-5, 0])
        >>> print(net.value_nodes["Health"])
        Disease  Treat  Health
        yes      yes       -20
        yes      no       -100
        no       yes         0
        no       no          0
        """
        self._check_new(own := variable(name, None))
        above = [self._nodes[p].variable for p in self._known_parents(own.name, parents)]
        self._values[own.name] = ValueNode.checked(own.name, above, table)

    @property
    def value_nodes(self) -> dict[str, ValueNode]:
        """The value nodes by name, in the order in which they were added; see `value`."""
        return dict(self._values)

    def without_values(self) -> Self:
        """A copy without value nodes, as files and libraries take it that know random variables only."""
        copy = self.copy()
        copy._values.clear()
        return copy

    def _check_new(self, own: Variable) -> None:
        """Refuse a node, or a column, that the network has already."""
        taken = [column for node in self._nodes.values() for column in node.variable.columns]
        for name in (own.name, *own.columns):
            if name in self._nodes or name in self._values or name in taken:
                raise NetworkError(f"node {name!r} is in the network already; names must be unique")

    def _insert(self, node: Node) -> None:
        """Insert a checked node, unless it differs from others of its tie."""
        name, cpt = node.variable.name, node.cpt
        if isinstance(cpt, CPT | TestingCPT | AnyDensity) and cpt.tie is not None:
            first, shared = self._first_tied.setdefault(cpt.tie, (name, cpt))
            if what := difference(cpt, shared):
                tied = f"nodes {name!r} and {first!r} are tied ({cpt.tie!r})"
                raise NetworkError(f"{tied} but differ in {what}; tied nodes must have equal CPTs")
        self._nodes[name] = node

    def _known_parents(self, name: str, parents: Iterable[str]) -> tuple[str, ...]:
        if isinstance(parents, str) or not isinstance(parents, Iterable):
            raise NetworkError(f"node {name!r}: parents must be a sequence of names, got {parents!r}")
        parents = tuple(parents)
        seen: set[str] = set()
        for parent in parents:
            if any(parent in node.variable.columns for node in self._nodes.values()):
                parent = self.named(parent)
            if isinstance(parent, str) and parent in self._values:
                above = ", ".join(self._values[parent].parents)
                raise NetworkError(f"node {name!r}: {parent!r} is a value node, no variable; name its parents, {above}")
            if not isinstance(parent, str) or parent not in self._nodes:
                problem = f"parent {parent!r} is not in the network; add parents before their children"
                raise NetworkError(f"node {name!r}: {problem}")
            if self._nodes[parent].variable.continuous:
                problem = f"{parent!r} has a density, and what has a density has no children"
                raise NetworkError(f"node {name!r}: {problem}; add it as an interval variable, with bins=")
            if parent in seen:
                raise NetworkError(f"node {name!r}: parent {parent!r} is listed twice")
            seen.add(parent)
        return parents

    def empty_copy(self) -> Self:
        """A network of the same kind and name, without nodes."""
        return type(self)(self.name, self.selection)

    def copy(self) -> Self:
        """An independent copy (CPTs are immutable and shared)."""
        return self.with_cpts({})

    __copy__ = copy

    def with_cpts(self, cpts: Mapping[str, AnyCPT | Any]) -> Self:
        """A copy in which the given nodes have other CPTs.

        Tied nodes change together: either all keep their tie, with equal CPTs, or none does. An array stands for a
        regular CPT of the tie that the node has.
        """
        for name in cpts:
            self.node(name)
        copy = self.empty_copy()
        for name, node in self._nodes.items():
            copy._insert(copy._changed(node, cpts[name]) if name in cpts else node)
        copy._values |= self._values
        for tie, names in self.ties.items():
            kept = [name for name in names if copy.cpt(name).tie == tie]
            left = [name for name in names if copy.cpt(name).tie != tie]
            if kept and left:
                problem = f"node {left[0]!r} would leave the tie {tie!r}, which node {kept[0]!r} keeps"
                raise NetworkError(f"{problem}; give tie={tie!r} to both, or change all nodes of the tie")
        return copy

    def _changed(self, node: Node, cpt: AnyCPT | Any) -> Node:
        """A node with another CPT, of which all that stays was checked before."""
        own, above = node.variable, [self._nodes[parent].variable for parent in node.parents]
        if own.continuous:
            if not isinstance(cpt, AnyDensity):
                kind = type(cpt).__name__
                raise NetworkError(f"node {own.name!r} has a density, and a {kind} cannot take its place")
            return self._density_node(own, above, cpt)
        if isinstance(cpt, AnyDensity):
            raise NetworkError(f"node {own.name!r} has states, and a {type(cpt).__name__} has numbers")
        implied = cpt.implied_parents() if isinstance(cpt, AnyCPT) and not node.parents else None
        parents = self._known_parents(own.name, implied) if implied else node.parents
        return self._node(own, parents, cpt, False, None, None if isinstance(cpt, AnyCPT) else node.cpt.tie)

    def with_gamma(self, gamma: float | None) -> Self:
        """A copy whose testing nodes are selected with slope `gamma` (`None`: by hard tests)."""
        slope = check_gamma(gamma)
        cpts = {n: node.cpt.with_gamma(slope) for n, node in self._nodes.items() if isinstance(node.cpt, TestingCPT)}
        return self.with_cpts(cpts)

    def with_selection(self, selection: str) -> Self:
        """A copy whose testing nodes see other evidence: "ancestral" or "general"."""
        return self._with_nodes({}, selection)

    def cut(self, names: Iterable[str]) -> Self:
        """A copy in which these variables have no parents, and all their states are equally likely.

        What is above them learns nothing from their states.
        """
        equal = {name: self.variable(name) for name in names}
        nodes = {n: Node(v, (), CPT(np.full(v.card, 1 / v.card)).named(v, ())) for n, v in equal.items()}
        return self._with_nodes(nodes, self.selection)

    def with_unknown_tables(self, names: Iterable[str]) -> Self:
        """A copy in which nothing is known of the tables of these nodes, and no state is impossible there."""
        known = {name: self.node(name) for name in names}
        shapes = {n: (*(self.variable(p).card for p in node.parents), node.variable.card) for n, node in known.items()}
        nodes = {n: replace(node, cpt=CPT(np.full(shapes[n], np.nan))) for n, node in known.items()}
        return self._with_nodes(nodes, self.selection)

    def _with_nodes(self, nodes: Mapping[str, Node], selection: str) -> Self:
        copy = type(self)(self.name, selection)
        for name, node in self._nodes.items():
            copy._insert(nodes.get(name, node))
        copy._values |= self._values
        return copy

    def learnable(self) -> Self:
        """A copy in which every table, every noisy-or and every density is `learn=True`: a start for `tacit.estimate`.

        Exact 0s and 1s stay, and so do rules, functions and multiplexers, and each `Density`, which has no numbers.

        >>> net = Model()
        >>> net.add("rain", cpt=[0.2, 0.8])
        >>> net.learnable().cpt("rain").learn
        True
        """
        cpts = {
            name: node.cpt
            for name, node in self._nodes.items()
            if not isinstance(node.cpt, FunctionCPT | Mux | Density)
        }
        return self.with_cpts({name: cpt._with(learn=True) for name, cpt in cpts.items()})

    @property
    def testing_nodes(self) -> tuple[str, ...]:
        """The names of the testing nodes, ancestors before descendants."""
        return tuple(name for name, node in self._nodes.items() if node.cpt.testing)

    def cpt(self, name: str) -> AnyCPT:
        """The CPT of a variable; it prints with the names of variables and states.

        >>> from tacit import examples
        >>> print(examples.abc().cpt("C"))
        P(C | A)
        A        lo    hi
        true   0.25  0.75
        false   0.5   0.5
        >>> print(examples.abc().cpt("B"))
        P(B | A): plus if the test of P*(A) holds, else minus
                       plus         minus
        A      test    true  false   true  false
        true   >= 0.5   0.9    0.1    0.2    0.8
        false  >= 0.4   0.7    0.3    0.1    0.9
        """
        return self.node(name).cpt

    def table(self, name: str) -> Floats:
        """The dense table of a regular node, whatever form its CPT has."""
        node = self.node(name)
        if isinstance(node.cpt, AnyDensity):
            raise NetworkError(f"node {name!r} has a density and no table; see Network.cpt")
        if isinstance(node.cpt, TestingCPT):
            raise NetworkError(f"node {name!r} is testing: its table depends on the evidence; see Network.select")
        return node.cpt.dense(node.variable, [self._nodes[p].variable for p in node.parents])

    @property
    def ties(self) -> dict[str, tuple[str, ...]]:
        """The nodes of each tie, in the order of the network."""
        ties: dict[str, list[str]] = {}
        for name, node in self._nodes.items():
            if node.cpt.tie is not None:
                ties.setdefault(node.cpt.tie, []).append(name)
        return {tie: tuple(names) for tie, names in ties.items()}

    def seen_by(self, name: str, evidence: Iterable[str] | None = None) -> tuple[str, ...]:
        """Which of these variables (all, if left out) matter when the table of a testing node is selected.

        Evidence on them takes part in the posterior of the node's parents that is tested. Of a regular node, this tells
        what it would see as a testing one.

        >>> import tacit
        >>> net = tacit.Network(selection="general")
        >>> net.add("disease", cpt=[0.1, 0.9])
        >>> net.add("x-ray", ["disease"], cpt=[[0.8, 0.2], [0.1, 0.9]])
        >>> net.add("pain", ["disease"], cpt=tacit.TestingCPT([[1, 0], [0, 1]], [[0, 1], [1, 0]], [0.5, 0.5]))
        >>> net.seen_by("pain")
        ('disease', 'x-ray')
        """
        names = self.variables if evidence is None else self._in_order(self._names(evidence))
        above = set(self.ancestors(name))
        if self.selection == "ancestral":
            return tuple(n for n in names if n in above)
        hidden: set[str] = set()
        for other, node in self._nodes.items():
            blocks = other == name or (node.cpt.testing and other not in above)
            if blocks or not hidden.isdisjoint(node.parents):
                hidden.add(other)
        return tuple(n for n in names if n not in hidden)

    def counts(self) -> Counts:
        """Nodes, edges, testing nodes, static and dynamic parameters, thresholds."""
        cpts = [node.cpt for node in self._nodes.values()]
        testing = [cpt for cpt in cpts if isinstance(cpt, TestingCPT)]
        noisy_ors = [cpt for cpt in cpts if isinstance(cpt, NoisyOr)]
        tables = [cpt for cpt in cpts if not isinstance(cpt, TestingCPT | NoisyOr)]
        return Counts(
            nodes=len(cpts),
            edges=sum(len(node.parents) for node in self._nodes.values()),
            testing_nodes=len(testing),
            static=sum(part.size for cpt in tables for part in cpt.parts().values())
            + sum(1 + sum(cause.size for cause in cpt.causes) for cpt in noisy_ors),
            dynamic=sum(table.size for cpt in testing for table in cpt.tables),
            thresholds=sum(cpt.thresholds.size for cpt in testing),
        )

    def require_numbers(self, names: Iterable[str] | None = None) -> None:
        """Raise `UnsetError` where a number of these nodes (all, if left out) is still to be learned."""
        for name in self._nodes if names is None else names:
            node = self.node(name)
            for part, values in node.cpt.parts().items() if isinstance(node.cpt, CPT | TestingCPT | AnyDensity) else ():
                if np.isnan(values).any():
                    remedy = "give them, or learn them: tacit.estimate, tacit.fit"
                    raise UnsetError(f"node {name!r}: {part} has unset numbers (NaN); {remedy}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Model):
            return False
        mine, theirs = ((net.name, net.selection, net._nodes, net._values) for net in (self, other))
        return mine == theirs

    def __repr__(self) -> str:
        counts = self.counts()
        parts = [plural(counts.nodes, "node"), plural(counts.edges, "edge")]
        if counts.testing_nodes:
            parts.append(f"{counts.testing_nodes} testing")
        if self.selection != "ancestral":
            parts.append(f"{self.selection} selection")
        parts.append(plural(counts.parameters, "parameter"))
        if counts.thresholds:
            parts.append(plural(counts.thresholds, "threshold"))
        if self._values:
            parts.append(plural(len(self._values), "value node"))
        name = f"{self.name!r}: " if self.name is not None else ""
        return f"{type(self).__name__}({name}{', '.join(parts)})"


def _as_cpt(
    cpt: Any, own: Variable, parents: Sequence[Variable], testing: bool, gamma: float | None, tie: str | None
) -> AnyCPT:
    if cpt is None:
        return _unset(own, parents, testing, gamma, tie)
    if isinstance(cpt, AnyCPT) and tie is not None:
        raise NetworkError(f"tie is given beside a CPT; write CPT(..., tie={tie!r}) or TestingCPT(..., tie={tie!r})")
    try:
        checked: AnyCPT = cpt if isinstance(cpt, AnyCPT) else CPT(cpt, tie=tie)
    except NetworkError:  # of an array that has the wrong shape and wrong sums, the shape is said to be wrong
        check_shape("table", as_floats(cpt, "table"), own, parents)
        raise
    if testing and not checked.testing:
        raise NetworkError("testing=True, but the CPT given is a regular one; give a TestingCPT")
    if gamma is None:
        return checked
    if not isinstance(checked, TestingCPT):
        raise NetworkError("gamma is given, but the CPT is a regular one; only testing nodes have a slope")
    return checked.with_gamma(gamma)


def _unset(own: Variable, parents: Sequence[Variable], testing: bool, gamma: float | None, tie: str | None) -> AnyCPT:
    """Tables of NaN: to be learned from a seeded random start."""
    shape = tuple(p.card for p in parents)
    entries = math.prod(shape) * own.card
    if entries > MAX_DENSE:
        raise TooLargeError(f"a table to learn would have {large(entries)} entries (limit {MAX_DENSE:,})")
    check_axes(parents)
    unknown = np.full((*shape, own.card), np.nan)
    if testing:
        return TestingCPT(unknown, unknown, np.full(shape, np.nan), gamma=gamma, tie=tie)
    if gamma is not None:
        raise NetworkError("gamma is given without testing=True; only testing nodes have a slope")
    return CPT(unknown, tie=tie)

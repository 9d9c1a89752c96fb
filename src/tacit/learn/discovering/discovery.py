"""From a table to a network: `discover` and what it returns."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.html import facts
from tacit.base.text import counted, plural
from tacit.evidence.read import EvidenceLike
from tacit.learn.discovering.coded_table import CodedTable, coded_table
from tacit.learn.discovering.constraints import Constraints, Edge, Mask, constraints
from tacit.learn.discovering.equivalence import directed_edges
from tacit.learn.discovering.exact import best_graph
from tacit.learn.discovering.family_scores import FamilyScores
from tacit.learn.discovering.orders import OrderSearch, topological_order
from tacit.learn.discovering.query_cost import CostLimit, graph_network
from tacit.learn.discovering.tabu import TabuSearch
from tacit.learn.discovering.tree import best_forest
from tacit.learn.estimating.estimation import estimate
from tacit.learn.options import DiscoverOptions
from tacit.learn.progress_line import Line, clock
from tacit.query.network import Network

if TYPE_CHECKING:
    from tacit.views.drawing import Drawing

SEARCHES = ("tabu", "orders", "exact", "tree")
PSEUDO_COUNTS = 0.1  # for each entry of a table, so that nothing that was not seen is impossible
PATIENCE = 100  # steps of tabu search without a better graph
MAX_POLISHED_ROWS = 50_000  # distinct rows up to which "tabu" has a search over orders look for better starts
MAX_ROUNDS = 10


class Arrows(NamedTuple):
    """What the data decide about directions: edges that all equivalent graphs share, and those that may be turned."""

    directed: list[Edge]
    undirected: list[Edge]


@dataclass(frozen=True)
class Discovery:
    """A structure that `discover` has found, and a network with its tables estimated.

    `score` is that of the structure on the rows, in nats; larger is better. `history` has the score after each step
    of the search. `strength` has, for each edge of any bootstrap sample, the share of samples with it; it is None
    without them. `rows` is the sum of the weights.
    """

    network: Network
    score: float
    history: list[float]
    arrows: Arrows
    strength: Mapping[Edge, float] | None
    rows: float
    seconds: float
    interrupted: bool = field(default=False)

    def plot(self, evidence: EvidenceLike | None = None, width: float | None = None) -> Drawing:
        """A picture of the network, as `Network.plot` draws it.

        Edges whose direction the data leave open have no tip, and those that were missing from some bootstrap samples
        are dashed.
        """
        from tacit.views.drawing import draw

        strength = None
        if self.strength is not None:
            either = {frozenset(edge) for edge in self.arrows.undirected}
            strength = {edge: self._share(edge, frozenset(edge) in either) for edge in self.network.edges}
        return draw(self.network, evidence, width=width, strength=strength, undirected=self.arrows.undirected)

    def page(
        self,
        path: str | os.PathLike[str],
        captions: str | os.PathLike[str] | None = None,
        query: str | None = None,
    ) -> None:
        """Write the explorer of the network, as `Network.page` does, with edges that look as `plot` draws them."""
        from tacit.views.page import Captions, write_page

        strength = None
        if self.strength is not None:
            turned = {frozenset(edge) for edge in self.arrows.undirected}
            strength = {edge: self._share(edge, frozenset(edge) in turned) for edge in self.network.edges}
        chosen = Captions.chosen(self.network, captions, query)
        write_page(self.network, path, chosen, strength=strength, undirected=self.arrows.undirected)

    def _share(self, edge: Edge, turned: bool) -> float:
        """The share of bootstrap samples that have an edge, or also those that have it turned."""
        shares = self.strength or {}
        return min(1.0, shares.get(edge, 0.0) + (shares.get(edge[::-1], 0.0) if turned else 0.0))

    def __repr__(self) -> str:
        edges = f"{plural(len(self.network.edges), 'edge')} among {plural(len(self.network), 'variable')}"
        decided = f"{len(self.arrows.directed)} with a direction that the data decide"
        return f"Discovery({edges}, {decided}, score {self.score:.8g} from {counted(self.rows)})"

    def _repr_html_(self) -> str:
        values = {
            "score": self.score,
            "from": counted(self.rows),
            "edges": len(self.network.edges),
            "directions that the data decide": len(self.arrows.directed),
            "steps": len(self.history),
            "time": clock(self.seconds),
        }
        return facts(repr(self), values)


def discover(
    rows: Any,
    score: str = "bic",
    search: str = "tabu",
    tiers: Sequence[Sequence[str]] | None = None,
    forbid: Iterable[Edge] = (),
    require: Iterable[Edge] = (),
    max_parents: int | None = None,
    max_cost: float | None = None,
    start: Network | Iterable[Edge] | None = None,
    weights: Any = None,
    bootstrap: int = 0,
    seed: int = 0,
    progress: bool = True,
) -> Discovery:
    """Find the structure of a network in a table, and estimate its tables.

    The result does not depend on the order of columns or rows. It is a model of what varies together; an arrow is no
    proof of a cause. `arrows` says which directions the data decide at all.

    Parameters
    ----------
    rows
        A frame, or columns by name, without gaps. The states of a column are those that occur in it.
    score
        "bic", "aic", "bdeu" (with an equivalent sample size of 1) or "k2".
    search
        "tabu" changes single edges, and goes on behind the best graph for a while; on moderate tables it starts again
        from what a search over orders finds. "orders" always does so, which is slower and often better. "exact"
        finds the best graph of all, for up to 16 columns. "tree" finds the best forest.
    tiers
        Groups of columns, earliest first: no edge leads from a later group to an earlier one.
    forbid, require
        Edges (parent, child) that must not be there, or must be.
    max_parents
        The most parents that a variable may have.
    max_cost
        The most multiply-adds per row that all marginals of the network may take; see `TAC.cost`.
    start
        A network, or edges, to begin with; the empty graph if left out.
    weights
        How many rows each row counts as: numbers, or the name of a column that holds them.
    bootstrap, seed
        How many times to repeat the search on rows drawn with replacement, for `strength`; the seed.
    progress
        Whether to show how far it is, in a terminal or a notebook.

    >>> import tacit
    >>> rows = tacit.examples.kidney_stones().sample(5000, seed=1)
    >>> discovery = tacit.discover(rows, tiers=[["size"], ["treatment"], ["recovery"]])
    >>> discovery.network.edges
    (('size', 'treatment'), ('size', 'recovery'), ('treatment', 'recovery'))
    >>> discovery.network.posterior("recovery", {"size": "small"}).shape
    (1, 2)
    """
    options = DiscoverOptions.among(locals())
    if search not in SEARCHES:
        raise TacitError(f"search is {search!r}, expected one of {', '.join(map(repr, SEARCHES))}")
    table = coded_table(rows, weights)
    limits = constraints(table.names, tiers, forbid, require)
    first = _start(table, limits, start)
    line = Line(options.progress)
    searcher = _Searcher(options, search, score, limits, first, line)
    found = searcher.run(table)
    strength = _strength(searcher, table) if options.bootstrap else None
    line.end(f"score {found.score:.8g}, {plural(int(found.edges.sum()), 'edge')}")
    net = graph_network(table.network, table.names, found.edges)
    return Discovery(
        network=estimate(net, rows, prior=PSEUDO_COUNTS, weights=weights, progress=False).network,
        score=found.score,
        history=found.history,
        arrows=_arrows(table.names, found.edges, ~limits.allowed.T),
        strength=strength,
        rows=table.rows,
        seconds=time.monotonic() - options.started,
    )


class _Graph(NamedTuple):
    edges: Mask
    score: float
    history: list[float]


@dataclass(frozen=True)
class _Searcher:
    """A search with its options, ready for a table."""

    options: DiscoverOptions
    search: str
    score: str
    limits: Constraints
    start: Mask
    line: Line

    def run(self, table: CodedTable) -> _Graph:
        scores = FamilyScores(table, self.score, self.options.max_parents)
        cost = CostLimit(table.network, table.names, self.options.max_cost)
        if self.search in ("exact", "tree"):
            edges = (best_graph if self.search == "exact" else best_forest)(scores, self.limits)
            if not cost.allows(edges):
                problem = f"takes {cost.cost(edges):,.0f} multiply-adds per row, more than max_cost"
                raise TacitError(f"the graph of search={self.search!r} {problem}; search='tabu' keeps below it")
            return _Graph(edges, _score(scores, edges), [_score(scores, edges)])
        return self._climbed(table, scores, cost)

    def _climbed(self, table: CodedTable, scores: FamilyScores, cost: CostLimit) -> _Graph:
        """Tabu search, and on from the orders of its graphs while that finds better ones."""
        tabu = TabuSearch(scores, self.limits, cost, self._say)
        tabu.run(self.start, PATIENCE)
        if self.search == "orders" or table.codes.shape[1] <= MAX_POLISHED_ROWS:
            orders = OrderSearch(scores, self.limits, self._say)
            for _ in range(MAX_ROUNDS):
                before = tabu.best_score
                edges = orders.run(topological_order(tabu.best))
                if cost.allows(edges):
                    tabu.run(edges, PATIENCE)
                if tabu.best_score <= before:
                    break
        return _Graph(tabu.best, _score(scores, tabu.best), tabu.history)

    def _say(self, step: int, score: float) -> None:
        self.line.say(f"step {step}  score {score:.8g}")


def _score(scores: FamilyScores, edges: Mask) -> float:
    return scores.graph([np.flatnonzero(edges[:, child]).tolist() for child in range(len(edges))])


def _start(table: CodedTable, limits: Constraints, start: Network | Iterable[Edge] | None) -> Mask:
    """The graph to begin with; an error if it breaks the constraints."""
    edges = limits.required.copy()
    place = {name: i for i, name in enumerate(table.names)}
    for a, b in () if start is None else start.edges if isinstance(start, Network) else start:
        if a not in place or b not in place:
            raise TacitError(f"start has the edge {a!r} -> {b!r}, but the rows have no column of that name")
        if not limits.allowed[place[a], place[b]]:
            raise TacitError(f"start has the edge {a!r} -> {b!r}, which the constraints rule out")
        edges[place[a], place[b]] = True
    reach = edges.copy()
    for middle in range(len(reach)):
        reach |= np.outer(reach[:, middle], reach[middle])
    if reach.diagonal().any():
        raise TacitError("start and the required edges together have a cycle")
    return edges


def _arrows(names: Sequence[str], edges: Mask, known: Mask) -> Arrows:
    """The edges by whether their direction is decided, by the data or by the constraints."""
    fixed = directed_edges(edges, known)
    pairs = [[(names[a], names[b]) for a, b in np.argwhere(mask)] for mask in (fixed, edges & ~fixed)]
    return Arrows(sorted(pairs[0]), sorted((min(pair), max(pair)) for pair in pairs[1]))


def _strength(searcher: _Searcher, table: CodedTable) -> dict[Edge, float]:
    """The share of bootstrap samples with each edge, in its direction."""
    rng = np.random.default_rng(searcher.options.seed)
    count = searcher.options.bootstrap
    shares = np.zeros(searcher.start.shape)
    for number in range(count):
        searcher.line.say(f"bootstrap sample {number + 1} of {count}")
        shares += searcher.run(table.drawn(rng)).edges
    names = table.names
    pairs = {(names[a], names[b]): float(shares[a, b] / count) for a, b in np.argwhere(shares)}
    return dict(sorted(pairs.items(), key=lambda item: (-item[1], item[0])))

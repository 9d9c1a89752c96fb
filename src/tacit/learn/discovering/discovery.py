"""From a table to a network: `discover` and what it returns."""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError, TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.html import facts
from tacit.base.text import counted, plural
from tacit.evidence.read import EvidenceLike
from tacit.evidence.summaries.observed_states import warn_of_states
from tacit.learn.discovering.coded_table import Bins, CodedTable, coded_table
from tacit.learn.discovering.constraints import Constraints, Edge, Mask, checked_edges, constraints, is_cyclic
from tacit.learn.discovering.copied_columns import warn_of_copies
from tacit.learn.discovering.density_choice import with_densities
from tacit.learn.discovering.discovery_run import DiscoveryRun
from tacit.learn.discovering.equivalence import directed_edges
from tacit.learn.discovering.query_cost import CostLimit, graph_network
from tacit.learn.discovering.scoring.family_scores import MAX_CELLS, score_by_name
from tacit.learn.discovering.searching import SEARCHES, Searcher
from tacit.learn.discovering.structural_em import PSEUDO_COUNTS, estimated
from tacit.learn.options import DiscoverOptions
from tacit.learn.progress_line import Line, clock
from tacit.learn.session import Session
from tacit.model.as_dict import document_text, network_from_dict, network_to_dict
from tacit.query.network import Network

if TYPE_CHECKING:
    from tacit.views.drawing import Drawing


FACTS = ("score", "history", "rows", "seconds", "interrupted")  # of a discovery, as JSON has them
DISCOVERY = "discovery"  # where a network's JSON has them
MAX_LISTED = 40  # edges in a printed discovery


class Arrows(NamedTuple):
    """What the data decide about directions: edges that all equivalent graphs share, and those that may be turned."""

    directed: list[Edge]
    undirected: list[Edge]


@dataclass(frozen=True)
class Discovery:
    """A structure that `discover` has found, and a network with its tables estimated.

    `score` is that of the structure on the rows as they are, in nats; larger is better. `history` has the score after
    each step of the search, or after each round where values are missing. `rows` is the sum of the weights.

    `strength` has, for each edge of any bootstrap sample, the share of samples with it, by direction: a sample that
    leaves the direction open counts one half for each. So the sum of both is the share of samples with the edge. It is
    None without samples.
    """

    network: Network
    score: float
    history: list[float]
    arrows: Arrows
    strength: Mapping[Edge, float] | None
    rows: float
    seconds: float
    interrupted: bool = field(default=False)

    def plot(
        self,
        evidence: EvidenceLike | None = None,
        width: float | str | None = None,
        captions: Mapping[str, str] | str | os.PathLike[str] | None = None,
    ) -> Drawing:
        """A picture of the network, as `Network.plot` draws it.

        Edges whose direction the data leave open have no tip, and those that were missing from some bootstrap samples
        are dashed.
        """
        from tacit.views.drawing import draw
        from tacit.views.page import Captions

        words = Captions.read(captions, self.network) if isinstance(captions, str | os.PathLike) else captions
        return draw(self.network, evidence, width=width, captions=words, **self.marks())

    def marks(self) -> dict[str, Any]:
        """How doubtful edges are drawn, as `Network.plot` takes it: `strength` and `undirected`."""
        return {"strength": self._shares(), "undirected": self.arrows.undirected}

    def page(
        self,
        path: str | os.PathLike[str],
        captions: Mapping[str, str] | str | os.PathLike[str] | None = None,
        query: str | None = None,
    ) -> None:
        """Write the explorer of the network, as `Network.page` does, with edges that look as `plot` draws them."""
        from tacit.views.page import Captions, write_page

        chosen = Captions.chosen(self.network, captions, query)
        write_page(self.network, path, chosen, strength=self._shares(), undirected=self.arrows.undirected)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON, which `tacit.load` reads, with what is doubtful about it, for `Discovery.load`.

        >>> import pathlib, tempfile, tacit
        >>> found = tacit.discover(tacit.examples.kidney_stones().sample(500, seed=1), progress=False)
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "found.json"
        >>> found.save(path)
        >>> tacit.Discovery.load(path).arrows == found.arrows, tacit.load(path) == found.network
        (True, True)
        """
        if Path(path).suffix != ".json":
            others = "tacit.write(found.network, path) writes other formats"
            raise TacitError(f"{os.fspath(path)}: a discovery is written as .json; {others}")
        facts = {name: getattr(self, name) for name in FACTS}
        strength = None if self.strength is None else [[*edge, share] for edge, share in self.strength.items()]
        own = {**facts, **self.arrows._asdict(), "strength": strength}
        text = document_text({**network_to_dict(self.network), DISCOVERY: own})
        write_atomically(path, lambda file: file.write(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Discovery:
        """Read what `save`, or `tacit discover -o FILE.json`, wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            network, own = network_from_dict(data, Network), data.get(DISCOVERY)
        except (ValueError, AttributeError) as error:
            raise FormatError(f"{os.fspath(path)}: {error}") from None
        if own is None:
            problem = "a network, of which nothing says how it was discovered; tacit.load reads it"
            raise FormatError(f"{os.fspath(path)}: {problem}")
        try:
            facts = {name: own[name] for name in FACTS}
            arrows = Arrows(*([(a, b) for a, b in own[kind]] for kind in Arrows._fields))
            strength = None if own["strength"] is None else {(a, b): share for a, b, share in own["strength"]}
        except (KeyError, TypeError, ValueError):
            raise FormatError(f"{os.fspath(path)}: what it says of its discovery is damaged") from None
        return cls(network, arrows=arrows, strength=strength, **facts)

    def with_densities(self, rows: Any, weights: Any = None) -> Network:
        """The network, with densities in the place of intervals that cause nothing, where these have the better BIC.

        A column of numbers without children may be a `Gaussian`, a `LogNormal` where all numbers are positive, or a
        `Poisson` where all are counts. Its
        intervals are uniform densities, so that both say how probable the numbers are. `rows` and `weights` are those
        that were discovered in.

        >>> import tacit
        >>> truth = tacit.Network()
        >>> truth.add("fault", states=["yes", "no"], cpt=[0.3, 0.7])
        >>> truth.add("heat", ["fault"], cpt=tacit.Gaussian(mean=[9, 2], sd=[4, 1]))
        >>> rows = truth.sample(2000, seed=1)
        >>> found = tacit.discover(rows, bins=5, tiers=[["fault"], ["heat"]])
        >>> found.with_densities(rows).density("heat").mean.round()
        array([2., 9.])
        """
        return with_densities(self.network, rows, weights)

    def _shares(self) -> dict[Edge, float] | None:
        """The share of bootstrap samples that have each edge, in either direction; None without them."""
        if (strength := self.strength) is None:
            return None
        return {(a, b): strength.get((a, b), 0.0) + strength.get((b, a), 0.0) for a, b in self.network.edges}

    def __repr__(self) -> str:
        edges = f"{plural(len(self.network.edges), 'edge')} among {plural(len(self.network), 'variable')}"
        decided = f"{len(self.arrows.directed)} with a direction that the data decide"
        return f"Discovery({edges}, {decided}, score {self.score:.8g} from {counted(self.rows)})"

    def __str__(self) -> str:
        """The summary, and the edges: with an arrow where the direction is decided."""
        signs = [(edge, "->") for edge in self.arrows.directed] + [(edge, "--") for edge in self.arrows.undirected]
        shares = self._shares() or {}
        lines = []
        for (a, b), sign in signs[:MAX_LISTED]:
            share = shares.get((a, b), shares.get((b, a)))
            lines.append(f"  {a} {sign} {b}" + ("" if share is None else f"  in {share:.0%} of the samples"))
        if more := len(signs) - len(lines):
            lines.append(f"  and {more:,} more, in .arrows")
        return "\n".join([repr(self), *lines])

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
    bins: Bins = None,
    tiers: Sequence[Sequence[str]] | None = None,
    forbid: Iterable[Edge] = (),
    require: Iterable[Edge] = (),
    max_parents: int | None = None,
    max_cost: float | None = None,
    start: Network | Iterable[Edge] | None = None,
    weights: Any = None,
    exclude: Iterable[str] = (),
    bootstrap: int = 0,
    seed: int = 0,
    progress: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
) -> Discovery:
    """Find the structure of a network in a table, and estimate its tables.

    The result does not depend on the order of columns or rows. It is a model of what varies together; an arrow is no
    proof of a cause. `arrows` says which directions the data decide at all.

    Parameters
    ----------
    rows
        A frame, or columns by name; or as `tacit.estimate` takes them, the path of a table, which may be larger than
        the memory, or batches. A column becomes a variable whose states are the values that occur in it; measurements
        (fractions, or more than 12 different whole numbers) become intervals. Values may be missing, and are taken to
        be missing at random: structural EM fills them with draws from what is found so far, in rounds.
    score
        "bic", "aic", "bdeu" (with an equivalent sample size of 1) or "k2".
    search
        "tabu" changes single edges, and goes on behind the best graph for a while; on moderate tables it starts again
        from what a search over orders finds. "orders" always does so, which is slower and often better. "exact"
        finds the best graph of all, for up to 16 columns. "tree" finds the best forest. "pc" leaves out the edges
        that a test of independence (G2, at the 1% level) removes; `score` only says what its graph is worth.
    bins
        The intervals of columns of numbers: a dictionary from columns to edges, or anything that `tacit.discretize`
        takes, such as "equal" or 5. If left out, there are up to 8 with about as many rows each, and a warning.
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
    exclude
        Columns to leave out, such as names and numbers of rows.
    bootstrap, seed
        How many times to repeat the search on rows drawn with replacement, for `strength`; the seed.
    progress
        Whether to show how far it is, in a terminal or a notebook.
    checkpoint
        A file to write on the way, after a round or a bootstrap sample; if it exists already, the work resumes from it,
        after the rows were read again. Control-C gives the best graph so far.

    >>> import tacit
    >>> rows = tacit.examples.kidney_stones().sample(5000, seed=1)
    >>> discovery = tacit.discover(rows, tiers=[["size"], ["treatment"], ["recovery"]])
    >>> discovery.network.edges
    (('size', 'treatment'), ('size', 'recovery'), ('treatment', 'recovery'))
    >>> discovery.network.posterior("recovery", {"size": "small"}).shape
    (1, 2)
    """
    options = DiscoverOptions.among(locals())
    check_search(options)
    return discovered(coded_table(rows, weights, bins, exclude), options)


def discovered(table: CodedTable, options: DiscoverOptions) -> Discovery:
    """Find the structure of a table that is read already, and estimate the tables of the network."""
    check_search(options)
    warn_of_states([table.network.variable(name) for name in table.names], table.counts)
    warn_of_copies(table)
    limits = constraints(table.names, options.tiers, options.forbid, options.require)
    _check_required(table, limits, options.max_parents)
    start = _start(table, limits, options)
    limits, line = _without_constants(table, limits), Line(options.progress)
    searcher = Searcher(options, options.search, options.score, limits, start & limits.allowed, line)
    run, save = DiscoveryRun(searcher, table), None
    if path := options.checkpoint:
        key = run.key()
        run.read(path, key)
        save = partial(run.write, path, key)
    session = Session("discover", save, lambda: run.best is not None)
    interrupted = session.run(lambda: run.finish(lambda: session.checkpoint(last=run.ended)))
    if interrupted and run.found is not None:
        session.checkpoint(last=True)
    found = run.best
    assert found is not None
    line.end(f"score {found.score:.8g}, {plural(int(found.edges.sum()), 'edge')}")
    net = graph_network(table.network, table.names, found.edges)
    return Discovery(
        network=estimated(net, table, PSEUDO_COUNTS).network,
        score=found.score,
        history=found.history,
        arrows=_arrows(table.names, found.edges, ~limits.allowed.T),
        strength=_strength(table.names, run.sides, run.samples) if run.samples else None,
        rows=table.rows,
        seconds=time.monotonic() - options.started,
        interrupted=interrupted,
    )


def _without_constants(table: CodedTable, limits: Constraints) -> Constraints:
    """No edges at columns with a single value, which change no score: a search would try them all in vain."""
    single = table.cards == 1
    return Constraints((limits.allowed & ~single & ~single[:, None]) | limits.required, limits.required)


def check_search(options: DiscoverOptions) -> None:
    """An error about a search or a score that there is not."""
    if options.search not in SEARCHES:
        raise TacitError(f"search is {options.search!r}, expected one of {', '.join(map(repr, SEARCHES))}")
    score_by_name(options.score, 1.0)  # an error before the rows are read


def _check_required(table: CodedTable, limits: Constraints, max_parents: int | None) -> None:
    """An error where the required parents of a column are too many, or their table too large."""
    for child, name in enumerate(table.names):
        parents = np.flatnonzero(limits.required[:, child])
        listed = ", ".join(repr(table.names[p]) for p in parents)
        if max_parents is not None and len(parents) > max_parents:
            raise TacitError(f"max_parents is {max_parents}, but {name!r} has the required parents {listed}")
        cells = math.prod(table.cards[[child, *parents]].tolist())
        if len(parents) and cells > MAX_CELLS:
            raise TooLargeError(
                f"the table of {name!r} with the required parents {listed} would have {cells:,} entries"
            )


def _start(table: CodedTable, limits: Constraints, options: DiscoverOptions) -> Mask:
    """The graph to begin with; an error if it breaks the constraints."""
    edges, start = limits.required.copy(), options.start
    place = {name: i for i, name in enumerate(table.names)}
    given = () if start is None else start.edges if isinstance(start, Network) else start
    for a, b in checked_edges("start", given, place):
        if not limits.allowed[place[a], place[b]]:
            raise TacitError(f"start has the edge {a!r} -> {b!r}, which the constraints rule out")
        edges[place[a], place[b]] = True
    if is_cyclic(edges):
        raise TacitError("start and the required edges together have a cycle")
    if start is not None and options.max_cost is not None:
        cost = CostLimit(table.network, table.names, options.max_cost).cost(edges)
        if cost > options.max_cost:
            raise TacitError(f"start takes {cost:,.0f} multiply-adds per row, more than max_cost")
    return edges


def _arrows(names: Sequence[str], edges: Mask, known: Mask) -> Arrows:
    """The edges by whether their direction is decided, by the data or by the constraints."""
    fixed = directed_edges(edges, known)
    pairs = [[(names[a], names[b]) for a, b in np.argwhere(mask)] for mask in (fixed, edges & ~fixed)]
    return Arrows(sorted(pairs[0]), sorted((min(pair), max(pair)) for pair in pairs[1]))


def _strength(names: Sequence[str], sides: Floats, samples: int) -> dict[Edge, float]:
    """The share of samples with each edge, by its directions."""
    pairs = {(names[a], names[b]): float(sides[a, b] / samples) for a, b in np.argwhere(sides)}
    return dict(sorted(pairs.items(), key=lambda item: (-item[1], item[0])))

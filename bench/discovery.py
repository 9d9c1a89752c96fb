"""Structures from rows, side by side with other people's software.

One run: every program gets the same rows, and one function here scores the graphs of all of them.
`python -m bench discovery small` measures one part only. Names of networks limit the parts that go through several:
`python -m bench discovery large alarm`. Only a run of everything writes the page.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import tacit
from bench.discovery_rows import files, numbers, order
from bench.networks import network
from bench.tables import MISSED, OK, Ratio, Section, run_parts
from tacit.learn.discovering.query_cost import CostLimit
from tacit.learn.discovering.searches.clusters import Clusters

PAGE = Path(__file__).parent.parent / "docs" / "bench-discovery.md"
# by the number of variables, so that a method that runs out of time is not tried on anything larger
SMALL = ("asia", "child", "insurance", "water", "alarm", "barley", "hailfinder", "hepar2", "win95pts", "andes")
LARGE = ("alarm", "hepar2", "win95pts")
SMALL_ROWS, LARGE_ROWS = 10_000, 1_000_000
SMALL_LIMIT, LARGE_LIMIT = 60, 600  # seconds for a method on a network
REPEATS, ENOUGH = 3, 3.0  # calls, and seconds after which there is no further one
MORE_F1, MORE_SPEED = 0.05, 50
NO_MORE_SCORE = 1e-6  # nats, below which two scores are the same but for rounding
Edge = tuple[str, str]


class Rows(NamedTuple):
    """Columns of codes, and the labels of the states that occur in each."""

    codes: dict[str, np.ndarray]
    states: dict[str, list[str]]

    @property
    def count(self) -> int:
        return len(next(iter(self.codes.values())))

    def categories(self) -> pd.DataFrame:
        columns = {n: pd.Categorical.from_codes(codes, self.states[n]) for n, codes in self.codes.items()}
        return pd.DataFrame(columns)


def drawn(name: str, count: int) -> Rows:
    """Rows of a network; states that do not occur are left out."""
    codes, states = {}, {}
    for column, labels in network(name).sample(count, seed=0).items():
        occurring, places = np.unique(np.asarray(labels).astype(str), return_inverse=True)
        codes[column], states[column] = places.astype(np.int8), occurring.tolist()
    return Rows(codes, states)


# methods: edges from rows, and seconds --------------------------------------------------------------------


class Found(NamedTuple):
    """The edges that a method found, and the seconds of its fastest call."""

    edges: list[Edge]
    seconds: float


Search = Callable[[], list[Edge]]  # what the clock measures
Method = Callable[[Rows], list[Search]]  # ways to run the same search, of which the fastest counts


def by_tacit(rows: Rows, search: str) -> list[Search]:
    """`tacit.discover` from a frame of categories, its kernels loaded."""
    tacit.discover({"a": [0, 1, 0, 1], "b": [0, 1, 1, 1]}, search=search, progress=False)
    frame = rows.categories()
    return [lambda: list(tacit.discover(frame, score="bic", search=search, progress=False).network.edges)]


def by_pyagrum(rows: Rows, search: str) -> list[Search]:
    """pyAgrum from a frame of numbers, with the states that occur as domains.

    With two threads on two cores that others use, too, it sometimes waits a hundred times longer than it works; so it
    runs with one thread as well.
    """
    import pyagrum

    frame = pd.DataFrame(rows.codes)
    template = pyagrum.BayesNet()
    for name, states in rows.states.items():
        template.add(pyagrum.RangeVariable(name, name, 0, len(states) - 1))

    def run(threads: int | None) -> list[Edge]:
        learner = pyagrum.BNLearner(frame, template)
        if threads is not None:
            learner.setNumberOfThreads(threads)
        learner.useNoPrior()
        if search != "useMIIC":
            learner.useScoreBIC()
        getattr(learner, search)()
        return [(learner.nameFromId(a), learner.nameFromId(b)) for a, b in learner.learnDAG().arcs()]

    return [partial(run, 1), partial(run, None)]


def by_pgmpy(rows: Rows) -> list[Search]:
    """pgmpy's hill climbing, with its default tabu list."""
    from pgmpy.estimators import HillClimbSearch

    frame = rows.categories()

    def run() -> list[Edge]:
        dag = HillClimbSearch(frame).estimate(scoring_method="bic-d", show_progress=False)
        return [(str(a), str(b)) for a, b in dag.edges()]

    return [run]


METHODS: dict[str, Method] = {
    "tacit tabu": partial(by_tacit, search="tabu"),
    "tacit orders": partial(by_tacit, search="orders"),
    "pyAgrum greedy": partial(by_pyagrum, search="useGreedyHillClimbing"),
    "pyAgrum tabu": partial(by_pyagrum, search="useLocalSearchWithTabuList"),
    "pyAgrum MIIC": partial(by_pyagrum, search="useMIIC"),
    "pgmpy climbing": by_pgmpy,
}
OURS = ("tacit tabu", "tacit orders")


def limited(method: Method, rows: Rows, limit: float) -> Found | str:
    """The fastest of a method's calls within a limit, in a process of their own; or why there is none."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(method, rows, theirs))
    process.start()
    theirs.close()
    deadline = time.monotonic() + limit + 10  # seconds for imports and for sending the rows
    found: Found | str = f"> {limit} s"
    try:
        while ours.poll(max(0.0, deadline - time.monotonic())):
            more = ours.recv()
            if not (isinstance(found, Found) and (isinstance(more, str) or more.seconds >= found.seconds)):
                found = more
    except EOFError:
        if isinstance(found, str) and found.startswith(">"):
            found = "died"
    process.kill()
    process.join()
    return found


def _work(method: Method, rows: Rows, sink: Any) -> None:
    with warnings.catch_warnings(action="ignore"):
        try:
            for search in method(rows):
                begun = time.perf_counter()
                for _ in range(REPEATS):
                    start = time.perf_counter()
                    edges = search()
                    sink.send(Found(edges, time.perf_counter() - start))
                    if time.perf_counter() - begun > ENOUGH:
                        break
        except Exception as error:  # the table says so, and the other methods go on
            print(f"{type(error).__name__}: {error}", file=sys.stderr, flush=True)
            sink.send("refused")


# what a graph is worth ------------------------------------------------------------------------------------


def bic(rows: Rows, edges: Sequence[Edge]) -> float:
    """The log-likelihood in nats, less ln(n)/2 for each free number; states are those that occur in the rows."""
    total = 0.0
    for child, codes in rows.codes.items():
        parents = [a for a, b in edges if b == child]
        places, configurations = np.zeros(rows.count, np.int64), 1
        for parent in parents:  # numbered afresh each time, so that no number is too large
            _, places = np.unique(places * len(rows.states[parent]) + rows.codes[parent], return_inverse=True)
            configurations *= len(rows.states[parent])
        size = len(rows.states[child])
        counts = np.bincount(places * size + codes)
        groups = np.bincount(places)
        likelihood = _sum_of_n_log_n(counts) - _sum_of_n_log_n(groups)
        total += likelihood - math.log(rows.count) / 2 * (size - 1) * configurations
    return total


def _sum_of_n_log_n(counts: np.ndarray) -> float:
    present = counts[counts > 0].astype(np.float64)
    return math.fsum(present * np.log(present))


class Marked(NamedTuple):
    """The edges of an equivalence class (CPDAG)."""

    directed: set[Edge]
    undirected: set[frozenset[str]]

    @property
    def count(self) -> int:
        return len(self.directed) + len(self.undirected)


def equivalence_class(names: Sequence[str], edges: Sequence[Edge]) -> Marked:
    """The CPDAG of a graph, by pyAgrum."""
    import pyagrum

    model = pyagrum.BayesNet()
    number = {name: model.add(pyagrum.RangeVariable(name, name, 0, 1)) for name in names}
    for a, b in edges:
        model.addArc(number[a], number[b])
    essential, name = pyagrum.EssentialGraph(model), {i: name for name, i in number.items()}
    return Marked(
        {(name[a], name[b]) for a, b in essential.arcs()},
        {frozenset((name[a], name[b])) for a, b in essential.edges()},
    )


def f1(found: Marked, true: Marked) -> float:
    """Edges count as right where the true class has them with the same mark: the same direction, or none."""
    right = len(found.directed & true.directed) + len(found.undirected & true.undirected)
    return 2 * right / (found.count + true.count)


# 10^4 rows ------------------------------------------------------------------------------------------------


def small(names: Sequence[str] = SMALL) -> list[Section]:
    """Scores, classes and times on 10^4 rows."""
    methods = [*METHODS]
    scores = Section(
        f"1. BIC on {SMALL_ROWS:,} rows: nats below the best of a line",
        "no peer finds a better graph than tacit tabu",
        ("network", "variables", "best BIC", "true graph", *methods, "verdict"),
    )
    classes = Section(
        "2. F1 of the equivalence class",
        f"the mean of tacit tabu at least {MORE_F1} above that of every peer, on the networks that both finished",
        ("network", "edges", *methods, "verdict"),
    )
    times = Section("3. Seconds", "none", ("network", *methods))
    late: set[str] = set()
    for name in names:
        net, rows = network(name), drawn(name, SMALL_ROWS)
        found: dict[str, Found | str] = {}
        for method, function in METHODS.items():
            found[method] = "-" if method in late else limited(function, rows, SMALL_LIMIT)
            if str(found[method]).startswith(">"):
                late.add(method)
        _add_small(scores, classes, times, net, rows, found)
        for section in (scores, classes, times):
            print(" | ".join(section.rows[-1]), flush=True)
    _add_means(classes, methods)
    return [scores, classes, times]


def _add_means(classes: Section, methods: Sequence[str]) -> None:
    """Rows with the mean F1 of every method, and with that of tacit tabu on the same networks."""
    columns = {m: [row[2 + i] for row in classes.rows] for i, m in enumerate(methods)}
    means, ours = [], []
    for values in columns.values():
        done = [i for i, value in enumerate(values) if value[0].isdigit()]
        means.append(np.mean([float(values[i]) for i in done]) if done else math.nan)
        ours.append(np.mean([float(columns["tacit tabu"][i]) for i in done]) if done else math.nan)
    gains = [a - b for m, a, b in zip(methods, ours, means, strict=True) if m not in OURS and not math.isnan(b)]
    classes.add("mean", "", *(f"{mean:.3f}" for mean in means), OK if min(gains) >= MORE_F1 else MISSED)
    classes.add("tacit tabu on the same", "", *(f"{mean:.3f}" for mean in ours), "")


def _add_small(
    scores: Section,
    classes: Section,
    times: Section,
    net: tacit.Network,
    rows: Rows,
    found: Mapping[str, Found | str],
) -> None:
    names, edges = [*net], list(net.edges)
    true = equivalence_class(names, edges)
    reached = {m: bic(rows, f.edges) for m, f in found.items() if isinstance(f, Found)}
    best = max(reached.values(), default=math.nan)
    below = [f"{best - reached[m]:.1f}" if m in reached else f for m, f in found.items()]
    ours = reached.get("tacit tabu", -math.inf)
    peers = max((score for m, score in reached.items() if m not in OURS), default=-math.inf)
    verdict = OK if ours >= peers - NO_MORE_SCORE else MISSED
    scores.add(net.name, len(names), f"{best:.1f}", f"{best - bic(rows, edges):.1f}", *below, verdict)
    classes.add(
        net.name,
        true.count,
        *(f"{f1(equivalence_class(names, f.edges), true):.3f}" if isinstance(f, Found) else f for f in found.values()),
        "",
    )
    times.add(net.name, *(f"{f.seconds:.2f}" if isinstance(f, Found) else f for f in found.values()))


# 10^6 rows ------------------------------------------------------------------------------------------------


def large(names: Sequence[str] = LARGE, count: int = LARGE_ROWS) -> list[Section]:
    """Seconds of tabu search on 10^6 rows."""
    section = Section(
        "4. Tabu search on many rows: seconds",
        f"tacit {MORE_SPEED} times as fast, and its BIC no worse",
        ("network", "rows", "tacit", "pyAgrum", "ratio", "BIC of tacit", "less pyAgrum's", "F1 of tacit",
         "F1 of pyAgrum", "verdict"),
    )  # fmt: skip
    for name in names:
        net, rows = network(name), drawn(name, count)
        true = equivalence_class([*net], list(net.edges))
        found = [limited(METHODS[method], rows, LARGE_LIMIT) for method in ("tacit tabu", "pyAgrum tabu")]
        spent = [f.seconds if isinstance(f, Found) else math.inf for f in found]
        reached = [bic(rows, f.edges) if isinstance(f, Found) else -math.inf for f in found]
        rights = [f"{f1(equivalence_class([*net], f.edges), true):.3f}" if isinstance(f, Found) else "-" for f in found]
        shown = [f"{f.seconds:.2f}" if isinstance(f, Found) else f for f in found]
        good = MORE_SPEED * spent[0] <= spent[1] and reached[0] >= reached[1] - NO_MORE_SCORE
        more = f"{reached[0] - reached[1]:+.1f}" if math.isfinite(reached[1]) else "-"
        ratio = Ratio(spent[1], spent[0]) if math.isfinite(spent[1]) else "-"
        section.add(name, count, *shown, ratio, f"{reached[0]:.1f}", more, *rights, OK if good else MISSED)
        print(" | ".join(section.rows[-1]), flush=True)
    return [section]


# what else is promised ------------------------------------------------------------------------------------

COST_LIMITS = {"hepar2": 800.0, "andes": 20_000.0, "link": 100_000.0}  # multiply-adds per row
MAX_TRIED = 1e9  # entries of tables up to which a graph is compiled to see what it takes
SURE = 0.95  # the strength of edges that should be right


def cheap(names: Sequence[str] = tuple(COST_LIMITS)) -> list[Section]:
    """Graphs whose queries stay below a cost."""
    section = Section(
        f"5. `max_cost` on {SMALL_ROWS:,} rows",
        "the network compiles, and a query takes no more",
        ("network", "variables", "max_cost", "multiply-adds", "without a limit", "BIC given up, nats", "of BIC", "s",
         "verdict"),
    )  # fmt: skip
    for name in names:
        frame = drawn(name, SMALL_ROWS).categories()
        free = tacit.discover(frame, progress=False)
        start = time.perf_counter()
        found = tacit.discover(frame, max_cost=COST_LIMITS[name], progress=False)
        seconds = time.perf_counter() - start
        cost, before = _cost(found.network), _cost(free.network)
        less = free.score - found.score
        share = f"{100 * less / -free.score:.2f}%"
        verdict = OK if cost <= COST_LIMITS[name] else MISSED
        shown = f"{before:,.0f}" if math.isfinite(before) else "too large"
        limit = f"{COST_LIMITS[name]:,.0f}"
        section.add(
            name, len(found.network), limit, f"{cost:,.0f}", shown, f"{less:.1f}", share, f"{seconds:.1f}", verdict
        )
        print(" | ".join(section.rows[-1]), flush=True)
    return [section]


def _cost(net: tacit.Network) -> float:
    """The multiply-adds per row of all marginals; infinite where tables are far too large for an attempt."""
    edges = np.array([[a in net.parents(b) for b in net] for a in net])
    clusters = Clusters(np.array([len(net.states(name)) for name in net], dtype=np.float64))
    clusters.follow(edges)
    return CostLimit(net, list(net), None).cost(edges) if clusters.total <= MAX_TRIED else math.inf


def sure(names: Sequence[str] = ("asia", "child", "insurance", "alarm", "hepar2")) -> list[Section]:
    """Bootstrap: whether sure edges are right."""
    section = Section(
        f"6. Bootstrap: 50 samples of {SMALL_ROWS:,} rows",
        f"of the directed edges of strength >= {SURE}, at least 90% are in the network that the rows are from",
        ("network", "sure directions", "right", "sure edges in either direction", "right, either", "verdict"),
    )
    totals = np.zeros(4, dtype=int)
    for name in names:
        net = network(name)
        frame = drawn(name, SMALL_ROWS).categories()
        strength = tacit.discover(frame, bootstrap=50, progress=False).strength or {}
        true = {*net.edges}
        directed = [edge for edge, share in strength.items() if share >= SURE]
        both = {frozenset(e): strength.get(e, 0.0) + strength.get(e[::-1], 0.0) for e in strength}
        either = [edge for edge, share in both.items() if share >= SURE]
        right = sum(edge in true for edge in directed)
        right_either = sum(edge in {frozenset(e) for e in true} for edge in either)
        section.add(name, len(directed), right, len(either), right_either, "")
        totals += [len(directed), right, len(either), right_either]
        print(" | ".join(section.rows[-1]), flush=True)
    good = totals[1] >= 0.9 * totals[0] and totals[3] >= 0.9 * totals[2]
    section.add("all", *totals.tolist(), OK if good else MISSED)
    return [section]


def gaps() -> list[Section]:
    """A fifth of all cells is missing."""
    section = Section(
        f"7. alarm, {SMALL_ROWS:,} rows, a fifth of all cells missing",
        "F1 within 0.05 of that of the complete rows; held-out rows more probable than by complete rows alone",
        ("rows", "F1", "log-likelihood of a held-out row", "s", "verdict"),
    )
    net = network("alarm")
    rows, held_out = drawn("alarm", SMALL_ROWS), pd.DataFrame(net.sample(5000, seed=1))
    true = equivalence_class([*net], list(net.edges))
    whole = rows.categories().astype(object)
    holes = whole.mask(np.random.default_rng(0).random(whole.shape) < 0.2)
    figures = []
    for title, frame in (("complete", whole), ("with gaps", holes), ("those without gaps", holes.dropna())):
        start = time.perf_counter()
        found = tacit.discover(frame, progress=False)
        seconds = time.perf_counter() - start
        # few rows do not have all states: the tables of all are estimated alike, with the states of the network
        same = tacit.Network.from_edges(found.network.edges, states={name: net.states(name) for name in net}, nodes=net)
        learned = tacit.estimate(same, frame, prior=0.1, progress=False).network
        likelihood = float(learned.log_likelihood(held_out).mean())
        right = f1(equivalence_class([*net], list(found.network.edges)), true)
        figures.append((right, likelihood))
        section.add(f"{title} ({len(frame):,})", f"{right:.3f}", f"{likelihood:.3f}", f"{seconds:.1f}", "")
        print(" | ".join(section.rows[-1]), flush=True)
    (full, _), (right, likelihood), (_, alone) = figures
    section.rows[1][-1] = OK if right >= full - 0.05 and likelihood > alone else MISSED
    return [section]


# all of it ------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Measure, print, and write the page when all was measured."""
    chosen = [name for name in arguments if name in {*SMALL, *COST_LIMITS}]
    rest = [name for name in arguments if name not in chosen]
    if chosen and not rest:
        rest = ["small"]
    parts: dict[str, Callable[[], list[Section]]] = {
        "small": partial(small, chosen or SMALL),
        "large": partial(large, chosen or LARGE),
        "cheap": partial(cheap, chosen or tuple(COST_LIMITS)),
        "sure": sure,
        "gaps": gaps,
        "order": order,
        "files": files,
        "numbers": numbers,
    }
    run_parts(rest, parts, PAGE, "Structures from rows: measured", INTRO)


INTRO = f"""Made by `python -m bench discovery`. Two cores, and as many threads as each program takes by itself. Rows
are drawn from the network (`net.sample(rows, seed=0)`); every figure of a row of a table comes from one run. Each
method has a process of its own that has loaded its libraries; the fastest of three calls counts, or of fewer once they
took {ENOUGH:.0f} seconds. pyAgrum runs with one thread and with its default, and the faster counts: its threads wait
for each other at length where others use the cores. tacit and pgmpy get a frame of categories, pyAgrum one of numbers
with the domains given; copying it into a database of its own counts, and so do the tables that tacit estimates.
A method that takes more than {SMALL_LIMIT} seconds ({LARGE_LIMIT} on many rows) is ended, and not tried on networks
with more variables.

**Scores.** All graphs are scored by one function of this benchmark, which shares no code with tacit: the log-likelihood
in nats, less ln(n)/2 for each free number. The states of a variable are those that occur in the rows. All searches are
for this score with no prior, except MIIC, which has tests of its own. Peers run with the options that they have by
default: pyAgrum's tabu search gives up after two steps without a better graph, tacit's after a hundred.

**Classes.** Graphs are compared as equivalence classes (CPDAGs), which pyAgrum derives for all. An edge is right where
the class of the network that the rows were drawn from has it with the same mark: directed the same way, or undirected.
One with another mark counts as wrong, and as missing. F1 is twice the number of right edges over the edges of both
classes. The best graph for the rows need not be the true one: edges that matter too little for so many rows cost more
than they gain."""

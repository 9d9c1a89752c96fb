"""Rows of evidence per second, side by side with the libraries people use today.

One run: every peer answers the same rows, and its answers are compared with ours. Times are per row; ratios are
what carries over to other machines. `python -m bench inference alarm child` runs some networks only.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.pyagrum_peer import to_peer

import tacit
from bench.networks import leaves, network, widest_root
from bench.tables import Ratio, Section, at_least, at_most, write

# fmt: off
NETWORKS = (
    "asia", "child", "alarm", "insurance", "hailfinder", "hepar2", "win95pts", "pathfinder",
    "andes", "pigs", "diabetes", "link", "munin1",
)
# fmt: on
BARS = dict.fromkeys(("child", "alarm", "insurance", "hailfinder", "win95pts", "hepar2"), 300)
BARS |= dict.fromkeys(("andes", "pigs", "munin1"), 50)
PAGE = Path(__file__).parent.parent / "docs" / "bench-inference.md"
PLOT = Path(__file__).parent.parent / "docs" / "images" / "bench-inference.svg"
SECONDS = 2.0  # how long a peer may take for a sample of rows


@dataclass(frozen=True)
class Case:
    """A network, what is asked and what is observed."""

    name: str
    net: tacit.Network
    query: str
    observed: tuple[str, ...]
    soft: bool
    what: str

    def rows(self, count: int) -> dict[str, np.ndarray]:
        """Random evidence, the same for everybody: likelihoods, or states as codes of a sampled row."""
        rng = np.random.default_rng(1)
        if self.soft:
            return {n: rng.dirichlet(np.ones(len(self.net.states(n))), count) for n in self.observed}
        sampled = sample(self.net, count, rng)
        return {n: np.array(self.net.states(n), dtype=object)[sampled[n]] for n in self.observed}

    def likelihoods(self, evidence: dict[str, np.ndarray], i: int) -> dict[str, list[float]]:
        """One row for a peer: a likelihood per state."""
        if self.soft:
            return {n: evidence[n][i].tolist() for n in self.observed}
        return {n: [float(s == evidence[n][i]) for s in self.net.states(n)] for n in self.observed}


def sample(net: tacit.Network, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Rows drawn from the network, so that hard evidence is never impossible."""
    drawn: dict[str, np.ndarray] = {}
    for name in net:
        rows = net.table(name)[tuple(drawn[p] for p in net.parents(name))]
        rows = np.broadcast_to(rows, (count, rows.shape[-1]))
        drawn[name] = (rng.random((count, 1)) > rows.cumsum(axis=1)).sum(axis=1).clip(max=rows.shape[1] - 1)
    return drawn


def cases(name: str) -> list[Case]:
    """Five leaves and all leaves, soft and hard; the query is the root with the most descendants."""
    net = network(name)
    query = widest_root(net)
    every = tuple(n for n in leaves(net) if n != query)
    rng = np.random.default_rng(0)
    few = tuple(rng.choice(every, size=min(5, len(every)), replace=False).tolist())
    sets = {"5 leaves": few, "all leaves": every}
    return [Case(name, net, query, found, soft, what) for what, found in sets.items() for soft in (True, False)]


def per_row(run: Callable[[], object], rows: int, repeats: int = 3) -> float:
    """Median seconds per row."""
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        spent.append(time.perf_counter() - start)
    return statistics.median(spent) / rows


@dataclass
class Measured:
    """What one case came to, in seconds per row."""

    case: Case
    compiling: float
    engine: str
    one: float
    thousand: float
    ten_thousand: float
    many: float
    many_rows: int
    numpy: float
    pyagrum: float
    pgmpy: float
    error: float


def measure(case: Case) -> Measured:
    """All engines and peers on one case."""
    roles = {"evidence": case.observed} if case.soft else {"hard": case.observed}
    start = time.perf_counter()
    tac = tacit.compile(case.net, case.query, **roles)
    compiling = time.perf_counter() - start
    base = min(1000, max(64, int(4e9 // (1 + tac.program.cost.multiply_adds))))
    evidence = case.rows(base)
    first = {n: c[:1] for n, c in evidence.items()}
    tac.posterior(first)
    one = per_row(lambda: tac.posterior(first), 1, repeats=100 if base == 1000 else 5)
    thousand = per_row(lambda: tac.posterior(evidence), base)
    more_rows = int(min(10_000, max(base, 2.5 / thousand)))
    more = case.rows(more_rows)
    ten_thousand = per_row(lambda: tac.posterior(more), more_rows, repeats=5)
    many_rows = int(min(100_000, max(base, 2.5 / thousand)))
    plenty = case.rows(many_rows)
    many = per_row(lambda: tac.posterior(plenty), many_rows)
    ours = tac.posterior(evidence)
    reference = tacit.compile(case.net, case.query, **roles, engine="numpy")
    few = {n: c[: max(8, min(base, int(0.5 / thousand)))] for n, c in evidence.items()}
    count = len(next(iter(few.values())))
    by_numpy = per_row(lambda: reference.posterior(few), count, repeats=1)
    error = float(np.nanmax(np.abs(reference.posterior(few) - ours[:count])))
    pyagrum, found = by_pyagrum(case, evidence)
    error = max(error, float(np.abs(found - ours[: len(found)]).max()) if len(found) else 0.0)
    pgmpy, found = by_pgmpy(case, evidence)
    error = max(error, float(np.abs(found - ours[: len(found)]).max()) if len(found) else 0.0)
    engine = type(tac.engine()).__name__.removesuffix("Engine").lower()
    return Measured(
        case, compiling, engine, one, thousand, ten_thousand, many, many_rows, by_numpy, pyagrum, pgmpy, error
    )


def sampled(answer: Callable[[int], np.ndarray], limit: int) -> tuple[float, np.ndarray]:
    """Answers to some rows within the time a peer is given, and seconds per row."""
    found: list[np.ndarray] = []
    start = time.perf_counter()
    while len(found) < limit and (time.perf_counter() - start < SECONDS or not found):
        found.append(answer(len(found)))
    return (time.perf_counter() - start) / len(found), np.array(found)


def by_pyagrum(case: Case, evidence: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """LazyPropagation, one engine, evidence changed in place: the fast way to loop."""
    import pyagrum

    engine = pyagrum.LazyPropagation(to_peer(case.net))
    engine.setTargets({case.query})
    rows = [case.likelihoods(evidence, i) for i in range(min(200, len(next(iter(evidence.values())))))]
    for name, values in rows[0].items():
        engine.addEvidence(name, values)
    engine.makeInference()

    def answer(i: int) -> np.ndarray:
        for name, values in rows[i].items():
            engine.chgEvidence(name, values)
        engine.makeInference()
        return np.array(engine.posterior(case.query).toarray())

    try:
        return sampled(answer, len(rows))
    except pyagrum.NotFound:  # an incremental update that LazyPropagation cannot do: evidence anew for every row

        def anew(i: int) -> np.ndarray:
            engine.setEvidence(rows[i])
            engine.makeInference()
            return np.array(engine.posterior(case.query).toarray())

        return sampled(anew, len(rows))


def by_pgmpy(case: Case, evidence: dict[str, np.ndarray]) -> tuple[float, np.ndarray]:
    """VariableElimination, row by row; left out where the network is too large for it."""
    if len(case.net) > 120 or case.name == "pathfinder":
        return float("nan"), np.empty(0)
    try:
        from pgmpy.inference import VariableElimination
    except ImportError:
        return float("nan"), np.empty(0)
    model = pgmpy_model(case.net)
    engine = VariableElimination(model)

    def answer(i: int) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = engine.query([case.query], **pgmpy_evidence(case, evidence, i), show_progress=False)
        return np.array(found.values)

    return sampled(answer, 20)


def pgmpy_model(net: tacit.Network) -> object:
    """The same network in pgmpy; states are named by their position."""
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([(p, n) for n in net for p in net.parents(n)])
    model.add_nodes_from(net.variables)
    for n in net:
        cards = [len(net.states(p)) for p in net.parents(n)]
        table = net.table(n).reshape(-1, len(net.states(n))).T
        model.add_cpds(TabularCPD(n, len(net.states(n)), table, list(net.parents(n)) or None, cards or None))
    return model


def pgmpy_evidence(case: Case, evidence: dict[str, np.ndarray], i: int) -> dict[str, object]:
    from pgmpy.factors.discrete import TabularCPD

    if case.soft:
        cpds = [TabularCPD(n, len(evidence[n][i]), evidence[n][i].reshape(-1, 1)) for n in case.observed]
        return {"virtual_evidence": cpds}
    return {"evidence": {n: case.net.states(n).index(evidence[n][i]) for n in case.observed}}


# the page -------------------------------------------------------------------------------------------------


def main(arguments: list[str]) -> None:
    """Measure, print, and write the page and the plot when all networks were run."""
    names = tuple(arguments) or NETWORKS
    section = Section(
        "1. Time per row, in microseconds",
        "against the pyAgrum loop, soft evidence, 10,000 rows: 300x on child, alarm, insurance, hailfinder, win95pts, "
        "hepar2; 50x on andes, pigs, munin1; agreement 1e-9",
        ("network", "observed", "evidence", "engine", "compile", "1 row", "1,000 rows", "10,000 rows", "many rows",
         "numpy engine", "pyAgrum", "pgmpy", "vs pyAgrum", "vs pgmpy", "largest difference", "verdict"),
    )  # fmt: skip
    found = []
    for name in names:
        for case in cases(name):
            m = measure(case)
            found.append(m)
            ratio = Ratio(m.pyagrum, m.ten_thousand)
            verdict = at_least(float(ratio), BARS[name]) if name in BARS and case.soft else ""
            if not m.error <= 1e-9:
                verdict = "MISSED"
            section.add(
                name, case.what, "soft" if case.soft else "hard", m.engine, f"{m.compiling:.2f} s", us(m.one),
                us(m.thousand), us(m.ten_thousand), us(m.many), us(m.numpy), us(m.pyagrum), us(m.pgmpy), ratio,
                Ratio(m.pgmpy, m.ten_thousand) if m.pgmpy == m.pgmpy else "-", f"{m.error:.1e}", verdict,
            )  # fmt: skip
            print(" ".join(section.rows[-1]), flush=True)
    sections = [section, *(f() for f in (one_row, second_process, threads, ceiling, memory))]
    for each in sections:
        print(each.text())
    if not arguments:
        write(PAGE, "Inference: measured", INTRO, sections)
        plot(found)


INTRO = """Made by `make bench`. Two cores; every figure of a row of a table comes from one run, medians of several.
"many rows" is 100,000; large networks get fewer rows. Ratios are for 10,000 rows. pyAgrum: LazyPropagation, one engine,
evidence changed in place. pgmpy: VariableElimination, row by row. No rows are de-duplicated. "-": not run, because the
peer does not get through the network in reasonable time."""


def us(seconds: float) -> str:
    return "-" if seconds != seconds else f"{seconds * 1e6:,.2f}" if seconds < 1e-3 else f"{seconds * 1e6:,.0f}"


def one_row() -> Section:
    """A single new row, the query already compiled, against pyAgrum's incremental query."""
    section = Section(
        "2. One new row of alarm", "no slower than pyAgrum", ("evidence", "tacit", "pyAgrum", "ratio", "verdict")
    )
    for case in cases("alarm")[2:]:
        m = measure(case)
        section.add("soft" if case.soft else "hard", us(m.one), us(m.pyagrum), Ratio(m.pyagrum, m.one),
                    at_most(m.one, m.pyagrum))  # fmt: skip
    return section


def second_process() -> Section:
    """A fresh process, the kernels already compiled."""
    program = (
        "import time; t=time.perf_counter(); import tacit; from bench.networks import network, leaves; "
        "i=time.perf_counter(); net=network('alarm'); r=time.perf_counter(); "
        "tac=tacit.compile(net,'HYPOVOLEMIA',leaves(net)); c=time.perf_counter(); "
        "tac.posterior({n: [[1.0]*len(net.states(n))] for n in leaves(net)}); f=time.perf_counter(); "
        "print(i-t, r-i, c-r, f-c)"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True) for _ in range(4)
    ]
    figures = [[float(x) for x in run.stdout.split()] for run in runs[1:]]
    imported, read, compiled, answered = (statistics.median(column) for column in zip(*figures, strict=True))
    section = Section("3. A second process: alarm, first answer", "1.5 s",
                      ("import", "read file", "compile", "first answer", "total", "verdict"))  # fmt: skip
    total = imported + compiled + answered
    section.add(*(f"{s:.2f} s" for s in (imported, read, compiled, answered, total)), at_most(total, 1.5))
    return section


def threads() -> Section:
    """One thread and two."""
    section = Section("4. Threads: alarm, 100,000 soft rows", "-", ("threads", "fastest", "median", "load"))
    case = cases("alarm")[2]
    tac = tacit.compile(case.net, case.query, case.observed, engine="tape")
    evidence = case.rows(100_000)
    for count in (1, 2):
        tac.engine().threads = count  # type: ignore[attr-defined]
        spent = [per_row(lambda: tac.posterior(evidence), 100_000, repeats=1) for _ in range(5)]
        load = Path("/proc/loadavg").read_text().split()[0]
        section.add(count, us(min(spent)), us(statistics.median(spent)), load)
    return section


def ceiling() -> Section:
    """How far the tape is from what one core of the machine can do."""
    section = Section("5. Against the machine: alarm, one thread", "-", ("figure", "value"))
    a = np.random.default_rng(0).random((1500, 1500))
    gemm = 1500**3 / per_row(lambda: a @ a, 1, repeats=5)
    big = np.ones(2**25)
    copied = 2 * big.nbytes / per_row(big.copy, 1, repeats=5)
    case = cases("alarm")[2]
    tac = tacit.compile(case.net, case.query, case.observed, engine="tape")
    engine = tac.engine()
    engine.threads = 1  # type: ignore[attr-defined]
    columns = tac.read(case.rows(16_384)).columns
    kernel = per_row(lambda: engine.run(columns, 16_384), 16_384, repeats=9)
    work = engine.tape.work / kernel  # type: ignore[attr-defined]
    moved = 8 * (sum(len(case.net.states(n)) for n in case.observed) + 2) / kernel
    section.add("matrix product (BLAS, all threads), multiply-adds/s", f"{gemm:.2e}")
    section.add("tape, multiply-adds/s", f"{work:.2e}")
    section.add("tape / matrix product", f"{work / gemm:.1%}")
    section.add("memory copy, bytes/s", f"{copied:.2e}")
    section.add("evidence in and posterior out, bytes/s", f"{moved:.2e}")
    section.add("tape / memory copy", f"{moved / copied:.1%}")
    return section


def memory() -> Section:
    """Peak memory must not grow with the rows, beyond the evidence and the answers themselves."""
    section = Section("6. Memory: alarm, soft rows", "-", ("rows", "evidence and answers", "peak beyond them"))
    case = cases("alarm")[2]
    tac = tacit.compile(case.net, case.query, case.observed)
    tac.posterior(case.rows(1000))
    for rows in (100_000, 400_000):
        evidence = case.rows(rows)
        known = tac.read(evidence)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        answers = np.concatenate([r.joint.T for r, _ in tac._chunks(known, tac.engine())])
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        held = sum(c.nbytes for c in evidence.values()) + answers.nbytes
        section.add(rows, f"{held / 2**20:.0f} MB", f"{max(0, after - before - answers.nbytes / 1024) / 1024:.0f} MB")
    return section


def plot(found: list[Measured]) -> None:
    """Time per row, soft evidence on all leaves, as bars on a logarithmic scale."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    shown = [m for m in found if m.case.soft and m.case.what == "all leaves"]
    figure, axes = plt.subplots(figsize=(9, 0.5 * len(shown) + 1.2), layout="constrained")
    peers = (("pgmpy", "#c7c7c7"), ("pyagrum", "#7f9fbf"), ("numpy", "#f0b070"), ("many", "#c0392b"))
    names = {"pgmpy": "pgmpy", "pyagrum": "pyAgrum", "numpy": "tacit, NumPy engine", "many": "tacit"}
    for k, (peer, colour) in enumerate(peers):
        values = [getattr(m, peer) * 1e6 for m in shown]
        places = [i + 0.2 * (1.5 - k) for i in range(len(shown))]
        axes.barh(places, values, height=0.19, color=colour, label=names[peer])
    axes.set_xscale("log")
    axes.set_yticks(range(len(shown)), [m.case.name for m in shown])
    axes.invert_yaxis()
    axes.set_xlabel("microseconds per row of soft evidence on all leaves (less is better)")
    axes.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, 1.12), ncols=4)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(PLOT)
    plt.close(figure)

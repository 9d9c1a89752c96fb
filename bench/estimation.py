"""Tables from rows, side by side with other people's software.

One run: every peer learns from the same rows, from the same start, and its tables are compared with ours.
`python -m bench estimation holes` measures one part only; the others are `complete`, `restarts` and `parquet`.
"""

from __future__ import annotations

import math
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyagrum
from tests.pyagrum_peer import to_peer

import tacit
from bench.networks import network
from bench.sides import Comparison
from bench.tables import MISSED, OK, Ratio, Section, run_parts
from tacit.learn.estimating.estimation import Estimation
from tacit.learn.options import EstimateOptions

PAGE = Path(__file__).parent.parent / "docs" / "bench-estimation.md"


def seconds(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The median time of some calls, and what the last one gave."""
    spent, found = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        found = function()
        spent.append(time.perf_counter() - start)
    return float(np.median(spent)), found


# complete rows --------------------------------------------------------------------------------------------

ROWS = 1_000_000


def complete() -> list[Section]:
    """Counting against pgmpy and pyAgrum, which all get the same data frame."""
    section = Section(
        "1. Complete rows: seconds for a data frame",
        "equal to 1e-12; 20x pgmpy on 10^6 rows of alarm",
        ("network", "rows", "columns of", "prior", "tacit", "pgmpy", "vs pgmpy", "pyAgrum", "largest difference",
         "verdict"),
    )  # fmt: skip
    for name, rows in (("alarm", 10_000), ("alarm", ROWS), ("hailfinder", 100_000)):
        net = network(name)
        drawn = net.sample(rows, seed=1)
        frames = {"categories": pd.DataFrame(drawn).astype("category"), "numbers": pd.DataFrame(codes(net, drawn))}
        if rows == ROWS:
            frames["text"] = pd.DataFrame(drawn)
        for kind, frame in frames.items():
            for prior in (0.0, 1.0):
                count(section, by_code(net) if kind == "numbers" else unset(net), frame, kind, prior)
                print(" ".join(section.rows[-1]), flush=True)
    return [section]


def count(section: Section, net: tacit.Network, frame: pd.DataFrame, kind: str, prior: float) -> None:
    """One line of the table; pyAgrum gets numbers only."""
    ours, found = seconds(lambda: tacit.estimate(net, frame, prior, progress=False), repeats=5)
    theirs, model = seconds(lambda: by_pgmpy(net, frame, prior), repeats=3)
    tables = {n: found.network.table(n) for n in net}
    error, others = difference(tables, model), "-"
    if kind == "numbers":
        try:
            spent, peer = seconds(lambda: by_pyagrum(net, frame, prior), repeats=1)
        except pyagrum.DatabaseError:
            others = "refused"
        else:
            others, error = f"{spent:.2f} ({Ratio(spent, ours)})", max(error, difference(tables, peer))
    ratio = Ratio(theirs, ours)
    reached = error <= 1e-12 and (float(ratio) >= 20 or len(frame) < ROWS)
    section.add(net.name, len(frame), kind, prior, f"{ours:.3f}", f"{theirs:.2f}", ratio, others, f"{error:.1e}",
                OK if reached else MISSED)  # fmt: skip


def unset(net: tacit.Network) -> tacit.Network:
    """The structure of a network, without tables."""
    bare = tacit.Network(net.name)
    for name in net:
        bare.add(name, net.parents(name), net.states(name))
    return bare


def codes(net: tacit.Network, drawn: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """States by their position."""
    found = {}
    for name, labels in drawn.items():
        states = np.asarray(net.states(name))
        order = np.argsort(states)
        found[name] = order[np.searchsorted(states, labels.astype(states.dtype), sorter=order)]
    return found


def by_code(net: tacit.Network) -> tacit.Network:
    """The structure of a network, with states that are named by their position and no tables."""
    bare = tacit.Network(net.name)
    for name in net:
        bare.add(name, net.parents(name), [*range(len(net.states(name)))])
    return bare


def by_pgmpy(net: tacit.Network, frame: pd.DataFrame, prior: float) -> dict[str, np.ndarray]:
    """The tables that pgmpy finds."""
    from pgmpy import estimators
    from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork([(parent, name) for name in net for parent in net.parents(name)])
    model.add_nodes_from(net.variables)
    states = {name: list(net.states(name)) for name in net}
    with warnings.catch_warnings(action="ignore"):
        if not prior:
            peer = estimators.MaximumLikelihoodEstimator(model, frame, state_names=states)
            return pgmpy_tables(net, peer.get_parameters(n_jobs=1))
        shapes = {name: [len(net.states(n)) for n in (*net.parents(name), name)] for name in net}
        pseudo = {name: np.full((shape[-1], math.prod(shape[:-1])), prior) for name, shape in shapes.items()}
        peer = estimators.BayesianEstimator(model, frame, state_names=states)
        return pgmpy_tables(net, peer.get_parameters(prior_type="dirichlet", pseudo_counts=pseudo, n_jobs=1))


def pgmpy_tables(net: tacit.Network, found: Any) -> dict[str, np.ndarray]:
    """Tables of pgmpy's with our axes and our order of states."""
    tables = {}
    for cpd in found:
        own = (*net.parents(cpd.variable), cpd.variable)
        values = cpd.values.transpose([cpd.variables.index(n) for n in own])
        tables[cpd.variable] = values[np.ix_(*([cpd.state_names[n].index(s) for s in net.states(n)] for n in own))]
    return tables


def by_pyagrum(net: tacit.Network, frame: pd.DataFrame, prior: float) -> dict[str, np.ndarray]:
    """The tables that pyAgrum finds."""
    template = pyagrum.BayesNet()
    for name in net:
        template.add(pyagrum.RangeVariable(name, name, 0, len(net.states(name)) - 1))
    template.addArcs([(parent, name) for name in net for parent in net.parents(name)])
    learner = pyagrum.BNLearner(frame, template)
    if prior:
        learner.useSmoothingPrior(prior)
    else:
        learner.useNoPrior()
    return pyagrum_tables(net, learner.learnParameters(template, False))


def pyagrum_tables(net: tacit.Network, found: Any) -> dict[str, np.ndarray]:
    """Tables of pyAgrum's with our axes."""
    tables = {}
    for name in net:
        cpt = found.cpt(name)
        theirs = list(reversed(cpt.names))
        tables[name] = np.array(cpt[:]).transpose([theirs.index(n) for n in (*net.parents(name), name)])
    return tables


def difference(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> float:
    """The largest difference of two sets of tables."""
    return max(float(np.abs(table - theirs[name]).max()) for name, table in ours.items())


# holes ----------------------------------------------------------------------------------------------------

WITH_HOLES, HOLES, ITERATIONS = 10_000, 0.2, 3


def holes() -> list[Section]:
    """EM against pyAgrum's, and against pgmpy's with a hidden variable."""
    section = Section(
        "2. EM: seconds per iteration",
        "tables equal to 1e-6 after the same iterations from the same start; 50x pyAgrum",
        ("network", "rows", "missing", "iterations", "tacit", "peer", "seconds of the peer", "ratio",
         "largest difference", "verdict"),
    )  # fmt: skip
    for name in ("child", "alarm"):
        against_pyagrum(section, name)
        print(" ".join(section.rows[-1]), flush=True)
    against_pgmpy(section)
    print(" ".join(section.rows[-1]), flush=True)
    return [section]


def against_pyagrum(section: Section, name: str) -> None:
    """20% of all values missing at random."""
    net, rng = network(name), np.random.default_rng(0)
    start = softened(net)
    rows, labels = {}, {}
    for n, column in codes(net, net.sample(WITH_HOLES, seed=1)).items():
        gone = rng.random(WITH_HOLES) < HOLES
        rows[n] = np.where(gone, None, np.asarray(net.states(n), dtype=object)[column])
        labels[n] = np.where(gone, "?", np.char.add("s", column.astype(str)))
    ours, found = per_iteration(start, rows, ITERATIONS)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.csv"
        pd.DataFrame(labels).to_csv(path, index=False)
        peer = to_peer(start)
        learner = pyagrum.BNLearner(str(path), peer, ["?"])
        learner.useEM(1e-30, 0.0)
        learner.EMsetMaxIter(ITERATIONS)
        spent, theirs = seconds(lambda: learner.learnParameters(peer, False), repeats=1)
    error = difference({n: found.table(n) for n in net}, pyagrum_tables(net, theirs))
    judged(section, name, f"{HOLES:.0%} of all", ITERATIONS, ours, "pyAgrum", spent / ITERATIONS, error)


def against_pgmpy(section: Section) -> None:
    """A hidden class with ten features."""
    from pgmpy import estimators
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.models import DiscreteBayesianNetwork

    rng = np.random.default_rng(0)
    start = tacit.Network()
    start.add("class", states=[0, 1, 2], cpt=tacit.CPT([0.5, 0.3, 0.2], learn=True))
    features = [f"x{i}" for i in range(10)]
    for name in features:
        start.add(name, ["class"], [0, 1, 2], tacit.CPT(rng.dirichlet(np.ones(3), 3), learn=True))
    frame = pd.DataFrame(codes(start, start.sample(WITH_HOLES, seed=2)))[features]
    start = softened(start)
    ours, found = per_iteration(start, frame, ITERATIONS)
    model = DiscreteBayesianNetwork([("class", name) for name in features], latents={"class"})
    initial = {
        n: TabularCPD(n, 3, start.table(n).reshape(-1, 3).T, *([["class"], [3]] if start.parents(n) else []))
        for n in start
    }
    with warnings.catch_warnings(action="ignore"):
        peer = estimators.ExpectationMaximization(model, frame)
        how = {"max_iter": ITERATIONS, "atol": 0, "init_cpds": initial, "show_progress": False}
        spent, theirs = seconds(lambda: peer.get_parameters({"class": 3}, **how), repeats=1)
    error = difference({n: found.table(n) for n in start}, pgmpy_tables(start, theirs))
    judged(section, "hidden class", "1 variable", ITERATIONS, ours, "pgmpy", spent / ITERATIONS, error)


def softened(net: tacit.Network) -> tacit.Network:
    """A start without 0s: halfway between the tables of a network and uniform ones."""
    return net.with_cpts({n: tacit.CPT(0.5 * net.table(n) + 0.5 / len(net.states(n)), learn=True) for n in net})


def per_iteration(start: tacit.Network, rows: Any, steps: int) -> tuple[float, tacit.Network]:
    """Seconds, reading and compiling spread over the iterations, and the network."""
    tacit.estimate(start, rows, steps=1, tolerance=0, progress=False)  # kernels are loaded
    spent, found = seconds(lambda: tacit.estimate(start, rows, steps=steps, tolerance=0, progress=False))
    return spent / steps, found.network


def judged(section: Section, *cells: Any) -> None:
    """One line of the table."""
    name, missing, iterations, ours, peer, theirs, error = cells
    ratio = Ratio(theirs, ours)
    reached = error <= 1e-6 and float(ratio) >= 50
    section.add(name, WITH_HOLES, missing, iterations, f"{ours:.4f}", peer, f"{theirs:.2f}", ratio, f"{error:.1e}",
                OK if reached else MISSED)  # fmt: skip


# restarts -------------------------------------------------------------------------------------------------

RESTARTS, TURNS = 32, 3


def restarts() -> list[Section]:
    """Restarts side by side against the same starts one after another, which take turns."""
    section = Section(
        "3. Restarts of EM: seconds for all of them",
        "4x one after another; the same best log-likelihood",
        ("network", "hidden", "rows", "restarts", "iterations", "side by side", "one after another", "ratio",
         "processor seconds", "log-likelihood", "difference", "verdict"),
    )  # fmt: skip
    net, hidden = network("child"), "Disease"
    drawn = net.sample(WITH_HOLES, seed=1)
    rows = pd.DataFrame(drawn).astype("category").assign(**{hidden: None})
    bare, how = unset(net), {"progress": False}
    estimable = Estimation(bare, EstimateOptions(progress=False)).estimable
    starts = [estimable.filled(estimable.start(np.random.default_rng([0, i]))).learnable() for i in range(RESTARTS)]
    tacit.estimate(bare, rows, restarts=2, steps=2, **how)  # kernels are loaded
    sides = {
        "together": lambda: tacit.estimate(bare, rows, restarts=RESTARTS, **how),
        "alone": lambda: [tacit.estimate(start, rows, **how) for start in starts],
    }
    spent, busy, found = {side: [] for side in sides}, {side: [] for side in sides}, dict[str, Any]()
    for _ in range(TURNS):
        for side, learn in sides.items():
            before = time.process_time()
            wall, found[side] = seconds(learn, repeats=1)
            spent[side].append(wall)
            busy[side].append(time.process_time() - before)
    together, alone = found.values()
    best, gain = max(own.log_likelihood for own in alone), Comparison(spent["alone"], spent["together"])
    steps = sum(len(own.history) for own in alone)
    reached = together.log_likelihood == best and gain.ratio >= 4
    ours, theirs = (f"{np.median(times):.2f}" for times in spent.values())
    section.add(net.name, hidden, WITH_HOLES, RESTARTS, steps, ours, theirs, f"{gain.ratio:.2f}x",
                " and ".join(f"{np.median(times):.2f}" for times in busy.values()),
                f"{best:.6f}", f"{together.log_likelihood - best:.1e}", OK if reached else MISSED)  # fmt: skip
    print(" ".join(section.rows[-1]), flush=True)
    return [section]


# files ----------------------------------------------------------------------------------------------------

MEASURED = """
import re, sys, time
from pathlib import Path
import tacit
from bench.networks import network
def most():
    return re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]
net, path = network("alarm").learnable(), sys.argv[1]
before = most()
start = time.perf_counter()
found = tacit.estimate(net, path, steps=int(sys.argv[2]), tolerance=0, progress=False)
spent = time.perf_counter() - start
print(int(found.rows), spent, before, most())
"""


def parquet() -> list[Section]:
    """Files of alarm, a process for each: rows per second, and the most memory it took."""
    section = Section(
        "4. Parquet files of alarm, 37 columns of text",
        "memory that does not grow with the file",
        ("rows", "size", "values missing", "iterations", "seconds", "rows/s", "most memory", "before reading"),
    )  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        for rows, share, steps in ((10**6, 0.0, 1), (10**7, 0.0, 1), (10**6, 0.02, 2), (10**7, 0.02, 2)):
            write_rows(path, rows, share)
            line = subprocess.run(
                [sys.executable, "-c", MEASURED, str(path), str(steps)], capture_output=True, text=True, check=True
            ).stdout
            count, spent, before, most = (float(x) for x in line.split())
            section.add(int(count), f"{path.stat().st_size / 1e6:.0f} MB", f"{share:.0%}", steps, f"{spent:.1f}",
                        f"{count / spent:,.0f}", f"{most / 1e3:.0f} MB", f"{before / 1e3:.0f} MB")  # fmt: skip
            print(" ".join(section.rows[-1]), flush=True)
    return [section]


def write_rows(path: Path, rows: int, share: float) -> None:
    """Rows drawn from alarm, a row group for every million."""
    import pyarrow as pa
    import pyarrow.parquet

    net, rng, size = network("alarm"), np.random.default_rng(0), 10**6
    schema = pa.schema([(name, pa.dictionary(pa.int8(), pa.string())) for name in net])
    with pa.parquet.ParquetWriter(path, schema) as sink:
        for seed in range(rows // size):
            columns = []
            for name, places in codes(net, net.sample(size, seed)).items():
                indices = pa.array(places.astype(np.int8), mask=rng.random(size) < share)
                columns.append(pa.DictionaryArray.from_arrays(indices, pa.array(net.states(name))))
            sink.write_table(pa.Table.from_arrays(columns, schema=schema))


# all of it ------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[], list[Section]]] = {
    "complete": complete,
    "holes": holes,
    "restarts": restarts,
    "parquet": parquet,
}


def main(arguments: list[str]) -> None:
    """Measure, print, and write the page when all was measured."""
    run_parts(arguments, PARTS, PAGE, "Tables from rows: measured", INTRO)


INTRO = """Made by `make bench`. Two cores, and as many threads as each program takes by itself. Every figure of a row
of a table comes from one run.

**Complete rows.** All get the same pandas data frame. tacit and pgmpy count; pyAgrum, which gets numbers only, first
copies the frame into a database of its own, and refuses to go without a prior where some states of parents never occur
together. Reading the frame counts for all of them. Ours are medians of five, pgmpy's of three, pyAgrum's one call.

**EM.** Rows drawn from the network, with values removed at random; the start is halfway between the true tables and
uniform ones, and the same for all. Our time per iteration, the median of three, includes reading and compiling;
pyAgrum has read its file before the clock starts. Peers get one call. pgmpy's EM takes hidden variables, but no missing
values.

**Restarts.** A network without tables, whose class no row tells, is learned from 32 random starts: in one call, and in
a call for each of the same starts, which reads the rows again. Both take turns, three times; the seconds are medians,
and the ratio is the median of those of the turns. Processor seconds are those of all threads, on both sides; iterations
are those of all starts together.

**Files.** A process for each line. Complete rows are counted as they are read. Rows with holes are kept for the next
iterations, in memory up to 64 MB and then in a temporary file, a byte for a value; with 2% of the values missing, half
of the rows have a hole."""

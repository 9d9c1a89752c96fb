"""The first use of everything after an installation: fresh processes, nothing kept on disk, output to a pipe.

`python -m bench cold` measures all, and writes docs/bench-cold.md; `python -m bench cold fit` only some uses, of this
checkout alone.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.networks import folder as networks
from bench.sides import ROOT, checkout, environment
from bench.tables import Section, at_most, write

PAGE = ROOT / "docs" / "bench-cold.md"
BEFORE = "2f0542f"  # what it is compared with
RUNS = 3
AT_ONCE, SOON = 1.0, 3.0  # seconds of CPU time
ROWS = 1000
FINDINGS = ("HISTORY", "CVP", "PCWP", "BP", "HRBP", "EXPCO2", "MINVOL")
INTRO = f"""Written by `python -m bench cold`, on a machine of 2 cores that others were using: so the bars are about CPU
time, of all threads, and wall time is longer than on an idle machine. Every use is the first of a fresh process, with
its output in a pipe. *Nothing kept*: the folders for compiled code (`TACIT_CACHE_DIR`, `NUMBA_CACHE_DIR`) are empty,
as after an installation; medians of {RUNS} processes. *Kept*: another process in the same folders. To import tacit
takes {{}} s more. That and reading the network are not counted; what else a use loads is. *Before*: commit `{BEFORE}`,
one process each. The network is alarm, with findings on 7 variables, unless another one is named; rows with gaps lack
10% of all values."""


# what is measured, in a process of its own ----------------------------------------------------------------


def _alarm() -> Any:
    import tacit

    return tacit.read(networks() / "alarm.bif.gz")


def _query(net: Any) -> Any:
    import tacit

    return tacit.compile(net, "HYPOVOLEMIA", FINDINGS)


def _rows(net: Any, count: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {name: np.array(net.states(name))[rng.integers(0, len(net.states(name)), count)] for name in FINDINGS}


def _with_gaps(net: Any) -> dict[str, Any]:
    """Rows of the network; drawn with plain NumPy, since to sample is a first use, too."""
    rng, drawn = np.random.default_rng(0), {}
    for name in net:
        table, parents = net.table(name), tuple(drawn[parent] for parent in net.parents(name))
        heaps = np.cumsum(table[parents] if parents else np.broadcast_to(table, (ROWS, len(table))), axis=-1)
        drawn[name] = np.minimum((rng.random((ROWS, 1)) > heaps).sum(axis=1), table.shape[-1] - 1)
    found = {}
    for name, codes in drawn.items():
        column = np.array(net.states(name), dtype=object)[codes]
        column[rng.random(ROWS) < 0.1] = None
        found[name] = column
    return found


def _fit(_: Any) -> None:
    import tacit

    x, y = np.random.default_rng(0).random((2, 1000))
    labels = np.sin(np.pi * (1 - x) * (1 - y))
    tac = tacit.compile(tacit.examples.chain(tests=4, gamma=16.0), "Q", ["E1", "E2"])
    assert tacit.fit(tac, {"E1": x, "E2": y}, labels).loss < 1e-3


def _estimate(_: Any) -> None:
    import tacit

    net = tacit.examples.kidney_stones()
    rows = net.sample(1000, seed=1)
    rows["recovery"][::5] = None
    tacit.estimate(net.learnable(), rows)


def _page(net: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        net.page(Path(folder) / "alarm.html")


def _iris() -> Any:
    from sklearn.datasets import load_iris

    from tacit.sklearn import TACClassifier

    return TACClassifier, *load_iris(return_X_y=True, as_frame=True)


def _classify(given: Any) -> None:
    kind, rows, labels = given
    kind().fit(rows, labels).predict_proba(rows)


def _tested() -> Any:
    import tacit

    return tacit.examples.abc()


def _states(net: Any) -> None:
    import tacit

    tac = tacit.compile(net, "B", ["A", "C"])
    tac.mpe({"A": 0.8})
    tac.sample({"A": 0.8}, n=100)


class Use(NamedTuple):
    """A first use: what is there before, what is measured, and the bar."""

    before: Callable[[], Any]
    measured: Callable[[Any], Any]
    bar: float = SOON


USES = {
    "posterior": Use(_alarm, lambda net: _query(net).posterior({"CVP": "HIGH"}), AT_ONCE),
    "posterior, 100,000 rows": Use(_alarm, lambda net: _query(net).posterior(_rows(net, 100_000))),
    "net.sample(100_000)": Use(_alarm, lambda net: net.sample(100_000, seed=0)),
    "marginals, 1,000 rows": Use(_alarm, lambda net: _query(net).marginals(_rows(net, ROWS))),
    "mpe, 1,000 rows": Use(_alarm, lambda net: _query(net).mpe(_rows(net, ROWS))),
    "sample, 1,000 rows": Use(_alarm, lambda net: _query(net).sample(_rows(net, ROWS), seed=0)),
    "mpe and sample, hard tests": Use(_tested, _states),
    "information": Use(_alarm, lambda net: _query(net).information({"CVP": "HIGH"})),
    "sensitivity": Use(_alarm, lambda net: _query(net).sensitivity({"CVP": "HIGH"})),
    "fit, README": Use(lambda: None, _fit),
    "estimate, README": Use(lambda: None, _estimate),
    "estimate, 1,000 rows with gaps": Use(
        lambda: ((net := _alarm()).learnable(), _with_gaps(net)), lambda given: __import__("tacit").estimate(*given)
    ),
    "page": Use(_alarm, _page),
    "TACClassifier, iris": Use(_iris, _classify),
}


def worker(name: str) -> None:
    """Measure one use, in this process, and say what it took."""
    use = USES[name]
    given = use.before()
    cpu, wall = time.process_time(), time.perf_counter()
    use.measured(given)
    print(json.dumps(Spent(time.process_time() - cpu, time.perf_counter() - wall, "numba" in sys.modules)))


# and compared ---------------------------------------------------------------------------------------------


class Spent(NamedTuple):
    """Seconds that a use took, and whether numba was loaded."""

    cpu: float
    wall: float
    numba: bool


def spent(name: str, tree: Path, kept: Path) -> Spent:
    """What a use takes in a fresh process, where compiled code is kept in a folder."""
    for folder in ("numba", "tacit"):
        (kept / folder).mkdir(mode=0o700, exist_ok=True)
    folders = {"NUMBA_CACHE_DIR": str(kept / "numba"), "TACIT_CACHE_DIR": str(kept / "tacit")}
    more = environment(tree, **folders, PYTHONDONTWRITEBYTECODE="")  # whoever installs a package has bytecode
    command = [sys.executable, "-c", f"from bench.cold import worker; worker({name!r})"]
    done = subprocess.run(command, cwd=ROOT, env=more, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{name}: {done.stderr}")
    return Spent(*json.loads(done.stdout.splitlines()[-1]))


def median(runs: list[Spent]) -> Spent:
    """Of each figure."""
    cpu, wall, numba = zip(*runs, strict=True)
    return Spent(statistics.median(cpu), statistics.median(wall), any(numba))


def measured(name: str, tree: Path, runs: int) -> tuple[Spent, Spent]:
    """With nothing kept, and with what another process kept."""
    first, later = [], []
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as kept:
            first.append(spent(name, tree, Path(kept)))
            later.append(spent(name, tree, Path(kept)))
    return median(first), median(later)


def main(arguments: list[str]) -> None:
    unknown = [name for name in arguments if not any(name in use for use in USES)]
    if unknown:
        sys.exit(f"unknown use {unknown[0]!r}, expected parts of {', '.join(USES)}")
    section = Section(
        "First uses: seconds",
        f"CPU time with nothing kept: {AT_ONCE:g} s for a posterior, {SOON:g} s for all else",
        (
            "first use",
            "before, CPU",
            "nothing kept, CPU",
            "wall",
            "kept, CPU",
            "wall, kept",
            "loads numba",
            "bar",
            "verdict",
        ),
    )
    with checkout(BEFORE) as tree:
        for name, use in USES.items():
            if arguments and not any(part in name for part in arguments):
                continue
            earlier = "" if arguments else f"{measured(name, tree, 1)[0].cpu:.2f}"
            first, later = measured(name, ROOT, RUNS)
            numbers = [f"{seconds:.2f}" for seconds in (first.cpu, first.wall, later.cpu, later.wall)]
            verdict = at_most(first.cpu, use.bar)
            section.add(name, earlier, *numbers, "yes" if first.numba else "no", f"{use.bar:g} s", verdict)
            print("  ".join(section.rows[-1]), flush=True)
    sections = [section] if arguments else [section, ahead()]
    print("\n".join(one.text() for one in sections))
    if not arguments:
        write(PAGE, "Benchmark: the first use", INTRO.format(f"{importing():.2f}"), sections)


def importing() -> float:
    """Seconds of CPU time that the import takes."""
    command = [
        sys.executable,
        "-c",
        "import time; began = time.process_time(); import tacit; print(time.process_time() - began)",
    ]
    runs = [subprocess.run(command, env=environment(ROOT), capture_output=True, check=True) for _ in range(RUNS)]
    return statistics.median(float(run.stdout) for run in runs)


def ahead() -> Section:
    """What it takes to compile all kernels."""
    section = Section("All kernels, compiled by `tacit warm`: seconds", "none", ("process", "wall"))
    with tempfile.TemporaryDirectory() as kept:
        for process in ("nothing kept", "kept"):
            more = environment(ROOT, NUMBA_CACHE_DIR=kept)
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "tacit", "warm"], env=more, capture_output=True, check=True)
            section.add(process, f"{time.perf_counter() - began:.1f}")
    section.notes.append(
        "Only large networks, decision diagrams and counts of hundreds of millions need kernels; then each is compiled "
        "on first use."
    )
    return section

"""The first answer of a process: where nothing was ever compiled, and where all is kept that can be."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.sides import AGREEMENT, ROOT, Comparison, Sides, difference, environment
from bench.tables import MISSED, Section, at_most

FIRST, LATER = 2.0, 1.05  # seconds; times what it was before
COLD, WARM = 3, 9  # processes
ROWS = 1000
PARTS = ("import", "read file", "compile", "1 row", f"{ROWS:,} rows")
PROGRAM = f"""
import json, time
times = [time.perf_counter()]
def lap():
    times.append(time.perf_counter())
import tacit
lap()
from bench.networks import leaves, scaled, widest_root
net = scaled("alarm")
query, observed = widest_root(net), leaves(net)
lap()
tac = tacit.compile(net, query, observed)
lap()
row = {{name: [[i + 1.0 for i in range(len(net.states(name)))]] for name in observed}}
tac.posterior(row)
lap()
answer = tac.posterior({{name: own * {ROWS} for name, own in row.items()}})
lap()
print(json.dumps([[later - earlier for earlier, later in zip(times, times[1:])], answer.tolist()]))
"""


@dataclass(frozen=True)
class Process:
    """What each part took in a process of its own, and what it answered."""

    spent: list[float]
    answer: list[list[float]]

    @property
    def total(self) -> float:
        return sum(self.spent)


@dataclass(frozen=True)
class Start:
    """A checkout, and where its processes keep what they compile."""

    tree: Path
    kept: Path

    def process(self) -> Process:
        """A new process, from its first import to its last answer."""
        kept = {"NUMBA_CACHE_DIR": str(self.kept), "TACIT_CACHE_DIR": str(self.kept)}
        kept["PYTHONDONTWRITEBYTECODE"] = ""  # whoever installs a package has it
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, cwd=ROOT, env=environment(self.tree, **kept), stdout=subprocess.PIPE, check=True)
        return Process(*json.loads(done.stdout))


def first_answers(sides: Sides) -> list[Section]:
    """Fresh processes: caches empty, then filled."""
    section = Section(
        "6. The first answer of a process: alarm",
        f"{FIRST:g} s where nothing was compiled before; else at most {LATER:g}x as long as before",
        ("process", *PARTS, "total", "against before", "difference", "verdict"),
    )
    with tempfile.TemporaryDirectory() as folder:
        before, now = Start(sides.tree, Path(folder) / "before"), Start(ROOT, Path(folder) / "now")
        first = before.process()
        cold = [Start(ROOT, Path(folder) / str(i)).process() for i in range(COLD)]
        now.process()
        turns = [(before.process(), now.process()) for _ in range(WARM)]
    earlier, later = ([pair[i] for pair in turns] for i in range(2))
    section.add("nothing kept, before", *medians([first]), "", "", "")
    good = at_most(statistics.median(run.total for run in cold), FIRST)
    section.add("nothing kept, now", *medians(cold), "", *judged(cold, first, good))
    section.add("all kept, before", *medians(earlier), "", "", "")
    ratio = Comparison([run.total for run in later], [run.total for run in earlier])
    section.add("all kept, now", *medians(later), ratio, *judged(later, first, at_most(ratio.ratio, LATER)))
    section.notes.append(
        f"Seconds: medians of {WARM} processes that take turns, of {COLD} with nothing kept now, and of one before. "
        "*Nothing kept*: the folders for compiled code are empty. The start of the interpreter itself is not counted."
    )
    return [section]


def medians(runs: list[Process]) -> list[str]:
    """Of all parts and of the total."""
    columns = [*zip(*(run.spent for run in runs), strict=True), [run.total for run in runs]]
    return [f"{statistics.median(column):.2f}" for column in columns]


def judged(runs: list[Process], expected: Process, verdict: str) -> tuple[str, str]:
    """How far answers are from those of before, and the verdict, which depends on that, too."""
    error = max(difference(np.array(run.answer), np.array(expected.answer)) for run in runs)
    return f"{error:.0e}", verdict if error <= AGREEMENT["float64"] else MISSED

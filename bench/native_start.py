"""The first answer of a process: where nothing was ever compiled, and where all is kept that can be."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.sides import ROOT, Comparison, Sides, environment
from bench.tables import Section, at_most

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
from bench.networks import leaves, network, widest_root
net = network("alarm")
query, observed = widest_root(net), leaves(net)
lap()
tac = tacit.compile(net, query, observed)
lap()
row = {{name: [[1.0] * len(net.states(name))] for name in observed}}
tac.posterior(row)
lap()
tac.posterior({{name: own * {ROWS} for name, own in row.items()}})
lap()
print(json.dumps([later - earlier for earlier, later in zip(times, times[1:])]))
"""


@dataclass(frozen=True)
class Start:
    """A checkout, and where its processes keep what they compile."""

    tree: Path
    cache: Path

    def seconds(self) -> list[float]:
        """What each part takes in a process of its own."""
        kept = {"NUMBA_CACHE_DIR": str(self.cache), "TACIT_CACHE_DIR": str(self.cache)}
        command = [sys.executable, "-c", PROGRAM]
        done = subprocess.run(command, cwd=ROOT, env=environment(self.tree, **kept), stdout=subprocess.PIPE, check=True)
        found: list[float] = json.loads(done.stdout)
        return found


def first_answers(sides: Sides) -> list[Section]:
    """Fresh processes: caches empty, then filled."""
    section = Section(
        "6. The first answer of a process: alarm",
        f"{FIRST:g} s where nothing was compiled before; else at most {LATER:g}x as long as before",
        ("process", *PARTS, "total", "against before", "verdict"),
    )
    with tempfile.TemporaryDirectory() as folder:
        before, now = Start(sides.tree, Path(folder) / "before"), Start(ROOT, Path(folder) / "now")
        cold = [Start(ROOT, Path(folder) / str(i)).seconds() for i in range(COLD)]
        section.add("nothing kept, before", *cells([before.seconds()]), "", "")
        section.add("nothing kept, now", *cells(cold), "", at_most(statistics.median(map(sum, cold)), FIRST))
        now.seconds()
        earlier, later = zip(*((before.seconds(), now.seconds()) for _ in range(WARM)), strict=True)
    ratio = Comparison([sum(own) for own in later], [sum(own) for own in earlier])
    section.add("all kept, before", *cells(earlier), "", "")
    section.add("all kept, now", *cells(later), ratio, at_most(ratio.ratio, LATER))
    section.notes.append(
        f"Seconds: medians of {WARM} processes that take turns, of {COLD} with nothing kept now, and of one before. "
        "*Nothing kept*: the folders for compiled code are empty. The start of the interpreter itself is not counted."
    )
    return [section]


def cells(found: list[list[float]] | tuple[list[float], ...]) -> list[str]:
    """Medians of all parts and of the total."""
    columns = [*zip(*found, strict=True), [sum(own) for own in found]]
    return [f"{statistics.median(column):.2f}" for column in columns]

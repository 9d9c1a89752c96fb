"""This checkout against another one, in one run: `python -m bench against ../before`.

Both have a process that waits to be asked, and take turns of a few milliseconds, so that whatever else the machine does
slows both. Ratios are medians of all turns: below 1, this checkout is faster.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
NETWORKS = ("alarm", "win95pts", "hailfinder", "andes")
TURNS = 60

WORKER = """
import json, subprocess, sys, time
import numpy as np
import tacit
from bench.inference import cases
from bench.networks import network
try:
    from tacit.evidence.read import read
    from tacit.learn.fitting.data import read_data
    from tacit.learn.fitting.objective import Objective
    from tacit.learn.fitting.parameters import Parameters
except ModuleNotFoundError:  # as it was called before there were rooms
    from tacit.evidence import read
    from tacit.learn.data import read_data
    from tacit.learn.objective import Objective
    from tacit.learn.parameters import Parameters

runs = {}

def add(name, case):
    roles = {"evidence": case.observed} if case.soft else {"hard": case.observed}
    tac = tacit.compile(case.net, case.query, **roles)
    engine, what = tac.engine(), f"{name}, {'soft' if case.soft else 'hard'}"
    for rows, repeats in ((10_000, 1), (1, 50)):
        known = read(case.rows(rows), [case.net.variable(n) for n in case.net], tac.evidence)
        size = engine.chunk
        blocks = [
            ({n: c.block(i, i + size) for n, c in known.columns.items()}, min(size, rows - i))
            for i in range(0, rows, size)
        ]
        runs[f"{what}, {rows:,} rows"] = lambda blocks=blocks: [engine.run(c, n) for c, n in blocks], repeats

for name in sys.argv[1:]:
    for case in cases(name)[2:]:
        add(name, case)

x, y = np.random.default_rng(0).random((2, 1024))
net = tacit.examples.chain(tests=4, gamma=16.0)
parameters = Parameters(net, net.variables)
weights = parameters.start(np.random.default_rng(0))
tac = tacit.compile(parameters.fill(weights), "Q", ["E1", "E2"], engine="native")
data = read_data(tac, {"E1": x, "E2": y}, x * y, None)
objective = Objective(parameters, tac.engine(), data, "mse")
runs["one step of learning, 1,024 rows"] = lambda: objective.value_and_gradient(weights), 10

net = network("alarm")
tac, labels = tacit.compile(net, "LVFAILURE", hard=["HR", "BP", "CVP"]), {"HR": "LOW", "BP": "LOW", "CVP": "HIGH"}
runs["alarm, one row of labels"] = lambda: tac.posterior(labels), 200

asia = network("asia")
rows = {name: labels for name, labels in asia.sample(20_000, seed=0).items() if name not in ("tub", "lung")}
asia = asia.learnable()
runs["EM, 20 steps, asia, 20,000 rows"] = lambda: tacit.estimate(asia, rows, steps=20, progress=False), 1

command = [sys.executable, "-c", "import tacit"]
runs["import tacit"] = lambda: subprocess.run(command, check=True), 1

for run, _ in runs.values():
    run()
print(json.dumps(list(runs)), flush=True)
for line in sys.stdin:
    run, repeats = runs[line.strip()]
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    print(time.perf_counter() - start, flush=True)
"""


class Worker:
    """A process with one of the checkouts."""

    def __init__(self, tree: Path, names: list[str]) -> None:
        environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", WORKER, *names],
            env=environment,
            cwd=tree,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._to, self._from = self._process.stdin, self._process.stdout
        self.runs: list[str] = json.loads(self._from.readline())

    def seconds(self, run: str) -> float:
        """How long a run takes now."""
        print(run, file=self._to, flush=True)
        return float(self._from.readline())


def main(arguments: list[str]) -> None:
    """Print the ratios."""
    other = Path(arguments[0]).resolve() if arguments else None
    if other is None or not (other / "src" / "tacit").is_dir():
        raise SystemExit("usage: python -m bench against CHECKOUT [NETWORK ...]")
    names = arguments[1:] or list(NETWORKS)
    ours, theirs = Worker(ROOT, names), Worker(other, names)
    for run in ours.runs:
        ratios = []
        for turn in range(TURNS):
            pair = [w.seconds(run) for w in ((ours, theirs) if turn % 2 else (theirs, ours))]
            ratios.append(pair[0] / pair[1] if turn % 2 else pair[1] / pair[0])
        low, middle, high = statistics.quantiles(ratios, n=4)
        print(f"{run:36} {middle:.3f}   (half of all turns: {low:.3f} to {high:.3f})", flush=True)

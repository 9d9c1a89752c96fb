"""The paper's experiments: seven functions of two inputs, fitted by testing and by classical networks.

The paper's figure of the network is lost, so there are three readings of it. A `Task` is one fit. Finished fits are
files: a run that was cut off goes on where it was, and a run with other settings starts anew.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

import tacit
from paper.functions import FUNCTIONS, Floats, examples
from paper.growing import same_function
from tacit.base.atomic import write_atomically
from tacit.examples import chain, layer, split_layer
from tacit.learn import grow

GAMMA = 16.0
SEED = 0
VERSION = 2  # of what a fit computes: fits of another version are made anew
DAGS = {"chain": chain, "layer": layer, "split_layer": split_layer}
TESTS = (4, 8, 16)


# tasks ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Task:
    """One fit: a function, a DAG, and what is fitted.

    `kind` is "tac" (sigmoids), "hard" (sigmoids that become hard tests during training) or "ac" (no testing node).
    """

    function: str
    dag: str
    tests: int = 4
    kind: str = "tac"

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"{self.function}-{self.dag}-{self.tests}-{self.kind}"

    @property
    def start(self) -> Task | None:
        """The task whose network this one starts from, if any."""
        if self.tests == TESTS[0]:
            return None
        return replace(self, tests=self.tests // 2) if self.kind == "tac" else replace(self, kind="tac")

    def network(self) -> tacit.Network:
        """The network with all numbers left out."""
        return DAGS[self.dag](self.tests, testing=self.kind != "ac", gamma=GAMMA)


@dataclass(frozen=True)
class Effort:
    """How a task is fitted. `seconds` is roughly what that takes one core, to order tasks and to foretell the end."""

    seconds: float
    restarts: int
    steps: int
    optimizer: str = "auto"
    grown: bool = False  # from the network with half as many tests, not from random numbers

    def scaled(self, by: float) -> Effort:
        """More or less of it."""
        return replace(
            self,
            seconds=self.seconds * by**2,
            restarts=max(1, round(self.restarts * by)),
            steps=max(2, round(self.steps * by)),
        )


# Random starts find better layers of 8 tests than growing does, but no good one of 16, where Q's table has 65,536 rows
# and Adam, for which the scale of a gradient does not matter, gets further than L-BFGS (docs/learning.md).
EFFORTS = {
    ("tac", "chain", 4): Effort(1.9, restarts=32, steps=200),
    ("tac", "layer", 4): Effort(2.2, restarts=16, steps=200),
    ("tac", "split_layer", 4): Effort(1.1, restarts=16, steps=200),
    ("tac", "chain", 8): Effort(1, restarts=8, steps=150, grown=True),
    ("tac", "layer", 8): Effort(5, restarts=4, steps=100),
    ("tac", "split_layer", 8): Effort(6, restarts=8, steps=100),
    ("tac", "chain", 16): Effort(1.2, restarts=8, steps=100, grown=True),
    ("tac", "layer", 16): Effort(9, restarts=1, steps=70, optimizer="adam", grown=True),
    ("tac", "split_layer", 16): Effort(5, restarts=1, steps=150, optimizer="adam", grown=True),
    ("hard", "chain", 4): Effort(1.7, restarts=6, steps=80),
    ("hard", "layer", 4): Effort(1.9, restarts=4, steps=60),
    ("hard", "split_layer", 4): Effort(1.7, restarts=6, steps=80),
    ("hard", "chain", 8): Effort(0.8, restarts=1, steps=100),
    ("hard", "layer", 8): Effort(3, restarts=1, steps=40),
    ("hard", "split_layer", 8): Effort(2.2, restarts=1, steps=60),
    **{("ac", dag, 4): Effort(0.1, restarts=4, steps=200) for dag in DAGS},
}
ADAM_RATE = 0.1


def plan(functions: Sequence[str] = tuple(FUNCTIONS), tests: Sequence[int] = TESTS) -> list[Task]:
    """All fits: of the paper's first table with 4 tests, of its second (g1, g2) also with more.

    >>> len(plan()), len(plan(["f1"]))
    (81, 9)
    """
    return [
        Task(function, dag, count, kind)
        for function in functions
        for kind, dag, count in EFFORTS
        if count in tests and (count == TESTS[0] or function.startswith("g"))
    ]


# results --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Result:
    """What a fit came to.

    `mse` is that of the network as trained, `hard_mse` that with hard tests in place of sigmoids; `seconds` is
    processor time. `surface` holds P*(Q = true) on the grid.
    """

    task: Task
    mse: float
    hard_mse: float
    seconds: float
    optimizer: str
    numbers: int  # parameters and thresholds, all learned
    thresholds: dict[str, list[float]]
    surface: list[float] = field(repr=False)


@dataclass(frozen=True)
class Store:
    """The folder of finished fits: `fits/` for their results, `networks/` for the trained networks."""

    folder: Path
    effort: float = 1.0

    def read(self, task: Task) -> Result | None:
        """The result of a fit with the same settings, if there is one."""
        path = self._path(task)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if stored["key"] != self.key(task) or not self.network_path(task).exists():
            return None
        return Result(Task(**stored["result"].pop("task")), **stored["result"])

    def write(self, result: Result, network: tacit.Network) -> None:
        """Store a network, then its result: where there is a result, there is a network."""
        path = self._path(result.task)
        for folder in (path.parent, self.network_path(result.task).parent):
            folder.mkdir(parents=True, exist_ok=True)
        tacit.save(network, self.network_path(result.task))
        text = json.dumps({"key": self.key(result.task), "result": asdict(result)})
        write_atomically(path, lambda file: file.write(text))

    def network_path(self, task: Task) -> Path:
        """Where the trained network is."""
        return self.folder / "networks" / f"{task.name}.json"

    def network(self, task: Task) -> tacit.Network:
        """The trained network."""
        network = tacit.load(self.network_path(task))
        assert isinstance(network, tacit.Network)
        return network

    def effort_of(self, task: Task) -> Effort:
        """How a task is fitted here."""
        return EFFORTS[task.kind, task.dag, task.tests].scaled(self.effort)

    def key(self, task: Task) -> str:
        """What a result depends on, that of the task it starts from included."""
        before = None if task.start is None else self.key(task.start)
        effort = replace(self.effort_of(task), seconds=0)
        text = repr((VERSION, tacit.__version__, SEED, GAMMA, task, effort, before))
        return hashlib.sha256(text.encode()).hexdigest()

    def _path(self, task: Task) -> Path:
        return self.folder / "fits" / f"{task.name}.json"


def fit_task(task: Task, store: Store) -> Result:
    """Fit a task and store what it came to."""
    started = time.process_time()
    evidence, labels = examples(task.function)
    effort = store.effort_of(task)
    small = None if task.start is None else store.network(task.start)
    found = tacit.fit(
        compiled(_start(task, effort, small)),
        evidence,
        labels,
        optimizer=effort.optimizer,
        steps=effort.steps,
        restarts=effort.restarts,
        rate=ADAM_RATE,
        seed=SEED,
        harden=task.kind == "hard",
        progress=False,
    )
    network = found.network
    if task.kind == "tac" and small is not None:
        grown = same_function(small, task.network())
        network = min(network, grown, key=lambda net: _mse(net, evidence, labels))
    result = _result(task, network, found.optimizer, time.process_time() - started)
    store.write(result, network)
    return result


def _start(task: Task, effort: Effort, small: tacit.Network | None) -> tacit.Network:
    if small is not None and task.kind == "hard":
        return small.learnable()
    return grow(small, task.network()) if small is not None and effort.grown else task.network()


def compiled(network: tacit.Network) -> tacit.TAC:
    """The query of all experiments."""
    return tacit.compile(network, "Q", ["E1", "E2"])


def _result(task: Task, network: tacit.Network, optimizer: str, seconds: float) -> Result:
    evidence, labels = examples(task.function)
    counts = network.counts()
    thresholds = {}
    for name in network.testing_nodes:
        cpt = network.cpt(name)
        assert isinstance(cpt, tacit.TestingCPT)
        thresholds[name] = cpt.thresholds.ravel().tolist()
    return Result(
        task=task,
        mse=_mse(network, evidence, labels),
        hard_mse=_mse(network.with_gamma(None), evidence, labels),
        seconds=seconds,
        optimizer=optimizer,
        numbers=(counts.static + counts.dynamic) // 2 + counts.thresholds,  # two entries of a row are one number
        thresholds=thresholds,
        surface=_values(network, evidence).tolist(),
    )


def _values(network: tacit.Network, evidence: Mapping[str, Floats]) -> Floats:
    return np.asarray(compiled(network).posterior(evidence)[:, 0])


def _mse(network: tacit.Network, evidence: Mapping[str, Floats], labels: Floats) -> float:
    return float(np.mean((_values(network, evidence) - labels) ** 2))

"""This checkout beside an older commit, and beside itself in float32: processes that take turns."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
TURNS, SECONDS = (6, 24), 6.0  # how many turns, and how long they may take together beyond the fewest
AGREEMENT = {"float64": 1e-12, "float32": 1e-5}


@dataclass(frozen=True)
class Comparison:
    """What two sides took, turn by turn: `of` is expected to take longer than `to`."""

    of: Sequence[float]
    to: Sequence[float]

    @property
    def ratio(self) -> float:
        """How many times as fast the second side is: the median of all turns."""
        return statistics.median(self._ratios)

    @property
    def _ratios(self) -> list[float]:
        return [a / b for a, b in zip(self.of, self.to, strict=True)]

    def __str__(self) -> str:
        low, middle, high = statistics.quantiles(self._ratios, n=4)
        return f"{middle:.2f}x ({low:.2f} to {high:.2f})"


@dataclass(frozen=True)
class Measured:
    """Seconds of every turn of all sides, and how far their answers are apart."""

    before: list[float]
    now: list[float]
    narrow: list[float]  # now, in float32
    error: float
    narrow_error: float

    @property
    def gain(self) -> Comparison:
        return Comparison(self.before, self.now)

    @property
    def narrow_gain(self) -> Comparison:
        return Comparison(self.now, self.narrow)

    @property
    def agrees(self) -> bool:
        return self.error <= AGREEMENT["float64"]

    @property
    def narrow_agrees(self) -> bool:
        return self.narrow_error <= AGREEMENT["float32"]


class Side:
    """A process with one of the checkouts."""

    def __init__(self, tree: Path, dtype: str = "float64") -> None:
        self._dtype = dtype
        self._process = subprocess.Popen(
            [sys.executable, "-m", "bench.worker"],
            cwd=ROOT, env=environment(tree), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def begin(self, **request: Any) -> None:
        """Ask for something."""
        assert self._process.stdin is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)

    def prepare(self, case: str, **options: Any) -> None:
        """Ask for the first run of a case."""
        self.begin(case=case, dtype=self._dtype, **options)

    def finish(self) -> float:
        """The reply to what was asked."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a side ended with exit code {self._process.wait()}; its error is above")
        return float(json.loads(line))

    def ask(self, **request: Any) -> float:
        self.begin(**request)
        return self.finish()

    def close(self) -> None:
        """End the process, which ends by itself when nobody asks any more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Sides:
    """An older commit, this checkout, and this checkout in float32."""

    def __init__(self, revision: str, stack: ExitStack) -> None:
        self.revision, self._stack = revision, stack

    @cached_property
    def tree(self) -> Path:
        """The files of the older commit, in a temporary folder."""
        return self._stack.enter_context(checkout(self.revision))

    @cached_property
    def _sides(self) -> tuple[Side, Side, Side]:
        made = (Side(self.tree), Side(ROOT), Side(ROOT, "float32"))
        for side in made:
            self._stack.callback(side.close)
        return made

    def measure(self, case: str, repeats: int = 1, **options: Any) -> Measured:
        """All sides on the same case, taking turns; a turn is the median of some repeats."""
        self._prepare(case, options)
        errors = self._errors()
        runs = [partial(side.ask, repeats=repeats) for side in self._sides]
        for run in runs:  # the third time, after the first run and the answer: engines have compiled what they want to
            run()
        return Measured(*taking_turns(runs), *errors)

    def _prepare(self, case: str, options: dict[str, Any]) -> None:
        """The first run of every side, all at the same time: an older commit compiles its kernels then."""
        for side in self._sides:
            side.prepare(case, **options)
        for side in self._sides:
            side.finish()

    def _errors(self) -> tuple[float, float]:
        """How far this checkout is from the older commit, and float32 from float64."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder) / f"{i}.npy" for i in range(3)]
            for side, path in zip(self._sides, paths, strict=True):
                side.ask(answer=str(path))
            before, now, narrow = map(np.load, paths)
        return difference(now, before), difference(narrow, now)


def difference(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of two answers; one that is no number must not be one on the other side, either."""
    if found.shape != expected.shape or not np.array_equal(np.isnan(found), np.isnan(expected)):
        return float("inf")
    return float(np.nanmax(np.abs(found - expected), initial=0.0))


def taking_turns(runs: Sequence[Callable[[], float]]) -> list[list[float]]:
    """Seconds of every turn of every run, which says how long it took. What slows one down slows down all.

    Every other turn goes backwards: who comes next finds the caches full of what the one before has read.
    """
    spent: list[list[float]] = [[] for _ in runs]
    order = list(zip(runs, spent, strict=True))
    fewest, most = TURNS
    started = time.perf_counter()
    while len(spent[0]) < fewest or (len(spent[0]) < most and time.perf_counter() - started < SECONDS):
        for run, own in order:
            own.append(run())
        order.reverse()
    return spent


def environment(tree: Path, **more: str) -> dict[str, str]:
    """The environment of a process that takes `tacit` from a checkout, and the benchmarks from this one."""
    return os.environ | {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}", **more}


@contextmanager
def checkout(revision: str) -> Iterator[Path]:
    """The files of a commit of this repository, in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(["git", "archive", revision, "src"], cwd=ROOT, stdout=subprocess.PIPE)
        if archive.returncode:
            raise SystemExit(f"git has no files of {revision!r}; expected a commit of this repository")
        subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
        yield Path(folder)

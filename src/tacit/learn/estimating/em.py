"""Expectation maximisation: expected counts with the present numbers, then the best numbers for these counts.

All starts go on side by side, so that one pass over the rows serves them all. `EMRuns` are the whole state after an
iteration, so runs that are stored and read again go on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.base.floats import Floats
from tacit.learn.checkpoint import Arrays, is_number, list_of, read, require, vector, write
from tacit.learn.estimating.counting import ExpectationStep, ExpectedCounts
from tacit.learn.estimating.estimable import Estimable
from tacit.learn.options import EstimateOptions

FORMAT = "tacit-estimate-2"


@dataclass(frozen=True, eq=False)
class EMRun:
    """One start: its numbers, the log-likelihood before each iteration and now, and with the prior (`objective`)."""

    numbers: Floats
    history: list[float] = field(default_factory=list)
    log_likelihood: float = math.nan
    objective: float = -math.inf
    converged: bool = False


@dataclass
class EMRuns:
    """The state of EM: a run from each start."""

    starts: list[EMRun]

    @property
    def best(self) -> EMRun:
        """The best run so far; of equal ones, the first."""
        return max(self.starts, key=lambda run: run.objective)

    @property
    def iterations(self) -> int:
        return max(len(run.history) for run in self.starts)


@dataclass(frozen=True)
class EM:
    """The numbers to estimate, their expected counts, and the options."""

    estimable: Estimable
    expectation: ExpectationStep
    options: EstimateOptions

    def begin(self) -> EMRuns:
        """The runs before the first iteration."""
        rngs = [np.random.default_rng([self.options.seed, restart]) for restart in range(self.options.restarts)]
        return EMRuns([EMRun(self.estimable.start(rng)) for rng in rngs])

    def run(self, runs: EMRuns, after: Callable[[EMRuns], None]) -> None:
        """Continue runs to their end; complete rows need one iteration. `after` is called after each iteration."""
        measured: dict[int, ExpectedCounts] = {}
        while active := self.active(runs):
            if fresh := [i for i in active if i not in measured]:
                measured |= zip(fresh, self._measured([runs.starts[i].numbers for i in fresh]), strict=True)
                for error in [error for i in fresh if (error := measured[i].impossible)]:
                    raise error
            several = [runs.starts[i] for i in active]
            numbers = [
                self.estimable.maximised(measured[i].tables, run.numbers, self.expectation.negligible)
                for i, run in zip(active, several, strict=True)
            ]
            for i, run, new, counts in zip(active, several, numbers, self._measured(numbers), strict=True):
                runs.starts[i] = self._next(run, measured[i], new, counts)
                measured[i] = counts
            after(runs)

    def active(self, runs: EMRuns) -> list[int]:
        """The starts that go on."""
        starts = enumerate(runs.starts)
        return [i for i, run in starts if not run.converged and len(run.history) < self.options.steps]

    def _measured(self, several: Sequence[Floats]) -> list[ExpectedCounts]:
        return self.expectation.counts([self.estimable.filled(numbers) for numbers in several])

    def _next(self, run: EMRun, before: ExpectedCounts, numbers: Floats, counts: ExpectedCounts) -> EMRun:
        """The run after one more iteration; it has converged where the log-likelihood no longer grows.

        Where there are tests, it may fall: with new numbers other tests may hold, whose tables may even exclude some
        row. Then the run ends with the numbers before.
        """
        history = [*run.history, before.log_likelihood]
        tolerance = self.options.tolerance
        old = before.log_likelihood + self.estimable.log_prior(run.numbers)
        new = counts.log_likelihood + self.estimable.log_prior(numbers)
        if new == -math.inf or (new < old and tolerance):
            return EMRun(run.numbers, history, history[-1], old, converged=True)
        gained = new - old > tolerance * abs(new)
        converged = not self.expectation.incomplete or (tolerance > 0 and not gained)
        return EMRun(numbers, history, counts.log_likelihood, new, converged)


def write_runs(path: Path, key: str, runs: EMRuns) -> None:
    lines = [[run.history, run.log_likelihood, run.objective, run.converged] for run in runs.starts]
    write(path, FORMAT, key, {"trails": lines}, {f"numbers{i}": run.numbers for i, run in enumerate(runs.starts)})


def read_runs(path: Path, key: str, fresh: EMRuns) -> EMRuns | None:
    """The runs that were stored, if there are any; `fresh` are those before their first iteration."""

    def parse(head: dict[str, Any], arrays: Arrays) -> EMRuns:
        lines = list_of(head["trails"])
        require(len(lines) == len(fresh.starts), "number of starts")
        size = len(fresh.starts[0].numbers)
        return EMRuns([_run(line, arrays[f"numbers{i}"], size) for i, line in enumerate(lines)])

    return read(path, FORMAT, key, parse)


def _run(line: Any, numbers: Any, size: int) -> EMRun:
    history, log_likelihood, objective, converged = list_of(line)
    require(all(is_number(value) for value in [*list_of(history), log_likelihood, objective]), "history")
    require(type(converged) is bool, "end")
    return EMRun(vector(numbers, size), history, log_likelihood, objective, converged)

"""Expectation maximisation: expected counts with the present numbers, then the best numbers for these counts.

All starts go on side by side, so that one pass over the rows serves them all. A list with a run for each of them is the
whole state after an iteration, so runs that are stored and read again go on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tacit.base.archive import Arrays, require
from tacit.base.floats import Floats
from tacit.learn.checkpoint import is_number, list_of, read, vector, write
from tacit.learn.estimating.counting import ExpectationStep
from tacit.learn.estimating.estimable import Estimable
from tacit.learn.estimating.expected_counts import ExpectedCounts
from tacit.learn.options import EstimateOptions

FORMAT = "tacit-estimate-2"


@dataclass(frozen=True, eq=False)
class EMRun:
    """One start: its numbers, the log-likelihood before each iteration and now, and with the prior (`objective`).

    `counts` are those with these numbers, once they are known; no file holds them.
    """

    numbers: Floats
    history: list[float] = field(default_factory=list)
    log_likelihood: float = math.nan
    objective: float = -math.inf
    converged: bool = False
    counts: ExpectedCounts | None = None


def best(runs: Sequence[EMRun]) -> EMRun:
    """The best run so far; of equal ones, the first."""
    return max(runs, key=lambda run: run.objective)


@dataclass(frozen=True)
class EM:
    """The numbers to estimate, their expected counts, and the options."""

    estimable: Estimable
    expectation: ExpectationStep
    options: EstimateOptions

    def begin(self) -> list[EMRun]:
        """The runs before the first iteration."""
        rngs = [np.random.default_rng([self.options.seed, restart]) for restart in range(self.options.restarts)]
        return [EMRun(self.estimable.start(rng)) for rng in rngs]

    def run(self, runs: list[EMRun], after: Callable[[], None]) -> None:
        """Continue runs, in place, to their end; complete rows need one iteration. `after` is called after each."""
        negligible = self.expectation.negligible
        while active := self.active(runs):
            self.count(runs, [i for i in active if runs[i].counts is None])
            before = {i: self._counts(runs[i]) for i in active}
            numbers = [self.estimable.maximised(before[i], runs[i].numbers, negligible) for i in active]
            for i, new, counts in zip(active, numbers, self._measured(numbers), strict=True):
                runs[i] = self._next(runs[i], before[i], new, counts)
            after()

    def count(self, runs: list[EMRun], which: Sequence[int]) -> None:
        """Have some runs, in place, know the counts with their numbers; an error if a row is impossible."""
        if which:
            for i, counts in zip(which, self._measured([runs[i].numbers for i in which]), strict=True):
                if counts.impossible:
                    raise counts.impossible
                runs[i] = replace(runs[i], counts=counts)

    @staticmethod
    def _counts(run: EMRun) -> ExpectedCounts:
        assert run.counts is not None
        return run.counts

    def active(self, runs: Sequence[EMRun]) -> list[int]:
        """The starts that go on."""
        return [i for i, run in enumerate(runs) if not run.converged and len(run.history) < self.options.steps]

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
            return EMRun(run.numbers, history, history[-1], old, converged=True, counts=before)
        gained = new - old > tolerance * abs(new)
        converged = not self.expectation.incomplete or (tolerance > 0 and not gained)
        return EMRun(numbers, history, counts.log_likelihood, new, converged, counts)


def write_runs(path: Path, key: str, runs: Sequence[EMRun]) -> None:
    lines = [[run.history, run.log_likelihood, run.objective, run.converged] for run in runs]
    write(path, FORMAT, key, {"trails": lines}, {f"numbers{i}": run.numbers for i, run in enumerate(runs)})


def read_runs(path: Path, key: str, fresh: Sequence[EMRun]) -> list[EMRun] | None:
    """The runs that were stored, if there are any; `fresh` are those before their first iteration."""

    def parse(head: dict[str, Any], arrays: Arrays) -> list[EMRun]:
        lines, size = list_of(head["trails"]), len(fresh[0].numbers)
        require(len(lines) == len(fresh), "number of starts")
        return [_run(line, arrays[f"numbers{i}"], size) for i, line in enumerate(lines)]

    return read(path, FORMAT, key, parse)


def _run(line: Any, numbers: Any, size: int) -> EMRun:
    history, log_likelihood, objective, converged = list_of(line)
    require(all(is_number(value) for value in [*list_of(history), log_likelihood, objective]), "history")
    require(type(converged) is bool, "end")
    return EMRun(vector(numbers, size), history, log_likelihood, objective, converged)

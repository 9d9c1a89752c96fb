"""Expectation maximisation: expected counts with the present numbers, then the best numbers for these counts.

All starts go on side by side, so that one pass over the rows serves them all. A list with a run for each of them is the
whole state after an iteration, so runs that are stored and read again go on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

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

    `counted` has the counts of several sets of numbers, and which of them are these, once that is known; no file does.
    """

    numbers: Floats
    history: list[float] = field(default_factory=list)
    log_likelihood: float = math.nan
    objective: float = -math.inf
    converged: bool = False
    counted: tuple[ExpectedCounts, int] | None = None


class Measured(NamedTuple):
    """The counts with several sets of numbers, and their log-likelihoods with the prior (sets,)."""

    counts: ExpectedCounts
    objectives: Floats

    def levels(self, place: int) -> tuple[float, float]:
        """The log-likelihood of one set, without and with the prior."""
        return float(self.counts.log_likelihood[place]), float(self.objectives[place])

    def take(self, sets: Sequence[int]) -> Measured:
        """Those of some sets of numbers."""
        return Measured(self.counts.take(sets), self.objectives[sets])


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
        active = self.active(runs)
        if not active:
            return
        numbers, negligible = np.stack([runs[i].numbers for i in active]), self.expectation.negligible
        now = self._measured(numbers)
        for first in sorted(now.counts.impossible)[:1]:
            raise now.counts.impossible[first]
        while active:
            before, numbers = now, self.estimable.maximised(now.counts, numbers, negligible)
            now = self._measured(numbers)
            for place, i in enumerate(active):
                runs[i] = self._next(runs[i], place, before, numbers[place], now)
            after()
            left = self.active(runs)
            for i in set(active).difference(left):
                runs[i] = replace(runs[i], counted=(self.counts(runs[i]), 0))  # without those of the others
            if len(left) < len(active):
                places = [active.index(i) for i in left]
                active, numbers, now = left, numbers[places], now.take(places)

    def counts(self, run: EMRun) -> ExpectedCounts:
        """The counts with the numbers of a run, as the only set; an error if a row is impossible."""
        counts, place = run.counted or (self._measured(run.numbers[None]).counts, 0)
        if place in counts.impossible:
            raise counts.impossible[place]
        return counts.take([place])

    def active(self, runs: Sequence[EMRun]) -> list[int]:
        """The starts that go on."""
        return [i for i, run in enumerate(runs) if not run.converged and len(run.history) < self.options.steps]

    def _measured(self, several: Floats) -> Measured:
        counts = self.expectation.counts(self.estimable.numbers(several))
        return Measured(counts, counts.log_likelihood + self.estimable.log_prior(several))

    def _next(self, run: EMRun, place: int, before: Measured, numbers: Floats, now: Measured) -> EMRun:
        """The run after one more iteration; it has converged where the log-likelihood no longer grows.

        Where there are tests, it may fall: with new numbers other tests may hold, whose tables may even exclude some
        row. Then the run ends with the numbers before.
        """
        tolerance = self.options.tolerance
        (before_log, old), (log_likelihood, new) = before.levels(place), now.levels(place)
        history = [*run.history, before_log]
        if new == -math.inf or (new < old and tolerance):
            return EMRun(run.numbers, history, before_log, old, True, (before.counts, place))
        gained = new - old > tolerance * abs(new)
        converged = not self.expectation.incomplete or (tolerance > 0 and not gained)
        return EMRun(numbers, history, log_likelihood, new, converged, (now.counts, place))


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

"""Expectation maximisation: counts with the numbers of now, numbers from the counts, again and again.

A `Search` is all that is known after an iteration. Nothing else is carried over, so a search that is stored and read
again goes on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.errors import EvidenceError
from tacit.floats import Floats
from tacit.learn.checkpoint import Arrays, is_number, is_whole, list_of, read, require, vector, write
from tacit.learn.counting import Counter, Counts
from tacit.learn.estimable import Estimable

FORMAT = "tacit-estimate-1"


@dataclass(frozen=True, eq=False)
class Trail:
    """Where one start led: its numbers, the log-likelihood before each iteration and now, the same with the prior."""

    numbers: Floats
    history: list[float] = field(default_factory=list)
    log_likelihood: float = math.nan
    objective: float = -math.inf
    settled: bool = False


@dataclass
class Search:
    """How far EM is: the number of the start it came from, where that led so far, and the best of those before."""

    trail: Trail
    restart: int = 0
    best: Trail | None = None
    finished: bool = False

    @property
    def found(self) -> Trail:
        """The best of all starts, so far."""
        return self.trail if self.best is None or self.trail.objective > self.best.objective else self.best


@dataclass(frozen=True)
class EM:
    """What to estimate from which rows, with which settings."""

    estimable: Estimable
    counter: Counter
    restarts: int
    seed: int
    tolerance: float
    steps: int

    @property
    def settings(self) -> list[float]:
        """What the result depends on, beside network and rows."""
        return [self.restarts, self.seed, self.tolerance, *([self.steps] if self.restarts > 1 else [])]

    def begin(self) -> Search:
        """Before the first iteration."""
        return Search(self._start(0))

    def extend(self, search: Search) -> None:
        """Let a search that ended for lack of steps go on, if there are more of them now."""
        trail = search.trail
        if search.finished and self.restarts == 1 and not trail.settled and len(trail.history) < self.steps:
            search.restart, search.best, search.finished = 0, None, False

    def run(self, search: Search, after: Callable[[Search], None]) -> None:
        """Go on with a search to its end; `after` is called after each iteration."""
        while not search.finished:
            for trail in self._iterations(search.trail):
                search.trail = trail
                after(search)
            search.best = search.found
            search.restart += 1
            search.finished = search.restart >= self.restarts
            search.trail = search.best if search.finished else self._start(search.restart)
        after(search)

    def _start(self, restart: int) -> Trail:
        return Trail(self.estimable.start(np.random.default_rng([self.seed, restart])))

    def _iterations(self, trail: Trail) -> Iterator[Trail]:
        """From one start until the log-likelihood no longer grows; complete rows need one iteration.

        That of a testing network may fall, since other tables may lead to other tests that hold; then it ends before.
        """
        if trail.settled or len(trail.history) >= self.steps:
            return
        counts, objective = self._measured(trail.numbers)
        while not trail.settled and len(trail.history) < self.steps:
            history, before = [*trail.history, counts.log_likelihood], objective
            numbers = self.estimable.maximised(counts.tables, trail.numbers)
            try:
                counts, objective = self._measured(numbers)
            except EvidenceError:  # other tests hold, and the tables they select have learned to exclude some row
                objective = -math.inf
            if objective == -math.inf or (objective < before and self.tolerance):
                trail = Trail(trail.numbers, history, history[-1], before, settled=True)
            else:
                gained = objective - before > self.tolerance * abs(objective)
                settled = not self.counter.holes or (self.tolerance > 0 and not gained)
                trail = Trail(numbers, history, counts.log_likelihood, objective, settled)
            yield trail

    def _measured(self, numbers: Floats) -> tuple[Counts, float]:
        """The counts with such numbers, and the log-likelihood with the prior."""
        counts = self.counter.counts(self.estimable.filled(numbers))
        return counts, counts.log_likelihood + self.estimable.log_prior(numbers)


# in a file ------------------------------------------------------------------------------------------------


def write_search(path: Path, key: str, search: Search) -> None:
    """Store a search."""
    trails = {"trail": search.trail} | ({} if search.best is None else {"best": search.best})
    head: dict[str, Any] = {"restart": search.restart, "finished": search.finished}
    for name, trail in trails.items():
        head[name] = [trail.history, trail.log_likelihood, trail.objective, trail.settled]
    write(path, FORMAT, key, head, {name: trail.numbers for name, trail in trails.items()})


def read_search(path: Path, key: str, fresh: Search) -> Search | None:
    """The search that was stored, if there is one; `fresh` is the same before its first iteration."""
    return read(path, FORMAT, key, lambda head, arrays: _search(head, arrays, len(fresh.trail.numbers)))


def _search(head: dict[str, Any], arrays: Arrays, size: int) -> Search:
    require(is_whole(head["restart"]) and type(head["finished"]) is bool, "restart")
    best = _trail(head["best"], arrays["best"], size) if "best" in head else None
    return Search(_trail(head["trail"], arrays["trail"], size), head["restart"], best, head["finished"])


def _trail(line: Any, numbers: Any, size: int) -> Trail:
    history, log_likelihood, objective, settled = list_of(line)
    require(all(is_number(value) for value in [*list_of(history), log_likelihood, objective]), "history")
    require(type(settled) is bool, "end")
    return Trail(vector(numbers, size), history, log_likelihood, objective, settled)

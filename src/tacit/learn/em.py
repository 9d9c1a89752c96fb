"""Expectation maximisation: counts with the numbers of now, numbers from the counts, again and again.

All starts go on side by side, so that one pass over the rows serves them all. A `Search` is all that is known after an
iteration. Nothing else is carried over, so a search that is stored and read again goes on to the same result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tacit.floats import Floats
from tacit.learn.checkpoint import Arrays, is_number, list_of, read, require, vector, write
from tacit.learn.counting import Counter, Counts
from tacit.learn.estimable import Estimable

FORMAT = "tacit-estimate-2"


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
    """How far EM is: where each start led so far."""

    trails: list[Trail]

    @property
    def found(self) -> Trail:
        """The best of all starts, so far; of equal ones, the first."""
        return max(self.trails, key=lambda trail: trail.objective)

    @property
    def iterations(self) -> int:
        """How many there were."""
        return max(len(trail.history) for trail in self.trails)


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
        """What the result depends on, beside network and rows, and the number of steps."""
        return [self.restarts, self.seed, self.tolerance]

    def begin(self) -> Search:
        """Before the first iteration."""
        rngs = [np.random.default_rng([self.seed, restart]) for restart in range(self.restarts)]
        return Search([Trail(self.estimable.start(rng)) for rng in rngs])

    def finished(self, search: Search) -> bool:
        """Whether there is nothing left to do."""
        return not self._active(search)

    def run(self, search: Search, after: Callable[[Search], None]) -> None:
        """Go on with a search to its end; `after` is called after each iteration.

        Complete rows need one iteration.
        """
        measured: dict[int, Counts] = {}
        while active := self._active(search):
            if fresh := [i for i in active if i not in measured]:
                measured |= zip(fresh, self._measured([search.trails[i].numbers for i in fresh]), strict=True)
                for error in [error for i in fresh if (error := measured[i].impossible)]:
                    raise error
            trails = [search.trails[i] for i in active]
            numbers = [
                self.estimable.maximised(measured[i].tables, trail.numbers, self.counter.negligible)
                for i, trail in zip(active, trails, strict=True)
            ]
            for i, trail, new, counts in zip(active, trails, numbers, self._measured(numbers), strict=True):
                search.trails[i] = self._next(trail, measured[i], new, counts)
                measured[i] = counts
            after(search)

    def _active(self, search: Search) -> list[int]:
        """The starts that go on."""
        trails = enumerate(search.trails)
        return [i for i, trail in trails if not trail.settled and len(trail.history) < self.steps]

    def _measured(self, several: Sequence[Floats]) -> list[Counts]:
        return self.counter.counts([self.estimable.filled(numbers) for numbers in several])

    def _next(self, trail: Trail, before: Counts, numbers: Floats, counts: Counts) -> Trail:
        """One iteration further, or the end: where the log-likelihood no longer grows.

        That of a testing network may fall, since with other numbers other tests may hold, whose tables may even have
        learned to exclude some row. Then it ends before.
        """
        history = [*trail.history, before.log_likelihood]
        old = before.log_likelihood + self.estimable.log_prior(trail.numbers)
        new = counts.log_likelihood + self.estimable.log_prior(numbers)
        if new == -math.inf or (new < old and self.tolerance):
            return Trail(trail.numbers, history, history[-1], old, settled=True)
        gained = new - old > self.tolerance * abs(new)
        settled = not self.counter.holes or (self.tolerance > 0 and not gained)
        return Trail(numbers, history, counts.log_likelihood, new, settled)


# in a file ------------------------------------------------------------------------------------------------


def write_search(path: Path, key: str, search: Search) -> None:
    """Store a search."""
    lines = [[t.history, t.log_likelihood, t.objective, t.settled] for t in search.trails]
    write(path, FORMAT, key, {"trails": lines}, {f"numbers{i}": t.numbers for i, t in enumerate(search.trails)})


def read_search(path: Path, key: str, fresh: Search) -> Search | None:
    """The search that was stored, if there is one; `fresh` is the same before its first iteration."""
    return read(path, FORMAT, key, lambda head, arrays: _search(head, arrays, fresh))


def _search(head: dict[str, Any], arrays: Arrays, fresh: Search) -> Search:
    lines = list_of(head["trails"])
    require(len(lines) == len(fresh.trails), "number of starts")
    size = len(fresh.trails[0].numbers)
    return Search([_trail(line, arrays[f"numbers{i}"], size) for i, line in enumerate(lines)])


def _trail(line: Any, numbers: Any, size: int) -> Trail:
    history, log_likelihood, objective, settled = list_of(line)
    require(all(is_number(value) for value in [*list_of(history), log_likelihood, objective]), "history")
    require(type(settled) is bool, "end")
    return Trail(vector(numbers, size), history, log_likelihood, objective, settled)

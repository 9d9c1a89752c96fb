"""What windows, chosen once, say of the variables of a question, for rows of evidence."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from tacit.base import pickling
from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.base.lru import LRUCache
from tacit.bounds.estimating import Estimator
from tacit.bounds.posterior_bounds import Bounds, bounds_of, inside
from tacit.bounds.querying.boxes import Box
from tacit.bounds.querying.ground import Ground
from tacit.bounds.querying.selections import Selections, in_factors
from tacit.bounds.querying.sharpening import STEPS, Sharpening
from tacit.bounds.row_numbers import Pair, RowNumbers, numbers_of
from tacit.bounds.window_program import program_for_rows
from tacit.bounds.window_rows import WindowRows
from tacit.bounds.window_table import WindowTable
from tacit.bounds.windows import Window
from tacit.compiler.question import Question
from tacit.evidence.column import Column, Evidence, blocks
from tacit.model.model import Model
from tacit.query.asking.options import CompileOptions, Limits

SINGLE_ROW = 64  # times the multiply-adds of a row in a batch are spent on a single one
ENTRIES_AT_ONCE = 2**22  # of a window's tables for a block of rows
TESTING = 0.3  # of the time for a row may be spent on its tests
FEW_ROWS = 2**10  # up to which estimates are made of more than a window
REFINED_ROWS = 2**12  # whose best intervals are kept
ESTIMATING = 0.25  # of the time of a search is spent on estimates
ESTIMATE_WORK = 2**20  # multiply-adds of a row for an estimate
# Joint states of a boundary, tried in turn: a program compiled within seconds, for 100,000 rows a second on two cores,
# and short ones.
SIZES = (2**12, 2**8, 2**4)
REGION = 2**8  # the share of a window's multiply-adds that a region beyond it may have states


class Answering:
    """Intervals of some variables of a question, for rows of evidence.

    Where the question has no evidence but what is given, they are made narrow when this is made.
    """

    def __init__(
        self, net: Model, question: Question, names: Sequence[str], limits: Limits, options: CompileOptions
    ) -> None:
        self.ground, self.limits, self._options = Ground(net, question), limits, options
        self.static = not question.evidence
        self.windows: dict[str, Window] = {}
        self._boxes: Mapping[str, Box] = {}
        self._selections = Selections(net, question, limits)
        self._programs: dict[str, WindowRows] = {}
        self._refined = LRUCache[dict[str, Box]](REFINED_ROWS)
        self._choose([name for name in names if self.is_open(name)])

    def __getstate__(self) -> dict[str, Any]:
        return pickling.state(self, "_programs", "_refined")

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(pickling.unmarked(state))
        self._programs, self._refined = {}, LRUCache(REFINED_ROWS)

    def is_open(self, name: str) -> bool:
        """Whether a variable has several states that are possible, of which rows need not name one."""
        return name in self.ground.factors.cards and name not in self.ground.settled

    def _choose(self, names: Sequence[str]) -> None:
        until = time.monotonic() + self.limits.seconds * (1 - ESTIMATING)
        search = self._search(self._single(Evidence(1, {}), until) if self.static else self._typical, self.static)
        if len(names) == 1:
            search.one(names[0], until)
        else:
            search.all(names, until)
        self.windows = {name: window for name, window in search.windows.items() if name in names}
        if self.static:
            cards = self.ground.factors.cards
            nothing = {name: Box(*np.full((2, cards[name]), np.nan)) for name in names}
            self._boxes = nothing if search.impossible else search.boxes

    def _search(self, numbers: Callable[[str], RowNumbers], single: bool) -> Sharpening:
        """The search for narrow intervals of a single row, or for windows that do for many."""
        most = self.limits.multiply_adds * (SINGLE_ROW if single else 1)
        return Sharpening(numbers, self.limits.within, [*(step for step in STEPS if step < most), most], single)

    def _typical(self, name: str) -> RowNumbers:
        """Numbers around a variable without evidence: windows that do for it should do for many rows."""
        return RowNumbers(self.ground.around(name))

    def _single(self, known: Evidence, until: float) -> Callable[[str], RowNumbers]:
        """The numbers of one row around each variable. Tests are looked into until some time."""
        selected = self._selected(range(len(self.ground.factors.factors)), known, until)
        return lambda name: self._numbers(name, known, selected)

    def _selected(self, factors: Iterable[int], known: Evidence, until: float = math.inf) -> dict[int, Pair]:
        """The tables of testing nodes among some factors, as far as the tests of rows are certain."""
        names = [self.ground.factors.factors[place].testing for place in factors]
        tables = self._selections.tables([name for name in names if name is not None], known, until)
        return in_factors(self.ground.factors, self._selections.network, tables)

    def _numbers(self, name: str, known: Evidence, selected: Mapping[int, Pair]) -> RowNumbers:
        numbers = numbers_of(self.ground.around(name), known.columns, known.rows)
        return replace(numbers, selected=selected) if selected else numbers

    @cached_property
    def _estimator(self) -> Estimator:
        work = None if self.static else ESTIMATE_WORK
        return Estimator(self.ground.factors, seconds=ESTIMATING * self.limits.seconds, work=work)

    @cached_property
    def _given_alone(self) -> dict[str, Floats]:
        """What is estimated without rows: of each variable, (1, states)."""
        return self._estimator.marginals({})

    def estimates(self, known: Evidence) -> dict[str, Floats]:
        """Estimates of the posteriors of all variables, in rows that may be impossible: (rows, states left)."""
        if self.static:
            return self._given_alone
        states = self.ground.factors.states
        columns = {n: known.columns[n] for n in self.ground.factors.evidence if n in known.columns}
        likelihoods = {n: column.likelihoods()[list(states[n])].T for n, column in columns.items()}
        broadcast = {n: np.broadcast_to(own, (known.rows, own.shape[1])) for n, own in likelihoods.items()}
        return self._estimator.marginals(broadcast)

    def bounds(self, name: str, known: Evidence, estimate: Floats | None = None) -> Bounds:
        """The bounds of one variable, over the states that are left of it: (states, rows).

        Without an `estimate` (rows or 1, states), it is the mean over the states of the window's boundary.
        """
        if name not in self.ground.factors.cards:
            answer = np.ones((1, known.rows))
            return Bounds(answer, answer, answer)
        if name in self.ground.settled:
            seen = known.columns[name].likelihoods()[list(self.ground.factors.states[name])]
            answer = np.broadcast_to(seen, (len(seen), known.rows))
            return Bounds(answer, answer, answer)
        low, high, mean = self._of_box(name, known.rows) if name in self._boxes else self._of_rows(name, known)
        if estimate is None:
            return Bounds(low, high, mean)
        better = np.broadcast_to(estimate.T, low.shape)
        return Bounds(low, high, inside(np.where(better.sum(axis=0) > 0, better, mean), low, high))

    def known_box(self, name: str, columns: Mapping[str, Column]) -> Box:
        """The best box of a variable that was found for a single row before: all there is, if none was."""
        everything = Box(*np.repeat([[0.0], [1.0]], self.ground.factors.cards[name], axis=1))
        return (self._refined.peek(self._key(columns)) or {}).get(name, everything)

    def refined(self, name: str, columns: Mapping[str, Column], until: float) -> tuple[Box | None, bool]:
        """The box of a variable in a single row, made until some time, and whether the user ended the work before.

        It is never wider than what was found before for the same row. None instead of a box: the row is impossible.
        """
        now, ended = time.monotonic(), False
        search = self._search(self._single(Evidence(1, columns), now + (until - now) * TESTING), True)
        try:
            search.one(name, until)
        except KeyboardInterrupt:
            ended = True
        if search.impossible:
            return None, ended
        box = self.known_box(name, columns)
        box = box.within(search.boxes[name]) if name in search.boxes else box
        self._refined.get(self._key(columns), dict[str, Box])[name] = box
        return box, ended

    def _key(self, columns: Mapping[str, Column]) -> tuple[tuple[str, bytes], ...]:
        """The evidence of a single row."""
        names = [name for name in self.ground.factors.evidence if name in columns]
        return tuple((name, columns[name].likelihoods().tobytes()) for name in names)

    def _of_box(self, name: str, rows: int) -> Bounds:
        low, high = (np.repeat(end[:, None], rows, axis=1) for end in self._boxes[name])
        return Bounds(low, high, inside((low + high) / 2, low, high))

    def _of_rows(self, name: str, known: Evidence) -> Bounds:
        """What a window says: a program where it is the only one, so that compiling it pays."""
        window, card = self.windows.get(name), self.ground.factors.cards[name]
        if window is None or not known.rows:  # there was no time to choose one
            ends = np.repeat([[0.0], [1.0], [1 / card]], card * known.rows, axis=1)
            return Bounds(*ends.reshape(3, card, known.rows))
        testing = any(self.ground.factors.factors[place].testing for place in window.factors)
        if len(self.windows) == 1 and not testing:
            return self._program(window).bounds(known.columns, known.rows)
        surroundings, parts = self.ground.around(name), []
        states = surroundings.size({window.query, *window.boundary})
        for _, block in blocks(known.columns, known.rows, max(1, ENTRIES_AT_ONCE // states)):
            selected = self._selected(window.factors, block) if testing else {}
            table = WindowTable.of(self._numbers(name, block, selected), window)
            parts.append(bounds_of(table, block.rows))
        return Bounds(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))

    def _program(self, window: Window) -> WindowRows:
        """The window and what regions beyond it say, compiled on first use, for many rows; smaller where refused."""
        if window.query not in self._programs:
            for states in SIZES:
                with suppress(TooLargeError):  # code for GPUs is short
                    self._programs[window.query] = self._program_of(window, states)
                    break
            else:
                self._programs[window.query] = self._program_of(window, 1)
        return self._programs[window.query]

    def _program_of(self, window: Window, states: int) -> WindowRows:
        how, entries = self._options, max(1, min(states // 4, self.limits.multiply_adds // REGION))
        surroundings = self.ground.around(window.query)
        program = program_for_rows(surroundings, window, states, entries, how.dtype, how.effort)
        return WindowRows(self.ground.factors, program, how.engine, how.dtype, how.threads)

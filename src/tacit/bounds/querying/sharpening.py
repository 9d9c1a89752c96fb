"""Narrow intervals of one row of evidence, for the time that there is: windows grow, and sharpen one another."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tacit.bounds.posterior_bounds import bounds_of
from tacit.bounds.querying.boxes import Box, sharpened
from tacit.bounds.row_numbers import RowNumbers
from tacit.bounds.window_choice import Budget, grow
from tacit.bounds.window_table import WindowTable
from tacit.bounds.windows import Window

STEPS = tuple(2**power for power in (8, 11, 13, 15, 17, 19, 20, 22))  # multiply-adds that are tried in turn
KEPT = 2**14  # entries of a table up to which it is kept, to sharpen again
GAIN = 1e-3  # of the width of an interval; less is no reason to look at its neighbours again


class Sharpening:
    """Boxes of variables, for one row of evidence, that become narrower.

    `numbers` makes the row's numbers in the surroundings of a variable. Intervals that are `within` a width are narrow
    enough. Where all states of a window are impossible, so is the row. Unless boxes are `shared`, each is made of the
    windows of its own variable alone.
    """

    def __init__(
        self,
        numbers: Callable[[str], RowNumbers],
        within: float,
        steps: Sequence[int] = STEPS,
        shared: bool = True,
    ) -> None:
        self._numbers, self._within, self._shared = numbers, within, shared
        self._steps = steps
        self.boxes: dict[str, Box] = {}
        self.windows: dict[str, Window] = {}
        self.impossible = False
        self._target: str | None = None  # whose table is kept, whatever its size
        self._tables: dict[str, WindowTable] = {}
        self._neighbours: dict[str, set[str]] = {}  # the variables whose windows have one at their boundary

    def all(self, names: Iterable[str], until: float) -> None:
        """Make the boxes of many variables narrow: all a little, then more and more."""
        names = list(names)
        for multiply_adds in self._steps:
            changed = set()
            for name in self._widest(names):
                if time.monotonic() > until or self.impossible:
                    return
                if self._grown(name, multiply_adds, until):
                    changed.add(name)
            self._propagate(changed, until)

    def one(self, name: str, until: float) -> None:
        """Make the box of one variable narrow, by its own windows and those of what is at their boundary."""
        self._target = name
        for multiply_adds, less in zip(self._steps, (self._steps[0], *self._steps), strict=False):
            if self._narrow(name) or self.impossible or time.monotonic() > until:
                return
            self._grown(name, multiply_adds, until)
            if not self._shared:
                continue
            others = self._boundary(name)
            for other in others:
                if time.monotonic() > until or self.impossible:
                    return
                self._grown(other, less, until)
            self._propagate({name, *others}, until)

    def _boundary(self, name: str) -> Sequence[str]:
        return self.windows[name].boundary if name in self.windows else ()

    def _widest(self, names: Iterable[str]) -> list[str]:
        return sorted((n for n in names if not self._narrow(n)), key=lambda n: -self._width(n))

    def _width(self, name: str) -> float:
        return self.boxes[name].width if name in self.boxes else 1.0

    def _narrow(self, name: str) -> bool:
        return name in self.boxes and self._width(name) <= self._within

    def _grown(self, name: str, multiply_adds: int, until: float) -> bool:
        """Let the window of a variable grow; whether its box became narrower."""
        table = self._tables.pop(name, None)
        if table is None or table.window.relaxed:
            table = WindowTable.smallest(self._numbers(name), name, multiply_adds)
        grow(table, Budget(multiply_adds, self._within, until))
        before, self.windows[name] = self.windows.get(name), table.window
        if name == self._target or table.table.high.size <= KEPT:
            self._tables[name] = table
            for other in table.window.boundary:
                self._neighbours.setdefault(other, set()).add(name)
        return table.window != before and self._look(table)

    def _look(self, table: WindowTable) -> bool:
        """Take what a window says; whether it says more than was known."""
        name = table.window.query
        before = self._width(name)
        box = _box(table, self.boxes if self._shared else {})
        if box is None:
            self.impossible = True
            return False
        self.boxes[name] = box if name not in self.boxes else self.boxes[name].within(box)
        return self._width(name) < before * (1 - GAIN)

    def _propagate(self, changed: set[str], until: float) -> None:
        """Look again at windows with a variable at their boundary whose box became narrower, until nothing changes."""
        while changed and self._shared:
            waiting = {n for name in changed for n in self._neighbours.get(name, ())}
            changed = set()
            for name in self._widest(waiting):
                if time.monotonic() > until or self.impossible:
                    return
                if (table := self._tables.get(name)) is not None and self._look(table):
                    changed.add(name)


def _box(table: WindowTable, known: dict[str, Box]) -> Box | None:
    """The box that a window gives; None if the row is impossible."""
    weighed = table.weighed()
    if not weighed.lost.any():
        return sharpened(weighed, known)
    bounds = bounds_of(table, 1)
    return None if np.isnan(bounds.low).any() else Box(bounds.low[:, 0], bounds.high[:, 0])

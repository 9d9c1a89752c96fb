"""A line in the terminal, or in a notebook, that says how far learning is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from tacit.base.progress import Cell, in_notebook, is_terminal

BAR_WIDTH = 24


class Line:
    """Rewrites one line of a terminal, or of a notebook's output; silent where the stream is none."""

    def __init__(self, on: bool, stream: TextIO | None = None) -> None:
        self.stream: TextIO | None = stream or sys.stderr
        self._cell = Cell() if stream is None and in_notebook() else None
        self.on = on and (self._cell is not None or is_terminal(self.stream))
        self.started = time.monotonic()

    @property
    def spent(self) -> float:
        return time.monotonic() - self.started

    def say(self, text: str, end: str = "") -> None:
        """Replace the line."""
        if self.on and self._cell is not None:
            self._cell.show(text, last=bool(end))
        elif self.on and self.stream is not None:
            self.stream.write(f"\r\x1b[2K{text}{end}")
            self.stream.flush()

    def end(self, text: str) -> None:
        """Replace the line by a last word."""
        self.say(f"{text}  {clock(self.spent)}", end="\n")


class Bar(Line):
    """A line with a bar."""

    def __init__(self, total: int, on: bool, before: tuple[int, int] = (0, 0), stream: TextIO | None = None) -> None:
        super().__init__(on, stream)
        self.total = total
        self.before = before  # rounds and steps that an earlier run did

    def show(self, done: int, steps: int, text: str) -> None:
        """Show that so many rounds and steps are done, with a text beside the bar."""
        spent = self.spent
        left = spent / max(1, done - self.before[0]) * (self.total - done)
        rate = (steps - self.before[1]) / max(spent, 1e-9)
        full = round(BAR_WIDTH * done / self.total)
        bar = "█" * full + "░" * (BAR_WIDTH - full)
        self.say(f"{bar} {done}/{self.total}  {text}  {rate:,.0f} steps/s  {clock(left)} left")


def clock(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"

"""A line in the terminal that says how far training is."""

from __future__ import annotations

import sys
import time
from typing import TextIO

WIDTH = 24


class Bar:
    """Rewrites one line of a terminal; silent where the stream is none."""

    def __init__(self, total: int, on: bool, before: tuple[int, int] = (0, 0), stream: TextIO | None = None) -> None:
        self.total, self.stream = total, stream or sys.stderr
        self.on = on and self.stream.isatty()
        self.started = time.monotonic()
        self.before = before  # rounds and steps that an earlier run did

    def show(self, done: int, steps: int, text: str) -> None:
        """Show that so many rounds and steps are done, with a text beside the bar."""
        if not self.on:
            return
        spent = time.monotonic() - self.started
        left = spent / max(1, done - self.before[0]) * (self.total - done)
        rate = (steps - self.before[1]) / spent
        full = round(WIDTH * done / self.total)
        bar = "█" * full + "░" * (WIDTH - full)
        self.stream.write(f"\r\x1b[2K{bar} {done}/{self.total}  {text}  {rate:,.0f} steps/s  {clock(left)} left")
        self.stream.flush()

    def end(self, text: str) -> None:
        """Replace the bar by a last word."""
        if self.on:
            self.stream.write(f"\r\x1b[2K{text}  {clock(time.monotonic() - self.started)}\n")
            self.stream.flush()


def clock(seconds: float) -> str:
    """Seconds, or minutes and seconds."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"

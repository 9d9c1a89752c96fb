"""Notices and progress of long work, and whether a person is watching, in a terminal or a notebook."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any, Self, TextIO

PATIENCE_SECONDS = 1.0  # before a person is told
LOG_PATIENCE_SECONDS = 2.0  # before a log is
SAME_WAIT_SECONDS = 5.0  # after which work that begins again is a new wait
REFRESH_SECONDS = 0.1  # between two changes of a line


def in_notebook() -> bool:
    """Whether the program runs in a notebook's kernel, which has loaded IPython already."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; programs without a console have none, or a closed one."""
    return stream is not None and not stream.closed and stream.isatty()


def is_watched(stream: TextIO | None) -> bool:
    """Whether a person reads what is written there as it comes: not in pipes and files."""
    return is_terminal(stream) or (stream is not None and not stream.closed and in_notebook())


class Cell:
    """One line in the output of a notebook's cell, rewritten in place."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = -REFRESH_SECONDS

    def show(self, text: str, last: bool = False) -> None:
        """Replace the line, at most every `REFRESH_SECONDS` unless it is the last."""
        now = time.monotonic()
        if not last and now - self._shown < REFRESH_SECONDS:
            return
        self._shown = now
        if self._handle is None:
            display = import_module("IPython.display").display
            self._handle = display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)


class Notice:
    """A line that is written once work takes long; a log gets it later than a person who watches.

    Work may be nested, as kernels are compiled within others. Work that follows soon belongs to the same wait: it adds
    to the time spent so far, and is not announced again.
    """

    def __init__(
        self,
        stream: TextIO | None = None,
        patience: float = PATIENCE_SECONDS,
        soon: float = SAME_WAIT_SECONDS,
        in_a_log: float = LOG_PATIENCE_SECONDS,
    ) -> None:
        self._stream, self._patience, self._soon, self._in_a_log = stream, patience, soon, in_a_log
        self._lock, self._depth, self._said = threading.Lock(), 0, False
        self._spent, self._began, self._ended = 0.0, 0.0, -soon
        self._timer: threading.Timer | None = None

    def begin(self, text: str) -> None:
        """Start the clock of some work."""
        with self._lock:
            self._depth += 1
            if self._depth > 1:
                return
            self._began = time.monotonic()
            if self._began - self._ended > self._soon:
                self._said, self._spent = False, 0.0
            if self._said:
                return
            patience = self._patience if is_watched(self._stream or sys.stderr) else self._in_a_log
            self._timer = threading.Timer(max(0.0, patience - self._spent), self._say, [text])
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """Stop the clock."""
        with self._lock:
            self._depth -= 1
            if self._depth:
                return
            self._ended = time.monotonic()
            self._spent += self._ended - self._began
            if self._timer is not None:
                self._timer.cancel()

    def _say(self, text: str) -> None:
        with self._lock:
            if self._said:
                return
            self._said = True
        stream = self._stream or sys.stderr
        if stream is not None and not stream.closed:
            print(f"tacit: {text}", file=stream, flush=True)


class Progress:
    """A line of a terminal that tells how much of some long work is done, and is removed when the work ends.

    Threads other than the main one, such as a server's workers, show nothing.
    """

    def __init__(self, what: str, steps: int, stream: TextIO | None = None, patience: float = PATIENCE_SECONDS) -> None:
        self._what, self._steps, self._done = what, steps, 0
        self._stream = stream or sys.stderr
        self._on = threading.current_thread() is threading.main_thread() and is_terminal(self._stream)
        self._began = time.monotonic()
        self._next, self._shown = self._began + patience, False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._shown:
            self._write("")

    def advance(self, steps: int) -> None:
        """Count some more steps as done."""
        self._done = min(self._done + steps, self._steps)  # some work is done again
        now = time.monotonic()
        if self._on and now >= self._next:
            left = (now - self._began) / self._done * (self._steps - self._done)
            self._write(f"tacit: {self._what}: {self._done / self._steps:.0%}, about {left:.0f} s left")
            self._next, self._shown = now + REFRESH_SECONDS, True

    def _write(self, text: str) -> None:
        if is_terminal(self._stream):  # still
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()

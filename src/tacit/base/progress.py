"""Whether a person is watching, in a terminal or in a notebook, and a notice for work that takes long unexpectedly."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any, Self, TextIO

PATIENCE = 1.0  # seconds of silence that nobody minds
IN_A_LOG = 2.0  # and that a log is better without
SOON = 5.0  # seconds after which work that begins again is a new surprise
PAUSE = 0.1  # seconds between two changes of a notebook's output


def in_notebook() -> bool:
    """Whether the program runs in a notebook's kernel. IPython is not loaded for that: a notebook has done so."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return hasattr(shell, "kernel")


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; programs without a console have none, or a closed one."""
    return stream is not None and not stream.closed and stream.isatty()


def is_watched(stream: TextIO | None) -> bool:
    """Whether what is written there is read as it comes: not in pipes and files."""
    return is_terminal(stream) or (stream is not None and not stream.closed and in_notebook())


class Cell:
    """A line among the output of a notebook's cell, which is replaced and not added to."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._shown = -PAUSE

    def show(self, text: str, last: bool = False) -> None:
        """Replace the line, but not so often that the notebook has no time for anything else."""
        now = time.monotonic()
        if not last and now - self._shown < PAUSE:
            return
        self._shown = now
        if self._handle is None:
            show = import_module("IPython.display").display
            self._handle = show({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)


class Notice:
    """A line that is written if something takes longer than a person waits patiently, and later where nobody watches.

    What is watched may begin again before it ends: kernels are compiled within others. What follows it soon is the
    same wait: it adds to what that took so far, and is not said again.
    """

    def __init__(
        self, stream: TextIO | None = None, patience: float = PATIENCE, soon: float = SOON, in_a_log: float = IN_A_LOG
    ) -> None:
        self._stream, self._patience, self._soon, self._in_a_log = stream, patience, soon, in_a_log
        self._lock, self._depth, self._said = threading.Lock(), 0, False
        self._spent, self._began, self._ended = 0.0, 0.0, -soon
        self._timer: threading.Timer | None = None

    def begin(self, text: str) -> None:
        """Something begins. If it does not end soon, say so."""
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
        """It ended."""
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
    """A line of a terminal that says how much of some work is done, if it takes long; it goes when the work ends.

    What runs in another thread than the main one, as the answers of a server do, says nothing.
    """

    def __init__(self, what: str, steps: int, stream: TextIO | None = None, patience: float = PATIENCE) -> None:
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
        """So many steps more are done."""
        self._done = min(self._done + steps, self._steps)  # some work is done again
        now = time.monotonic()
        if self._on and now >= self._next:
            left = (now - self._began) / self._done * (self._steps - self._done)
            self._write(f"tacit: {self._what}: {self._done / self._steps:.0%}, about {left:.0f} s left")
            self._next, self._shown = now + PAUSE, True

    def _write(self, text: str) -> None:
        if is_terminal(self._stream):  # still
            self._stream.write(f"\r\x1b[2K{text}")
            self._stream.flush()

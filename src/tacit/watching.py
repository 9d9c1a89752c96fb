"""Whether a person is watching, in a terminal or in a notebook, and a notice for work that takes long unexpectedly."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any, TextIO

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

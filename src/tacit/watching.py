"""Whether a person is watching, in a terminal or in a notebook, and a notice for work that takes them by surprise."""

from __future__ import annotations

import sys
import threading
import time
from importlib import import_module
from typing import Any, TextIO

PATIENCE = 1.0  # seconds of silence that nobody minds
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
    """A line that is written if something takes longer than a person waits patiently.

    What is watched may begin again before it ends: kernels are compiled within others. What follows it soon is the
    same wait, and is not said again.
    """

    def __init__(self, stream: TextIO | None = None, patience: float = PATIENCE, soon: float = SOON) -> None:
        self._stream, self._patience, self._soon = stream, patience, soon
        self._lock, self._depth, self._said, self._ended = threading.Lock(), 0, False, time.monotonic()
        self._timer: threading.Timer | None = None

    def begin(self, text: str) -> None:
        """Something begins. If it does not end soon, say so."""
        with self._lock:
            self._depth += 1
            if self._depth == 1 and time.monotonic() - self._ended > self._soon:
                self._said = False
            if self._depth > 1 or self._said or not is_watched(self._stream or sys.stderr):
                return
            self._timer = threading.Timer(self._patience, self._say, [text])
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """It ended."""
        with self._lock:
            self._depth, self._ended = max(0, self._depth - 1), time.monotonic()
            if self._depth == 0 and self._timer is not None:
                self._timer.cancel()

    def _say(self, text: str) -> None:
        with self._lock:
            if self._said:
                return
            self._said = True
        stream = self._stream or sys.stderr
        if is_watched(stream):  # still
            print(f"tacit: {text}", file=stream, flush=True)

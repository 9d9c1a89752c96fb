"""Worker threads with a short queue, and deadlines of requests."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from tacit.serve.replies import BusyError

T = TypeVar("T")


class Deadline:
    """The time until which an answer is wanted. Work checks it between its steps, since a thread cannot be stopped."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Raise an error if it is too late."""
        if time.monotonic() >= self._end:
            raise self.error()

    def pass_(self) -> None:
        """Let it be too late from now on."""
        self._end = 0.0

    def error(self) -> BusyError:
        """The error for the client."""
        return BusyError(
            f"this took longer than {self.seconds:g} seconds; ask for fewer rows, or try again: a query that is being "
            "compiled is kept"
        )


class KeptFuture(Future[T]):
    """A result that others may still want, so that nobody can cancel it."""

    def cancel(self) -> bool:
        return False


class Workers:
    """Threads that take tasks from a queue; a full one refuses. They do not keep the process from ending."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._tasks: queue.Queue[tuple[Future[Any], Callable[[], Any]]] = queue.Queue(waiting)
        self._waiting = waiting
        for _ in range(threads):
            threading.Thread(target=self._work, daemon=True).start()

    def submit(self, task: Callable[[], T], kept: bool = False) -> Future[T]:
        """The future result of a task, `kept` even if nobody waits; an error if too many tasks wait already."""
        future: Future[T] = KeptFuture() if kept else Future()
        try:
            self._tasks.put_nowait((future, task))
        except queue.Full:
            raise BusyError(f"the server is busy: {self._waiting} requests are waiting already") from None
        return future

    def _work(self) -> None:
        while True:
            _run(*self._tasks.get())


def _run(future: Future[T], task: Callable[[], T]) -> None:
    """In a function of its own, so that an idle thread holds on to nothing."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = task()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)

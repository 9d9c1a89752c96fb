"""Many fits side by side, and a word on how far they are."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from typing import TextIO

import tacit
from paper.experiments import Result, Store, Task, compiled, fit_task
from tacit.examples import chain

BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")
TRUST = 20.0  # seconds: after so long, what was seen counts as much as what was foretold
Report = Callable[[Task, Sequence[Task]], None]  # what was finished, and what is left


def run(tasks: Sequence[Task], store: Store, workers: int = 2, after: Report = lambda task, left: None) -> list[Result]:
    """Fit what is not stored yet; the results of all tasks, in their order."""
    found = {task: result for task in tasks if (result := store.read(task)) is not None}
    left = [task for task in tasks if task not in found]
    for result in _one_by_one(left, store) if workers == 1 else _side_by_side(left, store, workers):
        found[result.task] = result
        after(result.task, [task for task in left if task not in found])
    return [found[task] for task in tasks]


def _one_by_one(tasks: Sequence[Task], store: Store) -> Iterator[Result]:
    """A task after the one it starts from: smaller ones come first."""
    for task in sorted(tasks, key=lambda task: (task.tests, task.kind != "tac")):
        yield fit_task(task, store)


def _side_by_side(tasks: Sequence[Task], store: Store, workers: int) -> Iterator[Result]:
    """Every task as soon as the one it starts from is finished and a worker is free; the longest first."""
    if not tasks:
        return
    warm_up()
    waiting = sorted(tasks, key=partial(_seconds_ahead, tasks=tasks, store=store), reverse=True)
    running: dict[Future[Result], Task] = {}
    with _pool(workers) as pool:  # which, if interrupted, lets fits under way come to their end
        while waiting or running:
            unfinished = {*waiting, *running.values()}
            for task in [t for t in waiting if t.start not in unfinished][: workers - len(running)]:
                waiting.remove(task)
                running[pool.submit(fit_task, task, store)] = task
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                yield future.result()


def _seconds_ahead(task: Task, tasks: Sequence[Task], store: Store) -> float:
    """The time of a task and of the longest row of tasks that wait for it."""
    after = [_seconds_ahead(other, tasks, store) for other in tasks if other.start == task]
    return store.effort_of(task).seconds + max(after, default=0.0)


def _pool(workers: int) -> ProcessPoolExecutor:
    """Processes whose linear algebra has one thread: more wait for each other, for most of the time of a fit.

    They leave it to this process to stop when the user says so.
    """
    os.environ.update(dict.fromkeys(BLAS_THREADS, "1"))
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(workers, context, signal.signal, (signal.SIGINT, signal.SIG_IGN))


def warm_up() -> None:
    """Let the kernels be compiled once, before several processes need them: it takes some seconds the first time."""
    tac = compiled(chain(1))
    for optimizer in ("lm", "lbfgs"):
        tacit.fit(tac, {"E1": [0.2, 0.7]}, [0.2, 0.8], optimizer=optimizer, steps=1, restarts=1, progress=False)


class Progress:
    """Says what was fitted, how much is done, and how long the rest will take.

    In a terminal this is one line, written again and again; elsewhere it is a line per fit.
    """

    def __init__(self, total: int, store: Store, workers: int, stream: TextIO = sys.stdout) -> None:
        self.total, self.store, self.workers, self.stream = total, store, workers, stream
        self.started = time.monotonic()
        self.foretold = 0.0  # seconds, for what was fitted since

    def __call__(self, task: Task, left: Sequence[Task]) -> None:
        """A task is finished."""
        self.foretold += self._foretell([task])
        spent = time.monotonic() - self.started
        slower = (spent + TRUST) / (self.foretold + TRUST)  # how much longer things take than was foretold
        rest = self._foretell(left) * slower
        what = f"{task.function}, {task.dag.replace('_', ' ')} of {task.tests}, {task.kind}"
        text = f"{self.total - len(left):3}/{self.total} fitted   {what:32} {clock(spent)}, {clock(rest)} left"
        self.stream.write(f"\r\x1b[2K{text}" if self.stream.isatty() else f"{text}\n")
        self.stream.flush()

    def _foretell(self, tasks: Sequence[Task]) -> float:
        return sum(self.store.effort_of(task).seconds for task in tasks) / self.workers


def clock(seconds: float) -> str:
    """Minutes and seconds.

    >>> clock(75)
    '1:15'
    """
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"

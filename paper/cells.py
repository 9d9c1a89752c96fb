"""A study as cells, each computed by one process and stored in a file: a run that was cut off goes on."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from pathlib import Path
from typing import Protocol, TypeVar

from tacit.base.atomic import write_atomically


class Cell(Protocol):
    """What a cell says of itself: the name of its file, and how long it takes, roughly and in no unit."""

    @property
    def file(self) -> str: ...

    @property
    def effort(self) -> float: ...


C = TypeVar("C", bound=Cell)
R = TypeVar("R")  # a dataclass whose fields JSON can hold


def run(cells: Sequence[C], compute: Callable[[C], R], kind: type[R], folder: Path, workers: int) -> dict[C, R]:
    """The results of all cells: those in the folder, and the others, computed and stored one by one."""
    folder.mkdir(parents=True, exist_ok=True)
    stored = [cell for cell in cells if (folder / cell.file).exists()]
    results = {cell: kind(**json.loads((folder / cell.file).read_text())) for cell in stored}
    print(f"{len(cells)} cells, {len(stored)} of them in {folder} already")
    missing = [cell for cell in cells if cell not in results]
    for cell, result in computed(missing, compute, workers):
        store(folder / cell.file, json.dumps(asdict(result)))  # type: ignore[call-overload]
        results[cell] = result
    return {cell: results[cell] for cell in cells}


def store(path: Path, text: str) -> None:
    """Write a file in one step."""
    write_atomically(path, lambda file: file.write(text))


def computed(cells: Sequence[C], compute: Callable[[C], R], workers: int) -> Iterator[tuple[C, R]]:
    """Cells and their results as they come, each computed by one thread of one process."""
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    started, done, total = time.monotonic(), 0.0, sum(cell.effort for cell in cells)
    context, deaf = multiprocessing.get_context("spawn"), (signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for us alone
    with ProcessPoolExecutor(workers, context, signal.signal, deaf) as pool:
        futures = {pool.submit(compute, cell): cell for cell in cells}
        try:
            for count, future in enumerate(as_completed(futures), 1):
                cell = futures[future]
                yield cell, future.result()
                done += cell.effort
                spent = time.monotonic() - started
                left = spent / done * (total - done)
                show(f"{count}/{len(cells)}  {spent:.0f} s, about {left:.0f} s left", count == len(cells))
        finally:
            pool.shutdown(cancel_futures=True)


def show(text: str, last: bool) -> None:
    """Rewrite one line of a terminal; where there is none, only the last is written."""
    if sys.stdout.isatty():
        print(f"\r\x1b[2K{text}", end="\n" if last else "", flush=True)
    elif last:
        print(text)

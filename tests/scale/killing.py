"""Killing worker processes, as a machine does that runs out of memory."""

import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psutil


def kill_one(is_worker: "Callable[[psutil.Process], bool]", seconds: float = 20) -> int:
    """Kill a process below this one that is a worker, as soon as there is one; its number, 0 if there was none."""
    import psutil  # comes with the clusters: pytest imports this file where there are none, too

    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for process in psutil.Process().children(recursive=True):
            try:
                if is_worker(process):
                    os.kill(process.pid, signal.SIGKILL)
                    return process.pid
            except (psutil.Error, ProcessLookupError):
                continue
        time.sleep(0.005)
    return 0

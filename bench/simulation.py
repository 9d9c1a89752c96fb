"""A cluster on paper: how long 10^12 rows would take, from figures that were measured on one machine.

Tasks are handed out one after the other by a scheduler, take time that varies from one to the next, and are done again
where a worker dies. `python -m bench simulation` prints the table of docs/scale.md.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.tables import Section
from tacit.clusters.work import FAN_IN


@dataclass(frozen=True)
class Work:
    """Rows that are gone through once, or in several passes."""

    name: str
    rows: float
    rate: float  # rows per second and core
    bytes_read: float  # of storage, per row, in the first pass
    bytes_written: float
    passes: int = 1
    partial: float = 0.0  # bytes that each task sends back


@dataclass(frozen=True)
class Cluster:
    """So many cores, and what stands between them and their work."""

    cores: int
    dispatch: float  # seconds of the scheduler for each task
    storage: float  # bytes per second of all machines together
    spread: float = 0.15  # of the time of a task: the standard deviation of its logarithm
    deaths: float = 0.01  # of workers, per core and hour
    restart: float = 30.0  # seconds until another worker is there
    rows: int = 10_000_000  # of a partition


@dataclass(frozen=True)
class Outcome:
    """What a pass came to."""

    seconds: float
    busy: float  # share of the time of all cores that was spent on results
    again: int  # tasks that were done again


def simulate(work: Work, cluster: Cluster, seed: int = 0) -> Outcome:
    """One pass: each free core gets the next task, as soon as the scheduler has time for it."""
    rng = np.random.default_rng(seed)
    tasks = math.ceil(work.rows / cluster.rows)
    waits = (work.bytes_read + work.bytes_written) * work.rate  # bytes per second that a core would like
    slower = max(1.0, waits * cluster.cores / cluster.storage)
    mean = cluster.rows / work.rate * slower
    free = [0.0] * min(cluster.cores, tasks)
    scheduler, useful, again, end = 0.0, 0.0, 0, 0.0
    left = tasks
    while left:
        start = scheduler = max(heapq.heappop(free), scheduler) + cluster.dispatch
        seconds = mean * rng.lognormal(-(cluster.spread**2) / 2, cluster.spread)
        death = rng.exponential(3600 / cluster.deaths) if cluster.deaths else math.inf
        if death < seconds:
            again += 1
            heapq.heappush(free, start + death + cluster.restart)
            continue
        heapq.heappush(free, start + seconds)
        end, useful, left = max(end, start + seconds), useful + cluster.rows / work.rate, left - 1
    return Outcome(end, useful / (end * cluster.cores), again)


def table(works: Sequence[Work], clusters: Sequence[Cluster]) -> Section:
    """Every work on every cluster."""
    section = Section(
        "10^12 rows, on paper",
        "none",
        ["work", "cores", "tasks", "a pass", "all passes", "cores busy", "done again", "bytes to the driver"],
    )
    for work in works:
        for cluster in clusters:
            found = simulate(work, cluster)
            tasks = math.ceil(work.rows / cluster.rows)
            section.add(
                work.name,
                cluster.cores,
                tasks,
                _time(found.seconds),
                _time(found.seconds * work.passes),
                f"{found.busy:.0%}",
                found.again,
                _bytes(work.partial * tasks * work.passes / FAN_IN),
            )
    return section


def _time(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 1.5 * length:
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds:.0f} s"


def _bytes(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.0f} PB"


# Measured on two cores (docs/bench-scale.md): rows per second and core, bytes of Parquet.
WORKS = (
    Work("scoring", 1e12, 0.55e6, 2.5, 5.6),
    Work("estimate, complete rows", 1e12, 0.4e6, 8.0, 0.0, partial=8e3),
    Work("EM, 2% of values missing, 20 passes", 1e12, 0.4e6, 0.0, 0.0, passes=20, partial=8e3),
)
CLUSTERS = (
    Cluster(cores=64, dispatch=0.002, storage=2e9),
    Cluster(cores=1_000, dispatch=0.002, storage=20e9),
    Cluster(cores=10_000, dispatch=0.002, storage=20e9),
)


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    print(table(WORKS, CLUSTERS).markdown())

"""Clusters against plain processes: what Dask, Ray and Spark cost on top of the work, and what goes over the wire.

Rows of `alarm`, all leaves observed as text, from Parquet to Parquet. Two plain processes share the files, and so do
two workers of each engine on the same machine, already started. `python -m bench scale 1000000` takes fewer rows and
writes no page; `python -m bench scale 10000000 dask` asks one engine only.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
from pyarrow import parquet

import tacit
from bench.batch import sample
from bench.networks import leaves, network, widest_root
from bench.tables import Section, at_least

ROWS, FILES, REPEATS = 10_000_000, 16, 3
SHARE = {"dask": 0.8, "ray": 0.8, "spark": 0.6}
PAGE = Path(__file__).parent.parent / "docs" / "bench-scale.md"
INTRO = (
    "Written by `python -m bench scale` on a machine of 2 cores. Evidence on all leaves of `alarm`, as text, goes from "
    "Parquet files to Parquet files. All clusters were started before, and had answered a small table."
)
Score = Callable[[Path, Path], None]


def make_files(folder: Path, count: int, holes: float = 0.0) -> None:
    """Rows drawn from the network, in files of equal size."""
    net, rng = network("alarm"), np.random.default_rng(0)
    folder.mkdir()
    each = count // FILES
    drawn = sample(net, min(each, 250_000), rng)
    names = list(net) if holes else leaves(net)
    for number in range(FILES):
        rows = rng.integers(len(drawn[names[0]]), size=each)
        columns = {}
        for name in names:
            missing = rng.random(each) < holes if holes else None
            columns[name] = pa.array(net.states(name)).take(pa.array(drawn[name][rows], mask=missing))
        parquet.write_table(pa.table(columns), folder / f"part-{number:02d}.parquet")


def query() -> tacit.TAC:
    """What is asked of every row."""
    net = network("alarm")
    return tacit.compile(net, widest_root(net), evidence=leaves(net))


# two plain processes --------------------------------------------------------------------------------------


def plain(files: list[Path], output: Path, tac: tacit.TAC, ready: Any) -> None:
    """Answer the rows of some files, one after the other; nothing could do less."""
    os.environ["TACIT_THREADS"] = "1"
    pa.set_cpu_count(1)
    tac.posterior(parquet.read_table(files[0]).slice(0, 1000))
    names = [f"{tac.query}.{state}" for state in tac.network.states(tac.query)]
    ready.wait()
    for file in files:
        answer = tac.posterior(parquet.read_table(file, columns=list(tac.evidence)))
        parquet.write_table(pa.table(dict(zip(names, np.ascontiguousarray(answer.T), strict=True))), output / file.name)


def two_processes(rows: Path, output: Path) -> float:
    """Seconds that two processes take, each for half of the files."""
    output.mkdir()
    files, context = sorted(rows.iterdir()), multiprocessing.get_context("spawn")
    ready = context.Barrier(3)
    halves = [files[: len(files) // 2], files[len(files) // 2 :]]
    both = [context.Process(target=plain, args=(half, output, query(), ready)) for half in halves]
    for process in both:
        process.start()
    ready.wait()
    started = time.perf_counter()
    for process in both:
        process.join()
    return time.perf_counter() - started


# the engines ----------------------------------------------------------------------------------------------


@contextmanager
def dask() -> Iterator[Score]:
    """Two workers of Dask."""
    import dask.dataframe as dd
    import distributed

    import tacit.dask

    tac = query()
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client(),
    ):
        yield lambda rows, output: tacit.dask.posterior(tac, dd.read_parquet(rows)).to_parquet(output)


@contextmanager
def ray() -> Iterator[Score]:
    """Two workers of Ray."""
    import ray

    import tacit.ray

    tac = query()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    ray.data.DataContext.get_current().enable_progress_bars = False
    yield lambda rows, output: tacit.ray.posterior(tac, ray.data.read_parquet(str(rows))).write_parquet(str(output))
    ray.shutdown()


@contextmanager
def spark() -> Iterator[Score]:
    """Two workers of Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import tacit.spark

    tac = query()
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield lambda rows, output: tacit.spark.posterior(tac, session.read.parquet(str(rows))).write.parquet(str(output))
    session.stop()


ENGINES = {"dask": dask, "ray": ray, "spark": spark}


class Peak:
    """The most memory that a worker process had resident while this lasted, in megabytes.

    Workers are the Python processes below this one.
    """

    def __enter__(self) -> Peak:
        self.megabytes, self._stop = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.1):
            for process in psutil.Process().children(recursive=True):
                try:
                    if any(word in " ".join(process.cmdline()[:3]) for word in ("spawn_main", "ray::", "pyspark")):
                        memory = process.memory_full_info()
                        self.megabytes = max(self.megabytes, memory.uss / 1e6)
                except psutil.Error:
                    continue


def measured(score: Score, rows: Path, output: Path) -> tuple[float, float]:
    """Seconds, and the memory of a worker."""
    with Peak() as peak:
        started = time.perf_counter()
        score(rows, output)
        seconds = time.perf_counter() - started
    return seconds, peak.megabytes


def same_answers(one: Path, other: Path) -> bool:
    """Whether two folders hold the same rows of answers, with the same bits, in any order."""
    found = []
    for folder in (one, other):
        tables = [parquet.read_table(file) for file in sorted(folder.rglob("*.parquet"))]
        columns = [np.sort(np.concatenate([table[i].to_numpy() for table in tables])) for i in range(2)]
        found.append(columns)
    return all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


def overhead(folder: Path, rows: Path, count: int, engines: list[str]) -> Section:
    """Each engine against two plain processes, in turns."""
    section = Section(
        f"Scoring {count:,} rows",
        "Dask and Ray at least 80% of the throughput of two plain processes, Spark 60%",
        ["by", "rows/s", "of two processes", "worker, MB", "same bits", "verdict"],
    )
    small = folder / "small"
    make_files(small, 16 * FILES)
    base = folder / "base"
    for name in engines:
        processes, theirs, memory, equal = [], [], 0.0, True
        with ENGINES[name]() as score:
            score(small, folder / f"{name}-warm")
            for _ in range(REPEATS):
                for output in (base, folder / name):
                    shutil.rmtree(output, ignore_errors=True)
                processes.append(two_processes(rows, base))
                seconds, megabytes = measured(score, rows, folder / name)
                theirs.append(seconds)
                memory = max(memory, megabytes)
            equal = same_answers(base, folder / name)
        plain_seconds, seconds = statistics.median(processes), statistics.median(theirs)
        share = plain_seconds / seconds
        section.add("two processes", f"{count / plain_seconds:,.0f}", "", "", "", "")
        section.add(name, f"{count / seconds:,.0f}", f"{share:.0%}", f"{memory:,.0f}", "yes" if equal else "NO",
                    at_least(share, SHARE[name]))  # fmt: skip
    return section


def main(arguments: list[str]) -> None:
    """All parts, or one engine."""
    warnings.simplefilter("ignore")
    count = int(arguments[0]) if arguments else ROWS
    engines = arguments[1:] or list(ENGINES)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        rows = folder / "rows"
        make_files(rows, count)
        section = overhead(folder, rows, count, engines)
        print(section.text())

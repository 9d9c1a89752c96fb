"""Clusters against plain processes: what Dask, Ray and Spark cost on top of the work, and what goes over the wire.

Rows of `alarm`, all leaves observed as text, from Parquet to Parquet. Two plain processes share the files, and so do
two workers of each engine on the same machine, already started. `python -m bench scale 1000000` takes fewer rows and
writes no page; `python -m bench scale 10000000 dask` asks one engine only.
"""

from __future__ import annotations

import multiprocessing
import operator
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
from pyarrow import parquet

import tacit
from bench.batch import sample
from bench.networks import leaves, network, widest_root
from bench.tables import Section, at_least, write
from tacit.clusters.plan import Columns

ROWS, EACH, REPEATS = 10_000_000, 250_000, 3  # EACH: rows of a file
SIZES = (10_000, 100_000, 1_000_000, 10_000_000)
LEARNED, STEPS = 500_000, 3
PARTS = (16, 512)
SHARE = {"dask": 0.8, "ray": 0.8, "spark": 0.6}
PAGE = Path(__file__).parent.parent / "docs" / "bench-scale.md"
INTRO = (
    "Written by `python -m bench scale` on a machine of 2 cores. Evidence on all leaves of `alarm`, as text, goes from "
    "Parquet files to Parquet files. All clusters were started before, and had answered the same table once. Ray reads "
    "by its older reader, and a block for each file; its newer one starts processes for each table, and puts small "
    "files into one task. Files are small, 2.5 bytes for a row, since the rows repeat."
)


def make_files(folder: Path, count: int, names: Sequence[str] = (), holes: float = 0.0) -> None:
    """Rows drawn from the network, in files of so many each: the leaves of it, or some variables."""
    net, rng = network("alarm"), np.random.default_rng(0)
    names = names or leaves(net)
    folder.mkdir()
    drawn = sample(net, min(count, EACH), rng)
    for number, first in enumerate(range(0, count, EACH)):
        each = min(EACH, count - first)
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


@dataclass(frozen=True)
class Engine:
    """An engine that has started: its package, how it reads a folder of Parquet files, and how it writes one."""

    package: Any
    read: Callable[[Path], Any]
    write: Callable[[Any, Path], Any]
    rows: Callable[[int], Any]  # a table of so many rows, each a partition

    def numbers(self, count: int) -> Any:
        """Parts to learn from, each with one row."""
        table = import_module(f"{self.package.__name__}.parts").table(self.rows(count))
        return table.parts(Columns((), frozenset()), list(table.columns)[:1])

    def score(self, tac: tacit.TAC, rows: Path, output: Path) -> None:
        """From files to files."""
        self.write(self.package.posterior(tac, self.read(rows)), output)


@contextmanager
def dask() -> Iterator[Engine]:
    """Two workers of Dask."""
    import dask.dataframe as dd
    import distributed

    import tacit.dask

    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        cluster.get_client(),
    ):
        yield Engine(
            tacit.dask,
            dd.read_parquet,
            lambda answer, output: answer.to_parquet(output),
            lambda count: dd.from_map(lambda i: pd.DataFrame({"i": [i]}), range(count), meta={"i": "int64"}),
        )


@contextmanager
def ray() -> Iterator[Engine]:
    """Two workers of Ray."""
    import ray

    import tacit.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.use_datasource_v2 = False  # which starts other processes for each table, to look at the files
    yield Engine(
        tacit.ray,
        lambda folder: ray.data.read_parquet(str(folder), override_num_blocks=len(list(folder.iterdir()))),
        lambda answer, output: answer.write_parquet(str(output)),
        lambda count: ray.data.from_pandas([pd.DataFrame({"i": [i]}) for i in range(count)]),
    )
    ray.shutdown()


@contextmanager
def spark() -> Iterator[Engine]:
    """Two workers of Spark."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    import tacit.spark

    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield Engine(
        tacit.spark,
        lambda folder: session.read.parquet(str(folder)),
        lambda answer, output: answer.write.parquet(str(output)),
        lambda count: session.range(0, count, 1, count),
    )
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
        while not self._stop.wait(0.25):
            for process in psutil.Process().children(recursive=True):
                try:
                    if any(word in " ".join(process.cmdline()) for word in ("spawn_main", "ray::", "pyspark.daemon")):
                        memory = process.memory_full_info()
                        self.megabytes = max(self.megabytes, memory.uss / 1e6)
                except psutil.Error:
                    continue


def measured(work: Callable[[], Any]) -> tuple[float, float]:
    """Seconds, and the memory of a worker."""
    with Peak() as peak:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    return seconds, peak.megabytes


def same_answers(one: Path, other: Path) -> bool:
    """Whether two folders hold the same rows of answers, with the same bits, in any order."""
    found = []
    for folder in (one, other):
        tables = [parquet.read_table(file) for file in sorted(folder.rglob("*.parquet"))]
        found.append([np.sort(np.concatenate([table[i].to_numpy() for table in tables])) for i in range(2)])
    return all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


# what is measured -----------------------------------------------------------------------------------------


@dataclass
class Sections:
    """The tables of the page, which every engine adds to."""

    scoring: Section
    sizes: Section
    learning: Section

    @staticmethod
    def empty(count: int) -> Sections:
        return Sections(
            Section(
                f"Scoring {count:,} rows",
                "Dask and Ray at least 80% of the throughput of two plain processes, Spark 60%",
                ["by", "rows/s", "of two processes", "same bits", "verdict"],
            ),
            Section(
                "When one machine is simply faster",
                "memory of a worker does not grow with the rows",
                ["by", *(f"{rows:,} rows" for rows in SIZES), "worker, MB"],
            ),
            Section(
                "Learning",
                "the tables of one machine, to 1e-12",
                [
                    "by",
                    "complete, rows/s",
                    "EM, rows/s of a pass",
                    "an empty pass",
                    "a task more",
                    "largest difference",
                ],
            ),
        )

    def __iter__(self) -> Iterator[Section]:
        return iter((self.scoring, self.sizes, self.learning))


def overhead(name: str, engine: Engine, folder: Path, count: int, section: Section) -> None:
    """An engine against two plain processes, in turns."""
    tac, rows, base, output = query(), folder / f"rows-{count}", folder / "base", folder / "output"
    processes, theirs = [], []
    shutil.rmtree(output, ignore_errors=True)
    engine.score(tac, rows, output)  # Java compiles as it goes
    for _ in range(REPEATS):
        for place in (base, output):
            shutil.rmtree(place, ignore_errors=True)
        processes.append(two_processes(rows, base))
        started = time.perf_counter()
        engine.score(tac, rows, output)
        theirs.append(time.perf_counter() - started)
    one, other = statistics.median(processes), statistics.median(theirs)
    section.add("two processes", f"{count / one:,.0f}", "", "", "")
    equal = "yes" if same_answers(base, output) else "NO"
    section.add(name, f"{count / other:,.0f}", f"{one / other:.0%}", equal, at_least(one / other, SHARE[name]))


def sizes(name: str, score: Callable[[Path, Path], Any], folder: Path, section: Section) -> None:
    """Seconds for tables of several sizes, and the memory of a worker for each."""
    seconds, memory = [], []
    for count in SIZES:
        shutil.rmtree(folder / "output", ignore_errors=True)
        spent, megabytes = measured(lambda count=count: score(folder / f"rows-{count}", folder / "output"))
        seconds.append(f"{spent:.2g} s" if spent < 10 else f"{spent:.0f} s")
        memory.append(f"{megabytes:,.0f}")
    section.add(name, *seconds, ", ".join(memory))


def learning(
    name: str, engine: Engine | None, folder: Path, section: Section, expected: tacit.Estimate | None = None
) -> tacit.Estimate:
    """Estimates from complete rows and from rows with holes, and what a pass costs that has nothing to do."""
    net = network("alarm").learnable()
    rows = {what: folder / what for what in ("complete", "holes")}
    how: dict[str, Any] = {"steps": STEPS, "tolerance": 0, "progress": False}

    def estimated(what: str, steps: int) -> tuple[float, tacit.Estimate]:
        started = time.perf_counter()
        if engine is None:
            table = parquet.read_table(rows[what])
            found = tacit.estimate(net, table, **how | {"steps": steps})
        else:
            found = engine.package.estimate(net, engine.read(rows[what]), **how | {"steps": steps})
        return time.perf_counter() - started, found

    complete = min(estimated("complete", 1)[0] for _ in range(2))
    (short, _), (long, found) = estimated("holes", 1), estimated("holes", STEPS)
    of_pass = (long - short) / (STEPS - 1)
    reference = found if expected is None else expected
    difference = max(
        float(np.abs(found.network.table(node) - reference.network.table(node)).max()) for node in net.variables
    )
    idle = ["", ""]
    if engine is not None:
        few, many = (empty_pass(engine, parts) for parts in PARTS)
        idle = [f"{1e3 * few:.0f} ms", f"{1e3 * (many - few) / (PARTS[1] - PARTS[0]):.2g} ms"]
    section.add(name, f"{LEARNED / complete:,.0f}", f"{LEARNED / of_pass:,.0f}", *idle, difference)
    return found


def empty_pass(engine: Engine, count: int) -> float:
    """Seconds for a sum over some parts of something that is known."""
    parts = engine.numbers(count).map(_number)
    parts.sum(_itself, operator.add)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        assert parts.sum(_itself, operator.add) == count
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def _number(tables: Any, number: int | None) -> int:
    return sum(len(table) for table in tables)


def _itself(thing: int, number: int | None) -> int:
    return thing


def one_machine(rows: Path, output: Path) -> None:
    """The same in this process, with all its threads, file by file."""
    tac = query()
    output.mkdir()
    names = [f"{tac.query}.{state}" for state in tac.network.states(tac.query)]
    for file in sorted(rows.iterdir()):
        answer = tac.posterior(parquet.read_table(file, columns=list(tac.evidence)))
        parquet.write_table(pa.table(dict(zip(names, np.ascontiguousarray(answer.T), strict=True))), output / file.name)


def main(arguments: list[str]) -> None:
    """All engines, or those that are named; a page, if all were asked with all rows."""
    warnings.simplefilter("ignore")
    count = int(arguments[0]) if arguments else ROWS
    engines = arguments[1:] or list(ENGINES)
    sections = Sections.empty(count)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for size in {count, *SIZES}:
            make_files(folder / f"rows-{size}", size)
        make_files(folder / "complete", LEARNED, list(network("alarm")))
        make_files(folder / "holes", LEARNED, list(network("alarm")), holes=0.02)
        one_machine(folder / f"rows-{SIZES[0]}", folder / "warm")
        sizes("one process", one_machine, folder, sections.sizes)
        expected = learning("one process", None, folder, sections.learning)
        for name in engines:
            with ENGINES[name]() as engine:
                tac = query()
                engine.score(tac, folder / f"rows-{SIZES[0]}", folder / f"{name}-warm")
                overhead(name, engine, folder, count, sections.scoring)
                sizes(name, partial(engine.score, tac), folder, sections.sizes)
                learning(name, engine, folder, sections.learning, expected)
            print(*(section.text() for section in sections), sep="\n", flush=True)
    for section in sections:
        print(section.text())
    if not arguments:
        write(PAGE, "Clusters", INTRO, list(sections))

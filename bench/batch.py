"""`tacit batch` on millions of rows: how fast, in how much memory, and whether it survives being killed.

Rows of `alarm`, all leaves observed as text, from file to file, each run a process of its own: starting, compiling and
loading the kernels are part of the time. `python -m bench batch 100000` takes fewer rows and writes no page.
"""

from __future__ import annotations

import filecmp
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv, parquet

import tacit
from bench.networks import folder, leaves, network, widest_root
from bench.tables import Section, at_least, missed, write

ROWS = 2_000_000
SAMPLED = 100_000  # rows made at a time
ROWS_PER_SECOND, MEGABYTES = 200_000, 1000
PAGE = Path(__file__).parent.parent / "docs" / "bench-batch.md"
INTRO = (
    "Written by `python -m bench batch` on a machine of 2 cores that others were using. Evidence on all leaves of "
    "`alarm`, as text, goes from file to file in a process of its own; the time is that of the whole process, and the "
    "memory is the most that was resident."
)


@dataclass(frozen=True)
class Run:
    """What one process took."""

    code: int
    seconds: float
    of_cpu: float
    megabytes: float


def make_rows(path: Path, count: int) -> None:
    """Rows drawn from the network, as Parquet and as CSV."""
    net, rng = network("alarm"), np.random.default_rng(0)
    schema = pa.schema([(name, pa.string()) for name in leaves(net)])
    with (
        parquet.ParquetWriter(path.with_suffix(".parquet"), schema) as one,
        csv.CSVWriter(path.with_suffix(".csv"), schema) as other,
    ):
        for start in range(0, count, SAMPLED):
            drawn = sample(net, min(SAMPLED, count - start), rng)
            labels = [pa.array(net.states(name)).take(pa.array(drawn[name])) for name in leaves(net)]
            table = pa.Table.from_arrays(labels, schema=schema)
            one.write_table(table)
            other.write_table(table)


def sample(net: tacit.Network, count: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """States drawn from the network, parents before children."""
    drawn: dict[str, np.ndarray] = {}
    for name in net:
        rows = net.table(name)[tuple(drawn[p] for p in net.parents(name))]
        rows = np.broadcast_to(rows, (count, rows.shape[-1]))
        drawn[name] = (rng.random((count, 1)) > rows.cumsum(axis=1)).sum(axis=1).clip(max=rows.shape[1] - 1)
    return drawn


def start(rows: Path, output: Path) -> subprocess.Popen[bytes]:
    """A process that answers all rows."""
    query = widest_root(network("alarm"))
    arguments = ["batch", str(folder() / "alarm.bif.gz"), str(rows), "-q", query, "-o", str(output)]
    return subprocess.Popen([sys.executable, "-m", "tacit.cli", *arguments], stdout=subprocess.DEVNULL)


def run(rows: Path, output: Path) -> Run:
    """Answer all rows."""
    started = time.perf_counter()
    _, status, usage = os.wait4(start(rows, output).pid, 0)
    seconds, of_cpu = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
    return Run(os.waitstatus_to_exitcode(status), seconds, of_cpu, usage.ru_maxrss / 1024)


def killed(rows: Path, output: Path, parts: int) -> int:
    """Kill a process when so many more parts are done; the number that are done then."""
    done = output.parent / f".{output.name}.parts"
    before, process = len(list(done.glob("*.arrow"))), start(rows, output)
    while len(list(done.glob("*.arrow"))) < before + parts and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return len(list(done.glob("*.arrow")))


def speed(work: Path, count: int) -> Section:
    """From file to file."""
    section = Section(
        f"1. {count:,} rows from file to file",
        f"from Parquet to Parquet, at least {ROWS_PER_SECOND:,} rows per second in less than 1 GB",
        ("files", "seconds", "of CPU", "rows/s", "peak memory", "verdict"),
    )
    for suffix in ("parquet", "csv"):
        found = run(work / f"rows.{suffix}", work / f"answers.{suffix}")
        rate = count / found.seconds if found.code == 0 and found.megabytes < MEGABYTES else 0.0
        section.add(
            suffix, f"{found.seconds:.1f}", f"{found.of_cpu:.1f}", f"{rate:,.0f}", f"{found.megabytes:.0f} MB",
            at_least(rate, ROWS_PER_SECOND) if suffix == "parquet" else "",
        )  # fmt: skip
    return section


def survival(work: Path) -> Section:
    """Killed twice, then finished."""
    section = Section(
        "2. Killed (kill -9) and run again", "the same bytes as without", ("files", "parts at the kills", "verdict")
    )
    for suffix in ("parquet", "csv"):
        rows, output = work / f"rows.{suffix}", work / f"again.{suffix}"
        parts = [killed(rows, output, 3) for _ in range(2)]
        code = run(rows, output).code
        same = code == 0 and filecmp.cmp(output, work / f"answers.{suffix}", shallow=False)
        section.add(suffix, ", then ".join(map(str, parts)), at_least(same, True))
    return section


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless the number of rows is given."""
    count = int(arguments[0]) if arguments else ROWS
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        make_rows(work / "rows", count)
        sections = [speed(work, count), survival(work)]
    print("\n".join(section.text() for section in sections))
    print("\n".join(missed(sections)))
    if not arguments:
        write(PAGE, "Benchmark: tacit batch", INTRO, sections)


if __name__ == "__main__":
    main(sys.argv[1:])

"""What must not matter to a search (orders of columns and rows), files larger than memory, and numbers as rows."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import tacit
from bench.networks import network
from bench.sides import taking_turns
from bench.tables import MISSED, OK, Ratio, Section

SHUFFLED = ("asia", "child", "insurance", "alarm", "hepar2")
SHUFFLES, SHUFFLED_ROWS = 25, 2_000
FILE_ROWS = (2_500_000, 5_000_000, 10_000_000)
MAX_GIGABYTES, MAX_SLOPE = 2.0, 1.1
NUMBERS, MAX_RATIO = 1_000_000, 1.5


def order() -> list[Section]:
    """Rows and columns in another order."""
    section = Section(
        f"8. {SHUFFLES} orders of columns and rows, {SHUFFLED_ROWS:,} rows",
        "the same equivalence class and score every time",
        ("network", "variables", "different results", "verdict"),
    )
    for name in SHUFFLED:
        frame = pd.DataFrame(network(name).sample(SHUFFLED_ROWS, seed=0)).astype(str)
        rng = np.random.default_rng(0)
        results = set()
        for _ in range(SHUFFLES):
            mixed = frame.iloc[rng.permutation(len(frame)), rng.permutation(frame.shape[1])]
            found = tacit.discover(mixed, progress=False)
            results.add((found.score, tuple(found.arrows.directed), tuple(found.arrows.undirected)))
        section.add(name, frame.shape[1], len(results), OK if len(results) == 1 else MISSED)
        print(" | ".join(section.rows[-1]), flush=True)
    return [section]


def files() -> list[Section]:
    """Parquet files of many rows, each in a process of its own."""
    section = Section(
        "9. alarm in Parquet files",
        f"at most {MAX_GIGABYTES:.0f} GB; twice the rows take at most {2 * MAX_SLOPE} times as long",
        ("rows", "file, MB", "s", "than before", "CPU, s", "peak memory, GB", "verdict"),
    )
    before = None
    for rows in FILE_ROWS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "alarm.parquet"
            _write(path, rows)
            command = [sys.executable, "-m", "bench.discovery_rows", str(path)]
            seconds, spent, peak = map(
                float, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
            )
            size = path.stat().st_size / 1e6
        slower = Ratio(seconds, before) if before else "-"
        good = peak < MAX_GIGABYTES and (not before or seconds <= 2 * MAX_SLOPE * before)
        verdict = OK if good else MISSED
        section.add(rows, f"{size:.0f}", f"{seconds:.1f}", slower, f"{spent:.1f}", f"{peak:.2f}", verdict)
        print(" | ".join(section.rows[-1]), flush=True)
        before = seconds
    return [section]


def _write(path: Path, rows: int) -> None:
    net, writer = network("alarm"), None
    for number, start in enumerate(range(0, rows, 500_000)):
        drawn = net.sample(min(500_000, rows - start), seed=number)
        table = pa.table({name: pa.array(np.asarray(labels).astype(str)) for name, labels in drawn.items()})
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def numbers() -> list[Section]:
    """Columns of numbers beside columns of categories."""
    section = Section(
        f"10. Posteriors from a column of {NUMBERS:,} numbers in 8 intervals",
        f"at most {MAX_RATIO} times as long as from a column of 8 categories",
        ("container", "numbers, ms", "categories, ms", "ratio", "reading alone", "verdict"),
    )
    edges = [0, 10, 20, 30, 40, 50, 60, 70, 80]
    net = tacit.Network()
    net.add("age", bins=edges, cpt=np.full(8, 1 / 8))
    net.add("ill", ["age"], cpt=np.linspace([0.1, 0.9], [0.8, 0.2], 8))
    tac = tacit.compile(net, query="ill", evidence=["age"])
    values = np.random.default_rng(0).uniform(0, 80, NUMBERS)
    labels = np.array(net.states("age"))
    codes = np.searchsorted(edges, values, side="right") - 1
    category = pd.Categorical.from_codes(codes, labels)
    dictionary = pa.DictionaryArray.from_arrays(codes.astype(np.int32), labels)
    sides = {
        "pandas, float64": (pd.DataFrame({"age": values}), pd.DataFrame({"age": category})),
        "pandas, float32": (pd.DataFrame({"age": values.astype(np.float32)}), pd.DataFrame({"age": category})),
        "pandas, int64": (pd.DataFrame({"age": values.astype(int)}), pd.DataFrame({"age": category})),
        "pandas, Float64": (pd.DataFrame({"age": pd.array(values, "Float64")}), pd.DataFrame({"age": category})),
        "polars": (
            pl.DataFrame({"age": values}),
            pl.DataFrame({"age": pl.Series(labels[codes]).cast(pl.Enum(labels.tolist()))}),
        ),
        "pyarrow": (pa.table({"age": values}), pa.table({"age": dictionary})),
    }
    for title, (plain, categorical) in sides.items():
        ratios = []
        for ask in (tac.posterior, tac.read):
            runs = [partial(_seconds, ask, frame) for frame in (plain, categorical)]
            ours, theirs = (float(np.median(seconds)) for seconds in taking_turns(runs))
            ratios.append(Ratio(ours, theirs))
        whole, reading = ratios
        verdict = OK if float(whole) <= MAX_RATIO else MISSED
        section.add(title, f"{1e3 * whole.of:.1f}", f"{1e3 * whole.to:.1f}", whole, reading, verdict)
        print(" | ".join(section.rows[-1]), flush=True)
    return [section]


def _seconds(ask: Callable[[Any], Any], rows: Any) -> float:
    start = time.perf_counter()
    ask(rows)
    return time.perf_counter() - start


def _discover_file(path: str) -> None:
    """Print the seconds, those of processors, and the peak memory of this process in gigabytes."""
    start, before = time.perf_counter(), time.process_time()
    tacit.discover(path, progress=False)
    print(time.perf_counter() - start, time.process_time() - before, _peak_memory() / 1e9)


def _peak_memory() -> float:
    """The most bytes that this process had in memory; what `getrusage` says counts the process that started it, too."""
    status = Path("/proc/self/status").read_text()
    return 1024 * float(status.partition("VmHWM:")[2].split()[0])


if __name__ == "__main__":
    _discover_file(sys.argv[1])

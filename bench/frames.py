"""The same rows in every container that people keep them in: none may be a cliff.

Evidence on the 11 leaves of `alarm`, a tenth of it missing wherever a container can say so. `python -m bench frames
100000` takes fewer rows and writes no page.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import tacit
from bench.networks import leaves, network, widest_root
from bench.tables import MISSED, Ratio, Section, at_most, missed, write

ROWS, REPEATS = 1_000_000, 3
MISSING = 0.1  # of all values
BAR = 3.0
PAGE = Path(__file__).parent.parent / "docs" / "bench-frames.md"
INTRO = (
    "Written by `python -m bench frames` on a machine of 2 cores that others were using. Evidence on all 11 leaves of "
    "`alarm`, a tenth of it missing, in the containers that people keep it in. Measured is `tac.posterior`, from the "
    "container to the answers: medians of {repeats} runs, the containers of a section in turn. Ratios are those of "
    "CPU time, since the others on the machine slow some runs down more than others. For codes, truth values and "
    "likelihoods, the states of the leaves have other names, or all but the first are merged, so that answers take "
    "less time.\n\n"
    "Containers marked * cannot say that a value is missing, and hold none. In those marked †, every value is a "
    "Python object of its own, somewhere in memory: following so many pointers takes longer than all the rest, and "
    "no bar is set for it."
)
SAME, NONE_MISSING, SCATTERED = "", " *", " †"

Values = np.ndarray[Any, np.dtype[Any]]  # (rows,) of Python objects, None where a value is missing
Made = Callable[[Mapping[str, Values]], Any]


@dataclass(frozen=True)
class Kind:
    """A kind of column: the network that it is evidence for, the values, and the containers that hold them, by mark."""

    title: str
    net: tacit.Network
    columns: Mapping[str, Values]
    containers: Mapping[str, Mapping[str, Made]]


# networks -------------------------------------------------------------------------------------------------


def coded() -> tacit.Network:
    """`alarm`, its states called 0, 1, 2, ..."""
    net, made = network("alarm"), tacit.Network("coded")
    for name in net:
        made.add(name, net.parents(name), len(net.states(name)), net.table(name))
    return made


def halved(states: Sequence[Any]) -> tacit.Network:
    """`alarm`, all states of a leaf but the first made one."""
    net, made = network("alarm"), tacit.Network("halved")
    ends = set(leaves(net))
    for name in net:
        table, own = net.table(name), net.states(name)
        if name in ends:
            table, own = np.stack([table[..., 0], 1 - table[..., 0]], axis=-1), tuple(states)
        made.add(name, net.parents(name), own, table)
    return made


def drawn(net: tacit.Network, count: int) -> dict[str, Values]:
    """Labels of all leaves, a tenth of them missing; labels that are the same are one object."""
    rng, rows = np.random.default_rng(0), {}
    for name in leaves(net):
        labels = np.array([*net.states(name), None], dtype=object)
        codes = rng.integers(0, len(labels) - 1, count)
        rows[name] = labels[np.where(rng.random(count) < MISSING, -1, codes)]
    return rows


def weighed(net: tacit.Network, count: int) -> dict[str, Values]:
    """Likelihoods of the first state of all leaves, a tenth of them missing."""
    rng, rows = np.random.default_rng(0), {}
    for name in leaves(net):
        rows[name] = rng.random(count).astype(object)
        rows[name][rng.random(count) < MISSING] = None
    return rows


# containers -----------------------------------------------------------------------------------------------


def each(column: Callable[[Values], Any], table: Callable[[dict[str, Any]], Any] = dict) -> Made:
    """A container of columns, each made of the values of its own."""
    return lambda columns: table({name: column(values) for name, values in columns.items()})


def in_pandas(dtype: Any) -> Made:
    return each(lambda values: pd.Series(values, dtype=dtype), pd.DataFrame)


def in_polars(dtype: Any = None) -> Made:
    return each(lambda values: pl.Series(values.tolist(), dtype=dtype), pl.DataFrame)


def in_arrow(kind: Any = None) -> Made:
    return each(lambda values: pa.array(values, kind), pa.table)


in_dictionary = each(lambda values: pa.array(values).dictionary_encode(), pa.table)


def in_numpy(dtype: Any) -> Made:
    return each(lambda values: np.array(values.tolist(), dtype=dtype))


def in_enum(values: Values) -> pl.Series:
    labels = sorted({value for value in values if value is not None})
    return pl.Series(values.tolist(), dtype=pl.Enum(labels))


def with_nan(values: Values) -> Values:
    return np.array([np.nan if value is None else value for value in values], dtype=object)


def masked(dtype: Any) -> Callable[[Values], Any]:
    def made(values: Values) -> Any:
        gaps = np.equal(values, None)
        return np.ma.array(np.where(gaps, 0, values).astype(dtype), mask=gaps)

    return made


def apart(values: Values) -> list[Any]:
    """Every value an object of its own, as parsers of JSON and drivers of databases give them."""
    return [None if value is None else "".join(list(value)) for value in values]


PYTHON: dict[str, Made] = {
    "object arrays": dict,
    "lists": each(lambda values: values.tolist()),
    "pandas object, None": in_pandas(object),
    "pandas object, NaN": each(lambda values: pd.Series(with_nan(values), dtype=object), pd.DataFrame),
}


def kinds(count: int) -> list[Kind]:
    """All that is measured."""
    words, codes, truth, weights = network("alarm"), coded(), halved([True, False]), halved(["true", "false"])
    return [
        Kind("labels of text", words, drawn(words, count), TEXT),
        Kind("integer codes", codes, drawn(codes, count), CODES),
        Kind("truth values", truth, drawn(truth, count), TRUTH),
        Kind("likelihoods of the first state", weights, weighed(weights, count), LIKELIHOODS),
    ]


TEXT = {
    SAME: {
        **PYTHON,
        "pandas category": in_pandas("category"),
        "pandas str": in_pandas("str"),
        "pyarrow string": in_arrow(),
        "pyarrow dictionary": in_dictionary,
        "polars String": in_polars(),
        "polars Categorical": in_polars(pl.Categorical),
        "polars Enum": each(in_enum, pl.DataFrame),
    },
    NONE_MISSING: {"NumPy text (U)": in_numpy(str), "NumPy bytes (S)": in_numpy("S")},
    SCATTERED: {"lists, no object twice": each(apart)},
}
CODES = {
    SAME: {
        **PYTHON,
        "pandas float64, NaN": in_pandas("float64"),
        "pandas Int64": in_pandas("Int64"),
        "pandas category": in_pandas("category"),
        "pyarrow int64": in_arrow(),
        "pyarrow dictionary": in_dictionary,
        "polars Int64": in_polars(),
        "NumPy masked": each(masked(np.int64)),
    },
    NONE_MISSING: {
        "NumPy int64": in_numpy(np.int64),
        "NumPy int8": in_numpy(np.int8),
        "pandas int64": in_pandas("int64"),
    },
}
TRUTH = {
    SAME: {
        **PYTHON,
        "pandas boolean": in_pandas("boolean"),
        "pyarrow bool": in_arrow(),
        "polars Boolean": in_polars(),
        "NumPy masked": each(masked(bool)),
    },
    NONE_MISSING: {"NumPy bool": in_numpy(bool), "pandas bool": in_pandas("bool")},
}
LIKELIHOODS = {
    SAME: {
        "NumPy float64, NaN": in_numpy(float),
        "pandas float64, NaN": in_pandas("float64"),
        "pandas Float64": in_pandas("Float64"),
        "pyarrow double": in_arrow(),
        "polars Float64": in_polars(),
        "NumPy masked": each(masked(float)),
    },
    SCATTERED: PYTHON,
}


# measurements ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Timing:
    """What `tac.posterior` took, medians, and the largest difference from what it should answer."""

    wall: float
    of_cpu: float
    error: float


def expected(kind: Kind, tac: tacit.TAC, columns: Mapping[str, Values]) -> Values:
    """What rows mean: likelihoods (rows, states) made here, value by value."""
    evidence = {}
    for name, values in columns.items():
        states = kind.net.states(name)
        if isinstance(next(v for v in values if v is not None), float):
            first = np.array([0.5 if v is None else v for v in values])
            evidence[name] = np.stack([first, 1 - first], axis=1)
        else:
            row_of = {None: len(states), **{state: i for i, state in enumerate(states)}}
            table = np.concatenate([np.eye(len(states)), np.ones((1, len(states)))])
            evidence[name] = table[[row_of[v] for v in values]]
    return tac.posterior(evidence)


def measured(kind: Kind) -> dict[str, Timing]:
    """All containers of a kind, in turn."""
    tac = tacit.compile(kind.net, widest_root(kind.net), evidence=leaves(kind.net))
    full = {name: np.where(np.equal(v, None), kind.net.states(name)[0], v) for name, v in kind.columns.items()}
    tables, errors = {}, {}
    for mark, containers in kind.containers.items():
        columns = full if mark == NONE_MISSING else kind.columns
        right = expected(kind, tac, columns)
        for name, made in containers.items():
            table = tables[name + mark] = made(columns)
            errors[name + mark] = float(np.abs(tac.posterior(table) - right).max())
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in tables}
    for _ in range(REPEATS):  # in turn: what slows the machine down slows all of them down
        for name, table in tables.items():
            wall, cpu = time.perf_counter(), time.process_time()
            tac.posterior(table)
            spent[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: Timing(*(statistics.median(part) for part in zip(*times, strict=True)), errors[name])
        for name, times in spent.items()
    }


def sections(count: int) -> list[Section]:
    """A table for each kind of column."""
    timings = {}
    for kind in kinds(count):
        timings[kind.title] = measured(kind)
        print(f"{kind.title}: done", flush=True)
    least = min(timing.of_cpu for found in timings.values() for timing in found.values())
    return [section(f"{i}. {count:,} rows of {title}", timings[title], least) for i, title in enumerate(timings, 1)]


def section(title: str, found: Mapping[str, Timing], least: float) -> Section:
    """The containers of one kind, held against the fastest of them and against the fastest of all."""
    made = Section(
        title,
        f"no container takes more than {BAR:g}x the CPU time of the fastest on this page; answers as expected to 1e-12",
        ("container", "seconds", "of CPU", "x fastest here", "x fastest of all", "largest difference", "verdict"),
    )
    here = min(timing.of_cpu for timing in found.values())
    for name, timing in sorted(found.items(), key=lambda item: item[1].of_cpu):
        ratio = Ratio(timing.of_cpu, least)
        verdict = at_most(float(ratio), BAR) if not name.endswith(SCATTERED) else ""
        made.add(
            name, f"{timing.wall:.2f}", f"{timing.of_cpu:.2f}", Ratio(timing.of_cpu, here), ratio,
            f"{timing.error:.0e}", verdict if timing.error <= 1e-12 else MISSED,
        )  # fmt: skip
    return made


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless the number of rows is given."""
    found = sections(int(arguments[0]) if arguments else ROWS)
    print("\n".join(section.text() for section in found))
    print("\n".join(missed(found)))
    if not arguments:
        write(PAGE, "Benchmark: reading frames", INTRO.format(repeats=REPEATS), found)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Intervals of queries that are too wide for exact answers: rows a second, how wide they are, and whether they hold.

`python -m bench interval_rows` writes the page. Parts can be named (`rows`, `refined`, `truth`, `regions`), and then no
page is written.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

import tacit
from bench.tables import Section, at_least, at_most, run_parts
from tacit.base.errors import TooLargeError
from tacit.bounds.querying.bounded_query import BoundedQuery, bounded
from tacit.bounds.window_program import program_for_rows
from tacit.bounds.window_rows import WindowRows
from tacit.query.asking.options import CompileOptions, Limits

PAGE = Path(__file__).parent.parent / "docs" / "bench-intervals.md"
INTRO = """Written by `python -m bench interval_rows`, on a machine of 2 cores that others were using. A query that is
too wide for an exact answer has an interval for each row ([how](howto/too-wide.md)). Every variable may have evidence:
in each row, one in ten is observed, and another one in ten has likelihoods, all drawn uniformly. CPTs are Dirichlet
distributed: with 1, uniformly, neighbours say much about each other, which is hard for intervals; with 5, they are as
in the guide."""
ROWS, AT_ONCE, PER_SECOND, CORES = 10**6, 10**5, 10**5, 2
OBSERVED, SOFT = 0.1, 0.1
REFINED, SECONDS = 12, 2.0  # rows, and seconds for each of them
GRIDS, SMALL, SMALL_ROWS = 8, 6, 4000
MEDIUM, FEW = 14, 50  # a wider grid, and how many of its rows are answered exactly
REGION_ROWS = 1000
SLACK = 1e-13  # what the exact answers themselves are rounded by


@dataclass(frozen=True, eq=False)
class Case:
    """A network, what is asked of it, and what an exact answer takes."""

    name: str
    net: tacit.Network
    query: str
    exact: str

    @property
    def parents(self) -> int:
        return max(len(self.net.parents(name)) for name in self.net.variables)


def grid(size: int, rng: np.random.Generator, alpha: float = 1.0) -> tacit.Network:
    """Binary variables side by side; each has those above and to the left of it as parents."""
    net = tacit.Network(f"grid {size} x {size}, Dirichlet({alpha:g})")
    for i in range(size):
        for j in range(size):
            parents = [f"{a},{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            net.add(f"{i},{j}", parents, cpt=rng.dirichlet([alpha] * 2, (2,) * len(parents)))
    return net


def scattered(size: int, rng: np.random.Generator, alpha: float = 1.0) -> tacit.Network:
    """Binary variables with 1 to 8 parents among the 60 before them."""
    net = tacit.Network(f"up to 8 parents, Dirichlet({alpha:g})")
    for i in range(size):
        before = [f"v{j}" for j in range(max(0, i - 60), i)]
        count = min(len(before), int(rng.choice([1, 2, 2, 3, 3, 4, 8])))
        parents = [str(name) for name in rng.choice(before, count, replace=False)] if count else []
        net.add(f"v{i}", parents, cpt=rng.dirichlet([alpha] * 2, (2,) * count))
    return net


MADE = ((grid, 24, "11,11"), (scattered, 100, "v90"))


@cache
def cases() -> tuple[Case, ...]:
    made = []
    nets = [(make(size, np.random.default_rng(0), alpha), query) for make, size, query in MADE for alpha in (1.0, 5.0)]
    for net, query in nets:
        try:
            exact = f"{tacit.compile(net, query, net.variables).cost().multiply_adds:.1e} multiply-adds"
        except TooLargeError as error:
            exact = f"refused: {str(error).split(': ')[1].split(',')[0]}"
        made.append(Case(str(net.name), net, query, exact))
    return tuple(made)


def evidence(net: tacit.Network, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The likelihood of the first state of each variable, NaN without evidence; observed where it is 0 or 1."""
    columns = {}
    for name in net.variables:
        drawn = rng.random(rows, dtype=np.float32)
        kind = rng.random(rows, dtype=np.float32)
        column = np.where(kind < OBSERVED, drawn < 0.5, drawn)
        columns[name] = np.where(kind < OBSERVED + SOFT, column, np.nan).astype(np.float32)
    return columns


@cache
def query_of(case: Case) -> BoundedQuery:
    """The query as if it were too wide, also where an exact answer takes minutes only."""
    refusal = TooLargeError(case.exact)
    options = CompileOptions(engine="native")
    return bounded(case.net, case.query, case.net.variables, (), options, Limits(), refusal)


def by_rows() -> list[Section]:
    """How fast many rows are answered, and how wide their intervals are."""
    section = Section(
        "1. Many rows",
        f"{PER_SECOND:,} rows a second of {CORES} cores, by processor time, evidence read and after compiling",
        ("network", "variables", "exact", "multiply-adds", "compiled in", "rows", "rows/s", "of two cores",
         "median width",
         "within .1", "within .01", "verdict"),
    )  # fmt: skip
    for case in cases():
        rng, start = np.random.default_rng(1), time.perf_counter()
        tac = query_of(case)
        rows = evidence(case.net, AT_ONCE, rng)
        tac.interval({name: column[:100] for name, column in rows.items()})
        compiled = time.perf_counter() - start
        spent, of_processor, widths = 0.0, 0.0, []
        for _ in range(ROWS // AT_ONCE):
            start, before = time.perf_counter(), time.process_time()
            widths.append(tac.interval(rows).width)
            spent, of_processor = spent + time.perf_counter() - start, of_processor + time.process_time() - before
            rows = {name: np.roll(column, int(rng.integers(AT_ONCE))) for name, column in rows.items()}
        width, speed = np.concatenate(widths), CORES * ROWS / of_processor
        section.add(
            case.name, len(case.net.variables), case.exact, work(tac), f"{compiled:.1f} s", ROWS, int(ROWS / spent),
            int(speed),
            float(np.median(width)), float((width <= 0.1).mean()), float((width <= 0.01).mean()),
            at_least(speed, PER_SECOND),
        )  # fmt: skip
    busy = os.getloadavg()[0]
    section.notes.append(f"{busy:.0f} processes wanted the {CORES} cores: `rows/s` are what was left of them.")
    return [section]


def work(tac: BoundedQuery) -> int:
    """The multiply-adds of a row."""
    (program,) = tac._own._programs.values()
    return program.window.program.cost.multiply_adds


def by_refining() -> list[Section]:
    """How much narrower intervals are with windows that are made for a row."""
    section = Section(
        "2. Windows made for a row", "none", ("network", "rows", "seconds each", "median width", "refined")
    )
    for case in cases():
        tac, rows = query_of(case), evidence(case.net, REFINED, np.random.default_rng(2))
        before, after = tac.interval(rows).width, tac.refine(rows, seconds=SECONDS * REFINED).width
        section.add(case.name, REFINED, SECONDS, float(np.median(before)), float(np.median(after)))
    section.notes.append("`refine` chooses windows by the evidence of the row, and lets them sharpen one another.")
    return [section]


def by_regions() -> list[Section]:
    """What regions beyond a window add."""
    section = Section(
        "4. Regions beyond the window", "none",
        ("network", "states of the boundary", "states of a region", "multiply-adds", "median width"),
    )  # fmt: skip
    for case in cases():
        own, given = query_of(case)._own, evidence(case.net, REGION_ROWS, np.random.default_rng(4))
        columns = query_of(case).read(given).columns
        for states, entries in ((2**12, 1), (2**10, 2**8), (2**12, 2**8)):
            window, around = own.windows[case.query], own.ground.around(case.query)
            program = program_for_rows(around, window, states, entries)
            low, high, _ = WindowRows(own.ground.factors, program, "numpy").bounds(columns, REGION_ROWS)
            width = float(np.median((high - low).max(axis=0)))
            section.add(case.name, states, entries, program.program.cost.multiply_adds, width)
    section.notes.append("A region of one state is none. `tacit` takes the last line of each network.")
    return [section]


def by_truth() -> list[Section]:
    """Whether the exact posterior is inside."""
    section = Section(
        "3. The exact posterior", f"inside every interval, but for {SLACK:g} of its own rounding",
        ("network", "rows", "outside", "median width", "error of the estimate", "verdict"),
    )  # fmt: skip
    nets = [(grid(SMALL, np.random.default_rng(seed)), SMALL_ROWS) for seed in range(GRIDS)]
    outside, widths, errors = 0, [], []
    for net, rows in nets:
        wrong, width, error = beside_truth(net, f"{SMALL // 2},{SMALL // 2}", rows)
        outside, widths, errors = outside + wrong, [*widths, width], [*errors, error]
    section.add(
        f"{GRIDS} grids {SMALL} x {SMALL}", GRIDS * SMALL_ROWS, outside, float(np.median(np.concatenate(widths))),
        float(np.mean(np.concatenate(errors))), at_most(outside, 0),
    )  # fmt: skip
    wrong, width, error = beside_truth(grid(MEDIUM, np.random.default_rng(0)), f"{MEDIUM // 2},{MEDIUM // 2}", FEW)
    section.add(
        f"grid {MEDIUM} x {MEDIUM}", FEW, wrong, float(np.median(width)), float(error.mean()), at_most(wrong, 0)
    )
    return [section]


def beside_truth(net: tacit.Network, query: str, rows: int) -> tuple[int, np.ndarray, np.ndarray]:
    """How many exact posteriors are outside, how wide intervals are, and how far estimates are from the truth."""
    given = evidence(net, rows, np.random.default_rng(3))
    truth = tacit.compile(net, query, net.variables).posterior(given)
    # a few entries of boundaries and regions only: else the window is the whole grid
    limits = Limits(multiply_adds=2**9) if len(net.variables) <= SMALL**2 else Limits()
    tac = bounded(net, query, net.variables, (), CompileOptions(engine="numpy"), limits, TooLargeError(""))
    sure = tac.interval(given)
    outside = (sure.low > truth + SLACK) | (sure.high < truth - SLACK)
    return int(outside.any(axis=1).sum()), sure.width, np.abs(sure.estimate - truth).max(axis=1)


PARTS = {"rows": by_rows, "refined": by_refining, "truth": by_truth, "regions": by_regions}


def main(arguments: Sequence[str]) -> None:
    run_parts(arguments, PARTS, PAGE, "Intervals where networks are too wide", INTRO)

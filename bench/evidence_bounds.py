"""Certain bounds of partition functions: parameters trained once against those tuned for each row.

`python -m bench evidence_bounds --set FOLDER` measures all and writes the page; the folder is that of `bench uai`.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

import tacit
from bench.sides import ROOT
from bench.tables import Section, write
from bench.uai import SOURCE, VARIABLE
from tacit.base.floats import Floats
from tacit.bounds.factor_list import Factor, FactorList
from tacit.bounds.minibuckets.minibuckets import MiniBuckets
from tacit.bounds.minibuckets.plan import plan_of
from tacit.bounds.minibuckets.training import trained

PAGE = ROOT / "docs" / "bench-evidence-bounds.md"
SIDES = (12, 16, 24)
NETWORKS = (
    *(
        "DBN_13",
        "CSP_13",
        "Grids_14",
        "Grids_16",
        "ObjectDetection_30",
        "Pedigree_13",
        "Promedus_14",
        "Segmentation_15",
    ),
    *("linkage_14", "linkage_23"),
)
SIZE, UAI_SIZE = 2**8, 2**12  # entries of a table
SECONDS, ROW_SECONDS = 10.0, 10.0  # of training: once, and for each row
SAMPLE, ROWS, TUNED = 16, 64, 2
STEPS = 10_000  # the time ends training
OBSERVED = 0.2  # of the variables
INTRO = f"""Written by `python -m bench evidence_bounds`, on a machine of 2 cores that others used, too: take the rates
as orders of magnitude. All figures are in nats: the gap between a certain upper and a certain lower bound of the
logarithm of the partition function with a row's evidence. A fifth of the variables is observed at random, row by row,
with a state (hard) or with random likelihoods (soft).

*Untrained*: equal weights, no shifts. *Trained*: weights and shifts trained once, for {SECONDS:g} s, on {SAMPLE} other
rows. *+ steps*: the same, and for each row three steps of moment matching of the upper bound and of coordinate ascent
of the lower one: what tacit does. *Tuned*: all parameters trained for {ROW_SECONDS:g} s on that row alone, and ten
steps, for {TUNED} rows. Figures are medians over {ROWS} rows; those of *first* are over the rows that were tuned.
*Kept* is the share of what tuning gains over the untrained bounds of these rows that training once, and steps, gain."""


@dataclass(frozen=True)
class Gaps:
    """The gaps of some rows under several settings, and rows per second with what tacit does."""

    untrained: Floats
    trained: Floats
    steps: Floats
    tuned: Floats
    rate: float
    alone: float

    @property
    def kept(self) -> float:
        first = slice(len(self.tuned))
        gain = np.median(self.untrained[first]) - np.median(self.tuned)
        return float((np.median(self.untrained[first]) - np.median(self.steps[first])) / gain)


def grid(side: int, seed: int = 0) -> FactorList:
    """A grid of binary variables: couplings are normal with deviation 1, fields with 0.3."""
    rng, factors = np.random.default_rng(seed), list[Factor]()

    def add(scope: tuple[str, ...], exponents: Floats) -> None:
        table = np.exp(exponents)
        factors.append(Factor(scope, table, table))

    for i in range(side):
        for j in range(side):
            add((f"{i},{j}",), 0.3 * rng.normal() * np.array([1.0, -1.0]))
            for other in [(i + 1, j)] * (i + 1 < side) + [(i, j + 1)] * (j + 1 < side):
                add((f"{i},{j}", f"{other[0]},{other[1]}"), rng.normal() * np.array([[1.0, -1.0], [-1.0, 1.0]]))
    cards = {f"{i},{j}": 2 for i in range(side) for j in range(side)}
    return FactorList(cards, dict.fromkeys(cards, (0, 1)), tuple(factors), tuple(cards))


def network(path: Path) -> FactorList:
    """The factors of a file of the UAI competition, cut to its evidence."""
    graph, numbers = tacit.read(path), [int(word) for word in Path(f"{path}.evid").read_text().split()]
    assert isinstance(graph, tacit.FactorGraph)
    names = list(graph.variables)
    pairs = numbers[1:] if len(numbers) % 2 else numbers[2:]
    given = {names[v]: state for v, state in zip(pairs[::2], pairs[1::2], strict=True)}
    cards = {name: len(graph.states(name)) for name in names if name not in given}
    factors = []
    for factor in graph.factors:
        table = factor.table[tuple(given.get(name, slice(None)) for name in factor.variables)]
        factors.append(Factor(tuple(name for name in factor.variables if name in cards), table, table))
    return FactorList(cards, {n: tuple(range(card)) for n, card in cards.items()}, tuple(factors), tuple(cards))


def evidence(factors: FactorList, rows: int, seed: int, hard: bool) -> dict[str, Floats]:
    """Likelihoods of random rows."""
    rng, tables = np.random.default_rng(seed), {}
    for name, card in factors.cards.items():
        table = np.eye(card)[rng.integers(card, size=rows)] if hard else rng.random((rows, card))
        tables[name] = np.where((rng.random(rows) < OBSERVED)[:, None], table, 1.0)
    return tables


def one(tables: Mapping[str, Floats], row: int) -> dict[str, Floats]:
    """One row of evidence."""
    return {name: table[row : row + 1] for name, table in tables.items()}


def gap(bounds: MiniBuckets, tables: Mapping[str, Floats]) -> Floats:
    """How far the ends are apart; infinite where nothing is known."""
    low, high = bounds.log_bounds(tables)
    return np.where(low == -np.inf, np.inf, high - np.where(low == -np.inf, 0.0, low))


def gaps(factors: FactorList, size: int, hard: bool) -> Gaps:
    """What training once, and for each row, does for the rows of one network."""
    first = MiniBuckets.of(factors, size)
    once = trained(first, evidence(factors, SAMPLE, 1, hard), STEPS, SECONDS)
    rows = evidence(factors, ROWS, 2, hard)
    tuned = []
    for row in range(TUNED):
        own = trained(once, one(rows, row), STEPS, ROW_SECONDS)
        tuned.append(gap(replace(own, matches=10, sweeps=10), one(rows, row))[0])
    start = time.perf_counter()
    steps = gap(once, rows)
    between = time.perf_counter()
    without = gap(replace(once, matches=0, sweeps=0), rows)
    end = time.perf_counter()
    untrained = gap(replace(first, matches=0, sweeps=0), rows)
    return Gaps(untrained, without, steps, np.array(tuned), ROWS / (between - start), ROWS / (end - between))


def grids(sides: Sequence[int]) -> Section:
    """Grids with rows of evidence."""
    columns = ("untrained", "trained", "+ steps", "+ steps, first", "tuned, first", "kept")
    section = Section(
        f"1. Grids, tables of at most {SIZE} entries",
        "none",
        ["side", "width", "evidence", *columns, "rows/s", "rows/s without steps"],
    )
    for side in sides:
        factors = grid(side)
        for hard in (False, True):
            own = gaps(factors, SIZE, hard)
            medians = [np.median(x) for x in (own.untrained, own.trained, own.steps, own.steps[:TUNED], own.tuned)]
            cells = [f"{median:.1f}" for median in medians]
            kind = "hard" if hard else "soft"
            section.add(side, width(factors), kind, *cells, f"{own.kept:.0%}", f"{own.rate:.0f}", f"{own.alone:.0f}")
            print(section.rows[-1], flush=True)
    return section


def width(factors: FactorList) -> int:
    """The width of min-fill, in bits: the logarithm of the largest table."""
    plan = plan_of(factors.cards, [factor.scope for factor in factors.factors], np.inf)
    return round(math.log2(plan.largest))


def competition(folder: Path, names: Sequence[str]) -> Section:
    """Networks of the competition, with their own evidence."""
    columns = ("low: mini-buckets", "low", "high", "gap", "seconds")
    section = Section(
        f"2. Networks of the UAI competition, tables of at most {UAI_SIZE} entries",
        "none",
        ["network", "variables", "bits", "gap before training", *columns],
        notes=[
            f"One row, the evidence of the file; training takes {SECONDS:g} s. *Bits*: the logarithm of the largest"
            " table of an exact elimination in the order of min-fill. *Low: mini-buckets*: the lower bound without a"
            " cutset. Columns but the gap before training are after it. *Seconds*: of one call with the trained bounds."
        ],
    )
    for name in names:
        factors = network(folder / name / f"{name}.uai")
        first = MiniBuckets.of(factors, UAI_SIZE)
        after = trained(first, {}, STEPS, SECONDS)
        start = time.perf_counter()
        low, high = after.log_bounds({})
        seconds = time.perf_counter() - start
        alone, _ = replace(after, cutset=replace(after.cutset, cards={})).log_bounds({})
        cells = [alone[0], low[0], high[0], high[0] - low[0]]
        shown = [f"{cell:.2f}" for cell in (gap(first, {})[0], *cells)]
        section.add(name, len(factors.cards), width(factors), *shown, f"{seconds:.2f}")
        print(section.rows[-1], flush=True)
    return section


def main(arguments: Sequence[str] = ()) -> None:
    """Measure, and write the page if nothing was left out."""
    parser = argparse.ArgumentParser("python -m bench evidence_bounds")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--set", default=os.environ.get(VARIABLE), metavar="FOLDER")
    parser.add_argument("--sides", nargs="*", type=int, default=list(SIDES))
    options = parser.parse_args(list(arguments))
    if options.set is None:
        raise SystemExit(SOURCE)
    sections = [grids(options.sides), competition(Path(options.set), options.names or NETWORKS)]
    for section in sections:
        print(section.text(), flush=True)
    if not options.names and options.sides == list(SIDES):
        write(PAGE, "Benchmark: bounds of partition functions", INTRO, sections)

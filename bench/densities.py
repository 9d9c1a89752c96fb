"""Observed numbers of continuous leaves, beside likelihoods of as many discrete ones.

Ten leaves are added to `alarm`, each below one variable: Gaussians in one network, and in the other discrete ones with
as many states as the variable above. `python -m bench densities 100000` takes fewer rows and writes no page.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from bench.networks import network, widest_root
from bench.tables import Ratio, Section, at_least, at_most, missed, write

ROWS, REPEATS, LEAVES = 1_000_000, 7, 10
BAR, COPYING = 1.3, 0.5
PAGE = Path(__file__).parent.parent / "docs" / "bench-densities.md"
INTRO = (
    "Written by `python -m bench densities` on a machine of 2 cores that others were using: {leaves} leaves are added "
    "to `alarm`, each below one variable, Gaussians in one network, and in the other discrete ones with as many states "
    "as the variable above. Medians of {repeats} runs, in turn. Ratios are those of CPU time, since the others on the "
    "machine slow some runs down more than others."
)

Rows = Mapping[str, np.ndarray[Any, Any]]


def with_leaves(count: int) -> tuple[tuple[tacit.Network, Rows], tuple[tacit.Network, Rows]]:
    """The network with continuous leaves and the one with discrete leaves, each with evidence on them."""
    rng, continuous = np.random.default_rng(0), network("alarm").copy()
    discrete, above = continuous.copy(), rng.permutation(continuous.variables)[:LEAVES]
    numbers, likelihoods = {}, {}
    for parent in above:
        name, states = f"below {parent}", continuous.variable(parent).card
        places = np.arange(states)
        continuous.add(name, [parent], cpt=tacit.Gaussian(mean=3.0 * places, sd=1.0 + 0.1 * places))
        discrete.add(name, [parent], states, rng.dirichlet(np.ones(states), size=states))
        numbers[name], likelihoods[name] = rng.normal(2.0, 2.0, count), rng.random((count, states))
    return (continuous, numbers), (discrete, likelihoods)


def timed(works: Mapping[str, Callable[[], Any]]) -> dict[str, tuple[float, float]]:
    """The seconds and the CPU time that each takes, medians of runs in turn."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(REPEATS + 1):
        for name, work in works.items():
            wall, cpu = time.perf_counter(), time.process_time()
            work()
            if turn:  # the first one compiles
                spent[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: (statistics.median(wall for wall, _ in times), statistics.median(cpu for _, cpu in times))
        for name, times in spent.items()
    }


def sections(count: int) -> list[Section]:
    """Answers, and what of them is reading."""
    (continuous, numbers), (discrete, likelihoods) = with_leaves(count)
    query = widest_root(network("alarm"))
    dense = tacit.compile(continuous, query, evidence=list(numbers))
    soft = tacit.compile(discrete, query, evidence=list(likelihoods))
    answers = Section(
        f"1. Posteriors of {count:,} rows",
        f"numbers take at most {BAR:g}x the CPU time of likelihoods",
        ("evidence", "seconds", "of CPU", "x likelihoods", "verdict"),
    )
    numbers_of, likelihoods_of = f"{LEAVES} numbers", f"likelihoods of {LEAVES} discrete leaves"
    asked = timed({numbers_of: lambda: dense.posterior(numbers), likelihoods_of: lambda: soft.posterior(likelihoods)})
    for name, (wall, cpu) in asked.items():
        ratio = Ratio(cpu, asked[likelihoods_of][1])
        answers.add(name, f"{wall:.3f}", f"{cpu:.3f}", ratio, at_most(float(ratio), BAR) if name == numbers_of else "")
    reading = Section(
        f"2. Reading {LEAVES} columns of {count:,} numbers",
        f"at {COPYING:.0%} of the speed of copying them, or faster",
        ("work", "seconds", "of CPU", "speed of copying", "verdict"),
    )
    copy, read = "copy", "`tac.read`, a checked copy"
    works = timed({copy: lambda: [own.copy() for own in numbers.values()], read: lambda: dense.read(numbers)})
    for name, (wall, cpu) in works.items():
        speed = works[copy][1] / cpu
        verdict = at_least(speed, COPYING) if name == read else ""
        reading.add(name, f"{wall:.3f}", f"{cpu:.3f}", f"{speed:.0%}", verdict)
    return [answers, reading]


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless the number of rows is given."""
    found = sections(int(arguments[0]) if arguments else ROWS)
    print("\n".join(section.text() for section in found))
    print("\n".join(missed(found)))
    if not arguments:
        write(PAGE, "Benchmark: numbers below states", INTRO.format(leaves=LEAVES, repeats=REPEATS), found)


if __name__ == "__main__":
    main(sys.argv[1:])

"""Tables that rows bring along, beside the same query without them and networks set one after the other.

`alarm`, likelihoods on all leaves. `python -m bench row_tables 10000` takes fewer rows and writes no page.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import tacit
from bench.networks import network
from bench.tables import Ratio, Section, at_least, missed, write
from tacit.torch import TACModule

QUERY, NODES = "HYPOVOLEMIA", ("HYPOVOLEMIA", "CVP", "VENTLUNG", "CATECHOL")
ROWS, LOOPED, REPEATS = 100_000, 50, 9
TRAINED = 10_000  # rows of a step
BAR = 100
PAGE = Path(__file__).parent.parent / "docs" / "bench-row-tables.md"
INTRO = (
    "Written by `python -m bench row_tables` on a machine of 2 cores that others were using: posteriors of "
    f"{QUERY} in `alarm`, with likelihoods on all leaves, different in every row, where each row also brings the table "
    f"of a node along. The loop gives each row's table to the query, by `tac.set_parameters`, and asks about it. "
    f"Medians of {REPEATS} runs, in turn."
)
Evidence = dict[str, np.ndarray[Any, Any]]


def evidence(net: tacit.Network, count: int) -> Evidence:
    """Likelihoods on all leaves."""
    rng, inner = np.random.default_rng(0), {parent for name in net for parent in net.parents(name)}
    return {name: rng.random((count, len(net.states(name)))) + 0.01 for name in net if name not in inner}


def tables(net: tacit.Network, node: str, count: int) -> np.ndarray[Any, Any]:
    """A table of a node for every row."""
    shape = net.table(node).shape
    return np.random.default_rng(1).dirichlet(np.ones(shape[-1]), (count, *shape[:-1]))


def looped(tac: tacit.TAC, rows: Evidence, node: str, own: np.ndarray[Any, Any]) -> None:
    """The same, network by network."""
    for i in range(LOOPED):
        tac.set_parameters(tac.network.with_cpts({node: own[i]}))
        tac.posterior({name: column[i : i + 1] for name, column in rows.items()})


def step(module: TACModule, rows: dict[str, torch.Tensor]) -> None:
    """Posteriors and their gradients by all likelihoods and tables."""
    leaves = {name: column.requires_grad_() for name, column in rows.items()}
    torch.autograd.grad(module(leaves)[:, 0].sum(), list(leaves.values()))


def seconds(works: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Medians of runs in turn."""
    spent: dict[str, list[float]] = {name: [] for name in works}
    for turn in range(REPEATS + 1):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            if turn:  # the first one compiles
                spent[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in spent.items()}


def sections(count: int) -> list[Section]:
    """Answers, and steps of training."""
    net = network("alarm")
    rows = evidence(net, count)
    plain = tacit.compile(net, QUERY, list(rows))
    answers = Section(
        f"1. Posteriors of {count:,} rows",
        f"at least {BAR} times as fast as the loop",
        ("table of", "its numbers", "microseconds per row", "without tables", "loop", "gain", "verdict"),
    )
    learning = Section(
        f"2. Posteriors of {min(count, TRAINED):,} rows, and gradients by all likelihoods and all numbers of tables",
        "none was set",
        ("table of", "its numbers", "microseconds per row", "without tables"),
    )
    fewer = {name: torch.tensor(column[:TRAINED]) for name, column in rows.items()}
    modules = TACModule(plain)
    for node in NODES:
        own = tables(net, node, count)
        tac, column = tacit.compile(net, QUERY, list(rows), per_row=[node]), f"{node}.table"
        took = seconds({
            "rows": partial(tac.posterior, {**rows, column: own}),
            "plain": partial(plain.posterior, rows),
            "loop": partial(looped, tacit.compile(net, QUERY, list(rows)), rows, node, own),
        })  # fmt: skip
        each, without = (took[name] / count * 1e6 for name in ("rows", "plain"))
        one_by_one = took["loop"] / LOOPED * 1e6
        gain = Ratio(one_by_one, each)
        cells = f"{each:.3f}", f"{without:.3f}", f"{one_by_one:,.0f}", gain, at_least(float(gain), BAR)
        answers.add(node, own[0].size, *cells)
        given = {**fewer, column: torch.tensor(own[:TRAINED])}
        steps = seconds({"rows": partial(step, TACModule(tac), given), "plain": partial(step, modules, fewer)})
        each, without = (steps[name] / len(given[column]) * 1e6 for name in ("rows", "plain"))
        learning.add(node, own[0].size, f"{each:.3f}", f"{without:.3f}")
    return [answers, learning]


def main(arguments: list[str]) -> None:
    """Measure and print; write the page unless the number of rows is given."""
    found = sections(int(arguments[0]) if arguments else ROWS)
    print("\n".join(section.text() for section in found))
    print("\n".join(missed(found)))
    if not arguments:
        write(PAGE, "Benchmark: tables of rows", INTRO, found)


if __name__ == "__main__":
    main(sys.argv[1:])

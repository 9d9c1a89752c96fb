"""What the experiments came to, as files: a page, pictures of the paper's two tables, and lists of numbers."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paper.experiments import DAGS, Result, Task
from paper.functions import FUNCTIONS, examples
from paper.page import Results, ac_of, label, page, scientific
from paper.surfaces import Cell, table_png
from tacit.base.atomic import write_atomically

README_FUNCTIONS = ("f1", "g2")


def write(found: Sequence[Result], folder: Path) -> Path:
    """Write everything into a folder; the path of the page."""
    results = {result.task: result for result in found}
    write_csv(folder / "results.csv", RESULT_COLUMNS, map(result_line, found))
    write_csv(folder / "thresholds.csv", THRESHOLD_COLUMNS, threshold_lines(found))
    write_pictures(results, folder)
    text = page(results)
    path = folder / "index.html"
    write_atomically(path, lambda file: file.write(text))
    return path


# numbers --------------------------------------------------------------------------------------------------

RESULT_COLUMNS = ("function", "dag", "tests", "kind", "mse", "hard_mse", "numbers", "optimizer", "seconds")
THRESHOLD_COLUMNS = ("function", "dag", "tests", "kind", "node", "parent_state", "threshold")


def result_line(result: Result) -> tuple[Any, ...]:
    """A fit as a line of a table."""
    task = result.task
    what = (task.function, task.dag, task.tests, task.kind)
    errors = (f"{result.mse:.6e}", f"{result.hard_mse:.6e}")
    return (*what, *errors, result.numbers, result.optimizer, f"{result.seconds:.2f}")


def threshold_lines(found: Iterable[Result]) -> Iterable[tuple[Any, ...]]:
    """Every learned threshold as a line of a table; parent states are counted, the last parent fastest."""
    for result in found:
        task = result.task
        for node, values in result.thresholds.items():
            for state, value in enumerate(values):
                yield task.function, task.dag, task.tests, task.kind, node, state, f"{value:.6f}"


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[Sequence[Any]]) -> None:
    """A table as a CSV file."""
    write_atomically(path, lambda file: csv.writer(file, lineterminator="\n").writerows([columns, *lines]))


# pictures -------------------------------------------------------------------------------------------------


def write_pictures(results: Results, folder: Path) -> None:
    """The paper's two tables, and the README's picture."""
    named = {task.function for task in results}
    first = {f: first_row(results, f) for f in FUNCTIONS if f in named and f.startswith("f")}
    if first:
        table_png(folder / "table1.png", ["function", *(f"TAC, {label(dag)}" for dag in DAGS), "AC"], first)
    second = {f"{f}\n{label(dag)}": second_row(results, f, dag) for f in ("g1", "g2") if f in named for dag in DAGS}
    if second:
        counts = len(next(iter(second.values()))) - 1
        table_png(folder / "table2.png", ["function", *(f"{4 * 2**i} tests" for i in range(counts))], second)
    shown = {f: best_row(results, f) for f in README_FUNCTIONS if f in named}
    if shown:
        table_png(folder / "learning.png", ["function", "TAC with 4 tests", "AC"], shown)


def first_row(results: Results, function: str) -> list[Cell]:
    """A function, its TACs and its AC."""
    fitted = [results[t] for dag in DAGS if (t := Task(function, dag)) in results]
    return [_target(function), *map(_cell, [*fitted, ac_of(results, function)])]


def second_row(results: Results, function: str, dag: str) -> list[Cell]:
    """A function and its TACs with more and more tests."""
    fitted = [results[t] for n in (4, 8, 16) if (t := Task(function, dag, n)) in results]
    return [_target(function), *map(_cell, fitted)]


def best_row(results: Results, function: str) -> list[Cell]:
    """A function, the best TAC of the smallest networks, and the AC."""
    fitted = [results[t] for dag in DAGS if (t := Task(function, dag)) in results]
    return [_target(function), _cell(min(fitted, key=lambda r: r.mse)), _cell(ac_of(results, function))]


def _target(function: str) -> Cell:
    return Cell(examples(function)[1], "")


def _cell(result: Result) -> Cell:
    return Cell(np.array(result.surface), f"MSE {scientific(result.mse)}")

"""Generated code and reading at memory speed: what they bring, each figure a ratio within one run.

`python -m bench native` measures everything and writes the page; `python -m bench native kernel start` measures some
parts. `--against COMMIT` compares with another commit, `--rows 10000` takes no more rows than that; neither writes.
"""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.native_kernel import NARROW, against_interpreter, ns, share_of_machine
from bench.native_start import first_answers
from bench.sides import Measured, Sides
from bench.tables import MISSED, OK, Section, run_parts
from bench.worker import CONTAINERS

PAGE = Path(__file__).parent.parent / "docs" / "bench-native.md"
BEFORE = "99900dc"  # the last commit without any of it
ROWS, KERNEL_ROWS, STEP_ROWS, GRADIENT_ROWS = 1_000_000, 100_000, 1024, 10_000
NETWORKS = ("child", "alarm", "win95pts", "hepar2")
SOFT, HARD, LEARNING = 2.5, 5.0, 2.0  # times as fast as before
INTRO = (
    "Written by `python -m bench native`, on a machine of 2 cores that others may have used. *Before* is commit "
    "`{before}`. All figures are medians of runs in which the sides take turns, after some runs to warm up; of a gain, "
    "the brackets say between which values half of the turns lie. The query is the root with the most descendants; all "
    "leaves are observed. Answers must agree to 1e-12 with those of before, and in float32 to 1e-5 with those in "
    "float64; gradients are compared in parts of their largest entry. Where evidence is soft, it is given to float32 "
    "in float32."
)
HEADERS = (
    "before, ns", "now, ns", "gain", "float32, ns", "gain in float32", "difference", "difference, float32", "verdict",
    "verdict, float32",
)  # fmt: skip


def cells(measured: Measured, rows: int, bar: float) -> list[Any]:
    """What a case came to, per row, and whether it reaches its bars."""
    figures = [ns([turn / rows for turn in own]) for own in (measured.before, measured.now, measured.narrow)]
    gain, narrow = measured.gain, measured.narrow_gain
    return [
        *figures[:2], gain, figures[2], narrow, f"{measured.error:.0e}", f"{measured.narrow_error:.0e}",
        OK if gain.ratio >= bar and measured.agrees else MISSED,
        OK if narrow.ratio >= NARROW and measured.narrow_agrees else MISSED,
    ]  # fmt: skip


def soft_columns(sides: Sides, rows: int) -> list[Section]:
    """From arrays of likelihoods to posteriors."""
    section = Section(
        f"2. `tac.posterior`, likelihoods in NumPy arrays: {rows:,} rows",
        f"{SOFT:g}x as fast as before; in float32, {NARROW:g}x as fast again",
        ("network", *HEADERS),
    )
    for name in NETWORKS:
        section.add(name, *cells(sides.measure("soft", name=name, rows=rows), rows, SOFT))
    return [section]


def hard_columns(sides: Sides, rows: int) -> list[Section]:
    """From frames of states to posteriors."""
    section = Section(
        f"3. `tac.posterior`, observed states in frames: {rows:,} rows of alarm",
        f"{HARD:g}x as fast as before; in float32, {NARROW:g}x as fast again",
        ("columns", "declared in", *HEADERS),
    )
    for container in CONTAINERS:
        for role in ("evidence", "hard"):
            found = sides.measure("hard", name="alarm", rows=rows, container=container, role=role)
            section.add(container, role, *cells(found, rows, HARD))
    return [section]


def learning(sides: Sides, rows: int) -> list[Section]:
    """Losses with their gradients."""
    section = Section(
        "5. Learning", f"{LEARNING:g}x as fast as before; in float32, {NARROW:g}x as fast again", ("what", *HEADERS)
    )
    few, many = min(rows, STEP_ROWS), min(rows, GRADIENT_ROWS)
    step = sides.measure("step", repeats=20, rows=few)
    section.add(f"one step, a layer of 4 tests, {few:,} rows", *cells(step, few, LEARNING))
    gradients = sides.measure("gradients", repeats=5, name="alarm", rows=many)
    section.add(f"alarm, gradients by all tables, {many:,} rows", *cells(gradients, many, LEARNING))
    section.notes.append(
        "Times are per row. A step is the loss, its gradient and an update by Adam, as on the page about learning; the "
        "other is the loss and its gradient."
    )
    return [section]


def parts(sides: Sides, rows: int) -> Mapping[str, Callable[[], list[Section]]]:
    """All sections by their names."""
    return {
        "kernel": lambda: against_interpreter(min(rows, KERNEL_ROWS)),
        "posterior": lambda: soft_columns(sides, rows),
        "frames": lambda: hard_columns(sides, rows),
        "machine": lambda: share_of_machine(rows),
        "learning": lambda: learning(sides, rows),
        "start": lambda: first_answers(sides),
    }


def main(arguments: list[str]) -> None:
    """Measure and print; write the page when everything was measured as it should be."""
    parser = ArgumentParser(prog="python -m bench native")
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--against", default=BEFORE, metavar="COMMIT")
    parser.add_argument("--rows", type=int, default=ROWS)
    given = parser.parse_args(arguments)
    with ExitStack() as stack:
        found = parts(Sides(given.against, stack), given.rows)
        names = given.parts or (list(found) if arguments else [])
        run_parts(names, found, PAGE, "Generated code: measured", INTRO.format(before=BEFORE))

"""Sections of a benchmark: one table each, printed as text and written as markdown."""

import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

OK, MISSED = "ok", "MISSED"
FEW_CELLS = 6  # that a line of text takes
TELLING = ("declared", "gain", "of ", "verdict")  # headers of what a missed bar is about
T = TypeVar("T")


@dataclass
class Section:
    """A table with a title, what is demanded of the figures, and remarks."""

    title: str
    bar: str
    headers: Sequence[str]
    rows: list[list[str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: Any) -> None:
        """One row; numbers are written in a readable way."""
        self.rows.append([show(cell) for cell in cells])

    @property
    def missed(self) -> list[str]:
        """The rows that miss a bar, as text."""
        return [self._in_words(row) for row in self.rows if MISSED in row]

    def _in_words(self, row: Sequence[str]) -> str:
        cells = [(h, cell) for h, cell in zip(self.headers, row, strict=True) if cell and h != "verdict"]
        if len(cells) > FEW_CELLS:  # what is in the row, and what it came to: the table has the rest
            cells = [(h, cell) for h, cell in cells if h == self.headers[0] or h.startswith(TELLING)]
        return ", ".join(f"{h} {cell}" for h, cell in cells)

    def text(self) -> str:
        """For a terminal."""
        lines = ["  ".join(cells).rstrip() for cells in self._aligned("-")]
        return "\n".join([f"== {self.title}", f"   bar: {self.bar}", "", *lines, "", *self.notes, ""])

    def markdown(self) -> str:
        """For the documentation."""
        lines = [f"| {' | '.join(cells)} |" for cells in self._aligned(":")]
        notes = [line for note in self.notes for line in (note, "")]
        return "\n".join([f"## {self.title}", "", f"Bar: {self.bar}.", "", *lines, "", *notes])

    def _aligned(self, end_of_rule: str) -> list[list[str]]:
        """Headers, a rule and rows, all cells of a column with the same width; columns of numbers to the right."""
        columns = []
        for header, *cells in zip(self.headers, *self.rows, strict=True):
            width = max(3, len(header), *map(len, cells))
            if any(cell[:1].isdigit() for cell in cells):
                rule = "-" * (width - 1) + end_of_rule
                columns.append([cell.rjust(width) for cell in (header, rule, *cells)])
            else:
                columns.append([cell.ljust(width) for cell in (header, "-" * width, *cells)])
        return [list(row) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Ratio:
    """How many times one figure goes into another."""

    of: float
    to: float

    def __float__(self) -> float:
        return self.of / self.to if self.to else float("inf")

    def __str__(self) -> str:
        value = float(self)
        return f"{value:,.0f}x" if value >= 100 else f"{value:.1f}x" if value >= 10 else f"{value:.2f}x"


@dataclass(frozen=True)
class Seconds:
    """A time: the median of some runs, and the fastest."""

    median: float
    fastest: float

    def __str__(self) -> str:
        return f"{self.median:.3f} s" if self.median < 10 else f"{self.median:.1f} s"


def show(cell: Any) -> str:
    """A cell of a table."""
    if isinstance(cell, int):
        return f"{cell:,}"
    return f"{cell:.2g}" if isinstance(cell, float) else str(cell)


def at_most(value: float, limit: float) -> str:
    """Whether a figure keeps to its bar."""
    return OK if value <= limit else MISSED


def at_least(value: float, limit: float) -> str:
    """Whether a figure reaches its bar."""
    return OK if value >= limit else MISSED


def timed(run: Callable[[], T], repeats: int = 3) -> tuple[Seconds, T]:
    """The time of a function over some runs, and what it returned last."""
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = run()
        spent.append(time.perf_counter() - start)
    return Seconds(statistics.median(spent), min(spent)), result


def missed(sections: Sequence[Section]) -> list[str]:
    """The rows that miss a bar, as lines."""
    rows = [f"- Section {s.title.split('.')[0]}: {row}." for s in sections for row in s.missed]
    return ["Bars that are missed:", "", *rows] if rows else ["All bars are met."]


def run_parts(
    arguments: Sequence[str], parts: Mapping[str, Callable[[], list[Section]]], path: Path, title: str, intro: str
) -> None:
    """Measure the parts that are named, or all, and print them; write the page when all were measured."""
    unknown = [name for name in arguments if name not in parts]
    if unknown:
        sys.exit(f"unknown part {unknown[0]!r}, expected some of {', '.join(parts)}")
    sections = []
    for name in arguments or parts:
        for section in parts[name]():
            print(section.text(), flush=True)
            sections.append(section)
    if not arguments:
        write(path, title, intro, sections)


def write(path: Path, title: str, intro: str, sections: Sequence[Section]) -> None:
    """A page of documentation with all sections, those that miss a bar listed first."""
    parts = [f"# {title}", "", intro, "", *missed(sections), "", *(s.markdown() for s in sections)]
    path.write_text("\n".join(parts).rstrip() + "\n", encoding="utf-8")

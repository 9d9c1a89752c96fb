"""What goes to the terminal: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any


def note(text: str) -> None:
    """A line beside the results."""
    print(f"tacit: {text}", file=sys.stderr)


def show_json(data: Any) -> None:
    """A result for scripts; labels become the keys of objects as text."""
    print(json.dumps(data, indent=2, ensure_ascii=False, allow_nan=False))


def heading(text: str) -> None:
    """A line in bold, where the terminal can."""
    from rich.console import Console

    Console(highlight=False, markup=False, soft_wrap=True).print(text, style="bold")


def asked(query: str, evidence: Sequence[str]) -> str:
    """A query in words."""
    return f"{query} given {', '.join(evidence)}" if evidence else query


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Rows of cells as lines, every column as wide as it needs; `right` are those set to the right.

    >>> print(aligned([("rows", "seconds"), ("1,000", "2")], right=[0, 1]))
     rows  seconds
    1,000        2
    """
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if c in right else cell.ljust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def together(names: Sequence[str]) -> str:
    """Several names in words.

    >>> together(["A", "B", "C"])
    'A, B and C'
    """
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def bar(share: float, width: int = 30) -> str:
    """A share as a bar of text."""
    return "█" * round(width * share)

"""Output to the terminal: results to standard output, everything else to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from tacit.base.grid import Grid


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


def aligned(rows: Sequence[Sequence[str]], stubs: int | None = None) -> str:
    """Rows of cells as lines: the first `stubs` of each, or all, set to the left, numbers after them to the right."""
    return str(Grid((), rows, len(rows[0]) if stubs is None else stubs))


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

"""Tables for people: cells under headings, as aligned text and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tacit.base import html

Cells = Sequence[str]
GAP = "..."


@dataclass(frozen=True)
class Grid:
    """Lines of headings and of cells; the first `stubs` of each line are set to the left, all others to the right.

    >>> print(Grid([("A", "lo", "hi")], [("true", "0.25", "0.75"), ("false", "0.5", "0.5")], title="P(C | A)"))
    P(C | A)
    A        lo    hi
    true   0.25  0.75
    false   0.5   0.5
    """

    head: Sequence[Cells]
    body: Sequence[Cells]
    stubs: int = 1
    title: str = ""
    note: str = ""

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.head, *self.body, strict=True)]
        lines = ["  ".join(map(self._set, range(len(row)), row, widths)).rstrip() for row in (*self.head, *self.body)]
        return "\n".join([self.title] * bool(self.title) + lines + [self.note] * bool(self.note))

    def _set(self, place: int, cell: str, width: int) -> str:
        return cell.ljust(width) if place < self.stubs else cell.rjust(width)

    def html(self) -> str:
        """HTML for a notebook."""
        return html.grid(self.head, self.body, self.stubs, self.title, [self.note] * bool(self.note))


def ends(count: int, most: int) -> list[int | None]:
    """The places of all of `count` things; of too many, the first and last ones, and None for those between.

    >>> ends(3, most=4), ends(9, most=4)
    ([0, 1, 2], [0, 1, None, 7, 8])
    """
    if count <= most:
        return list(range(count))
    return [*range(most - most // 2), None, *range(count - most // 2, count)]


def probability(number: float) -> str:
    """A probability of any size, in few characters.

    >>> probability(0.25), probability(3e-9), probability(0.0)
    ('0.250000', '3.00e-09', '0.000000')
    """
    return f"{number:.2e}" if 0 < number < 1e-4 else f"{number:.6f}"


def row_name(index: Any, row: int | None) -> str:
    """The index of a row in its frame, or its number."""
    if row is None:
        return GAP
    name = row if index is None else index[row]
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)

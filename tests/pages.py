"""The code in pages of the documentation, and what it prints.

A printing line ends in a comment with what it prints: `print(1 + 1)  # 2`. What takes several lines is in a block of
text that follows.
"""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n+^```text\n(.*?)^```$)?", flags=re.MULTILINE | re.DOTALL)
PRINTED = re.compile(r"^print\(.*\)  # (.+)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """Code, the number of lines above it, and the lines that it prints."""

    code: str
    above: int
    printed: list[str]


def blocks(page: str) -> Iterator[Block]:
    """The blocks of Python of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        code, printed = found.groups()
        expected = PRINTED.findall(code) if printed is None else printed.splitlines()
        assert printed is not None or len(expected) == code.count("print("), "every print shows its output"
        yield Block(code, text[: found.start(1)].count("\n"), expected)


def listed() -> list[str]:
    """The pages in the navigation, in order."""
    nav = tomllib.loads((ROOT.parent / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    return list(_pages(nav))


def _pages(entry: Any) -> Iterator[str]:
    """The pages of an entry: a page, a list of entries, or a title and an entry."""
    if isinstance(entry, str):
        yield entry
    else:
        for below in entry.values() if isinstance(entry, dict) else entry:
            yield from _pages(below)

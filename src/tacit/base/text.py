"""Words and numbers as people read them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Sequence
from typing import Any

MAX_SHOWN = 80  # characters of a value in a message
DIGITS, MOST_DIGITS = 6, 17  # of a number in words, and those that tell all numbers of float64 apart
EXPONENTS_FROM = 1e15
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def fresh_name(name: str, taken: Container[str]) -> str:
    """A name that is not taken, with as many apostrophes as that needs.

    >>> fresh_name("A", {"A", "A'"})
    "A''"
    """
    while name in taken:
        name += "'"
    return name


def plural(count: int, noun: str) -> str:
    """A count with its noun: "1 row", "2 rows"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def large(number: int) -> str:
    """A count that may be astronomically large."""
    return f"{number:,}" if number < 10**15 else f"about 10^{math.log10(number):.0f}"


def short(text: str, limit: int = 80) -> str:
    """A text, cut where it is too long."""
    return text if len(text) <= limit else text[: limit - 3] + "..."


def quote(name: str) -> str:
    """A name as a quoted Graphviz identifier."""
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def visible(text: str) -> str:
    r"""A text with signs in place of the characters that no XML can hold, and no file in UTF-8.

    >>> visible("bell \x07")
    'bell ␇'
    """
    return _NOT_XML.sub(lambda match: chr(0x2400 + ord(match[0])) if match[0] < " " else "\ufffd", text)


def bars(labels: Sequence[object], values: Sequence[float], width: int = 30) -> str:
    """Probabilities as bars of text, one line per state."""
    pad = max(len(str(label)) for label in labels)
    return "\n".join(
        f"{label!s:>{pad}}  {value:8.6f}  {'█' * round(width * value)}"
        for label, value in zip(labels, values, strict=True)
    )


def listed(names: Sequence[object], limit: int = 8) -> str:
    """Some names, and how many more there are.

    >>> listed("ABCD", limit=2)
    'A, B and 2 more'
    """
    shown = ", ".join(map(str, names[:limit]))
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit:,} more"


def counted(rows: float) -> str:
    """A number of rows, which need not be whole where they have weights.

    >>> counted(2.0), counted(2.5)
    ('2 rows', 'rows that weigh 2.5')
    """
    return plural(int(rows), "row") if rows == int(rows) else f"rows that weigh {rows:,.6g}"


def shown(value: Any) -> str:
    """A value in a message, however long it is."""
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole number of more than 4,300 digits
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


def rounded(number: float, digits: int = 3) -> str:
    """A number with a few digits that count, and no exponent unless it is very large or small.

    >>> rounded(1714.2), rounded(0.012345), rounded(-12.0, 4), rounded(2.5e7)
    ('1710', '0.0123', '-12', '2.5e+07')
    """
    return f"{float(f'{number:.{digits}g}'):g}"


def in_digits(number: float, digits: int = DIGITS) -> str:
    """A number with some digits that count, and all those before its point.

    >>> in_digits(1234566.0), in_digits(0.1 + 0.2), in_digits(1234566.04, 9)
    ('1234566', '0.3', '1234566.04')
    """
    before_point = len(f"{abs(number):.0f}") if abs(number) < EXPONENTS_FROM else 0
    return f"{number:.{max(digits, before_point)}g}"


def told_apart(say: Callable[[int], tuple[str, str]]) -> tuple[str, str]:
    """Two texts with as many digits as it takes to tell them apart; with few, if no digits do.

    >>> told_apart(lambda digits: (in_digits(2.5, digits), in_digits(2.50000004, digits)))
    ('2.5', '2.50000004')
    """
    pairs = (say(digits) for digits in range(DIGITS, MOST_DIGITS + 1))
    return next((pair for pair in pairs if pair[0] != pair[1]), say(DIGITS))


def shown_number(number: float) -> str:
    """A number in a message: short, but never as one that it is not.

    >>> shown_number(-1.0), shown_number(1.0000000000000002)
    ('-1', '1.0000000000000002')
    """
    short = f"{number:g}"
    return short if float(short) == number else repr(float(number))

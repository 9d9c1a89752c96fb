"""The intervals that numbers fall into: the one place that knows what a number means to an interval variable.

An interval has its lower edge but not its upper one; the last interval has both. What is outside all of them is no
state. An infinite number is inside only where the outer edge is infinite, too.

Edges are compared as the column holds numbers: among float32, 0.7 is the float32 that is nearest to it, so that a
value that was written as 0.7 is not below an edge that was. Whole numbers of any size are compared exactly.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.text import shown
from tacit.evidence.codes import MISSING, UNKNOWN
from tacit.evidence.frames import smallest
from tacit.evidence.numbers import as_number
from tacit.model.elements.intervals import Edges, number_text
from tacit.model.elements.variable import Variable, listed_states

BLOCK_ROWS = 2**15  # whose comparisons stay in the cache
NUMBER = int | float | np.integer | np.floating | np.bool_ | Decimal | Fraction


def codes_of_numbers(edges: Edges, array: NDArray[Any]) -> NDArray[np.signedinteger[Any]]:
    """The place of the interval of each number of an array (rows,): MISSING for NaN, UNKNOWN for others outside.

    >>> codes_of_numbers((0.0, 18.0, 65.0), np.array([17.5, 18, 65, 66, np.nan]))
    array([ 0,  1,  1, -2, -1], dtype=int8)
    """
    array = array.view(np.uint8) if array.dtype.kind == "b" else array
    lower, top = _comparable(edges, array.dtype)
    codes = np.empty(len(array), dtype=smallest(len(edges)))
    for start in range(0, len(array), BLOCK_ROWS):
        some, own = array[start : start + BLOCK_ROWS], codes[start : start + BLOCK_ROWS]
        some = some.astype(np.float32) if some.dtype == np.float16 else some  # which processors compare at once
        if own.dtype == np.int8:
            _count_reached(lower, some, own)
        else:
            own[:] = np.searchsorted(np.array(lower, dtype=some.dtype), some, side="right") - 1
        if not (own.min() >= 0 and some.max() <= top):  # NaN reaches no edge
            wrong = (own < 0) | ~(some <= top)
            own |= -wrong.view(np.int8)  # all bits, which is MISSING
            own[wrong & (some == some)] = UNKNOWN
    return codes


def _count_reached(lower: list[Any], some: NDArray[Any], own: NDArray[np.signedinteger[Any]]) -> None:
    """Write how many lower edges each number reaches, less one: far faster than a binary search where they are few."""
    own.fill(-1)
    counted = own.view(np.uint8)
    for edge in lower:
        counted += (some >= edge).view(np.uint8)


def _comparable(edges: Edges, dtype: np.dtype[Any]) -> tuple[list[Any], Any]:
    """The lower edges that a number of this type may reach, and the largest number inside, in this type.

    A whole number reaches an edge exactly if it reaches the next whole number.
    """
    if dtype.kind == "f":
        return [_rounded(edge, dtype) for edge in edges[:-1]], _rounded(edges[-1], dtype, down=True)
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    lower = [least if edge <= least else math.ceil(edge) for edge in edges[:-1] if edge <= most]
    top = most if edges[-1] >= most else math.floor(edges[-1])
    return (lower, top) if top >= least else ([], least)


def _rounded(edge: float, dtype: np.dtype[Any], down: bool = False) -> Any:
    """An edge in a type of floats; a finite one does not become -inf, nor, if rounded `down`, inf."""
    with np.errstate(over="ignore"):
        value = dtype.type(edge)
    if math.isfinite(edge) and not np.isfinite(value) and (edge < 0 or down):
        value = np.finfo(dtype).max * (1 if edge > 0 else -1)
    return value


def code_of_number(edges: Edges, value: Any) -> int:
    """The place of the interval of one number: MISSING for NaN, UNKNOWN if it is outside, or no number.

    True and False are 1 and 0 where these are in two intervals.

    >>> code_of_number((0.0, 18.0, 65.0), 18), code_of_number((0.0, 18.0, 65.0), "18")
    (1, -2)
    """
    if isinstance(value, bool | np.bool_) and not tells_truths(edges):
        return UNKNOWN
    if isinstance(value, np.generic):
        if value.dtype.kind not in "iubf":
            return UNKNOWN
        return int(codes_of_numbers(edges, np.array([value]))[0])
    if not isinstance(value, NUMBER):
        return UNKNOWN
    number = float(value) if isinstance(value, Decimal | Fraction) else value
    if number != number:
        return MISSING
    if not edges[0] <= number <= edges[-1]:
        return UNKNOWN
    return min(bisect_right(edges, number), len(edges) - 1) - 1


def tells_truths(edges: Edges) -> bool:
    """Whether 0 and 1 are in two intervals. Where they are not, truth values are a slip: they would tell nothing.

    >>> tells_truths((0.0, 18.0, 65.0)), tells_truths((0.0, 1.0, 2.0))
    (False, True)
    """
    no, yes = code_of_number(edges, 0), code_of_number(edges, 1)
    return no != yes and UNKNOWN not in (no, yes)


def is_number(value: Any) -> bool:
    """Whether a value is a number; truth values are none.

    >>> is_number(1), is_number(np.float32(1)), is_number(True), is_number("1")
    (True, True, False, False)
    """
    return isinstance(value, NUMBER) and not isinstance(value, bool | np.bool_)


def code_of_text(edges: Edges, text: str) -> int:
    """The place of the interval of the number that a text spells: UNKNOWN if that is outside, or if it spells none.

    >>> [code_of_text((0.0, 18.0, 65.0), text) for text in ("18", "66", "1,5", "nan", "true")]
    [1, -2, -2, -2, -2]
    """
    code = code_of_number(edges, spelled_number(text))
    return UNKNOWN if code == MISSING else code


def spelled_number(text: str) -> int | float | None:
    """The number that a text spells, if any."""
    number = as_number(text)
    return number if isinstance(number, int | float) and not isinstance(number, bool) and number == number else None


def problem_with(variable: Variable, value: Any) -> str:
    """What is wrong with a value that is in no interval, and names none; a text may spell a number that is outside."""
    assert variable.bins is not None
    low, high = variable.bins[0], variable.bins[-1]
    ends = f"{'(' if math.isinf(low) else '['}{number_text(low)}, {number_text(high)}{')' if math.isinf(high) else ']'}"
    if is_number(value) or (isinstance(value, str) and is_outside(variable.bins, value)):
        text = number_text(float(value)) if isinstance(value, float | np.floating) else str(value)
        return f"{text.strip()} is outside the range {ends} of its intervals"
    return f"{shown(value)} is neither a number nor a state; expected numbers in {ends}, or {listed_states(variable)}"


def is_outside(edges: Edges, text: str) -> bool:
    """Whether a text spells a number that is in no interval."""
    return spelled_number(text) is not None and code_of_text(edges, text) == UNKNOWN

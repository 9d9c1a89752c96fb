"""States that may be one: those that differ only in case or spaces, and rare ones that look like typing errors."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any

from numpy.typing import NDArray

from tacit.base.text import counted, listed
from tacit.base.warnings import warn
from tacit.model.elements.variable import Variable

Counts = Callable[[str], NDArray[Any]]  # of a column: how many rows have each state
RARE_ROWS, RARE_SHARE = 5, 0.005  # up to which a state may be a typing error
FREQUENT = 20  # how many times as frequent the state is that was meant
MIN_LETTERS = 3  # of a state that was meant: codes of two letters are all alike
NUMBERS = re.compile(r"\b[ivx]+\b|\d+|\W+")  # also Roman ones, and signs


class SimilarStatesWarning(UserWarning):
    """Values of a column became different states although they differ only in case or spaces, or in a letter."""


def warn_of_similar_states(variables: Collection[Variable], counts: Counts) -> None:
    """Warn of states that differ only in case or spaces, and of rare ones that may be typing errors."""
    _warn_of_case_and_spaces(variables, counts)
    _warn_of_typing_errors(variables, counts)


def _warn_of_case_and_spaces(variables: Collection[Variable], counts: Counts) -> None:
    found = []
    for variable in variables:
        if places := _alike(variable):
            rows = counts(variable.name)
            labels = [f"{variable.states[place]!r} ({counted(rows[place])})" for place in places]
            found.append(f"column {variable.name!r} has {listed(labels)}")
    if found:
        remedy = "where they mean the same, make them one (in pandas: column.str.strip().str.lower())"
        warn(f"states that differ only in case or spaces: {'; '.join(found)}; {remedy}", SimilarStatesWarning)


def _alike(variable: Variable) -> list[int]:
    """The places of states that others are like in small letters and without spaces, like ones side by side."""
    places: dict[str, list[int]] = {}
    for place, label in enumerate(variable.states):
        if isinstance(label, str):
            places.setdefault(label.strip().lower(), []).append(place)
    return [place for same in places.values() if len(same) > 1 for place in same]


def _warn_of_typing_errors(variables: Collection[Variable], counts: Counts) -> None:
    found = []
    for variable in variables:
        texts = {place: label for place, label in enumerate(variable.states) if isinstance(label, str)}
        if len(texts) < 2 or variable.bins is not None:
            continue
        rows = counts(variable.name)
        for place, rare in texts.items():
            if not 0 < rows[place] <= min(RARE_ROWS, RARE_SHARE * rows.sum()):
                continue
            meant = [o for o, label in texts.items() if rows[o] >= FREQUENT * rows[place] and _may_mean(rare, label)]
            if meant:
                most = max(meant, key=lambda other: float(rows[other]))
                what = f"{rare!r} ({counted(rows[place])}) beside {texts[most]!r} ({counted(rows[most])})"
                found.append((variable.name, what, {rare: texts[most]}))
    if found:
        name, _, corrected = found[0]
        told = listed([f"column {own!r} has {what}" for own, what, _ in found])
        remedy = f"where one was meant, correct the other (in pandas: frame[{name!r}].replace({corrected}))"
        warn(f"rare states that may be typing errors: {told}; {remedy}", SimilarStatesWarning)


def _may_mean(rare: str, meant: str) -> bool:
    """Whether one slip of the keyboard makes a state of another, and not one that differs in its number."""
    typed, right = rare.strip().lower(), meant.strip().lower()
    words = [NUMBERS.sub("", text) for text in (typed, right)]
    return len(words[1]) >= MIN_LETTERS and words[0] != words[1] and _one_slip(typed, right)


def _one_slip(first: str, second: str) -> bool:
    """Whether two texts differ in one letter, or in two neighbours that changed places.

    >>> _one_slip("hgih", "high"), _one_slip("hig", "high"), _one_slip("hihg", "hgih")
    (True, True, False)
    """
    short, long = sorted((first, second), key=len)
    same = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    short, long = short[same:], long[same:]
    swapped = short[:2] == long[1::-1] and short[2:] == long[2:]
    return short == long[1:] or (len(short) == len(long) and (short[1:] == long[1:] or swapped))

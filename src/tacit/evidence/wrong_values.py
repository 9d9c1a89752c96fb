"""The errors about values of a column that name no state: which ones, how often, and what may be meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import NO_NUMBER, NO_STATE, OUTSIDE, EvidenceError, WrongValue
from tacit.base.text import shown
from tacit.evidence.intervals import code_of_text, is_number, is_outside, problem_with, spelled_number
from tacit.evidence.numbers import as_float
from tacit.evidence.states import AS_TEXT, MISSING_WORDS, numbers_spelled
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import Variable, listed_states, nearest

MAX_SUGGESTED = 8  # different wrong values for which a similar state is looked for, which is slow
COMMA_NUMBER = re.compile(r"[-+]?[0-9]+,[0-9]+")
TO_NUMBERS = "convert the column (in pandas, with pd.to_numeric)"
Wrong = tuple[Any, int]  # a value and its row


def not_states(variable: Variable, values: Sequence[Any], rows: NDArray[np.intp], present: int) -> EvidenceError:
    """The error about all values that name no state, among so many that are `present`, and their rows."""
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    wrong: list[Wrong] = list(zip(values, rows.tolist(), strict=True))
    if variable.bins is not None:
        return _in_no_interval(variable, variable.bins, wrong, present)
    value = values[0]
    problem = f"{shown(value)} is not a state; expected one of {listed_states(variable)}"
    number = None
    with suppress(ValueError):
        number = as_float(value) if isinstance(value, int | float | str) else None
    if number is not None and variable.numeric:
        problem += _of_numeric_labels(variable, number)
    elif number is not None and variable.card == 2 and 0 < number < 1:
        problem += ", or a float in every row"
    elif number is not None:  # a code, whose meaning as a likelihood may be the opposite
        problem += f", or likelihoods of shape (rows, {variable.card})"
        if number in numbers_spelled(variable):
            problem += f"; its states are text: {AS_TEXT}"
    return _error(variable, problem + _of_gaps(values) + _of_commas(values), wrong)


def _of_numeric_labels(variable: Variable, number: float) -> str:
    """How likelihoods are passed, where a single number would be a label."""
    truths = all(isinstance(label, bool) for label in variable.states)
    why = "True and False are also the numbers 1 and 0" if truths else "its labels are numbers"
    if variable.card == 2 and 0 < number < 1:
        return f" ({why}; for a likelihood of {shown(variable.states[0])}, pass [[{number:g}, {1 - number:g}]])"
    return f" ({why}; pass likelihoods as an array of shape (rows, {variable.card}))"


def _in_no_interval(variable: Variable, edges: Edges, wrong: list[Wrong], present: int) -> EvidenceError:
    """Numbers outside, or text. Where nearly all text spells numbers, the few values that do not are the culprits."""
    texts = {value for value, _ in wrong if isinstance(value, str)}
    inside = {text for text in texts if code_of_text(edges, text) >= 0}
    culprits = [(value, row) for value, row in wrong if not (isinstance(value, str) and value in inside)]
    numbers = len(wrong) - len(culprits)
    if not numbers:
        values = [value for value, _ in wrong]
        return _error(variable, problem_with(variable, values[0]) + _of_gaps(values) + _of_commas(values), wrong)
    if not culprits:
        return _all_spelled(variable.name, wrong, present)
    culprits.sort(key=lambda one: isinstance(one[0], str) and is_outside(edges, one[0]))  # these are numbers, at least
    first = culprits[0][0]
    why = problem_with(variable, first) if _is_number(edges, first) else f"{shown(first)} is not a number"
    numbers += sum(_is_number(edges, value) for value, _ in culprits)
    problem = why + _mostly_spelled(numbers, present) + _of_commas(value for value, _ in culprits)
    return _error(variable, problem, culprits)


def no_numbers(name: str, values: Sequence[Any], rows: NDArray[np.intp], present: int) -> EvidenceError:
    """The error about all values of a column of numbers that are none, among so many that are `present`."""
    wrong: list[Wrong] = list(zip(values, rows.tolist(), strict=True))
    culprits = [(value, row) for value, row in wrong if not isinstance(value, str) or spelled_number(value) is None]
    if not culprits:
        return _all_spelled(name, wrong, present)
    texts = [value for value, _ in culprits]
    is_truth = isinstance(texts[0], bool | np.bool_)
    problem = f"{shown(texts[0])} is {'a truth value, and no' if is_truth else 'not a'} number"
    if len(culprits) < len(wrong):
        problem += _mostly_spelled(len(wrong) - len(culprits), present)
    elif is_truth:
        problem += "; write 1 and 0 if these are meant"
    remedies = _of_gaps(texts) + _of_commas(texts)
    if not is_truth and len(culprits) == len(wrong) and not remedies:
        remedies = f"; {TO_NUMBERS}"
    counted = counted_values(culprits, lambda _: NO_NUMBER)
    return EvidenceError(problem + remedies, variable=name, row=culprits[0][1], values=counted)


def words_among_numbers(name: str, words: Sequence[WrongValue], numbers: int, present: int) -> EvidenceError:
    """The error about a column of a table whose values are numbers, but for some words."""
    first = min(words, key=lambda word: word.first)
    remedy = "correct them, or make them gaps (in pandas: pd.to_numeric(column, errors='coerce'))"
    problem = f"{shown(first.value)} is not a number, as {numbers:,} of {present:,} values are; {remedy}"
    problem += _of_commas(word.value for word in words)
    return EvidenceError(problem, variable=name, subject=f"column {name!r}", row=first.first, values=words)


def _all_spelled(name: str, wrong: Sequence[Wrong], present: int) -> EvidenceError:
    """The error about numbers that are written as text, all of them."""
    first, row = wrong[0]
    problem = f"{shown(first)} is text, and {len(wrong):,} of {present:,} values spell numbers: {TO_NUMBERS}"
    return EvidenceError(problem, variable=name, row=row, rows=present)


def _mostly_spelled(numbers: int, present: int) -> str:
    remedy = "convert it (in pandas, pd.to_numeric(column, errors='coerce') makes the others gaps)"
    return f"; the column is text, and {numbers:,} of {present:,} values spell numbers: {remedy}"


def _is_number(edges: Edges, value: Any) -> bool:
    return not isinstance(value, str) or is_outside(edges, value)


def _of_gaps(values: Iterable[Any]) -> str:
    """How a gap is written, where some value is a word for one."""
    words = (value for value in values if isinstance(value, str) and value.strip().lower() in MISSING_WORDS)
    word = next(words, None)
    return "" if word is None else f"; use None (or NaN) for a gap, not {shown(word)}"


def _of_commas(values: Iterable[Any]) -> str:
    """How a fraction is written, where some value has a comma in place of the point."""
    words = (value for value in values if isinstance(value, str) and COMMA_NUMBER.fullmatch(value.strip()))
    word = next(words, None)
    return "" if word is None else f"; write numbers with a point ({word.strip().replace(',', '.')})"


def _error(variable: Variable, problem: str, wrong: list[Wrong]) -> EvidenceError:
    values = counted_values(wrong, partial(_problem, variable), partial(_meant, variable))
    return EvidenceError(problem, variable=variable.name, row=wrong[0][1], values=values)


def counted_values(
    wrong: Iterable[Wrong], problem: Callable[[Any], str], meant: Callable[[Any], str | None] = lambda _: None
) -> list[WrongValue]:
    """How often each wrong value of a column occurs, where first, what is wrong with it, and what it may mean."""
    first, counts = dict[Any, int](), Counter[Any]()
    for value, row in ((_hashable(value), row) for value, row in wrong):
        first.setdefault(value, row)
        counts[value] += 1
    common = counts.most_common()
    return [
        WrongValue(
            value=value,
            rows=n,
            first=first[value],
            meant=meant(value) if place < MAX_SUGGESTED else None,
            problem=problem(value),
        )
        for place, (value, n) in enumerate(common)
    ]


def _problem(variable: Variable, value: Any) -> str:
    """What is wrong with a value, in a few words."""
    if variable.bins is None:
        return NO_STATE
    outside = is_number(value) or (isinstance(value, str) and is_outside(variable.bins, value))
    return OUTSIDE if outside else NO_NUMBER


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return shown(value)
    return value


def _meant(variable: Variable, value: Any) -> str | None:
    """The state that text is most like; numbers resemble the names of intervals by chance."""
    if not isinstance(value, str) or (variable.bins is not None and is_outside(variable.bins, value)):
        return None
    return nearest(value, [label for label in variable.states if isinstance(label, str)])

"""The errors about values of a column that name no state: which ones, how often, and what may be meant."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import NO_NUMBER, NO_STATE, OUTSIDE, EvidenceError, WrongValue
from tacit.base.text import shown
from tacit.evidence.intervals import NUMBER, code_of_text, is_outside, problem_with
from tacit.evidence.numbers import as_float
from tacit.evidence.states import MISSING_WORDS
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import Variable, listed_states, nearest

MAX_SUGGESTED = 8  # different wrong values for which a similar state is looked for, which is slow
COMMA_NUMBER = re.compile(r"[-+]?[0-9]+,[0-9]+")
Wrong = tuple[Any, int]  # a value and its row


def not_states(variable: Variable, values: Sequence[Any], rows: NDArray[np.intp], present: int) -> EvidenceError:
    """The error about all values that name no state, among so many that are `present`, and their rows."""
    wrong: list[Wrong] = list(zip(values, rows.tolist(), strict=True))
    if variable.bins is not None:
        return _in_no_interval(variable, variable.bins, wrong, present)
    value = values[0].item() if isinstance(values[0], np.generic) else values[0]
    problem = f"{shown(value)} is not a state; expected one of {listed_states(variable)}"
    number = None
    with suppress(ValueError):
        number = as_float(value) if isinstance(value, int | float | str) else None
    if number is not None and variable.numeric:
        problem += f" (its labels are numbers; pass likelihoods as an array of shape (rows, {variable.card}))"
    elif number is not None and variable.card == 2 and 0 < number < 1:
        problem += ", or a float in every row"
    elif number is not None:  # a code, whose meaning as a likelihood may be the opposite
        problem += f", or likelihoods of shape (rows, {variable.card})"
    return _error(variable, problem + _of_gaps(values) + _of_commas(values), wrong)


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
        first, row = wrong[0]
        remedy = "convert the column (in pandas, with pd.to_numeric)"
        problem = f"{shown(first)} is text, and {numbers:,} of {present:,} values spell numbers: {remedy}"
        return EvidenceError(problem, variable=variable.name, row=row, rows=present)
    culprits.sort(key=lambda one: isinstance(one[0], str) and is_outside(edges, one[0]))  # these are numbers, at least
    first = culprits[0][0]
    why = problem_with(variable, first) if _is_number(edges, first) else f"{shown(first)} is not a number"
    numbers += sum(_is_number(edges, value) for value, _ in culprits)
    remedy = "convert it (in pandas, pd.to_numeric(column, errors='coerce') makes the others gaps)"
    problem = f"{why}; the column is text, and {numbers:,} of {present:,} values spell numbers: {remedy}"
    return _error(variable, problem + _of_commas(value for value, _ in culprits), culprits)


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
    return EvidenceError(problem, variable=variable.name, row=wrong[0][1], values=_counted(variable, wrong))


def _counted(variable: Variable, wrong: list[Wrong]) -> list[WrongValue]:
    """How often each wrong value of a column occurs, where first, and what it may mean."""
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
            meant=_meant(variable, value) if place < MAX_SUGGESTED else None,
            problem=_problem(variable, value),
        )
        for place, (value, n) in enumerate(common)
    ]


def _problem(variable: Variable, value: Any) -> str:
    """What is wrong with a value, in a few words."""
    if variable.bins is None:
        return NO_STATE
    outside = isinstance(value, NUMBER) or (isinstance(value, str) and is_outside(variable.bins, value))
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

"""The states of a variable that nobody has listed: the values that occur in a column."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable
from datetime import date
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.text import counted, listed, shown
from tacit.base.warnings import warn
from tacit.evidence.frames import Coded, ConversionError, TextColumn, opened
from tacit.evidence.labels import is_missing
from tacit.evidence.states import MISSING_WORDS
from tacit.evidence.summaries.similar_states import Counts, warn_of_similar_states
from tacit.model.elements.variable import Label, Variable

DATES = "turn dates into numbers (in pandas: pd.to_datetime(column).dt.year), or leave the column out"
DURATIONS = "turn durations into numbers (in pandas: column.dt.total_seconds()), or leave the column out"
FRACTION, NUMBER = re.compile(r"[-+]?\d*[.,]\d+"), re.compile(r"[-+]?\d*[.,]?\d+")
MIN_SPOILT, SPOILT_SHARE = 8, 0.6  # states that spell fractions from which a column is one of numbers
GAP_WORDS = (MISSING_WORDS - {"none"}) | {
    "?",
    "-",
    "--",
    "n.a.",
    "#n/a",
    "missing",
    "unknown",
    "nil",
    "<na>",
}  # "none" is an answer
MAX_WHOLE_STATES = 12  # different whole numbers up to which each is a state
MAX_OBSERVED = 100  # different values of a column up to which they are taken for states


class ConstantColumnWarning(UserWarning):
    """Columns have a single value each, so that their variables tell nothing about others."""


class SpoiltNumbersWarning(UserWarning):
    """The numbers of a column became states, since some cells hold text, or since their fractions follow a comma."""


class GapWordWarning(UserWarning):
    """A word that often stands for a gap, such as "NA" or "?", became a state."""


def warn_of_states(variables: Collection[Variable], counts: Counts) -> None:
    """Warn of columns with states that may be one, that may be gaps or numbers, and of columns with a single value."""
    warn_of_similar_states(variables, counts)
    _warn_of_gap_words(variables, _warn_of_spoilt_numbers(variables, counts), counts)
    _warn_of_constants(variables, counts)


def _warn_of_constants(variables: Collection[Variable], counts: Counts) -> None:
    constant = [one.name for one in variables if one.card == 1 or _is_constant_truth(one, counts)]
    if constant:
        what = f"columns with a single value: {listed(constant)}"
        warn(f"{what}; what is constant tells nothing about others: leave them out", ConstantColumnWarning)


def _is_constant_truth(variable: Variable, counts: Counts) -> bool:
    """Whether only one of True and False occurs, which are both states."""
    return variable.states == (True, False) and np.count_nonzero(counts(variable.name)) == 1


def _warn_of_spoilt_numbers(variables: Collection[Variable], counts: Counts) -> set[str]:
    """Warn of columns whose numbers are states, and return their names."""
    found, spoilt = [], set[str]()
    for variable in variables:
        if not _is_spoilt(variable):
            continue
        spoilt.add(variable.name)
        others = [place for place, label in enumerate(variable.states) if not _spells_number(label)]
        rows = counts(variable.name)
        words = [f"{variable.states[place]!r} ({counted(rows[place])})" for place in others]
        beside = f" beside {listed(words)}" if words else " with a comma"
        found.append(f"column {variable.name!r} has {variable.card - len(others):,} numbers as states{beside}")
    if found:
        remedy = "make the column numbers (in pandas: pd.to_numeric(column.str.replace(',', '.'), errors='coerce'))"
        warn(f"{'; '.join(found)}; {remedy}", SpoiltNumbersWarning)
    return spoilt


def _is_spoilt(variable: Variable) -> bool:
    """Whether most states are numbers: fractions as text, or many whole numbers beside a few words."""
    texts = [label.strip() for label in variable.states if isinstance(label, str)]
    fractions = [text for text in texts if FRACTION.fullmatch(text)]
    if len(fractions) >= max(MIN_SPOILT, SPOILT_SHARE * variable.card):
        return True
    words = sum(not _spells_number(label) for label in variable.states)
    return 0 < words <= (1 - SPOILT_SHARE) * variable.card and variable.card - words > MAX_WHOLE_STATES


def _spells_number(label: Label) -> bool:
    return not isinstance(label, str) or bool(NUMBER.fullmatch(label.strip()))


def _warn_of_gap_words(variables: Collection[Variable], told: Collection[str], counts: Counts) -> None:
    """Warn of states that are words for a gap, but in columns of which more has been `told`."""
    found = []
    for variable in variables:
        words = [place for place, label in enumerate(variable.states) if _is_gap_word(label)]
        if words and variable.name not in told:
            rows = counts(variable.name)
            named = listed([f"{variable.states[place]!r} ({counted(rows[place])})" for place in words])
            found.append(f"column {variable.name!r} has {named}")
    if found:
        remedy = "where they are gaps, make them None (in pandas: column.replace('?', None))"
        warn(f"states that may stand for a gap: {'; '.join(found)}; {remedy}", GapWordWarning)


def _is_gap_word(label: Label) -> bool:
    return isinstance(label, str) and label.strip().lower() in GAP_WORDS


def observed_states(name: str, values: Any) -> tuple[Label, ...]:
    """The values that occur in a column, sorted; those of an ordered category stay in its order.

    Booleans have both of their states, True first. Whole numbers that gaps have made floats are whole numbers. It
    is an error if a column has no values, too many different ones, or fractions, which are measurements.

    >>> observed_states("B", ["lo", None, "hi", "lo"]), observed_states("C", [2.0, float("nan"), 1.0])
    (('hi', 'lo'), (1, 2))
    """
    present = _distinct(name, values)
    if not present:
        raise EvidenceError(f"column {name!r} has no values, so its states are unknown; give them in states=")
    if all(isinstance(value, bool) for value in present):
        return True, False
    for value in present:
        if not isinstance(value, str | int | float):
            raise no_state(name, value)
    fractions = [value for value in present if isinstance(value, float) and not value.is_integer()]
    if fractions or len(present) > MAX_OBSERVED:
        problem = f"fractions such as {fractions[0]!r}" if fractions else f"{len(present):,} different values"
        remedy = "sort them into intervals with bins=, or give its states in states="
        raise EvidenceError(f"column {name!r} holds {problem}, which are too many states; {remedy}")
    states = [int(value) if isinstance(value, float) else value for value in present]
    if is_ordered(values):
        return tuple(states)
    texts, numbers = ({state for state in states if isinstance(state, str) is text} for text in (True, False))
    return (*sorted(numbers), *sorted(texts))


def no_state(name: str, value: Any, row: int | None = None) -> EvidenceError:
    """The error about a value of a column that can be no state, by its type.

    >>> no_state("tags", [1, 2], row=3)
    EvidenceError("column 'tags', row 3: [1, 2] is not a single value; leave the column out")
    """
    kind = type(value).__name__
    if isinstance(value, Iterable):
        problem = "is not a single value; leave the column out"
    elif isinstance(value, date):
        problem = f"is a date; {DATES}"
    else:
        remedy = " (pandas.cut names its groups with labels=)" if kind == "Interval" else ""
        problem = f"is of type {kind}, expected text or a number{remedy}; leave the column out"
    return EvidenceError(f"{shown(value)} {problem}", subject=f"column {name!r}", row=row)


def refuse_dates(name: str, dtype: np.dtype[Any]) -> None:
    """An error about a column of dates or durations."""
    if dtype.kind == "M":
        raise EvidenceError(f"column {name!r} holds dates; {DATES}")
    if dtype.kind == "m":
        raise EvidenceError(f"column {name!r} holds durations; {DURATIONS}")


def _distinct(name: str, values: Any) -> list[Any]:
    """The different values of a column, without gaps, as Python's own objects."""
    try:
        column = opened(values)
    except ConversionError as error:
        raise EvidenceError(f"column {name!r}: {error}") from None
    if isinstance(column, TextColumn | Coded):
        labels = column.labels if isinstance(column, TextColumn) else column.numbers.tolist()
        used = np.unique(column.places[column.places >= 0]).tolist()
        return [label for label in (labels[place] for place in used) if label is not None]
    if column.values.ndim != 1:
        shape = column.values.shape
        raise EvidenceError(f"column {name!r} has shape {shape}; expected a value for each row, (rows,)")
    present = column.values if column.missing is None else column.values[~column.missing]
    if present.dtype.kind == "O":
        try:
            return list(dict.fromkeys(value for value in present.tolist() if not is_missing(value)))
        except TypeError:  # lists and the like
            row, value = next((i, one) for i, one in enumerate(column.values) if not isinstance(one, Hashable))
            raise no_state(name, value, row) from None
    refuse_dates(name, present.dtype)
    return [value for value in np.unique(present).tolist() if not is_missing(value)]


def is_ordered(values: Any) -> bool:
    """Whether a column is an ordered category of pandas, or an Enum of polars."""
    dtype = getattr(values, "dtype", None)
    return bool(getattr(dtype, "ordered", False)) or type(dtype).__name__ == "Enum"

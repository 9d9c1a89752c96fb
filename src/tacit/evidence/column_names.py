"""Which columns of a table speak about which variables, by their names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.text import listed
from tacit.base.warnings import warn
from tacit.evidence.codes import UNKNOWN
from tacit.evidence.frames import ConversionError, TextColumn, unpack
from tacit.evidence.records import refuse_misspelt
from tacit.evidence.states import code_in_any_case
from tacit.model.elements.variable import Variable, similar, state_column

MAX_SUGGESTED = 8  # unused columns for which a similar variable is looked for, which is slow


class UnusedColumnWarning(UserWarning):
    """A frame of evidence has columns that are not variables of the network, or the query itself; they are not used."""


class MissingColumnWarning(UserWarning):
    """A frame of evidence has no columns for some of the variables that the query was compiled for."""


@dataclass(frozen=True)
class ForAllRows:
    """Likelihoods (1, states) that hold for all rows, as single values do."""

    likelihoods: Floats


def columns_of_states(variable: Variable, names: Set[str], called: str) -> tuple[str, ...]:
    """The columns `A.lo`, `A.hi` of likelihoods among the names of a table, one for each state, or none.

    Labels are found in any case, as those of a column are. It is an error if some are lacking, or if there is a
    column `A`, too.

    >>> columns_of_states(Variable("A"), {"A.TRUE", "A.False", "id"}, "A")
    ('A.TRUE', 'A.False')
    """
    per_state = tuple(state_column(called, state) for state in variable.states)
    if called not in names and not set(per_state) <= names:
        per_state = _in_any_case(variable, names, called, per_state)
    present = [name for name in per_state if name in names]
    if present and called in names:
        raise EvidenceError(f"the table has columns {called!r} and {present[0]!r}; expected one or the other")
    if present and len(present) < len(per_state):
        absent = next(name for name in per_state if name not in names)
        raise EvidenceError(f"the table has a column {present[0]!r} but no {absent!r}; expected one for every state")
    return per_state if present else ()


def _in_any_case(variable: Variable, names: Set[str], called: str, exact: Sequence[str]) -> tuple[str, ...]:
    """The columns of states as the table spells them, in any case; those that are lacking as they should be."""
    written = {name: name for name in exact if name in names}
    for name in sorted(name for name in names if name.startswith(f"{called}.") and name not in written):
        place = code_in_any_case(variable, name[len(called) + 1 :])
        if place == UNKNOWN or exact[place] in names:
            continue
        if exact[place] in written:
            problem = f"{written[exact[place]]!r} and {name!r}, which may both be {exact[place]!r}"
            raise EvidenceError(f"the table has columns {problem}; expected one of them")
        written[exact[place]] = name
    return tuple(written.get(name, name) for name in exact)


def by_variable(
    columns: Mapping[Any, Any],
    variables: Mapping[str, Variable],
    framed: bool,
    queries: Collection[str] = (),
    rows: Any = None,
) -> dict[str, Any]:
    """The columns that are evidence, by the names of their variables.

    Columns of likelihoods for each state become one, of two dimensions. What is not a variable is an error; in a frame,
    which may have other columns, it is a warning, unless it differs from a variable only in case. In a frame, columns
    of the `queries` are no evidence either: a table of test cases holds the answers, too. Where the `rows` that the
    columns come from are dictionaries, a name that is much like a variable is an error as well.
    """
    answers = frozenset(queries if framed else ())
    others = [name for name in columns if name not in variables or name in answers]
    if not others:
        return dict(columns)
    present = {name for name in columns if isinstance(name, str)}
    evidence = {name: values for name, values in columns.items() if name in variables and name not in answers}
    for variable in _with_states(filter(present.__contains__, others), variables, answers):
        names = columns_of_states(variable, present, variable.name)
        refuse_two_readings(variable, names, variables)
        evidence[variable.name] = _together(names, [_numbers(name, columns[name]) for name in names])
        others = [name for name in others if name not in names]
    refuse_misspelt(rows, [name for name in others if isinstance(name, str) and name not in answers], variables)
    asked = [repr(name) for name in others if name in answers]
    nouns, are = ("column", "is") if len(asked) == 1 else ("columns", "are")
    the_query = f"the {nouns} {', '.join(asked)} {are} the query itself and {are} not used as evidence" if asked else ""
    if the_query and not evidence:
        raise EvidenceError(f"no column is evidence: {the_query}")
    absent = [name for name in variables if name not in evidence and name not in answers]
    unused = _unused([name for name in others if name not in answers], absent, framed and bool(evidence))
    if the_query or unused:
        warn("; ".join(filter(None, [the_query, unused])), UnusedColumnWarning)
    return evidence


def warn_missing(names: Sequence[str], of_records: bool = False) -> None:
    """Warn that a table has no columns for some variables, if there are any; `of_records`, that no row names them."""
    if names:
        them = "it" if len(names) == 1 else "them"
        what = "variables that no row has" if of_records else "columns that are missing"
        warn(f"{what}: {listed(names)}; there is no evidence on {them}", MissingColumnWarning)


def refuse_two_readings(variable: Variable, per_state: Iterable[str], variables: Collection[str]) -> None:
    """An error where a column of likelihoods of a variable's state has the name of another variable."""
    for name in per_state:
        if name in variables:
            readings = f"evidence on the variable {name!r}, or likelihoods of a state of {variable.name!r}"
            remedy = f"pass those of {variable.name!r} as an array of shape (rows, {variable.card})"
            raise EvidenceError(f"the column {name!r} may be {readings}; leave out one, or {remedy}")


def listed_columns(names: Sequence[Any], limit: int = 8) -> str:
    """The names of some columns; one without a name is told in words.

    >>> listed_columns(["", "id"])
    'a column without a name (the index of a frame?), id'
    """
    return listed(
        [name if str(name).strip() else "a column without a name (the index of a frame?)" for name in names], limit
    )


def misspelt(variables: Iterable[str], left: Iterable[str]) -> tuple[str, str] | None:
    """The first column `left` that is a variable but for case and spaces, and that variable."""
    plain = {name.lower(): name for name in reversed(list(variables))}
    return next(((name, meant) for name in left if (meant := plain.get(name.strip().lower()))), None)


def _unused(names: Sequence[Any], absent: Collection[str], allowed: bool) -> str:
    """The warning about unused columns; an error if none is `allowed`, or if one seems to be a variable."""
    if not names:
        return ""
    texts = [name for name in names if isinstance(name, str)]
    wrong = misspelt(absent, texts)
    if wrong is not None or not allowed:
        name = names[0] if wrong is None else wrong[0]
        raise EvidenceError(f"evidence names {name!r}, which is not a variable of the network{similar(name, absent)}")
    hint = next((f" ({name}{text})" for name in texts[:MAX_SUGGESTED] if (text := similar(name, absent))), "")
    return f"columns that are not used: {listed_columns(names)}{hint}"


def _with_states(names: Iterable[str], variables: Mapping[str, Variable], but: Set[str]) -> list[Variable]:
    """The variables, `but` some, that have a column of likelihoods of a state among these names: `A.lo`."""
    with_states: dict[str, Variable] = {}
    for name in names:
        for place in (i for i, sign in enumerate(name) if sign == "."):
            variable, state = variables.get(name[:place]), name[place + 1 :]
            if variable is None or variable.name in but:
                continue
            if state in map(str, variable.states) or code_in_any_case(variable, state) != UNKNOWN:
                with_states[variable.name] = variable
    return list(with_states.values())


def _together(names: Sequence[str], columns: Sequence[NDArray[Any]]) -> NDArray[Any] | ForAllRows:
    """Columns as one array (rows, states), in which single values are broadcast."""
    lengths = {name: len(column) for name, column in zip(names, columns, strict=True) if column.ndim}
    if not lengths:
        return ForAllRows(np.array([columns]))
    first, rows = next(iter(lengths.items()))
    for name, length in lengths.items():
        if length != rows:
            raise EvidenceError(f"column {name!r} has {length:,} rows, but {first!r} has {rows:,}; expected as many")
    return np.stack([np.broadcast_to(column, rows) for column in columns]).T  # each stays in one piece


def _numbers(name: str, values: Any) -> NDArray[Any]:
    """A column of likelihoods, or a single one; NaN where there is none."""
    try:
        column = unpack(values)
        if isinstance(column, TextColumn):
            raise ValueError("it holds text")
        short = column.values.dtype == np.float32
        numbers = np.asarray(column.values, dtype=np.float32 if short else np.float64)
    except (ConversionError, TypeError, ValueError) as error:
        raise EvidenceError(f"column {name!r}: expected likelihoods, which are numbers ({error})") from None
    if numbers.ndim > 1:
        raise EvidenceError(f"column {name!r} has shape {numbers.shape}; expected likelihoods of one state, (rows,)")
    return numbers if column.missing is None else np.where(column.missing, np.nan, numbers)

"""Rows that name their own fields: dictionaries, a row of a frame, structured arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.text import plural, shown
from tacit.model.elements.variable import nearest

MAX_SUGGESTED = 8  # names for which a similar variable is looked for, which is slow


def columns_of_records(rows: Any) -> Mapping[Any, Any] | None:
    """The columns of a list of dictionaries, of a pandas Series that is one row, or of a structured array; else None.

    A field that a dictionary lacks is missing in that row. The fields of a single row are single values.

    >>> columns_of_records([{"A": "yes"}, {"A": "no", "B": 1}])
    {'A': ['yes', 'no'], 'B': [None, 1]}
    """
    if isinstance(rows, np.ndarray) and rows.dtype.names:
        return {name: rows[name] for name in rows.dtype.names}
    if is_one_row(rows):
        return dict(rows.items())
    if not isinstance(rows, list | tuple) or not rows or not isinstance(rows[0], Mapping):
        return None
    for number, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise EvidenceError(f"row {number:,} of the evidence is {shown(row)}; expected a dictionary, as in row 0")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def is_one_row(rows: Any) -> bool:
    """Whether it is a pandas Series, whose index names variables."""
    return type(rows).__module__.partition(".")[0] == "pandas" and getattr(rows, "ndim", 0) == 1


def is_records(rows: Any) -> bool:
    """Whether these are several rows that name their own fields, of which, as in a frame, some may be missing."""
    if isinstance(rows, np.ndarray):
        return bool(rows.dtype.names)
    return isinstance(rows, list | tuple) and bool(rows) and isinstance(rows[0], Mapping)


def refuse_misspelt(rows: Any, names: Sequence[str], variables: Collection[str]) -> None:
    """An error where one of several dictionaries has a name that is not a variable, but much like one that it lacks.

    The column of a table is there in all rows, and may be something else. A name in a dictionary may be a slip, and
    what it says would be taken for missing.
    """
    if isinstance(rows, np.ndarray) or not is_records(rows):
        return
    rarest = sorted(names, key=lambda name: sum(name in row for row in rows))
    for name in rarest[:MAX_SUGGESTED]:
        if (meant := nearest(name, variables)) is None:
            continue
        number = next((i for i, row in enumerate(rows) if name in row and meant not in row), None)
        if number is not None:
            problem = f" names {name!r}, which is not a variable of the network; did you mean {meant!r}?"
            raise EvidenceError(problem, subject="the evidence", row=number)


def with_names(rows: Any, columns: Iterable[str]) -> dict[str, Any]:
    """The columns of a 2-D array, or of a list of rows, by the names that are given for them."""
    names = list(columns)
    table: Any = rows
    if not isinstance(rows, np.ndarray):
        table = _filled(rows, len(names))
    if table.ndim != 2 or table.shape[1] != len(names):
        problem = f"the evidence has shape {table.shape}, and columns= names {plural(len(names), 'column')}"
        raise EvidenceError(f"{problem}; expected an array of shape (rows, {len(names)})")
    return {name: table[:, i] for i, name in enumerate(names)}


def _filled(rows: Sequence[Any], width: int) -> Any:
    """Rows of objects of any type as one array, which converts none of them."""
    table = np.empty((len(rows), width), dtype=object)
    for number, row in enumerate(rows):
        if isinstance(row, str) or len(row) != width:
            problem = f"row {number:,} of the evidence is {shown(row)}, and columns= names {plural(width, 'column')}"
            raise EvidenceError(f"{problem}; expected a value for each")
        table[number] = row
    return table

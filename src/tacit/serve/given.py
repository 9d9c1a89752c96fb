"""Evidence as JSON says it, read by the same code as evidence in Python.

A value is a state; a number, for a variable of two states the likelihood of its first one; a list of likelihoods; an
object of likelihoods by state; or null. Rows may differ in kind, as columns in Python may not.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tacit.errors import EvidenceError, TooLargeError
from tacit.evidence import Column, Evidence, read, read_column
from tacit.labels import error_in_row, listed_states, shown
from tacit.model import Model
from tacit.serve.fields import Fields, named
from tacit.variable import Label, Variable
from tacit.words import plural

KINDS = (str, (int, float), list)


def read_given(net: Model, fields: Fields, most: int) -> Evidence:
    """The evidence of a request, at most so many rows; one row without any, if there is none."""
    by_row, by_column = fields.rows, fields.columns
    if by_row is None:
        return _from_columns(net, by_column or {}, most)
    if not by_row:
        raise EvidenceError("the evidence has no rows; expected at least one")
    _require_few(len(by_row), most)
    names: dict[str, None] = {}
    for row in by_row:
        names |= dict.fromkeys(row)
        _check_names(net, row)
    columns = {name: _column(net.variable(name), [row.get(name) for row in by_row]) for name in names}
    return Evidence(len(by_row), {name: column for name, column in columns.items() if column is not None})


def _from_columns(net: Model, given: Mapping[str, Any], most: int) -> Evidence:
    """A list has a value for each row; anything else is for all of them."""
    _check_names(net, given)
    rows: int | None = None
    for name, values in given.items():
        if isinstance(values, list):
            _require_few(len(values), most)
            if rows is not None and len(values) != rows:
                raise EvidenceError(
                    f"evidence on {name!r} has {plural(len(values), 'row')}, other columns have {rows:,}"
                )
            rows = len(values)
    if rows == 0:
        raise EvidenceError("the evidence has no rows; expected at least one")
    lists = {name: values if isinstance(values, list) else [values] for name, values in given.items()}
    columns = {name: _column(net.variable(name), values) for name, values in lists.items()}
    return Evidence(rows or 1, {name: column for name, column in columns.items() if column is not None})


def _require_few(rows: int, most: int) -> None:
    if rows > most:
        raise TooLargeError(f"there are {rows:,} rows in one request (limit {most:,}); send several requests")


def _check_names(net: Model, given: Mapping[str, Any]) -> None:
    """An error where a name is not that of a variable; before columns are made of what may be a million names."""
    for name in named(given):
        if name not in net:
            read({name: None}, [net.variable(own) for own in net])


def _column(variable: Variable, values: Sequence[Any]) -> Column | None:
    """One column of values of any kinds: those of each kind are read by themselves, and say nothing of other rows."""
    lists = [_by_state(variable, value, i) if isinstance(value, dict) else value for i, value in enumerate(values)]
    parts = [[value if isinstance(value, kind) else None for value in lists] for kind in KINDS]
    found = [read_column(variable, part)[0] for part in parts if any(value is not None for value in part)]
    columns = [column for column in found if column is not None]
    if len(columns) <= 1:
        return columns[0] if columns else None
    soft = columns[0].likelihoods()
    for column in columns[1:]:
        soft = soft * column.likelihoods()
    return Column(variable, soft=soft)


def _by_state(variable: Variable, given: Mapping[str, Any], row: int) -> list[Any]:
    """Likelihoods by state as a list."""
    names = [written(state) for state in variable.states]
    if sorted(names) != sorted(given):
        problem = f"{shown(dict(given))} is not one likelihood per state ({listed_states(variable)})"
        raise error_in_row(variable, row, problem)
    return [given[name] for name in names]


def written(state: Label) -> str:
    """A state as the key of an object in JSON: text as it is, numbers and booleans as JSON writes them."""
    return state if isinstance(state, str) else json.dumps(state)

"""Evidence as JSON says it, read by the same code as evidence in Python.

A value is a state; a number, for a variable of two states the likelihood of its first one; a list of likelihoods; an
object of likelihoods by state; or null. Rows may differ in kind, as columns in Python may not: what a value means does
not depend on other rows, nor on whether a number is written as 1 or 1.0, which JavaScript does not tell apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, TooLargeError
from tacit.base.text import plural, shown
from tacit.evidence.column import Column, Evidence
from tacit.evidence.frames import smallest
from tacit.evidence.labels import Codes, error_in_row
from tacit.evidence.read import read, read_column
from tacit.evidence.states import MISSING, UNKNOWN, numbers_spelled
from tacit.model.model import Model
from tacit.model.variable import Label, Variable, listed_states
from tacit.serve.limits import Limits
from tacit.serve.request import Fields, named
from tacit.serve.workers import Deadline

KINDS = (str, bool, int, float, list)


def read_given(net: Model, fields: Fields, limits: Limits, deadline: Deadline) -> Evidence:
    """The evidence of a request, within limits; one row without any, if there is none."""
    by_row, by_column = fields.rows, fields.columns
    if by_row is None:
        return _from_columns(net, by_column or {}, limits, deadline)
    if not by_row:
        raise EvidenceError("the evidence has no rows; expected at least one")
    _require_few(len(by_row), limits.rows)
    soft: dict[str, bool] = {}
    for row in by_row:
        _check_names(net, row)
        for name, value in row.items():
            soft[name] = soft.get(name, False) or isinstance(value, list | dict)
    _require_small((len(by_row) * _width(net, name, own) for name, own in soft.items()), limits.numbers)
    lists = ((name, [row.get(name) for row in by_row]) for name in soft)  # one at a time
    return Evidence(len(by_row), _columns(net, lists, deadline))


def _from_columns(net: Model, given: Mapping[str, Any], limits: Limits, deadline: Deadline) -> Evidence:
    """A list has a value for each row; anything else is for all of them."""
    _check_names(net, given)
    rows: int | None = None
    for name, values in given.items():
        if isinstance(values, list):
            _require_few(len(values), limits.rows)
            if rows is not None and len(values) != rows:
                count = plural(len(values), "row")
                raise EvidenceError(f" has {count}, other columns have {rows:,}", variable=name)
            rows = len(values)
    if rows == 0:
        raise EvidenceError("the evidence has no rows; expected at least one")
    lists = {name: values if isinstance(values, list) else [values] for name, values in given.items()}
    soft = {name: any(isinstance(value, list | dict) for value in values) for name, values in lists.items()}
    sizes = (len(values) * _width(net, name, soft[name]) for name, values in lists.items())
    _require_small(sizes, limits.numbers)
    return Evidence(rows or 1, _columns(net, lists.items(), deadline))


def _require_few(rows: int, most: int) -> None:
    if rows > most:
        raise TooLargeError(f"there are {rows:,} rows in one request (limit {most:,}); send several requests")


def _width(net: Model, name: str, soft: bool) -> int:
    """The numbers in each row of a column, which also has those rows of which nothing is said."""
    return net.variable(name).card if soft else 1


def _require_small(sizes: Iterable[int], most: int) -> None:
    size = sum(sizes)
    if size > most:
        raise TooLargeError(
            f"the evidence is a table of {size:,} numbers, with those that are left out (limit {most:,}); "
            "send several requests"
        )


def _columns(net: Model, lists: Iterable[tuple[str, Sequence[Any]]], deadline: Deadline) -> dict[str, Column]:
    columns = {}
    for name, values in lists:
        deadline.check()
        column = _column(net.variable(name), values)
        if column is not None:
            columns[name] = column
    return columns


def _check_names(net: Model, given: Mapping[str, Any]) -> None:
    """An error where a name is not that of a variable; before columns are made of what may be a million names."""
    for name in named(given):
        if name not in net:
            read({name: None}, [net.variable(own) for own in net])


def _column(variable: Variable, values: Sequence[Any]) -> Column | None:
    """One column of values of any kinds: those of each kind are read by themselves, and say nothing of other rows."""
    spelled = _codes(variable, values)
    if spelled is not None:
        return Column(variable, codes=spelled)
    meant = _Meaning(variable).of_all(values)
    kinds = set(map(type, meant))
    parts = [[value if type(value) is kind else None for value in meant] for kind in KINDS if kind in kinds]
    with np.errstate(over="ignore"):  # sums of huge likelihoods that overflow are repaired
        columns = [column for part in parts if (column := read_column(variable, part)[0]) is not None]
    if len(columns) <= 1:
        return columns[0] if columns else None
    codes = [column.codes for column in columns if column.codes is not None]
    if len(codes) == len(columns):
        return Column(variable, codes=np.maximum.reduce(codes))  # the others are -1, for no evidence
    return Column(variable, soft=reduce(np.multiply, (column.likelihoods() for column in columns)))


def _codes(variable: Variable, values: Sequence[Any]) -> Codes | None:
    """The states of labels as they are spelled, and gaps: most requests hold nothing else, and a lookup is quick.

    None where there is something else to read, or nothing.
    """
    places: dict[Any, int] = variable.codes
    codes = [places.get(value, UNKNOWN) if type(value) is str else UNKNOWN if value is not None else MISSING
             for value in values]  # fmt: skip
    if UNKNOWN in codes or max(codes) == MISSING:
        return None
    return np.array(codes, dtype=smallest(variable.card))


class _Meaning:
    """What single values mean, where JSON says less than Python: of numbers, and of lists and objects."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.spelled = {} if variable.numeric else numbers_spelled(variable)
        self.first = variable.card == 2 and not variable.numeric  # a number may be the likelihood of the first state

    def of_all(self, values: Sequence[Any]) -> list[Any]:
        return [self._of(value, row) for row, value in enumerate(values)]

    def _of(self, value: Any, row: int) -> Any:
        if isinstance(value, list | dict):
            return self._likelihoods(value, row)
        if type(value) not in (int, float):
            return value
        if self.spelled:
            return self._state(value, row)
        return float(value) if self.first and 0 <= value <= 1 else value

    def _likelihoods(self, value: list[Any] | dict[str, Any], row: int) -> list[Any]:
        likelihoods = _by_state(self.variable, value, row) if isinstance(value, dict) else value
        if not all(type(number) in (int, float) for number in likelihoods):
            problem = f"{shown(value)} is not one likelihood per state ({listed_states(self.variable)})"
            raise error_in_row(self.variable, row, problem)
        return likelihoods

    def _state(self, number: float, row: int) -> str:
        """The label that spells a number. Another number is no likelihood: 0.9 would be of one state, 1 the other."""
        label = self.spelled.get(number)
        if label is None:
            problem = (
                f"{shown(number)} is not a state; expected one of {listed_states(self.variable)} (its labels are "
                "numbers; give a likelihood for each state)"
            )
            raise error_in_row(self.variable, row, problem)
        return label


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

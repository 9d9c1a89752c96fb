"""Evidence as JSON says it, read by the same code as evidence in Python.

A value is a state; a number, for a variable of two states the likelihood of its first one; a list of likelihoods; an
object of likelihoods by state; or null. Of a continuous variable, it is a number or null. Rows may differ in kind, as
columns in Python may not: what a value means does not depend on other rows, nor on whether a number is written as 1 or
1.0, which JavaScript does not tell apart.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import listed, plural, shown
from tacit.evidence.codes import MISSING, UNKNOWN
from tacit.evidence.column import Column, Evidence
from tacit.evidence.density_column import DensityColumn, with_densities
from tacit.evidence.frames import smallest
from tacit.evidence.intervals import spelled_number
from tacit.evidence.labels import Codes, error_in_row
from tacit.evidence.numbers import as_float
from tacit.evidence.read import read, read_column
from tacit.evidence.states import numbers_spelled, wrong_states
from tacit.evidence.tables.columns import column_names
from tacit.model.elements.variable import Label, Variable, listed_states
from tacit.model.model import Model
from tacit.serve.limits import Limits
from tacit.serve.request import Fields, checked_name
from tacit.serve.workers import Deadline

KINDS = (str, bool, int, float, list)


def read_given(net: Model, fields: Fields, limits: Limits, deadline: Deadline) -> Evidence:
    """The evidence of a request, within limits; one row without any, if there is none."""
    by_row = fields.rows
    lists: dict[str, list[Any]] = {}
    if by_row is None:
        by_column = fields.columns or {}
        _check_names(net, by_column)
        rows = _count_rows(by_column, limits.rows)
        lists = {name: values if isinstance(values, list) else [values] for name, values in by_column.items()}
        lengths = {name: len(values) for name, values in lists.items()}
        soft = {name for name, values in lists.items() if any(isinstance(value, list | dict) for value in values)}
    else:
        rows = len(by_row)
        _require_few(rows, limits.rows)
        for row in by_row:
            _check_names(net, row)
        lengths = dict.fromkeys((name for row in by_row for name in row), rows)
        soft = {name for row in by_row for name, value in row.items() if isinstance(value, list | dict)}
    if not rows:
        raise EvidenceError("the evidence has no rows; expected at least one")
    size = sum(length * (net.variable(net.named(name)).card if name in soft else 1) for name, length in lengths.items())
    if size > limits.numbers:
        raise TooLargeError(
            f"the evidence is a table of {size:,} numbers, with those that are left out (limit {limits.numbers:,}); "
            "send several requests"
        )
    columns: dict[str, Column] = {}
    numbers: dict[str, dict[str, Floats]] = {}
    for name in lengths:
        deadline.check()
        values = lists[name] if by_row is None else [row.get(name) for row in by_row]
        variable = net.variable(net.named(name))
        if variable.continuous:
            numbers.setdefault(variable.name, {})[name] = _numbers(variable, name, values)
        elif (column := _column(variable, values)) is not None:
            columns[name] = column
    columns |= {name: _together(net.variable(name), by_name) for name, by_name in numbers.items()}
    return with_densities(Evidence(rows, columns), net)


def _count_rows(by_column: Mapping[str, Any], most: int) -> int:
    """The number of rows: a list has a value for each of them, anything else is for all."""
    rows: int | None = None
    for name, values in by_column.items():
        if isinstance(values, list):
            _require_few(len(values), most)
            if rows is not None and len(values) != rows:
                count = plural(len(values), "row")
                raise EvidenceError(f" has {count}, other columns have {rows:,}", variable=name)
            rows = len(values)
    return 1 if rows is None else rows


def _require_few(rows: int, most: int) -> None:
    if rows > most:
        raise TooLargeError(f"there are {rows:,} rows in one request (limit {most:,}); send several requests")


def _check_names(net: Model, names: Collection[str]) -> None:
    """Refuse a name that is not a variable's, before columns are made of what may be a million names."""
    for name in names:
        checked_name(name, "evidence")
    columns = set(column_names(map(net.variable, net)))
    for name in names:
        if name not in net and name not in columns:
            read({name: None}, [net.variable(each) for each in net])


def _column(variable: Variable, values: Sequence[Any]) -> Column | None:
    """One column of values of any kinds, each of which is read by itself."""
    spelled = _codes(variable, values)
    if spelled is not None:
        return Column(variable, codes=spelled)
    typed = _typed(variable, values)
    kinds = set(map(type, typed))
    parts = [[value if type(value) is kind else None for value in typed] for kind in KINDS if kind in kinds]
    with np.errstate(over="ignore"):  # sums of huge likelihoods that overflow are repaired
        columns = [column for part in parts if (column := read_column(variable, part)[0]) is not None]
    if len(columns) <= 1:
        return columns[0] if columns else None
    codes = [column.codes for column in columns if column.codes is not None]
    if len(codes) == len(columns):
        return Column(variable, codes=np.maximum.reduce(codes))  # the others are -1, for no evidence
    return Column(variable, soft=reduce(np.multiply, (column.likelihoods() for column in columns)))


def _numbers(variable: Variable, name: str, values: Sequence[Any]) -> Floats:
    """The numbers of one column of a continuous variable, NaN where there is none."""
    if name not in variable.columns:
        raise EvidenceError(
            f" has several columns; give numbers by their names, {listed(variable.columns)}", variable=name
        )
    for row, value in enumerate(values):
        if value is not None and type(value) not in (int, float):
            raise EvidenceError(f"{shown(value)} is not a number{_unquoted(value)}", variable=name, row=row)
    return np.array([np.nan if value is None else as_float(value) for value in values])


def _together(variable: Variable, by_name: Mapping[str, Floats]) -> DensityColumn:
    """The columns of a continuous variable, of which some may have one number for all rows, or none."""
    parts = [by_name.get(name, np.full(1, np.nan)) for name in variable.columns]
    return DensityColumn(variable, np.stack(np.broadcast_arrays(*parts), axis=1))


def _pair(variable: Variable, first: float) -> str:
    """The likelihoods of two states by that of the first one, as JSON has them."""
    return f": [{first:g}, {1 - first:g}]" if variable.card == 2 else ""


def _unquoted(value: Any) -> str:
    """How a number is sent, where some text spells one."""
    number = spelled_number(value) if isinstance(value, str) else None
    return "" if number is None or not math.isfinite(number) else f"; send it without quotes: {json.dumps(number)}"


def _codes(variable: Variable, values: Sequence[Any]) -> Codes | None:
    """The states of labels spelled exactly, with gaps, as most requests have them; None for anything else."""
    places: dict[Any, int] = variable.codes
    codes = [places.get(value, UNKNOWN) if type(value) is str else UNKNOWN if value is not None else MISSING
             for value in values]  # fmt: skip
    if UNKNOWN in codes or max(codes) == MISSING:
        return None
    return np.array(codes, dtype=smallest(variable.card))


def _typed(variable: Variable, values: Sequence[Any]) -> list[Any]:
    """Values as Python has them, since JSON says less of numbers and has objects in place of lists."""
    spelled = {} if variable.numeric else numbers_spelled(variable)
    is_likelihood = variable.card == 2 and not variable.numeric  # of the first state, where no label spells a number

    def typed(value: Any, row: int) -> Any:
        if isinstance(value, list | dict):
            return _likelihoods(variable, value, row)
        if type(value) not in (int, float):
            if variable.bins is not None and value not in variable.codes and (unquoted := _unquoted(value)):
                raise error_in_row(variable, row, f"{shown(value)} is not a number{unquoted}")
            return value
        if variable.numeric and variable.bins is None and 0 < value < 1 and value not in variable.codes:
            likelihoods = f"; for a likelihood, give one for each state{_pair(variable, value)}"
            problem = f"{shown(value)} is not a state; expected one of {listed_states(variable)}{likelihoods}"
            raise error_in_row(variable, row, problem)
        if not spelled:
            return float(value) if is_likelihood and 0 <= value <= 1 else value
        if spelled.get(value) is None:  # no likelihood either: 0.9 would be of one state, 1 the other
            problem = (
                f"{shown(value)} is not a state; expected one of {listed_states(variable)} (its labels are "
                "numbers; give a likelihood for each state)"
            )
            raise error_in_row(variable, row, problem)
        return spelled[value]

    return [typed(value, row) for row, value in enumerate(values)]


def _likelihoods(variable: Variable, value: list[Any] | dict[str, Any], row: int) -> list[Any]:
    """One likelihood for each state, from a list or by the names of the states."""
    numbers: list[Any] | None = value if isinstance(value, list) else None
    why = ""
    if isinstance(value, dict):
        names = list(map(state_key, variable.states))
        why = wrong_states(names, value)
        numbers = None if why else [value[name] for name in names]
    if numbers is None or not all(type(number) in (int, float) for number in numbers):
        problem = f"{shown(value)} is not one likelihood per state ({listed_states(variable)}){why}"
        raise error_in_row(variable, row, problem)
    return numbers


def state_key(state: Label) -> str:
    """A state as the key of an object in JSON: text as it is, numbers and booleans as JSON writes them."""
    return state if isinstance(state, str) else json.dumps(state)

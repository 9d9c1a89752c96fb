"""Tables that rows of evidence bring along: `T.table`, (rows, *shape of the table of T)."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TableError, TacitError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.column import Column, Evidence
from tacit.evidence.frames import as_array, column_index, frame_index
from tacit.evidence.read import EvidenceLike, named_columns, without_columns
from tacit.evidence.records import is_one_row, is_records
from tacit.model.cpt import CPT
from tacit.model.elements.distributions import EPSILON, distributions
from tacit.model.elements.variable import Variable, describe, row_table, state_column
from tacit.model.model import Model

CACHED_ENTRIES = 2**15  # of tables, which stay in the cache while they are checked


def check_per_row(net: Model, names: Iterable[str], do: Sequence[str]) -> None:
    """An error where rows cannot bring tables of some nodes along."""
    for name in names:
        cpt, column = net.cpt(name), row_table(name)
        if not isinstance(cpt, CPT):
            what = "is continuous" if net.variable(name).continuous else f"has a {type(cpt).__name__}"
            raise TacitError(f"per_row names {name!r}, which {what}; rows can bring along tables of plain CPTs only")
        if name in do:
            problem = "is in do=, so that its table does not count"
            raise TacitError(f"per_row names {name!r}, which {problem}; leave it out of one of them")
        if column in net or column in [state_column(name, state) for state in net.states(name)]:
            other = "a variable" if column in net else "a column of likelihoods of a state"
            raise TacitError(f"per_row names {name!r}, and {column!r}, the column of its tables, would also be {other}")


class RowTables:
    """How the columns of tables of some nodes are read."""

    def __init__(self, net: Model, names: Iterable[str]) -> None:
        self._families = {name: [*map(net.variable, net.parents(name)), net.variable(name)] for name in names}
        entries = {name: range(math.prod(v.card for v in family)) for name, family in self._families.items()}
        self._variables = {name: Variable(row_table(name), tuple(own)) for name, own in entries.items()}

    def split(self, evidence: EvidenceLike | None, keep: bool) -> tuple[EvidenceLike | None, dict[str, Column]]:
        """Evidence without tables, and these as columns; copies, if they are to be kept."""
        columns = {} if evidence is None else named_columns(evidence) or {}
        tables = {}
        for name in self._families:
            column = row_table(name)
            if column not in columns:
                problem = f"there is no table of {name!r}, which the query was compiled to have in every row (per_row=)"
                raise EvidenceError(f"{problem}; give it as {column!r}, of shape {self._expected(name)}")
            index = frame_index(evidence)
            try:
                tables[column] = self._column(name, columns[column], keep)
            except EvidenceError as error:
                raise error.indexed(column_index(columns[column]) if index is None else index) from None
        return _without(evidence, tables), tables

    def _column(self, name: str, values: Any, keep: bool) -> Column:
        variable = self._variables[name]
        if isinstance(values, Column):
            if values.variable != variable:
                raise EvidenceError(f" was read for another shape, expected {self._expected(name)}", subject=_of(name))
            return values
        shape = tuple(v.card for v in self._families[name])
        given = _numbers(name, values)
        if given.shape == shape:  # the same for all rows
            given = given[None]
        if given.shape[1:] != shape:
            problem = f" has shape {given.shape}, expected {self._expected(name)}"
            raise EvidenceError(problem, subject=_of(name))
        tables = self._checked(name, given)
        if keep and np.may_share_memory(tables, np.asarray(values)):
            tables = tables.copy()
        return TableColumn(variable, soft=tables.reshape(len(tables), variable.card).T)

    def _checked(self, name: str, given: Floats) -> Floats:
        """Tables whose rows are distributions; what misses 1 by rounding is scaled, as in a CPT."""
        if _quickly_checked(given):
            return given
        if np.isnan(given).any():
            row = int(np.isnan(given.reshape(len(given), -1)).any(axis=1).argmax())
            raise EvidenceError("holds NaN; a number is needed everywhere", subject=_of(name), row=row)
        try:
            return distributions(given, "table")
        except TableError as error:
            row, *_ = error.row
        try:
            distributions(given[row], "table")  # which knows a table by itself, and may tell what it is
        except TableError as error:
            where = f"{describe(self._families[name][:-1], error.row)}: " if error.row else ""
            raise EvidenceError(f"{where}{error.problem}", subject=_of(name), row=row) from None
        raise AssertionError("a table that is wrong among others is wrong by itself")

    def _expected(self, name: str) -> str:
        cards = (v.card for v in self._families[name])
        axes = ", ".join(["rows", *(f"states of {v.name}" for v in self._families[name])])
        return f"(rows, {', '.join(map(str, cards))}) = ({axes})"


class TableColumn(Column):
    """Tables as they came, (entries, rows) of any strides; arrays of some rows are made as engines want them."""

    def take(self, rows: NDArray[np.int64] | slice) -> Column:
        taken = super().take(rows)
        return taken if taken is self else TableColumn(self.variable, soft=taken.soft)

    def likelihoods(self) -> Floats:
        return np.ascontiguousarray(super().likelihoods())


def with_tables(known: Evidence, tables: Mapping[str, Column], others: EvidenceLike | None) -> Evidence:
    """What is `known` of the `others`, and the columns of tables; an error where they have other numbers of rows."""
    rows = None if known.rows == 1 and (others is None or isinstance(others, Mapping)) else known.rows
    for name, column in tables.items():
        if column.rows == 1:
            continue
        if rows is not None and column.rows != rows:
            problem = f"has {plural(column.rows, 'row')}, other columns have {rows:,}"
            raise EvidenceError(f" {problem}", subject=f"the column {name!r}")
        rows = column.rows
    return Evidence(1 if rows is None else rows, {**known.columns, **tables})


def _of(name: str) -> str:
    return f"the table of {name!r}"


def _quickly_checked(tables: Floats) -> bool:
    """Whether the rows of all tables are distributions but for rounding, found out while they are in the cache."""
    rounding = (8 + tables.shape[-1]) * EPSILON
    step = max(1, CACHED_ENTRIES // max(1, tables[:1].size))
    for start in range(0, len(tables), step):
        some = tables[start : start + step]
        total = reduce(np.add, np.moveaxis(some, -1, 0))
        if not (some.min() >= 0 and np.abs(total - 1).max() <= rounding):  # NaN fails here
            return False
    return True


def _numbers(name: str, values: Any) -> Floats:
    """Tables as one array of floats; those of frames are objects, one for each row."""
    try:
        array = as_array(values)
        if array.dtype == object:
            array = np.array([_plain(table) for table in array], dtype=np.float64)
        if array.dtype.kind not in "fiub":
            raise ValueError(f"it has type {array.dtype}")
        return array.astype(np.float64, order="C", copy=False)
    except (TypeError, ValueError) as error:
        raise EvidenceError(f" is not an array of numbers: {error}", subject=_of(name)) from None


def _plain(table: Any) -> Any:
    """Arrays of arrays, as frames hold them, as lists of lists."""
    return [_plain(part) for part in table] if isinstance(table, np.ndarray | list | tuple) else table


def _without(evidence: EvidenceLike | None, names: Collection[str]) -> EvidenceLike | None:
    """Evidence without some of its columns; None if nothing is left."""
    if not isinstance(evidence, Evidence) and set(named_columns(evidence) or ()) <= set(names):
        return None
    if isinstance(evidence, Evidence):
        return Evidence(evidence.rows, {name: own for name, own in evidence.columns.items() if name not in names})
    if isinstance(evidence, list | tuple) and is_records(evidence):
        return [{name: value for name, value in row.items() if name not in names} for row in evidence]
    if is_one_row(evidence):
        return without_columns(named_columns(evidence), names)
    return without_columns(evidence, names)

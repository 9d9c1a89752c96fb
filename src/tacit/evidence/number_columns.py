"""Columns of numbers of continuous variables, from containers of any kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.frames import Coded, ConversionError, Plain, TextColumn, column_index, opened
from tacit.evidence.intervals import is_number
from tacit.evidence.labels import is_missing
from tacit.evidence.numbers import as_float
from tacit.evidence.wrong_values import no_numbers
from tacit.model.elements.variable import Variable


def columns_together(columns: Mapping[Any, Any], variables: Iterable[Variable]) -> dict[Any, Any]:
    """Columns of a table, where those of a variable of several columns are one, by the name of the variable."""
    together = dict(columns)
    for variable in variables:
        if len(variable.columns) > 1 and any(name in together for name in variable.columns):
            together[variable.name] = {name: together.pop(name, None) for name in variable.columns}
    return together


def read_numbers(variable: Variable, values: Any, index: Any) -> tuple[DensityColumn | None, bool]:
    """The numbers of a continuous variable, None without any, and whether they are a single row that holds for all."""
    if len(variable.columns) == 1:
        parts = {variable.name: values}
    elif isinstance(values, Mapping):
        parts = {name: values.get(name) for name in variable.columns}
    else:
        table = np.asarray(values)
        if table.ndim not in (1, 2) or table.shape[-1] != len(variable.columns):
            expected = f"(rows, {len(variable.columns)}), one column each for {', '.join(variable.columns)}"
            raise EvidenceError(f" has shape {table.shape}, expected {expected}", variable=variable.name)
        parts = {name: table[..., i] for i, name in enumerate(variable.columns)}
    if index is None:
        index = next((own for part in parts.values() if (own := column_index(part)) is not None), None)
    try:
        columns = [_floats(name, part) for name, part in parts.items()]
    except EvidenceError as error:
        raise error.indexed(index) from None
    single = all(column.ndim == 0 for column in columns)
    if single and all(np.isnan(column) for column in columns):
        return None, True
    rows = max((len(column) for column in columns if column.ndim), default=1)
    for name, column in zip(parts, columns, strict=True):
        if column.ndim and len(column) != rows:
            raise EvidenceError(f" has {len(column):,} rows, the columns beside it have {rows:,}", variable=name)
    if len(columns) == 1:
        numbers = columns[0].reshape(rows, 1)
    else:
        numbers = np.stack([np.broadcast_to(column, rows) for column in columns], axis=1)
    result = DensityColumn(variable, numbers)
    result.index = index
    return result, single


def _floats(name: str, values: Any) -> Floats:
    """The numbers of one column (rows,), or a single one (), NaN where they are missing."""
    if values is None:
        return np.array(np.nan)
    try:
        column = opened(values)
    except ConversionError as error:
        raise EvidenceError(str(error), variable=name) from None
    if isinstance(column, Coded):
        column = column.plain()
    if not isinstance(column, Plain):
        return _checked(name, np.full(len(column.places), np.nan), _of_text(column))
    array, missing = column.values, column.missing
    if array.ndim == 2 and array.shape[1] == 1:
        array, missing = array[:, 0], None if missing is None else missing[:, 0]
    if array.ndim > 1:
        raise EvidenceError(f" has shape {array.shape}, expected one number per row", variable=name)
    if array.dtype.kind not in "fiu":
        return _of_objects(name, array.astype(object), missing)
    numbers = array.astype(np.float64, copy=False)
    if missing is not None and missing.any():
        numbers = np.where(missing, np.nan, numbers)
    return numbers


def _of_objects(name: str, array: Any, missing: Any) -> Floats:
    """Python's own objects as floats; what is not a number is an error that names all such values."""
    flat, gaps = np.atleast_1d(array), None if missing is None else np.atleast_1d(missing)
    numbers, wrong = np.full(len(flat), np.nan), dict[int, Any]()
    for row, value in enumerate(flat.tolist()):
        if is_missing(value) or (gaps is not None and gaps[row]):
            continue
        if is_number(value) or (hasattr(value, "__float__") and not isinstance(value, bool | np.bool_)):
            numbers[row] = as_float(value)
        else:
            wrong[row] = value
    return _checked(name, numbers, wrong).reshape(np.shape(array))


def _of_text(column: TextColumn) -> dict[int, str]:
    """The texts of a column by their rows."""
    labels = {row: column.labels[place] for row, place in enumerate(column.places.tolist()) if place >= 0}
    return {row: label for row, label in labels.items() if label is not None}


def _checked(name: str, numbers: Floats, wrong: Mapping[int, Any]) -> Floats:
    """The numbers of a column, if all its values are some."""
    if wrong:
        present = int(np.count_nonzero(~np.isnan(numbers))) + len(wrong)
        raise no_numbers(name, list(wrong.values()), np.array(list(wrong), dtype=np.intp), present)
    return numbers

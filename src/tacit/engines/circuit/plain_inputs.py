"""The inputs of a circuit whose variables have no states: plain numbers, as a neural network takes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.evidence.column import Column, Evidence
from tacit.model.variable import Variable, similar


def read_numbers(values: Any, variables: Sequence[Variable]) -> Evidence:
    """Check a 2-D array with a column per variable, or a mapping from their names to columns."""
    names = [v.name for v in variables]
    table = _table(values, names) if isinstance(values, Mapping) else _floats(values, "the inputs")
    if table.ndim != 2 or table.shape[1] != len(names):
        raise EvidenceError(f"the inputs have shape {table.shape}, expected (rows, {len(names)}): {_some(names)}")
    if not len(table):
        raise EvidenceError("the inputs have no rows; expected at least one")
    for row, i in np.argwhere(~np.isfinite(table))[:1].tolist():
        raise EvidenceError(f"input {names[i]!r}, row {row}: {table[row, i]:g} is not a finite number")
    columns = np.ascontiguousarray(table.T)
    return Evidence(len(table), {v.name: Column(v, soft=columns[i : i + 1]) for i, v in enumerate(variables)})


def _table(values: Mapping[str, Any], names: Sequence[str]) -> Floats:
    for name in values:
        if name not in names:
            raise EvidenceError(f"{name!r} is not an input of the circuit{similar(name, names)}")
    for name in names:
        if name not in values:
            raise EvidenceError(f"there is no number for input {name!r}, which is needed in every row")
    columns = [np.atleast_1d(_floats(values[name], f"input {name!r}")) for name in names]
    rows = max(len(column) for column in columns)
    for name, column in zip(names, columns, strict=True):
        if column.ndim > 1 or len(column) not in (1, rows):
            raise EvidenceError(f"input {name!r} has shape {column.shape}, expected {plural(rows, 'row')}")
    return np.column_stack(np.broadcast_arrays(*columns))


def _floats(values: Any, what: str) -> Floats:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise EvidenceError(f"{what}: expected numbers, got {type(values).__name__}") from None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (", ..." if len(names) > 6 else "")

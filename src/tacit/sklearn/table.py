"""X as a list of columns: numbers as floats, all else as text, after scikit-learn's checks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, validate_data

from tacit.containers import Text, unpack
from tacit.sklearn.columns import Values

NOTHING = ("NAType", "NaTType")  # of pandas


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of the same length."""

    columns: Sequence[Values]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.columns[0]), len(self.columns)

    @property
    def holes(self) -> bool:
        """Whether some values are missing."""
        return any((None in column) if column.dtype == object else np.isnan(column).any() for column in self.columns)

    def take(self, rows: NDArray[np.int64]) -> Table:
        """Some of the rows."""
        return Table([column[rows] for column in self.columns])


def read_table(estimator: Any, X: Any, reset: bool) -> Table:
    """The columns of a frame or of an array."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if min(X.shape) == 0:  # let scikit-learn say so
            validate_data(estimator, X, reset=False, dtype=None)
        return Table([_finite(_from_frame(X[name]), name) for name in X.columns])
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    if X.dtype.kind in "iufb":
        return Table(list(np.ascontiguousarray(X.T, dtype=np.float64)))
    return Table([_finite(_from_objects(column), i) for i, column in enumerate(X.T)])


def _finite(column: Values, name: Any) -> Values:
    if column.dtype != object:
        assert_all_finite(column, allow_nan=True, input_name=f"column {name!r} of X")
    return column


def _from_frame(column: Any) -> Values:
    opened = unpack(column)
    if isinstance(opened, Text):
        labels = np.array([None if _missing(label) else str(label) for label in (*opened.labels, None)], dtype=object)
        return np.asarray(labels[opened.places])  # -1 is the last one
    values = opened.values
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
        return numbers if opened.missing is None else np.where(opened.missing, np.nan, numbers)
    found = values.astype(object)
    if opened.missing is not None:
        found[opened.missing] = None
    return _from_objects(found)


def _from_objects(column: Values) -> Values:
    """Objects as floats if all of them are numbers, else as text."""
    values = [None if _missing(value) else value for value in column.tolist()]
    if not any(isinstance(value, str) for value in values):
        return np.array([math.nan if value is None else float(value) for value in values])
    return np.array([None if value is None else str(value) for value in values] + [None], dtype=object)[:-1]


def _missing(value: Any) -> bool:
    """None, NaN, and what frame libraries write for them."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in NOTHING

"""X after scikit-learn's checks: columns of floats and of text, or an array of numbers; errors name other columns."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, validate_data

from tacit.base.floats import Floats
from tacit.base.text import short
from tacit.evidence.frames import TextColumn, unpack
from tacit.sklearn.levels import Values

MISSING_TYPES = ("NAType", "NaTType")  # of pandas
TIME_TYPES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)
NUMBERS = "every argument must be a number, or a string that spells a number"  # as scikit-learn's own checks expect it
NUMBERS_OR_TEXT = "expected numbers or text"


@dataclass(frozen=True, eq=False)
class FeatureTable:
    """Columns of the same length."""

    columns: Sequence[Values]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns[0]), len(self.columns)

    @property
    def holes(self) -> bool:
        return any((None in column) if column.dtype == object else np.isnan(column).any() for column in self.columns)

    def take(self, rows: NDArray[np.int64]) -> FeatureTable:
        return FeatureTable([column[rows] for column in self.columns])

    def without_each(self, places: Sequence[int]) -> FeatureTable:
        """Its first row, and that row without each of some columns."""
        columns = [np.repeat(column[:1], 1 + len(places)) for column in self.columns]
        for row, place in enumerate(places, start=1):
            columns[place][row] = None if columns[place].dtype == object else math.nan
        return FeatureTable(columns)


def read_table(estimator: Any, X: Any, reset: bool) -> FeatureTable:
    """The columns of a frame or of an array."""
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if min(X.shape) == 0:  # let scikit-learn say so
            validate_data(estimator, X, reset=False, dtype=None)
        numbers = _numbers_at_once(X)
        if numbers is not None:
            return FeatureTable(list(numbers))
        return FeatureTable([_finite(_from_frame(X[name], name), name) for name in X.columns])
    X = validate_data(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
    if X.dtype.kind in "iufb":
        return FeatureTable(list(np.ascontiguousarray(X.T, dtype=np.float64)))
    return FeatureTable([_finite(_from_objects(column, i, column.dtype), i) for i, column in enumerate(X.T)])


def read_numbers(estimator: Any, X: Any, reset: bool) -> Floats:
    """A frame or an array of numbers, as an array of floats."""
    for name, dtype, column in _columns(X):
        _refuse_times(name, dtype, column, NUMBERS)
    try:
        numbers: Floats = validate_data(estimator, X, reset=reset, dtype=np.float64, ensure_all_finite="allow-nan")
    except (TypeError, ValueError) as error:
        if (refusal := _no_numbers(X)) is None:
            raise
        raise type(error)(refusal) from None
    return numbers


def _numbers_at_once(X: Any) -> Floats | None:
    """The columns of a frame of finite numbers (columns, rows): faster than one by one."""
    dtypes = list(getattr(X, "dtypes", [None]))  # of which pandas has some with missing values of their own
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "iufb" for dtype in dtypes) or not hasattr(X, "to_numpy"):
        return None
    numbers = np.array(X.to_numpy(dtype=np.float64).T, order="C")
    return None if np.isinf(numbers).any() else numbers


def _finite(column: Values, name: Any) -> Values:
    if column.dtype != object:
        assert_all_finite(column, allow_nan=True, input_name=f"column {name!r} of X")
    return column


def _columns(X: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The columns of a frame or of an array, with their names and types; not those of several with one name."""
    if hasattr(X, "columns") and hasattr(X, "dtypes"):
        columns = [(name, X[name]) for name in X.columns]
        yield from ((name, column.dtype, column) for name, column in columns if hasattr(column, "dtype"))
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        yield from ((i, X.dtype, column) for i, column in enumerate(X.T))


def _refuse_times(name: Any, dtype: Any, column: Any, expected: str) -> None:
    """An error if a column holds dates or times, of which NumPy would make a number of nanoseconds."""
    first = np.asarray(column[:1])
    if first.size and getattr(dtype, "kind", first.dtype.kind) in ("m", "M"):  # as pandas says, too; polars does not
        raise TypeError(_refusal(name, dtype, first[0], expected))


def _no_numbers(X: Any) -> str | None:
    """The error text for the first column that is not made of numbers; complex ones are left to scikit-learn."""
    for name, dtype, column in _columns(X):
        for value in np.asarray(column, dtype=object):
            try:
                float(math.nan if missing(value) or isinstance(value, complex) else value)
            except (TypeError, ValueError):
                return _refusal(name, dtype, value, NUMBERS)
    return None


def _refusal(name: Any, dtype: Any, value: Any, expected: str) -> str:
    """The error text for a column that holds a value of another kind, with a remedy."""
    shown = repr(value)
    remedy = "give text, if it is a category" if expected == NUMBERS_OR_TEXT else "leave the column out"
    if isinstance(value, TIME_TYPES) or type(value).__name__ in ("Period", *MISSING_TYPES):
        shown, remedy = str(value), "give the days since a date, or the month"
    elif isinstance(value, str):
        remedy = "scikit-learn's OneHotEncoder makes numbers of text"
    return f"column {name!r} of X has dtype {dtype} and holds {short(shown, 60)}; {expected}: {remedy}"


def _from_frame(column: Any, name: Any) -> Values:
    _refuse_times(name, column.dtype, column, NUMBERS_OR_TEXT)
    opened = unpack(column)
    if isinstance(opened, TextColumn):
        labels = np.array([None if missing(label) else str(label) for label in (*opened.labels, None)], dtype=object)
        return np.asarray(labels[opened.places])  # -1 is the last one
    values = opened.values
    if values.dtype.kind in "iufb":
        numbers = values.astype(np.float64)
        return numbers if opened.missing is None else np.where(opened.missing, np.nan, numbers)
    objects = values.astype(object)
    if opened.missing is not None:
        objects[opened.missing] = None
    return _from_objects(objects, name, column.dtype)


def _from_objects(column: Values, name: Any, dtype: Any) -> Values:
    """Objects as floats if all of them are numbers, else as text."""
    _refuse_times(name, dtype, column, NUMBERS_OR_TEXT)
    values = [None if missing(value) else value for value in column.tolist()]
    if not any(isinstance(value, str) for value in values):
        return np.array([math.nan if value is None else _number(value, name, dtype) for value in values])
    return np.array([None if value is None else str(value) for value in values] + [None], dtype=object)[:-1]


def _number(value: Any, name: Any, dtype: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(_refusal(name, dtype, value, NUMBERS_OR_TEXT)) from None


def missing(value: Any) -> bool:
    """None, NaN, and what frame libraries write for them."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in MISSING_TYPES

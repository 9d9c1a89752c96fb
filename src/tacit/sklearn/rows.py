"""Single rows of a table, as users have them, and tables made of the values of two."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _num_samples

from tacit.base.errors import EvidenceError
from tacit.evidence.frames import as_array
from tacit.evidence.records import is_one_row
from tacit.sklearn.table import FeatureTable


def as_one_row(X: Any, what: str = "explain") -> Any:
    """A table of one row, also from a row alone: a Series of pandas, or an array (columns,)."""
    if is_one_row(X):
        return X.to_frame().T.infer_objects()
    if isinstance(X, np.ndarray) and X.ndim == 1:
        return X[None]
    if (rows := _num_samples(X)) != 1:
        raise EvidenceError(f"{what} takes one row, got {rows:,}; give X[:1], or X.iloc[0] of a frame")
    return X


def row_values(X: Any, row: int = 0) -> list[Any]:
    """The values of a row of X, as Python's own."""
    if isinstance(X, FeatureTable):
        values = [column[row] for column in X.columns]
    elif hasattr(X, "columns"):
        values = [as_array(X[name])[row] for name in X.columns]
    else:
        values = list(X[row])
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def stacked(first: Any, second: Any) -> Any:
    """Two tables of one row as one of two rows: of pandas, or an array. An array has the columns of a frame."""
    named = [row.columns for row in (first, second) if hasattr(row, "columns")]
    counts = [np.shape(row)[1] for row in (first, second)]
    if len(named) < 2 and counts[0] != counts[1]:
        raise EvidenceError(f"the two rows have {counts[0]} and {counts[1]} columns, expected as many in both")
    if not named:
        return np.concatenate([np.asarray(first), np.asarray(second)])
    import pandas as pd

    one, two = (_as_frame(row, named[0]) for row in (first, second))
    if list(one.columns) != list(two.columns):
        raise EvidenceError(f"the two rows have different columns, {list(one.columns)} and {list(two.columns)}")
    kinds = {name: one[name].dtype if one[name].dtype == two[name].dtype else None for name in one.columns}
    return pd.DataFrame({n: pd.Series([one[n].iloc[0], two[n].iloc[0]], dtype=kind) for n, kind in kinds.items()})


def _as_frame(X: Any, columns: Any) -> Any:
    """A row as a frame of pandas."""
    import pandas as pd

    if not hasattr(X, "columns"):
        return pd.DataFrame(np.asarray(X, dtype=object), columns=columns).infer_objects()
    return X if isinstance(X, pd.DataFrame) else X.to_pandas()


def mixed(pair: Any, picks: NDArray[np.intp]) -> Any:
    """Rows made of two: which of them each column is from, (rows, columns)."""
    if isinstance(pair, np.ndarray):
        return pair[picks, np.arange(picks.shape[1])]
    return type(pair)({name: pair[name].array.take(picks[:, i]) for i, name in enumerate(pair.columns)})

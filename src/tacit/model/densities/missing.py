"""Rows with the same columns missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats

MOST = 2**62  # codes that can be doubled


def patterns(values: Floats) -> Iterator[tuple[NDArray[np.intp], slice | NDArray[np.intp]]]:
    """The columns that are observed, and the rows in which exactly these are, for each such choice of columns."""
    missing = np.isnan(values)
    if not missing.any():
        yield np.arange(values.shape[1]), slice(None)
        return
    codes = _codes(missing)
    order = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
    for rows in np.split(order, starts[1:]):
        yield np.flatnonzero(~missing[rows[0]]), rows


def _codes(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """A number for each row (rows,), the same for rows with the same columns missing."""
    codes = np.zeros(len(missing), dtype=np.int64)
    for column in missing.T:
        if codes.max(initial=0) >= MOST:
            codes = np.unique(codes, return_inverse=True)[1]
        codes = 2 * codes + column
    return codes

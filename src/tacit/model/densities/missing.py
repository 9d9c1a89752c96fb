"""Rows with the same columns missing."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats


def patterns(values: Floats) -> Iterator[tuple[NDArray[np.intp], slice | NDArray[np.intp]]]:
    """The columns that are observed, and the rows in which exactly these are, for each such choice of columns."""
    missing = np.isnan(values)
    if not missing.any():
        yield np.arange(values.shape[1]), slice(None)
        return
    kinds, codes = np.unique(missing, axis=0, return_inverse=True)
    for code, kind in enumerate(kinds):
        yield np.flatnonzero(~kind), np.flatnonzero(codes.ravel() == code)

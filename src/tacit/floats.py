"""Arrays of floats, and what NumPy says about their limits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@contextmanager
def noting_underflow() -> Iterator[list[str]]:
    """A list that is no longer empty when NumPy has made a number too small for its type, as casts to float32 do."""
    noted: list[str] = []
    with np.errstate(under="call", call=lambda kind, flag: noted.append(kind)):
        yield noted

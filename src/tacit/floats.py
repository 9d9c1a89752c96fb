"""What NumPy says about the limits of floats."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def noting_underflow() -> Iterator[list[str]]:
    """A list that is no longer empty when NumPy has made a number too small for its type, as casts to float32 do."""
    noted: list[str] = []
    with np.errstate(under="call", call=lambda kind, flag: noted.append(kind)):
        yield noted

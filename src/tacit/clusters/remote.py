"""Things that are sent to worker processes with every task, and unpacked once by each of them."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

MAX_UNPACKED = 8  # things that a process holds: one for every query or training that goes on at the same time


class Remote(Generic[T]):
    """A thing and its pickle. Tasks carry the pickle; all those of a process share one copy of the thing.

    So a compiled query builds its engine once per process, on first use, however many partitions there are.

    >>> query = Remote({"any": "thing"})
    >>> query.get() is pickle.loads(pickle.dumps(query)).get()
    True
    """

    def __init__(self, thing: T) -> None:
        self._packed = pickle.dumps(thing, protocol=5)

    def get(self) -> T:
        """The copy of this process."""
        return cast(T, _unpacked(self._packed))


@lru_cache(maxsize=MAX_UNPACKED)
def _unpacked(packed: bytes) -> Any:
    return pickle.loads(packed)

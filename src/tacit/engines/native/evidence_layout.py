"""Columns of evidence as generated code reads them: a reader, an address and distances for each."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.native.readers import COLUMN, FEW_STATES, STRIDE
from tacit.evidence.column import Column, Kind

WHAT = {Kind.LIKELIHOODS: "likelihoods", Kind.FIRST: "first_state", Kind.NORMALISED: "normalised", Kind.CODES: "codes"}
TYPES = {"f8": "double", "f4": "float", "i1": "i8", "i2": "i16", "i4": "i32"}
Find = Callable[[str, str, int, int], int]  # the address of a reader: see `reader_text`


class Described:
    """All columns that a tape reads, in the form that its code takes, and what must stay in memory meanwhile."""

    def __init__(self, find: Find, bits: int) -> None:
        self._find, self._bits = find, bits
        self._rows: list[list[int]] = []
        self._kept: list[NDArray[Any]] = []
        self._place = 0

    @cached_property
    def table(self) -> NDArray[np.int64]:
        """A row for each column, see `readers.COLUMN`; to be asked for after all of them are there."""
        return np.array(self._rows, dtype=np.int64).reshape(-1, len(COLUMN))

    @cached_property
    def address(self) -> int:
        """Where the table is in memory."""
        return int(self.table.__array_interface__["data"][0])

    def likelihoods(self, column: Column | None, states: int) -> None:
        """The next variable that takes likelihoods; without a column, it has no evidence."""
        if column is None:
            kind, array = Kind.NORMALISED, np.ones((states, 1))
        else:
            kind, array = column.source()
        self._add(WHAT[kind], array, states, self._bits // 8 * states, state_axis=0 if kind is Kind.NORMALISED else 1)

    def states(self, codes: NDArray[Any]) -> None:
        """The next variable that has a state in every row; after all that take likelihoods."""
        self._add("states", codes, 1, 4, state_axis=1)

    def array(self, likelihoods: NDArray[Any]) -> None:
        """Variables whose likelihoods are (states, rows) in one array."""
        self._add("normalised", likelihoods, len(likelihoods), self._bits // 8 * len(likelihoods), state_axis=0)

    def move_to(self, place: int) -> None:
        """Go on at another place of the tile, in bytes."""
        self._place = place

    def _add(self, what: str, array: NDArray[Any], states: int, size: int, state_axis: int) -> None:
        array = _readable(array, states)
        kind = TYPES[array.dtype.str[1:]]
        row_axis = array.ndim - 1 if state_axis == 0 else 0
        rows = array.shape[row_axis]
        row_stride = array.strides[row_axis] if rows > 1 else 0
        state_stride = array.strides[state_axis] if array.ndim == 2 else 0
        address = array.__array_interface__["data"][0]
        plain = array.flags.c_contiguous and array.flags.aligned
        few = states if what == "likelihoods" and states <= FEW_STATES and plain else 0
        reader = self._find(what, kind, self._bits, few)
        self._rows.append([reader, address, row_stride, state_stride, states, self._place])
        self._kept.append(array)
        self._place += size * STRIDE


def _readable(array: NDArray[Any], states: int) -> NDArray[Any]:
    """An array of a type that there are readers for, and that holds the place of every state."""
    if array.dtype.kind in "iu":
        kept = array.dtype in (np.int8, np.int16, np.int32) and array.dtype.isnative
        return array if kept and states - 1 <= np.iinfo(array.dtype).max else array.astype(np.int32)
    if array.dtype in (np.float64, np.float32) and array.dtype.isnative:
        return array
    return array.astype(np.float64)

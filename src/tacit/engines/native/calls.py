"""Calls of generated code: the evidence that it reads, what one thread works in, and the arguments of a call."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.engines.native.llvm import Code
from tacit.engines.native.readers import MAX_UNROLLED_STATES, TILE_STRIDE
from tacit.engines.native.tile_loop import CALL, TileLayout
from tacit.engines.tape.tape import Tape
from tacit.evidence.column import Column, Kind
from tacit.evidence.density_column import DensityColumn

READERS = {kind: kind.name.lower() for kind in Kind}
# the types that there are readers for, and how many states they can tell apart
TYPES: dict[np.dtype[Any], tuple[str, float]] = {
    np.dtype(np.float64): ("double", math.inf),
    np.dtype(np.float32): ("float", math.inf),
    np.dtype(np.int8): ("i8", 2**7),
    np.dtype(np.int16): ("i16", 2**15),
    np.dtype(np.int32): ("i32", 2**31),
}
FindReader = Callable[[str, str, int, int], int]  # the address of a reader: see `reader_text`
CACHE_LINE_BYTES = 64
Argument = NDArray[Any] | int


class EvidenceTable:
    """All columns that a tape reads, in the form that its code takes, and the arrays that must stay in memory."""

    def __init__(self, find: FindReader, bits: int) -> None:
        self._find, self._bits = find, bits
        self._numbers = array("q")  # of one column after the other: see `readers.COLUMN`
        self._arrays: list[list[NDArray[Any]]] = []  # of each column
        self.place = 0  # of the next column in a tile, in bytes

    @property
    def arguments(self) -> dict[str, int]:
        return {"columns": len(self._arrays), "table": self._numbers.buffer_info()[0]}

    def add_column(self, column: Column | None, states: int) -> None:
        """The next variable that takes likelihoods; without a column, it has no evidence."""
        kind, given = (Kind.NORMALISED, np.ones((states, 1))) if column is None else column.source()
        self.add(READERS[kind], given, states)

    def add_normal(self, column: DensityColumn) -> None:
        """The next variable, from numbers that have normal densities."""
        assert column.normal_terms is not None
        self.add("densities", column.values[:, 0], len(column.normal_terms), column.normal_terms)

    def add(self, reader: str, given: NDArray[Any], states: int, terms: Floats | None = None) -> None:
        """An array (rows,) or (rows, states), or (states, rows) if it is normalised."""
        given, kind = readable(given, states)
        strides, rows_last = given.strides, reader == "normalised"
        row, state = strides[::-1] if rows_last else (*strides, 0)[:2]
        if given.shape[-1 if rows_last else 0] == 1:
            row = 0
        plain = reader == "likelihoods" and given.flags.c_contiguous and given.flags.aligned
        few = states if (plain or terms is not None) and states <= MAX_UNROLLED_STATES else 0
        address, arrays = self._find(reader, kind, self._bits, few), [given] if terms is None else [given, terms]
        of_terms = 0 if terms is None else address_of(terms)
        self._numbers.extend((address, address_of(given), row, state, states, self.place, of_terms))
        self._arrays.append(arrays)
        self.place += (4 if reader == "states" else self._bits // 8 * states) * TILE_STRIDE


def readable(given: NDArray[Any], states: int) -> tuple[NDArray[Any], str]:
    """An array of a type that there are readers for, and that holds the place of every state; and that type."""
    kind, most = TYPES.get(given.dtype, ("", 0))
    if states <= most:
        return given, kind
    other = given.astype(np.int32 if given.dtype.kind in "iu" else np.float64)
    return other, TYPES[other.dtype][0]


def address_of(given: NDArray[Any]) -> int:
    return int(given.__array_interface__["data"][0])


@dataclass(frozen=True, eq=False)
class Generated:
    """The code of a tape, and how it divides its memory."""

    tape: Tape
    layout: TileLayout
    code: Code
    _free: list[WorkMemory] = field(default_factory=list)  # what threads have worked in, and do not any more

    def run(self, arguments: Mapping[str, int]) -> None:
        """Run the code in memory that no other thread works in; arguments that are not given are 0."""
        with self.memory(arguments) as memory:
            self.code.run(memory.call_address)

    @contextmanager
    def memory(self, arguments: Mapping[str, int]) -> Iterator[WorkMemory]:
        """Memory that no other thread works in, with arguments; those that are not given are 0."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = WorkMemory(self.layout.starts["end"])
        memory.prepare(arguments)
        yield memory
        self._free.append(memory)


class WorkMemory:
    """What one thread works in, and the arguments of its call."""

    def __init__(self, size: int) -> None:
        self._work = np.empty(size + CACHE_LINE_BYTES, dtype=np.uint8)
        self._aligned = -(-address_of(self._work) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        self._arguments = array("q", [0] * len(CALL))
        self.call_address = self._arguments.buffer_info()[0]

    def prepare(self, arguments: Mapping[str, int]) -> None:
        """Set the arguments of the next calls; those that are not given are 0."""
        self._arguments[:] = array("q", [arguments.get(name, 0) for name in CALL])
        self.set("work", self._aligned)

    def set(self, name: str, value: int) -> None:
        self._arguments[CALL.index(name)] = value


def arguments_of(given: Mapping[str, Argument]) -> dict[str, int]:
    """Numbers as they are; of an array, its address, and from one entry of its first axis to the next as `_stride`."""
    arguments: dict[str, int] = {}
    for name, value in given.items():
        if isinstance(value, int):
            arguments[name] = value
        else:
            arguments[name] = address_of(value)
            arguments[f"{name}_stride"] = value.strides[0] // value.itemsize
    return arguments

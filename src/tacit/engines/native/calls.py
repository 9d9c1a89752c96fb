"""Calls of generated code: what one thread works in, and the arguments of a call."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.engines.native.evidence_layout import address_of
from tacit.engines.native.llvm import Code
from tacit.engines.native.tile_loop import CALL, TileLayout
from tacit.engines.tape.tape import Tape

CACHE_LINE_BYTES = 64
Argument = NDArray[Any] | int


@dataclass(frozen=True, eq=False)
class Generated:
    """The code of a tape, and how it divides its memory."""

    tape: Tape
    layout: TileLayout
    code: Code
    _free: list[WorkMemory] = field(default_factory=list)  # what threads have worked in, and do not any more

    def run(self, arguments: Mapping[str, int]) -> None:
        """Run the code in memory that no other thread works in; arguments that are not given are 0."""
        try:
            memory = self._free.pop()
        except IndexError:
            memory = WorkMemory(self.layout.starts["end"])
        memory.prepare(arguments)
        self.code.run(memory.call_address)
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
        """Set one of the arguments."""
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

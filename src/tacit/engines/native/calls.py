"""Calls of generated code: what one thread works in, and the arguments of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.engines.native.llvm import Code, Run
from tacit.engines.native.module import CALL, TileLayout
from tacit.engines.native.readers import TILE
from tacit.engines.results import Array
from tacit.engines.tape.assemble import Tape

CACHE_LINE_BYTES = 64


@dataclass(frozen=True, eq=False)
class Generated:
    """The code of a tape, and how it divides its memory."""

    tape: Tape
    layout: TileLayout
    code: Code
    free: list[WorkMemory] = field(default_factory=list)  # what threads have worked in, and do not any more

    @contextmanager
    def memory(self) -> Iterator[WorkMemory]:
        """WorkMemory to work in."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = WorkMemory(self.layout.starts["end"])
        yield memory
        self.free.append(memory)


class WorkMemory:
    """What one thread works in, and the arguments of its call."""

    def __init__(self, size: int) -> None:
        self._work = np.empty(size + CACHE_LINE_BYTES, dtype=np.uint8)
        self.work = -(-address_of(self._work) // CACHE_LINE_BYTES) * CACHE_LINE_BYTES
        self._arguments = np.empty(len(CALL), dtype=np.int64)
        self.call_address = address_of(self._arguments)

    def prepare(self, arguments: Mapping[str, int]) -> None:
        """Set the arguments of the next calls; what is not said is 0."""
        self._arguments[:] = [arguments.get(name, 0) for name in CALL]

    def set(self, name: str, value: int) -> None:
        """Set one of them."""
        self._arguments[CALL.index(name)] = value

    def call(self, run: Run, arguments: Mapping[str, int]) -> None:
        """Run some code; what is not said is 0."""
        self.prepare(arguments)
        run(self.call_address)


class LossLabels(NamedTuple):
    """What a loss compares with."""

    targets: Floats  # (groups, rows)
    weights: Floats

    @property
    def given(self) -> dict[str, int]:
        """What code is told of them."""
        return {
            "targets": address_of(self.targets),
            "targets_stride": self.targets.shape[1],
            "weights": address_of(self.weights),
        }


class StateShare(NamedTuple):
    """The states whose share of the joint is differentiated, and where the derivatives by the constants go."""

    by_constant: Array  # (constants, rows)
    first: int
    stop: int

    @property
    def given(self) -> dict[str, int]:
        """What code is told of it."""
        return {
            "d_constants": address_of(self.by_constant),
            "d_constants_stride": self.by_constant.shape[1],
            "first_state": self.first,
            "end_state": self.stop,
        }


@dataclass(frozen=True)
class Call:
    """How many rows to run, in tiles of how many, and where what they are given and their results are.

    `sums` has a row for each thread: derivatives by the constants, and a loss.
    """

    rows: int
    tile: int = TILE
    outputs: Array | None = None
    posterior: Array | None = None
    seeds: Array | None = None
    d_inputs: Array | None = None
    sums: Floats | None = None
    labels: LossLabels | None = None
    share: StateShare | None = None

    @property
    def arguments(self) -> dict[str, int]:
        """What is the same for all threads."""
        return {
            "outputs": address_of(self.outputs),
            "outputs_stride": 0 if self.outputs is None else self.outputs.strides[0] // self.outputs.itemsize,
            "posterior": address_of(self.posterior),
            "tile": self.tile,
            "seeds": address_of(self.seeds),
            "seeds_stride": self.rows,
            "d_inputs": address_of(self.d_inputs),
            "d_inputs_stride": self.rows,
            **({} if self.labels is None else self.labels.given),
            **({} if self.share is None else self.share.given),
        }


def address_of(array: NDArray[Any] | None) -> int:
    """Where an array is in memory; 0 for none."""
    return 0 if array is None else int(array.__array_interface__["data"][0])

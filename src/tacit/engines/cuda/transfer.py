"""Evidence on its way to a GPU, and answers on their way back, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import noting_underflow
from tacit.engines.cuda import driver
from tacit.engines.cuda.thread import Given, letter_of
from tacit.engines.native.lanes import Note
from tacit.engines.results import Array
from tacit.evidence.column import Column, Kind

Launch = Callable[..., None]  # of a kernel, given evidence, the number of rows, a stream, and its other arguments


@dataclass(frozen=True)
class Argument:
    """The evidence on a variable on the GPU: where it begins, and the bytes from row to row and from state to state."""

    given: Given
    address: int
    row: int
    state: int

    def after(self, rows: int) -> Argument:
        """The evidence without the first rows."""
        return replace(self, address=self.address + rows * self.row)


class HostColumn:
    """A column of evidence as it is on the host, and as a kernel reads it."""

    def __init__(self, given: Given, array: NDArray[Any], dtype: np.dtype[Any]) -> None:
        self.given, self.array, self.dtype = given, array, dtype
        self.by_state = given.kind is Kind.NORMALISED  # (states, rows); else (rows,) or (rows, states)
        self.once = array.shape[-1 if self.by_state else 0] == 1  # one row speaks for all
        self.row_bytes = max(self.rows(0, 1).size * dtype.itemsize, 1)

    @staticmethod
    def of(column: Column | None, states: int, size: int, dtype: np.dtype[Any]) -> HostColumn:
        """The evidence on a variable of some `size`; `states` is 0 where it points to entries of tables."""
        if column is None:
            return HostColumn(Given(Kind.NORMALISED, states), np.ones((states, 1), dtype=dtype), dtype)
        kind, array = column.source() if states else (Kind.CODES, column.certain_codes())
        if kind is Kind.CODES:
            letter = letter_of(size)
            return HostColumn(Given(kind, states, letter), array, np.dtype(letter))
        return HostColumn(Given(kind, states), array, dtype)

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        """Some rows, or the one that speaks for all."""
        if self.once:
            return self.array
        return self.array[:, start:stop] if self.by_state else self.array[start:stop]

    def too_small(self, start: int, stop: int) -> NDArray[np.bool_]:
        """Where likelihoods of some rows are too small for floats of this type: (rows,)."""
        part = self.rows(start, stop)
        small = (part > 0) & (part < np.finfo(self.dtype).smallest_normal)
        return np.asarray(small.any(axis=0 if self.by_state else 1) if small.ndim == 2 else small)


class BlockBuffers:
    """Memory for the evidence on a block of rows, on the host and on the GPU, and a stream."""

    def __init__(self, device: driver.Device, stream: int, columns: Sequence[HostColumn], block: int) -> None:
        self.stream, self.columns, self.block = stream, columns, block
        self.lost = False  # whether a likelihood was too small for floats on the GPU
        self._starts, self._bytes = [], 0
        for column in columns:
            self._starts.append(self._bytes)
            self._bytes += -(-column.row_bytes * (1 if column.once else block) // 256) * 256
        self._host = driver.DeviceMemory(device, self._bytes, pinned=True)
        self._here = driver.DeviceMemory(device, self._bytes)

    def bring(self, start: int, stop: int) -> list[Argument]:
        """Copy the evidence on some rows to the GPU."""
        arguments, host = [], self._host.array(np.uint8, self._host.size)
        with noting_underflow() as noted:
            for column, first in zip(self.columns, self._starts, strict=True):
                part = column.rows(start, stop)
                copy = host[first : first + part.size * column.dtype.itemsize].view(column.dtype).reshape(part.shape)
                copy[...] = part
                row, state = copy.strides[::-1] if column.by_state else (*copy.strides, 0)[:2]
                arguments.append(Argument(column.given, self._here.address + first, 0 if column.once else row, state))
        self.lost = self.lost or bool(noted)
        if stop > start:
            driver.copy_in(self._here.address, self._host.address, self._bytes, self.stream)
        return arguments


class AnswerBuffers(BlockBuffers):
    """Memory for the answers of a block of rows, too: to be put into `results` (outputs, rows), or (rows, states)."""

    def __init__(
        self,
        device: driver.Device,
        stream: int,
        columns: Sequence[HostColumn],
        block: int,
        results: Array,
        by_row: bool,
    ) -> None:
        super().__init__(device, stream, columns, block)
        self._results, self._by_row = results, by_row
        self._width = results.shape[1 if by_row else 0]
        size = self._width * block * results.itemsize
        self._there, self._back = driver.DeviceMemory(device, size), driver.DeviceMemory(device, size, pinned=True)
        self._notes, self._flag = driver.DeviceMemory(device, block), driver.DeviceMemory(device, 4)
        self._told = driver.DeviceMemory(device, 4, pinned=True)
        self._rows: tuple[int, int] | None = None  # whose answers are on their way

    def give(self, launch: Launch, start: int, stop: int) -> None:
        """Begin to evaluate some rows."""
        self._rows, count, arguments = (start, stop), stop - start, self.bring(start, stop)
        driver.clear(self._flag.address, 4, self.stream)
        posterior, outputs = (self._there.address, 0) if self._by_row else (0, self._there.address)
        places = {"posterior": posterior, "outputs_all": outputs, "outputs_stride": self.block}
        launch(arguments, count, self.stream, **places, notes=self._notes.address, flag=self._flag.address)
        size = self._width * self._results.itemsize * (count if self._by_row else self.block)
        driver.copy_out(self._back.address, self._there.address, size, self.stream)
        driver.copy_out(self._told.address, self._flag.address, 4, self.stream)

    def take(self, notes: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
        """Put the answers where they are wanted, and what was noticed into `notes` (rows,), if anything was."""
        if self._rows is None:
            return notes
        (start, stop), self._rows, results = self._rows, None, self._results
        driver.wait(self.stream)
        if self._by_row:
            results[start:stop] = self._back.array(results.dtype, stop - start, self._width)
        else:
            results[:, start:stop] = self._back.array(results.dtype, self._width, self.block)[:, : stop - start]
        if int(self._told.array(np.int32, 1)[0]) or self.lost:
            if notes is None:
                notes = np.zeros(results.shape[0 if self._by_row else 1], dtype=np.uint8)
            driver.copy_out(notes.ctypes.data + start, self._notes.address, stop - start, self.stream)
            driver.wait(self.stream)
            for column in self.columns if self.lost else ():
                if column.given.kind is not Kind.CODES:
                    notes[start:stop] |= column.too_small(start, stop) * np.uint8(Note.IMPRECISE)
            self.lost = False
        return notes

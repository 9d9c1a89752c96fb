"""The engine for NVIDIA's GPUs: kernels generated for a query, launched by the driver.

Rows come and go in blocks, through pinned memory and on two streams, so that copies and work overlap. What is noticed
of rows comes back as a byte each, and only if there is something to see. Imprecise rows are computed again on the CPU,
which also does what is asked rarely: how testing nodes are decided, and tracebacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import divide, noting_underflow
from tacit.base.lru import LRUCache
from tacit.compiler.program import Program
from tacit.engines.cuda import driver
from tacit.engines.cuda.device_kernels import (
    REPLICAS,
    THREADS_PER_BLOCK,
    Kernel,
    check_size,
    forward_kernel,
    keeping_kernel,
    reverse_kernel,
)
from tacit.engines.cuda.ptx import key_of, ptx
from tacit.engines.cuda.thread import CODES, LEAST_EXACT, Given
from tacit.engines.engine import Columns, Engine, Slopes, Tables
from tacit.engines.native import code_cache
from tacit.engines.native.lanes import Note
from tacit.engines.native.native_engine import NativeEngine
from tacit.engines.results import Array, Results, Reverse
from tacit.engines.tape.tape import Tape
from tacit.evidence.column import Column, Kind, take

MAX_LOADED_KERNELS = 8  # kernels that an engine keeps, one for each way that evidence was given in
BLOCK_BYTES = 2**26  # of evidence that is copied at a time
BLOCK_ROWS = (2**12, 2**18)
MAX_SCRATCH_BYTES = 2**32  # bytes of values that the backward pass keeps
SCRATCH_ROWS = 2**15  # rows that keep a GPU busy: less memory than that would not do
DTYPES: dict[str, np.dtype[Any]] = {"b": np.dtype(np.int8), "h": np.dtype(np.int16), "i": np.dtype(np.int32)}


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


@dataclass
class Loaded:
    """A kernel that is ready to run, and the constants that it has."""

    kernel: Kernel
    module: driver.DeviceModule
    constants: int
    memory: driver.DeviceMemory | None
    holds: object = None


class Backward(NamedTuple):
    """The kernels of the backward pass: one keeps values, the other reads them."""

    keep: Loaded
    reverse: Loaded


class Buffers(NamedTuple):
    """Addresses on the GPU of what the backward pass reads and writes, and the distances between rows of arrays.

    `values` are those that one kernel keeps for the other; `flag` says whether a row is imprecise.
    """

    seeds_stride: int
    d_inputs_stride: int
    seeds: int
    d_inputs: int
    sums: int
    values: int
    flag: int

    def arguments(self, far: int) -> dict[str, int]:
        """What kernels are told, from some byte of the rows on."""
        return {
            "seeds_all": self.seeds + far,
            "seeds_stride": self.seeds_stride,
            "d_inputs_all": self.d_inputs + far,
            "d_inputs_stride": self.d_inputs_stride,
            "sums_all": self.sums,
            "values_all": self.values,
            "flag": self.flag,
        }


class CudaEngine(NativeEngine):
    """A program with its numbers, ready to run on a GPU."""

    chunk, gradient_chunk = 2**22, 2**17

    def __init__(
        self,
        program: Program,
        parameters: Tables,
        gammas: Slopes,
        dtype: str = "float64",
        threads: int | None = None,
        device: int = 0,
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self.device = driver.Device(device)
        self._loaded: LRUCache[Loaded] = LRUCache(MAX_LOADED_KERNELS)
        self._streams: list[driver.Stream] = []
        self._small: tuple[object, bool] = (None, False)
        check_size(self._tape())

    def clone(self) -> Self:
        clone = super().clone()
        clone._loaded, clone._streams = LRUCache(MAX_LOADED_KERNELS), []
        return clone

    def forward(self, given: Sequence[Given]) -> Loaded:
        """The kernel that evaluates rows."""
        return self._load(("forward", *given), lambda: forward_kernel(self._tape(), self._bits, given))

    def backward(self, given: Sequence[Given], through: bool, inputs: bool) -> Backward:
        """The kernels that find derivatives."""
        key = ("reverse", through, inputs, *given)
        return Backward(
            self._load(("keep", *given), lambda: keeping_kernel(self._tape(), self._bits, given)),
            self._load(key, lambda: reverse_kernel(self._tape(), self._bits, given, through, inputs)),
        )

    def _load(self, key: Any, make: Any) -> Loaded:
        def loaded() -> Loaded:
            kernel = make()
            with self.device.current():
                module = driver.DeviceModule(self.device, self._assembled(kernel.text), kernel.name, kernel.bank)
            size = self._tape().constant_count * self.dtype.itemsize
            memory = None if kernel.bank else driver.DeviceMemory(self.device, size)
            return Loaded(kernel, module, module.constants if memory is None else memory.address, memory)

        return self._loaded.get(key, loaded)

    def _assembled(self, text: str) -> bytes:
        """The code of this GPU for some text, from the disk or new."""
        key = key_of(text, self.device.name)
        content = code_cache.load(key)
        if content is None:
            content = self.device.assembled(ptx(text))
            code_cache.save(key, content)
        return content

    def fill(self, loaded: Loaded, stream: int) -> None:
        """Give a kernel this engine's constants, if it has others."""
        constants = self.constants(self._tape())
        if loaded.holds is not constants:
            loaded.module.before_change(stream)
            driver.copy_in(loaded.constants, constants.ctypes.data, constants.nbytes, stream)
            loaded.holds = constants

    def launch(self, loaded: Loaded, arguments: Sequence[Argument], rows: int, stream: int, **others: int) -> None:
        """Run a kernel over some rows."""
        given = [] if loaded.kernel.bank else [loaded.constants]
        for own in arguments:
            given += (own.address, own.row, own.state)
        given += [
            rows if name == "rows" else others[name.replace(".", "_")]
            for name in loaded.kernel.parameters[len(given) :]
        ]
        loaded.module.launch(given, rows, stream)

    def chunk_for(self, rows: int) -> int:
        """All at once: they are divided into blocks here."""
        return max(rows, 1)

    fused, small, single = Engine.fused, Engine.small, Engine.single  # as every engine does it: on the GPU

    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        if selections:
            return super().attempt(columns, rows, selections)
        tape = self._tape()
        outputs = np.empty((tape.outputs, rows), dtype=self.dtype)
        doubts = self._doubts(columns, rows, self._streamed(columns, rows, outputs, False))
        exponent = outputs[tape.states].astype(np.int64) if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Results(outputs[: tape.states], exponent, doubts)

    def posterior(self, columns: Columns, rows: int) -> Array:
        """The posterior (rows, states) of some rows; no numbers where they are impossible."""
        posterior = np.empty((rows, self._tape().states), dtype=self.dtype)
        doubts = self._doubts(columns, rows, self._streamed(columns, rows, posterior, True))
        if doubts is not None:
            some = np.flatnonzero(doubts)
            joint = self.fallback.run(take(columns, some), len(some)).joint
            posterior[some] = divide(joint, joint.sum(axis=0)).T
        return posterior

    def _doubts(self, columns: Columns, rows: int, notes: NDArray[np.uint8] | None) -> NDArray[np.bool_] | None:
        """The rows that are imprecise, None if there are none; an error where evidence is wrong."""
        if self._constants_too_small():
            return np.ones(rows, dtype=np.bool_)
        if notes is None:
            return None
        odd = np.flatnonzero(notes & Note.UNUSUAL)
        for column in columns.values() if odd.size else ():
            column.take(odd).likelihoods()  # an error names the row
        doubts = (notes & Note.IMPRECISE) != 0
        return doubts if doubts.any() else None

    def _constants_too_small(self) -> bool:
        tape = self._tape()
        constants = self.constants(tape)
        if self._small[0] is not constants:
            small = bool(((constants > 0) & (constants < LEAST_EXACT[self._bits])).any()) or self.tables_in_doubt(tape)
            self._small = constants, small
        return self._small[1]

    def _variables(self, tape: Tape) -> list[tuple[str, int]]:
        """The variables that a kernel reads, with their states, 0 for places in tables."""
        return [*((n, self.program.sizes[n]) for n in tape.inputs), *((n, 0) for n in tape.codes)]

    def _streamed(self, columns: Columns, rows: int, results: Array, by_row: bool) -> NDArray[np.uint8] | None:
        """Fill in outputs (outputs, rows), or `by_row` posteriors (rows, states).

        What was noticed of rows comes back, None if nothing.
        """
        if not rows:
            return None
        sources = [_source(self, name, states, columns.get(name)) for name, states in self._variables(self._tape())]
        given = [source.given for source in sources]
        size = sum(source.bytes_of_row for source in sources) or 1
        block = min(rows, BLOCK_ROWS[1], max(BLOCK_ROWS[0], BLOCK_BYTES // size))
        notes: NDArray[np.uint8] | None = None
        with self.device.current(), ExitStack() as after:
            loaded = self.forward(given)
            while len(self._streams) < 2:
                self._streams.append(driver.Stream(self.device))
            slots = [
                _Slot(self, stream.handle, sources, block, by_row) for stream in self._streams[: -(-rows // block)]
            ]
            for slot in slots:
                after.callback(driver.wait, slot.stream)
            self.fill(loaded, slots[0].stream)
            driver.wait(slots[0].stream)  # the other stream reads the constants, too
            for i, start in enumerate(range(0, rows, block)):
                slot = slots[i % len(slots)]
                notes = slot.take(results, notes)
                slot.give(self, loaded, start, min(start + block, rows))
            for slot in slots:
                notes = slot.take(results, notes)
        return notes

    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        tape, size = self._tape(), self.dtype.itemsize
        sources = [_source(self, name, states, columns.get(name)) for name, states in self._variables(tape)]
        inputs = sum(self.program.sizes[name] for name in tape.inputs)
        given = np.ascontiguousarray(np.broadcast_to(seeds, (tape.states, rows)), dtype=self.dtype)
        padded = -(-rows // THREADS_PER_BLOCK) * THREADS_PER_BLOCK  # every thread has its place
        d_inputs, flag = np.empty((inputs, padded), dtype=self.dtype), np.zeros(1, dtype=np.int32)
        with self.device.current():
            both = self.backward([source.given for source in sources], through_selection, True)
            loaded = both.reverse
            count = loaded.kernel.sum_count(tape.constant_count)
            sums = np.zeros((REPLICAS, count))
            slot = _Slot(self, 0, sources, rows, True)
            for own in both:
                self.fill(own, 0)
            arguments = slot.bring(0, rows)
            step = self.scratch_rows(loaded, rows)
            scratch = loaded.kernel.kept * step * size
            places = [
                driver.DeviceMemory(self.device, n) for n in (given.nbytes, d_inputs.nbytes, sums.nbytes, scratch)
            ]
            buffers = Buffers(rows, padded, *(place.address for place in (*places, slot.flag)))
            driver.copy_in(buffers.seeds, given.ctypes.data, given.nbytes, 0)
            driver.clear(buffers.sums, sums.nbytes, 0)
            driver.clear(buffers.flag, 4, 0)
            self.launch_backward(both, arguments, rows, step, 0, buffers)
            driver.copy_out(d_inputs.ctypes.data, buffers.d_inputs, d_inputs.nbytes, 0)
            driver.copy_out(sums.ctypes.data, buffers.sums, sums.nbytes, 0)
            driver.copy_out(flag.ctypes.data, buffers.flag, 4, 0)
            driver.wait(0)
        whole = sums.sum(axis=0)
        d_constants = whole[len(loaded.kernel.sums) :].copy()
        np.add.at(d_constants, list(loaded.kernel.sums), whole[: len(loaded.kernel.sums)])
        doubt = bool(flag[0] & Note.IMPRECISE) or slot.lost or self._constants_too_small()
        gradients = self._collected(tape, d_constants, d_inputs[:, :rows], through_selection)
        exponent = self.attempt(columns, rows).exponent if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Reverse(gradients, exponent, doubt)

    def scratch_rows(self, loaded: Loaded, rows: int) -> int:
        """How many rows the backward pass takes at a time, by the memory that their values need."""
        room = min(MAX_SCRATCH_BYTES, self.device.free_bytes() // 4)
        fitting = room // (max(loaded.kernel.kept, 1) * self.dtype.itemsize) // THREADS_PER_BLOCK * THREADS_PER_BLOCK
        parts = -(-rows // max(fitting, SCRATCH_ROWS))
        return -(-rows // (parts * THREADS_PER_BLOCK)) * THREADS_PER_BLOCK  # parts of about the same size

    def launch_backward(
        self, both: Backward, arguments: Sequence[Argument], rows: int, step: int, stream: int, buffers: Buffers
    ) -> None:
        """Find derivatives of some rows, `step` of them at a time."""
        for start in range(0, rows, step):
            here, count = [own.after(start) for own in arguments], min(step, rows - start)
            given = buffers.arguments(start * self.dtype.itemsize)
            self.launch(both.keep, here, count, stream, **given)
            self.launch(both.reverse, here, count, stream, **given)


@dataclass
class _Source:
    """A column of evidence as it is on the host, and as a kernel reads it."""

    given: Given
    array: NDArray[Any]  # (rows,), (rows, states) or, of likelihoods in proportion, (states, rows)
    dtype: np.dtype[Any]
    once: bool  # whether one row speaks for all

    @property
    def bytes_of_row(self) -> int:
        return (
            0
            if self.once
            else max(self.given.states if self.given.kind is not Kind.CODES else 1, 1) * self.dtype.itemsize
        )

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        if self.once:
            return self.array
        return self.array[:, start:stop] if self.given.kind is Kind.NORMALISED else self.array[start:stop]

    def size(self, rows: int) -> int:
        return (
            max(self.array.nbytes // max(self.array.itemsize, 1) * self.dtype.itemsize, 1)
            if self.once
            else rows * self.bytes_of_row
        )


def _source(engine: CudaEngine, name: str, states: int, column: Column | None) -> _Source:
    if column is None:
        array = np.ones((states, 1), dtype=engine.dtype)
        return _Source(Given(Kind.NORMALISED, states), array, engine.dtype, True)
    kind, array = column.source()
    if not states:
        kind, array = Kind.CODES, column.certain_codes()
    if kind is Kind.CODES:
        letter = next(letter for letter, (_, most) in CODES.items() if engine.program.sizes[name] < most)
        return _Source(Given(kind, states, letter), array, DTYPES[letter], column.rows == 1)
    return _Source(Given(kind, states), array, engine.dtype, column.rows == 1)


class _Slot:
    """Buffers for a block of rows, on the host and on the GPU, and a stream."""

    def __init__(self, engine: CudaEngine, stream: int, sources: Sequence[_Source], block: int, by_row: bool) -> None:
        self.stream, self.sources, self.block, self.by_row, self.lost = stream, sources, block, by_row, False
        self.engine, tape, size = engine, engine._tape(), engine.dtype.itemsize
        self.starts, whole = [], 0
        for source in sources:
            self.starts.append(whole)
            whole += -(-source.size(block) // 256) * 256
        device = engine.device
        self.host, self.here = driver.DeviceMemory(device, whole, pinned=True), driver.DeviceMemory(device, whole)
        self.width = tape.states if by_row else tape.outputs
        self.results = driver.DeviceMemory(device, self.width * block * size)
        self.back = driver.DeviceMemory(device, self.width * block * size, pinned=True)
        self.notes, self.flag = driver.DeviceMemory(device, block), driver.DeviceMemory(device, 4)
        self.told = driver.DeviceMemory(device, 4, pinned=True)
        self.rows: tuple[int, int] | None = None

    def bring(self, start: int, stop: int) -> list[Argument]:
        """Copy the evidence on some rows to the GPU."""
        arguments, count = [], stop - start
        with noting_underflow() as noted:
            for source, first in zip(self.sources, self.starts, strict=True):
                part = source.rows(start, stop)
                buffer = self.host.array(np.uint8, self.host.size)[first : first + part.size * source.dtype.itemsize]
                buffer.view(source.dtype).reshape(part.shape)[...] = part
                arguments.append(self._argument(source, self.here.address + first, part))
        self.lost = self.lost or bool(noted)
        used = self.starts[-1] + self.sources[-1].size(self.block) if self.sources else 0
        if count:
            driver.copy_in(self.here.address, self.host.address, used, self.stream)
        return arguments

    def _argument(self, source: _Source, address: int, part: NDArray[Any]) -> Argument:
        item = source.dtype.itemsize
        if source.given.kind is Kind.NORMALISED:
            row, state = item, part.shape[1] * item
        else:
            row, state = (part.shape[1] if part.ndim == 2 else 1) * item, item
        return Argument(source.given, address, 0 if source.once else row, state)

    def give(self, engine: CudaEngine, loaded: Loaded, start: int, stop: int) -> None:
        """Begin to evaluate some rows."""
        self.rows, count = (start, stop), stop - start
        arguments = self.bring(start, stop)
        driver.clear(self.flag.address, 4, self.stream)
        places = {"posterior": self.results.address if self.by_row else 0, "outputs_stride": self.block}
        places["outputs_all"] = 0 if self.by_row else self.results.address
        engine.launch(loaded, arguments, count, self.stream, **places, notes=self.notes.address, flag=self.flag.address)
        size = self.width * engine.dtype.itemsize * (count if self.by_row else self.block)
        driver.copy_out(self.back.address, self.results.address, size, self.stream)
        driver.copy_out(self.told.address, self.flag.address, 4, self.stream)

    def take(self, results: Array, notes: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
        """Put the results where they are wanted, and what was noticed."""
        if self.rows is None:
            return notes
        start, stop = self.rows
        self.rows = None
        driver.wait(self.stream)
        if self.by_row:
            results[start:stop] = self.back.array(results.dtype, stop - start, self.width)
        else:
            results[:, start:stop] = self.back.array(results.dtype, self.width, self.block)[:, : stop - start]
        if int(self.told.array(np.int32, 1)[0]) or self.lost:
            if notes is None:
                notes = np.zeros(results.shape[0 if self.by_row else 1], dtype=np.uint8)
            driver.copy_out(notes.ctypes.data + start, self.notes.address, stop - start, self.stream)
            driver.wait(self.stream)
        if self.lost and notes is not None:
            notes[start:stop] |= self._too_small(start, stop)
            self.lost = False
        return notes

    def _too_small(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Rows with likelihoods that are too small for floats of this size."""
        found, least = np.zeros(stop - start, dtype=np.bool_), np.finfo(self.engine.dtype).smallest_normal
        for source in self.sources:
            if source.given.kind is not Kind.CODES:
                part = source.rows(start, stop)
                small = (part > 0) & (part < least)
                axis = 0 if source.given.kind is Kind.NORMALISED else 1
                found |= small.any(axis=axis) if small.ndim == 2 else small
        return found.astype(np.uint8) * np.uint8(Note.IMPRECISE)

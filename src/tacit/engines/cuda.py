"""The engine for NVIDIA's GPUs: kernels generated for a query, launched by the driver.

Rows come and go in blocks, through pinned memory and on two streams, so that copies and work overlap. What is noticed
of rows comes back as a byte each, and only if there is something to see. Doubtful rows are computed again on the CPU,
which also does what is asked rarely: how testing nodes are decided, and the way down.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import Program
from tacit.engines.assemble import Tape
from tacit.engines.engine import Engine
from tacit.engines.native import cuda, store
from tacit.engines.native.device import (
    BLOCK,
    REPLICAS,
    Kernel,
    check_size,
    forward_kernel,
    keeping_kernel,
    reverse_kernel,
)
from tacit.engines.native.engine import NativeEngine
from tacit.engines.native.ptx import key_of, ptx
from tacit.engines.native.thread import CODES, DOUBT, LEAST, UNUSUAL, Given
from tacit.engines.results import Array, Results, Reverse
from tacit.evidence import Column, Kind, take
from tacit.floats import divide, noting_underflow
from tacit.recent import Recent

LOADED = 8  # kernels that an engine keeps, one for each way that evidence was given in
BLOCK_BYTES = 2**26  # of evidence that is copied at a time
BLOCK_ROWS = (2**12, 2**18)
SCRATCH = 2**32  # bytes of values that the way back keeps
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
        """The same without the first rows."""
        return replace(self, address=self.address + rows * self.row)


@dataclass
class Loaded:
    """A kernel that is ready to run, and the constants that it has."""

    kernel: Kernel
    module: cuda.Module
    constants: int
    memory: cuda.Memory | None
    holds: object = None


class Backward(NamedTuple):
    """The kernels of the way back: one keeps values, the other reads them."""

    keep: Loaded
    reverse: Loaded


class CudaEngine(NativeEngine):
    """A program with its numbers, ready to run on a GPU."""

    chunk, gradient_chunk = 2**22, 2**17

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
        threads: int | None = None,
        device: int = 0,
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self.device = cuda.Device(device)
        self._loaded: Recent[Loaded] = Recent(LOADED)
        self._streams: list[cuda.Stream] = []
        self._small: tuple[object, bool] = (None, False)
        check_size(self._tape())

    def twin(self) -> Self:
        """The same program with numbers of its own."""
        twin = super().twin()
        twin._loaded, twin._streams = Recent(LOADED), []
        return twin

    # kernels ----------------------------------------------------------------------------------------------

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
                module = cuda.Module(self.device, self._assembled(kernel.text), kernel.name, kernel.bank)
            size = self._tape().constant_count * self.dtype.itemsize
            memory = None if kernel.bank else cuda.Memory(self.device, size)
            return Loaded(kernel, module, module.constants if memory is None else memory.address, memory)

        return self._loaded.get(key, loaded)

    def _assembled(self, text: str) -> bytes:
        """The code of this GPU for some text, from the disk or new."""
        key = key_of(text, self.device.name)
        content = store.load(key)
        if content is None:
            content = self.device.assembled(ptx(text))
            store.save(key, content)
        return content

    def fill(self, loaded: Loaded, stream: int) -> None:
        """Give a kernel this engine's constants, if it has others."""
        constants = self.constants(self._tape())
        if loaded.holds is not constants:
            loaded.module.before_change(stream)
            cuda.copy_in(loaded.constants, constants.ctypes.data, constants.nbytes, stream)
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

    # from arrays to arrays --------------------------------------------------------------------------------

    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows, and say which are doubtful."""
        if selections:
            return super().attempt(columns, rows, selections)
        tape = self._tape()
        outputs = np.empty((tape.outputs, rows), dtype=self.dtype)
        doubts = self._doubts(columns, rows, self._streamed(columns, rows, outputs, False))
        exponent = outputs[tape.states].astype(np.int64) if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Results(outputs[: tape.states], exponent, doubts)

    def posterior(self, columns: Mapping[str, Column], rows: int) -> Array:
        """The posterior (rows, states) of some rows; no numbers where they are impossible."""
        found = np.empty((rows, self._tape().states), dtype=self.dtype)
        doubts = self._doubts(columns, rows, self._streamed(columns, rows, found, True))
        if doubts is not None:
            some = np.flatnonzero(doubts)
            joint = self.again.run(take(columns, some), len(some)).joint
            found[some] = divide(joint, joint.sum(axis=0)).T
        return found

    def _doubts(
        self, columns: Mapping[str, Column], rows: int, notes: NDArray[np.uint8] | None
    ) -> NDArray[np.bool_] | None:
        """The rows that are doubtful, None if there are none; an error where evidence is wrong."""
        if self._constants_too_small():
            return np.ones(rows, dtype=np.bool_)
        if notes is None:
            return None
        odd = np.flatnonzero(notes & UNUSUAL)
        for column in columns.values() if odd.size else ():
            column.take(odd).likelihoods()  # an error names the row
        doubts = (notes & DOUBT) != 0
        return doubts if doubts.any() else None

    def _constants_too_small(self) -> bool:
        tape = self._tape()
        constants = self.constants(tape)
        if self._small[0] is not constants:
            small = bool(((constants > 0) & (constants < LEAST[self._bits])).any()) or self._tables_in_doubt(tape)
            self._small = constants, small
        return self._small[1]

    def _variables(self, tape: Tape) -> list[tuple[str, int]]:
        """The variables that a kernel reads, with their states, 0 for places in tables."""
        return [*((n, self.program.sizes[n]) for n in tape.inputs), *((n, 0) for n in tape.codes)]

    def _streamed(
        self, columns: Mapping[str, Column], rows: int, results: Array, by_row: bool
    ) -> NDArray[np.uint8] | None:
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
                self._streams.append(cuda.Stream(self.device))
            slots = [
                _Slot(self, stream.handle, sources, block, by_row) for stream in self._streams[: -(-rows // block)]
            ]
            for slot in slots:
                after.callback(cuda.wait, slot.stream)
            self.fill(loaded, slots[0].stream)
            cuda.wait(slots[0].stream)  # the other stream reads the constants, too
            for i, start in enumerate(range(0, rows, block)):
                slot = slots[i % len(slots)]
                notes = slot.take(results, notes)
                slot.give(self, loaded, start, min(start + block, rows))
            for slot in slots:
                notes = slot.take(results, notes)
        return notes

    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> Reverse:
        """Derivatives in plain floats, given those by the mantissas that this engine's own forward pass finds."""
        tape, size = self._tape(), self.dtype.itemsize
        sources = [_source(self, name, states, columns.get(name)) for name, states in self._variables(tape)]
        inputs = sum(self.program.sizes[name] for name in tape.inputs)
        given = np.ascontiguousarray(np.broadcast_to(seeds, (tape.states, rows)), dtype=self.dtype)
        padded = -(-rows // BLOCK) * BLOCK  # every thread has its place
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
            places = {
                n: cuda.Memory(self.device, a.nbytes) for n, a in (("seeds", given), ("d", d_inputs), ("s", sums))
            }
            cuda.copy_in(places["seeds"].address, given.ctypes.data, given.nbytes, 0)
            cuda.clear(places["s"].address, sums.nbytes, 0)
            cuda.clear(slot.flag.address, 4, 0)
            step = self.scratch_rows(loaded, rows)
            values = cuda.Memory(self.device, loaded.kernel.kept * step * size)
            for start in range(0, rows, step):
                self.launch_backward(
                    both, arguments, start, min(step, rows - start), 0, seeds=places["seeds"].address,
                    seeds_stride=rows, d_inputs=places["d"].address, d_inputs_stride=padded, sums=places["s"].address,
                    values=values.address, flag=slot.flag.address,
                )  # fmt: skip
            cuda.copy_out(d_inputs.ctypes.data, places["d"].address, d_inputs.nbytes, 0)
            cuda.copy_out(sums.ctypes.data, places["s"].address, sums.nbytes, 0)
            cuda.copy_out(flag.ctypes.data, slot.flag.address, 4, 0)
            cuda.wait(0)
        whole = sums.sum(axis=0)
        d_constants = whole[len(loaded.kernel.sums) :].copy()
        np.add.at(d_constants, list(loaded.kernel.sums), whole[: len(loaded.kernel.sums)])
        doubt = bool(flag[0] & DOUBT) or slot.lost or self._constants_too_small()
        found = self._collected(tape, d_constants, d_inputs[:, :rows], through_selection)
        exponent = self.attempt(columns, rows).exponent if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Reverse(found, exponent, doubt)

    def scratch_rows(self, loaded: Loaded, rows: int) -> int:
        """How many rows the way back takes at a time, by the memory that their values need."""
        room = min(SCRATCH, self.device.free_bytes() // 4)
        fitting = room // (max(loaded.kernel.kept, 1) * self.dtype.itemsize) // BLOCK * BLOCK
        parts = -(-rows // max(fitting, SCRATCH_ROWS))
        return -(-rows // (parts * BLOCK)) * BLOCK  # parts of about the same size

    def launch_backward(
        self, both: Backward, arguments: Sequence[Argument], start: int, rows: int, stream: int, *,
        seeds: int, seeds_stride: int, d_inputs: int, d_inputs_stride: int, sums: int, values: int, flag: int,
    ) -> None:  # fmt: skip
        """Find derivatives of some rows."""
        far, here = start * self.dtype.itemsize, [own.after(start) for own in arguments]
        self.launch(both.keep, here, rows, stream, values_all=values, flag=flag)
        self.launch(
            both.reverse, here, rows, stream, seeds_all=seeds + far, seeds_stride=seeds_stride,
            d_inputs_all=d_inputs + far, d_inputs_stride=d_inputs_stride, sums_all=sums, values_all=values, flag=flag,
        )  # fmt: skip


# blocks of rows -------------------------------------------------------------------------------------------


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
        self.host, self.here = cuda.Memory(device, whole, pinned=True), cuda.Memory(device, whole)
        self.width = tape.states if by_row else tape.outputs
        self.results = cuda.Memory(device, self.width * block * size)
        self.back = cuda.Memory(device, self.width * block * size, pinned=True)
        self.notes, self.flag = cuda.Memory(device, block), cuda.Memory(device, 4)
        self.told = cuda.Memory(device, 4, pinned=True)
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
            cuda.copy_in(self.here.address, self.host.address, used, self.stream)
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
        cuda.clear(self.flag.address, 4, self.stream)
        places = {"posterior": self.results.address if self.by_row else 0, "outputs_stride": self.block}
        places["outputs_all"] = 0 if self.by_row else self.results.address
        engine.launch(loaded, arguments, count, self.stream, **places, notes=self.notes.address, flag=self.flag.address)
        size = self.width * engine.dtype.itemsize * (count if self.by_row else self.block)
        cuda.copy_out(self.back.address, self.results.address, size, self.stream)
        cuda.copy_out(self.told.address, self.flag.address, 4, self.stream)

    def take(self, results: Array, notes: NDArray[np.uint8] | None) -> NDArray[np.uint8] | None:
        """Put the results where they are wanted, and what was noticed."""
        if self.rows is None:
            return notes
        start, stop = self.rows
        self.rows = None
        cuda.wait(self.stream)
        if self.by_row:
            results[start:stop] = self.back.array(results.dtype, stop - start, self.width)
        else:
            results[:, start:stop] = self.back.array(results.dtype, self.width, self.block)[:, : stop - start]
        if int(self.told.array(np.int32, 1)[0]) or self.lost:
            if notes is None:
                notes = np.zeros(results.shape[0 if self.by_row else 1], dtype=np.uint8)
            cuda.copy_out(notes.ctypes.data + start, self.notes.address, stop - start, self.stream)
            cuda.wait(self.stream)
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
        return found.astype(np.uint8) * DOUBT

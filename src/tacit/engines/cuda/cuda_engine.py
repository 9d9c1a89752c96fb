"""The engine for NVIDIA's GPUs: kernels generated for a query, launched by the driver.

Rows come and go in blocks, through pinned memory and on two streams, so that copies and work overlap. What is noticed
of rows comes back as a byte each, and only if there is something to see. Imprecise rows are computed again on the CPU,
which also does what is asked rarely: how testing nodes are decided, and tracebacks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import divide
from tacit.base.lru import LRUCache
from tacit.compiler.program import Program
from tacit.engines.cuda import device_kernels, driver
from tacit.engines.cuda.device_kernels import REPLICAS, THREADS_PER_BLOCK, Kernel
from tacit.engines.cuda.ptx import key_of, ptx
from tacit.engines.cuda.thread import LEAST_EXACT, Given
from tacit.engines.cuda.transfer import AnswerBuffers, Argument, BlockBuffers, HostColumn
from tacit.engines.engine import Columns, Engine, Slopes, Tables
from tacit.engines.native import code_cache
from tacit.engines.native.lanes import Note
from tacit.engines.native.native_engine import NativeEngine
from tacit.engines.results import Array, Results, Reverse
from tacit.evidence.column import take
from tacit.evidence.density_column import lost_rows

MAX_LOADED_KERNELS = 8  # kernels that an engine keeps, one for each way that evidence was given in
BLOCK_BYTES = 2**26  # of evidence that is copied at a time
BLOCK_ROWS = (2**12, 2**18)
MAX_SCRATCH_BYTES = 2**32  # bytes of values that the backward pass keeps
SCRATCH_ROWS = 2**15  # rows that keep a GPU busy: less memory than that would not do


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


class BackwardBuffers(NamedTuple):
    """What the backward pass reads and writes: addresses on the GPU, and distances, as arguments of the kernels."""

    step: int  # rows whose values one kernel keeps for the other at a time
    given: Mapping[str, int]

    def after(self, rows: int, itemsize: int) -> dict[str, int]:
        """What kernels are told without the first rows."""
        return {**self.given} | {name: self.given[name] + rows * itemsize for name in ("seeds_all", "d_inputs_all")}


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
        device_kernels.check_size(self._tape())

    def clone(self) -> Self:
        clone = super().clone()
        clone._loaded, clone._streams = LRUCache(MAX_LOADED_KERNELS), []
        return clone

    def forward(self, given: Sequence[Given]) -> Loaded:
        return self._load(("forward", *given), lambda: device_kernels.forward_kernel(self._tape(), self._bits, given))

    def backward(self, given: Sequence[Given], through: bool, inputs: bool) -> Backward:
        key = ("reverse", through, inputs, *given)
        return Backward(
            self._load(("keep", *given), lambda: device_kernels.keeping_kernel(self._tape(), self._bits, given)),
            self._load(key, lambda: device_kernels.reverse_kernel(self._tape(), self._bits, given, through, inputs)),
        )

    def _load(self, key: Any, make: Any) -> Loaded:
        def loaded() -> Loaded:
            kernel = make()
            with self.device.current():
                key = key_of(kernel.text, self.device.name)
                content = code_cache.get(key, lambda: self.device.assembled(ptx(kernel.text)))
                module = driver.DeviceModule(self.device, content, kernel.name, kernel.bank)
            size = self._tape().constant_count * self.dtype.itemsize
            memory = None if kernel.bank else driver.DeviceMemory(self.device, size)
            return Loaded(kernel, module, module.constants if memory is None else memory.address, memory)

        return self._loaded.get(key, loaded)

    def fill(self, loaded: Loaded, stream: int) -> None:
        """Give a kernel this engine's constants, if it has others."""
        constants = self.constants(self._tape())
        if loaded.holds is not constants:
            loaded.module.before_change(stream)
            driver.copy_in(loaded.constants, constants.ctypes.data, constants.nbytes, stream)
            loaded.holds = constants

    def launch(self, loaded: Loaded, arguments: Sequence[Argument], rows: int, stream: int, **others: int) -> None:
        given = [] if loaded.kernel.bank else [loaded.constants]
        for own in arguments:
            given += (own.address, own.row, own.state)
        names = loaded.kernel.parameters[len(given) :]
        given += [rows if name == "rows" else others[name.replace(".", "_")] for name in names]
        loaded.module.launch(given, rows, stream)

    fused, small, single = Engine.fused, Engine.small, Engine.single  # as every engine does it: on the GPU

    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        if selections:
            return super().attempt(columns, rows, selections)
        tape = self._tape()
        outputs = np.empty((tape.outputs, rows), dtype=self.dtype)
        doubts = self._doubts(columns, rows, self._streamed(columns, rows, outputs, False))
        return self._results(tape, outputs, doubts)

    def posterior(self, columns: Columns, rows: int) -> Array:
        lost = lost_rows(columns, rows)
        if lost is not None and lost.any():
            return super().posterior(columns, rows)
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

    def _columns(self, columns: Columns) -> list[HostColumn]:
        tape, sizes = self._tape(), self.program.sizes
        states = [*((name, sizes[name]) for name in tape.inputs), *((name, 0) for name in tape.codes)]
        return [HostColumn.of(columns.get(name), count, sizes[name], self.dtype) for name, count in states]

    def _streamed(self, columns: Columns, rows: int, results: Array, by_row: bool) -> NDArray[np.uint8] | None:
        """Fill in outputs (outputs, rows), or `by_row` posteriors (rows, states); returns notes on rows, if any."""
        if not rows:
            return None
        own = self._columns(columns)
        row_bytes = sum(column.row_bytes for column in own if not column.once) or 1
        block = min(rows, BLOCK_ROWS[1], max(BLOCK_ROWS[0], BLOCK_BYTES // row_bytes))
        notes: NDArray[np.uint8] | None = None
        with self.device.current(), ExitStack() as after:
            loaded = self.forward([column.given for column in own])
            while len(self._streams) < 2:
                self._streams.append(driver.Stream(self.device))
            streams = self._streams[: -(-rows // block)]
            buffers = [AnswerBuffers(self.device, each.handle, own, block, results, by_row) for each in streams]
            for each in buffers:
                after.callback(driver.wait, each.stream)
            self.fill(loaded, buffers[0].stream)
            driver.wait(buffers[0].stream)  # the other stream reads the constants, too
            for i, start in enumerate(range(0, rows, block)):
                notes = buffers[i % len(buffers)].take(notes)
                buffers[i % len(buffers)].give(partial(self.launch, loaded), start, min(start + block, rows))
            for each in buffers:
                notes = each.take(notes)
        return notes

    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        tape, own, size = self._tape(), self._columns(columns), self.dtype.itemsize
        padded = -(-rows // THREADS_PER_BLOCK) * THREADS_PER_BLOCK  # every thread has its place
        inputs = sum(self.program.sizes[name] for name in tape.inputs)
        with self.device.current():
            both = self.backward([column.given for column in own], through_selection, True)
            kernel, step = both.reverse.kernel, self.scratch_rows(both.reverse, rows)
            host = {
                "seeds_all": np.ascontiguousarray(seeds, dtype=self.dtype),
                "d_inputs_all": np.empty((inputs, padded), dtype=self.dtype),
                "sums_all": np.zeros((REPLICAS, len(kernel.sums) + tape.constant_count)),
                "flag": np.zeros(1, dtype=np.int32),
            }
            there = {name: driver.DeviceMemory(self.device, array.nbytes) for name, array in host.items()}
            there["values_all"] = driver.DeviceMemory(self.device, kernel.kept * step * size)
            for name in ("seeds_all", "sums_all", "flag"):
                driver.copy_in(there[name].address, host[name].ctypes.data, host[name].nbytes, 0)
            for loaded in both:
                self.fill(loaded, 0)
            evidence = BlockBuffers(self.device, 0, own, rows)
            given = {name: memory.address for name, memory in there.items()}
            buffers = BackwardBuffers(step, given | {"seeds_stride": rows, "d_inputs_stride": padded})
            self.launch_backward(both, evidence.bring(0, rows), rows, 0, buffers)
            for name in ("d_inputs_all", "sums_all", "flag"):
                driver.copy_out(host[name].ctypes.data, there[name].address, host[name].nbytes, 0)
            driver.wait(0)
        whole, terms = host["sums_all"].sum(axis=0), list(kernel.sums)
        d_constants = whole[len(terms) :].copy()
        np.add.at(d_constants, terms, whole[: len(terms)])
        doubt = bool(host["flag"][0] & Note.IMPRECISE) or evidence.lost or self._constants_too_small()
        gradients = self._collected(tape, d_constants, host["d_inputs_all"][:, :rows], through_selection)
        exponent = self.attempt(columns, rows).exponent if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Reverse(gradients, exponent, doubt)

    def scratch_rows(self, loaded: Loaded, rows: int) -> int:
        """How many rows the backward pass takes at a time, by the memory that their values need."""
        room = min(MAX_SCRATCH_BYTES, self.device.free_bytes() // 4)
        fitting = room // (max(loaded.kernel.kept, 1) * self.dtype.itemsize) // THREADS_PER_BLOCK * THREADS_PER_BLOCK
        parts = -(-rows // max(fitting, SCRATCH_ROWS))
        return -(-rows // (parts * THREADS_PER_BLOCK)) * THREADS_PER_BLOCK  # parts of about the same size

    def launch_backward(
        self, both: Backward, evidence: Sequence[Argument], rows: int, stream: int, buffers: BackwardBuffers
    ) -> None:
        """Find derivatives of some rows, as many at a time as there is memory for."""
        for start in range(0, rows, buffers.step):
            here, count = [own.after(start) for own in evidence], min(buffers.step, rows - start)
            for kernel in both:
                self.launch(kernel, here, count, stream, **buffers.after(start, self.dtype.itemsize))

"""The interpreter: the batched part of a program as a tape, run over tiles of rows by numba kernels.

Where the processor notes that a number was too small for a float, the rows of that tile are tried again in narrower
ones, and what is left in doubt is computed by the fallback.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, noting_underflow
from tacit.compiler.operations.axes import Mask
from tacit.compiler.program import Program
from tacit.engines.engine import Columns, Kernel, Packed, SeedOfRows, Slopes, Tables, rows_too_small
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse, States
from tacit.engines.tape import tape_kernels, traceback_kernels
from tacit.engines.tape.tape import Tape
from tacit.engines.tape.tape_based import TapeBased, blocks_of_tiles, in_threads
from tacit.engines.tape.tape_kernels import ReverseArrays, TapeArrays
from tacit.evidence.column import take

MAX_CHUNK = 2**14  # rows whose evidence is packed at a time
TILE_BYTES = 2**18  # a tile's slots should take at most so much, a part of a core's own cache, ...
TILE_ROWS = (64, 256)  # ... but narrower tiles pay more for instructions than wider ones for cache misses
VECTOR_ROWS = 8  # a vector register: tiles of fewer rows save nothing
MAX_TILE = 2**28  # bytes of a tile, beyond which it has that few rows


class TapeEngine(TapeBased):
    """A program with its numbers, ready to run on a tape, which kernels interpret."""

    chunk = gradient_chunk = MAX_CHUNK
    pins_for_jacobian = True

    def __init__(
        self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64", threads: int | None = None
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self.tape = self._tape(reuse_slots=True)

    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        tape = self._tape(selections=selections, reuse_slots=True)
        width = self._width(tape, rows)
        outputs, imprecise = self._forward(tape, columns, rows, width)
        if self.tables_in_doubt(tape):
            imprecise = np.ones(rows, dtype=np.bool_)
        elif imprecise is not None and width > (narrow := 1 if self._alone else VECTOR_ROWS):
            # the rows of a tile are in doubt together: those of narrow tiles are fewer
            some = np.flatnonzero(imprecise)
            outputs[:, some], fewer = self._forward(tape, take(columns, some), len(some), narrow)
            imprecise[some] = False if fewer is None else fewer
            imprecise = imprecise if imprecise.any() else None
        return self._results(tape, outputs, imprecise, selections)

    def _forward(self, tape: Tape, columns: Columns, rows: int, width: int) -> tuple[Array, Mask | None]:
        """The outputs of a tape, and which rows are imprecise, if any, from tiles of some width."""
        arrays, lost = self._read(tape, columns, rows)

        def work(block: tuple[int, int]) -> bool:
            return bool(tape_kernels.forward(*arrays, self._values(tape, arrays.constants, width), *block))

        some = any(in_threads(work, blocks_of_tiles(self.threads, rows, width, tape.work)))
        if lost:
            arrays.doubts[:] |= rows_too_small(columns, rows, self.dtype)
        return arrays.outputs, arrays.doubts if some or lost else None

    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        tape = self._tape()
        arrays, lost = self._read(tape, columns, rows)
        own = np.ascontiguousarray(seeds, dtype=self.dtype)
        _, d_constants, d_inputs = self._in_reverse(tape, arrays, own, through_selection, tape_kernels.backward)
        doubt = lost or bool(arrays.doubts.any()) or self.tables_in_doubt(tape)
        gradients = self._collected(tape, d_constants, d_inputs, through_selection)
        return Reverse(gradients, self.exponent_of(tape, arrays.outputs), doubt)

    def _in_reverse(
        self, tape: Tape, arrays: TapeArrays, seeds: Array, through: bool, kernel: Kernel, *arguments: Any
    ) -> tuple[list[Any], Array, Array]:
        """Run a kernel over a tape in reverse: its results by block of rows, derivatives by constants and by inputs."""
        width, d_inputs = self._width(tape, seeds.shape[1]), np.zeros_like(arrays.inputs)

        def work(block: tuple[int, int]) -> tuple[Any, Array]:
            values, d_constants = self._values(tape, arrays.constants, width), np.zeros(tape.constant_count)
            adjoints = working_space(tape.slots, width, self.dtype)
            reverse = ReverseArrays(seeds, adjoints, tape.pinned, d_constants, d_inputs, through)
            return kernel(arrays, reverse, values, *block, *arguments), d_constants

        blocks = blocks_of_tiles(self.threads, seeds.shape[1], width, tape.work)
        results, sums = zip(*in_threads(work, blocks), strict=True)
        return list(results), sum(sums, start=np.zeros(tape.constant_count)), d_inputs

    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        width = self._width(self._tape(descent=True), rows)
        descent = self._descended(columns, rows, draws, width)
        if not self._alone or descent.results.imprecise is None or width == 1:
            return descent
        some = np.flatnonzero(descent.results.imprecise)
        own = None if draws is None else np.ascontiguousarray(draws[:, some])
        alone = self._descended(take(columns, some), len(some), own, 1)
        doubts = np.zeros(rows, dtype=np.bool_)
        doubts[some] = alone.results.imprecise if alone.results.imprecise is not None else False
        descent = descent.with_rows_replaced(some, alone)
        return replace(descent, results=replace(descent.results, imprecise=doubts if doubts.any() else None))

    def _descended(self, columns: Columns, rows: int, draws: Floats | None, width: int) -> Descent:
        """States from tiles of some width, whose rows are in doubt together."""
        tape = self._tape(descent=True)
        arrays, lost = self._read(tape, columns, rows)
        samples = 1 if draws is None else draws.shape[2]
        numbers = np.empty((0, 0)) if draws is None else draws.reshape(-1, rows * samples)
        states = np.empty((len(tape.axes), rows * samples), dtype=np.int32)
        for place, name in zip(states, self.program.observed, strict=False):
            place.reshape(rows, samples)[:] = columns[name].states()[:, None]

        followed = traceback_kernels.SampleArrays(states, numbers, samples)

        def work(rows: tuple[int, int], some: tuple[int, int]) -> None:
            values = self._values(tape, arrays.constants, width)
            traceback_kernels.descend(arrays, tape.traceback, values, followed, rows, some)

        if rows < samples:
            blocks = blocks_of_tiles(self.threads, samples, 1, rows * tape.work)
            in_threads(work, [(0, rows)] * len(blocks), blocks)
        else:
            blocks = blocks_of_tiles(self.threads, rows, width, samples * tape.work)
            in_threads(work, blocks, [(0, samples)] * len(blocks))
        if lost:
            arrays.doubts[:] |= rows_too_small(columns, rows, self.dtype)
        if self.tables_in_doubt(tape):
            arrays.doubts[:] = True
        states_of: States = {axis: own.reshape(rows, samples) for axis, own in zip(tape.axes, states, strict=True)}
        return Descent(states_of, self._results(tape, arrays.outputs, arrays.doubts if arrays.doubts.any() else None))

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        if kernel is None:
            return super().fused(data, seed_of, kernel, weights, *arguments)
        value, gradients, doubt = self._fused(data, kernel, weights, arguments)
        imprecise = self._imprecise(data) if doubt or data.some_lost else np.empty(0, dtype=np.intp)
        if not len(imprecise):
            return value, gradients
        others = weights.copy()
        others[imprecise] = 0.0
        value, gradients, _ = self._fused(data, kernel, others, arguments)
        columns, count = data.columns_of(imprecise), len(imprecise)
        theirs, more = self.fallback.value_and_gradients(columns, count, lambda joint: seed_of(joint, imprecise))
        return value + theirs, gradients.with_rows_replaced(imprecise, more)

    def _fused(
        self, data: Packed, kernel: Kernel, weights: Array, arguments: tuple[Any, ...]
    ) -> tuple[float, Gradients, bool]:
        """A loss and its derivatives in plain floats, and whether some rows may be imprecise."""
        tape = self._tape()
        arrays, seeds = self._arrays(tape, *data.arrays), np.empty((tape.states, data.rows), dtype=self.dtype)
        losses, d_constants, d_inputs = self._in_reverse(tape, arrays, seeds, True, kernel, weights, *arguments)
        doubt = bool(arrays.doubts.any()) or self.tables_in_doubt(tape)
        return sum(losses), self._collected(tape, d_constants, d_inputs), doubt

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        tape = self._jacobian_tape()
        arrays, seeds = self._arrays(tape, *data.arrays), np.empty((tape.states, data.rows), dtype=self.dtype)
        by_constant = np.zeros((tape.constant_count, data.rows))
        self._in_reverse(tape, arrays, seeds, True, tape_kernels.jacobian, by_constant, (first, stop))
        doubt = bool(arrays.doubts.any())
        return self._jacobian_with_fallback(tape, arrays.outputs[0], by_constant, doubt, data, first, stop)

    def _width(self, tape: Tape, rows: int) -> int:
        return tile_width(self.dtype.itemsize * tape.slots, rows)

    def _values(self, tape: Tape, constants: Array, width: int) -> Array:
        """A working space of one tile, with its constant slots filled in."""
        values = working_space(tape.slots, width, self.dtype)
        values[0] = 1.0
        if len(tape.pinned):
            values[tape.pinned[:, 0]] = constants[tape.pinned[:, 1], None]
        return values

    def _read(self, tape: Tape, columns: Columns, rows: int) -> tuple[TapeArrays, bool]:
        """The arrays of a tape for some evidence, and whether a likelihood is too small for floats of this size."""
        if self.dtype == np.float64:
            return self._arrays(tape, *self._packed(tape, columns, rows)), False
        with noting_underflow() as noted:
            return self._arrays(tape, *self._packed(tape, columns, rows)), bool(noted)

    def _arrays(self, tape: Tape, inputs: Array, codes: NDArray[np.int32]) -> TapeArrays:
        """A tape and its numbers, with evidence on some rows and room for their results."""
        rows = inputs.shape[1]
        outputs, doubts = np.empty((tape.outputs, rows), dtype=self.dtype), np.empty(rows, dtype=np.bool_)
        return TapeArrays(tape.instructions, tape.terms, self.constants(tape), inputs, codes, outputs, doubts)


def working_space(slots: int, width: int, dtype: np.dtype[np.floating]) -> Array:
    """Room for a tile. Vectors that cross the lines of the cache would cost a quarter of the speed."""
    if width <= VECTOR_ROWS:  # a few rows are not worth the look at an address
        return np.empty((slots, width), dtype=dtype)
    line = 64 // dtype.itemsize
    room = np.empty(slots * width + line, dtype=dtype)
    start = -room.ctypes.data // dtype.itemsize % line
    return room[start : start + slots * width].reshape(slots, width)


def tile_width(row_bytes: int, rows: int) -> int:
    """Rows of a tile: as many as keep its slots in cache, within bounds, and no more than there are."""
    if row_bytes * TILE_ROWS[0] > MAX_TILE:
        return VECTOR_ROWS
    fitting = TILE_BYTES // row_bytes // VECTOR_ROWS * VECTOR_ROWS
    return min(max(fitting, TILE_ROWS[0]), TILE_ROWS[1], -(-rows // VECTOR_ROWS) * VECTOR_ROWS)

"""The CPU engine: the batched part of a program as a tape, run over tiles of rows by numba kernels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import ONE, Constant, Contract, Gather, Parameter, Program
from tacit.engines import kernels, learning_kernels
from tacit.engines.assemble import ZERO_CONSTANT, Knowledge, Tape, assemble
from tacit.engines.numpy import NumpyEngine, Results
from tacit.engines.numpy_steps import Array, contract
from tacit.engines.reverse import Gradients
from tacit.evidence import Column
from tacit.machine import threads as usable_threads

T = TypeVar("T")

MAX_CHUNK = 2**14  # rows whose evidence is packed at a time
THREADED_WORK = 5e6  # multiply-adds below which a second thread costs more than it brings
TILE_BYTES = 2**18  # a tile's slots should take at most so much, a part of a core's own cache, ...
TILE_ROWS = (64, 256)  # ... but narrower tiles pay more for instructions than wider ones for cache misses
LANES = 8  # a vector register: tiles of fewer rows save nothing


class TapeEngine:
    """A program with its numbers, ready to run on a tape."""

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
        threads: int | None = None,
    ) -> None:
        self.program, self.gammas = program, gammas
        self.dtype = np.dtype(dtype)
        self.threads = usable_threads(threads)
        self.reference = NumpyEngine(program, parameters, gammas, "float64")
        self.known = knowledge(program, parameters, gammas)
        self.tape = assemble(program, self.known)
        self._tapes: dict[bool, Tape] = {}
        self._constants: dict[Tape, Array] = {}

    chunk = gradient_chunk = MAX_CHUNK

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes; exact 0s and 1s, and which nodes are soft, stay as they were."""
        self.gammas = {**self.gammas, **gammas}
        self.reference.update(parameters, gammas)
        self._constants = {}

    def twin(self) -> TapeEngine:
        """The same program and tapes, with numbers of its own: for another thread."""
        twin = copy(self)
        twin.reference = self.reference.twin()
        return twin

    def constants(self, tape: Tape) -> Array:
        """The numbers that a tape reads."""
        if tape not in self._constants:
            constants = np.ones(tape.constant_count, dtype=self.dtype)
            for value, first in tape.constants:
                table = self.reference.static(value)
                constants[first : first + table.size] = table.ravel()
            for node, place in tape.slopes:
                constants[place] = self.gammas[node]
            self._constants = {**self._constants, tape: constants}
        return self._constants[tape]

    def run(self, columns: Mapping[str, Column], rows: int) -> Results:
        """Evaluate some rows; `columns` hold that many rows, or one that speaks for all."""
        tape, constants = self.tape, self.constants(self.tape)
        inputs, codes = self._packed(tape, columns, rows)
        outputs = np.empty((tape.states + tape.scaled, rows), dtype=self.dtype)

        def work(block: tuple[int, int]) -> None:
            values = self._values(tape, constants, rows)
            kernels.forward(tape.instructions, tape.terms, constants, inputs, codes, outputs, values, *block)

        self._parallel(work, tape, rows)
        exponent = outputs[-1].astype(np.int64) if tape.scaled else np.zeros(rows, dtype=np.int64)
        return Results(outputs[: tape.states], exponent, {})

    def gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool = True
    ) -> Gradients:
        """One sweep down: derivatives by every parameter and every likelihood.

        `seeds` (states, rows) are the derivatives of some function by the mantissas of the joint, as `run` gives
        them. Without `through_selection`, the selected tables count as constants.
        """
        tape = self._full_tape()
        constants, pinned = self.constants(tape), pinned_array(tape)
        inputs, codes = self._packed(tape, columns, rows)
        outputs = np.empty((tape.states + tape.scaled, rows), dtype=self.dtype)
        d_inputs = np.zeros_like(inputs)
        seeds = np.ascontiguousarray(np.broadcast_to(seeds, (tape.states, rows)), dtype=self.dtype)

        def work(block: tuple[int, int]) -> Array:
            d_constants = np.zeros(tape.constant_count)
            values = self._values(tape, constants, rows)
            kernels.backward(
                tape.instructions, tape.terms, constants, inputs, codes, outputs, seeds, values,
                np.empty_like(values), pinned, d_constants, d_inputs, through_selection, *block,
            )  # fmt: skip
            return d_constants

        d_constants = sum(self._parallel(work, tape, rows), start=np.zeros(tape.constant_count))
        return self._collected(tape, d_constants, d_inputs, through_selection)

    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        """A function of the joint and its derivatives: `seed_of` gives its value and those by the joint."""
        value, seeds = seed_of(self.run(columns, rows).joint)
        return value, self.gradients(columns, rows, seeds)

    def pack(self, columns: Mapping[str, Column], rows: int) -> Packed:
        """Evidence in the form that `learn` and `jacobian` read, to be used again and again."""
        return Packed(*self._packed(self._full_tape(), columns, rows))

    def learn(self, data: Packed, kind: int, targets: Array, weights: Array) -> tuple[float, Gradients]:
        """The loss of some rows and its derivatives by every parameter, from one sweep up and one down.

        `kind` is a loss of the kernels, `targets` (groups, rows) and `weights` (rows,) are what it takes.
        """
        tape, rows = self._full_tape(), data.inputs.shape[1]
        constants, pinned = self.constants(tape), pinned_array(tape)
        outputs = np.empty((tape.states + tape.scaled, rows), dtype=self.dtype)
        seeds, d_inputs = np.empty((tape.states, rows), dtype=self.dtype), np.empty_like(data.inputs)

        def work(block: tuple[int, int]) -> tuple[float, Array]:
            d_constants = np.zeros(tape.constant_count)
            values = self._values(tape, constants, rows)
            loss = learning_kernels.learn(
                tape.instructions, tape.terms, constants, data.inputs, data.codes, outputs, kind, targets, weights,
                seeds, values, np.empty_like(values), pinned, d_constants, d_inputs, *block,
            )  # fmt: skip
            return loss, d_constants

        done = self._parallel(work, tape, rows)
        d_constants = sum((d for _, d in done), start=np.zeros(tape.constant_count))
        return sum(loss for loss, _ in done), self._collected(tape, d_constants, d_inputs)

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        """The probability that the query is in states first .. stop-1, and its derivatives by the tables.

        Row by row: (rows,) and (entries of a table, rows). Only for programs on which `has_jacobian`.
        """
        tape, rows = self._full_tape(pin=True), data.inputs.shape[1]
        constants, pinned = self.constants(tape), pinned_array(tape)
        outputs = np.empty((tape.states + tape.scaled, rows))
        seeds, d_inputs = np.empty((tape.states, rows)), np.empty_like(data.inputs)
        by_constant = np.zeros((tape.constant_count, rows))

        def work(block: tuple[int, int]) -> None:
            values = self._values(tape, constants, rows)
            learning_kernels.jacobian(
                tape.instructions, tape.terms, constants, data.inputs, data.codes, outputs, first, stop, seeds,
                values, np.empty_like(values), pinned, by_constant, d_inputs, *block,
            )  # fmt: skip

        self._parallel(work, tape, rows)
        found: dict[tuple[str, str], Array] = {}
        for value, place in tape.constants:
            operation = self.program.operations[value]
            assert isinstance(operation, Parameter)
            found[operation.node, operation.part] = by_constant[place : place + self.reference.static(value).size]
        return outputs[0], found

    def has_jacobian(self) -> bool:
        """Whether every static value that the rows need is a parameter, and none is indexed by hard evidence."""
        tape = self._full_tape(pin=True)
        return not tape.codes and all(isinstance(self.program.operations[v], Parameter) for v, _ in tape.constants)

    @property
    def jacobian_size(self) -> int:
        """How many derivatives `jacobian` stores for every row."""
        return self._full_tape(pin=True).constant_count

    def _full_tape(self, pin: bool = False) -> Tape:
        """The tape on which every value keeps its slot; made on first use."""
        if pin not in self._tapes:
            self._tapes[pin] = assemble(self.program, self.known, reuse=False, pin=pin)
        return self._tapes[pin]

    def _collected(self, tape: Tape, d_constants: Array, d_inputs: Array, through_selection: bool = True) -> Gradients:
        adjoints = {}
        for value, first in tape.constants:
            table = self.reference.static(value)
            adjoints[value] = d_constants[first : first + table.size].reshape(table.shape)
        tables, slopes = self.reference.parameter_gradients(adjoints, through_selection)
        for node, place in tape.slopes:
            slopes[node] = slopes.get(node, 0.0) + float(d_constants[place])
        likelihoods, first = {}, 0
        for name in tape.inputs:
            likelihoods[name] = d_inputs[first : first + self.program.sizes[name]]
            first += self.program.sizes[name]
        return Gradients(tables, slopes, likelihoods)

    def _parallel(self, work: Callable[[tuple[int, int]], T], tape: Tape, rows: int) -> list[T]:
        """Do the work on blocks of rows, in threads where there is enough of it."""
        threads = self.threads if rows * tape.work > THREADED_WORK else 1
        return in_blocks(work, threads, rows, self._width(tape, rows))

    def _width(self, tape: Tape, rows: int) -> int:
        return tile_width(self.dtype.itemsize * tape.slots, rows)

    def _values(self, tape: Tape, constants: Array, rows: int) -> Array:
        """A working space of one tile, with its constant slots filled in."""
        values = np.empty((tape.slots, self._width(tape, rows)), dtype=self.dtype)
        values[0] = 1.0
        for slot, constant in tape.pinned:
            values[slot] = 0.0 if constant == ZERO_CONSTANT else constants[constant]
        return values

    def _packed(self, tape: Tape, columns: Mapping[str, Column], rows: int) -> tuple[Array, NDArray[np.int32]]:
        """The evidence as one array of likelihoods (states of all variables, rows) and one of observed states."""
        sizes = self.program.sizes
        inputs = np.empty((sum(sizes[name] for name in tape.inputs), rows), dtype=self.dtype)
        first = 0
        for name in tape.inputs:
            column = columns.get(name)
            inputs[first : first + sizes[name]] = 1.0 if column is None else column.likelihoods()
            first += sizes[name]
        codes = np.empty((len(tape.codes), rows), dtype=np.int32)
        for i, name in enumerate(tape.codes):
            codes[i] = columns[name].states()
        return inputs, codes


@dataclass(frozen=True)
class Packed:
    """Evidence as a tape reads it: likelihoods (states of all variables, rows), observed states (variables, rows)."""

    inputs: Array
    codes: NDArray[np.int32]

    def take(self, rows: NDArray[np.int64]) -> Packed:
        """Some of the rows."""
        return Packed(self.inputs[:, rows], self.codes[:, rows])


def tile_width(row_bytes: int, rows: int) -> int:
    """Rows of a tile: as many as keep its slots in cache, within bounds, and no more than there are."""
    fitting = TILE_BYTES // row_bytes // LANES * LANES
    return min(max(fitting, TILE_ROWS[0]), TILE_ROWS[1], -(-rows // LANES) * LANES)


def in_blocks(work: Callable[[tuple[int, int]], T], threads: int, rows: int, width: int) -> list[T]:
    """Do the work on blocks of whole tiles, one for each thread."""
    step = -(-rows // (threads * width)) * width
    blocks = [(start, min(start + step, rows)) for start in range(0, rows, step)]
    if len(blocks) == 1:
        return [work(blocks[0])]
    with ThreadPoolExecutor(len(blocks)) as pool:
        return list(pool.map(work, blocks))


def pinned_array(tape: Tape) -> NDArray[np.int64]:
    """The pinned slots of a tape and their constants, as the kernels read them."""
    return np.array(tape.pinned, dtype=np.int64).reshape(-1, 2)


def knowledge(
    program: Program, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]
) -> Knowledge:
    """What the exact 0s and 1s of the parameters, which never change, say about the static values."""
    nonzero: dict[int, NDArray[np.bool_]] = {}
    ones: dict[int, NDArray[np.bool_]] = {}
    operators: dict[int, NDArray[np.int64]] = {}
    for i, operation in enumerate(program):
        if program.batched[i]:
            continue
        inputs = operation.inputs
        match operation:
            case Parameter():
                table = parameters[operation.node, operation.part]
                selecting = operation.part in ("test", "thresholds")
                nonzero[i] = np.full(table.shape, True) if selecting else table != 0
                ones[i] = (table == 1) & (not selecting)
                if operation.part == "test":
                    operators[i] = table.astype(np.int64)
            case Constant():
                nonzero[i], ones[i] = operation.table != 0, operation.table == 1
            case Gather():
                index = np.maximum(operation.index, 0)
                nonzero[i] = np.where(operation.index >= 0, nonzero[inputs[0]].ravel()[index], operation.index == ONE)
                ones[i] = np.where(operation.index >= 0, ones[inputs[0]].ravel()[index], operation.index == ONE)
                if inputs[0] in operators:
                    operators[i] = operators[inputs[0]].ravel()[index]
            case Contract():
                axes = [program.operations[j].axes for j in inputs]
                counts = [nonzero[j].astype(np.float64) for j in inputs]
                nonzero[i] = contract(counts, axes, [False] * len(inputs), operation.axes) > 0
                ones[i] = np.zeros(nonzero[i].shape, dtype=bool)
            case _:
                shape = tuple(program.sizes[a] for a in operation.axes)
                nonzero[i], ones[i] = np.ones(shape, dtype=bool), np.zeros(shape, dtype=bool)
    return Knowledge(nonzero, ones, operators, {node: gamma is not None for node, gamma in gammas.items()})

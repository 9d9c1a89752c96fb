"""What all engines have in common that run the batched part of a program as a tape, whatever runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import Program
from tacit.engines.assemble import ZERO_CONSTANT, Tape, assemble, knowledge
from tacit.engines.engine import Engine
from tacit.engines.numpy import NumpyEngine
from tacit.engines.results import Array, Decided, Gradients
from tacit.evidence import Column
from tacit.floats import noting_underflow
from tacit.machine import threads as usable_threads

T = TypeVar("T")
THREADED_WORK = 5e6  # multiply-adds below which a second thread costs more than it brings


class Taped(Engine):
    """A program with its numbers, and the tapes that it becomes."""

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
        self._tapes: dict[tuple[bool, ...], Tape] = {}
        self._constants: dict[Tape, Array] = {}
        self._in_doubt: dict[Tape, bool] = {}

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes; exact 0s and 1s, and which nodes are soft, stay as they were."""
        self.gammas = {**self.gammas, **gammas}
        self.reference.update(parameters, gammas)
        self._constants, self._in_doubt = {}, {}
        self._again = None

    def twin(self) -> Self:
        """The same program and tapes, with numbers of its own: for another thread."""
        twin = copy(self)
        twin.reference = self.reference.twin()
        return twin

    def constants(self, tape: Tape) -> Array:
        """The numbers that a tape reads."""
        if tape not in self._constants:
            constants = np.ones(tape.constant_count, dtype=self.dtype)
            constants[ZERO_CONSTANT] = 0.0
            for value, first in tape.constants:
                table = self.reference.static(value)
                constants[first : first + table.size] = table.ravel()
            for first, numbers in tape.literals:
                constants[first : first + len(numbers)] = numbers
            for node, place in tape.slopes:
                constants[place] = self.gammas[node]
            self._constants = {**self._constants, tape: constants}
        return self._constants[tape]

    def _tables_in_doubt(self, tape: Tape) -> bool:
        """Whether a number that is computed once is too small for floats of this size."""
        if tape not in self._in_doubt:
            values = tape.computed if self.dtype == np.float64 else [value for value, _ in tape.constants]
            found = any(self.reference.in_doubt(value, self.dtype) for value in values)
            self._in_doubt = {**self._in_doubt, tape: found}
        return self._in_doubt[tape]

    def _decided(self, tape: Tape, outputs: Array) -> dict[str, Decided]:
        rows = outputs.shape[1]
        found = self.reference.decided(rows)
        for node, first, shape in tape.decided:
            marginal, weight = outputs[first : first + 2 * math.prod(shape)].reshape(2, *shape, rows)
            if self.known.soft[node]:
                weight = np.where(weight > 0, weight, 1 + weight)
            found[node] = Decided(marginal, weight)
        return found

    def _tape(self, pin: bool = False, selections: bool = False, descent: bool = False, reuse: bool = False) -> Tape:
        """A tape made on first use: see `assemble`."""
        kind = pin, selections, descent, reuse
        if kind not in self._tapes:
            made = assemble(self.program, self.known, reuse, pin, selections, descent)
            self._tapes = {**self._tapes, kind: made}
        return self._tapes[kind]

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

    def _packed_with_care(
        self, tape: Tape, columns: Mapping[str, Column], rows: int
    ) -> tuple[tuple[Array, NDArray[np.int32]], bool]:
        """The same, and whether a likelihood is too small for floats of this size."""
        if self.dtype == np.float64:
            return self._packed(tape, columns, rows), False
        with noting_underflow() as noted:
            packed = self._packed(tape, columns, rows)
        return packed, bool(noted)

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
            codes[i] = columns[name].certain_codes()
        return inputs, codes


def in_blocks(work: Callable[[tuple[int, int]], T], threads: int, rows: int, width: int) -> list[T]:
    """Do the work on blocks of whole tiles, one for each thread."""
    if threads == 1:
        return [work((0, rows))]
    step = -(-rows // (threads * width)) * width
    blocks = [(start, min(start + step, rows)) for start in range(0, rows, step)]
    if len(blocks) == 1:
        return [work(blocks[0])]
    with ThreadPoolExecutor(len(blocks)) as pool:
        return list(pool.map(work, blocks))

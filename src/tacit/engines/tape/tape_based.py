"""What all engines have in common that run the batched part of a program as a tape, whatever runs it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import representable
from tacit.base.machine import threads as usable_threads
from tacit.compiler.operations import Parameter
from tacit.compiler.operations.axes import Key, Mask
from tacit.compiler.program import Program
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.draws import Draws
from tacit.engines.engine import Columns, Engine, Packed, Slopes, Tables, rows_within
from tacit.engines.results import Array, Decided, Gradients, Results
from tacit.engines.tape.assemble import assemble, knowledge
from tacit.engines.tape.direct import Direct, reads_directly
from tacit.engines.tape.drawn_constants import DrawnConstants, DrawnSteps
from tacit.engines.tape.tape import Tape
from tacit.evidence.density_column import lost_rows

T = TypeVar("T")
DRAWN_ELEMENTS = 2**22  # numbers that are computed of tables, of several draws at a time
THREADED_WORK = 5e6  # multiply-adds below which a second thread costs more than it brings


class TapeBased(Engine):
    """A program with its numbers, and the tapes that it becomes."""

    pins_for_jacobian = False  # whether constants need slots to have derivatives row by row

    def __init__(
        self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64", threads: int | None = None
    ) -> None:
        self.program, self.gammas = program, gammas
        self.dtype = np.dtype(dtype)
        self.threads = usable_threads(threads)
        self._reference = NumpyEngine(program, parameters, gammas, "float64")
        self._pending: tuple[dict[tuple[str, str], Array], dict[str, float | None]] = {}, {}  # what it is not told yet
        self._direct: dict[Tape, Direct] | None = {} if reads_directly(program) else None
        self._tables = self._reference.parameters
        self.known = knowledge(program, parameters, gammas)
        # what is in doubt is found vector by vector; where the last bit may decide, row by row: the engine that
        # computes a row again may decide otherwise at a tie, and that must not depend on the rows around it
        self._alone = program.largest or not all(self.known.soft[node] for node in program.selections)
        self._tapes: dict[tuple[bool, ...], Tape] = {}
        self._constants: dict[Tape, Array] = {}
        self._in_doubt: dict[Tape, bool] = {}
        self._drawn_steps: dict[frozenset[Key], DrawnSteps] = {}  # the last one, for all clones
        self._drawn: tuple[DrawnConstants, int] | None = None  # of many draws the one whose numbers these are

    def each(self, draws: Draws) -> Iterator[Engine]:
        if draws.slopes:
            yield from super().each(draws)
            return
        copy = self.clone()
        for some, drawn in self.drawn(draws):
            for i in range(some.start, some.stop):
                copy._take(draws.of(i)[0], drawn, i - some.start)
                yield copy

    def drawn(self, draws: Draws) -> Iterator[tuple[slice, DrawnConstants]]:
        """The constants under some draws at a time, as many as fit into memory."""
        steps = self._drawn_steps.get(keys := frozenset(draws.tables))
        if steps is None:
            self._drawn_steps.clear()  # learning changes the same ones again and again
            self._drawn_steps[keys] = steps = DrawnSteps(self.program, keys)
        at_once = rows_within(DRAWN_ELEMENTS, self.program.cost.static_elements, len(draws))
        for start in range(0, len(draws), at_once):
            some = slice(start, min(start + at_once, len(draws)))
            yield some, DrawnConstants(steps, self.reference, draws.some(some))

    def _take(self, parameters: Tables, drawn: DrawnConstants, i: int) -> None:
        """New numbers, as by `update`, whose constants are known."""
        self._tables = {**self._tables, **parameters}
        self._pending = {**self._pending[0], **parameters}, self._pending[1]
        self._constants, self._in_doubt, self._fallback, self._drawn = {}, {}, None, (drawn, i)

    def update(self, parameters: Tables, gammas: Slopes) -> None:
        self.gammas = {**self.gammas, **gammas}
        if self._direct is None:
            self._reference.update(parameters, gammas)
        else:
            self._tables = {**self._tables, **parameters}
            self._pending = {**self._pending[0], **parameters}, {**self._pending[1], **gammas}
        self._constants, self._in_doubt, self._fallback, self._drawn = {}, {}, None, None

    @property
    def reference(self) -> NumpyEngine:
        """The engine that computes what does not depend on evidence."""
        if any(self._pending):
            self._reference.update(*self._pending)
            self._pending = {}, {}
        return self._reference

    @property
    def tracer(self) -> Engine:
        return self.reference

    def clone(self) -> Self:
        clone = copy(self)
        clone._reference = self.reference.clone()
        clone._pending = {}, {}
        return clone

    def _read_directly(self, tape: Tape) -> Direct | None:
        """Where a tape reads tables, if nothing is computed of them."""
        if self._direct is None:
            return None
        if tape not in self._direct:
            self._direct = {**self._direct, tape: Direct.of(tape, self.program, self._evaluated(tape))}
        return self._direct[tape]

    def constants(self, tape: Tape) -> Array:
        """The numbers that a tape reads."""
        if tape not in self._constants:
            constants = self._with_slopes(tape, self._computed_constants(tape))
            self._constants = {**self._constants, tape: constants}
        return self._constants[tape]

    def _with_slopes(self, tape: Tape, constants: Array) -> Array:
        for node, place in tape.slopes:
            constants[..., place] = self.gammas[node]
        return constants

    def _computed_constants(self, tape: Tape) -> Array:
        """The constants of a tape but for slopes."""
        if self._drawn is not None:
            drawn, draw = self._drawn
            return drawn.of(tape, self.dtype, draw)
        direct = self._read_directly(tape)
        return self._evaluated(tape) if direct is None else direct.constants(self._tables)

    def _evaluated(self, tape: Tape) -> Array:
        """The same, from values that are computed of tables."""
        constants = tape.structural_constants(self.dtype)
        for value, first in tape.constants:
            table = self.reference.static(value)
            constants[first : first + table.size] = table.ravel()
        return constants

    def tables_in_doubt(self, tape: Tape) -> bool:
        """Whether a number that is computed once is too small for floats of this size."""
        if tape not in self._in_doubt:
            exact = self.literals_fit(tape) and not self._computed_in_doubt(tape)
            self._in_doubt = {**self._in_doubt, tape: not exact}
        return self._in_doubt[tape]

    def literals_fit(self, tape: Tape) -> bool:
        """Whether the numbers that are in the tape itself are floats of this size."""
        return all(bool(representable(m, e, self.dtype).all()) for _, m, e in tape.literals)

    def _computed_in_doubt(self, tape: Tape) -> bool:
        if self._drawn is not None:
            drawn, draw = self._drawn
            return drawn.in_doubt(tape, self.dtype, draw)
        return not self._plainly_exact(tape) and self._some_in_doubt(tape)

    def _plainly_exact(self, tape: Tape) -> bool:
        """Whether a quick look is enough to say that none is: in every step of learning, the numbers are others."""
        exponent, direct = np.finfo(self.dtype).minexp, self._read_directly(tape)
        if direct is None:
            return self.reference.all_from(exponent)
        return self.dtype == np.float64 or direct.all_from(2.0**exponent, self._tables)

    def _some_in_doubt(self, tape: Tape) -> bool:
        values = tape.computed if self.dtype == np.float64 else [value for value, _ in tape.constants]
        return any(self.reference.in_doubt(value, self.dtype) for value in values)

    def make_fallback(self) -> Engine:
        if self.dtype == np.float64:
            return self.reference.fallback
        return type(self)(self.program, self.reference.parameters, self.gammas, "float64", self.threads)

    def small(self, rows: int) -> bool:
        return rows * self._tape().work <= THREADED_WORK

    def _results(self, tape: Tape, outputs: Array, imprecise: Mask | None, selections: bool = False) -> Results:
        decided = self._decided(tape, outputs) if selections else {}
        return Results(outputs[: tape.states], self.exponent_of(tape, outputs), imprecise, decided)

    @staticmethod
    def exponent_of(tape: Tape, outputs: Array) -> NDArray[np.int64]:
        """The powers of two that the mantissas of the joint were divided by."""
        return outputs[tape.states].astype(np.int64) if tape.scaled else np.zeros(outputs.shape[1], dtype=np.int64)

    def _decided(self, tape: Tape, outputs: Array) -> dict[str, Decided]:
        rows = outputs.shape[1]
        decided = self.reference.decided(rows)
        weights: dict[str, list[Array]] = {}
        for node, first, shape in tape.decided:
            marginal, weight = outputs[first : first + 2 * math.prod(shape)].reshape(2, *shape, rows)
            if self.known.soft[node]:
                weight = np.where(weight > 0, weight, 1 + weight)
            weights.setdefault(node, []).append(weight)
            decided[node] = Decided.of(marginal, weights[node])
        return decided

    def _tape(
        self, pin: bool = False, selections: bool = False, descent: bool = False, reuse_slots: bool = False
    ) -> Tape:
        """A tape made on first use: see `assemble`."""
        kind = reuse_slots, pin, selections, descent
        if kind not in self._tapes:
            self._tapes = {**self._tapes, kind: assemble(self.program, self.known, *kind)}
        return self._tapes[kind]

    def _collected(self, tape: Tape, d_constants: Array, d_inputs: Array, through_selection: bool = True) -> Gradients:
        direct = self._read_directly(tape)
        if direct is not None:
            tables, slopes = direct.gradients(d_constants), dict[str, float]()
        else:
            adjoints = {}
            for value, place in tape.constants:
                table = self.reference.static(value)
                adjoints[value] = d_constants[place : place + table.size].reshape(table.shape)
            tables, slopes = self.reference.parameter_gradients(adjoints, through_selection)
        for node, place in tape.slopes:
            slopes[node] = slopes.get(node, 0.0) + float(d_constants[place])
        likelihoods, first = {}, 0
        for name in tape.inputs:
            likelihoods[name] = d_inputs[first : first + self.program.sizes[name]]
            first += self.program.sizes[name]
        return Gradients(tables, slopes, likelihoods)

    def lacks_jacobian(self) -> str:
        """There is one if every static value that the rows need is a parameter, and none is indexed by evidence."""
        tape = self._jacobian_tape()
        known = all(isinstance(self.program.operations[value], Parameter) for value, _ in tape.constants)
        return "" if known and not tape.codes else "hard evidence, or products of parameters, stand in the way"

    @property
    def jacobian_size(self) -> int:
        return self._jacobian_tape().constant_count

    def _jacobian_tape(self) -> Tape:
        return self._tape(pin=self.pins_for_jacobian)

    def _jacobian_with_fallback(
        self, tape: Tape, probability: Array, by_constant: Array, doubt: bool, data: Packed, first: int, stop: int
    ) -> tuple[Array, dict[tuple[str, str], Array]]:
        """What `jacobian` answers, given derivatives by the constants of a tape; rows in doubt are done one by one."""
        jacobian: dict[tuple[str, str], Array] = {}
        for value, place in tape.constants:
            operation = self.program.operations[value]
            assert isinstance(operation, Parameter)
            jacobian[operation.node, operation.part] = by_constant[place : place + self.program.size(operation.axes)]

        def seed_of(joint: Array) -> tuple[float, Array]:
            total = joint.sum()
            part = joint[first:stop].sum() / total
            chosen = np.zeros_like(joint)
            chosen[first:stop] = 1.0
            return part, (chosen - part) / total

        for row in self._imprecise(data) if doubt or data.some_lost or self.tables_in_doubt(tape) else ():
            columns = data.columns_of(np.array([row]))
            probability[row], by = self.fallback.value_and_gradients(columns, 1, seed_of)
            for key, table in jacobian.items():
                table[:, row] = by.tables[key].ravel()
        return probability, jacobian

    def _imprecise(self, data: Packed) -> NDArray[np.intp]:
        columns = data.columns_of()
        imprecise = self.doubtful(columns, self.attempt(columns, data.rows))
        return np.empty(0, dtype=np.intp) if imprecise is None else np.flatnonzero(imprecise)

    def pack(self, columns: Columns, rows: int) -> Packed:
        return Packed(columns, rows, self._packed(self._tape(), columns, rows), lost=lost_rows(columns, rows))

    def _packed(self, tape: Tape, columns: Columns, rows: int) -> tuple[Array, NDArray[np.int32]]:
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


def blocks_of_tiles(threads: int | None, rows: int, width: int, row_work: int) -> list[tuple[int, int]]:
    """The first row and the end of blocks of whole tiles: one for each thread, if there is work enough, at most."""
    if not threads or threads == 1 or rows * row_work <= THREADED_WORK:
        return [(0, rows)]
    step = -(-rows // (threads * width)) * width
    return [(start, min(start + step, rows)) for start in range(0, rows, step)]


def in_threads(work: Callable[..., T], *items: Sequence[Any]) -> list[T]:
    """Do the work on all items, each in a thread of its own; the results are in their order."""
    if len(items[0]) == 1:
        return [work(*(own[0] for own in items))]
    with ThreadPoolExecutor(len(items[0])) as pool:
        return list(pool.map(work, *items))

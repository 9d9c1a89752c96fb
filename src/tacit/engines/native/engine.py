"""The CPU engine: code that is generated for the tape of one program, and compiled for this processor.

What a processor notes of a tile (a number was too small for a float), and what a reader notes (evidence needs a closer
look) is settled afterwards: these rows are checked, and run again in tiles of one vector. What is left in doubt is
computed by a more careful engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from tacit.compiler.program import Program
from tacit.engines.assemble import Tape
from tacit.engines.descent import descend
from tacit.engines.engine import Engine, Kernel, Packed, RowLayout, SeedOfRows, SingleRow
from tacit.engines.native.columns import Described
from tacit.engines.native.host import CALL, DOUBT, INFINITE, UNUSUAL, Layout, Module
from tacit.engines.native.looked_at import LookedAt, looked_at
from tacit.engines.native.readers import TILE, reader_text
from tacit.engines.native.target import Code, Run, code, is_stored
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse
from tacit.engines.taped import THREADED_WORK, Taped, blocks_of_tiles, in_threads
from tacit.evidence import Column, blocks, take
from tacit.floats import Floats

GRADIENT_CHUNK = 2**14
DESCENT_ELEMENTS = 2**22  # values in memory at a time, on the way down
CHUNK = 2**17  # rows whose results are in memory at a time, where something is made of them
LINE = 64  # bytes of a line of the cache
NOTHING: Array = np.empty((0, 0))  # derivatives by inputs that nobody asked for


@dataclass(frozen=True, eq=False)
class Generated:
    """The code of a tape, and how it divides its memory."""

    tape: Tape
    layout: Layout
    code: Code
    free: list[Memory] = field(default_factory=list)  # what threads have worked in, and do not any more

    @contextmanager
    def memory(self) -> Iterator[Memory]:
        """Memory to work in."""
        try:
            memory = self.free.pop()
        except IndexError:
            memory = Memory(self.layout.starts["end"])
        yield memory
        self.free.append(memory)


class Memory:
    """What one thread works in, and the arguments of its call."""

    def __init__(self, size: int) -> None:
        self._work = np.empty(size + LINE, dtype=np.uint8)
        self.work = -(-_address(self._work) // LINE) * LINE
        self._arguments = np.empty(len(CALL), dtype=np.int64)
        self.call_address = _address(self._arguments)

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


class SingleRows:
    """Answers one row at a time: all that a call needs is prepared, and the row is written into its place."""

    def __init__(self, engine: NativeEngine) -> None:
        self._engine, self._generated = engine, engine.compile(Kind(False, False))
        tape = self._generated.tape
        self.layout = RowLayout(tape.inputs, tape.codes)
        self._free: list[_Seat] = []

    def posterior(self, row: bytes) -> Array | None:
        """P*(q) of one row: (1, states); None where it needs a closer look."""
        return self._answered(row, _Seat.posterior)

    def joint(self, row: bytes) -> tuple[NDArray[Any], NDArray[np.int64]] | None:
        """p*(q) of one row, mantissas (1, states) and their exponent (1,); None where it needs a closer look."""
        outputs, tape = self._answered(row, _Seat.outputs), self._generated.tape
        return None if outputs is None else (outputs[: tape.states].T, self._engine._exponent(tape, outputs))

    def _answered(self, row: bytes, read: Callable[[_Seat], Array]) -> Array | None:
        engine, tape = self._engine, self._generated.tape
        if engine._tables_in_doubt(tape):
            return None
        try:
            seat = self._free.pop()
        except IndexError:
            seat = _Seat(engine, self._generated)
        found = read(seat) if seat.run(row, engine.constants(tape)) else None
        self._free.append(seat)
        return found


class _Seat:
    """Where one thread has its single rows answered."""

    def __init__(self, engine: NativeEngine, generated: Generated) -> None:
        tape, memory = generated.tape, Memory(generated.layout.starts["end"])
        inputs = engine._inputs(tape)
        self._row = np.empty(8 * inputs + 4 * len(tape.codes), dtype=np.uint8)
        codes = self._row[8 * inputs :].view(np.int32).reshape(-1, 1)
        described = engine._described_arrays(generated, self._row[: 8 * inputs].view(np.float64).reshape(-1, 1), codes)
        self._posterior = np.empty((1, tape.states), dtype=engine.dtype)
        self._outputs = np.empty((tape.outputs, 1), dtype=engine.dtype)
        self._notes = np.zeros(1, dtype=np.uint8)
        self._described, self._memory = described, memory
        self._constants: Array = NOTHING
        self._note, self._place = self._notes.data, self._row.data
        self._run = generated.code.run_briefly
        memory.prepare({
            "columns": len(described.table),
            "table": described.address,
            "posterior": _address(self._posterior),
            "outputs": _address(self._outputs),
            "outputs_stride": 1,
            "notes": _address(self._notes),
            "work": memory.work,
            "stop": 1,
            "tile": TILE,
        })  # fmt: skip

    def run(self, row: bytes, constants: Array) -> bool:
        """Answer a row, and say whether that is all there is to do."""
        if constants is not self._constants:
            self._memory.set("constants", _address(constants))
            self._constants = constants
        self._place[:] = row
        self._run(self._memory.call_address)
        return not self._note[0]

    def posterior(self) -> Array:
        """What was found: (1, states)."""
        return self._posterior.copy()

    def outputs(self) -> Array:
        """What was put out: (outputs, 1)."""
        return self._outputs.copy()


class Kind(NamedTuple):
    """What some code does."""

    reverse: bool
    option: bool  # forward: with selections; in reverse: through sigmoids
    loss: int | None = None  # one of `row_losses`, whose derivatives are taken
    groups: int = 0  # of its targets
    by_row: bool = False  # the derivatives of a share of the joint by the constants, row by row
    descent: bool = False  # forward: with all values that the way down looks at


JACOBIAN = Kind(True, True, by_row=True)
DESCENT = Kind(False, False, descent=True)


class NativeEngine(Taped):
    """A program with its numbers, ready to run as machine code."""

    chunk, gradient_chunk = CHUNK, GRADIENT_CHUNK

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
        threads: int | None = None,
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self._bits = 8 * self.dtype.itemsize
        self._readers: dict[tuple[str, str, int, int], Code] = {}
        self._generated: dict[Kind, Generated] = {}
        self._texts: dict[Kind, tuple[Module, str]] = {}  # of code that is not compiled yet
        self._interpreter: Taped | None = None
        self._single: SingleRows | None = None
        self._last: tuple[Packed, Generated, Described] | None = None

    # code -------------------------------------------------------------------------------------------------

    @property
    def terms(self) -> int:
        """The multiply-adds of a row."""
        return self._tape().work

    @property
    def variables(self) -> int:
        """How many variables evidence is read of."""
        return len(self._tape().inputs) + len(self._tape().codes)

    def has(self, kind: Kind) -> bool:
        """Whether some code is in memory."""
        return kind in self._generated

    def compile(self, kind: Kind) -> Generated:
        """The code of one kind, compiled on first use."""
        if kind not in self._generated:
            module, text = self._text(kind)
            self._generated.setdefault(kind, Generated(module.tape, module.layout, code(text, "run")))
            self._texts.pop(kind, None)
        return self._generated[kind]

    def _text(self, kind: Kind) -> tuple[Module, str]:
        """The text of some code."""
        found = self._texts.get(kind)
        if found is None:
            tape = self._tape(selections=kind.option and not kind.reverse)
            if kind.descent:
                tape = self._looked_at.tape
            module = Module(tape, self._bits, self._inputs(tape), kind.reverse, kind.groups, kind.by_row)
            if kind.by_row:
                text = module.jacobian()
            elif kind.loss is not None:
                text = module.learning(kind.loss)
            else:
                text = module.backward(kind.option) if kind.reverse else module.forward()
            found = self._texts[kind] = module, text
        return found

    def is_stored(self, kind: Kind) -> bool:
        """Whether some code is on disk."""
        return is_stored(self._text(kind)[1])

    def _inputs(self, tape: Tape) -> int:
        return sum(self.program.sizes[name] for name in tape.inputs)

    def _reader(self, what: str, kind: str, bits: int, few: int) -> int:
        key = what, kind, bits, few
        if key not in self._readers:
            self._readers.setdefault(key, code(reader_text(*key), "read"))  # another thread may run its own already
        return self._readers[key].address

    @property
    def interpreter(self) -> Taped:
        """The engine for what there is no generated code for: it interprets the tape."""
        if self._interpreter is None:
            from tacit.engines.tape import TapeEngine

            numbers = self.reference.parameters, self.gammas
            self._interpreter = TapeEngine(self.program, *numbers, self.dtype.name, self.threads)
        return self._interpreter

    def chunk_for(self, rows: int) -> int:
        """All at once: nothing is made on the way that grows with them."""
        return max(rows, 1)

    # new numbers ------------------------------------------------------------------------------------------

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes; exact 0s and 1s, and which nodes are soft, stay as they were."""
        super().update(parameters, gammas)
        if self._interpreter is not None:
            self._interpreter.update(parameters, gammas)

    def twin(self) -> Self:
        """The same program and code, with numbers of its own: for another thread."""
        twin = super().twin()
        twin._interpreter = twin._single = None
        return twin

    def more_careful(self) -> Engine:
        """The same in float64, or with an exponent for every number."""
        if self.dtype == np.float64:
            return self.reference.again
        return type(self)(self.program, self.reference.parameters, self.gammas, "float64", self.threads)

    # forward ----------------------------------------------------------------------------------------------

    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows, and say which are doubtful."""
        generated = self.compile(Kind(False, selections))
        outputs, doubts = self._outputs(generated, columns, rows)
        found = self._results(generated.tape, outputs, doubts)
        return replace(found, selections=self._decided(generated.tape, outputs)) if selections else found

    def _results(self, tape: Tape, outputs: Array, doubts: NDArray[np.bool_]) -> Results:
        return Results(outputs[: tape.states], self._exponent(tape, outputs), doubts if doubts.any() else None)

    def _outputs(
        self, generated: Generated, columns: Mapping[str, Column], rows: int
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The outputs of some rows, and which of them are doubtful."""
        outputs = np.empty((generated.tape.outputs, rows), dtype=self.dtype)
        notes = self._run(generated, self._described(generated, columns), rows, outputs=outputs)
        doubts = np.full(rows, self._tables_in_doubt(generated.tape))
        some = _rows_noted(notes, TILE, rows)
        if len(some):
            outputs[:, some], doubts[some] = self._once_more(generated, take(columns, some), len(some))
        return outputs, doubts

    def _once_more(
        self, generated: Generated, columns: Mapping[str, Column], rows: int
    ) -> tuple[Array, NDArray[np.bool_]]:
        """The outputs of some rows whose evidence is checked first, and which of them are still doubtful."""
        outputs = np.empty((generated.tape.outputs, rows), dtype=self.dtype)
        narrow = 1 if self._alone else generated.layout.lanes.rows
        described = self._described(generated, checked(columns))
        notes = self._run(generated, described, rows, narrow, outputs=outputs)
        doubts = np.full(rows, self._tables_in_doubt(generated.tape))
        doubts[_rows_noted(notes, narrow, rows)] = True  # also where a likelihood is too small for these floats
        return outputs, doubts

    def posterior(self, columns: Mapping[str, Column], rows: int) -> Array:
        """P*(q) of some rows: (rows, states)."""
        generated = self.compile(Kind(False, False))
        if self._tables_in_doubt(generated.tape):
            return super().posterior(columns, rows)
        found = np.empty((rows, generated.tape.states), dtype=self.dtype)
        notes = self._run(generated, self._described(generated, columns), rows, posterior=found)
        some = _rows_noted(notes, TILE, rows, DOUBT | UNUSUAL | INFINITE)
        if len(some):
            found[some] = self.run(take(columns, some), len(some)).posterior(some)
        return found

    def single(self) -> SingleRow | None:
        """What answers single rows."""
        if self._single is None:
            self._single = SingleRows(self)
        return self._single

    # derivatives ------------------------------------------------------------------------------------------

    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> Reverse:
        """Derivatives in plain floats, given those by the mantissas that this engine's own forward pass finds."""
        generated = self.compile(Kind(True, through_selection))
        d_inputs = np.empty((self._inputs(generated.tape), rows), dtype=self.dtype)
        found = self._differentiate(generated, self._described(generated, columns), rows, seeds, d_inputs)
        if np.any(found.notes & UNUSUAL):
            described = self._described(generated, checked(columns))
            found = self._differentiate(generated, described, rows, seeds, d_inputs)
        doubt = bool(np.any(found.notes & (DOUBT | UNUSUAL))) or self._tables_in_doubt(generated.tape)
        gradients = self._collected(generated.tape, found.d_constants, d_inputs, through_selection)
        return Reverse(gradients, found.exponent, doubt)

    def _differentiate(
        self, generated: Generated, described: Described, rows: int, seeds: Array, d_inputs: Array | None
    ) -> Differentiated:
        tape = generated.tape
        given = np.ascontiguousarray(np.broadcast_to(seeds, (tape.states, rows)), dtype=self.dtype)
        sums = self._sums(generated)
        last = np.empty(rows if tape.scaled else 0, dtype=self.dtype)  # output, which is the exponent
        outputs = as_strided(last, (tape.outputs, rows), (0, last.itemsize))  # one after the other in the same place
        wanted = outputs if tape.scaled else None
        notes = self._run(generated, described, rows, outputs=wanted, seeds=given, d_inputs=d_inputs, sums=sums)
        return Differentiated(sums.sum(axis=0)[:-1], self._exponent(tape, outputs), notes)

    def _sums(self, generated: Generated) -> Floats:
        """Room for derivatives by the constants, and for a loss, of each thread."""
        return np.zeros((self.threads or 1, generated.tape.constant_count + 1))

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A function of some rows and its derivatives, from one sweep up and one down; see `Engine.fused`."""
        if kernel is None:
            return super().fused(data, seed_of, kernel, weights, *arguments)
        loss, targets = arguments
        generated = self.compile(Kind(True, True, loss, len(targets)))
        labels, sums = Labels(_doubles(targets), _doubles(weights)), self._sums(generated)
        notes = self._run(generated, self._described_packed(generated, data), data.rows, sums=sums, labels=labels)
        if (notes & DOUBT).any() or self._tables_in_doubt(generated.tape):
            return super().fused(data, seed_of, kernel, weights, *arguments)
        total = sums[0] if len(sums) == 1 else sums.sum(axis=0)
        return float(total[-1]), self._collected(generated.tape, total[:-1], NOTHING)

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        """The probability that the query is in states first .. stop-1, and its derivatives by the tables."""
        generated = self.compile(JACOBIAN)
        tape, described = generated.tape, self._described_packed(generated, data)
        outputs = np.empty((tape.outputs, data.rows), dtype=self.dtype)
        by_constant = np.empty((tape.constant_count, data.rows), dtype=self.dtype)
        share = Share(by_constant, first, stop)
        notes = self._run(generated, described, data.rows, outputs=outputs, share=share)
        doubt = bool((notes & DOUBT).any())
        return self._mended_jacobian(tape, outputs[0], _doubles(by_constant), doubt, data, first, stop)

    def small(self, rows: int) -> bool:
        """Whether so many rows are too little work for several threads."""
        return rows * self._tape().work <= THREADED_WORK

    # the way down -----------------------------------------------------------------------------------------

    def attempt_descent(self, columns: Mapping[str, Column], rows: int, draws: Floats | None) -> Descent:
        """States from plain floats, and which rows are doubtful: code goes up, and NumPy comes down."""
        generated = self.compile(DESCENT)
        chunk = max(1, DESCENT_ELEMENTS // generated.tape.outputs)
        found = []
        for some, block in blocks(columns, rows, chunk):
            own = None if draws is None else np.ascontiguousarray(draws[:, some])
            found.append(self._descended(generated, block.columns, block.rows, own))
        return Descent.joined(found)

    def _descended(
        self, generated: Generated, columns: Mapping[str, Column], rows: int, draws: Floats | None
    ) -> Descent:
        outputs, doubts = self._outputs(generated, columns, rows)
        places = self._looked_at.places

        def value(i: int) -> Array:
            return outputs[places[i]] if i in places else self.reference.static(i)

        observed = {name: columns[name].states() for name in self.program.observed}
        states = descend(self.program, value, observed, rows, draws)
        return Descent(states, self._results(generated.tape, outputs, doubts))

    @cached_property
    def _looked_at(self) -> LookedAt:
        return looked_at(self._tape(descent=True), self.program)

    # calls ------------------------------------------------------------------------------------------------

    def _described(self, generated: Generated, columns: Mapping[str, Column]) -> Described:
        tape, described = generated.tape, Described(self._reader, self._bits)
        for name in tape.inputs:
            described.likelihoods(columns.get(name), self.program.sizes[name])
        described.move_to(generated.layout.starts["codes"])
        for name in tape.codes:
            described.states(columns[name].certain_codes())
        return described

    def _described_arrays(self, generated: Generated, inputs: Array, codes: NDArray[np.int32]) -> Described:
        described = Described(self._reader, self._bits)
        if len(inputs):
            described.array(inputs)
        described.move_to(generated.layout.starts["codes"])
        for own in codes:
            described.states(own)
        return described

    def _described_packed(self, generated: Generated, data: Packed) -> Described:
        """The same of packed rows, which are often the ones of the last call."""
        last = self._last
        if last is None or last[0] is not data or last[1] is not generated:
            self._last = last = data, generated, self._described_arrays(generated, *data.arrays)
        return last[2]

    def _run(
        self,
        generated: Generated,
        described: Described,
        rows: int,
        tile: int = TILE,
        outputs: Array | None = None,
        posterior: Array | None = None,
        seeds: Array | None = None,
        d_inputs: Array | None = None,
        sums: Floats | None = None,
        labels: Labels | None = None,
        share: Share | None = None,
    ) -> NDArray[np.uint8]:
        """Run some code over all rows, in threads where there is enough work; returns what it noted of each tile."""
        constants = self.constants(generated.tape)
        notes = np.empty(-(-rows // tile), dtype=np.uint8)
        run = generated.code.run
        threads = (self.threads or 1) if rows * generated.tape.work > THREADED_WORK else 1
        first_note, first_sum = _address(notes), _address(sums)
        given = {
            "columns": len(described.table),
            "table": described.address,
            "constants": _address(constants),
            "outputs": _address(outputs),
            "outputs_stride": 0 if outputs is None else outputs.strides[0] // outputs.itemsize,
            "posterior": _address(posterior),
            "tile": tile,
            "seeds": _address(seeds),
            "seeds_stride": rows,
            "d_inputs": _address(d_inputs),
            "d_inputs_stride": rows,
            **({} if labels is None else labels.given),
            **({} if share is None else share.given),
        }

        def work(block: tuple[int, int], number: int) -> None:
            start, stop = block
            with generated.memory() as memory:
                own = {"notes": first_note + start // tile, "work": memory.work, "start": start, "stop": stop}
                if sums is not None:
                    own["d_constants"] = first_sum + number * sums.strides[0]
                    own["loss"] = own["d_constants"] + generated.tape.constant_count * sums.itemsize
                memory.call(run, given | own)

        blocks = blocks_of_tiles(threads, rows, TILE)
        in_threads(work, blocks, range(len(blocks)))  # sums are added up in the order of blocks, not of threads
        return notes


class Labels(NamedTuple):
    """What a loss compares with."""

    targets: Floats  # (groups, rows)
    weights: Floats

    @property
    def given(self) -> dict[str, int]:
        """What code is told of them."""
        return {
            "targets": _address(self.targets),
            "targets_stride": self.targets.shape[1],
            "weights": _address(self.weights),
        }


class Share(NamedTuple):
    """The states whose share of the joint is differentiated, and where the derivatives by the constants go."""

    by_constant: Array  # (constants, rows)
    first: int
    stop: int

    @property
    def given(self) -> dict[str, int]:
        """What code is told of it."""
        return {
            "d_constants": _address(self.by_constant),
            "d_constants_stride": self.by_constant.shape[1],
            "first_state": self.first,
            "end_state": self.stop,
        }


class Differentiated(NamedTuple):
    """Derivatives by the constants of a tape, the exponents of all rows, and what was noted of each tile."""

    d_constants: Array
    exponent: NDArray[np.int64]
    notes: NDArray[np.uint8]


def checked(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The same evidence, checked and normalised; an error where something is wrong with it."""
    return {name: column.kept() for name, column in columns.items()}


def _doubles(array: Array) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)


def _rows_noted(notes: NDArray[np.uint8], tile: int, rows: int, what: int = DOUBT | UNUSUAL) -> NDArray[np.int64]:
    """The rows of tiles of which something was noted."""
    tiles = np.flatnonzero(notes & what)
    found = (tiles[:, None] * tile + np.arange(tile)).ravel()
    return found[found < rows]


def _address(array: NDArray[Any] | None) -> int:
    return 0 if array is None else int(array.__array_interface__["data"][0])

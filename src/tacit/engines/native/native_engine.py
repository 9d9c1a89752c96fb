"""The CPU engine: code that is generated for the tape of one program, and compiled for this processor.

What a processor notes of a tile (a number was too small for a float), and what a reader notes (evidence needs a closer
look) is settled afterwards: these rows are checked, and run again in tiles of one vector. What is left in doubt is
computed by the fallback.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.operations.axes import Mask
from tacit.compiler.program import Program
from tacit.engines.arrays.traceback import descend
from tacit.engines.draws import Draws
from tacit.engines.engine import (
    Columns,
    Kernel,
    LogSums,
    Packed,
    SeedOfRows,
    SingleRow,
    Slopes,
    Tables,
    WeightedRows,
)
from tacit.engines.native.calls import Argument, EvidenceTable, Generated, address_of, arguments_of
from tacit.engines.native.lanes import Note
from tacit.engines.native.llvm import Code, code, is_stored
from tacit.engines.native.module import CodeKind, TapeModule
from tacit.engines.native.readers import ROWS_PER_TILE, reader_text
from tacit.engines.native.single_row import SingleRows
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse
from tacit.engines.tape import instructions as k
from tacit.engines.tape.drawn_constants import DrawnConstants
from tacit.engines.tape.tape import Tape
from tacit.engines.tape.tape_based import TapeBased, blocks_of_tiles, in_threads
from tacit.evidence.column import Column, Evidence, blocks, take
from tacit.evidence.density_column import DensityColumn, is_normal, lost_rows

GRADIENT_CHUNK = 2**14
DESCENT_ELEMENTS = 2**22  # values in memory at a time, for a traceback
MAX_CHUNK = 2**17  # rows whose results are in memory at a time, where something is made of them
IMPRECISE, UNUSUAL, LOST = int(Note.IMPRECISE), int(Note.UNUSUAL), int(Note.LOST)  # NumPy is slow with flags
NOT_EXACT = IMPRECISE | UNUSUAL
NOT_A_POSTERIOR = int(NOT_EXACT | Note.INFINITE)
NO_INPUTS: Array = np.empty((0, 0))  # derivatives by inputs that nobody asked for
JACOBIAN = CodeKind(True, True, by_row=True)
BY_LOG = CodeKind(True, False, by_log=True)
DESCENT = CodeKind(False, False, descent=True)


class NativeEngine(TapeBased):
    """A program with its numbers, ready to run as machine code."""

    chunk, gradient_chunk = MAX_CHUNK, GRADIENT_CHUNK

    def __init__(
        self, program: Program, parameters: Tables, gammas: Slopes, dtype: str = "float64", threads: int | None = None
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self._bits = 8 * self.dtype.itemsize
        self._readers: dict[tuple[str, str, int, int], Code] = {}
        self._generated: dict[CodeKind, Generated] = {}
        self._texts: dict[CodeKind, tuple[TapeModule, str]] = {}  # of code that is not compiled yet
        self._single: SingleRows | None = None
        self._last: tuple[Packed, Generated, EvidenceTable] | None = None

    def has(self, kind: CodeKind) -> bool:
        """Whether some code is in memory."""
        return kind in self._generated

    def compile(self, kind: CodeKind) -> Generated:
        """The code of one kind, compiled on first use."""
        if kind not in self._generated:
            module, text = self._text(kind)
            self._generated.setdefault(kind, Generated(module.tape, module.layout, code(text, "run")))
            self._texts.pop(kind, None)
        return self._generated[kind]

    def _text(self, kind: CodeKind) -> tuple[TapeModule, str]:
        text_of = self._texts.get(kind)
        if text_of is None:
            tape = self._descent_tape[0] if kind.descent else self._tape(selections=kind.option and not kind.reverse)
            inputs = sum(self.program.sizes[name] for name in tape.inputs)
            module = TapeModule(tape, self._bits, inputs, kind)
            text_of = self._texts[kind] = module, module.text()
        return text_of  # another thread may have compiled it, and dropped its text

    def is_stored(self, kind: CodeKind) -> bool:
        """Whether some code is on disk."""
        return is_stored(self._text(kind)[1])

    def _reader(self, what: str, kind: str, bits: int, few: int) -> int:
        key = what, kind, bits, few
        if key not in self._readers:
            self._readers.setdefault(key, code(reader_text(*key), "read"))  # another thread may run its own already
        return self._readers[key].address

    def chunk_for(self, rows: int) -> int:
        """All at once: nothing is made on the way that grows with them."""
        return max(rows, 1)

    def works_out(self, column: DensityColumn) -> bool:
        return is_normal(column)

    def clone(self) -> Self:
        clone = super().clone()
        clone._single = None
        return clone

    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        generated = self.compile(CodeKind(False, selections))
        outputs, imprecise = self._outputs(generated, columns, rows)
        return self._results(generated.tape, outputs, imprecise, selections)

    def _outputs(self, generated: Generated, columns: Columns, rows: int) -> tuple[Array, Mask | None]:
        """The outputs of some rows, and which of them are imprecise, if any."""
        outputs = np.empty((generated.tape.outputs, rows), dtype=self.dtype)
        notes = self._run(generated, self._evidence(generated, columns), rows, {"outputs": outputs})
        noted, imprecise = _rows_noted(notes, ROWS_PER_TILE, rows), np.zeros(rows, dtype=np.bool_)
        if len(noted):
            outputs[:, noted], imprecise[noted] = self._outputs_alone(generated, take(columns, noted), len(noted))
        if self.tables_in_doubt(generated.tape):
            imprecise[:] = True
        return outputs, imprecise if np.count_nonzero(imprecise) else None

    def _outputs_alone(self, generated: Generated, columns: Columns, rows: int) -> tuple[Array, Mask]:
        """The outputs of some rows whose evidence is checked first, in narrow tiles, and which are still imprecise."""
        outputs, imprecise = np.empty((generated.tape.outputs, rows), self.dtype), np.zeros(rows, dtype=np.bool_)
        tile = 1 if self._alone else generated.layout.lanes.rows
        evidence = self._evidence(generated, checked(columns))
        notes = self._run(generated, evidence, rows, {"outputs": outputs}, tile=tile)
        imprecise[_rows_noted(notes, tile, rows)] = True  # also where a likelihood is too small for these floats
        return outputs, imprecise

    def posterior(self, columns: Columns, rows: int) -> Array:
        generated = self.compile(CodeKind(False, False))
        lost = lost_rows({n: column for n, column in columns.items() if not is_normal(column)}, rows)
        if self.tables_in_doubt(generated.tape) or (lost is not None and lost.any()):
            return super().posterior(columns, rows)
        posterior = np.empty((rows, generated.tape.states), dtype=self.dtype)
        evidence = self._evidence(generated, columns, densities=True)
        notes = self._run(generated, evidence, rows, {"posterior": posterior})
        what = NOT_A_POSTERIOR | LOST if self.program.selections else NOT_A_POSTERIOR
        noted = _rows_noted(notes, ROWS_PER_TILE, rows, what)
        if len(noted):
            posterior[noted] = self.run(take(columns, noted), len(noted)).posterior(noted)
        return posterior

    def posteriors(self, columns: Columns, rows: int, draws: Draws) -> Array:
        """The same code runs on the constants of one draw after the other; rows that it notes are computed again."""
        generated = self.compile(CodeKind(False, False))
        lost = lost_rows({n: column for n, column in columns.items() if not is_normal(column)}, rows)
        if draws.slopes or (lost is not None and lost.any()):
            return super().posteriors(columns, rows, draws)
        posteriors = np.empty((len(draws), rows, generated.tape.states), dtype=self.dtype)
        evidence = self._evidence(generated, columns, densities=True)
        for some, drawn in self.drawn(draws):
            again = self._posteriors(generated, evidence, drawn, posteriors[some])
            for i, noted in again.items():
                (engine,) = self.each(draws.some(slice(some.start + i, some.start + i + 1)))
                posteriors[some.start + i, noted] = engine.run(take(columns, noted), len(noted)).posterior(noted)
        return posteriors

    def _posteriors(
        self, generated: Generated, evidence: EvidenceTable, drawn: DrawnConstants, to: Array
    ) -> dict[int, NDArray[np.int64]]:
        """Posteriors (draws, rows, states), and by draw the rows of which something was noted."""
        draws, rows, _ = to.shape
        notes = np.empty((draws, -(-rows // ROWS_PER_TILE)), dtype=np.uint8)
        constants = self._with_slopes(generated.tape, drawn.of_all(generated.tape, self.dtype))
        by_draw = {"constants": constants, "posterior": to, "notes": notes}
        first = {name: address_of(array) for name, array in by_draw.items()}
        shared = evidence.arguments | {"tile": ROWS_PER_TILE, "stop": rows}

        def work(some: range) -> None:
            with generated.memory(shared) as memory:
                for i in some:
                    for name, array in by_draw.items():
                        memory.set(name, first[name] + i * array.strides[0])
                    generated.code.run(memory.call_address)

        parts = blocks_of_tiles(self.threads, draws, 1, rows * generated.tape.work)
        in_threads(work, [range(*part) for part in parts])
        what = NOT_A_POSTERIOR | LOST if self.program.selections else NOT_A_POSTERIOR
        noted = np.flatnonzero((notes & what).any(axis=1)).tolist()
        again = {i: _rows_noted(notes[i], ROWS_PER_TILE, rows, what) for i in noted}
        every = np.arange(rows)
        return again | {i: every for i in range(draws) if drawn.in_doubt(generated.tape, self.dtype, i)}

    def single(self) -> SingleRow | None:
        if self._single is None:
            generated = self.compile(CodeKind(False, False))
            self._single = SingleRows(self, generated, partial(self._packed_evidence, generated))
        return self._single

    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        generated = self.compile(CodeKind(True, through_selection))
        tape, sums = generated.tape, self._sums(generated)
        seeds = np.ascontiguousarray(seeds, dtype=self.dtype)
        d_inputs = np.empty((generated.layout.inputs, rows), dtype=self.dtype)
        exponent = np.zeros(rows, dtype=self.dtype)  # the last output: all of them are put out in the same place
        given: dict[str, Argument] = {"seeds": seeds, "d_inputs": d_inputs}
        if tape.scaled:
            given |= {"outputs": exponent, "outputs_stride": 0}
        notes = self._run(generated, self._evidence(generated, columns), rows, given, sums)
        if (notes & UNUSUAL).any():
            sums[:] = 0.0
            notes = self._run(generated, self._evidence(generated, checked(columns)), rows, given, sums)
        doubt = bool((notes & NOT_EXACT).any()) or self.tables_in_doubt(tape)
        gradients = self._collected(tape, sums.sum(axis=0)[:-1], d_inputs, through_selection)
        return Reverse(gradients, exponent.astype(np.int64), doubt)

    def log_sums(self, data: WeightedRows, draws: Draws) -> LogSums | None:
        if draws.slopes:
            return None
        generated = self.compile(BY_LOG)
        if data.kept is None or data.kept[0] is not generated:
            data.kept = generated, self._evidence(generated, data.columns), lost_rows(data.columns, data.rows)
        parts = [self._log_sums(data, drawn) for _, drawn in self.drawn(draws)]
        if len(parts) == 1:
            return parts[0]
        tables = {key: np.concatenate([part.tables[key] for part in parts]) for key in parts[0].tables}
        return LogSums(np.concatenate([p.logs for p in parts]), tables, np.concatenate([p.doubtful for p in parts]))

    def _log_sums(self, data: WeightedRows, drawn: DrawnConstants) -> LogSums:
        """The same code runs on the constants of each draw, over the same blocks of rows whatever draws there are."""
        generated, evidence, lost = data.kept
        tape = generated.tape
        constants = self._with_slopes(tape, drawn.of_all(tape, self.dtype))
        draws, parts = len(constants), blocks_of_tiles(self.threads, data.rows, ROWS_PER_TILE, tape.work)
        outputs = np.empty((draws, tape.outputs, data.rows), dtype=self.dtype)
        notes = np.empty((draws, -(-data.rows // ROWS_PER_TILE)), dtype=np.uint8)
        sums, logs = np.zeros((draws, len(parts), tape.constant_count + 1)), np.empty((draws, len(parts)))
        seeds = np.ascontiguousarray(data.weights, dtype=self.dtype)[None]
        given = {"tile": ROWS_PER_TILE, "outputs_stride": data.rows, **arguments_of({"seeds": seeds})}
        by_draw = {"constants": constants, "outputs": outputs, "notes": notes, "d_constants": sums}
        first = {name: address_of(array) for name, array in by_draw.items()}

        def work(items: range) -> None:
            with generated.memory(evidence.arguments | given) as memory:
                for i, part in (divmod(item, len(parts)) for item in items):
                    places = {name: first[name] + i * array.strides[0] for name, array in by_draw.items()}
                    start, stop = parts[part]
                    places["notes"] += start // ROWS_PER_TILE
                    places["d_constants"] += part * sums.strides[1]
                    for name, value in (*places.items(), ("start", start), ("stop", stop)):
                        memory.set(name, value)
                    generated.code.run(memory.call_address)
                    logs[i, part] = _log_sum(tape, outputs[i, :, start:stop], data.weights[start:stop])

        shares = blocks_of_tiles(self.threads, draws * len(parts), 1, -(-data.rows // len(parts)) * tape.work)
        in_threads(work, [range(*share) for share in shares])
        total, by_constant = logs.sum(axis=1), sums.sum(axis=1)[:, :-1]
        doubtful: NDArray[np.bool_] = ~(np.isfinite(total) & np.isfinite(by_constant).all(axis=1))
        every = drawn.doubts(tape, self.dtype) | (not self.literals_fit(tape))
        some = (notes & NOT_EXACT).any(axis=1) | (lost is not None and bool(lost.any()))
        for i in np.flatnonzero(~doubtful & (every | some)).tolist():
            doubtful[i] = not self._trusted(data, tape, outputs[i], None if every[i] else notes[i])
        by_constant[doubtful] = 0.0
        return LogSums(total, drawn.gradients(tape, by_constant), doubtful)

    def _trusted(self, data: WeightedRows, tape: Tape, outputs: Array, notes: NDArray[np.uint8] | None) -> bool:
        """Whether all rows in which something may have underflowed are so probable that it counts for nothing."""
        lost = data.kept[2]
        if notes is None:
            doubt = np.ones(data.rows, dtype=np.bool_)
        else:
            doubt = np.zeros(data.rows, dtype=np.bool_) if lost is None else lost.copy()
            doubt[_rows_noted(notes, ROWS_PER_TILE, data.rows)] = True
        doubt &= data.weights > 0
        size = np.log2(outputs[0, doubt]) + self.exponent_of(tape, outputs)[doubt]
        return bool((size >= data.least).all())

    def _sums(self, generated: Generated) -> Floats:
        """Room for derivatives by the constants, and for a loss, of each thread."""
        return np.zeros((self.threads or 1, generated.tape.constant_count + 1))

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        if kernel is None:
            return super().fused(data, seed_of, kernel, weights, *arguments)
        loss, targets = arguments
        generated = self.compile(CodeKind(True, True, loss, len(targets)))
        evidence, sums = self._kept_evidence(generated, data), self._sums(generated)
        labels = {"targets": _doubles(targets), "weights": _doubles(weights)}
        notes = self._run(generated, evidence, data.rows, labels, sums)
        lost = data.some_lost and len(self._imprecise(data)) > 0
        if lost or (notes & IMPRECISE).any() or self.tables_in_doubt(generated.tape):
            return super().fused(data, seed_of, kernel, weights, *arguments)
        total = sums[0] if len(sums) == 1 else sums.sum(axis=0)
        return float(total[-1]), self._collected(generated.tape, total[:-1], NO_INPUTS)

    def jacobian(self, data: Packed, first: int, stop: int) -> tuple[Array, dict[tuple[str, str], Array]]:
        generated = self.compile(JACOBIAN)
        tape, evidence = generated.tape, self._kept_evidence(generated, data)
        outputs = np.empty((tape.outputs, data.rows), dtype=self.dtype)
        by_constant = np.empty((tape.constant_count, data.rows), dtype=self.dtype)
        share: dict[str, Argument] = {"first_state": first, "end_state": stop}
        share |= {"outputs": outputs, "d_constants": by_constant}
        notes = self._run(generated, evidence, data.rows, share)
        doubt = bool((notes & IMPRECISE).any())
        return self._jacobian_with_fallback(tape, outputs[0], _doubles(by_constant), doubt, data, first, stop)

    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        """States from plain floats, and which rows are imprecise: code runs forward, NumPy traces back."""
        generated = self.compile(DESCENT)
        parts = blocks(columns, rows, max(1, DESCENT_ELEMENTS // generated.tape.outputs))
        return Descent.joined([self._descended(generated, part, some, draws) for some, part in parts])

    def _descended(self, generated: Generated, known: Evidence, some: slice, draws: Floats | None) -> Descent:
        outputs, imprecise = self._outputs(generated, known.columns, known.rows)
        _, places = self._descent_tape

        def value(i: int) -> Array:
            return outputs[places[i]] if i in places else self.reference.static(i)

        observed = {name: known.columns[name].states() for name in self.program.observed}
        contiguous = None if draws is None else np.ascontiguousarray(draws[:, some])
        states = descend(self.program, value, observed, known.rows, contiguous)
        return Descent(states, self._results(generated.tape, outputs, imprecise))

    @cached_property
    def _descent_tape(self) -> tuple[Tape, dict[int, slice]]:
        return with_decision_outputs(self._tape(descent=True), self.program)

    def _evidence(self, generated: Generated, columns: Columns, densities: bool = False) -> EvidenceTable:
        """Evidence as code reads it; with `densities`, code works out those of numbers that are normal."""
        evidence = EvidenceTable(self._reader, self._bits)
        for name in generated.tape.inputs:
            column = columns.get(name)
            if densities and column is not None and is_normal(column):
                evidence.add_normal(column)
            else:
                evidence.add_column(column, self.program.sizes[name])
        evidence.place = generated.layout.starts["codes"]
        for name in generated.tape.codes:
            evidence.add("states", columns[name].certain_codes(), 1)
        return evidence

    def _packed_evidence(self, generated: Generated, inputs: Array, codes: NDArray[np.int32]) -> EvidenceTable:
        """Packed rows as code reads them."""
        evidence = EvidenceTable(self._reader, self._bits)
        if len(inputs):
            evidence.add("normalised", inputs, len(inputs))
        evidence.place = generated.layout.starts["codes"]
        for own in codes:
            evidence.add("states", own, 1)
        return evidence

    def _kept_evidence(self, generated: Generated, data: Packed) -> EvidenceTable:
        """Packed rows as code reads them; they are often those of the last call."""
        last = self._last
        if last is None or last[0] is not data or last[1] is not generated:
            self._last = last = data, generated, self._packed_evidence(generated, *data.arrays)
        return last[2]

    def _run(
        self,
        generated: Generated,
        evidence: EvidenceTable,
        rows: int,
        given: Mapping[str, Argument],
        sums: Floats | None = None,
        tile: int = ROWS_PER_TILE,
    ) -> NDArray[np.uint8]:
        """Run some code over all rows, in threads where there is enough work; returns what it noted of each tile.

        `given` are arguments of the code: see `CALL`. `sums` has a row for each thread: derivatives by the constants,
        and a loss.
        """
        tape, notes = generated.tape, np.empty(-(-rows // tile), dtype=np.uint8)
        first_note = address_of(notes)
        shared = evidence.arguments | arguments_of({"constants": self.constants(tape), "tile": tile, **given})

        def work(block: tuple[int, int], number: int) -> None:
            start, stop = block
            own = {"notes": first_note + start // tile, "start": start, "stop": stop}
            if sums is not None:
                own["d_constants"] = address_of(sums) + number * sums.strides[0]
                own["loss"] = own["d_constants"] + tape.constant_count * sums.itemsize
            generated.run(shared | own)

        blocks = blocks_of_tiles(self.threads, rows, ROWS_PER_TILE, tape.work)
        in_threads(work, blocks, range(len(blocks)))  # sums are added up in the order of blocks, not of threads
        return notes


def checked(columns: Columns) -> dict[str, Column]:
    """Evidence that is checked and normalised; an error where something is wrong with it."""
    return {name: column.kept() for name, column in columns.items()}


def _log_sum(tape: Tape, outputs: Array, weights: Floats) -> float:
    """The sum of weighted logarithms of the joint; minus infinity where a row that counts is impossible."""
    with np.errstate(divide="ignore"):
        logs = np.log(outputs[0], out=np.zeros(len(weights)), where=weights > 0)
    if tape.scaled:
        logs += outputs[tape.states] * np.log(2.0)
    return float((weights * logs).sum())


def _doubles(array: Array) -> Floats:
    return np.ascontiguousarray(array, dtype=np.float64)


def _rows_noted(notes: NDArray[np.uint8], tile: int, rows: int, what: int = NOT_EXACT) -> NDArray[np.int64]:
    """The rows of tiles of which something was noted."""
    if not np.count_nonzero(notes):
        return np.empty(0, dtype=np.int64)
    tiles = np.flatnonzero(notes & what)
    noted = (tiles[:, None] * tile + np.arange(tile)).ravel()
    return noted[noted < rows]


def with_decision_outputs(tape: Tape, program: Program) -> tuple[Tape, dict[int, slice]]:
    """A tape that also puts out what a traceback reads, and where values of the program are among its outputs."""
    assert tape.traceback is not None
    slots, places = list[int](), dict[int, slice]()
    inputs = (i for decision in program.decisions for i in decision.inputs)
    for i, entry in zip(inputs, tape.traceback.operands[:, 0].tolist(), strict=True):
        if program.batched[i] and i not in places:
            size, first = program.size(program.operations[i].axes), tape.outputs + len(slots)
            places[i] = slice(first, first + size)
            slots += tape.traceback.entries[entry : entry + size].tolist()
    numbers = np.arange(len(slots), dtype=np.int32)
    term = len(tape.terms) + numbers
    put_out = np.stack([np.full_like(numbers, k.OUTPUT), tape.outputs + numbers, term, term + 1], axis=1)
    terms = np.stack([np.array(slots, dtype=np.int32), np.zeros_like(numbers)], axis=1)
    more = replace(
        tape,
        instructions=np.concatenate([tape.instructions, put_out]),
        terms=np.concatenate([tape.terms, terms]),
        outputs=tape.outputs + len(slots),
    )
    return more, places

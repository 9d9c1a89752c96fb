"""What `engine="auto"` runs of what fits on a tape: NumPy, the interpreter, or generated code.

Each is slower to begin with than the one before, and faster afterwards. `Auto` holds all three and chooses one for a
whole call: `runner` says which, and whoever asks runs everything that belongs to the call on it. Code is compiled when
what it would have saved so far comes to as long as it takes to compile, so that no query takes more than about twice as
long as it must. A choice changes how long an answer takes, and its last digits. Where the last digit may decide, in
hard tests and in the most probable states, a program always runs on the same runner.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from copy import copy
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.base.jit import is_compiled
from tacit.compiler.program import Program
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.choice import warn_once
from tacit.engines.engine import Columns, Engine, SingleRow, Slopes, Sweep, Tables
from tacit.engines.native.llvm import NoCodeError
from tacit.engines.native.module import CodeKind
from tacit.engines.native.native_engine import DESCENT, NativeEngine
from tacit.engines.native.normal_code import NormalCode
from tacit.engines.results import Array, Descent, Gradients, Results, Reverse
from tacit.engines.tape.tape_based import TapeBased

T = TypeVar("T")


class RunnerCost(NamedTuple):
    """Seconds that a runner takes, about: for each call, and for each row and each term of a row, by direction."""

    call: float
    row: float
    term: Mapping[bool, float]  # forward, and forward and in reverse


class Work(NamedTuple):
    """How many rows there are to run in all, and in how many calls."""

    rows: int
    calls: int


# measured on two cores (docs/performance.md)
CODE = RunnerCost(15e-6, 15e-9, {False: 0.06e-9, True: 0.3e-9})
TAPE = RunnerCost(150e-6, 80e-9, {False: 0.2e-9, True: 0.8e-9})
NUMPY = RunnerCost(9e-6, 0.0, {False: 1.5e-9, True: 5e-9})  # for each operation, and each element that it writes
COMPILE_START, COMPILE_TERM = 0.03, {False: 0.15e-3, True: 0.5e-3}
WRITE_TERM = 0.03e-3  # to write the text of a term, and to look for its code on disk
READ_VARIABLE = 40e-6  # to read the evidence on a variable of one row, which code has a shorter way for
LOAD_INTERPRETER, COMPILE_KERNELS = 0.6, 25.0  # the latter once, after an installation
INTERPRETER = "tacit.engines.tape.tape_engine"
FORWARD, BACKWARD = "tacit.engines.tape.tape_kernels.forward", "tacit.engines.tape.tape_kernels.backward"
DESCEND = "tacit.engines.tape.traceback_kernels.descend"
MAX_DECIDING_TERMS = 20_000  # of a program that decides something, up to which it waits for code, some seconds
KINDS = {
    Sweep.FORWARD: CodeKind(False, False),
    Sweep.SELECTIONS: CodeKind(False, True),
    Sweep.HELD: CodeKind(True, False),
    Sweep.THROUGH: CodeKind(True, True),
}


def _kernel(kinds: tuple[CodeKind, ...]) -> str:
    return BACKWARD if any(kind.reverse for kind in kinds) else FORWARD


class Auto(Engine):
    """A program with its numbers, and the engines that may run it."""

    chunk = gradient_chunk = 2**14

    def __init__(
        self,
        program: Program,
        parameters: Tables,
        gammas: Slopes,
        dtype: str = "float64",
        threads: int | None = None,
        generate: bool = True,
    ) -> None:
        self.program = program
        self.native = NativeEngine(program, parameters, gammas, dtype, threads)
        self.threads = self.native.threads
        self._generate = generate  # else the program is too large for code, and its tape is not made until it is needed
        tape = self.native._tape() if generate else None
        self._terms = program.cost.multiply_adds if tape is None else tape.work
        self._variables = 0 if tape is None else len(tape.inputs) + len(tape.codes)
        self._numpy: NumpyEngine | None = None
        self._normal_code = NormalCode()
        self._tape: TapeBased | None = None
        # the last bit may decide a test at a tie, or between two states that are equally probable
        self._decides = program.largest or any(gammas.get(node) is None for node in program.selections)
        self._no_code = not generate  # or none can be compiled here
        self._saved: dict[tuple[CodeKind, ...], float] = {}  # seconds that code would have saved so far
        self._tape_saved = 0.0  # seconds that the interpreter would have
        self._ready: set[str] = set()  # kernels that it can run at once
        self._stored: dict[CodeKind, bool] = {}  # what was found on disk, or not

    @property
    def gammas(self) -> Slopes:  # type: ignore[override]
        return self.native.gammas

    @property
    def _numbers(self) -> tuple[Tables, Slopes]:
        return self.native.reference.parameters, self.native.gammas

    def update(self, parameters: Tables, gammas: Slopes) -> None:
        for engine in (self.native, self._numpy, self._tape):
            if engine is not None:
                engine.update(parameters, gammas)
        self._fallback = None

    def clone(self) -> Self:
        clone = copy(self)
        clone.native = self.native.clone()
        clone._numpy = clone._tape = None
        clone._saved, clone._stored, clone._ready = dict(self._saved), dict(self._stored), set(self._ready)
        return clone

    @property
    def numpy(self) -> NumpyEngine:
        """The runner that needs no preparation."""
        if self._numpy is None:
            numpy = NumpyEngine(self.program, *self._numbers, self.native.dtype.name)
            numpy.threads, numpy.find_shares = self.threads, self._normal_code
            self._numpy = numpy
        return self._numpy

    @property
    def tape(self) -> TapeBased:
        """The interpreter, which is loaded on first use."""
        if self._tape is None:
            from tacit.engines.tape.tape_engine import TapeEngine

            self._tape = TapeEngine(self.program, *self._numbers, self.native.dtype.name, self.threads)
        return self._tape

    def _interpreter(self) -> Engine:
        """The interpreter; NumPy where the tape would be too large after all."""
        try:
            return self.tape
        except TooLargeError:
            return self.numpy

    def runner(self, rows: int, *sweeps: Sweep, calls: int = 1) -> Engine:
        work = Work(rows, calls)
        if Sweep.DESCENT in sweeps:
            return self._runner(work, (DESCENT,)) if self._decides else self._other(work, DESCEND)
        return self._runner(work, tuple(KINDS[sweep] for sweep in sweeps))

    def _runner(self, work: Work, kinds: tuple[CodeKind, ...]) -> Engine:
        if self._decides and self._terms > MAX_DECIDING_TERMS:
            return self._interpreter()
        try:
            if not self._no_code and (self._decides or self._pays(work, kinds)):
                for kind in kinds:
                    self.native.compile(kind)
                return self.native
        except NoCodeError as error:
            self._no_code = True
            warn_once(f"queries run about four times slower than they could: {error}")
        return self._interpreter() if self._decides else self._other(work, _kernel(kinds))

    def _pays(self, work: Work, kinds: tuple[CodeKind, ...]) -> bool:
        """Whether code is there, or would have saved by now what it takes to compile."""
        missing = [kind for kind in kinds if not self.native.has(kind)]
        if not missing:
            return True
        kernel = _kernel(kinds)
        otherwise = self._numpy_seconds(work, kernel)
        if self._is_ready(kernel):
            otherwise = min(otherwise, self._seconds(TAPE, work, kernel))
        gain = otherwise - self._seconds(CODE, work, kernel)
        if work == (1, 1) and kinds == (KINDS[Sweep.FORWARD],):
            gain += READ_VARIABLE * self._variables
        self._saved[kinds] = saved = max(0.0, self._saved.get(kinds, 0.0) + gain)
        if saved < WRITE_TERM * self._terms * len(missing):
            return False
        price = sum(COMPILE_START + COMPILE_TERM[kind.reverse] * self._terms for kind in missing)
        return saved >= price or all(map(self._is_stored, missing))

    def _is_stored(self, kind: CodeKind) -> bool:
        if kind not in self._stored:  # to look takes longer than a row does
            self._stored[kind] = self.native.is_stored(kind)
        return self._stored[kind]

    def _other(self, work: Work, kernel: str) -> Engine:
        """NumPy or the interpreter, which is loaded when it would have saved by now what that takes."""
        by_numpy, by_tape = self._numpy_seconds(work, kernel), self._seconds(TAPE, work, kernel)
        if self._is_ready(kernel):
            return self._interpreter() if by_tape < by_numpy else self.numpy
        self._tape_saved = max(0.0, self._tape_saved + by_numpy - by_tape)
        worth = self._tape_saved > (LOAD_INTERPRETER if is_compiled(kernel) else COMPILE_KERNELS)
        return self._interpreter() if worth else self.numpy

    def _is_ready(self, kernel: str) -> bool:
        """Whether the interpreter can run at once."""
        if kernel not in self._ready and INTERPRETER in sys.modules and is_compiled(kernel):
            self._ready.add(kernel)
        return kernel in self._ready

    def _seconds(self, cost: RunnerCost, work: Work, kernel: str) -> float:
        return cost.call * work.calls + (cost.row + cost.term[kernel == BACKWARD] * self._terms) * work.rows

    def _numpy_seconds(self, work: Work, kernel: str) -> float:
        elements = self.program.cost.elements + self.program.cost.multiply_adds / 15  # sums are short loops
        calls = (4 + sum(self.program.batched)) * work.calls
        return NUMPY.call * calls + NUMPY.term[kernel == BACKWARD] * elements * work.rows

    def single(self) -> SingleRow | None:
        """What answers single rows, once there is code; until then they are counted as others are."""
        return self.native.single() if self.native.has(KINDS[Sweep.FORWARD]) else None

    def attempt(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        return self._forward(rows, selections).attempt(columns, rows, selections)

    def run(self, columns: Columns, rows: int, selections: bool = False) -> Results:
        return self._forward(rows, selections).run(columns, rows, selections)

    def run_trusting(self, columns: Columns, rows: int, least: int) -> tuple[Results, NDArray[np.intp]]:
        return self.runner(rows, Sweep.FORWARD).run_trusting(columns, rows, least)

    def _forward(self, rows: int, selections: bool) -> Engine:
        return self.runner(rows, Sweep.SELECTIONS if selections else Sweep.FORWARD)

    def posterior(self, columns: Columns, rows: int) -> Array:
        return self.runner(rows, Sweep.FORWARD).posterior(columns, rows)

    def _reverse(self, rows: int, through_selection: bool) -> Engine:
        return self.runner(rows, Sweep.THROUGH if through_selection else Sweep.HELD)

    def attempt_gradients(self, columns: Columns, rows: int, seeds: Array, through_selection: bool) -> Reverse:
        return self._reverse(rows, through_selection).attempt_gradients(columns, rows, seeds, through_selection)

    def gradients(
        self,
        columns: Columns,
        rows: int,
        seeds: ArrayLike,
        exponent: ArrayLike,
        through_selection: bool = True,
        imprecise: NDArray[np.intp] | None = None,
    ) -> Gradients:
        self.program.require_derivatives()
        runner = self._reverse(rows, through_selection)
        return runner.gradients(columns, rows, seeds, exponent, through_selection, imprecise)

    def value_and_gradients(
        self, columns: Columns, rows: int, seed_of: Callable[[Array], tuple[T, Array]]
    ) -> tuple[T, Gradients]:
        return self.runner(rows, Sweep.FORWARD, Sweep.THROUGH).value_and_gradients(columns, rows, seed_of)

    def attempt_descent(self, columns: Columns, rows: int, draws: Floats | None) -> Descent:
        return self.runner(rows, Sweep.DESCENT).attempt_descent(columns, rows, draws)

    def descend(self, columns: Columns, rows: int, draws: Floats | None = None) -> Descent:
        return self.runner(rows, Sweep.DESCENT).descend(columns, rows, draws)

    def make_fallback(self) -> Engine:
        return (self.native if self._generate else self.numpy).make_fallback()

    @property
    def tracer(self) -> Engine:
        return self.native.tracer

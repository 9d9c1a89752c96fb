"""What `engine="auto"` runs of what fits on a tape: generated code, from when it pays to compile it.

Until then the interpreter runs the tape; where it is not loaded yet, which takes as long as to compile a small tape,
NumPy does the little that there is to do. So no query waits much longer than it must, however many rows come.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, Self

import numpy as np

from tacit.compiler.program import Program
from tacit.engines.engine import Engine, Kernel, Packed, SeedOfRows
from tacit.engines.native.engine import Kind, NativeEngine
from tacit.engines.native.target import NoCodeError
from tacit.engines.numpy import NumpyEngine
from tacit.engines.results import Array, Gradients, Results
from tacit.evidence import Column
from tacit.warned import warn

# Seconds, measured on two cores (docs/performance.md): what a term of a row saves, and what a term costs to compile.
SAVED, SAVED_ROW = {False: 0.1e-9, True: 0.5e-9}, 60e-9  # forward, and in reverse; besides, what a row saves
COMPILED, BEGUN = {False: 0.15e-3, True: 0.5e-3}, 0.03
WRITTEN = 0.03e-3  # to write the text of a term, and to look for its code on disk
LOADED = 0.6  # to load the interpreter
NUMPY_ROW, NUMPY_CALL = 2e-9, 10e-6  # what NumPy takes instead: a term of a row, and an operation of a call
INTERPRETER = "tacit.engines.tape"
PACKED = 2**14  # rows whose evidence the interpreter packs at a time
Runner = Engine | Literal["code"]


@cache
def _warn_once(why: str) -> None:
    warn(f"queries run about four times slower than they could: {why}", RuntimeWarning)


class PatientEngine(NativeEngine):
    """A program with its numbers, which is compiled to machine code as soon as that pays."""

    def __init__(
        self,
        program: Program,
        parameters: Mapping[tuple[str, str], Array],
        gammas: Mapping[str, float | None],
        dtype: str = "float64",
        threads: int | None = None,
    ) -> None:
        super().__init__(program, parameters, gammas, dtype, threads)
        self._terms = self._tape().work
        self._seen = {False: 0, True: 0}  # rows, forward and in reverse
        self._stored: dict[Kind, bool] = {}  # what was found on disk, or not
        self._hindered = False  # no code can be compiled here
        self._spent = 0.0  # seconds of NumPy, about
        self._latest: Runner | None = None  # what ran rows last
        self._numpy: NumpyEngine | None = None

    def _pays(self, kind: Kind, rows: int) -> bool:
        """Whether code should run the next rows: it is there, or it would be repaid by them and those so far."""
        if self._hindered:
            return False
        if kind in self._generated:
            return True
        reverse = kind.reverse
        saved = (SAVED[reverse] * self._terms + SAVED_ROW) * (self._seen[reverse] + rows)
        if not self._interpreting:
            saved += LOADED
        if saved < WRITTEN * self._terms:
            return False
        try:
            if saved >= BEGUN + COMPILED[reverse] * self._terms or self._is_stored(kind):
                self._code(kind)
        except NoCodeError as error:
            self._hindered = True
            _warn_once(str(error))
        return kind in self._generated

    def _is_stored(self, kind: Kind) -> bool:
        if kind not in self._stored:  # to look takes longer than a row does
            self._stored[kind] = super()._is_stored(kind)
        return self._stored[kind]

    @property
    def _interpreting(self) -> bool:
        return INTERPRETER in sys.modules

    def _meanwhile(self, rows: int) -> Engine:
        """The engine that runs some rows while code does not pay."""
        self._spent += NUMPY_ROW * self.program.cost.multiply_adds * rows + NUMPY_CALL * len(self.program)
        if self._interpreting or self._hindered or self._spent > LOADED:
            return self.interpreter
        if self._numpy is None:
            self._numpy = NumpyEngine(self.program, self.reference.parameters, self.gammas, self.dtype.name)
        return self._numpy

    @property
    def chunk(self) -> int:  # type: ignore[override]
        """How many rows to run at a time: the interpreter packs them first."""
        return NativeEngine.chunk if Kind(False, False) in self._generated else PACKED

    def chunk_for(self, rows: int) -> int:
        """All rows at once where code will run them."""
        return super().chunk_for(rows) if self._pays(Kind(False, False), rows) else PACKED

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes; exact 0s and 1s, and which nodes are soft, stay as they were."""
        super().update(parameters, gammas)
        if self._numpy is not None:
            self._numpy.update(parameters, gammas)

    def twin(self) -> Self:
        """The same program and code, with numbers of its own: for another thread."""
        twin = super().twin()
        twin._numpy = twin._latest = None
        return twin

    def attempt(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows, and say which are doubtful."""
        if self._pays(Kind(False, selections), rows):
            self._latest = "code"
            return super().attempt(columns, rows, selections)
        self._seen[False] += rows
        self._latest = engine = self._meanwhile(rows)
        return engine.attempt(columns, rows, selections)

    def posterior(self, columns: Mapping[str, Column], rows: int) -> Array:
        """P*(q) of some rows: (rows, states)."""
        if self._pays(Kind(False, False), rows):
            return super().posterior(columns, rows)
        return Engine.posterior(self, columns, rows)

    def attempt_gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool
    ) -> tuple[Gradients, bool]:
        """Derivatives in plain floats, and whether some rows may be doubtful."""
        if self._pays(Kind(True, through_selection), rows):
            seeds = self._rescaled(seeds, "code", columns, rows)
            return super().attempt_gradients(columns, rows, seeds, through_selection)
        self._seen[True] += rows
        engine = self._meanwhile(rows)
        seeds = self._rescaled(seeds, engine, columns, rows)
        return engine.attempt_gradients(columns, rows, seeds, through_selection)

    def _rescaled(self, seeds: Array, engine: Runner, columns: Mapping[str, Column], rows: int) -> Array:
        """Derivatives by the mantissas of an engine, from those by the mantissas of the last one that ran.

        Both bring a number near 1 by a power of two, but where it is 1 but for rounding, not by the same one.
        """
        if self._latest in (None, engine) or not self._tape().scaled:
            return seeds
        code = super().attempt
        own, latest = (one.attempt if isinstance(one, Engine) else code for one in (engine, self._latest))
        return np.ldexp(seeds, (own(columns, rows).exponent - latest(columns, rows).exponent).astype(np.int32))

    def fused(
        self, data: Packed, seed_of: SeedOfRows, kernel: Kernel | None, weights: Array, *arguments: Any
    ) -> tuple[float, Gradients]:
        """A function of some rows and its derivatives; see `Engine.fused`."""
        kind = Kind(True, True) if kernel is None else Kind(True, True, arguments[0], len(arguments[1]))
        if self._pays(kind, data.rows):
            return super().fused(data, seed_of, kernel, weights, *arguments)
        self._seen[True] += data.rows
        return self._meanwhile(data.rows).fused(data, seed_of, kernel, weights, *arguments)

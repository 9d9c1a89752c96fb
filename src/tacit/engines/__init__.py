"""What evaluates a compiled query: NumPy (the reference, and wide contractions) and the tape (numba, CPU speed)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tacit.compiler.program import Contract, Program
from tacit.engines.numpy import Array, NumpyEngine, Results, is_matmul
from tacit.evidence import Column

ENGINES = ("auto", "numpy", "tape", "torch")

# Seconds, measured on one core: what the choice between engines rests on (docs/performance.md).
TAPE_TERM = 0.4e-9
EINSUM_TERM, MATMUL_TERM = 1.0e-9, 0.06e-9
NUMPY_ELEMENT, NUMPY_OPERATION = 1.0e-9, 10e-6
MAX_TAPE = 50_000_000  # multiply-adds per row up to which a tape is worth its memory (8 bytes each)


class Engine(Protocol):
    """What a TAC needs of an engine."""

    @property
    def chunk(self) -> int:
        """How many rows to run at a time."""

    def run(self, columns: Mapping[str, Column], rows: int, wanted: tuple[int, ...] = ()) -> Results:
        """Evaluate some rows of evidence."""


def choose(program: Program) -> str:
    """The engine that is expected to be faster, from the cost of the program."""
    if program.cost.multiply_adds > MAX_TAPE:
        return "numpy"
    return "tape" if tape_seconds(program) <= numpy_seconds(program) else "numpy"


def tape_seconds(program: Program) -> float:
    """The expected time of one row on a tape (known 0s make it less)."""
    return TAPE_TERM * program.cost.multiply_adds


def numpy_seconds(program: Program) -> float:
    """The expected time of one row with NumPy: matrix products run at the speed of BLAS, the rest does not."""
    seconds = NUMPY_ELEMENT * program.cost.elements
    operations = 0
    for i, operation in enumerate(program):
        if program.batched[i]:
            operations += 1
            if isinstance(operation, Contract):
                seconds += (MATMUL_TERM if is_matmul(program, operation) else EINSUM_TERM) * program.multiply_adds(i)
    return seconds + NUMPY_OPERATION * operations / NumpyEngine.chunk_of(program)


def build(
    engine: str,
    program: Program,
    parameters: Mapping[tuple[str, str], Array],
    gammas: Mapping[str, float | None],
    dtype: str,
) -> Engine:
    """A program with its numbers, ready to run. Heavy packages are imported only by the engine that needs them."""
    if engine == "auto":
        engine = choose(program)
    if engine == "tape":
        from tacit.engines.tape import TapeEngine

        return TapeEngine(program, parameters, gammas, dtype)
    if engine == "torch":
        from tacit.engines.torch import TorchEngine

        return TorchEngine(program, parameters, gammas, dtype)
    return NumpyEngine(program, parameters, gammas, dtype)

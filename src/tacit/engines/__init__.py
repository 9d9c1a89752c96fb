"""What evaluates a compiled query: NumPy (the reference, and wide contractions), the tape (numba), torch (GPUs)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, Self

from tacit import machine
from tacit.compiler.program import Program
from tacit.engines.numpy import NumpyEngine
from tacit.engines.results import Array, Gradients, Results
from tacit.errors import TooLargeError
from tacit.evidence import Column
from tacit.operations import Contract
from tacit.operations.contract import Layout

ENGINES = ("auto", "numpy", "tape", "torch")

# Seconds, measured on two cores: what the choice between engines rests on (docs/performance.md).
TAPE_TERM = 0.15e-9
EINSUM_TERM, MATMUL_TERM = 1.0e-9, 0.08e-9
NUMPY_ELEMENT, NUMPY_OPERATION = 2.0e-9, 10e-6
WIDE = 2**14  # entries of a table from which BLAS is worth its threads, which on a busy machine wait for each other
MAX_TAPE_LIVE = 2_000_000  # entries alive at one time: a tile of the tape holds at least 64 rows of each
MAX_TAPE = 50_000_000  # multiply-adds per row up to which a tape is worth its memory (8 bytes each)


class Engine(Protocol):
    """What a TAC needs of an engine."""

    @property
    def threads(self) -> int | None:
        """How many threads it may use; None: as many as BLAS and torch do."""

    @property
    def chunk(self) -> int:
        """How many rows to run at a time."""

    @property
    def gradient_chunk(self) -> int:
        """How many rows to ask gradients of at a time."""

    def run(self, columns: Mapping[str, Column], rows: int, selections: bool = False) -> Results:
        """Evaluate some rows of evidence; with `selections`, say how testing nodes were decided."""

    def gradients(
        self, columns: Mapping[str, Column], rows: int, seeds: Array, through_selection: bool = True
    ) -> Gradients:
        """Derivatives of a function of the joint, given those by its mantissas: `seeds` (states, rows)."""


class LearningEngine(Engine, Protocol):
    """What learning needs of an engine."""

    gammas: Mapping[str, float | None]

    def update(self, parameters: Mapping[tuple[str, str], Array], gammas: Mapping[str, float | None]) -> None:
        """Take new numbers for some tables and slopes."""

    def twin(self) -> Self:
        """The same with numbers of its own, for another thread."""

    def value_and_gradients(
        self, columns: Mapping[str, Column], rows: int, seed_of: Callable[[Array], tuple[Any, Array]]
    ) -> tuple[Any, Gradients]:
        """A function of the joint and its derivatives: `seed_of` gives its value and those by the joint."""


def choose(program: Program) -> str:
    """The engine that is expected to be faster, from the cost of the program."""
    if program.cost.multiply_adds > MAX_TAPE or program.cost.live > MAX_TAPE_LIVE:
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
                wide = _is_matrix_product(program, operation) and _table_size(program, operation) >= WIDE
                seconds += (MATMUL_TERM if wide else EINSUM_TERM) * program.multiply_adds(i)
    return seconds + NUMPY_OPERATION * operations / NumpyEngine.chunk_of(program)


def _is_matrix_product(program: Program, operation: Contract) -> bool:
    """Whether NumPy runs a contraction as one matrix product of a table and a batch."""
    batched = [program.batched[i] for i in operation.inputs]
    axes = [program.operations[i].axes for i in operation.inputs]
    return sorted(batched) == [False, True] and Layout.of(axes, operation.axes).is_matrix


def _table_size(program: Program, operation: Contract) -> int:
    return min(program.size(program.operations[i].axes) for i in operation.inputs if not program.batched[i])


def build(
    engine: str,
    program: Program,
    parameters: Mapping[tuple[str, str], Array],
    gammas: Mapping[str, float | None],
    dtype: str,
    threads: int | None = None,
) -> Engine:
    """A program with its numbers, ready to run. Heavy packages are imported only by the engine that needs them."""
    threads = machine.threads(threads)
    if engine == "auto" and choose(program) == "tape":
        try:
            return build("tape", program, parameters, gammas, dtype, threads)
        except TooLargeError:
            pass  # the estimate was too low: NumPy needs no tape
    if engine == "tape":
        from tacit.engines.tape import TapeEngine

        return TapeEngine(program, parameters, gammas, dtype, threads)
    built: Any
    with machine.limited(threads):
        if engine == "torch":
            from tacit.engines.torch import TorchEngine

            built = TorchEngine(program, parameters, gammas, dtype)
        else:
            built = NumpyEngine(program, parameters, gammas, dtype)
    built.threads = threads
    return built  # type: ignore[no-any-return]

"""What evaluates a compiled query: NumPy, a tape (as machine code, or interpreted), torch, kernels for GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

from tacit import machine
from tacit.compiler.program import Program
from tacit.engines.engine import Engine
from tacit.engines.numpy import NumpyEngine
from tacit.engines.results import Array
from tacit.errors import TacitError, TooLargeError
from tacit.installation import how_to_install
from tacit.operations import Contract, Structured
from tacit.operations.contract import Layout
from tacit.warned import warn

ENGINES = ("auto", "native", "numpy", "tape", "torch", "cuda")

# Seconds, measured on two cores: what the choice between engines rests on (docs/performance.md).
TAPE_TERM = 0.15e-9
EINSUM_TERM, MATMUL_TERM, SINGLE_TERM = 1.0e-9, 0.08e-9, 20e-9
NUMPY_ELEMENT, NUMPY_OPERATION = 2.0e-9, 10e-6
WIDE = 2**14  # entries of a table from which BLAS is worth its threads, which on a busy machine wait for each other
MAX_TAPE_LIVE = 2_000_000  # entries put out, or alive at one time: a tile of the tape holds at least 64 rows of each
LEARNED_ROWS = 5000  # from which learning, with its hundreds of passes, repays code
QUICKLY_GENERATED = 2000  # multiply-adds per row up to which its code takes a second or so to compile, for any rows
GPU_WORK = 1e9  # multiply-adds of all rows from which learning on a GPU is worth its start
MAX_GENERATED = 200_000  # multiply-adds per row up to which code is generated: it may take a minute to compile
MAX_TAPE = 50_000_000  # multiply-adds per row up to which a tape is worth its memory (8 bytes each)


def check(engine: str) -> None:
    """An error, unless it is the name of an engine that can run here."""
    if engine not in ENGINES:
        raise TacitError(f"engine is {engine!r}, expected one of {', '.join(map(repr, ENGINES))}")
    if engine == "torch" and find_spec("torch") is None:
        raise TacitError(f"engine='torch' needs PyTorch, which is not installed: {how_to_install('torch')}")
    if engine == "cuda":
        from tacit.engines.native import cuda, ptx

        cuda.driver()  # an error where there is no GPU
        ptx.machine()  # or no compiler for it


def for_learning(engine: str, program: Program, rows: int) -> str:
    """The engine asked for; of "auto", what is large is learned on a GPU, where there is one."""
    if engine != "auto":
        return engine
    return "torch" if rows * program.cost.multiply_adds >= GPU_WORK and _has_gpu() else settled(program, rows)


def settled(program: Program, rows: int) -> str:
    """What "auto" should be for many passes over so many rows, which must be repeatable: it depends on the size alone.

    Few rows of a large program are interpreted: they would not repay code.
    """
    work = program.cost.multiply_adds
    if choose(program) != "tape" or work > MAX_TAPE / 2 or not machine.can_run_code():
        return "numpy"  # a tape may turn out somewhat larger than that, and be refused
    worth = work <= QUICKLY_GENERATED or (work <= MAX_GENERATED and rows >= LEARNED_ROWS)
    return "native" if worth and _can_compile() else "tape"


def _can_compile() -> bool:
    from tacit.engines.native.target import can_compile

    return can_compile()


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def choose(program: Program) -> str:
    """The engine that is expected to be faster, from the cost of the program; a way down that is traced needs NumPy."""
    if program.traced:
        return "numpy"
    if program.cost.multiply_adds > MAX_TAPE or max(program.cost.live, program.outputs) > MAX_TAPE_LIVE:
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
                setting = program.setting(i)
                matrix = sorted(setting.batched) == [False, True] and Layout.of(setting, operation.axes).is_matrix
                wide = matrix and _table_size(program, operation) >= WIDE
                seconds += (MATMUL_TERM if wide else EINSUM_TERM) * program.multiply_adds(i)
            elif isinstance(operation, Structured):
                seconds += SINGLE_TERM * program.multiply_adds(i)
    return seconds + NUMPY_OPERATION * operations / NumpyEngine.chunk_of(program)


def _table_size(program: Program, operation: Contract) -> int:
    return min(program.size(program.operations[i].axes) for i in operation.inputs if not program.batched[i])


@cache
def _warn_once(message: str) -> None:
    warn(message, RuntimeWarning)


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
    if engine in ("auto", "native", "tape") and not machine.can_run_code():
        if engine != "auto":
            raise TacitError(
                f"engine={engine!r} compiles code, which this system does not let run; engine='numpy' does not"
            )
        _warn_once("this system does not let compiled code run: queries run on NumPy, which is much slower")
        engine = "numpy"
    if engine == "auto" and choose(program) == "tape":
        try:
            from tacit.engines.auto import Auto

            generate = program.cost.multiply_adds <= MAX_GENERATED
            return Auto(program, parameters, gammas, dtype, threads, generate)
        except TooLargeError:
            pass  # the estimate was too low: NumPy needs no tape
    if engine == "native":
        from tacit.engines.native.engine import NativeEngine

        return NativeEngine(program, parameters, gammas, dtype, threads)
    if engine == "tape":
        from tacit.engines.tape import TapeEngine

        return TapeEngine(program, parameters, gammas, dtype, threads)
    if engine == "cuda":
        from tacit.engines.cuda import CudaEngine

        return CudaEngine(program, parameters, gammas, dtype, threads)
    built: Engine
    with machine.limited(threads):
        if engine == "torch":
            from tacit.engines.torch import TorchEngine

            built = TorchEngine(program, parameters, gammas, dtype)
        else:
            built = NumpyEngine(program, parameters, gammas, dtype)
    built.threads = threads
    return built

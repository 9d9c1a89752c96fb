"""What evaluates a compiled query: NumPy, a tape (as machine code, or interpreted), torch, kernels for GPUs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec

from tacit.base import machine
from tacit.base.errors import TacitError, TooLargeError
from tacit.base.version import how_to_install
from tacit.base.warnings import warn
from tacit.compiler.operations import Contract, Structured
from tacit.compiler.operations.contract import AxisRoles
from tacit.compiler.program import Program
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.engine import Engine, Slopes, Tables

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
        from tacit.engines.cuda import driver as cuda
        from tacit.engines.cuda import ptx

        cuda.driver()  # an error where there is no GPU
        ptx.machine()  # or no compiler for it


def for_learning(engine: str, program: Program, rows: int) -> str:
    """The engine asked for; of "auto", what is large is learned on a GPU, where there is one."""
    if engine != "auto":
        return engine
    return (
        "torch"
        if rows * program.cost.multiply_adds >= GPU_WORK and _has_gpu()
        else engine_for_many_passes(program, rows)
    )


def engine_for_many_passes(program: Program, rows: int) -> str:
    """What "auto" should be for many passes over so many rows, which must be repeatable: it depends on the size alone.

    Few rows of a large program are interpreted: they would not repay code.
    """
    work = program.cost.multiply_adds
    if choose(program) != "tape" or work > MAX_TAPE / 2 or not machine.can_run_code():
        return "numpy"  # a tape may turn out somewhat larger than that, and be refused
    worth = work <= QUICKLY_GENERATED or (work <= MAX_GENERATED and rows >= LEARNED_ROWS)
    return "native" if worth and _can_compile() else "tape"


def _can_compile() -> bool:
    from tacit.engines.native.llvm import can_compile

    return can_compile()


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def choose(program: Program) -> str:
    """The engine that is expected to be faster, from the cost of the program; a structured traceback needs NumPy."""
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
                matrix = sorted(setting.batched) == [False, True] and AxisRoles.of(setting, operation.axes).is_matrix
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
    engine: str, program: Program, parameters: Tables, gammas: Slopes, dtype: str, threads: int | None = None
) -> Engine:
    """A program with its numbers, ready to run."""
    threads, numbers = machine.threads(threads), (program, parameters, gammas, dtype)
    name = _permitted(engine)
    if name == "auto":
        name = choose(program)
        try:
            if name == "tape":
                return _class_of("auto")(*numbers, threads, program.cost.multiply_adds <= MAX_GENERATED)
        except TooLargeError:
            name = "numpy"  # the estimate was too low: NumPy needs no tape
    if name in ("native", "tape", "cuda"):
        return _class_of(name)(*numbers, threads)
    with machine.limited(threads):
        built = _class_of(name)(*numbers)
    built.threads = threads
    return built


def _permitted(engine: str) -> str:
    """The engine asked for; where compiled code may not run, an error, or NumPy in place of "auto"."""
    if engine not in ("auto", "native", "tape") or machine.can_run_code():
        return engine
    if engine != "auto":
        raise TacitError(
            f"engine={engine!r} compiles code, which this system does not let run; engine='numpy' does not"
        )
    _warn_once("this system does not let compiled code run: queries run on NumPy, which is much slower")
    return "numpy"


def _class_of(engine: str) -> Callable[..., Engine]:
    """The class of an engine: heavy packages are imported only by the one that needs them."""
    match engine:
        case "auto":
            from tacit.engines.native.auto import Auto

            return Auto
        case "native":
            from tacit.engines.native.native_engine import NativeEngine

            return NativeEngine
        case "tape":
            from tacit.engines.tape.tape_engine import TapeEngine

            return TapeEngine
        case "cuda":
            from tacit.engines.cuda.cuda_engine import CudaEngine

            return CudaEngine
        case "torch":
            from tacit.engines.arrays.torch_engine import TorchEngine

            return TorchEngine
    return NumpyEngine

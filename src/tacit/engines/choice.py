"""Which engine should run a program: what "auto" stands for, by the cost of the program, and what may run here."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

from tacit.base import machine
from tacit.base.errors import TacitError
from tacit.base.warnings import warn
from tacit.compiler.operations import Contract, Structured
from tacit.compiler.operations.contract import AxisRoles
from tacit.compiler.program import Program
from tacit.engines.engine import CHUNK_ELEMENTS, rows_within

# Seconds, measured on two cores: what the choice between engines rests on (docs/performance.md).
TAPE_TERM = 0.15e-9
EINSUM_TERM, MATMUL_TERM, SINGLE_TERM = 1.0e-9, 0.08e-9, 20e-9
NUMPY_ELEMENT, NUMPY_OPERATION = 2.0e-9, 10e-6
BLAS_TABLE = 2**14  # entries of a table from which BLAS is worth its threads, which wait for each other on busy cores
LEARNED_TABLE = 2**10  # the same with many rows, for which one thread is enough
LEARNED_TERM, PASSES = 1.0e-9, 3  # of the tape, forward twice and in reverse; how many forward passes of NumPy that is
MAX_TAPE_LIVE = 2_000_000  # entries put out, or alive at one time: a tile of the tape holds at least 64 rows of each
LEARNED_ROWS = 5000  # from which learning, with its hundreds of passes, repays code
QUICKLY_GENERATED = 2000  # multiply-adds per row up to which its code takes a second or so to compile, for any rows
GPU_WORK = 1e9  # multiply-adds of all rows from which learning on a GPU is worth its start
MAX_GENERATED = 200_000  # multiply-adds per row up to which code is generated: it may take a minute to compile
MAX_TAPE = 50_000_000  # multiply-adds per row up to which a tape is worth its memory (8 bytes each)


def permitted(engine: str) -> str:
    """The engine asked for; where compiled code may not run, an error, or NumPy in place of "auto"."""
    if engine not in ("auto", "native", "tape") or machine.can_run_code():
        return engine
    if engine != "auto":
        raise TacitError(
            f"engine={engine!r} compiles code, which this system does not let run; engine='numpy' does not"
        )
    warn_once("this system does not let compiled code run: queries run on NumPy, which is much slower")
    return "numpy"


@cache
def warn_once(message: str) -> None:
    """Warn the first time that there is reason to."""
    warn(message, RuntimeWarning)


def for_learning(engine: str, program: Program, rows: int) -> str:
    """The engine that learns: on a GPU, if "auto" is asked for, there is one, and the work is large."""
    if engine != "auto":
        return engine
    large = rows * program.cost.multiply_adds >= GPU_WORK
    return "torch" if large and _has_gpu() else engine_for_many_passes(program, rows)


def engine_for_many_passes(program: Program, rows: int) -> str:
    """The engine for many passes over so many rows, which must be repeatable: it depends on the size alone.

    Few rows of a large program would not repay code: they are interpreted, or, if it is matrix products above all, run
    by BLAS.
    """
    work = program.cost.multiply_adds
    if choose(program) != "tape" or work > MAX_TAPE / 2 or not machine.can_run_code():
        return "numpy"  # a tape may turn out somewhat larger than that, and be refused
    worth = work <= QUICKLY_GENERATED or (work <= MAX_GENERATED and rows >= LEARNED_ROWS)
    if worth:
        from tacit.engines.native.llvm import can_compile

        worth = can_compile()
    if worth:
        return "native"
    # derivatives of a matrix product are two more of them
    by_numpy = PASSES * numpy_seconds(program, LEARNED_TABLE)
    return "numpy" if by_numpy < LEARNED_TERM * work else "tape"


def _has_gpu() -> bool:
    if find_spec("torch") is None:
        return False
    import torch

    return bool(torch.cuda.is_available())


def choose(program: Program) -> str:
    """The engine that is expected to be faster, from the cost of the program; a structured traceback needs NumPy."""
    cost = program.cost
    if program.traced or cost.multiply_adds > MAX_TAPE or max(cost.live, program.outputs) > MAX_TAPE_LIVE:
        return "numpy"
    return "tape" if TAPE_TERM * cost.multiply_adds <= numpy_seconds(program) else "numpy"


def numpy_seconds(program: Program, least: int = BLAS_TABLE) -> float:
    """The expected time of one row with NumPy: products by tables of `least` entries run at the speed of BLAS."""
    seconds = NUMPY_ELEMENT * program.cost.elements
    for i, operation in enumerate(program):
        if program.batched[i] and isinstance(operation, Contract):
            setting = program.setting(i)
            tables = [setting.size(axes) for axes, rows in zip(setting.axes, setting.batched, strict=True) if not rows]
            matrix = len(tables) == 1 and AxisRoles.of(setting, operation.axes).is_matrix
            fast = matrix and tables[0] >= least
            seconds += (MATMUL_TERM if fast else EINSUM_TERM) * program.multiply_adds(i)
        elif program.batched[i] and isinstance(operation, Structured):
            seconds += SINGLE_TERM * program.multiply_adds(i)
    return seconds + NUMPY_OPERATION * sum(program.batched) / rows_within(CHUNK_ELEMENTS, program.cost.live)

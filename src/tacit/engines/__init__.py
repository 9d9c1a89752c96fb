"""What evaluates a compiled query: NumPy, a tape (as machine code, or interpreted), torch, kernels for GPUs."""

from __future__ import annotations

from contextlib import suppress
from importlib.util import find_spec

from tacit.base import machine
from tacit.base.errors import TacitError, TooLargeError
from tacit.base.version import how_to_install
from tacit.compiler.program import Program
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.engines.choice import MAX_GENERATED, choose, engine_for_many_passes, for_learning, permitted
from tacit.engines.engine import Engine, Slopes, Tables
from tacit.engines.native.normal_code import NormalCode

__all__ = ["ENGINES", "build", "check", "choose", "engine_for_many_passes", "for_learning"]

ENGINES = ("auto", "native", "numpy", "tape", "torch", "cuda")


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


def build(
    engine: str, program: Program, parameters: Tables, gammas: Slopes, dtype: str, threads: int | None = None
) -> Engine:
    """A program with its numbers, ready to run."""
    threads, numbers = machine.threads(threads), (program, parameters, gammas, dtype)
    name = permitted(engine)  # heavy packages are imported only by the engine that needs them
    if name == "auto" and choose(program) == "tape":
        from tacit.engines.native.auto import Auto

        with suppress(TooLargeError):  # where the estimate was too low
            return Auto(*numbers, threads, program.cost.multiply_adds <= MAX_GENERATED)
    if name == "native":
        from tacit.engines.native.native_engine import NativeEngine

        return NativeEngine(*numbers, threads)
    if name == "tape":
        from tacit.engines.tape.tape_engine import TapeEngine

        return TapeEngine(*numbers, threads)
    if name == "cuda":
        from tacit.engines.cuda.cuda_engine import CudaEngine

        return CudaEngine(*numbers, threads)
    with machine.limited(threads):
        if name == "torch":
            from tacit.engines.arrays.torch_engine import TorchEngine

            built: Engine = TorchEngine(*numbers)
        else:
            built = NumpyEngine(*numbers)
            if machine.can_run_code():
                built.find_shares = NormalCode()
    built.threads = threads
    return built

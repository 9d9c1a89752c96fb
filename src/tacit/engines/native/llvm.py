"""From LLVM IR to machine code of this processor, by way of the disk, and into memory."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property

import llvmlite
import llvmlite.binding as llvm

from tacit.base.errors import TacitError
from tacit.base.lru import LRUCache
from tacit.engines.native import code_cache

Run = Callable[[int], None]
OPTIMISATION = 2  # of the machine code, 0 to 3
MAX_LOADED_CODES = 128  # functions that are kept for the next query, beside those in use
LIBRARY = ("fetestexcept", "feclearexcept", "memcpy", "memset")  # functions of C that code calls


class NoCodeError(TacitError):
    """Code cannot be compiled on this machine, or not be run."""


@contextmanager
def _told_apart() -> Iterator[None]:
    """Whatever LLVM cannot do becomes one kind of error; llvmlite before 0.45 lacks some functions, too."""
    try:
        yield
    except (RuntimeError, AttributeError) as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise NoCodeError(
            f"no code can be compiled for this processor ({llvm.get_host_cpu_name()}) with llvmlite "
            f"{llvmlite.__version__}: {why}; engine='tape' needs none"
        ) from error


@cache
def processor() -> llvm.TargetMachine:
    """This processor, with all that it can do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=OPTIMISATION, codemodel="jitdefault", jit=True
    )


@cache
def _features() -> str:
    try:
        return str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # LLVM does not know this processor: then it has what its name tells
        return ""


def compiled(text: str) -> bytes:
    """An object file of some text."""
    target = processor()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2)))
    return bytes(target.emit_object(module))


def is_stored(text: str) -> bool:
    """Whether the machine code of some text is on disk."""
    with _told_apart():
        return code_cache.load(_key(text)) is not None


def _key(text: str) -> str:
    host = llvm.get_host_cpu_name(), _features(), processor().triple
    made_by = llvmlite.__version__, llvm.llvm_version_info, OPTIMISATION
    return hashlib.sha256(repr((made_by, host, text)).encode()).hexdigest()


def code(text: str, name: str) -> Code:
    """The machine code of some text, which has one function of this name; the same for all that ask for it."""
    with _told_apart():
        return _codes.get(_key(text), lambda: Code(text, name))


def can_compile() -> bool:
    try:
        code("define void @run(ptr %call) {\nret void\n}", "run")
    except NoCodeError:
        return False
    return True


class Code:
    """The machine code of some text in memory: one function, of this name."""

    def __init__(self, text: str, name: str) -> None:
        self._engine = _loaded(code_cache.get(_key(text), lambda: compiled(text)))
        self.address: int = self._engine.get_function_address(name)

    @cached_property
    def run_briefly(self) -> Run:
        """The function without letting other threads run, which would take longer than a call of microseconds."""
        return ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(self.address)

    @cached_property
    def run(self) -> Run:
        """The function, if it takes one address: it lets other threads run meanwhile."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)


_codes: LRUCache[Code] = LRUCache(MAX_LOADED_CODES)


def _loaded(content: bytes) -> llvm.ExecutionEngine:
    """What holds an object file in memory, ready to run."""
    empty = llvm.parse_assembly("")
    empty.triple = processor().triple
    host = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(empty, host)
    for symbol in LIBRARY:  # what LLVM does not find, it would call at address 0
        if llvm.address_of_symbol(symbol) is None:
            raise RuntimeError(f"the C library has no {symbol}")
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    return engine

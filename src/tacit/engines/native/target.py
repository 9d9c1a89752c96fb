"""From LLVM IR to machine code of this processor, by way of the disk, and into memory."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Callable
from functools import cache

import llvmlite
import llvmlite.binding as llvm

from tacit.engines.native import store

Run = Callable[[int], None]


@cache
def processor() -> llvm.TargetMachine:
    """This processor, with all that it can do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=2, codemodel="jitdefault", jit=True
    )


@cache
def _features() -> str:
    return str(llvm.get_host_cpu_features().flatten())


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
    return store.load(_key(text)) is not None


def _key(text: str) -> str:
    made_by = (llvmlite.__version__, llvm.llvm_version_info, llvm.get_host_cpu_name(), _features(), processor().triple)
    return hashlib.sha256(repr((made_by, text)).encode()).hexdigest()


class Code:
    """The machine code of some text in memory: one function, of this name."""

    def __init__(self, text: str, name: str) -> None:
        key = _key(text)
        content = store.load(key)
        if content is None:
            content = compiled(text)
            store.save(key, content)
        empty = llvm.parse_assembly("")
        empty.triple = processor().triple
        host = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._engine = llvm.create_mcjit_compiler(empty, host)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.address: int = self._engine.get_function_address(name)

    @property
    def run(self) -> Run:
        """The function, if it takes one address: it lets other threads run meanwhile."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.address)

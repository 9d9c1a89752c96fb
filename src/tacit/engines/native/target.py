"""From LLVM IR to machine code of this processor, and into memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

Function = Callable[[int], int]


@cache
def machine() -> llvm.TargetMachine:
    """This processor, with all that it can do."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        codemodel="jitdefault",
        jit=True,
    )


def compiled(text: str) -> bytes:
    """An object file of some text."""
    target = machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(target.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2)))
    return bytes(target.emit_object(module))


class Code:
    """Machine code in memory."""

    def __init__(self, content: bytes, names: Sequence[str]) -> None:
        empty = llvm.parse_assembly("")
        empty.triple = machine().triple
        self._engine = llvm.create_mcjit_compiler(
            empty, llvm.Target.from_default_triple().create_target_machine(jit=True)
        )
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()
        self.addresses = {name: self._engine.get_function_address(name) for name in names}

    def function(self, name: str) -> Any:
        """A function that takes the address of its arguments, and lets other threads run meanwhile."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.addresses[name])

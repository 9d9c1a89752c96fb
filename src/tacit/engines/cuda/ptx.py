"""From LLVM IR to PTX, the assembly language of NVIDIA's GPUs, on any machine."""

from __future__ import annotations

import hashlib
from functools import cache

import llvmlite
import llvmlite.binding as llvm

from tacit.base.errors import TacitError

# PTX runs on every GPU from its target on: Volta, which is from 2017, has all that the kernels use. Version 8.1 came
# with CUDA 12.1 and allows for 32 kB of parameters, so that evidence on a thousand variables can be passed.
TARGET, VERSION = "sm_70", "ptx81"


@cache
def machine() -> llvm.TargetMachine:
    """Any GPU from `TARGET` on."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    except RuntimeError as error:
        raise TacitError(f"llvmlite {llvmlite.__version__} makes no code for NVIDIA's GPUs: {error}") from None
    return target.create_target_machine(cpu=TARGET, features=f"+{VERSION}", opt=3)


def ptx(text: str) -> str:
    target = machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(target.target_data)
    return str(target.emit_assembly(module))


def key_of(text: str, gpu: str) -> str:
    """The name of the code of a GPU for some text: it tells all that the code depends on."""
    made_by = llvmlite.__version__, llvm.llvm_version_info, TARGET, VERSION, gpu
    return hashlib.sha256(repr((made_by, text)).encode()).hexdigest()

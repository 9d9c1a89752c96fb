"""From LLVM IR to PTX, the assembly language of NVIDIA's GPUs, on any machine."""

from __future__ import annotations

from functools import cache

import llvmlite.binding as llvm

# PTX runs on every GPU from its target on: Volta, which is from 2017, has all that the kernels use. Version 8.1 came
# with CUDA 12.1 and allows for 32 kB of parameters, so that evidence on a thousand variables can be passed.
TARGET, VERSION = "sm_70", "ptx81"


@cache
def machine() -> llvm.TargetMachine:
    """Any GPU from `TARGET` on."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    return target.create_target_machine(cpu=TARGET, features=f"+{VERSION}", opt=3)


def ptx(text: str) -> str:
    """The PTX of a module."""
    target = machine()
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = "nvptx64-nvidia-cuda", str(target.target_data)
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1)))
    return str(target.emit_assembly(module))

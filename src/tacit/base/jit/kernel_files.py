"""The folders and names of compiled kernels. Nothing here needs numba, which takes a while to load."""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from tacit.base.version import VERSION

VARIABLE = "NUMBA_CACHE_DIR"  # the environment's choice of a folder, which numba looks at, too
KERNEL_MARKS = (b"@jit(", b"# What is built into kernels")  # one of which each file of kernels has: a test sees to it
ROOMS = ("base", "bounds", "compiler", "engines", "learn")  # that have such files
INDEX = ".nbi"  # numba's suffix of the list of a kernel's compiled forms


def base(name: str) -> str:
    """The beginning of the names of a kernel's files, given its own, such as "kernels.forward"."""
    return f"{of_all_processors(name)}{processor()[:8]}.{python()}"


def of_all_processors(name: str) -> str:
    """The beginning of the names of a kernel's files for any processor."""
    plain = name.replace("<", "").replace(">", "")
    return f"{plain}-{stamp()[:16]}-"


def python() -> str:
    """The version of Python, whose files have an ending of their own."""
    return f"py{sys.version_info[0]}{sys.version_info[1]}{getattr(sys, 'abiflags', '')}"


@cache
def processor() -> str:
    """A digest of the processor that code is for; numba's settings may name another one."""
    try:
        features = str(llvm.get_host_cpu_features().flatten())
    except RuntimeError:  # LLVM does not know this processor
        features = ""
    named = [os.environ.get(f"NUMBA_CPU_{what}", "") for what in ("NAME", "FEATURES")]
    return hashlib.sha256(repr((llvm.get_host_cpu_name(), features, named)).encode()).hexdigest()


@cache
def stamp() -> str:
    """A digest of all that kernels depend on, but for their signature, which numba checks, and the processor."""
    digest = hashlib.sha256(repr((VERSION, llvmlite.__version__, numba_version())).encode())
    for room in ROOMS:
        for _, text in sorted(sources(files("tacit") / room).items()):
            digest.update(text)
    return digest.hexdigest()


def sources(folder: Traversable, path: str = "") -> dict[str, bytes]:
    """The files of all kernels in a folder; a frozen program has none, and numba looks at it instead."""
    texts: dict[str, bytes] = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        name = path + entry.name
        if entry.is_dir():
            texts |= sources(entry, f"{name}/")
        elif name.endswith(".py") and any(mark in (text := entry.read_bytes()) for mark in KERNEL_MARKS):
            texts[name] = text
    return texts


def numba_version() -> str:
    """The version of numba, or the text of its file that says it."""
    spec = find_spec("numba")
    file = Path(spec.origin).with_name("_version.py") if spec is not None and spec.origin else None
    if file is not None and file.is_file():
        return file.read_text(encoding="utf-8")
    return str(import_module("numba").__version__)


@cache
def file_of(kernel: str) -> str:
    """The file of a kernel, such as "tacit.engines.tape.tape_kernels.forward"."""
    spec = find_spec(kernel.rpartition(".")[0])
    assert spec is not None, kernel
    return spec.origin or ""


def folders_of(kernel: str) -> list[Path]:
    """The folders that may have the files of a kernel, as in numba's own cache, best first; `last_folders` follow."""
    file, named = file_of(kernel), os.environ.get(VARIABLE)
    return [*([Path(named, subfolder(file))] if named else []), Path(file).parent / "__pycache__"]


def subfolder(file: str) -> str:
    """The part of a common folder for the kernels of a file: numba's `get_suitable_cache_subpath`."""
    parent = Path(os.path.abspath(file)).parent
    return f"{parent.name}_{hashlib.sha1(str(parent).encode()).hexdigest()}"


def holds(folder: Path, kernel: str) -> bool:
    """Whether compiled forms of a kernel are in a folder."""
    name = f"{Path(file_of(kernel)).stem}.{kernel.rpartition('.')[2]}"
    return (folder / f"{base(name)}{INDEX}").exists()


def can_write(folder: Path) -> bool:
    """Whether something can be written to a folder, which may have to be made."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    return there.is_dir() and os.access(there, os.W_OK)

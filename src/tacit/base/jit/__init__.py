"""Compilation of kernels: numba's `njit`, with a cache on disk that is never stale and never needed.

numba's own cache looks only at the file of the function it keeps, while a kernel has the kernels of other files built
in: it would go on running yesterday's. It also raises where no folder can be written, always where a file of the cache
is damaged, and finds nothing where what is kept can only be read. Here the files of what is kept are named by one stamp
of all kernels and carry a checksum. What does not fit is compiled again, and a kernel that cannot be kept is compiled
in every process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tacit.base.jit import kernel_files


def jit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with these options, and with the cache of this package."""
    from tacit.base.jit.cached_njit import compiled  # loads numba

    return lambda function: compiled(function, options)


def is_compiled(kernel: str) -> bool:
    """Whether a kernel such as "tacit.engines.tape.tape_kernels.forward" is on disk: else its first call takes seconds.

    A kernel has a form for each type of its arguments: of these, some are there. numba is not loaded to find out,
    unless what is beside the sources cannot be written.
    """
    for folder in kernel_files.folders_of(kernel):
        if kernel_files.holds(folder, kernel):
            return True
        if kernel_files.can_write(folder):
            return False
    from tacit.base.jit.cached_njit import last_folders  # loads numba

    return any(kernel_files.holds(folder, kernel) for folder in last_folders(kernel_files.file_of(kernel)))

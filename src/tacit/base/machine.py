"""Resources of a process: cores and memory within its container's limits, threads within the user's.

Everything is read when it is asked for. `root` is where the system's folders are looked for: another one in tests.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from tacit.base.errors import TacitError

P = ParamSpec("P")
T = TypeVar("T")

THREADS_VARIABLE = "TACIT_THREADS"
UNKNOWN_MEMORY = 8 * 2.0**30  # bytes, where the system does not tell


@cache
def can_run_code() -> bool:
    """Whether memory can be made executable: some systems forbid it, and then compiled code ends the process."""
    if os.name != "posix":
        return True
    memory = mmap.mmap(-1, mmap.PAGESIZE)
    address = ctypes.addressof(start := ctypes.c_char.from_buffer(memory))
    refused = ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC)
    del start  # or the memory cannot be given back
    memory.close()
    return not refused


def threads(asked: int | None = None) -> int:
    """The number of threads to use: as asked for, else as TACIT_THREADS says, else one for every usable core."""
    return threads_wanted(asked) or max(1, int(min(_QUOTA.get().threads, usable_cores())))  # half a core: one thread


@dataclass(frozen=True)
class Quota:
    """The part of a process's resources that a task may use, where others run beside it."""

    threads: float = math.inf
    memory: float = math.inf  # bytes


_QUOTA: ContextVar[Quota] = ContextVar("quota", default=Quota())  # noqa: B039  # it is frozen


@contextmanager
def within(quota: Quota) -> Iterator[None]:
    """Keep `threads` and `memory` to a quota in this thread; threads that a user asked for are not limited.

    >>> with within(Quota(threads=1)):
    ...     threads()
    1
    """
    before = _QUOTA.set(quota)
    try:
        yield
    finally:
        _QUOTA.reset(before)


def threads_wanted(asked: int | None = None) -> int | None:
    """The number of threads that was asked for, here or in the environment, if any."""
    if asked is not None:
        whole = isinstance(asked, int | np.integer) and not isinstance(asked, bool)
        if not whole or asked < 1:
            raise TacitError(f"threads is {asked!r}, expected a whole number >= 1, or None for one per usable core")
        return int(asked)
    text = os.environ.get(THREADS_VARIABLE, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text)):
        raise TacitError(f"the environment variable {THREADS_VARIABLE} is {text!r}, expected a whole number >= 1")
    return int(text)


def usable_cores(root: str = "/") -> int:
    """The cores that this process may use: those it is bound to, and no more than its containers pay for."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quotas = [_cores(folder, version) for folder, version in _cgroups(root, "cpu")]
    return max(1, min([bound, *(math.ceil(quota) for quota in quotas if quota < bound)]))


def memory(root: str = "/") -> float:
    """The bytes that this process may use: those of the machine, of its smallest container, or its address space."""
    files = {1: "memory.limit_in_bytes", 2: "memory.max"}  # by the version of cgroups
    limits = [_positive(_text(f"{folder}/{files[version]}")) for folder, version in _cgroups(root, "memory")]
    return min([_machine_memory(), _address_space(), _QUOTA.get().memory, *limits])


def _address_space() -> float:
    """The bytes of address space that this process is limited to, as by `ulimit -v`."""
    if sys.platform == "win32":
        return math.inf
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if soft == resource.RLIM_INFINITY else float(soft)


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """Limit the threads of BLAS, and of torch where it is loaded; None leaves them alone."""
    if threads is None:
        yield
        return
    with _BLAS.limited(threads), _TORCH.limited(threads):
        yield


def in_own_threads(method: Callable[P, T]) -> Callable[P, T]:
    """A method of something that has a number of `threads`, run within that limit."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        with limited(args[0].threads):  # type: ignore[attr-defined]
            return method(*args, **kwargs)

    return call


def _cgroups(root: str, controller: str) -> Iterator[tuple[str, int]]:
    """The folders of this process's cgroups, with the version of each: a limit may be set at any level."""
    mounted = os.path.join(root, "sys/fs/cgroup")
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        controllers, _, path = line.partition(":")[2].partition(":")
        if not controllers:  # version 2, alone or beside version 1
            tops, version = [mounted, f"{mounted}/unified"], 2
        elif controller in controllers.split(","):
            tops, version = sorted({f"{mounted}/{controllers}", f"{mounted}/{controller}"}), 1
        else:
            continue
        parts = [part for part in path.split("/") if part]
        depth = 0 if ".." in parts else len(parts)  # outer levels out of sight: what is mounted is the container's own
        for top in tops:
            yield from (("/".join([top, *parts[:level]]), version) for level in range(depth + 1))


def _cores(folder: str, version: int) -> float:
    """The processor time of a cgroup, in cores; infinite if it is not limited."""
    if version == 2:
        texts = [*_text(f"{folder}/cpu.max").split(), "", ""]
    else:
        texts = [_text(f"{folder}/cpu.cfs_quota_us"), _text(f"{folder}/cpu.cfs_period_us")]
    quota, period = _positive(texts[0]), _positive(texts[1])
    return math.inf if math.inf in (quota, period) else quota / period


def _positive(text: str) -> float:
    """A number from a file of limits; infinite where there is none ("max", -1, or no file)."""
    return float(text) if text.isdigit() and int(text) > 0 else math.inf


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _machine_memory() -> float:
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return UNKNOWN_MEMORY


class _Blas:
    """The threads of BLAS, which all of a process share: as few as anyone wants, and at last as many as before."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wanted: list[int] = []
        self._before: list[tuple[Any, int]] = []

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        with self._lock:
            if not self._wanted:
                self._before = [(lib, lib.num_threads) for lib in _blas_libraries("scipy.linalg" in sys.modules)]
            self._wanted.append(threads)
            self._apply()
        try:
            yield
        finally:
            with self._lock:
                self._wanted.remove(threads)
                self._apply()

    def _apply(self) -> None:
        for library, before in self._before:
            library.set_num_threads(min([before, *self._wanted]))


class _Torch:
    """The threads of torch, which every thread of a process sets for itself, and new ones take from the last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = self._before = 0

    @contextmanager
    def limited(self, threads: int) -> Iterator[None]:
        torch: Any = sys.modules.get("torch")
        if not hasattr(torch, "set_num_threads"):  # it is not there, or somebody is importing it
            yield
            return
        with self._lock:
            if not self._users:
                self._before = torch.get_num_threads()
            self._users += 1
            before = self._before
        torch.set_num_threads(min(before, threads))
        try:
            yield
        finally:
            torch.set_num_threads(before)
            with self._lock:
                self._users -= 1


@cache
def _blas_libraries(with_scipy: bool) -> list[Any]:
    """The controllers of the BLAS of NumPy, and of SciPy once it is loaded; finding them takes a millisecond."""
    from threadpoolctl import ThreadpoolController

    return [library for library in ThreadpoolController().lib_controllers if library.user_api == "blas"]


# Not ours but the process's: the number of threads that BLAS and torch use is one for all callers.
_BLAS, _TORCH = _Blas(), _Torch()

"""How kernels are compiled: numba's `njit`, with a cache on disk that is never stale and never needed.

numba's own cache looks only at the file of the function it keeps, while a kernel has the kernels of other files built
in: it would go on running yesterday's. It also raises where no folder can be written, and always where a file of the
cache is damaged. Here what is kept carries one stamp of all kernels and a checksum. What does not fit is compiled
again, and a kernel that cannot be kept is compiled in every process.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import os
import pickle
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import caching, serialize

from tacit.installation import VERSION
from tacit.watching import Notice

BUILT_IN = (b"@jit(", b"# What is built into kernels")  # what tells the files that kernels are made of


def jit(**options: Any) -> Callable[[Any], Any]:
    """`numba.njit` with these options, and with the cache of this file."""

    def decorate(function: Any) -> Any:
        compiled = numba.njit(**options)(function)
        compiled._cache = KernelCache(function)  # as numba's own enable_caching() does
        return compiled

    return decorate


@cache
def stamp() -> str:
    """What compiled kernels depend on besides their signature and the processor, which numba looks at."""
    digest = hashlib.sha256(repr((VERSION, numba.__version__, llvmlite.__version__)).encode())
    for _, text in sorted(sources(files("tacit")).items()):
        digest.update(text)
    return digest.hexdigest()


def sources(folder: Traversable, path: str = "") -> dict[str, bytes]:
    """The files of all kernels, this one among them; a frozen program has none, and numba looks at it instead.

    A test sees to it that what is built into kernels comes from no other file.
    """
    found: dict[str, bytes] = {}
    for entry in folder.iterdir() if folder.is_dir() else ():
        name = path + entry.name
        if entry.is_dir():
            found |= sources(entry, f"{name}/")
        elif name.endswith(".py") and any(mark in (text := entry.read_bytes()) for mark in BUILT_IN):
            found[name] = text
    return found


class KernelCache(caching._Cache):
    """The compiled forms of one kernel on disk. Whatever goes wrong there, the kernel can be compiled."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @cached_property
    def _stored(self) -> Any:
        """The files, found on first use: an import has nothing to warn of."""
        try:
            stored = StampedCache(self._function)
            stamp()
        except (RuntimeError, OSError):
            _warn_once("they are compiled again by every process, which takes up to a minute")
            return caching.NullCache()
        if isinstance(stored._impl.locator, TemporaryLocator):
            _warn_once(f"they are kept in {private_folder()} for now")
        return stored

    @property
    def cache_path(self) -> str | None:
        """The folder of the files, if there is one."""
        path: str | None = self._stored.cache_path
        return path

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for a signature, or None: files that are damaged or out of date are dropped."""
        stored = self._stored
        try:
            found = stored.load_overload(sig, target_context)
        except Exception:  # there is no telling how a damaged pickle fails
            self.flush()
            found = None
        if found is None:  # numba compiles it now, and hands it to save_overload
            kept = f", once; they are kept in {self.cache_path}" if self.cache_path else ""
            _notice().begin(f"compiling kernels{kept}")
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, if that is possible."""
        _notice().end()
        try:
            self._stored.save_overload(sig, data)
        except Exception as error:  # of the disk, or of a damaged file that could not be dropped
            _warn_once(f"writing to {self.cache_path} fails ({error})")

    def enable(self) -> None:
        """Use the cache from now on."""
        self._stored.enable()

    def disable(self) -> None:
        """Do not use the cache from now on."""
        self._stored.disable()

    def flush(self) -> None:
        """Forget what is kept of this kernel."""
        with suppress(OSError):  # files that are not ours to change are read in vain again
            self._stored.flush()


class TemporaryLocator(caching.UserWideCacheLocator):
    """The last resort: the system's temporary folder, in a folder of the user's own."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(private_folder() / self.get_suitable_cache_subpath(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """A locator for a function, or None where such a folder cannot be had."""
        try:
            return super().from_function(function, file)
        except OSError:
            return None


class StampedFiles(caching.CompileResultCacheImpl):
    """Compiled forms as numba stores them, with the stamp of all kernels and a checksum in front."""

    _locator_classes = [*caching.CompileResultCacheImpl._locator_classes, TemporaryLocator]  # noqa: RUF012  (as numba declares it)

    def reduce(self, result: Any) -> tuple[str, str, bytes]:
        """What is stored."""
        stored = serialize.dumps(super().reduce(result))
        return stamp(), hashlib.sha256(stored).hexdigest(), stored

    def rebuild(self, target_context: Any, data: tuple[str, str, bytes]) -> Any:
        """The compiled form again; an error if it is of other kernels, or damaged."""
        made, checksum, stored = data
        if (made, checksum) != (stamp(), hashlib.sha256(stored).hexdigest()):
            raise ValueError("out of date, or damaged")
        return super().rebuild(target_context, pickle.loads(stored))


class StampedCache(caching.FunctionCache):
    """numba's cache of one function, with our way of storing."""

    _impl_class = StampedFiles


def private_folder() -> Path:
    """A folder in the system's temporary one that nobody else can write: what is loaded from it is run."""
    owner = os.getuid() if hasattr(os, "getuid") else None  # elsewhere, temporary folders are the user's own
    folder = Path(tempfile.gettempdir()) / ("tacit-kernels" if owner is None else f"tacit-kernels-{owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or (owner is not None and (found.st_uid != owner or found.st_mode & 0o077)):
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


@cache
def _notice() -> Notice:
    """The notice that kernels are compiled, where it takes long."""
    return Notice()


@cache
def _warn_once(consequence: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept where they belong: {consequence}; set NUMBA_CACHE_DIR to a folder that can "
        "be written",
        stacklevel=2,
    )

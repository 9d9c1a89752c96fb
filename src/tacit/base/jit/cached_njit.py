"""numba's `njit` with our cache on disk."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import hashlib
import inspect
import os
import pickle
import stat
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numba
from numba.core import caching, serialize
from numba.core import event as events
from numba.misc.appdirs import AppDirs

from tacit.base.jit import kernel_files
from tacit.base.progress import Notice


def compiled(function: Any, options: Mapping[str, Any]) -> Any:
    """A function that numba compiles with these options, unless its compiled form is on disk."""
    _watch()
    kernel = numba.njit(**options)(function)
    kernel._cache = KernelCache(function)  # as numba's own enable_caching() does
    return kernel


class KernelCache(caching._Cache):
    """The compiled forms of one kernel on disk. Whatever goes wrong there, the kernel can be compiled."""

    def __init__(self, function: Any) -> None:
        self._function = function

    @cached_property
    def _stored(self) -> Any:
        """The files, found on first use: an import has nothing to warn of."""
        try:
            stored = NamedCache(self._function)
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
        """The compiled form for a signature, or None: files that are damaged are dropped."""
        try:
            return self._stored.load_overload(sig, target_context)
        except Exception:  # there is no telling how a damaged pickle fails
            self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, if that is possible."""
        try:
            self._stored.save_overload(sig, data)
        except Exception as error:  # of the disk, or of a damaged file that could not be dropped
            _warn_once(f"writing to {self.cache_path} fails ({error})")

    def enable(self) -> None:
        self._stored.enable()

    def disable(self) -> None:
        self._stored.disable()

    def flush(self) -> None:
        """Forget what is kept of this kernel."""
        with suppress(OSError):  # files that are not ours to change are read in vain again
            self._stored.flush()


class _Readable:
    """Lets a folder that can only be read do, too, if it has kernels from somebody who could write it."""

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """A locator for a function, or None where the folder is of no use."""
        locator = super().from_function(function, file)  # type: ignore[misc]
        return cls._with_kernel(function, file) if locator is None else locator

    @classmethod
    def _with_kernel(cls, function: Any, file: str) -> Any:
        locator = cls(function, file)  # type: ignore[call-arg]
        index = Path(locator.get_cache_path(), kernel_files.base(_name(function, file)) + kernel_files.INDEX)  # type: ignore[attr-defined]
        return locator if index.exists() else None


class NamedLocator(_Readable, caching.UserProvidedCacheLocator):
    """The folder that the environment names."""

    @classmethod
    def _with_kernel(cls, function: Any, file: str) -> Any:
        return super()._with_kernel(function, file) if os.environ.get(kernel_files.VARIABLE) else None


class SourceLocator(_Readable, caching.InTreeCacheLocator):
    """The folder beside the sources."""


class TemporaryLocator(caching.UserWideCacheLocator):
    """The last resort: the system's temporary folder, in a folder of the user's own."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(private_folder() / kernel_files.subfolder(file))

    @classmethod
    def from_function(cls, function: Any, file: str) -> Any:
        """A locator for a function, or None where such a folder cannot be had."""
        try:
            return super().from_function(function, file)
        except OSError:
            return None


REPLACED = (caching.UserProvidedCacheLocator, caching.InTreeCacheLocator)
OTHERS = [one for one in caching.CompileResultCacheImpl._locator_classes if one not in REPLACED]
LOCATORS = [NamedLocator, SourceLocator, *OTHERS, TemporaryLocator]  # best first


def last_folders(file: str) -> Iterator[Path]:
    """The folders for the kernels of a file if neither the environment's nor the one beside it will do."""
    yield Path(AppDirs(appname="numba", appauthor=False).user_cache_dir, kernel_files.subfolder(file))
    with suppress(OSError):
        yield private_folder() / kernel_files.subfolder(file)


def private_folder() -> Path:
    """A folder in the system's temporary one that nobody else can write: what is loaded from it is run."""
    owner = os.getuid() if hasattr(os, "getuid") else None  # elsewhere, temporary folders are the user's own
    folder = Path(tempfile.gettempdir()) / ("tacit-kernels" if owner is None else f"tacit-kernels-{owner}")
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if not stat.S_ISDIR(status.st_mode) or (owner is not None and (status.st_uid != owner or status.st_mode & 0o077)):
        raise PermissionError(f"{folder} is not a folder of this user alone")
    return folder


class NamedFiles(caching.CompileResultCacheImpl):
    """Compiled forms as numba stores them, under names that tell of which kernels, with a checksum in front."""

    _locator_classes = LOCATORS

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return kernel_files.base(fullname)

    def reduce(self, result: Any) -> tuple[str, bytes]:
        """A compiled form and its checksum."""
        stored = serialize.dumps(super().reduce(result))
        return hashlib.sha256(stored).hexdigest(), stored

    def rebuild(self, target_context: Any, data: tuple[str, bytes]) -> Any:
        """A compiled form from the disk; an error if it is damaged."""
        checksum, stored = data
        if checksum != hashlib.sha256(stored).hexdigest():
            raise ValueError("damaged")
        return super().rebuild(target_context, pickle.loads(stored))


class NamedCache(caching.FunctionCache):
    """numba's cache of one function, with our files."""

    _impl_class = NamedFiles

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled form, in place of those of other kernels of this name."""
        super().save_overload(sig, data)
        name = _name(self._py_func, inspect.getfile(self._py_func))
        now, version = kernel_files.of_all_processors(name), kernel_files.python()
        for path in Path(self.cache_path).glob(f"{now.split('-')[0]}-*.{version}.*"):
            if not path.name.startswith(now):
                with suppress(OSError):  # another process was faster
                    path.unlink()


def _name(function: Any, file: str) -> str:
    """A kernel as its files are named."""
    return f"{Path(file).stem}.{function.__qualname__}"


class Watcher(events.Listener):
    """Gives notice where it takes long to compile kernels."""

    def __init__(self, notice: Notice) -> None:
        self._notice = notice

    def on_start(self, event: Any) -> None:
        cache = event.data["dispatcher"]._cache
        if isinstance(cache, KernelCache):
            where = f", once; they are kept in {cache.cache_path}" if cache.cache_path else ""
            self._notice.begin(f"compiling kernels{where}")

    def on_end(self, event: Any) -> None:
        if isinstance(event.data["dispatcher"]._cache, KernelCache):
            self._notice.end()


@cache
def _watch() -> None:
    events.register("numba:compile", Watcher(Notice()))


@cache
def _warn_once(consequence: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept where they belong: {consequence}; "
        f"set {kernel_files.VARIABLE} to a folder that can be written",
        stacklevel=2,
    )

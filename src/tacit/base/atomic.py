"""Files that are either the old ones or the new ones, never halves."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

PREFIX, SUFFIX = ".tacit-", ".tmp"
STALE_SECONDS = 60  # after which a temporary file that nobody has locked was left by a killed process


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[Any]], object], binary: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step.

    A pipe or a device is written to as it is: to put a file in its place would be no use to whoever reads there.
    Temporary files that killed processes left in the same folder are removed.
    """
    target = Path(path)
    mode = _mode(target)
    with _naming(target):
        if mode is not None and not stat.S_ISREG(mode):
            with target.open("wb") if binary else target.open("w", encoding="utf-8", newline="\n") as file:
                write(file)
        else:
            _replace(target.resolve() if target.is_symlink() else target, mode, write, binary)


def _replace(target: Path, mode: int | None, write: Callable[[IO[Any]], object], binary: bool) -> None:
    _remove_stale(target.parent)
    permissions = 0o666 if mode is None else mode & 0o777
    temporary = target.parent / f"{PREFIX}{secrets.token_hex(8)}{SUFFIX}"
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, permissions)  # less what the process's umask takes away
    try:
        with os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            _locked(file.fileno())
            write(file)
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, permissions)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _mode(path: Path) -> int | None:
    """The kind and permissions of a file, or of a link's target; None if there is none."""
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """Let errors of the operating system name the target, not a temporary file or none."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename is not None and not _is_temporary(error.filename)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(target)) from error  # of the same class, by its number


def _is_temporary(path: str | os.PathLike[str]) -> bool:
    name = os.path.basename(path)
    return name.startswith(PREFIX) and name.endswith(SUFFIX)


def _remove_stale(folder: Path) -> None:
    """Remove temporary files whose writers were killed: they are old, and nobody holds their lock."""
    oldest = time.time() - STALE_SECONDS
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                old = _is_temporary(entry.name) and entry.stat(follow_symlinks=False).st_mtime < oldest
                if old and _abandoned(entry.path):
                    os.unlink(entry.path)


def _abandoned(path: str) -> bool:
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    try:
        return _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open file until it is closed; False where another process has, or where there are no locks."""
    try:
        import fcntl

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (ImportError, OSError):
        return False
    return True

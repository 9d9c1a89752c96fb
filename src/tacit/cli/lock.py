"""One writer at a time, by a lock that the system takes back when a process ends, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tacit.cli.output import note
from tacit.errors import TacitError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl


@contextmanager
def only_writer(output: Path) -> Iterator[None]:
    """Let nobody else write an output for a while; an error if somebody does."""
    path = output.parent / f".{output.name}.lock"
    handle = _locked(path)
    if handle is None:
        raise TacitError(f"{output}: another run is writing this output; wait until it ends, or choose another one")
    try:
        yield
    finally:
        _release(handle, path)


def _locked(path: Path) -> int | None:
    """A handle of a file that is locked now, or None if another process has locked it."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(handle, path):
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # a run that ended has removed the file after we opened it, and the next one makes a new one


def _lock(handle: int, path: Path) -> bool:
    """Whether a file could be locked."""
    try:
        if sys.platform == "win32":
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    except OSError as error:  # some file systems of networks have no locks
        note(f"{path}: {error.strerror}: let no other run write the same output")
    return True


def _release(handle: int, path: Path) -> None:
    """Unlock and remove a file; on Windows, a file that is open cannot be removed."""
    if sys.platform == "win32":
        os.close(handle)
        with suppress(OSError):  # the next run has it open
            path.unlink()
    else:
        path.unlink(missing_ok=True)
        os.close(handle)

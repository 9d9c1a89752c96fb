"""Compiled code on disk, so that no process compiles again what another one has compiled.

A file is named by a hash of all that it was made from, so it is never out of date, and holds a checksum, so it is never
run if it is damaged. It is put in place in one step. What is loaded is run, so folder and file must belong to the user
alone. The folder has a bounded size, about: what has not been used for longest goes first. Whatever goes wrong here,
code can be compiled.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from zlib import crc32

VARIABLE = "TACIT_CACHE_DIR"  # the environment's choice of a folder
MAX_BYTES = 256 * 2**20  # bytes of all files
SHRINK_EVERY = 16  # keys, for one of which the folder is listed when it is saved: with many files, that takes a while
SUFFIX = ".code"
CHECKSUM = hashlib.sha256().digest_size


def get(key: str, make: Callable[[], bytes]) -> bytes:
    """What was kept under a key; if there is nothing, it is made, and kept."""
    content = load(key)
    if content is None:
        content = make()
        save(key, content)
    return content


def load(key: str) -> bytes | None:
    """What was kept under a key; None if there is nothing, or nothing that can be trusted."""
    for folder in _folders():
        path = folder / f"{key}{SUFFIX}"
        with suppress(OSError):
            content = _read(path)
            if hashlib.sha256(content[CHECKSUM:]).digest() == content[:CHECKSUM]:
                with suppress(OSError):  # nothing can be written: it is used all the same
                    os.utime(path)  # used now
                return content[CHECKSUM:]
    return None


def save(key: str, content: bytes) -> None:
    """Keep some content under a key, where that is possible, in place of what is there."""
    whole = hashlib.sha256(content).digest() + content
    for folder in _folders():
        try:
            _write(folder / f"{key}{SUFFIX}", whole)
        except OSError:
            continue
        if crc32(key.encode()) % SHRINK_EVERY == 0:
            with suppress(OSError):
                _shrink(folder)
        return


def _write(path: Path, content: bytes) -> None:
    """A new file that only this user can read and write. The checksum will tell if the machine stops meanwhile."""
    handle, temporary = tempfile.mkstemp(SUFFIX, ".", path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _shrink(folder: Path) -> None:
    """Remove what has not been used for longest, until the rest is small enough."""
    files = []
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # another process was faster
                if entry.name.endswith(SUFFIX):
                    about = entry.stat(follow_symlinks=False)
                    files.append((about.st_mtime, about.st_size, entry.path))
    total = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if total <= MAX_BYTES:
            break
        with suppress(OSError):
            os.unlink(path)
        total -= size


def _read(path: Path) -> bytes:
    """The content of a file that nobody else can have written."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not _own(os.fstat(file.fileno())):
            raise PermissionError(f"{path} may have been written by another user")
        return file.read()


def _folders() -> Iterator[Path]:
    """The folders to look at, best first: the one that the environment names, or the user's own cache."""
    if named := os.environ.get(VARIABLE):
        if _usable(Path(named)):
            yield Path(named)
        else:
            _warn_once(named)
        return
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser(os.path.join("~", ".cache"))
    user = getattr(os, "getuid", lambda: "user")()
    own = [Path(home, "tacit")] if os.path.isabs(home) else []  # there may be no home
    for folder in (*own, Path(tempfile.gettempdir(), f"tacit-code-{user}")):
        if _usable(folder):
            yield folder


@cache
def _warn_once(folder: str) -> None:
    warnings.warn(
        f"{VARIABLE} is {folder!r}, which is no folder that this user alone can write: generated code is not kept, and "
        "compiled by every process",
        stacklevel=2,
    )


def _usable(folder: Path) -> bool:
    """Whether a folder is there, or can be made, and nobody else can write to it or put another in its place."""
    try:
        os.makedirs(folder.parent, mode=0o700, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        above, own = folder.parent.stat(), folder.lstat()
    except OSError:
        return False
    safe = os.name != "posix" or not _open_to_others(above) or bool(above.st_mode & stat.S_ISVTX)
    return stat.S_ISDIR(own.st_mode) and _own(own) and safe


def _own(status: os.stat_result) -> bool:
    if os.name != "posix":  # elsewhere, the folders of users are their own
        return True
    return status.st_uid == os.getuid() and not _open_to_others(status)


def _open_to_others(status: os.stat_result) -> bool:
    return bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH))

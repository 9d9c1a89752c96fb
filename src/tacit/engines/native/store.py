"""Compiled code on disk, so that no process compiles again what another one has compiled.

A file is named by a hash of all that it was made from, so it is never out of date, and holds a checksum, so it is never
run if it is damaged. It is written in one step. What is loaded is run, so the folder must belong to the user alone. It
has a bounded size: what has not been used for longest goes first. Whatever goes wrong here, code can be compiled.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tacit.atomic import write_atomically

VARIABLE = "TACIT_CACHE_DIR"  # the environment's choice of a folder
MOST = 256 * 2**20  # bytes of all files
SUFFIX = ".code"
CHECKSUM = hashlib.sha256().digest_size


def load(key: str) -> bytes | None:
    """What was kept under a key; None if there is nothing, or nothing that can be trusted."""
    for folder in _folders():
        path = folder / f"{key}{SUFFIX}"
        with suppress(OSError):
            content = _read(path)
            if hashlib.sha256(content[CHECKSUM:]).digest() == content[:CHECKSUM]:
                os.utime(path)  # used now
                return content[CHECKSUM:]
            path.unlink()  # damaged
    return None


def save(key: str, content: bytes) -> None:
    """Keep some content under a key, where that is possible."""
    whole = hashlib.sha256(content).digest() + content
    for folder in _folders():
        with suppress(OSError):
            write_atomically(folder / f"{key}{SUFFIX}", lambda file: file.write(whole), binary=True)
            _shrink(folder)
            return


def _shrink(folder: Path) -> None:
    """Remove what has not been used for longest, until the rest is small enough."""
    with os.scandir(folder) as entries:
        found = [(e.stat().st_mtime, e.stat().st_size, e.path) for e in entries if e.name.endswith(SUFFIX)]
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= MOST:
            break
        with suppress(FileNotFoundError):  # another process was faster
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
    named = os.environ.get(VARIABLE)
    home = os.environ.get("XDG_CACHE_HOME")
    if named:
        wanted = [Path(named)]
    else:
        user = getattr(os, "getuid", lambda: "user")()
        cache = Path(home) if home else Path("~/.cache").expanduser()
        wanted = [cache / "tacit", Path(tempfile.gettempdir()) / f"tacit-code-{user}"]
    for folder in wanted:
        if _usable(folder):
            yield folder


def _usable(folder: Path) -> bool:
    """Whether a folder is there, or can be made, and nobody else can write to it or put another in its place."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        above = folder.parent.stat()
        safe = not above.st_mode & (stat.S_IWGRP | stat.S_IWOTH) or bool(above.st_mode & stat.S_ISVTX)
        return stat.S_ISDIR(folder.lstat().st_mode) and _own(folder.lstat()) and (safe or os.name != "posix")
    except (OSError, RuntimeError):  # there may be no home, either
        return False


def _own(found: os.stat_result) -> bool:
    """Whether only this user can write to something."""
    if os.name != "posix":  # elsewhere, the folders of users are their own
        return True
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)

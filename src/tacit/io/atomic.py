"""Files that are either the old ones or the new ones, never halves."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any


def write_atomically(path: str | os.PathLike[str], write: Callable[[IO[Any]], object], binary: bool = False) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in place in one step."""
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=".tacit-", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") if binary else os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask

"""A run of training in one file, written atomically, so that interrupted training resumes where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.archive import Arrays, packed, require, unpacked
from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError
from tacit.base.floats import Floats

T = TypeVar("T")


def fingerprint(settings: Any, arrays: Iterable[NDArray[Any]]) -> str:
    """A digest of all that a training depends on: a run may only go on with the same."""
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True, default=repr).encode())
    for array in arrays:
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def write(path: Path, form: str, key: str, head: Mapping[str, Any], arrays: Arrays) -> None:
    """Store a head, which JSON must be able to hold, and arrays."""
    content = packed({"format": form, "key": key, **head}, arrays)
    write_atomically(path, lambda file: file.write(content), binary=True)


def read(path: Path, form: str, key: str, parse: Callable[[dict[str, Any], Arrays], T]) -> T | None:
    """The content of a checkpoint, parsed, if there is one; an error if it is damaged or of another training."""
    if not path.exists():
        return None
    # zipfile, NumPy and JSON raise whatever a damaged file leads them to
    try:
        head, arrays = unpacked(path.read_bytes(), form)
        if head.get("key") == key:
            return parse(head, arrays)
    except Exception as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise FormatError(f"{path} is not a checkpoint of a training run ({reason}); remove it to start over") from None
    problem = f"{path} is the checkpoint of a training run with another network, other data or other settings"
    raise FormatError(f"{problem}; remove it to start over, or name another file")


def vector(array: NDArray[Any], length: int) -> Floats:
    require(array.dtype == np.float64 and array.shape == (length,), "number of weights")
    return array


def list_of(value: Any) -> list[Any]:
    require(type(value) is list, "list")
    return value  # type: ignore[no-any-return]


def is_whole(value: Any, largest: int = 2**53) -> bool:  # all of these are exact floats
    return type(value) is int and 0 <= value <= largest


def is_number(value: Any) -> bool:
    return type(value) is float or is_whole(value)

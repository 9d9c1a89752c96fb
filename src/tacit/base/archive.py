"""Arrays and a head of JSON in one file: an .npz whose comment is a digest of its content, so that an altered file is
refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = Mapping[str, NDArray[Any]]


def packed(head: Any, arrays: Arrays) -> bytes:
    """The bytes of a file with a head and arrays."""
    buffer = io.BytesIO()
    np.savez(buffer, head=np.array(json.dumps(head)), **arrays)  # type: ignore[arg-type]
    with zipfile.ZipFile(buffer, "a") as file:
        file.comment = _digest(file)
    return buffer.getvalue()


def unpacked(content: bytes, form: str) -> tuple[dict[str, Any], Arrays]:
    """The head and the arrays; zipfile, NumPy and JSON raise whatever damaged bytes lead them to."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        if any(member.compress_type != zipfile.ZIP_STORED for member in file.infolist()):
            raise ValueError("it is compressed")  # and may be far larger than it seems
        if file.comment != _digest(file):
            raise ValueError("it was altered, or written by another version of tacit")
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        arrays = dict(stored)
    head = json.loads(str(arrays.pop("head")))
    require(isinstance(head, dict) and head.get("format") == form, "format")
    return head, arrays


def _digest(file: zipfile.ZipFile) -> bytes:
    digest = hashlib.sha256()
    for name in file.namelist():
        content = file.read(name)
        digest.update(f"{len(name)} {name} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest().encode()


def require(condition: bool, what: str) -> None:
    """An error that says which part of a file cannot be."""
    if not condition:
        raise ValueError(f"its {what} cannot be")

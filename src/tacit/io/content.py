"""What files hold, packed or not: bytes in, text out."""

from __future__ import annotations

import gzip
import os
import zlib
from pathlib import Path

from tacit.errors import FormatError
from tacit.io.atomic import write_atomically

MAX_UNPACKED = 2**28  # bytes; the largest network of the bnlearn repository has 5.5 million


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; one whose name ends in `.gz` is unpacked, up to a limit."""
    if not is_packed(path):
        return Path(path).read_bytes()
    try:
        with gzip.open(path) as file:
            data = file.read(MAX_UNPACKED + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{os.fspath(path)}: the gzip data is damaged: {error}") from None
    if len(data) > MAX_UNPACKED:
        raise FormatError(
            f"{os.fspath(path)}: unpacks to more than {MAX_UNPACKED:,} bytes; unpack it first if that is meant"
        )
    return data


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write UTF-8 atomically; to a name that ends in `.gz`, packed and without a time stamp."""
    data = text.encode("utf-8")
    if is_packed(path):
        data = gzip.compress(data, mtime=0)
    write_atomically(path, lambda file: file.write(data), binary=True)


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether the name says so."""
    return os.fspath(path).lower().endswith(".gz")


def decoded(data: bytes) -> str:
    """UTF-8, with or without a byte-order mark, or else Latin-1, which older programs wrote."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")

"""What files hold, packed or not: bytes in, text out."""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from tacit.base.atomic import write_atomically
from tacit.base.errors import FormatError

# What a packed file may become: a small file must not fill the memory, or keep us busy for minutes. The largest
# networks of the bnlearn repository unpack to 5.5 million bytes and have 130,000 pieces.
MAX_UNPACKED = 2**26  # bytes
MAX_PIECES = 2**19  # beside one per byte of the packed file
WORDS_PER_PIECE = 8  # words and numbers are read many at a time
SIGNS = (b"[", b"{", b"(", b"<", b";", b"|", b"=", b"/")
STEP_BYTES = 2**22  # bytes looked at together
UNPACK_HINT = "unpack it first if that is meant"
# each takes a while, however short it is; JSON that is not packed may have more: what is saved can be loaded
MAX_NODES = 100_000


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """The content of a file; one whose name ends in `.gz` is unpacked, up to limits on what it holds."""
    if not is_packed(path):
        return Path(path).read_bytes()
    try:
        with gzip.open(path) as file:
            data = file.read(MAX_UNPACKED + 1)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise FormatError(f"{os.fspath(path)}: the gzip data is damaged: {error}") from None
    if len(data) > MAX_UNPACKED:
        raise FormatError(f"{os.fspath(path)}: unpacks to more than {MAX_UNPACKED:,} bytes; {UNPACK_HINT}")
    count, limit = pieces(data), MAX_PIECES + os.stat(path).st_size
    if count > limit:
        raise FormatError(f"{os.fspath(path)}: unpacks to {count:,} pieces (limit {limit:,}); {UNPACK_HINT}")
    return data


def pieces(data: bytes) -> int:
    """How much there is to read in a text of any format: signs and strings one by one, words eight at a time."""
    words = 0
    for start in range(0, len(data), STEP_BYTES):
        part = np.frombuffer(data, np.uint8, min(STEP_BYTES, len(data) - start), start)
        gap = (part <= ord(" ")) | (part == ord(","))
        words += int(np.count_nonzero(gap[:-1] & ~gap[1:])) + 1
    tags = data.count(b"</") + data.count(b"/>")  # whose slashes were counted with their angles
    return sum(map(data.count, SIGNS)) - tags + data.count(b'"') // 2 + words // WORDS_PER_PIECE


def check_nodes(count: int, error: Callable[[str], FormatError] = FormatError) -> None:
    """Refuse a file, packed or not, with too many nodes."""
    if count > MAX_NODES:
        raise error(f"at least {count:,} nodes (limit {MAX_NODES:,}); a larger network can be kept as JSON")


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write UTF-8 atomically; to a name that ends in `.gz`, packed and without a time stamp."""
    data = text.encode("utf-8")
    if is_packed(path):
        data = gzip.compress(data, mtime=0)
    write_atomically(path, lambda file: file.write(data), binary=True)


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether the name says so."""
    return os.fspath(path).lower().endswith(".gz")


def suffix_of(path: str | os.PathLike[str]) -> str:
    """The suffix that decides the format: the one before `.gz`, if the file is compressed."""
    name = PurePath(path)
    return (PurePath(name.stem) if is_packed(path) else name).suffix.lower()


def decoded(data: bytes) -> str:
    """UTF-8, with or without a byte-order mark, or else Latin-1, which older programs wrote."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def parse_json(text: str) -> Any:
    """What a JSON text says; an error names line and column."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise FormatError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except (ValueError, RecursionError) as error:  # an integer of thousands of digits, or deep nesting
        raise FormatError(str(error)) from None

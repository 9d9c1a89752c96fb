"""Networks in files of any format, chosen by the suffix. See docs/formats.md."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Protocol

from tacit.errors import FormatError, TacitError
from tacit.io import bif, hugin, json, uai, xmlbif
from tacit.io.content import is_packed, read_bytes, write_text
from tacit.network import Network


class _Format(Protocol):
    def parse(self, data: bytes, source: str) -> Network: ...

    def compose(self, net: Network) -> str: ...


_FORMATS: dict[str, _Format] = {
    ".bif": bif,
    ".xmlbif": xmlbif,
    ".bifxml": xmlbif,
    ".xml": xmlbif,
    ".uai": uai,
    ".net": hugin,
    ".json": json,
}


def read(path: str | os.PathLike[str]) -> Network:
    """Read a network from a file.

    The suffix tells the format: `.bif`, `.xmlbif` (also `.bifxml` and `.xml`), `.uai`, `.net` or `.json`, each also
    with `.gz`. A damaged file raises `FormatError` with the file, line and column. Rows that sum to 1 only to within
    1e-4 are scaled, with a `RoundingWarning`.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "wet.bif.gz"
    >>> net = tacit.Network("wet")
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> write(net, path)
    >>> read(path) == net
    True
    """
    return format_of(path).parse(read_bytes(path), os.fspath(path))


def write(net: Network, path: str | os.PathLike[str]) -> None:
    """Write a network to a file, atomically, in the format that the suffix tells (see `read`).

    What is written is read back as the same network, bit for bit. `.bif` and `.uai` hold tables of numbers only: a
    testing node is an error, a factored CPT is written out, and `learn` and `tie` are not kept.

    >>> import tempfile, pathlib, tacit
    >>> write(tacit.examples.abc(), pathlib.Path(tempfile.mkdtemp()) / "abc.bif")
    Traceback (most recent call last):
        ...
    tacit.errors.FormatError: node 'B' is testing, which BIF cannot hold; write .json, .xmlbif or .net
    """
    if not isinstance(net, Network):
        raise TacitError(f"cannot write a {type(net).__name__}; expected a Network")
    write_text(format_of(path).compose(net), path)


def format_of(path: str | os.PathLike[str]) -> _Format:
    """The format that a suffix tells; an error if it tells none."""
    name = PurePath(path)
    suffix = (PurePath(name.stem) if is_packed(path) else name).suffix.lower()
    if suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise FormatError(f"{name}: the suffix {suffix!r} tells no format; expected one of {known}, or one with .gz")
    return _FORMATS[suffix]

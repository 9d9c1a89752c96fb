"""One row of evidence in a file, by the suffix: SamIam's `.inst` and `.evid` of the UAI competitions."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Protocol

from tacit.errors import FormatError
from tacit.factor_graph import FactorGraph
from tacit.io import samiam, uai
from tacit.io.content import read_bytes, suffix_of
from tacit.network import Network
from tacit.variable import Label


class _Format(Protocol):
    def parse_evidence(self, data: bytes, source: str, net: Network | FactorGraph) -> dict[str, Label]: ...


_FORMATS: dict[str, _Format] = {".inst": samiam, ".evid": uai}


def read_evidence(path: str | os.PathLike[str], net: Network | FactorGraph) -> dict[str, Label]:
    """Read what a file observes of a network's variables: a state for each of them, as `given=` and queries take it.

    The suffix decides the format: `.inst` (SamIam) or `.evid` (UAI competitions), each also with `.gz`. A UAI file with
    several rows is an error; `tacit.io.uai.read_evidence` reads all of them as columns. Whatever is wrong raises
    `FormatError` with the file, line and column.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "seen.inst"
    >>> _ = path.write_text('<instantiation><inst id="A" value="true"/><inst id="C" value="lo"/></instantiation>')
    >>> abc = tacit.examples.abc()
    >>> seen = read_evidence(path, abc)
    >>> seen
    {'A': 'true', 'C': 'lo'}
    >>> tacit.compile(abc, "B", given=seen).posterior()
    array([[0.9, 0.1]])
    """
    suffix = suffix_of(path)
    if suffix not in _FORMATS:
        known = ", ".join(_FORMATS)
        raise FormatError(f"{PurePath(path)}: unknown file suffix {suffix!r}; expected one of {known}, or one with .gz")
    return _FORMATS[suffix].parse_evidence(read_bytes(path), os.fspath(path), net)


def is_evidence(path: str) -> bool:
    """Whether the name of a file says that it holds evidence.

    >>> is_evidence("asia.inst"), is_evidence("grid.uai.evid.gz"), is_evidence("lung")
    (True, True, False)
    """
    return suffix_of(path) in _FORMATS

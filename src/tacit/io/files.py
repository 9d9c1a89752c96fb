"""Networks, and single rows of evidence, in files of any format, chosen by the suffix. See docs/formats.md."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, Protocol, TypeVar

from tacit.base.errors import FormatError, TacitError
from tacit.base.text import listed
from tacit.base.warnings import warn
from tacit.evidence.tables.suffixes import is_table
from tacit.io.formats import bif, ergo, hugin, json, netica, samiam, uai, xmlbif
from tacit.io.parsing.content import read_bytes, suffix_of, write_text
from tacit.model.elements.variable import Label
from tacit.model.factor_graph import FactorGraph
from tacit.query.ensemble import Ensemble
from tacit.query.network import Network

T = TypeVar("T")


class _Format(Protocol):
    def parse(self, data: bytes, source: str) -> Network | FactorGraph: ...

    def compose(self, net: Network) -> str: ...


_FORMATS: dict[str, _Format] = {
    ".bif": bif,
    ".xmlbif": xmlbif,
    ".bifxml": xmlbif,
    ".xml": xmlbif,
    ".uai": uai,
    ".net": hugin,
    ".dne": netica,
    ".dnet": netica,
    ".erg": ergo,
    ".json": json,
}
NO_TABLES = "tacit.discover makes a network of a table"
ZIP = b"PK\x03\x04"
_EVIDENCE = {".inst": samiam.parse_evidence, ".evid": uai.parse_evidence}  # of SamIam, and of the UAI competitions
# how files of the formats begin, after spaces, a byte-order mark and comments
_BEFORE = rb"(?:\xef\xbb\xbf)?(?>\s|//[^\n]*\n|/\*.*?\*/|%[^\n]*\n)*+"  # without going back: it may be hostile
_STARTS = {
    ".json": re.compile(rb"\s*\{"),
    ".xmlbif": re.compile(_BEFORE + rb"<", re.DOTALL),
    ".uai": re.compile(rb"\s*(?:BAYES|MARKOV)\b"),
    ".net": re.compile(_BEFORE + rb"(?:net|node|class)\b", re.DOTALL),
    ".dne": re.compile(_BEFORE + rb"bnet\b", re.DOTALL),
    ".bif": re.compile(_BEFORE + rb"(?:network|variable|probability)\b", re.DOTALL),
}


def read(path: str | os.PathLike[str]) -> Network | Any:  # Any: whoever reads a .bif need not rule out a FactorGraph
    """Read a network from a file. A UAI file that begins with MARKOV gives a `FactorGraph`, all others a `Network`.

    The suffix decides the format: `.bif`, `.xmlbif` (also `.bifxml` and `.xml`), `.uai`, `.net`, `.dne` (also `.dnet`),
    `.erg` or `.json`, each also with `.gz`. A damaged file raises `FormatError` with the file, line and column. Rows
    that sum to 1 only to within 1e-4 are scaled, with a `RoundingWarning`.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "wet.bif.gz"
    >>> net = tacit.Network("wet")
    >>> net.add("rain", cpt=[0.2, 0.8])
    >>> write(net, path)
    >>> read(path) == net
    True
    """
    return _parsed(format_of(path), path)


def load(path: str | os.PathLike[str]) -> Network | Any:
    """Read a network that `save` wrote, or any that `read` can: a suffix that is no format's is JSON."""
    return _parsed(_FORMATS.get(suffix_of(path), json), path)


def save(obj: Network | FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write a network to a file, atomically: as `write` does, but to one with another suffix, or none, as JSON.

    Of all formats, JSON keeps everything that a network holds.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "abc.json"
    >>> tacit.save(tacit.examples.abc(), path)
    >>> tacit.load(path) == tacit.examples.abc()
    True
    """
    write_text(_composed(obj, _FORMATS.get(suffix_of(path), json), "save"), path)


def write(net: Network | FactorGraph, path: str | os.PathLike[str]) -> None:
    """Write a network to a file, atomically, in the format of its suffix (see `read`).

    What is written is read back as the same network, bit for bit. `.bif` and `.uai` hold tables of numbers only: a
    testing node is an error, a factored CPT is written out, and `learn` and `tie` are not kept.

    >>> import tempfile, pathlib, tacit
    >>> write(tacit.examples.abc(), pathlib.Path(tempfile.mkdtemp()) / "abc.bif")
    Traceback (most recent call last):
        ...
    tacit.base.errors.FormatError: node 'B' is testing, which BIF cannot hold; write .json, .xmlbif or .net
    """
    write_text(_composed(net, format_of(path), "write"), path)


def _composed(net: Network | FactorGraph, format: _Format, do: str) -> str:
    """A network as a document; an error says that one cannot `do` so."""
    if isinstance(net, FactorGraph):
        if format is not uai:
            raise FormatError("a FactorGraph can only be written as .uai: other formats hold Bayesian networks")
        return uai.compose(net)
    if isinstance(net, Ensemble):
        raise TacitError(f"cannot {do} an Ensemble here, only a Network; ensemble.save(path) writes a file of its own")
    if not isinstance(net, Network):
        raise TacitError(f"cannot {do} a {type(net).__name__}; expected a Network")
    for name in net.value_nodes if format is not json else ():
        remedy = "write .json, or net.without_values()"
        raise FormatError(f"{name!r} is a value node, which no format but JSON holds; {remedy}")
    text = format.compose(net)
    lost = [name for name in net if net.bins(name) is not None] if format is not json else []
    if lost:
        what = f"the file holds no bins: {listed(lost)} will have the names of intervals as states"
        warn(f"{what}, and take no numbers; .json keeps them", LostBinsWarning)
    return text


class LostBinsWarning(UserWarning):
    """A file of a format without intervals was written: its variables no longer know what numbers mean."""


def format_of(path: str | os.PathLike[str]) -> _Format:
    """The format of a suffix; an error if it has none."""
    return _chosen(_FORMATS, path)


def _chosen(formats: Mapping[str, T], path: str | os.PathLike[str]) -> T:
    suffix = suffix_of(path)
    if suffix not in formats:
        expected = f"expected one of {', '.join(formats)}, or one with .gz"
        hint = f"; {NO_TABLES}" if is_table(path) else ""
        raise FormatError(f"{PurePath(path)}: unknown file suffix {suffix!r}; {expected}{hint}")
    return formats[suffix]


def _parsed(format: _Format, path: str | os.PathLike[str]) -> Network | FactorGraph:
    """The network in a file; where it cannot be read, the error says which other format the file seems to have."""
    data = read_bytes(path)
    try:
        return format.parse(data, os.fspath(path))
    except FormatError as error:
        if data.startswith(ZIP):
            raise FormatError(f"{error}; it is no network: tacit.Ensemble.load reads the .npz of an ensemble") from None
        if is_table(path) and not _STARTS[".json"].match(data):  # `save` may have given JSON such a name
            raise FormatError(f"{os.fspath(path)}: load reads a file of this name as a network in JSON, and this is "
                              f"none; {NO_TABLES}") from None  # fmt: skip
        other = next((suffix for suffix, start in _STARTS.items() if start.match(data)), None)
        if other is None or _FORMATS[other] is format:
            raise
        raise FormatError(f"{error}; it seems to be a {other} file: give it a name that ends in {other}") from None


def read_evidence(path: str | os.PathLike[str], net: Network | FactorGraph) -> dict[str, Label]:
    """Read what a file observes of a network's variables: a state for each of them, as `given=` and queries take it.

    The suffix decides the format: `.inst` (SamIam) or `.evid` (UAI competitions), each also with `.gz`. A UAI file with
    several rows is an error; `tacit.io.formats.uai.read_evidence` reads all of them as columns. Bad files raise
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
    return _chosen(_EVIDENCE, path)(read_bytes(path), os.fspath(path), net)


def is_evidence(path: str) -> bool:
    """Whether the name of a file says that it holds evidence.

    >>> is_evidence("asia.inst"), is_evidence("grid.uai.evid.gz"), is_evidence("lung")
    (True, True, False)
    """
    return suffix_of(path) in _EVIDENCE

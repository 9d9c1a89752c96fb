"""Circuits as text, JSON and Graphviz.

Text: one line per node, `n7 = product n3 n5`, numbered from 0 without gaps, and a last line `outputs n8 n9`. Names are
JSON strings, so that any name survives.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import FormatError, TooLargeError
from tacit.base.text import quote
from tacit.engines.circuit.nodes import ARRAYS, CODE, KINDS, LEAVES, Ids, Nodes, node_name
from tacit.model.cpt import TESTS
from tacit.model.variable import Variable, variable

FORMAT, VERSION = "tacit-circuit", 1
SIGNS = {"sum": "+", "product": "*", "divide": "/", "complement": "1-x", "normalise": "Σ=1"}
MAX_DRAWN = 2000
N = TypeVar("N", bound=Nodes)
MAX_SHOWN = 200  # characters of a fault in a message


def to_dot(circuit: Nodes) -> str:
    """A drawing, leaves at the bottom; refused where nobody could read it."""
    if len(circuit) > MAX_DRAWN:
        raise TooLargeError(f"a drawing of {len(circuit):,} nodes cannot be read (limit {MAX_DRAWN:,}); see to_text")
    lines = ["digraph circuit {", '  rankdir=BT; node [fontname="Helvetica"];']
    for i in range(len(circuit)):
        kind = KINDS[circuit.kind[i]]
        shape = "plaintext" if kind in LEAVES else "box" if kind in ("test", "sigmoid") else "circle"
        label = f"x {TESTS[circuit.owner[i]]} T ? θ⁺ : θ⁻" if kind == "test" else SIGNS.get(kind, node_name(circuit, i))
        ring = ", peripheries=2" if i in circuit.outputs else ""
        lines.append(f"  {i} [shape={shape}, label={quote(label)}{ring}];")
        lines.extend(f"  {child} -> {i};" for child in _children(circuit, i))
    return "\n".join([*lines, "}"]) + "\n"


def to_text(circuit: Nodes) -> str:
    """One line per node."""
    lines = [_line(circuit, i) for i in range(len(circuit))]
    states = {v.name: list(v.states) for v in circuit.inputs}
    head = f"# inputs {json.dumps(states)}"
    return "\n".join([head, *lines, "outputs " + " ".join(f"n{i}" for i in circuit.outputs)]) + "\n"


def _line(circuit: Nodes, i: int) -> str:
    kind, owner, entry = KINDS[circuit.kind[i]], int(circuit.owner[i]), int(circuit.entry[i])
    number = repr(float(circuit.number[i]))
    detail = {
        "constant": [number],
        "parameter": [*map(json.dumps, circuit.tables[owner]), str(entry), number] if kind == "parameter" else [],
        "input": [json.dumps(circuit.inputs[owner].name), str(entry)] if kind == "input" else [],
        "slice": [json.dumps(circuit.inputs[owner].name)] if kind == "slice" else [],
        "test": [TESTS[owner]] if kind == "test" else [],
        "sigmoid": [TESTS[owner], number] if kind == "sigmoid" else [],
        "normalise": [str(owner)],
    }.get(kind, [])
    children = [f"n{child}" for child in _children(circuit, i)]
    return " ".join([f"n{i} =", kind, *detail, *children])


def _children(circuit: Nodes, i: int) -> list[int]:
    children: list[int] = circuit.children[circuit.start[i] : circuit.start[i + 1]].tolist()
    return children


def from_text(lines: str, kind: type[N]) -> N:
    """The circuit, of a given class, that `to_text` wrote."""
    reader = _TextReader()
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            reader.read(line.strip())
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"line {number}: cannot read {_brief(repr(line))}: {_brief(error)}") from None
    return reader.circuit(kind)


class _TextReader:
    def __init__(self) -> None:
        self.rows: list[tuple[int, list[int], int, int, float]] = []
        self.tables: dict[tuple[str, str], int] = {}
        self.variables: dict[str, Variable] = {}
        self.places: dict[str, int] = {}  # of the variables
        self.outputs: list[int] = []

    def read(self, line: str) -> None:
        if line.startswith("# inputs "):
            states = json.loads(line[len("# inputs ") :])
            self.variables = {name: _variable(name, labels) for name, labels in states.items()}
            self.places = {name: place for place, name in enumerate(self.variables)}
        elif line.startswith("outputs"):
            self.outputs = [self._node(word) for word in line.split()[1:]]
        elif line:
            self._node_line(_words(line))

    def _node_line(self, words: list[Any]) -> None:
        if words[0] != f"n{len(self.rows)}" or words[1] != "=":
            raise ValueError(f"expected a line that begins 'n{len(self.rows)} ='")
        kind, rest = words[2], words[3:]
        owner, entry, number = 0, 0, 0.0
        if kind == "constant":
            number, rest = float(rest[0]), rest[1:]
        elif kind == "parameter":
            owner = self.tables.setdefault((rest[0], rest[1]), len(self.tables))
            entry, number, rest = _integer(rest[2]), float(rest[3]), rest[4:]
        elif kind in ("input", "slice"):
            owner = self.places[rest[0]]
            entry, rest = (_integer(rest[1]), rest[2:]) if kind == "input" else (0, rest[1:])
        elif kind in ("test", "sigmoid"):
            owner, rest = TESTS.index(rest[0]), rest[1:]
            if kind == "sigmoid":
                number, rest = float(rest[0]), rest[1:]
        elif kind == "normalise":
            owner, rest = _integer(rest[0]), rest[1:]
        self.rows.append((CODE[kind], [self._node(word) for word in rest], owner, entry, number))

    def _node(self, word: str) -> int:
        i = int(word.removeprefix("n"))
        if not (word.startswith("n") and 0 <= i < len(self.rows)):
            raise ValueError(f"{word!r} is not an earlier node")
        return i

    def circuit(self, kind: type[N]) -> N:
        if not self.outputs:
            raise FormatError("the circuit has no line 'outputs ...'")
        arity = [len(children) for _, children, _, _, _ in self.rows]
        circuit = kind(
            kind=np.array([r[0] for r in self.rows], dtype=np.uint8),
            start=np.concatenate([[0], np.cumsum(arity)]).astype(np.int64),
            children=np.array([c for r in self.rows for c in r[1]], dtype=np.int64),
            owner=np.array([r[2] for r in self.rows], dtype=np.int64),
            entry=np.array([r[3] for r in self.rows], dtype=np.int64),
            number=np.array([r[4] for r in self.rows]),
            blocks=np.arange(len(self.rows) + 1),
            outputs=np.array(self.outputs, dtype=np.int64),
            tables=tuple(self.tables),
            inputs=tuple(self.variables.values()),
        )
        _check(circuit)
        return circuit


def _integer(word: str) -> int:
    """A number that an array can hold."""
    number = int(word)
    if abs(number) >= 2**63:
        raise ValueError(f"{word} is too large")
    return number


def _variable(name: Any, states: Any) -> Variable:
    """A checked variable; one without states is a plain number."""
    if not isinstance(states, list):
        raise ValueError(f"the states of {name!r} must be a list")
    return variable(name, states) if states else Variable(variable(name, 1).name, ())


def _brief(what: object) -> str:
    text = str(what)
    return text if len(text) <= MAX_SHOWN else text[:MAX_SHOWN] + "..."


def _words(line: str) -> list[Any]:
    """Words between spaces; JSON strings count as one word."""
    decoder = json.JSONDecoder()
    words: list[Any] = []
    at = 0
    while at < len(line):
        if line[at] == " ":
            at += 1
        elif line[at] == '"':
            word, at = decoder.raw_decode(line, at)
            words.append(word)
        else:
            end = line.find(" ", at)
            end = len(line) if end < 0 else end
            words.append(line[at:end])
            at = end
    return words


def to_dict(circuit: Nodes) -> dict[str, Any]:
    """Plain data, ready for JSON."""
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION, "kinds": list(KINDS)}
    data |= {name: getattr(circuit, name).tolist() for name in ARRAYS}
    data["number"] = [None if np.isnan(x) else x for x in circuit.number.tolist()]
    data["tables"] = [list(t) for t in circuit.tables]
    data["inputs"] = [{"name": v.name, "states": list(v.states)} for v in circuit.inputs]
    return data


def from_dict(data: Mapping[str, Any], kind: type[N]) -> N:
    """The circuit, of a given class, that `to_dict` described."""
    if not isinstance(data, Mapping) or [data.get(key) for key in ("format", "version", "kinds")] != [
        FORMAT,
        VERSION,
        list(KINDS),
    ]:
        raise FormatError(f"not a {FORMAT} of version {VERSION}")
    try:
        arrays = {name: _integers(data[name]) for name in ARRAYS}
        if not ((arrays["kind"] >= 0) & (arrays["kind"] < len(KINDS))).all():
            raise ValueError("a node is of no known kind")
        arrays["kind"] = arrays["kind"].astype(np.uint8)
        circuit = kind(
            number=np.array([np.nan if x is None else float(x) for x in data["number"]], dtype=np.float64),
            tables=tuple((str(n), str(p)) for n, p in data["tables"]),
            inputs=tuple(_variable(v["name"], v["states"]) for v in data["inputs"]),
            **arrays,
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise FormatError(f"the circuit is damaged: {type(error).__name__}: {_brief(error)}") from None
    _check(circuit)
    return circuit


def _integers(values: Any) -> NDArray[Any]:
    array = np.array(values, dtype=None if len(values) else np.int64)
    if array.ndim != 1 or array.dtype.kind != "i":
        raise ValueError("expected a list of integers of 64 bits")
    return array.astype(np.int64)


def _check(circuit: Nodes) -> None:
    """The arrays fit together, children come before parents, and every node has what its kind needs."""
    n = len(circuit.kind)
    lengths = all(len(a) == n for a in (circuit.owner, circuit.entry, circuit.number)) and len(circuit.start) == n + 1
    if not lengths or not len(circuit.outputs) or not _covers(circuit.start, len(circuit.children), least=0):
        raise FormatError("the circuit is damaged: its arrays do not fit together")
    if len({v.name for v in circuit.inputs}) < len(circuit.inputs):
        raise FormatError("the circuit is damaged: two inputs have the same name")
    unset = np.isnan(circuit.number) & (circuit.kind == CODE["parameter"])
    if not (np.isfinite(circuit.number) | unset).all():
        raise FormatError("the circuit is damaged: a number is not finite (one to be learned must be a parameter)")
    arity = np.diff(circuit.start)
    parent = np.repeat(np.arange(n), arity)
    ordered = ((circuit.children >= 0) & (circuit.children < parent)).all()
    if not ordered or not ((circuit.outputs >= 0) & (circuit.outputs < n)).all():
        raise FormatError("the circuit is damaged: a node uses one that does not come before it")
    for kind in KINDS:
        nodes = np.flatnonzero(circuit.kind == CODE[kind])
        if not _complete(circuit, kind, circuit.owner[nodes], circuit.entry[nodes], arity[nodes]):
            raise FormatError(f"the circuit is damaged: a node of kind {kind!r} has too few or too many parts")
    _check_blocks(circuit, parent)


def _covers(bounds: Ids, count: int, least: int) -> bool:
    """Whether the bounds of consecutive parts, each of at least so many, go from 0 to `count`.

    Differences of damaged bounds could overflow, and their sums would be allocated: they are compared first.
    """
    if len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != count or (bounds < 0).any():
        return False
    return bool((bounds[1:] - bounds[:-1] >= least).all())


def _complete(circuit: Nodes, kind: str, owner: Ids, entry: Ids, arity: Ids) -> bool:
    """Whether nodes of one kind have the number of children, and the details, that they need."""
    cards = np.array([max(1, v.card) for v in circuit.inputs], dtype=np.int64)  # without states: one number
    owners = {"test": len(TESTS), "sigmoid": len(TESTS), "parameter": len(circuit.tables)}
    owners |= dict.fromkeys(("input", "slice"), len(cards))
    if kind in owners and not ((owner >= 0) & (owner < owners[kind])).all():
        return False
    match kind:
        case "sum" | "product":
            return bool((arity >= 1).all())
        case "normalise":
            return bool(((owner >= 0) & (owner < arity)).all())
        case "slice":
            return bool((arity == cards[owner]).all())
        case "input":
            return bool(((arity == 0) & (entry >= 0) & (entry < cards[owner])).all())
    return bool((arity == {"test": 4, "sigmoid": 4, "divide": 2, "complement": 1}.get(kind, 0)).all())


def _check_blocks(circuit: Nodes, parent: Ids) -> None:
    """Blocks cover all nodes in order; those of a block are alike and do not use each other."""
    blocks = circuit.blocks
    if len(blocks) < 2 or not _covers(blocks, len(circuit.kind), least=1):
        raise FormatError("the circuit is damaged: its blocks do not cover its nodes")
    begin = np.repeat(blocks[:-1], np.diff(blocks))
    said = np.isin(circuit.kind, (CODE["input"], CODE["slice"]))  # what these compute depends on the variable, too
    alike = (circuit.kind == circuit.kind[begin]).all() and (~said | (circuit.owner == circuit.owner[begin])).all()
    if not alike or (circuit.children >= begin[parent]).any():
        raise FormatError("the circuit is damaged: the nodes of a block must be alike, and use earlier blocks only")

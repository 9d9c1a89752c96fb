"""Circuits as lines of text and as drawings, and checks of what was read.

Text: one line per node, `n7 = product n3 n5`, numbered from 0 without gaps, and a last line `outputs n8 n9`. Names are
JSON strings, so that any name survives.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import accumulate, chain
from typing import Any, NamedTuple

import numpy as np

from tacit.base.errors import FormatError, TooLargeError
from tacit.engines.circuit.nodes import CODE, KINDS, LEAVES, Ids, Nodes
from tacit.model.cpt import TESTS
from tacit.model.elements.variable import Variable, variable

SIGNS = {"sum": "+", "product": "*", "divide": "/", "complement": "1-x", "normalise": "Σ=1"}
MAX_DRAWN = 2000
MAX_SHOWN = 200  # characters of a fault in a message


class DrawnNode(NamedTuple):
    """What a drawing shows of a node; `form` is "text", "box" or "ellipse"."""

    label: str
    form: str
    output: bool
    children: list[int]


def drawn_nodes(circuit: Nodes) -> Iterator[DrawnNode]:
    """The nodes of a drawing; refused where nobody could read it."""
    if len(circuit) > MAX_DRAWN:
        raise TooLargeError(f"a drawing of {len(circuit):,} nodes cannot be read (limit {MAX_DRAWN:,}); see to_text")
    outputs = set(circuit.outputs.tolist())
    for i in range(len(circuit)):
        kind = KINDS[circuit.kind[i]]
        form = "text" if kind in LEAVES else "box" if kind in ("test", "sigmoid") else "ellipse"
        yield DrawnNode(_label(circuit, kind, i), form, i in outputs, circuit.children_of(i))


def _label(circuit: Nodes, kind: str, i: int) -> str:
    owner, entry = circuit.owner[i], circuit.entry[i]
    match kind:
        case "constant":
            return f"{circuit.number[i]:g}"
        case "parameter":
            return f"{'.'.join(circuit.tables[owner])}[{entry}]"
        case "input":
            states = circuit.inputs[owner].states
            return f"{circuit.inputs[owner].name}={states[entry]}" if states else circuit.inputs[owner].name
        case "test":
            return f"x {TESTS[owner]} T ? θ⁺ : θ⁻"
    return SIGNS.get(kind, kind)


def node_line(circuit: Nodes, i: int) -> str:
    kind, owner, words = KINDS[circuit.kind[i]], int(circuit.owner[i]), list[str]()
    if kind == "parameter":
        words += map(json.dumps, circuit.tables[owner])
    elif kind in ("input", "slice"):
        words.append(json.dumps(circuit.inputs[owner].name))
    elif kind in ("test", "sigmoid"):
        words.append(TESTS[owner])
    elif kind == "normalise":
        words.append(str(owner))
    if kind in ("parameter", "input"):
        words.append(str(circuit.entry[i]))
    if kind in ("constant", "parameter", "sigmoid"):
        words.append(repr(float(circuit.number[i])))
    return " ".join([f"n{i} =", kind, *words, *(f"n{child}" for child in circuit.children_of(i))])


def read_text(lines: str) -> dict[str, Any]:
    """What lines of text say, as plain data."""
    reader = _TextReader()
    for number, line in enumerate(lines.splitlines(), start=1):
        try:
            reader.read(line.strip())
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise FormatError(f"line {number}: cannot read {brief(repr(line))}: {brief(error)}") from None
    return reader.data()


class _TextReader:
    def __init__(self) -> None:
        self.rows: list[tuple[int, list[int], int, int, float]] = []
        self.tables: dict[tuple[str, str], int] = {}
        self.inputs: dict[str, int] = {}
        self.states: dict[str, Any] = {}
        self.outputs: list[int] = []

    def read(self, line: str) -> None:
        if line.startswith("# inputs "):
            self.states = json.loads(line.removeprefix("# inputs "))
            self.inputs = {input_variable(*own).name: place for place, own in enumerate(self.states.items())}
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
            owner = self.inputs[rest[0]]
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

    def data(self) -> dict[str, Any]:
        if not self.outputs:
            raise FormatError("the circuit has no line 'outputs ...'")
        kind, children, owner, entry, number = map(list, zip(*self.rows, strict=True))
        return {
            "kind": kind,
            "start": [0, *accumulate(map(len, children))],
            "children": list(chain.from_iterable(children)),
            "owner": owner,
            "entry": entry,
            "number": number,
            "blocks": list(range(len(kind) + 1)),
            "outputs": self.outputs,
            "tables": list(self.tables),
            "inputs": [{"name": name, "states": states} for name, states in self.states.items()],
        }


def _integer(word: str) -> int:
    """A number that an array can hold."""
    number = int(word)
    if abs(number) >= 2**63:
        raise ValueError(f"{word} is too large")
    return number


def input_variable(name: Any, states: Any) -> Variable:
    """A checked variable; one without states is a plain number."""
    if not isinstance(states, list):
        raise ValueError(f"the states of {name!r} must be a list")
    return variable(name, states) if states else Variable(variable(name, 1).name, ())


def brief(what: object) -> str:
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


def check(circuit: Nodes) -> None:
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
    """Whether the bounds of consecutive parts, each of at least so many, go from 0 to `count`."""
    # compared first: differences of damaged bounds could overflow, and their sums would be allocated
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

"""The BIF format, as the bnlearn repository has it (the Interchange Format 0.15).

Read: comments (`//` and `/* */`), properties, names in quotation marks, blocks in any order, a flat `table` (the
node's own states varying slowest), a row per parent state, `default` for the rows not given. Written: a row per parent
state, and names as the format has them (letters, digits, `_`, `-`, `.`); another name becomes a similar one, and a
property that other programs ignore keeps it (see `extension.py`).

BIF cannot hold testing CPTs and numbers to be learned: these are errors. Factored CPTs are written out, and come back
as tables; `learn` and `tie` are not kept.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.text import large, plural
from tacit.io.parsing.content import decoded
from tacit.io.parsing.draft import Declared, Defined, Draft, build
from tacit.io.parsing.extension import Spelled, spell, spell_network, table_rows
from tacit.io.parsing.scanner import Position, Scanner, show
from tacit.model.elements.variable import Label
from tacit.query.network import Network

MAX_BY_DEFAULT = 2**22
NO_NAME = "unknown"  # what other programs call a network without a name
_KEYWORDS = {"network", "variable", "probability", "property", "type", "discrete", "default", "table"}
_NAME = re.compile(r"([A-Za-z_]|[0-9]+[A-DF-Za-df-z_])[A-Za-z0-9_.-]*")  # 1e5 would be a number
_INTEGER = re.compile(r"-?[0-9]+")

_Key = tuple[Label, ...] | str  # a row by its parents' states, "table" or "default"


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    return build(_BifReader(decoded(data), source).draft())


class _Row(NamedTuple):
    place: Position
    numbers: list[float]


@dataclass
class _Probability:
    """A probability block, with the numbers as written."""

    name: str
    place: Position
    parents: list[str]
    rows: dict[_Key, _Row] = field(default_factory=dict)


class _BifReader:
    def __init__(self, text: str, source: str) -> None:
        self.scanner = Scanner(text, source, signs="{}()[];|")
        self.result = Draft(source)
        self.blocks: dict[str, _Probability] = {}
        self.by_default = 0  # entries of tables that `default` stands for, in the whole file

    def draft(self) -> Draft:
        blocks = {"network": self._network, "variable": self._variable, "probability": self._probability}
        blocks[self.scanner.expect(*blocks)]()  # an empty file is no network
        while self.scanner.more():
            blocks[self.scanner.expect(*blocks)]()
        for block in self.blocks.values():
            self.result.define(block.name, self._definition(block))
        return self.result

    def _network(self) -> None:
        name = self.scanner.name()
        self.result.name = None if name == NO_NAME else name
        self.scanner.expect("{")
        while self.scanner.expect("property", "}") != "}":
            self._property(self.result.properties)

    def _property(self, properties: dict[str, str]) -> None:
        key, _, value = self.scanner.rest(";").strip(' \t\r\n"').partition("=")
        properties[key.strip()] = value.strip()

    def _variable(self) -> None:
        scanner, name = self.scanner, self.scanner.name()
        declared = Declared(scanner.place(), ())
        scanner.expect("{")
        while (token := scanner.expect("type", "property", "}")) != "}":
            if token == "property":
                self._property(declared.properties)
                continue
            scanner.expect("discrete")
            scanner.expect("[")
            count = scanner.name()
            scanner.expect("]")
            scanner.expect("{")
            place, declared.states = scanner.place(), scanner.names("}")
            scanner.expect(";")
            if (count.lstrip("0") or "0") != str(len(declared.states)):
                problem = f"{plural(len(declared.states), 'state')}, but {show(count)} are declared"
                raise scanner.error(f"{problem}; a label with spaces needs quotation marks", place)
        self.result.declare(name, declared)

    def _probability(self) -> None:
        scanner = self.scanner
        scanner.expect("(")
        name = scanner.name()
        if name in self.blocks:
            raise scanner.error(f"node {show(name)} has two probability blocks")
        self.result.check_nodes(scanner.place(), len(self.blocks) + 1)
        self.blocks[name] = block = _Probability(name, scanner.place(), scanner.names(")", "|"))
        if scanner.token == "|":
            block.parents += scanner.names(")")
        scanner.expect("{")
        while (token := scanner.expect("(", "table", "default", "property", "}")) != "}":
            if token == "property":
                self._property({})
                continue
            place = scanner.place()
            key: _Key = tuple(scanner.names(")")) if token == "(" else token
            if key in block.rows:
                raise self._error(block, key, place, "is given twice")
            block.rows[key] = _Row(place, scanner.numbers())
            scanner.expect(";", instead="a number or ';'")

    def _definition(self, block: _Probability) -> Defined:
        shape = self.result.shape(block.place, block.name, block.parents)
        table = block.rows.get("table")
        if table is None:
            return self._from_rows(block, shape)
        if len(block.rows) > 1:
            raise self.result.error(block.place, f"node {show(block.name)} has both a table and rows")
        numbers = np.array(table.numbers)
        if numbers.size == math.prod(shape):  # own states vary slowest in the file; `build` reports another size
            numbers = np.moveaxis(numbers.reshape(shape[-1], *shape[:-1]), 0, -1).ravel()
        return Defined(table.place, block.parents, numbers)

    def _from_rows(self, block: _Probability, shape: tuple[int, ...]) -> Defined:
        """The rows in order, the last parent's states varying fastest; `default` stands for those not given."""
        states = [self.result.variables[parent].states for parent in block.parents]
        label_sets = list(map(set, states))
        default = block.rows.pop("default", None)
        for key, row in block.rows.items():
            if len(key) != len(states) or not all(label in of for label, of in zip(key, label_sets, strict=True)):
                raise self._error(block, key, row.place, f"is not a state of the parents {block.parents}")
            self._check_count(block, key, row, shape[-1])
        if default is not None:
            self._check_count(block, "default", default, shape[-1])
            self.by_default += math.prod(shape)
            if self.by_default > MAX_BY_DEFAULT:  # a short file must not fill the memory
                problem = f"makes {large(self.by_default)} entries in all (limit {MAX_BY_DEFAULT:,})"
                raise self._error(block, "default", default.place, problem)
        elif len(block.rows) < math.prod(shape[:-1]):
            missing = next(key for key in itertools.product(*states) if key not in block.rows)
            raise self._error(block, missing, block.place, "is missing")
        rows = [entry for key in itertools.product(*states) if (entry := block.rows.get(key, default))]  # all of them
        return Defined(block.place, block.parents, np.ravel([row.numbers for row in rows]), [row.place for row in rows])

    def _check_count(self, block: _Probability, key: _Key, row: _Row, own: int) -> None:
        if len(row.numbers) != own:
            raise self._error(block, key, row.place, f"has {plural(len(row.numbers), 'number')}, expected {own:,}")

    def _error(self, block: _Probability, key: _Key, place: Position, problem: str) -> FormatError:
        row = key if isinstance(key, str) else f"row ({', '.join(map(str, key))})"
        return self.result.error(place, f"node {show(block.name)}: {row} {problem}")


def compose(net: Network) -> str:
    """A network as a BIF document."""
    nodes = spell(net, _is_name, lambda word: _is_name(word) or bool(_INTEGER.fullmatch(word)), plain="BIF")
    name, properties = spell_network(net, lambda name: name != NO_NAME and _is_name(name))
    head = f"network {name or NO_NAME} {{\n{_properties(properties)}}}\n"
    states = {node.name: node.states for node in nodes}
    return "".join([head, *map(_variable, nodes), *(_probability(node, states) for node in nodes)])


def _is_name(word: str) -> bool:
    return bool(_NAME.fullmatch(word)) and word not in _KEYWORDS


def _variable(node: Spelled) -> str:
    states = f"  type discrete [ {len(node.states)} ] {{ {', '.join(node.states)} }};\n"
    return f"variable {node.name} {{\n{states}{_properties(node.properties)}}}\n"


def _properties(properties: Mapping[str, str]) -> str:
    return "".join(f"  property {key} = {value};\n" for key, value in properties.items())


def _probability(node: Spelled, states: Mapping[str, Sequence[str]]) -> str:
    numbers = table_rows(node.table, ", ")
    if not node.parents:
        return f"probability ( {node.name} ) {{\n  table {numbers[0]};\n}}\n"
    keys = itertools.product(*(states[parent] for parent in node.parents))
    lines = [f"  ({', '.join(key)}) {row};\n" for key, row in zip(keys, numbers, strict=True)]
    return f"probability ( {node.name} | {', '.join(node.parents)} ) {{\n{''.join(lines)}}}\n"

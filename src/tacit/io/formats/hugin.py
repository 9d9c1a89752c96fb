"""The NET format of Hugin.

Read: comments (`%`, also `//` and `/* */`), attributes of any kind, nodes and potentials in any order, data with any
nesting of parentheses. Only discrete chance nodes with a table (`data`) are understood; continuous nodes, decisions,
utilities, classes and tables given by a model are errors. Written: node names as identifiers, states as strings.

All of a network is kept: what NET has no words for, in attributes that other programs ignore (see `extension.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tacit.io.parsing.content import decoded
from tacit.io.parsing.draft import Declared, Defined, Draft, build
from tacit.io.parsing.extension import Spelled, spell, spell_network
from tacit.io.parsing.scanner import Scanner, show
from tacit.query.network import Network

_KINDS = {"class", "discrete", "continuous", "decision", "utility", "function"}
_KEYWORDS = {"net", "node", "potential", "data", *_KINDS}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_STRING = re.compile(r"[ !#-\[\]-~]+")  # printable ASCII without quotation marks and backslashes


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    return build(_NetReader(decoded(data), source).draft())


class _NetReader:
    def __init__(self, text: str, source: str) -> None:
        self.scanner = Scanner(text, source, signs="{}()=;|", percent=True)
        self.result = Draft(source)

    def draft(self) -> Draft:
        self._block()  # an empty file is no network
        while self.scanner.more():
            self._block()
        return self.result

    def _block(self) -> None:
        kind = self.scanner.expect("net", "node", "potential", *_KINDS, instead="'net', 'node' or 'potential'")
        if kind == "discrete":
            kind = self.scanner.expect("node")
        match kind:
            case "net":
                for key in self.scanner.attributes():
                    self.result.properties[key] = self._value()
                self.result.name = self.result.properties.get("name")
            case "node":
                self._node()
            case "potential":
                self._potential()
            case _:
                raise self.scanner.error(f"{kind!r}: only networks of discrete chance nodes are read")

    def _node(self) -> None:
        name = self.scanner.name()
        declared = Declared(self.scanner.place(), ())
        for key in self.scanner.attributes():
            if key == "states":
                self.scanner.expect("=")
                self.scanner.expect("(")
                declared.states = self.scanner.names(")")
                self.scanner.expect(";")
            else:
                declared.properties[key] = self._value()
        self.result.declare(name, declared)

    def _value(self) -> str:
        self.scanner.expect("=")
        return " ".join(token.strip('"') for token in self.scanner.until(";"))

    def _potential(self) -> None:
        scanner = self.scanner
        scanner.expect("(")
        place, nodes = scanner.place(), scanner.names(")", "|")
        parents = scanner.names(")") if scanner.token == "|" else []
        if len(nodes) != 1:
            raise scanner.error(f"a potential of {len(nodes)} nodes, expected one before the '|'", place)
        defined = None
        for key in scanner.attributes():
            if key == "data":
                scanner.expect("=")
                defined = Defined(place, parents, *scanner.nested_numbers())
            else:
                self._value()
        if defined is None:
            raise scanner.error(f"node {show(nodes[0])} has no data; tables given by a model are not read", place)
        self.result.define(nodes[0], defined)


def compose(net: Network) -> str:
    """A network as a NET document."""
    nodes = spell(net, lambda word: bool(_NAME.fullmatch(word)) and word not in _KEYWORDS, _is_string)
    name, properties = spell_network(net, _is_string)
    head = f"net\n{{\n{_lines({'name': name} | properties if name else properties)}}}\n"
    return "\n".join([head, *map(_node, nodes), *map(_potential, nodes)])


def _is_string(word: str) -> bool:
    return bool(_STRING.fullmatch(word))


def _node(node: Spelled) -> str:
    states = " ".join(f'"{state}"' for state in node.states)
    return f"node {node.name}\n{{\n    states = ({states});\n{_lines(node.properties)}}}\n"


def _lines(attributes: Mapping[str, str]) -> str:
    return "".join(f'    {key} = "{value}";\n' for key, value in attributes.items())


def _potential(node: Spelled) -> str:
    head = f"{node.name} | {' '.join(node.parents)}" if node.parents else node.name
    return f"potential ({head})\n{{\n    data = {_nested(node.table.tolist())};\n}}\n"


def _nested(table: list[Any]) -> str:
    if isinstance(table[0], float):
        return f"({' '.join(map(repr, table))})"
    return "(" + "\n            ".join(map(_nested, table)) + ")"

"""The XMLBIF format (XML-based interchange format 0.3), for `.xmlbif`, `.bifxml` and `.xml`.

Read: any encoding that the XML declaration names, comments, properties, a document type (see `elements.py`). In a table
the node's own states vary fastest, then those of the last `GIVEN`. Only chance variables (`nature`) are understood.

All of a network is kept: what XMLBIF has no words for, in properties that other programs ignore (see `extension.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

import numpy as np

from tacit.io.parsing.draft import Declared, Defined, Draft, build
from tacit.io.parsing.elements import Elements
from tacit.io.parsing.extension import spell, spell_network, table_rows
from tacit.io.parsing.scanner import Position, floats, show
from tacit.query.network import Network

_BLOCKS = ("VARIABLE", "DEFINITION", "PROBABILITY")  # PROBABILITY was the word of version 0.2


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    reader = _XmlbifReader(source)
    reader.read(data)
    if "NETWORK" not in reader.places:
        raise reader.error("there is no element NETWORK", Position(1, 1))
    return build(reader.result)


class _XmlbifReader(Elements):
    """Gathers the texts inside a VARIABLE or DEFINITION, and reads them when it ends."""

    def __init__(self, source: str) -> None:
        super().__init__(source)
        self.result = Draft(source)
        self.around: list[str] = []  # the open elements, outermost first; `text` is that of the innermost
        self.parts: dict[str, list[str]] = {}  # the texts inside a VARIABLE or DEFINITION, by element
        self.places: dict[str, Position] = {}  # where each kind of element began last

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "NETWORK" and tag in self.places:
            raise self.error("a second NETWORK; expected one")
        if tag == "VARIABLE" and attributes.get("TYPE", "nature") != "nature":
            raise self.error(f"a variable of type {show(attributes['TYPE'])}; expected 'nature'")
        if tag in _BLOCKS:
            self.parts = {}
        self.text.clear()
        self.places[tag] = self.here()
        self.around.append(tag)

    def end(self, tag: str) -> None:
        self.around.pop()
        outer = self.around[-1] if self.around else ""
        text = "".join(self.text).strip()
        if outer in _BLOCKS:
            self.parts.setdefault(tag, []).append(text)
        elif outer == "NETWORK" and tag == "NAME":
            self.result.name = text
        elif outer == "NETWORK" and tag == "PROPERTY":
            self.result.properties |= _parse_properties([text])
        elif tag == "VARIABLE":
            self._variable()
        elif tag in _BLOCKS:
            self._definition(self.places[tag])

    def _variable(self) -> None:
        place = self.places["VARIABLE"]
        states = self.parts.get("OUTCOME", []) or self.parts.get("VALUE", [])  # VALUE was the word of 0.2
        properties = _parse_properties(self.parts.get("PROPERTY", []))
        self.result.declare(self._one("NAME", place), Declared(place, states, properties))

    def _definition(self, place: Position) -> None:
        name, table = self._one("FOR", place), self._one("TABLE", place)
        try:
            numbers = np.array(floats(table))
        except ValueError as error:
            raise self.result.error(self.places["TABLE"], f"node {show(name)}: {show(error)} is not a number") from None
        self.result.define(name, Defined(self.places["TABLE"], self.parts.get("GIVEN", []), numbers))

    def _one(self, tag: str, place: Position) -> str:
        """The text of the only element of its kind."""
        texts = self.parts.get(tag, [])
        if len(texts) != 1:
            raise self.result.error(place, f"{len(texts)} elements {tag}, expected one")
        return texts[0]


def _parse_properties(texts: Iterable[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    return {key.strip(): value.strip() for key, _, value in pairs}


def compose(net: Network) -> str:
    """A network as an XMLBIF document."""
    nodes = spell(net, _fits, _fits)
    name, properties = spell_network(net, _fits)
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<BIF VERSION="0.3">', "<NETWORK>"]
    lines += [_element("NAME", name), *_properties(properties)]
    for node in nodes:
        lines += ['<VARIABLE TYPE="nature">', _element("NAME", node.name)]
        lines += [*(_element("OUTCOME", state) for state in node.states), *_properties(node.properties), "</VARIABLE>"]
    for node in nodes:
        lines += ["<DEFINITION>", _element("FOR", node.name), *(_element("GIVEN", name) for name in node.parents)]
        lines += [_element("TABLE", "\n".join(table_rows(node.table))), "</DEFINITION>"]
    return "\n".join([*lines, "</NETWORK>", "</BIF>", ""])


def _fits(word: str) -> bool:
    return word != "" and word.isprintable() and word == word.strip()


def _element(tag: str, content: str) -> str:
    return f"<{tag}>{escape(content, quote=False)}</{tag}>"


def _properties(properties: Mapping[str, str]) -> list[str]:
    return [_element("PROPERTY", f"{key} = {value}") for key, value in properties.items()]

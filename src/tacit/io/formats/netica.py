"""The DNE format of Netica (also `.dnet`): read, not written.

Read: comments, attributes and blocks of any kind, nested in any way; nodes with `probs`, or deterministic ones with a
`functable` of state names and numbers (`#0` is the first state). States are named by `states`, counted by `numstates`,
or the values in `levels`; `levels` of a continuous node, where its states have no names, are the edges of an interval
variable. Constants, which label drawings, are skipped. Decisions, utilities,
continuous nodes without levels, and equations that Netica has not made a table of, are errors.

Findings that are stored with a node are not part of the network, and skipped. A node is called by its identifier, not
by its `title`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.floats import Floats
from tacit.base.text import large, plural
from tacit.io.parsing.content import decoded
from tacit.io.parsing.draft import Declared, Defined, Draft, build
from tacit.io.parsing.scanner import Position, Scanner, is_integer, show
from tacit.model.elements.intervals import Edges, checked_edges, interval_names
from tacit.model.elements.variable import Label
from tacit.model.rules import MAX_DENSE
from tacit.query.network import Network

MAX_STATES = 2**16  # that a node may have without naming them
_WORDS = ("kind", "discrete", "numstates")  # the attributes of one word that are read
_LISTS = ("states", "levels", "parents", "functable")  # and those of several


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    return build(_DneReader(decoded(data), source).draft())


def compose(net: Network) -> str:
    """An error: only Netica could tell whether it accepts what we would write."""
    raise FormatError("Netica's .dne is read, not written; write .net, .xmlbif, .bif or .json")


@dataclass
class _Node:
    """What the file says of a node; `table_place` is where its probs or its functable are."""

    name: str
    place: Position
    words: dict[str, str] = field(default_factory=dict)
    lists: dict[str, list[str]] = field(default_factory=dict)
    probs: tuple[Floats, list[Position]] | None = None
    table_place: Position | None = None

    @property
    def discrete(self) -> bool:
        return self.words.get("discrete", "TRUE").upper() == "TRUE"


class _DneReader:
    def __init__(self, text: str, source: str) -> None:
        self.scanner = Scanner(text, source, signs="{}()=;", escapes=True)
        self.result = Draft(source)
        self.constants: set[str] = set()
        self.written_out = 0  # entries of functables

    def draft(self) -> Draft:
        self.scanner.expect("bnet")
        self.result.name = self.scanner.name()
        for key in self.scanner.attributes(separators=";"):
            if key.lower() == "node":
                self._node()
            else:
                self._skip()
        while self.scanner.more():
            self.scanner.expect(";", instead="the end of the file")
        for name, defined in self.result.definitions.items():
            for parent in self.constants.intersection(defined.parents):
                problem = f"node {show(name)} has the constant {show(parent)} as a parent; only chance nodes are read"
                raise self.result.error(defined.place, problem)
        return self.result

    def _skip(self) -> None:
        """Skip the rest of an attribute or an inner block, up to its ';' or '}'."""
        opened = 0
        while True:
            self.scanner.plain_words()
            match self.scanner.take():
                case "{" | "(":
                    opened += 1
                case "}" | ")" as sign:
                    opened -= 1
                    if opened < 0:
                        raise self.scanner.error(f"unexpected {sign!r}, expected ';'")
                    if not opened and sign == "}":
                        return
                case ";" if not opened:
                    return

    def _node(self) -> None:
        node = _Node(self.scanner.name(), self.scanner.place())
        for attribute in self.scanner.attributes(separators=";"):
            key = attribute.lower()
            if key not in (*_WORDS, *_LISTS, "probs"):
                self._skip()
                continue
            self.scanner.expect("=")
            if key in ("probs", "functable"):
                node.table_place = self.scanner.place()
            if key in _WORDS:
                node.words[key] = self.scanner.name()
                self.scanner.expect(";")
            elif key in _LISTS:
                node.lists[key] = self._words()
            else:
                node.probs = self.scanner.nested_numbers()
        self._add(node)

    def _words(self) -> list[str]:
        """The words of a list that may be nested, up to its ';'."""
        words, opened = [], 0
        for token in self.scanner.until(";"):
            if token in ("(", ")"):
                opened += 1 if token == "(" else -1
                if opened < 0:
                    raise self.scanner.error("')' without its '('")
            elif token in self.scanner.signs:
                raise self.scanner.error(f"unexpected {show(token)}, expected a word, '(', ')' or ';'")
            else:
                words.append(token.strip('"'))
        if opened:
            raise self.scanner.error("'(' without its ')'")
        return words

    def _add(self, node: _Node) -> None:
        """Add a node to the draft; a constant is no part of the network."""
        kind = node.words.get("kind", "NATURE").upper()
        if kind == "CONSTANT":
            self.constants.add(node.name)
            return
        if kind != "NATURE":
            raise self._error(node, f"is of kind {show(kind)}; only chance nodes (NATURE) are read")
        if not node.discrete and "levels" not in node.lists:
            raise self._error(node, "is continuous; only nodes with states or levels are read")
        bins = self._bins(node)
        states = self._states(node) if bins is None else interval_names(bins)
        self.result.declare(node.name, Declared(node.place, states, bins=bins))
        if node.table_place is not None:
            numbers, rows = node.probs or (self._written_out(node, states), [])
            self.result.define(node.name, Defined(node.table_place, node.lists.get("parents", []), numbers, rows))

    def _bins(self, node: _Node) -> Edges | None:
        """The edges of a continuous node whose states have no names."""
        if node.discrete or "states" in node.lists:
            return None
        try:
            return checked_edges([float(level) for level in node.lists["levels"]])  # "INFINITY" is a float, too
        except ValueError as error:
            raise self._error(node, f"has levels that are not edges of intervals: {error}") from None

    def _states(self, node: _Node) -> Sequence[Label]:
        if "states" in node.lists:
            return node.lists["states"]
        if "levels" in node.lists:
            return node.lists["levels"]
        count = node.words.get("numstates", "0")
        if not (is_integer(count, digits=9) and int(count) <= MAX_STATES):
            raise self._error(node, f"has {show(count)} states; a number up to {MAX_STATES:,} is read")
        numbers = 0 if node.probs is None else len(node.probs[0])
        if "functable" not in node.lists and numbers < int(count):  # a count alone must not make us allocate
            raise self._error(node, f"has {plural(int(count), 'state')}, but probs of {plural(numbers, 'number')}")
        return range(int(count))

    def _written_out(self, node: _Node, states: Sequence[Label]) -> Floats:
        """The table of a deterministic node: one row per state that its functable lists, `#0` for the first."""
        place = node.table_place or node.place
        self.written_out += len(node.lists["functable"]) * len(states)
        if self.written_out > MAX_DENSE:
            problem = f"tables of functables would have {large(self.written_out)} entries (limit {MAX_DENSE:,})"
            raise self.result.error(place, problem)
        codes = {} if isinstance(states, range) else {label: code for code, label in enumerate(states)}
        chosen = []
        for word in node.lists["functable"]:
            numbered = word.startswith("#") and is_integer(word[1:], digits=9)
            code = codes.get(word, int(word[1:]) if numbered else -1)
            if not 0 <= code < len(states):
                problem = f"node {show(node.name)}: {show(word)} in functable is not a state of it"
                raise self.result.error(place, problem)
            chosen.append(code)
        rows = np.zeros((len(chosen), len(states)))
        rows[np.arange(len(rows)), chosen] = 1.0
        return rows.ravel()

    def _error(self, node: _Node, problem: str) -> FormatError:
        return self.result.error(node.table_place or node.place, f"node {show(node.name)} {problem}")

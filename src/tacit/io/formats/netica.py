"""The DNE format of Netica (also `.dnet`): read, not written.

Read: comments, attributes and blocks of any kind, nested in any way; nodes with `probs`, or deterministic ones with a
`functable` of state names and numbers (`#0` is the first state). States are named by `states`, counted by `numstates`,
or the intervals (or values) between `levels`. Constants, which label drawings, are skipped. Decisions, utilities,
continuous nodes without levels, and equations that Netica has not made a table of, are errors.

Findings that are stored with a node are not part of the network, and skipped. A node is called by its identifier, not
by its `title`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.floats import Floats
from tacit.base.text import large, plural
from tacit.io.parsing.content import decoded
from tacit.io.parsing.draft import Declared, Defined, Draft, build
from tacit.io.parsing.scanner import Position, Scanner, show
from tacit.model.rules import MAX_DENSE
from tacit.model.variable import Label
from tacit.query.network import Network

MAX_STATES = 2**16  # that a node may have without naming them


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    return build(_DneReader(decoded(data), source).draft())


def compose(net: Network) -> str:
    """An error: only Netica could tell whether it accepts what we would write."""
    raise FormatError("Netica's .dne is read, not written; write .net, .xmlbif, .bif or .json")


@dataclass
class _Node:
    """What the file says of a node; None where it says nothing."""

    place: Position
    words: dict[str, str] = field(default_factory=dict)  # attributes of one word: kind, discrete, numstates
    lists: dict[str, list[str]] = field(default_factory=dict)  # of several: states, levels, parents
    probs: tuple[Floats, list[Position]] | None = None
    functable: list[str] | None = None
    table_place: Position | None = None


class _DneReader:
    def __init__(self, text: str, source: str) -> None:
        self.scanner = Scanner(text, source, signs="{}()=;", escapes=True)
        self.result = Draft(source)
        self.constants: set[str] = set()
        self.written_out = 0  # entries of functables

    def draft(self) -> Draft:
        self.scanner.expect("bnet")
        self.result.name = self.scanner.name()
        for key in self._attributes():
            if key == "node":
                self._node()
            else:
                self._skip()
        while self.scanner.more():
            self.scanner.expect(";", instead="the end of the file")
        self._check_parents()
        return self.result

    def _attributes(self) -> Iterator[str]:
        """The names of a block's attributes and inner blocks; what follows each must be read before the next."""
        self.scanner.expect("{")
        while (token := self.scanner.take()) != "}":
            if token == ";":
                continue
            if token in self.scanner.signs:
                raise self.scanner.error(f"unexpected {show(token)}, expected an attribute or '}}'")
            yield token.lower()

    def _skip(self) -> None:
        """The rest of an attribute or an inner block, up to its ';' or '}'."""
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
        name = self.scanner.name()
        node = _Node(self.scanner.place())
        for key in self._attributes():
            if key in ("kind", "discrete", "numstates"):
                self.scanner.expect("=")
                node.words[key] = self.scanner.name()
                self.scanner.expect(";")
            elif key in ("states", "levels", "parents"):
                self.scanner.expect("=")
                node.lists[key] = self._words()
            elif key in ("probs", "functable"):
                self.scanner.expect("=")
                node.table_place = self.scanner.place()
                if key == "probs":
                    node.probs = self.scanner.nested_numbers()
                else:
                    node.functable = self._words()
            else:
                self._skip()
        if self._is_chance(name, node):
            self._add(name, node)

    def _words(self) -> list[str]:
        """The words of a list that may be nested, up to its ';'."""
        words, opened = self.scanner.plain_words(), 0
        while (token := self.scanner.take()) != ";":
            if token == "(":
                opened += 1
            elif token == ")":
                opened -= 1
                if opened < 0:
                    raise self.scanner.error("')' without its '('")
            elif token in self.scanner.signs:
                raise self.scanner.error(f"unexpected {show(token)}, expected a word, '(', ')' or ';'")
            else:
                words.append(token.strip('"'))
            words += self.scanner.plain_words()
        if opened:
            raise self.scanner.error("'(' without its ')'")
        return words

    def _is_chance(self, name: str, node: _Node) -> bool:
        """Whether a node belongs into a network: constants do not; an error if it cannot be read."""
        kind = node.words.get("kind", "NATURE").upper()
        if kind == "CONSTANT":
            self.constants.add(name)
            return False
        if kind != "NATURE":
            raise self._error(node, f"node {show(name)} is of kind {show(kind)}; only chance nodes (NATURE) are read")
        if node.words.get("discrete", "TRUE").upper() != "TRUE" and "levels" not in node.lists:
            raise self._error(node, f"node {show(name)} is continuous; only nodes with states or levels are read")
        return True

    def _add(self, name: str, node: _Node) -> None:
        states = self._states(name, node)
        self.result.declare(name, Declared(node.place, states))
        if node.probs is not None or node.functable is not None:
            numbers, rows = node.probs or (self._written_out(name, node, states), [])
            assert node.table_place is not None  # of one of them
            self.result.define(name, Defined(node.table_place, node.lists.get("parents", []), numbers, rows))

    def _states(self, name: str, node: _Node) -> Sequence[Label]:
        if "states" in node.lists:
            return node.lists["states"]
        if "levels" in node.lists:
            levels = node.lists["levels"]
            if node.words.get("discrete", "TRUE").upper() == "TRUE":
                return levels
            return [f"{low} to {high}" for low, high in itertools.pairwise(levels)]
        count = node.words.get("numstates", "0")
        if not (count.isascii() and count.isdigit() and len(count) < 10 and int(count) <= MAX_STATES):
            raise self._error(
                node, f"node {show(name)} has {show(count)} states; a number up to {MAX_STATES:,} is read"
            )
        given = 0 if node.probs is None else len(node.probs[0])
        if node.functable is None and given < int(count):  # a count alone must not make us allocate
            counted, numbers = plural(int(count), "state"), plural(given, "number")
            raise self._error(node, f"node {show(name)} has {counted}, but probs of {numbers}")
        return range(int(count))

    def _written_out(self, name: str, node: _Node, states: Sequence[Label]) -> Floats:
        """The table of a deterministic node: one row per state that its functable lists."""
        assert node.functable is not None
        self.written_out += len(node.functable) * len(states)
        if self.written_out > MAX_DENSE:
            entries = large(self.written_out)
            raise self._error(node, f"tables of functables would have {entries} entries (limit {MAX_DENSE:,})")
        codes = {} if isinstance(states, range) else {label: code for code, label in enumerate(states)}
        places = [codes.get(word, _number(word)) for word in node.functable]
        for word, place in zip(node.functable, places, strict=True):
            if not 0 <= place < len(states):
                raise self._error(node, f"node {show(name)}: {show(word)} in functable is not a state of it")
        rows = np.zeros((len(places), len(states)))
        rows[np.arange(len(rows)), places] = 1.0
        return rows.ravel()

    def _check_parents(self) -> None:
        if self.constants:
            for name, defined in self.result.definitions.items():
                for parent in self.constants.intersection(defined.parents):
                    problem = (
                        f"node {show(name)} has the constant {show(parent)} as a parent; only chance nodes are read"
                    )
                    raise self.result.error(defined.place, problem)

    def _error(self, node: _Node, problem: str) -> FormatError:
        return self.result.error(node.table_place or node.place, problem)


def _number(word: str) -> int:
    """The place of a state that is given as such, `#0` for the first; -1 if it is not.

    >>> _number("#12"), _number("wet")
    (12, -1)
    """
    digits = word[1:]
    return int(digits) if word.startswith("#") and digits.isascii() and digits.isdigit() and len(digits) < 10 else -1

"""The UAI format of the inference competitions: networks (`BAYES`) and evidence.

A network is numbers only: cardinalities, and for each node the numbers of its parents, then its own, and its table
(own states vary fastest, then those of the last parent). Variables read from such a file are called x0, x1, ..., and
their states are the integers from 0. A file that tacit wrote ends in a comment with names and labels, where programs
that know no comments have stopped reading.

UAI cannot hold testing CPTs and numbers to be learned: these are errors. Factored CPTs are written out, and come back
as tables; `learn` and `tie` are not kept.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from types import NoneType
from typing import NamedTuple

import numpy as np

from tacit.errors import EvidenceError, FormatError, TacitError
from tacit.evidence import EvidenceLike
from tacit.evidence import read as checked
from tacit.io.content import decoded, read_bytes, write_text
from tacit.io.draft import MAX_PARENTS, Declared, Defined, Draft, build
from tacit.io.extension import encode, plain_table, table_rows
from tacit.io.json import parse_json
from tacit.io.scanner import Place, fault, floats, show
from tacit.labels import MISSING
from tacit.network import Network
from tacit.plain import Reader
from tacit.variable import Label, variable
from tacit.words import large, plural

_COMMENT = re.compile(r"#[^\n]*")
_BLANK = re.compile(r"[^\S\n ]")
MAX_NUMBER = 10**18  # of a variable or state
MAX_CELLS = 2**24  # of evidence: every variable observed has one in every row
_OURS = re.compile(r"^# tacit (.*)$", re.MULTILINE)


class _Called(NamedTuple):
    """A variable in our comment; elsewhere a file only has the number."""

    number: int
    name: str
    states: list[Label]


class _Comment(NamedTuple):
    """Our comment: the network's name, as a property, and its variables in order."""

    properties: dict[str, str]
    variables: list[_Called]


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    return build(_draft(_Words(decoded(data), source)))


def read_evidence(path: str | os.PathLike[str]) -> dict[str, list[Label | None]]:
    """Read a UAI evidence file: for each variable observed, its state in every row, or None.

    Both layouts are read: the number of rows, then each row on its line; or one row alone. A row is the number of
    variables observed, then number and state of each.

    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.evid"
    >>> _ = path.write_text("2\\n1 0 1\\n2 0 0 3 1\\n")
    >>> read_evidence(path)
    {'x0': [1, 0], 'x3': [None, 1]}
    """
    words = _Words(decoded(read_bytes(path)), os.fspath(path))
    called = {item.number: item for item in words.comment().variables}
    observed = _rows(words)
    count = len({number for row in observed for number in row})
    if count * len(observed) > MAX_CELLS:
        problem = f"{plural(len(observed), 'row')} on {plural(count, 'variable')}"
        raise words.error(f"{problem} make {large(count * len(observed))} cells (limit {MAX_CELLS:,})", 0)
    columns: dict[str, list[Label | None]] = {}
    for i, row in enumerate(observed):
        for number, state in row.items():
            item = called.get(number)
            if item is not None and state >= len(item.states):
                has = plural(len(item.states), "state")
                raise words.error(f"row {i}: {show(item.name)} has no state {state}; it has {has}", 0)
            name = f"x{number}" if item is None else item.name
            if name not in columns:
                columns[name] = [None] * len(observed)
            columns[name][i] = state if item is None else item.states[state]
    return columns


def write_evidence(net: Network, evidence: EvidenceLike, path: str | os.PathLike[str]) -> None:
    """Write hard evidence on a network's variables, by their numbers in its UAI file, atomically.

    One row is written alone, more after their number, as `read_evidence` describes.

    >>> import tempfile, pathlib, tacit
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "rows.evid"
    >>> write_evidence(tacit.examples.abc(), {"A": ["true", None], "C": ["hi", "lo"]}, path)
    >>> read_evidence(path)
    {'A': ['true', None], 'C': ['hi', 'lo']}
    """
    known = checked(evidence, [net.variable(name) for name in net])
    observed: list[list[str]] = [[] for _ in range(known.rows)]
    numbers = _numbers(net)
    for name, column in known.columns.items():
        if column.codes is None:
            raise EvidenceError(f"evidence on {name!r} is soft; UAI evidence files hold states only")
        for row, code in zip(observed, np.broadcast_to(column.codes, known.rows).tolist(), strict=True):
            if code != MISSING:
                row.append(f"{numbers[name]} {code}")
    count = [str(known.rows)] if known.rows > 1 else []
    lines = [*count, *(" ".join([str(len(row)), *row]) for row in observed), _comment(net), ""]
    write_text("\n".join(lines), path)


# reading ------------------------------------------------------------------------------------------------------


class _Words:
    """The words of a file outside comments, read one after the other."""

    def __init__(self, text: str, source: str) -> None:
        self.text, self.source, self.at = text, source, 0
        bare = _COMMENT.sub(lambda comment: " " * len(comment[0]), text)  # of the same length, to keep the places
        self._bare = bare = _BLANK.sub(" ", bare)
        # where words begin and end, as arrays: the words themselves would take 100 bytes each
        letters = np.frombuffer(bare.encode("ascii", "replace"), np.uint8)  # one for each character
        inside = np.concatenate([[False], (letters != ord(" ")) & (letters != ord("\n")), [False]])
        self._starts = np.flatnonzero(inside[1:] & ~inside[:-1])
        self._ends = np.flatnonzero(inside[:-1] & ~inside[1:])
        self._line_ends = np.flatnonzero(letters == ord("\n"))
        self._lines = np.searchsorted(self._line_ends, self._starts)  # of the words

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, at: int) -> str:
        return self._bare[self._starts[at] : self._ends[at]]

    def line_lengths(self) -> list[int]:
        """How many words each line has, empty lines left out."""
        words = np.bincount(self._lines)
        return [count for count in words.tolist() if count]

    def place(self, at: int) -> Place:
        """The place of a word by its number."""
        if at >= len(self):
            return self._place(len(self.text), len(self._line_ends))
        return self._place(int(self._starts[at]), int(self._lines[at]))

    def _place(self, start: int, line: int) -> Place:
        """The place of a character, by how many come before it, and how many lines."""
        return Place(line + 1, start - int(self._line_ends[line - 1] if line else -1))

    def error(self, problem: str, at: int | None = None) -> FormatError:
        """An error at a word: the last one read, if left out."""
        return fault(self.source, self.place(self.at - 1 if at is None else at), problem)

    def take(self) -> str:
        if self.at >= len(self):
            raise self.error("the file ends too early", self.at)
        self.at += 1
        return self[self.at - 1]

    def integer(self, what: str, limit: int, least: int = 0) -> int:
        """The next word, an integer of this range (`limit` excluded)."""
        number = _integer(self.take())
        if number is None or not least <= number < limit:
            raise self.error(f"{show(self[self.at - 1])} is not {what}")
        return number

    def integers(self, count: int, what: str, limit: int, least: int = 0) -> list[int]:
        """The next `count` words, integers of this range."""
        if 0 < count <= len(self) - self.at:
            words = self._text(count).split()
            if all(map(_is_integer, words)):
                numbers = list(map(int, words))
                if min(numbers) >= least and max(numbers) < limit:
                    self.at += count
                    return numbers
        return [self.integer(what, limit, least) for _ in range(count)]  # one of which is wrong

    def _text(self, count: int) -> str:
        """The next `count` words, at least one, and what is between them."""
        return self._bare[self._starts[self.at] : self._ends[self.at + count - 1]]

    def floats(self, count: int) -> list[float]:
        """The next `count` words, numbers all."""
        if count > len(self) - self.at:
            raise self.error("the file ends too early", len(self))
        try:
            found = floats(self._text(count)) if count else []
        except ValueError as error:
            wrong = next(at for at in range(self.at, self.at + count) if self[at] == str(error))
            raise self.error(f"{show(error)} is not a number", wrong) from None
        self.at += count
        return found

    def comment(self) -> _Comment:
        """What our comment says; nothing, if there is none."""
        match = _OURS.search(self.text)
        if match is None:
            return _Comment({}, [])
        try:
            said = Reader(parse_json(match[1]), "comment")
            items = [Reader(item, f"variables[{i}]") for i, item in enumerate(said.get("variables", list))]
            called = [
                _Called(item.get("number", int), item.get("name", str), item.get("states", list)) for item in items
            ]
            for item in called:
                if not 0 <= item.number < MAX_NUMBER:
                    raise FormatError(f"{show(item.number)} is not the number of a variable")
                if item.states:
                    variable(item.name, item.states)
            return _Comment({"tacit_name": encode(said.get("name", str, NoneType))}, called)
        except TacitError as error:
            place = self._place(match.start(), self.text.count("\n", 0, match.start()))
            raise fault(self.source, place, f"the comment '# tacit': {error}") from None


class _RowPlaces:
    """Where the rows of a table begin: found when asked for, since only errors tell."""

    def __init__(self, words: _Words, starts: range) -> None:
        self.words, self.starts = words, starts

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> Place:
        return self.words.place(self.starts[row])


def _integer(word: str) -> int | None:
    """A word as an integer >= 0; None if it is none."""
    return int(word) if _is_integer(word) else None


def _is_integer(word: str) -> bool:
    """Whether a word is an integer >= 0, and of no absurd length."""
    return word.isascii() and word.isdigit() and len(word) < 20


def _draft(words: _Words) -> Draft:
    if words.take() != "BAYES":
        raise words.error(f"{show(words[0])} is not 'BAYES'; only Bayesian networks are read")
    most = len(words)  # whatever a count counts is in the file
    count = words.integer("the number of variables in the file", most)
    draft = Draft(words.source)
    draft.check_nodes(words.place(words.at - 1), count)
    first = words.at
    cards = words.integers(count, "the number of a variable's states", most, least=1)
    if words.integer("the number of CPTs in the file", most) != count:
        raise words.error(f"{words[words.at - 1]} CPTs, expected {count}: one per variable")
    scopes = [_scope(words, count) for _ in range(count)]
    for scope in scopes:
        draft.define(f"x{scope[-1]}", _defined(words, scope, [cards[number] for number in scope]))
    if words.at < most:
        raise words.error(f"unexpected {show(words.take())} after the last table")
    _declare(draft, words, cards, first)
    return draft


def _scope(words: _Words, count: int) -> list[int]:
    """The numbers of a node's parents, then its own."""
    size = words.integer("the number of variables of a CPT", count + 1, least=1)
    if size > 1 + MAX_PARENTS:
        raise words.error(f"a CPT with {size - 1:,} parents; at most {MAX_PARENTS} are read")
    return words.integers(size, f"a variable; expected a number below {count}", count)


def _declare(draft: Draft, words: _Words, cards: list[int], first: int) -> None:
    """Declare the variables, whose cardinalities begin at a word; in the order of our comment, if there is one."""
    draft.properties, called = words.comment()
    names = {item.number: {"tacit_name": item.name, "tacit_states": item.states} for item in called}
    names = names or {number: {} for number in range(len(cards))}
    if sorted(names) != list(range(len(cards))):
        raise words.error("the comment '# tacit' names other variables than the file has", 0)
    for number, said in names.items():
        draft.declare(f"x{number}", Declared(words.place(first + number), range(cards[number]), decoded=said))


def _defined(words: _Words, scope: list[int], cards: list[int]) -> Defined:
    entries, found = math.prod(cards), words.take()
    if _integer(found) != entries:
        raise words.error(f"{show(found)} is not the size of x{scope[-1]}'s table, {large(entries)}")
    start = words.at
    numbers = np.array(words.floats(entries))
    rows = _RowPlaces(words, range(start, start + entries, cards[-1]))
    return Defined(words.place(start - 1), [f"x{number}" for number in scope[:-1]], numbers, rows)


def _rows(words: _Words) -> list[dict[int, int]]:
    """The rows of an evidence file, as states by the numbers of the variables."""
    numbers = words.integers(len(words), "a number of a variable or state", MAX_NUMBER)
    if not numbers:
        raise words.error("the file is empty; expected evidence", 0)
    found = _split(numbers, words.line_lengths())
    if found is None:
        raise words.error(
            "the counts do not fit the numbers that follow; expected rows of count, variable, state, ...", 0
        )
    rows = [dict(zip(row[1::2], row[2::2], strict=True)) for row in found]
    for i, (row, given) in enumerate(zip(rows, found, strict=True)):
        if len(row) < given[0]:
            raise words.error(f"row {i} observes a variable twice", 0)
    return rows


def _split(numbers: list[int], lengths: list[int]) -> list[list[int]] | None:
    """The numbers of an evidence file as rows, each with its count; None if they do not add up.

    "2 0 1 3 1" may be two observations, or two rows of which the first is empty: the lines decide.
    """
    if lengths[0] == 1 and numbers[0] == len(lengths) - 1 > 0:
        starts = list(itertools.accumulate(lengths))
        rows = [numbers[start:stop] for start, stop in itertools.pairwise(starts)]
        if all(len(row) == 1 + 2 * row[0] for row in rows):
            return rows
    if len(numbers) == 1 + 2 * numbers[0]:
        return [numbers]
    rows, at = [], 1
    while at < len(numbers):
        rows.append(numbers[at : at + 1 + 2 * numbers[at]])
        at += 1 + 2 * numbers[at]
    return rows if at == len(numbers) and len(rows) == numbers[0] else None


# writing ------------------------------------------------------------------------------------------------------


def compose(net: Network) -> str:
    """A network as a UAI document."""
    numbers = _numbers(net)
    order = sorted(net, key=numbers.__getitem__)
    scopes = [[numbers[name] for name in (*net.parents(name), name)] for name in order]
    lines = [
        "BAYES",
        str(len(order)),
        " ".join(str(len(net.states(name))) for name in order),
        str(len(order)),
        *(" ".join(map(str, [len(scope), *scope])) for scope in scopes),
    ]
    for name in order:
        table = plain_table(net, name, "UAI")
        lines += ["", str(table.size), *(" " + " ".join(map(repr, row)) for row in table_rows(table))]
    return "\n".join([*lines, "", _comment(net), ""])


def _numbers(net: Network) -> dict[str, int]:
    """The number of each variable in a file: that of its name if all are called x0, x1, ..., else its position."""
    plain = {f"x{i}": i for i in range(len(net))}
    return plain if plain.keys() == set(net) else {name: i for i, name in enumerate(net)}


def _comment(net: Network) -> str:
    numbers = _numbers(net)
    called = [_Called(numbers[name], name, list(net.states(name)))._asdict() for name in net]
    return "# tacit " + json.dumps({"name": net.name, "variables": called})

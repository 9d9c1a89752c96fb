"""Words, signs and numbers of a text, with their places: what the readers of BIF, NET and DNE share."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.floats import Floats

_NUMBERS = re.compile(r"[-+.0-9][-+.0-9eE,\s]*+")
_WORD = re.compile(r"[^\s,]+")
_NOT_NUMBERS = re.compile(r"[^-+.0-9eE\s]")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MAX_SHOWN, MAX_PROBLEM = 40, 1000  # characters: a message must not grow with the file
_BRACKETS = re.compile(r"[\s,]*+[()](?:[\s,]*+[()])*+")
LONG_TEXT = 2**20  # characters; of longer texts only some words are strings at one time
_SOME_WORDS = re.compile(r"\s*+(?:\S++\s*+){1,65536}+")


class Position(NamedTuple):
    """Where in a file, counted from 1."""

    line: int
    column: int


def fault(source: str, place: Position, problem: str) -> FormatError:
    """An error that names the file and the place."""
    if len(problem) > MAX_PROBLEM:
        problem = problem[:MAX_PROBLEM] + "..."
    return FormatError(f"{source}: line {place.line}, column {place.column}: {problem}")


def show(word: object) -> str:
    """A word of a file in a message."""
    text = str(word)
    return repr(text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 3] + "...")


def is_integer(word: str, digits: int = 19) -> bool:
    """Whether a word is an integer >= 0 of no more than so many digits."""
    return word.isascii() and word.isdigit() and len(word) <= digits


def floats(text: str) -> list[float]:
    """Numbers between white space; a `ValueError` holds the first word that is none.

    >>> floats("0.5 .25 25e-2")
    [0.5, 0.25, 0.25]
    """
    try:
        if not _NOT_NUMBERS.search(text):  # float() also takes "nan", "1_000" and digits of other scripts
            if len(text) < LONG_TEXT:
                return list(map(float, text.split()))
            return [number for some in _SOME_WORDS.finditer(text) for number in map(float, some[0].split())]
    except ValueError:
        pass
    raise ValueError(next(word[0] for word in re.finditer(r"\S+", text) if not _NUMBER.fullmatch(word[0])))


class Scanner:
    """Reads a text from left to right.

    A token is a sign (a character of `signs`), a string in quotation marks, which it keeps, or a word: anything
    else up to white space, a comma, a sign or a comment. Commas separate, like white space. Comments are `//` to
    the end of the line, `/* */`, and `%` to the end of the line if `percent` is set. If `escapes` is set, a backslash
    in a string takes the next character with it, be it a quotation mark.
    """

    def __init__(self, text: str, source: str, signs: str, percent: bool = False, escapes: bool = False) -> None:
        self.text, self.source, self.signs = text, source, signs
        self._at = 0  # the end of what was read
        self._start, self.token = 0, ""  # where the last token starts, and what it is
        self._counted, self._line, self._line_start = 0, 1, 0  # how far lines were counted
        line, mark = ("//|%", "%") if percent else ("//", "")
        # possessive: otherwise n blanks before a fault could be split in 2^n ways
        gap = rf"(?:[\s,]++|(?:{line})[^\n]*+|/\*.*?\*/)*+"
        string = r'"(?:[^"\\]|\\.)*+"' if escapes else r'"[^"]*+"'
        letter = rf'[^\s,"/{mark}{re.escape(signs)}]'
        token = rf"[{re.escape(signs)}]|{string}|(?:{letter}|/(?![/*]))++"
        self._plain = re.compile(rf"(?:[\s,]*+{letter}++(?=[\s,{re.escape(signs)}]|\Z))*+")
        self._gap = re.compile(gap, re.DOTALL)
        self._gap_and_token = re.compile(f"{gap}({token})", re.DOTALL)

    def place(self) -> Position:
        """The place of the last token. Asked for from left to right, all places together cost one pass."""
        if self._start < self._counted:
            self._counted, self._line, self._line_start = 0, 1, 0
        lines = self.text.count("\n", self._counted, self._start)
        if lines:
            self._line += lines
            self._line_start = self.text.rindex("\n", self._counted, self._start) + 1
        self._counted = self._start
        return Position(self._line, self._start - self._line_start + 1)

    def error(self, problem: str, place: Position | None = None) -> FormatError:
        """An error at a place: that of the last token, if left out."""
        return fault(self.source, place or self.place(), problem)

    def more(self) -> bool:
        """Whether anything but white space and comments is left."""
        self._skip()
        return self._at < len(self.text)

    def take(self) -> str:
        """The next token."""
        match = self._gap_and_token.match(self.text, self._at)
        if match is None:
            self._skip()
            if self._at >= len(self.text):
                raise self.error("the file ends too early")
            what = "quotation mark" if self.text[self._at] == '"' else "comment"
            raise self.error(f"a {what} that does not end")
        self._start, self._at = match.span(1)
        self.token = match[1]
        return self.token

    def expect(self, *signs: str, instead: str = "") -> str:
        """The next token, which must be one of these; `instead` tells in other words what was expected."""
        token = self.take()
        if token not in signs:
            raise self.error(f"unexpected {show(token)}, expected {instead or ' or '.join(map(repr, signs))}")
        return token

    def name(self) -> str:
        """The next token, a word or a string, without its quotation marks."""
        return self._named(self.take())

    def _named(self, token: str) -> str:
        if token in self.signs:
            raise self.error(f"unexpected {show(token)}, expected a name")
        return token[1:-1] if token[0] == '"' else token

    def names(self, *ends: str) -> list[str]:
        """The names up to one of these signs, which is read, too."""
        names = self.plain_words()
        while (token := self.take()) not in ends:
            names.append(self._named(token))
            names += self.plain_words()
        return names

    def until(self, end: str) -> Iterator[str]:
        """The tokens up to a sign, which is read, too."""
        yield from self.plain_words()
        while (token := self.take()) != end:
            yield token
            yield from self.plain_words()

    def attributes(self, separators: str = "") -> Iterator[str]:
        """The names of a block's attributes; what follows each must be read before the next."""
        self.expect("{")
        while (token := self.take()) != "}":
            if token in separators:
                continue
            if token in self.signs:
                raise self.error(f"unexpected {show(token)}, expected an attribute or '}}'")
            yield token

    def plain_words(self) -> list[str]:
        """All words up to the next sign, quotation mark or comment, at once; none, if that is next."""
        plain = self._plain.match(self.text, self._at)
        assert plain is not None  # it may be empty
        self._at = plain.end()
        return plain[0].replace(",", " ").split()

    def numbers(self) -> list[float]:
        """The numbers up to the next thing that is none, which is left to be read."""
        numbers: list[float] = []
        self._skip()
        while match := _NUMBERS.match(self.text, self._at):
            try:
                numbers += floats(match[0].replace(",", " "))
            except ValueError as error:
                self._start += next(w.start() for w in _WORD.finditer(match[0]) if w[0] == str(error))
                raise self.error(f"{show(error)} is not a number") from None
            self._at = match.end()
            self._skip()
        return numbers

    def nested_numbers(self) -> tuple[Floats, list[Position]]:
        """The numbers in parentheses, nested in any way, up to a ';'; and the place of each innermost list."""
        depth = 0
        numbers: list[float] = []
        places: list[Position] = []
        while (token := self.expect("(", ")", ";", instead="a number, '(', ')' or ';'")) != ";":
            if run := _BRACKETS.match(self.text, self._at):
                token += run[0]
                self._start, self._at = run.end() - 1, run.end()
            for sign in token:
                if sign == "(":
                    depth += 1
                elif sign == ")":
                    depth -= 1
                    if depth < 0:
                        raise self.error("')' without its '('")
            place = self.place()
            if row := self.numbers():
                numbers += row
                places.append(place)
        if depth:
            raise self.error("'(' without its ')'")
        return np.array(numbers), places

    def rest(self, end: str) -> str:
        """The text up to a character, which is read but left out."""
        stop = self.text.find(end, self._at)
        if stop < 0:
            raise self.error(f"the file ends before a {end!r}")
        text = self.text[self._at : stop]
        self._at = stop + 1
        return text

    def _skip(self) -> None:
        gap = self._gap.match(self.text, self._at)
        assert gap is not None  # it may be empty
        self._start = self._at = gap.end()

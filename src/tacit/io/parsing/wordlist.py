"""The words of formats that are numbers, white space and comments (UAI, Ergo), with their places."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.floats import Floats
from tacit.base.text import large
from tacit.io.parsing.content import check_nodes
from tacit.io.parsing.draft import Defined
from tacit.io.parsing.scanner import Position, fault, floats, is_integer, show

_BLANK = re.compile(r"[^\S\n ]")


class Words:
    """The words of a file, read one after the other. What the pattern `comment` matches is none of them."""

    def __init__(self, text: str, source: str, comment: re.Pattern[str]) -> None:
        self.text, self.source, self.at = text, source, 0
        # blanks in place of comments keep the places of words
        bare = comment.sub(lambda match: "\n".join(" " * len(line) for line in match[0].split("\n")), text)
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

    def number_at(self, offset: int) -> int:
        """How many words begin before a place in the text, and so the number of the first one from there."""
        return int(np.searchsorted(self._starts, offset))

    def line_lengths(self) -> list[int]:
        """How many words each line has, empty lines left out."""
        counts: list[int] = np.unique(self._lines, return_counts=True)[1].tolist()
        return counts

    def place(self, at: int) -> Position:
        """The place of a word by its number."""
        if at >= len(self):
            return self.place_of(len(self.text), len(self._line_ends))
        return self.place_of(int(self._starts[at]), int(self._lines[at]))

    def place_of(self, start: int, line: int) -> Position:
        """The place of a character, by how many come before it, and how many lines."""
        return Position(line + 1, start - int(self._line_ends[line - 1] if line else -1))

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
        word = self.take()
        if not is_integer(word) or not least <= int(word) < limit:
            raise self.error(f"{show(word)} is not {what}")
        return int(word)

    def integers(self, count: int, what: str, limit: int, least: int = 0) -> list[int]:
        """The next `count` words, integers of this range."""
        if 0 < count <= len(self) - self.at:
            words = self._text(count).split()
            if all(map(is_integer, words)):
                numbers = list(map(int, words))
                if min(numbers) >= least and max(numbers) < limit:
                    self.at += count
                    return numbers
        return [self.integer(what, limit, least) for _ in range(count)]  # one of which is wrong

    def count(self, what: str) -> int:
        """The next word, how many of something the file has; an error where that is too many for one network."""
        count = self.integer(f"the number of {what} in the file", len(self))  # whatever is counted is in the file
        check_nodes(count, self.error)
        return count

    def cards(self) -> list[int]:
        """The next words: how many variables there are, and the number of states of each."""
        return self.integers(self.count("variables"), "the number of a variable's states", len(self), least=1)

    def table(self, cards: Sequence[int], of: str) -> tuple[int, Floats]:
        """The next words: the size of the table `of` something, and its numbers; also the number of the first."""
        entries, size = math.prod(cards), self.take()
        if not is_integer(size) or int(size) != entries:
            raise self.error(f"{show(size)} is not the size of {of}, {large(entries)}")
        return self.at, np.array(self.floats(entries))

    def defined(self, start: int, parents: Sequence[str], numbers: Floats, card: int) -> Defined:
        """A CPT whose numbers begin at a word, after their count; rows have `card` of them."""
        return Defined(self.place(start - 1), parents, numbers, lambda row: self.place(start + row * card))

    def end_tables(self, stop: int) -> None:
        """Refuse words before another one, in the place of which the tables must end."""
        if self.at < stop:
            raise self.error(f"unexpected {show(self.take())} after the last table")

    def _text(self, count: int) -> str:
        """The next `count` words, at least one, and what is between them."""
        return self._bare[self._starts[self.at] : self._ends[self.at + count - 1]]

    def floats(self, count: int) -> list[float]:
        """The next `count` words, all of them numbers."""
        if count > len(self) - self.at:
            raise self.error("the file ends too early", len(self))
        try:
            numbers = floats(self._text(count)) if count else []
        except ValueError as error:
            wrong = next(at for at in range(self.at, self.at + count) if self[at] == str(error))
            raise self.error(f"{show(error)} is not a number", wrong) from None
        self.at += count
        return numbers

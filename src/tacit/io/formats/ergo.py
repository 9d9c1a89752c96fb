"""The format of Ergo, `.erg`: read, not written.

Numbers, as in UAI files: cardinalities, the parents of each node, and its table (own states vary fastest, then those of
the last parent); then names and labels, in sections that begin with `/* Names */` and `/* Labels */`. Further sections
are skipped. Programs disagree whether parents are counted from 0 or from 1, and no file says so: whichever makes a
network of the file is taken, and a file with which both do is refused.
"""

from __future__ import annotations

import graphlib
import math
import re
from collections.abc import Sequence

import numpy as np

from tacit.base.errors import FormatError
from tacit.base.floats import Floats
from tacit.base.text import plural
from tacit.io.parsing.content import decoded
from tacit.io.parsing.draft import MAX_PARENTS, Declared, Draft, build
from tacit.io.parsing.scanner import Position, fault
from tacit.io.parsing.wordlist import Words
from tacit.model.elements.variable import Label
from tacit.query.network import Network

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_SECTION = re.compile(r"/\*\s*(\w+)\s*\*/")


def parse(data: bytes, source: str) -> Network:
    """The network in the content of a file; errors and warnings name the file, `source`."""
    text = decoded(data)
    if (start := text.rfind("/*")) > text.rfind("*/"):  # else the pattern would look for every end in vain
        place = Position(text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start))
        raise fault(source, place, "a comment that does not end")
    draft, words = Draft(source), Words(text, source, _COMMENT)
    first, cards = words.at + 1, words.cards()
    parents = [_parents(words, len(cards)) for _ in cards]
    tables = [_table(words, card) for card in cards]
    base = _base(words, cards, parents, [len(numbers) for _, numbers in tables])
    names, labels = _sections(words, cards)
    for i, (name, (start, numbers)) in enumerate(zip(names, tables, strict=True)):
        draft.declare(name, Declared(words.place(first + i), labels[i]))
        draft.define(name, words.defined(start, [names[parent - base] for parent in parents[i]], numbers, cards[i]))
    return build(draft)


def compose(net: Network) -> str:
    """An error: programs disagree on what such a file means."""
    raise FormatError("Ergo's .erg is read, not written; write .net, .xmlbif, .bif or .json")


def _parents(words: Words, count: int) -> list[int]:
    size = words.integer("the number of a node's parents", count)
    if size > MAX_PARENTS:
        raise words.error(f"a node with {size:,} parents; at most {MAX_PARENTS} are read")
    return words.integers(size, f"a variable; expected a number up to {count}", count + 1)


def _table(words: Words, card: int) -> tuple[int, Floats]:
    """The number of a table's first word, and its numbers."""
    size = words.integer("the number of entries of a table", len(words), least=1)
    if size % card:
        raise words.error(f"a table of {plural(size, 'number')} for a node with {plural(card, 'state')}")
    return words.at, np.array(words.floats(size))


def _base(words: Words, cards: Sequence[int], parents: Sequence[Sequence[int]], sizes: Sequence[int]) -> int:
    """The number of the first variable: 0 or 1."""
    if not any(parents):
        return 0
    lowest, highest = min(map(min, filter(None, parents))), max(map(max, filter(None, parents)))
    possible = [base for base in (0, 1) if base <= lowest and highest < len(cards) + base]
    if not possible:
        variables = plural(len(cards) + 1, "variable")
        raise words.error(f"parents have numbers from 0 to {len(cards)}, which are {variables}", 0)
    fitting = [base for base in possible if _fits(base, cards, parents, sizes)]
    if len(fitting) == 2:
        raise words.error("parents may be counted from 0 or from 1: the file makes a network with both", 0)
    return (fitting or possible)[0]  # `build` tells what is wrong


def _fits(base: int, cards: Sequence[int], parents: Sequence[Sequence[int]], sizes: Sequence[int]) -> bool:
    """Whether tables have their sizes, and no node is above itself, if variables are counted from `base`."""
    scopes = zip(cards, parents, sizes, strict=True)
    if any(card * math.prod(cards[parent - base] for parent in above) != size for card, above, size in scopes):
        return False
    try:
        graphlib.TopologicalSorter({i: [p - base for p in above] for i, above in enumerate(parents)}).prepare()
    except graphlib.CycleError:
        return False
    return True


def _sections(words: Words, cards: Sequence[int]) -> tuple[list[str], list[Sequence[Label]]]:
    """Names and labels, after all tables; x0, x1, ... and the integers from 0, if there are none."""
    names = [f"x{i}" for i in range(len(cards))]
    labels: list[Sequence[Label]] = [range(card) for card in cards]
    sections = list(_SECTION.finditer(words.text))
    starts = {match[1].lower(): match.end() for match in sections}
    ends = [*(match.start() for match in sections), len(words.text)]
    after = [start for what, start in starts.items() if what != "probabilities"]
    words.end_tables(words.number_at(min(after, default=len(words.text))))
    if "names" in starts:
        names = _section(words, starts["names"], ends, len(cards), "name")
    if "labels" in starts:
        flat = iter(_section(words, starts["labels"], ends, sum(cards), "label"))
        labels = [[next(flat) for _ in range(card)] for card in cards]
    return names, labels


def _section(words: Words, start: int, ends: Sequence[int], count: int, what: str) -> list[str]:
    """The words from a place in the text to the next section."""
    first, stop = words.number_at(start), words.number_at(next(end for end in ends if end >= start))
    if stop - first != count:
        raise words.error(f"{plural(stop - first, what)}, expected {count:,}", first)
    return [words[at] for at in range(first, stop)]

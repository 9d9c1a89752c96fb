"""Sparse tables: of a table over many variables only the entries that are not surely 0, as a relation of a database."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
States = NDArray[np.uint16]
Slots = NDArray[np.int32]
MAX_CODE = 2**62


@dataclass
class Relation:
    """Joint states of some variables, each with a number, and with its slot in each of some messages.

    Attributes
    ----------
    columns
        Of each variable, its state in every entry.
    values
        The number of every entry.
    places
        Of each end of an arc that is here, the slot of its message that belongs to every entry.
    """

    columns: dict[int, States]
    values: Floats
    places: dict[int, Slots] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    def take(self, entries: Ints | Bools) -> Relation:
        """Some of the entries."""
        columns = {v: column[entries] for v, column in self.columns.items()}
        return Relation(columns, self.values[entries], {end: place[entries] for end, place in self.places.items()})


def of_table(scope: Iterable[int], table: Floats) -> Relation:
    """The entries of a table that are not 0.

    >>> of_table([5, 3], np.array([[0.5, 0.0], [0.0, 0.2]])).columns
    {5: array([0, 1], dtype=uint16), 3: array([0, 1], dtype=uint16)}
    """
    entries = np.flatnonzero(table)
    states = np.unravel_index(entries, table.shape) if table.ndim else ()
    return Relation({v: s.astype(np.uint16) for v, s in zip(scope, states, strict=True)}, table.ravel()[entries])


def arc_consistent(relations: Iterable[Relation], cards: Sequence[int]) -> tuple[list[Relation], list[Bools]]:
    """The relations without the states that one of them excludes, and the states that are left of each variable."""
    relations, possible = list(relations), [np.ones(card, np.bool_) for card in cards]
    holders: list[list[int]] = [[] for _ in cards]
    for i, relation in enumerate(relations):
        for v in relation.columns:
            holders[v].append(i)
    waiting = dict.fromkeys(range(len(relations)))
    while waiting:
        i = next(iter(waiting))
        del waiting[i]
        kept = np.ones(len(relations[i]), np.bool_)
        for v, column in relations[i].columns.items():
            kept &= possible[v][column]
        if not kept.all():
            relations[i] = relations[i].take(kept)
        for v, column in relations[i].columns.items():
            left = np.zeros(cards[v], np.bool_)
            left[column] = True
            if left.sum() < possible[v].sum():
                possible[v] = left
                waiting |= dict.fromkeys(holders[v])
    return relations, possible


class Match:
    """The entries of two relations that agree in the variables they share. They are counted before they are made."""

    def __init__(self, a: Relation, b: Relation, cards: Sequence[int]) -> None:
        self.a, self.b = a, b
        shared = [v for v in a.columns if v in b.columns]
        both = [np.concatenate([a.columns[v], b.columns[v]]) for v in shared]
        code, size = _codes(both, [cards[v] for v in shared], len(a) + len(b))
        if size > 4 * len(code) + 64:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max(initial=0)) + 1
        key, self._key = code[: len(a)], code[len(a) :]
        counts = np.bincount(self._key, minlength=size)
        self._start = (np.cumsum(counts) - counts)[key]
        self._counts = counts[key]
        self.size = int(self._counts.sum())

    def join(self) -> Relation:
        """All pairs of entries that agree."""
        a, b = self.a, self.b
        left = np.repeat(np.arange(len(a)), self._counts)
        begin = np.cumsum(self._counts) - self._counts
        right = np.argsort(self._key, kind="stable")[
            np.arange(self.size) + np.repeat(self._start - begin, self._counts)
        ]
        columns = {v: column[left] for v, column in a.columns.items()}
        columns |= {v: column[right] for v, column in b.columns.items() if v not in columns}
        places = {end: place[left] for end, place in a.places.items()}
        places |= {end: place[right] for end, place in b.places.items()}
        return Relation(columns, a.values[left] * b.values[right], places)


def project(relation: Relation, onto: Sequence[int], cards: Sequence[int]) -> tuple[Relation, Slots]:
    """The joint states of some of the variables, each with the number 1; and which of them each entry has."""
    code, size = _codes([relation.columns[v] for v in onto], [cards[v] for v in onto], len(relation))
    if size <= 4 * len(relation) + 64:
        first = np.full(size, -1, np.int64)
        first[code] = np.arange(len(relation))
        there = first >= 0
        first, place = first[there], (np.cumsum(there) - 1)[code]
    else:
        _, first, place = np.unique(code, return_index=True, return_inverse=True)
    columns = {v: relation.columns[v][first] for v in onto}
    return Relation(columns, np.ones(len(first))), place.astype(np.int32)


def _codes(columns: Sequence[States], cards: Sequence[int], count: int) -> tuple[Ints, int]:
    """A number for the joint state in each of `count` entries, and what is above all of these numbers."""
    code, size = np.zeros(count, np.int64), 1
    for column, card in zip(columns, cards, strict=True):
        if size > MAX_CODE // card:
            code = np.unique(code, return_inverse=True)[1]
            size = int(code.max(initial=-1)) + 1
        code = code * card + column
        size *= card
    return code, size

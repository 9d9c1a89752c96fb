"""Elimination on decision diagrams: factors whose entries are numbers of a circuit, summed axis by axis."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.diagrams import diagram_kernels as k
from tacit.compiler.diagrams import fingerprints
from tacit.compiler.diagrams.fingerprints import Prints
from tacit.compiler.operations.arrangement import distinct
from tacit.compiler.operations.axes import Ids

STEPS_PER_NODE = 4  # results looked for, for each node that may be made: what is remembered is bounded
CELLS_PER_NODE = 8
MAX_REMEMBERED = 2**22  # results
MIN_COLLECTED = 2**15  # nodes up to which dropping unused ones is not worth it


class DiagramFactor(NamedTuple):
    """Numbers over some axes, which are known by their position."""

    numbers: Ids
    axes: tuple[int, ...]


@dataclass
class Alphabet:
    """The numbers that there are at the start: 0, 1, literals and symbols."""

    prints: list[int] = field(default_factory=lambda: [0, 1])
    values: list[float] = field(default_factory=lambda: [0.0, 1.0])
    kinds: list[int] = field(default_factory=lambda: [k.CONSTANT, k.CONSTANT])
    degrees: list[int] = field(default_factory=lambda: [0, 0])
    _known: dict[int, int] = field(default_factory=lambda: {0: 0, 1: 1})

    def __len__(self) -> int:
        return len(self.prints)

    def literals(self, table: Floats, prints: Prints) -> Ids:
        """The numbers of a table's entries; entries with equal fingerprints are one number."""
        different, first, place = np.unique(prints, return_index=True, return_inverse=True)
        values, numbers = table.ravel()[first].tolist(), np.empty(len(different), dtype=np.int64)
        for i, print_ in enumerate(different.tolist()):
            if print_ not in self._known:
                self._known[print_] = len(self)
                self._extend([print_], [values[i]], k.CONSTANT, 0)
            numbers[i] = self._known[print_]
        return numbers[place].reshape(table.shape)

    def whole(self, number: int) -> int:
        """A whole number."""
        return int(self.literals(np.array([float(number)]), np.array([number], dtype=np.uint64))[0])

    def symbols(self, count: int, degree: int) -> Ids:
        """New symbols, each with a random fingerprint and a random value between 1 and 2."""
        first = len(self)
        values = np.random.default_rng([18, first]).uniform(1.0, 2.0, count)
        self._extend(fingerprints.symbols(count, first).tolist(), values.tolist(), k.SYMBOL, degree)
        return np.arange(first, first + count)

    def _extend(self, prints: list[int], values: list[float], kind: int, degree: int) -> None:
        self.prints += prints
        self.values += values
        self.kinds += [kind] * len(prints)
        self.degrees += [degree] * len(prints)


class Boundary(NamedTuple):
    """Where a message was rescaled, or sums end and maxima begin: numbers, and the symbols that stand for them then."""

    numbers: Ids
    symbols: Ids
    rescaled: bool
    largest: bool  # whether the numbers are maxima


class Numbers(NamedTuple):
    """All numbers that were made: what each is, the two that it is made of, and its value at a point of the reals."""

    kind: NDArray[np.int8]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    degree: NDArray[np.int32]  # factors that depend on evidence, at most
    mantissa: Floats
    exponent: Ids


@dataclass(frozen=True, eq=False)
class Result:
    """All numbers, those of the result over the axes that were kept, and the boundaries on the way."""

    numbers: Numbers
    table: Ids
    boundaries: tuple[Boundary, ...]


class OutOfBudgetError(Exception):
    """More nodes than the attempt was allowed to make.

    Its arguments are the axis that was being eliminated (-1: none), the nodes and numbers so far, and which part of the
    axes had been eliminated.
    """


class _Message(NamedTuple):
    root: int
    levels: frozenset[int]
    size: int  # nodes
    ends: int
    degree: int


class DiagramElimination:
    """One attempt: an order of elimination, an order of levels (the topmost axis first), and a budget of nodes."""

    def __init__(
        self, alphabet: Alphabet, cards: Sequence[int], levels: Sequence[int], budget: int, most_factors: int
    ) -> None:
        self._levels, self._most_factors = {axis: i for i, axis in enumerate(levels)}, most_factors
        self._store = _store(alphabet, [cards[axis] for axis in levels], budget)
        self._messages: dict[int, _Message] = {}
        self._holders: list[set[int]] = [set() for _ in levels]  # the messages that depend on each level
        self._boundaries: list[Boundary] = []
        self._made = 0
        self._crowded = MIN_COLLECTED

    def run(
        self, factors: Sequence[DiagramFactor], order: Sequence[int], keep: Sequence[int], best: Collection[int] = ()
    ) -> Result:
        """Eliminate the axes in `order`, those in `best`, which come last, by a maximum; the result is over `keep`."""
        self._begin(factors)
        self._check(-1, 0.0)
        for done, axis in enumerate(order):
            if axis in best and not self._store.count[k.LARGEST]:
                self._begin_maxima(summed=done > 0)
            self._put(self._eliminated(self._levels[axis]))
            self._check(axis, done / len(order))
            self._collect()
        root = k.ONE
        for message in self._taken(set(self._messages)):
            root = int(k.apply(self._store, k.MULTIPLY, root, message.root, 0))
        self._check(-1, 1.0)
        return self._result(root, keep)

    def _check(self, axis: int, reached: float) -> None:
        if self._store.count[k.FULL]:
            raise OutOfBudgetError(axis, int(self._store.count[k.MADE]), int(self._store.count[k.NUMBERS]), reached)

    def _collect(self) -> None:
        """Drop nodes that no message uses, once they are most of all: tables that fit the caches are much faster."""
        if self._store.count[k.NODES] < self._crowded:
            return
        roots = np.array([message.root for message in self._messages.values()], dtype=np.int64)
        k.collect(self._store, roots)
        for i, root in zip(self._messages, roots.tolist(), strict=True):
            self._messages[i] = self._messages[i]._replace(root=root)
        self._crowded = max(MIN_COLLECTED, 3 * int(self._store.count[k.NODES]))

    def _begin(self, factors: Sequence[DiagramFactor]) -> None:
        """Make diagrams of all factors."""
        orders = [sorted(range(len(f.axes)), key=lambda i: self._levels[f.axes[i]]) for f in factors]
        levels = [[self._levels[f.axes[i]] for i in order] for f, order in zip(factors, orders, strict=True)]
        numbers = [f.numbers.transpose(order).ravel() for f, order in zip(factors, orders, strict=True)]
        roots = np.empty(len(factors), dtype=np.int64)
        ends, level_ends = (np.cumsum([len(part) for part in parts]) for parts in (numbers, levels))
        flat = np.array([level for own in levels for level in own], dtype=np.int64)
        k.tables(self._store, np.concatenate(numbers), ends, flat, level_ends, roots)
        for root in roots.tolist():
            if root != k.ONE:
                self._put(root)

    def _put(self, root: int) -> None:
        """Keep a message for the axes that it depends on."""
        message = self._messages[self._made] = self._look(root)
        for level in message.levels:
            self._holders[level].add(self._made)
        self._made += 1

    def _look(self, root: int) -> _Message:
        support = np.zeros(len(self._holders), dtype=np.bool_)
        size, ends = k.look(self._store, root, support, np.empty(0, dtype=np.int64))
        degree = int(self._store.degree[self._ends(root, ends)].max(initial=0)) if self._most_factors else 0
        return _Message(root, frozenset(np.flatnonzero(support).tolist()), size, ends, degree)

    def _ends(self, root: int, count: int) -> Ids:
        """The numbers at the ends of a diagram that has so many."""
        ends = np.empty(count, dtype=np.int64)
        k.look(self._store, root, np.zeros(len(self._holders), dtype=np.bool_), ends)
        return ends

    def _taken(self, ids: set[int]) -> list[_Message]:
        """Take messages out, smallest first; where they are many factors together, they are rescaled before."""
        taken = [self._messages.pop(i) for i in sorted(ids)]
        for i, message in zip(sorted(ids), taken, strict=True):
            for level in message.levels:
                self._holders[level].discard(i)
        if self._most_factors and sum(message.degree for message in taken) > self._most_factors:
            taken = [self._renamed(message, rescaled=True) if message.degree > 1 else message for message in taken]
        return sorted(taken, key=lambda message: message.size)

    def _eliminated(self, level: int) -> int:
        """The product of all messages that depend on an axis, summed over it."""
        taken = self._taken(set(self._holders[level]))
        if not taken:
            return k.ONE if self._store.count[k.LARGEST] else -1 - int(self._store.card_number[level])
        roots = [message.root for message in taken]
        while len(roots) > 2:
            roots[:2] = [int(k.apply(self._store, k.MULTIPLY, roots[0], roots[1], 0))]
        return int(k.apply(self._store, k.ELIMINATE, roots[0], roots[1] if len(roots) > 1 else k.ONE, level))

    def _begin_maxima(self, summed: bool) -> None:
        """From here on, the largest is taken in place of the sum. Sums that were made become symbols."""
        if summed:
            for i, message in self._messages.items():
                self._messages[i] = self._renamed(message, rescaled=False)
        self._store.count[k.LARGEST] = 1
        self._store.memory[:] = 0

    def _renamed(self, message: _Message, rescaled: bool) -> _Message:
        """A message with symbols in place of its numbers."""
        store, ends = self._store, self._ends(message.root, message.ends)
        numbers = distinct(ends[ends > 0])
        if not rescaled and (store.kind[numbers] < k.SUM).all():
            return message  # nothing was summed
        degree = 1 if rescaled else message.degree
        first = int(store.count[k.NUMBERS])
        values = np.random.default_rng([19, first]).uniform(1.0, 2.0, len(numbers))
        points = zip(fingerprints.symbols(len(numbers), first), values, strict=True)
        symbols = np.array([k.number(store, k.SYMBOL, (*point, 0), 0, 0, degree) for point in points], dtype=np.int64)
        if store.count[k.FULL]:
            return message
        self._boundaries.append(Boundary(numbers, symbols, rescaled, bool(store.count[k.LARGEST])))
        return message._replace(root=int(k.renamed(store, message.root, numbers, symbols)), degree=degree)

    def _result(self, root: int, keep: Sequence[int]) -> Result:
        levels = sorted(self._levels[axis] for axis in keep)
        cards = [int(self._store.card[level]) for level in levels]
        table = np.empty(cards, dtype=np.int64)
        k.write_table(self._store, root, np.array(levels, dtype=np.int64), table.ravel())
        table = table.transpose([levels.index(self._levels[axis]) for axis in keep])
        store, count = self._store, int(self._store.count[k.NUMBERS])
        numbers = Numbers(*(getattr(store, part)[:count].copy() for part in Numbers._fields))
        return Result(numbers, table, tuple(self._boundaries))


def _store(alphabet: Alphabet, cards: Sequence[int], budget: int) -> k.Store:
    """Room for the numbers of an alphabet, with those of cardinalities, and for a budget of nodes and numbers."""
    whole = {card: alphabet.whole(card) for card in sorted(set(cards))}
    first = len(alphabet)
    numbers, cells = first + budget, CELLS_PER_NODE * budget
    hashes = 1 << (2 * numbers).bit_length()
    remembered = max(k.MIN_SLOTS, min(MAX_REMEMBERED, 1 << budget.bit_length()))
    counts = np.zeros(k.COUNTERS, dtype=np.int64)
    counts[k.MOST_NUMBERS], counts[k.MOST_NODES] = numbers, budget
    counts[k.MOST_STEPS] = STEPS_PER_NODE * budget
    counts[k.CELLS], counts[k.UNIQUE] = k.FIRST_NODE, k.MIN_SLOTS
    store = k.Store(
        print=np.empty(numbers, dtype=np.uint64),
        mantissa=np.empty(numbers),
        exponent=np.empty(numbers, dtype=np.int64),
        kind=np.empty(numbers, dtype=np.int8),
        left=np.empty(numbers, dtype=np.int32),
        right=np.empty(numbers, dtype=np.int32),
        degree=np.empty(numbers, dtype=np.int32),
        known=np.full(hashes, k.EMPTY, dtype=np.int32),
        cells=np.empty(cells, dtype=np.int32),
        unique=np.empty(max(k.MIN_SLOTS, 4 << budget.bit_length()), dtype=np.int32),
        card=np.array(cards, dtype=np.int64),
        card_number=np.array([whole[card] for card in cards], dtype=np.int64),
        memory=np.zeros((remembered, 2), dtype=np.int64),  # no two diagrams are 0 and 0
        work=np.empty(4 * sum(cards) + 1024, dtype=np.int32),
        frames=np.empty((4 * len(cards) + 64, k.FRAME_COLUMNS), dtype=np.int64),
        stack=np.empty(budget, dtype=np.int32),
        count=counts,
    )
    mantissa, exponent = np.frexp(alphabet.values)
    store.print[:first] = np.array(alphabet.prints, dtype=np.uint64)
    store.mantissa[:first], store.exponent[:first] = 2 * mantissa, np.where(mantissa == 0, 0, exponent - 1)
    store.kind[:first], store.degree[:first] = alphabet.kinds, alphabet.degrees
    store.left[:first] = store.right[:first] = 0
    counts[k.NUMBERS] = first
    store.unique[: k.MIN_SLOTS] = k.EMPTY
    k.register(store, first)
    return store

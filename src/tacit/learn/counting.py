"""How often each entry of each table was at work in some rows: counted where all is observed, expected elsewhere.

The expected count of an entry is the entry times the derivative of log p*(evidence) by it, with the selection held
fixed. One sweep up and one down give those of all tables for many rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit import machine
from tacit.compiler.prune import relevant
from tacit.cpt import CPT
from tacit.engines.engine import Engine
from tacit.evidence import Column, blocks
from tacit.floats import Floats
from tacit.labels import BYTE
from tacit.learn.count_kernels import LANES, count_families
from tacit.learn.sources import Piece
from tacit.learn.units import Key, log_sum
from tacit.network import Network
from tacit.query import Query, compiled

BLOCK = 2**16  # rows that a thread counts at a time


@dataclass
class Counts:
    """Counts by node and part, and the log-likelihood of the rows."""

    tables: dict[Key, Floats] = field(default_factory=dict)
    log_likelihood: float = 0.0

    def add(self, key: Key, table: Floats) -> None:
        """Some more of one table."""
        self.tables[key] = self.tables[key] + table if key in self.tables else table


class Kept(Protocol):
    """Where rows are kept that are needed again: a list, or a spool."""

    def append(self, piece: Piece, /) -> None: ...

    def __iter__(self) -> Iterator[Piece]: ...


class Counter:
    """Counts rows with numbers that change from pass to pass, while the structure stays.

    A complete row counts the same in every pass, so it is looked at once; all others are kept. `start` are numbers to
    start from: what is 0 or 1 in these must stay so, since engines rely on it.
    """

    def __init__(self, start: Network, kept: Kept) -> None:
        self.structure, self.kept = start, kept
        self.rows = 0.0
        self._complete = Counts()
        self._pieces = 0  # that were kept
        self._certain: dict[str, int] = {}  # by their columns: in how many of them every row has a state
        self._seen: set[str] = set()  # the variables that some row says something about

    @property
    def holes(self) -> bool:
        """Whether some rows were not complete."""
        return self._pieces > 0

    def add(self, piece: Piece) -> None:
        """Some more rows."""
        with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
            self.rows += float(piece.weights.sum())
        self._seen.update(name for name, column in piece.columns.items() if not column.empty)
        complete = self._is_complete(piece)
        whole, rest = np.flatnonzero(complete), np.flatnonzero(~complete)
        if len(whole):
            self._count(piece if not len(rest) else piece.take(whole))
        if len(rest):
            self._keep(piece if not len(whole) else piece.take(rest))

    def _keep(self, piece: Piece) -> None:
        self.kept.append(piece)
        self._pieces += 1
        for name, column in piece.columns.items():
            self._certain[name] = self._certain.get(name, 0) + column.certain

    def counts(self, net: Network) -> Counts:
        """The counts of all rows, with the numbers of `net`."""
        found = Counts(dict(self._complete.tables))
        for (name, _), counts in found.tables.items():
            found.log_likelihood += log_sum(counts, net.table(name))
        if self.holes:
            engine, parameters = self._query.engine(), self._query.program.parameters
            engine.update({(node, part): net.cpt(node).parts()[part] for node, part in parameters}, {})
            for piece in self.kept:
                _expect(found, net, piece.only(self._seen), engine)
        return found

    @cached_property
    def _query(self) -> Query:
        """What is observed in every row is indexed, which is far cheaper, and possible in wider networks."""
        hard = [name for name, pieces in self._certain.items() if pieces == self._pieces]
        soft = [name for name in self._certain if name in self._seen and name not in hard]
        return compiled(Query, self.structure, None, soft, hard)

    def _is_complete(self, piece: Piece) -> NDArray[np.bool_]:
        """The rows in which every variable that takes part is observed, if its CPT is a plain table."""
        net = self.structure
        found = np.ones(piece.rows, dtype=np.bool_)
        for name in relevant(net, piece.columns):
            if name not in piece.columns or not isinstance(net.cpt(name), CPT):
                return np.zeros(piece.rows, dtype=np.bool_)
            found &= piece.columns[name].observed
        return found

    def _count(self, piece: Piece) -> None:
        names = relevant(self.structure, piece.columns)
        families = Families(self.structure, names)
        codes = [_codes(piece.columns[name], piece.rows) for name in names]
        weights = np.zeros(0) if (piece.weights == 1).all() else piece.weights
        for name, counts in zip(names, families.counts(codes, weights), strict=True):
            table = self.structure.table(name)
            if (counts[table == 0] > 0).any():
                raise piece.impossible(families.first_impossible(name, table, codes, piece.weights))
            self._complete.add((name, "table"), counts)


def _codes(column: Column, rows: int) -> NDArray[Any]:
    """The states of all rows, which are known, in a byte where they fit."""
    codes = column.states() if column.codes is None else column.codes
    small = codes.astype(np.int8 if column.variable.card <= BYTE else np.int64, copy=False)
    return np.broadcast_to(small, rows)


class Families:
    """The tables of some nodes, all of whose parents are among them, one after the other."""

    def __init__(self, net: Network, names: Sequence[str]) -> None:
        place = {name: i for i, name in enumerate(names)}
        self.members = [[place[n] for n in (*net.parents(name), name)] for name in names]
        self.shapes = [net.table(name).shape for name in names]
        self.place = place

    def counts(self, codes: Sequence[NDArray[Any]], weights: Floats) -> list[Floats]:
        """How much the rows weigh in which each entry of each table was at work; without weights, how many they are."""
        first = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        axes = (
            np.array([m for own in self.members for m in own]),
            np.array([size for shape in self.shapes for size in shape]),
            np.cumsum([len(own) for own in self.members]),
            first[:-1],
        )
        rows = len(codes[0])
        threads = min(machine.threads(), math.ceil(rows / BLOCK))
        found = np.zeros((threads, LANES, first[-1]))

        def count(thread: int) -> None:
            for start in range(thread * BLOCK, rows, threads * BLOCK):
                block = slice(start, min(start + BLOCK, rows))
                count_families(np.stack([own[block] for own in codes]), weights[block], *axes, found[thread])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count, range(threads)))
        total = found.sum(axis=(0, 1))
        return [total[a:b].reshape(shape) for a, b, shape in zip(first, first[1:], self.shapes, strict=False)]

    def first_impossible(self, name: str, table: Floats, codes: Sequence[NDArray[Any]], weights: Floats) -> int:
        """The first row that weighs something and whose entry of a table is 0."""
        entries = table[tuple(codes[m] for m in self.members[self.place[name]])]
        return int(((entries == 0) & (weights > 0)).argmax())


def _expect(found: Counts, net: Network, piece: Piece, engine: Engine) -> None:
    """Add what some rows let expect."""
    for place, block in blocks(piece.columns, piece.rows, engine.gradient_chunk):
        result, weights = engine.run(block.columns, block.rows), piece.weights[place]
        mantissa, counted = result.joint[0], weights > 0
        for row in np.flatnonzero((mantissa <= 0) & counted)[:1].tolist():
            raise piece.impossible(place.start + row)
        logs = np.log(mantissa, out=np.zeros(block.rows), where=counted) + result.exponent * np.log(2.0)
        found.log_likelihood += float((weights * logs).sum())
        seeds = np.divide(weights, mantissa, out=np.zeros(block.rows), where=counted)
        derivatives = engine.gradients(block.columns, block.rows, seeds, through_selection=False).tables
        for (node, part), derivative in derivatives.items():
            if part != "thresholds":
                found.add((node, part), net.cpt(node).parts()[part] * derivative)

"""How often each entry of each table was at work in some rows: counted where all is observed, expected elsewhere.

The expected count of an entry is the entry times the derivative of log p*(evidence) by it, with the selection held
fixed. One sweep up and one down give those of all tables for many rows. Rows may lie in several places (`partitions`).
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.compiler.program import Program
from tacit.compiler.prune import relevant
from tacit.engines import engine_for_many_passes
from tacit.engines.engine import Engine, Sweep
from tacit.evidence.column import Column, blocks
from tacit.evidence.labels import BYTE
from tacit.evidence.tables.messages import in_partition
from tacit.learn.checkpoint import fingerprint
from tacit.learn.estimating.sources import RowBatch, RowBuffer
from tacit.learn.estimating.tallies import count_for
from tacit.learn.estimating.tiles import LANES
from tacit.learn.estimating.units import Key, log_sum
from tacit.learn.partitions import Broadcast, Distributed
from tacit.model.cpt import CPT
from tacit.query.network import Network
from tacit.query.query import Query, compiled

BLOCK = 2**16  # rows that a thread counts at a time

# Without tests, all numbers are at most 1, and none makes another larger: what underflows changes the probability of a
# row by 2**-1074 at most, and 2**30 such losses by 2**-1044. Beside a probability of 2**-700, and a weight of 2**-40,
# that is nothing for counts that are not negligible. The design notes say more.
TRUSTED_FROM, LIGHT = -700, 2.0**-40
NEVER = 1  # no probability is 2**1
NEGLIGIBLE = 1e-70  # times all rows


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts by node and part, and the log-likelihood of the rows; an error about a row that cannot be, if any."""

    tables: Mapping[Key, Floats] = field(default_factory=dict)
    log_likelihood: float = 0.0
    impossible: EvidenceError | None = None

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        total = self.log_likelihood + other.log_likelihood
        return ExpectedCounts(_added(self.tables, other.tables), total, self.impossible or other.impossible)


def _added(first: Mapping[Key, Floats], second: Mapping[Key, Floats]) -> dict[Key, Floats]:
    """Tables summed where both have them."""
    return {**first, **{key: first[key] + table if key in first else table for key, table in second.items()}}


def add_each(first: Sequence[ExpectedCounts], second: Sequence[ExpectedCounts]) -> list[ExpectedCounts]:
    """Sums one by one."""
    return [a + b for a, b in zip(first, second, strict=True)]


@dataclass(frozen=True)
class Summary:
    """What rows came to in a first pass: those that are complete are counted, the others are kept in batches."""

    count: int = 0  # of rows
    rows: float = 0.0  # the sum of their weights
    complete: Mapping[Key, Floats] = field(default_factory=dict)
    seen: frozenset[str] = frozenset()  # the variables that some row says something about
    batches: int = 0  # that were kept
    certain: Mapping[str, int] = field(default_factory=dict)  # by column: in how many of them every row has a state
    digests: tuple[str, ...] = ()

    def __add__(self, other: Summary) -> Summary:
        with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
            rows = self.rows + other.rows
        certain = {
            name: self.certain.get(name, 0) + other.certain.get(name, 0) for name in {**self.certain, **other.certain}
        }
        return Summary(
            self.count + other.count,
            rows,
            _added(self.complete, other.complete),
            self.seen | other.seen,
            self.batches + other.batches,
            certain,
            self.digests + other.digests,
        )


@dataclass(frozen=True)
class ScannedRows:
    """Some rows after a first pass: a complete row counts the same in every pass, so only the others are kept."""

    summary: Summary
    buffer: RowBuffer


def summary_of(rows: ScannedRows, number: int | None) -> Summary:
    """The part of scanned rows that is summed."""
    return rows.summary


@dataclass(frozen=True)
class FirstPass:
    """Counts complete rows, and keeps the others; known 0s are 0 in `structure`, whose other numbers do not matter."""

    structure: Network
    digest: bool = False  # whether to tell rows from others

    def scan(
        self, batches: Iterable[RowBatch], buffer: RowBuffer, after: Callable[[int], None] | None = None
    ) -> ScannedRows:
        """Read all rows; `after` is told how many they were so far."""
        summary, digest = Summary(), hashlib.sha256()
        for batch in batches:
            summary += self._summary(batch, buffer, summary.count)
            if self.digest:
                digest.update(fingerprint(list(batch.columns), batch.arrays()).encode())
            if after is not None:
                after(summary.count)
        return ScannedRows(replace(summary, digests=(digest.hexdigest(),)) if self.digest else summary, buffer)

    def _summary(self, batch: RowBatch, buffer: RowBuffer, before: int) -> Summary:
        complete = self._is_complete(batch)
        whole, rest = np.flatnonzero(complete), np.flatnonzero(~complete)
        counted = self._counted(batch if not len(rest) else batch.take(whole), before) if len(whole) else {}
        certain = {}
        if len(rest):
            left = batch if not len(whole) else batch.take(rest)
            buffer.append(left)
            certain = {name: int(column.certain) for name, column in left.columns.items()}
        with np.errstate(over="ignore"):
            rows = float(batch.weights.sum())
        seen = frozenset(name for name, column in batch.columns.items() if not column.empty)
        return Summary(batch.rows, rows, counted, seen, int(len(rest) > 0), certain)

    def _is_complete(self, batch: RowBatch) -> NDArray[np.bool_]:
        """The rows in which every variable that takes part is observed, if its CPT is a plain table."""
        net = self.structure
        complete = np.ones(batch.rows, dtype=np.bool_)
        for name in relevant(net, batch.columns):
            if name not in batch.columns or not isinstance(net.cpt(name), CPT):
                return np.zeros(batch.rows, dtype=np.bool_)
            complete &= batch.columns[name].observed
        return complete

    def _counted(self, batch: RowBatch, before: int) -> dict[Key, Floats]:
        names = relevant(self.structure, batch.columns)
        families = Families(self.structure, names)
        codes = [_codes(batch.columns[name], batch.rows) for name in names]
        weights = np.zeros(0) if (batch.weights == 1).all() else batch.weights
        tables = {}
        for name, counts in zip(names, families.counts(codes, weights, before), strict=True):
            table = self.structure.table(name)
            if (counts[table == 0] > 0).any():
                raise batch.impossible(families.first_impossible(name, table, codes, batch.weights))
            tables[name, "table"] = counts
        return tables


class Counter:
    """Counts rows with numbers that change from pass to pass, while the structure stays.

    `structure` has numbers to start from: what is 0 or 1 in these must stay so, since engines rely on it.
    """

    def __init__(self, structure: Network, scanned: Distributed[ScannedRows]) -> None:
        self.structure, self.scanned = structure, scanned
        self.summary: Summary = scanned.sum(summary_of, operator.add)

    @property
    def rows(self) -> float:
        """How many rows there are, or the sum of their weights."""
        return self.summary.rows

    @property
    def holes(self) -> bool:
        """Whether some rows were not complete."""
        return self.summary.batches > 0

    @property
    def negligible(self) -> float:
        """What is no count, if it is all that a parent state has: it may be what underflow has left."""
        return NEGLIGIBLE * self.rows if self.holes else 0.0

    def counts(self, nets: Sequence[Network]) -> list[ExpectedCounts]:
        """The counts of all rows, with the numbers of each network."""
        complete = [self._complete(net) for net in nets]
        if not self.holes:
            return complete
        numbers = [self._numbers(net) for net in nets]
        totals = self.scanned.sum(Expectation(self._query, numbers, self.summary.seen), add_each)
        return [
            own + replace(counts, tables={key: tables[key] * table for key, table in counts.tables.items()})
            for own, tables, counts in zip(complete, numbers, totals, strict=True)
        ]

    def _complete(self, net: Network) -> ExpectedCounts:
        tables = self.summary.complete
        return ExpectedCounts(tables, sum(log_sum(counts, net.table(name)) for (name, _), counts in tables.items()))

    def _numbers(self, net: Network) -> dict[Key, Floats]:
        """The tables that the query reads."""
        return {(node, part): net.cpt(node).parts()[part] for node, part in self._query.get().program.parameters}

    @cached_property
    def _query(self) -> Broadcast[Query]:
        """What is observed in every row is indexed, which is far cheaper, and possible in wider networks."""
        certain, seen = self.summary.certain, self.summary.seen
        hard = [name for name, batches in certain.items() if batches == self.summary.batches]
        soft = [name for name in certain if name in seen and name not in hard]
        query = compiled(Query, self.structure, None, soft, hard)
        engine = engine_for_many_passes(query.program, self.summary.count)
        return self.scanned.broadcast(query.with_network(query.network, engine=engine))


@dataclass(frozen=True)
class Expectation:
    """The log-likelihood of the rows of a part that are not complete, and its derivatives by all tables.

    Times the entry, a derivative is an expected count. `numbers` are several sets of tables.
    """

    query: Broadcast[Query]
    numbers: Sequence[Mapping[Key, Floats]]
    seen: frozenset[str]

    def __call__(self, rows: ScannedRows, number: int | None) -> list[ExpectedCounts]:
        if not rows.summary.batches:
            return [ExpectedCounts() for _ in self.numbers]
        engine = self.query.get().engine().runner(rows.summary.count, Sweep.FORWARD, Sweep.HELD).clone()
        totals = []
        for tables in self.numbers:
            engine.update(tables, {})
            try:
                batches = (_expected(batch.only(self.seen), engine) for batch in rows.buffer)
                totals.append(reduce(operator.add, batches))
            except EvidenceError as error:  # whether that is the end, depends on the numbers
                placed = error if number is None else in_partition(error, number)
                totals.append(ExpectedCounts({}, -math.inf, placed))
        return totals


def _expected(batch: RowBatch, engine: Engine) -> ExpectedCounts:
    """The log-likelihood of a batch, and its derivatives by all tables."""
    total, least = ExpectedCounts(), _trusted_from(engine.program, batch.weights)
    for place, block in blocks(batch.columns, batch.rows, engine.gradient_chunk):
        result, imprecise = engine.run_trusting(block.columns, block.rows, least)
        weights = batch.weights[place]
        mantissa, counted = result.joint[0], weights > 0
        for row in np.flatnonzero((mantissa <= 0) & counted)[:1].tolist():
            raise batch.impossible(place.start + row)
        logs = np.log(mantissa, out=np.zeros(block.rows), where=counted) + result.exponent * np.log(2.0)
        seeds = np.divide(weights, mantissa, out=np.zeros(block.rows), where=counted)
        swept = engine.gradients(
            block.columns, block.rows, seeds, result.exponent, through_selection=False, imprecise=imprecise
        )
        tables = {key: derivative for key, derivative in swept.tables.items() if key[1] != "thresholds"}
        total += ExpectedCounts(tables, float((weights * logs).sum()))
    return total


def _trusted_from(program: Program, weights: Floats) -> int:
    """From which probability on, as a power of two, what underflows in a row leaves its counts as they are."""
    light = bool(((weights > 0) & (weights < LIGHT)).any())
    return NEVER if program.selects or program.structured or light else TRUSTED_FROM


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

    def counts(self, codes: Sequence[NDArray[Any]], weights: Floats, before: int = 0) -> list[Floats]:
        """How much the rows weigh in which each entry of each table was at work; without weights, how many they are.

        `before` says how many rows there were before these.
        """
        first = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        axes = (
            np.array([m for own in self.members for m in own]),
            np.array([size for shape in self.shapes for size in shape]),
            np.cumsum([len(own) for own in self.members]),
            first[:-1],
        )
        rows = len(codes[0])
        threads = min(machine.threads(), math.ceil(rows / BLOCK))
        tables, count_families = np.zeros((threads, LANES, first[-1])), count_for((before + rows) * len(self.shapes))

        def count(thread: int) -> None:
            for start in range(thread * BLOCK, rows, threads * BLOCK):
                block = slice(start, min(start + BLOCK, rows))
                count_families(np.stack([own[block] for own in codes]), weights[block], *axes, tables[thread])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count, range(threads)))
        total = tables.sum(axis=(0, 1))
        return [total[a:b].reshape(shape) for a, b, shape in zip(first, first[1:], self.shapes, strict=False)]

    def first_impossible(self, name: str, table: Floats, codes: Sequence[NDArray[Any]], weights: Floats) -> int:
        """The first row that weighs something and whose entry of a table is 0."""
        entries = table[tuple(codes[m] for m in self.members[self.place[name]])]
        return int(((entries == 0) & (weights > 0)).argmax())

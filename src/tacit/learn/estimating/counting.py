"""The counts of table entries in rows: of complete rows counted, of others expected (the E-step of EM).

The expected count of an entry is the entry times the derivative of log p*(evidence) by it, with the selection held
fixed. A forward and a backward pass give those of all tables for many rows. Rows may lie in several places
(`partitions`).
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.compiler.program import Program
from tacit.compiler.prune import relevant
from tacit.engines import engine_for_many_passes
from tacit.engines.engine import Engine, Sweep
from tacit.evidence.column import Column, blocks
from tacit.evidence.frames import MAX_INT8
from tacit.evidence.tables.messages import in_partition
from tacit.learn.checkpoint import fingerprint
from tacit.learn.estimating.families import Families
from tacit.learn.estimating.sources import RowBatch, RowBuffer
from tacit.learn.estimating.units import Key, log_sum
from tacit.learn.partitions import Broadcast, Distributed
from tacit.model.cpt import CPT, THRESHOLDS
from tacit.query.network import Network
from tacit.query.query import Query, compiled

K = TypeVar("K")
N = TypeVar("N", int, Floats)
Tables = Mapping[Key, Floats]

# Without tests, all numbers are at most 1, and none makes another larger: what underflows changes the probability of a
# row by 2**-1074 at most, and 2**30 such losses by 2**-1044. Beside a probability of 2**-700, and a weight of 2**-40,
# that is nothing for counts that are not negligible. The design notes say more.
MIN_TRUSTED_EXPONENT, MIN_TRUSTED_WEIGHT = -700, 2.0**-40
NEVER_TRUSTED = 1  # no probability is 2**1
NEGLIGIBLE = 1e-70  # times all rows


@dataclass(frozen=True)
class ExpectedCounts:
    """Counts by node and part, and the log-likelihood of the rows; an error about an impossible row, if any."""

    tables: Tables = field(default_factory=dict)
    log_likelihood: float = 0.0
    impossible: EvidenceError | None = None

    def __add__(self, other: ExpectedCounts) -> ExpectedCounts:
        total = self.log_likelihood + other.log_likelihood
        return ExpectedCounts(_added(self.tables, other.tables), total, self.impossible or other.impossible)


def _added(first: Mapping[K, N], second: Mapping[K, N]) -> dict[K, N]:
    """The values of two mappings, summed where both have them."""
    return {**first, **{key: first[key] + value if key in first else value for key, value in second.items()}}


def _add_each(first: Sequence[ExpectedCounts], second: Sequence[ExpectedCounts]) -> list[ExpectedCounts]:
    return [a + b for a, b in zip(first, second, strict=True)]


@dataclass(frozen=True)
class RowTotals:
    """The totals of rows after a first pass: complete rows are counted, the others are kept in batches."""

    count: int = 0  # of rows
    rows: float = 0.0  # the sum of their weights
    complete: Tables = field(default_factory=dict)
    seen: frozenset[str] = frozenset()  # the variables that some row has evidence on
    batches: int = 0  # that were kept
    certain: Mapping[str, int] = field(default_factory=dict)  # by column: in how many of them every row has a state
    digests: tuple[str, ...] = ()

    def __add__(self, other: RowTotals) -> RowTotals:
        with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
            rows = self.rows + other.rows
        count, batches, digests = self.count + other.count, self.batches + other.batches, self.digests + other.digests
        complete, certain = _added(self.complete, other.complete), _added(self.certain, other.certain)
        return RowTotals(count, rows, complete, self.seen | other.seen, batches, certain, digests)


@dataclass(frozen=True)
class ScannedRows:
    """Some rows after a first pass: a complete row counts the same in every pass, so only the others are kept."""

    totals: RowTotals
    buffer: RowBuffer


def _totals_of(rows: ScannedRows, number: int | None) -> RowTotals:
    return rows.totals


@dataclass(frozen=True)
class FirstPass:
    """Counts complete rows, and keeps the others; known 0s are 0 in `structure`, whose other numbers do not matter."""

    structure: Network
    digest: bool = False  # whether to tell rows from others

    def scan(
        self, batches: Iterable[RowBatch], buffer: RowBuffer, after: Callable[[int], None] | None = None
    ) -> ScannedRows:
        """Read all rows; `after` is called with their number so far."""
        totals, digest = RowTotals(), hashlib.sha256()
        for batch in batches:
            totals += self._totals(batch, buffer, totals.count)
            if self.digest:
                digest.update(fingerprint(list(batch.columns), batch.arrays()).encode())
            if after is not None:
                after(totals.count)
        return ScannedRows(replace(totals, digests=(digest.hexdigest(),)) if self.digest else totals, buffer)

    def _totals(self, batch: RowBatch, buffer: RowBuffer, before: int) -> RowTotals:
        complete = self._is_complete(batch)
        whole, rest = np.flatnonzero(complete), np.flatnonzero(~complete)
        counts = self._counts(batch if not len(rest) else batch.take(whole), before) if len(whole) else {}
        certain = {}
        if len(rest):
            left = batch if not len(whole) else batch.take(rest)
            buffer.append(left)
            certain = {name: int(column.fully_observed) for name, column in left.columns.items()}
        with np.errstate(over="ignore"):
            rows = float(batch.weights.sum())
        seen = frozenset(name for name, column in batch.columns.items() if not column.empty)
        return RowTotals(batch.rows, rows, counts, seen, int(len(rest) > 0), certain)

    def _is_complete(self, batch: RowBatch) -> NDArray[np.bool_]:
        """The rows in which every variable that takes part is observed, if its CPT is a plain table."""
        complete = np.ones(batch.rows, dtype=np.bool_)
        for name in relevant(self.structure, batch.columns):
            if name not in batch.columns or not isinstance(self.structure.cpt(name), CPT):
                return np.zeros(batch.rows, dtype=np.bool_)
            complete &= batch.columns[name].observed
        return complete

    def _counts(self, batch: RowBatch, before: int) -> dict[Key, Floats]:
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


class ExpectationStep:
    """The E-step of EM: counts of rows, with numbers that change from pass to pass while the structure stays."""

    def __init__(self, structure: Network, scanned: Distributed[ScannedRows]) -> None:
        self.structure, self.scanned = structure, scanned  # engines rely on the 0s and 1s of the structure
        self.totals: RowTotals = scanned.sum(_totals_of, operator.add)

    @property
    def incomplete(self) -> bool:
        """Whether some rows were not complete."""
        return self.totals.batches > 0

    @property
    def negligible(self) -> float:
        """The count of a parent state below which it may be due to underflow alone."""
        return NEGLIGIBLE * self.totals.rows if self.incomplete else 0.0

    def counts(self, nets: Sequence[Network]) -> list[ExpectedCounts]:
        """The counts of all rows, with the numbers of each network."""
        counts = self.totals.complete
        logs = [sum(log_sum(table, net.table(name)) for (name, _), table in counts.items()) for net in nets]
        complete = [ExpectedCounts(counts, log_likelihood) for log_likelihood in logs]
        if not self.incomplete:
            return complete
        parameters = self._query.get().program.parameters
        numbers = [{(node, part): net.cpt(node).parts()[part] for node, part in parameters} for net in nets]
        work = partial(_expected_in_part, query=self._query, numbers=numbers, seen=self.totals.seen)
        totals = self.scanned.sum(work, _add_each)
        return [
            counted + replace(expected, tables={key: tables[key] * table for key, table in expected.tables.items()})
            for counted, tables, expected in zip(complete, numbers, totals, strict=True)
        ]

    @cached_property
    def _query(self) -> Broadcast[Query]:
        """The query of the evidence; variables observed in every row are indexed, which is far cheaper."""
        certain, seen = self.totals.certain, self.totals.seen
        hard = [name for name, batches in certain.items() if batches == self.totals.batches]
        soft = [name for name in certain if name in seen and name not in hard]
        query = compiled(Query, self.structure, None, soft, hard)
        engine = engine_for_many_passes(query.program, self.totals.count)
        return self.scanned.broadcast(query.with_network(query.network, engine=engine))


def _expected_in_part(
    rows: ScannedRows, number: int | None, *, query: Broadcast[Query], numbers: Sequence[Tables], seen: frozenset[str]
) -> list[ExpectedCounts]:
    """The log-likelihood of the incomplete rows of a part, with several sets of tables, and its derivatives by all."""
    if not rows.totals.batches:
        return [ExpectedCounts() for _ in numbers]
    engine = query.get().engine().runner(rows.totals.count, Sweep.FORWARD, Sweep.HELD).clone()
    totals = []
    for tables in numbers:
        engine.update(tables, {})
        try:
            totals.append(reduce(operator.add, (_expected(batch.only(seen), engine) for batch in rows.buffer)))
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
        gradients = engine.gradients(
            block.columns, block.rows, seeds, result.exponent, through_selection=False, imprecise=imprecise
        )
        tables = {key: derivative for key, derivative in gradients.tables.items() if key[1] != THRESHOLDS}
        total += ExpectedCounts(tables, float((weights * logs).sum()))
    return total


def _trusted_from(program: Program, weights: Floats) -> int:
    """The probability, as a power of two, from which underflow in a row leaves its counts as they are."""
    light = bool(((weights > 0) & (weights < MIN_TRUSTED_WEIGHT)).any())
    return NEVER_TRUSTED if program.selects or program.structured or light else MIN_TRUSTED_EXPONENT


def _codes(column: Column, rows: int) -> NDArray[Any]:
    """The states of all rows, which are known, in a byte where they fit."""
    codes = column.states() if column.codes is None else column.codes
    small = codes.astype(np.int8 if column.variable.card <= MAX_INT8 else np.int64, copy=False)
    return np.broadcast_to(small, rows)

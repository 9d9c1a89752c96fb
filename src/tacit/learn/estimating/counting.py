"""The counts of table entries in rows: of complete rows counted, of others expected (the E-step of EM).

The expected count of an entry is the entry times the derivative of log p*(evidence) by it, with the selection held
fixed. A forward and a backward pass give those of all tables for many rows. Likewise, a row counts for each component
of a density as much as the derivative by its log-density, and densities are learned from moments in place of counts.
Rows may lie in several places (`partitions`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from tacit.base.floats import Floats
from tacit.compiler.program import Program
from tacit.engines import engine_for_many_passes
from tacit.engines.draws import Draws
from tacit.engines.engine import Engine, Sweep, WeightedRows
from tacit.engines.results import Array
from tacit.evidence.density_column import DensityColumn, bound, density_columns, scale_of
from tacit.evidence.tables.messages import in_partition
from tacit.learn.estimating.density_forms import expected_moments, log_likelihood
from tacit.learn.estimating.expected_counts import ExpectedCounts, Numbers
from tacit.learn.estimating.first_pass import RowTotals, ScannedRows
from tacit.learn.estimating.moments import Moments
from tacit.learn.estimating.sources import RowBatch
from tacit.learn.estimating.units import log_sum
from tacit.learn.partitions import Broadcast, Distributed
from tacit.query.network import Network
from tacit.query.query import Query, compiled

# Without tests, all numbers are at most 1, and none makes another larger: what underflows changes the probability of a
# row by 2**-1074 at most, and 2**30 such losses by 2**-1044. Beside a probability of 2**-700, and a weight of 2**-40,
# that is nothing for counts that are not negligible. The design notes say more.
MIN_TRUSTED_EXPONENT, MIN_TRUSTED_WEIGHT = -700, 2.0**-40
NEVER_TRUSTED = 1  # no probability is 2**1
NEGLIGIBLE = 1e-70  # times all rows


def _totals_of(rows: ScannedRows, number: int | None) -> RowTotals:
    return rows.totals


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

    def counts(self, numbers: Numbers) -> ExpectedCounts:
        """The counts of all rows, with each of several sets of numbers."""
        complete = self._complete(numbers)
        if not self.incomplete:
            return complete
        parameters = self._query.get().program.parameters
        tables = {key: table for key, table in numbers.draws.tables.items() if key in parameters}
        read = Numbers(Draws(len(numbers), tables), numbers.densities)
        work = partial(_expected_in_part, query=self._query, numbers=read, learned=frozenset(self.totals.densities))
        incomplete: ExpectedCounts = self._rows.sum(work, operator.add)
        return complete + incomplete

    def _complete(self, numbers: Numbers) -> ExpectedCounts:
        """What complete rows count for."""
        sets, totals = len(numbers), self.totals
        logs = np.full(sets, totals.fixed)
        for key, counts in totals.complete.items():
            table = numbers.draws.tables.get(key)
            logs += log_sum(counts, self.structure.table(key[0])[None] if table is None else table)
        for name, moments in self._complete_moments.items():
            logs += [log_likelihood(densities[name], moments) for densities in numbers.densities]
        tables = {key: np.broadcast_to(own, (sets, *own.shape)) for key, own in totals.complete.items()}
        return ExpectedCounts(tables, logs, [self._complete_moments] * sets)

    @cached_property
    def _complete_moments(self) -> dict[str, Moments]:
        """The moments of the densities that complete rows have numbers of."""
        by_density = self.totals.densities.items()
        return {name: totals.complete for name, totals in by_density if totals.complete.weight.any()}

    @cached_property
    def _rows(self) -> Distributed[IncompleteRows]:
        return self.scanned.map(partial(_incomplete, seen=self.totals.seen))

    @cached_property
    def _query(self) -> Broadcast[Query]:
        """The query of the evidence; variables observed in every row are indexed, which is far cheaper."""
        certain, seen = self.totals.certain, self.totals.seen
        hard = [name for name, batches in certain.items() if batches == self.totals.batches]
        soft = [name for name in certain if name in seen and name not in hard]
        query = compiled(Query, self.structure, None, soft, hard)
        engine = engine_for_many_passes(query.program, self.totals.count)
        return self.scanned.broadcast(query.with_network(query.network, engine=engine))


@dataclass(eq=False)
class Block:
    """Some rows, and the same for an engine, once it is known what density their numbers have."""

    batch: RowBatch
    data: WeightedRows | None = None


class IncompleteRows:
    """The incomplete rows of a part in blocks, which stay in memory if the rows do."""

    def __init__(self, rows: ScannedRows, seen: frozenset[str]) -> None:
        self.rows, self._seen = rows, seen
        self._kept: list[Block] | None = None

    def blocks(self, size: int) -> Iterable[Block]:
        """Blocks of at most so many rows."""
        if self._kept is not None:
            return self._kept
        made = (Block(some) for batch in self.rows.buffer for some in batch.only(self._seen).blocks(size))
        if isinstance(self.rows.buffer, list):
            self._kept = list(made)
            return self._kept
        return made


def _incomplete(rows: ScannedRows, number: int | None, *, seen: frozenset[str]) -> IncompleteRows:
    return IncompleteRows(rows, seen)


def _expected_in_part(
    rows: IncompleteRows, number: int | None, *, query: Broadcast[Query], numbers: Numbers, learned: frozenset[str]
) -> ExpectedCounts:
    """The counts of the incomplete rows of a part."""
    total, scanned = ExpectedCounts.none(len(numbers)), rows.rows.totals
    if not scanned.batches:
        return total
    engine = query.get().engine().runner(scanned.count, Sweep.FORWARD, Sweep.HELD).clone()
    counting = Counting(engine, numbers, learned)
    for block in rows.blocks(engine.gradient_chunk):
        total += counting.of(block)
    if number is None:
        return total
    return replace(total, impossible={i: in_partition(error, number) for i, error in total.impossible.items()})


class Counting:
    """The counts of rows with several sets of numbers: at once where the engine can, and else of one after the other.

    Derivatives by the tables, times their entries, are counts.
    """

    def __init__(self, engine: Engine, numbers: Numbers, learned: frozenset[str]) -> None:
        self._engine, self._numbers, self._learned = engine, numbers, learned

    def of(self, block: Block) -> ExpectedCounts:
        """The counts of some rows, their log-likelihood, and the moments of `learned` densities."""
        batch, sets = block.batch, range(len(self._numbers))
        if any(column.variable.name in self._learned for column in density_columns(batch.columns)):
            return ExpectedCounts.stacked([self._alone(i, batch) for i in sets])
        if block.data is None:
            columns, least = (
                bound(batch.columns, self._numbers.densities[0]),
                _trusted_from(self._engine.program, batch.weights),
            )
            block.data = WeightedRows(columns, batch.rows, batch.weights, least)
        sums = self._engine.log_sums(block.data, self._numbers.draws)
        if sums is None:
            return ExpectedCounts.stacked([self._alone(i, batch) for i in sets])
        scale = float((batch.weights * scale_of(block.data.columns, batch.rows)).sum())
        tables = {key: np.multiply(self._numbers.draws.tables[key], own) for key, own in sums.tables.items()}
        found = ExpectedCounts(tables, sums.logs + scale, [{} for _ in sets])
        if not sums.doubtful.any():
            return found
        return ExpectedCounts.stacked([self._alone(i, batch) if sums.doubtful[i] else found.take([i]) for i in sets])

    def _alone(self, i: int, block: RowBatch) -> ExpectedCounts:
        """The same with one set of numbers, row by row where digits may be lost."""
        engine, weights = self._engine, block.weights
        tables, slopes = self._numbers.draws.of(i)
        engine.update(tables, slopes)
        columns = bound(block.columns, self._numbers.densities[i])
        result, imprecise = engine.run_trusting(columns, block.rows, _trusted_from(engine.program, weights))
        mantissa, counted = result.joint[0], weights > 0
        for row in np.flatnonzero((mantissa <= 0) & counted)[:1].tolist():
            return ExpectedCounts({}, np.array([-math.inf]), [{}], {0: block.impossible(row)})
        logs = np.log(mantissa, out=np.zeros(block.rows), where=counted) + result.exponent * np.log(2.0)
        logs += scale_of(columns, block.rows)
        seeds = np.divide(weights, mantissa, out=np.zeros(block.rows), where=counted)
        gradients = engine.gradients(
            columns, block.rows, seeds, result.exponent, through_selection=False, imprecise=imprecise
        )
        counts = {key: (tables[key] * own)[None] for key, own in gradients.tables.items() if key in tables}
        found = [column for column in density_columns(columns) if column.variable.name in self._learned]
        moments = {c.variable.name: _moments(c, gradients.likelihoods, weights) for c in found}
        return ExpectedCounts(counts, np.array([float((weights * logs).sum())]), [moments])


def _moments(column: DensityColumn, derivatives: Mapping[str, Array], weights: Floats) -> Moments:
    """The moments of a density, given the derivatives of the log-likelihood of rows by the log-densities."""
    density = column.density
    assert density is not None, "columns of numbers are bound before a pass"
    values = np.broadcast_to(column.values, (len(weights), column.values.shape[1]))
    if density.components == 1:
        return expected_moments(density, values, weights[None])
    return expected_moments(density, values, np.asarray(derivatives[column.variable.name], dtype=np.float64))


def _trusted_from(program: Program, weights: Floats) -> int:
    """The probability, as a power of two, from which underflow in a row leaves its counts as they are."""
    light = bool(((weights > 0) & (weights < MIN_TRUSTED_WEIGHT)).any())
    return NEVER_TRUSTED if program.selects or program.structured or light else MIN_TRUSTED_EXPONENT

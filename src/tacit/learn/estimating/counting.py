"""The counts of table entries in rows: of complete rows counted, of others expected (the E-step of EM).

The expected count of an entry is the entry times the derivative of log p*(evidence) by it, with the selection held
fixed. A forward and a backward pass give those of all tables for many rows. Likewise, a row counts for each component
of a density as much as the derivative by its log-density, and densities are learned from moments in place of counts.
Rows may lie in several places (`partitions`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial, reduce

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.compiler.program import Program
from tacit.engines import engine_for_many_passes
from tacit.engines.engine import Engine, Sweep
from tacit.engines.results import Array, Results
from tacit.evidence.column import blocks
from tacit.evidence.density_column import DensityColumn, bound, density_columns, scale_of
from tacit.evidence.tables.messages import in_partition
from tacit.learn.estimating.density_forms import expected_moments, log_likelihood
from tacit.learn.estimating.expected_counts import ExpectedCounts, Tables
from tacit.learn.estimating.first_pass import RowTotals, ScannedRows
from tacit.learn.estimating.moments import Moments
from tacit.learn.estimating.sources import RowBatch
from tacit.learn.estimating.units import log_sum
from tacit.learn.partitions import Broadcast, Distributed
from tacit.model.cpt import THRESHOLDS
from tacit.model.densities import AnyDensity
from tacit.query.network import Network
from tacit.query.query import Query, compiled

Densities = Mapping[str, AnyDensity]

# Without tests, all numbers are at most 1, and none makes another larger: what underflows changes the probability of a
# row by 2**-1074 at most, and 2**30 such losses by 2**-1044. Beside a probability of 2**-700, and a weight of 2**-40,
# that is nothing for counts that are not negligible. The design notes say more.
MIN_TRUSTED_EXPONENT, MIN_TRUSTED_WEIGHT = -700, 2.0**-40
NEVER_TRUSTED = 1  # no probability is 2**1
NEGLIGIBLE = 1e-70  # times all rows


def _add_each(first: Sequence[ExpectedCounts], second: Sequence[ExpectedCounts]) -> list[ExpectedCounts]:
    return [a + b for a, b in zip(first, second, strict=True)]


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

    def counts(self, nets: Sequence[Network]) -> list[ExpectedCounts]:
        """The counts of all rows, with the numbers of each network."""
        counts = self.totals.complete
        moments = self._complete_moments
        complete = [ExpectedCounts(counts, self._complete_log_likelihood(net), moments=moments) for net in nets]
        if not self.incomplete:
            return complete
        parameters = self._query.get().program.parameters
        numbers = [{(node, part): net.cpt(node).parts()[part] for node, part in parameters} for net in nets]
        densities = [{name: net.density(name) for name in net.continuous} for net in nets]
        both = list(zip(numbers, densities, strict=True))
        learned = frozenset(self.totals.densities)
        work = partial(_expected_in_part, query=self._query, numbers=both, seen=self.totals.seen, learned=learned)
        totals = self.scanned.sum(work, _add_each)
        return [
            counted + replace(expected, tables={key: tables[key] * table for key, table in expected.tables.items()})
            for counted, tables, expected in zip(complete, numbers, totals, strict=True)
        ]

    def _complete_log_likelihood(self, net: Network) -> float:
        logs = [log_sum(table, net.table(name)) for (name, _), table in self.totals.complete.items()]
        logs += [log_likelihood(net.density(name), moments) for name, moments in self._complete_moments.items()]
        return sum(logs, self.totals.fixed)

    @cached_property
    def _complete_moments(self) -> dict[str, Moments]:
        """The moments of the densities that complete rows have numbers of."""
        by_density = self.totals.densities.items()
        return {name: totals.complete for name, totals in by_density if totals.complete.weight.any()}

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
    rows: ScannedRows,
    number: int | None,
    *,
    query: Broadcast[Query],
    numbers: Sequence[tuple[Tables, Densities]],
    seen: frozenset[str],
    learned: frozenset[str],
) -> list[ExpectedCounts]:
    """The log-likelihood of the incomplete rows of a part, with several sets of numbers, and its derivatives by all."""
    if not rows.totals.batches:
        return [ExpectedCounts() for _ in numbers]
    engine = query.get().engine().runner(rows.totals.count, Sweep.FORWARD, Sweep.HELD).clone()
    totals = []
    for tables, densities in numbers:
        engine.update(tables, {})
        try:
            counts = (_expected(batch.only(seen), engine, densities, learned) for batch in rows.buffer)
            totals.append(reduce(operator.add, counts))
        except EvidenceError as error:  # whether that is the end, depends on the numbers
            placed = error if number is None else in_partition(error, number)
            totals.append(ExpectedCounts({}, -math.inf, placed))
    return totals


def _expected(batch: RowBatch, engine: Engine, densities: Densities, learned: frozenset[str]) -> ExpectedCounts:
    """The log-likelihood of a batch, its derivatives by all tables, and the moments of `learned` densities."""
    total, least = ExpectedCounts(), _trusted_from(engine.program, batch.weights)
    for place, block in blocks(batch.columns, batch.rows, engine.gradient_chunk):
        columns = bound(block.columns, densities)
        weights = batch.weights[place]
        counted = weights > 0

        def seeds_of(result: Results, place: slice = place, weights: Floats = weights) -> Floats:
            mantissa, counted = result.joint[0], weights > 0
            for row in np.flatnonzero((mantissa <= 0) & counted)[:1].tolist():
                raise batch.impossible(place.start + row)
            seeds: Floats = np.divide(weights, mantissa, out=np.zeros(len(weights)), where=counted)
            return seeds

        result, gradients = engine.trusting_gradients(columns, block.rows, least, seeds_of)
        logs = np.log(result.joint[0], out=np.zeros(block.rows), where=counted) + result.exponent * np.log(2.0)
        logs += scale_of(columns, block.rows)
        tables = {key: derivative for key, derivative in gradients.tables.items() if key[1] != THRESHOLDS}
        numbers = [column for column in density_columns(columns) if column.variable.name in learned]
        moments = {c.variable.name: _moments(c, gradients.likelihoods, weights) for c in numbers}
        total += ExpectedCounts(tables, float((weights * logs).sum()), moments=moments)
    return total


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

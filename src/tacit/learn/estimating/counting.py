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
from tacit.compiler.prune import relevant
from tacit.engines import engine_for_many_passes
from tacit.engines.draws import Draws
from tacit.engines.engine import Engine, Sweep, WeightedRows
from tacit.engines.results import Array, Results
from tacit.evidence.density_column import DensityColumn, bound, density_columns, scale_of
from tacit.evidence.tables.messages import in_partition
from tacit.learn.estimating.density_forms import expected_moments, log_likelihood
from tacit.learn.estimating.expected_counts import ExpectedCounts, Numbers, Tables, added
from tacit.learn.estimating.families import Families
from tacit.learn.estimating.first_pass import RowTotals, ScannedRows, codes_of
from tacit.learn.estimating.moments import Moments
from tacit.learn.estimating.sources import RowBatch, gathered, merged
from tacit.learn.estimating.units import Key, log_sum
from tacit.learn.partitions import Broadcast, Distributed
from tacit.model.cpt import CPT
from tacit.query.network import Network
from tacit.query.query import DEFAULTS, Query, compiled

# Without tests, all numbers are at most 1, and none makes another larger: what underflows changes the probability of a
# row by 2**-1074 at most, and 2**30 such losses by 2**-1044. Beside a probability of 2**-700, and a weight of 2**-40,
# that is nothing for counts that are not negligible. The design notes say more.
MIN_TRUSTED_EXPONENT, MIN_TRUSTED_WEIGHT = -700, 2.0**-40
NEVER_TRUSTED = 1  # no probability is 2**1
NEGLIGIBLE = 1e-70  # times all rows
MAX_KEPT_ROWS = 2**18  # of a stream that stay in memory, if equal ones are merged


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
        """What complete rows count for, and others in the tables that they are complete for."""
        sets, known = len(numbers), added(self.totals.complete, self._known)
        logs = np.full(sets, self.totals.fixed)
        for key, counts in known.items():
            table = numbers.draws.tables.get(key)
            logs += log_sum(counts, self.structure.table(key[0])[None] if table is None else table)
        for name, moments in self._complete_moments.items():
            logs += [log_likelihood(densities[name], moments) for densities in numbers.densities]
        tables = {key: np.broadcast_to(own, (sets, *own.shape)) for key, own in known.items()}
        return ExpectedCounts(tables, logs, [self._complete_moments] * sets)

    @cached_property
    def _complete_moments(self) -> dict[str, Moments]:
        """The moments of the densities that complete rows have numbers of."""
        by_density = self.totals.densities.items()
        return {name: totals.complete for name, totals in by_density if totals.complete.weight.any()}

    @cached_property
    def _known(self) -> Tables:
        """The counts, in the incomplete rows, of the tables whose variables are observed in all of these."""
        names = self._with_known_families()
        if not names:
            return {}
        found: Tables = self.scanned.sum(partial(_known_in_part, structure=self.structure, names=names), added)
        impossible = any((counts[self.structure.table(name) == 0] > 0).any() for (name, _), counts in found.items())
        return {} if impossible else found  # which the others find out, and in which row

    def _with_known_families(self) -> list[str]:
        """The nodes with plain tables that are observed in all incomplete rows, and so are their parents.

        None where tests select tables, which may see them.
        """
        nodes = relevant(self.structure, self.totals.seen) if self.incomplete else ()
        if any(self.structure.cpt(name).testing for name in nodes):
            return []
        observed = set(self._observed)
        return [
            name
            for name in nodes
            if observed.issuperset((name, *self.structure.parents(name))) and isinstance(self.structure.cpt(name), CPT)
        ]

    @property
    def _observed(self) -> list[str]:
        """The variables that are observed in all incomplete rows."""
        return [name for name, batches in self.totals.certain.items() if batches == self.totals.batches]

    @cached_property
    def _rows(self) -> Distributed[IncompleteRows]:
        return self.scanned.map(partial(_incomplete, names=frozenset(self._query.get().question.evidence)))

    @cached_property
    def _query(self) -> Broadcast[Query]:
        """The query of the evidence without the tables that are counted.

        Variables observed in every row are indexed, which is far cheaper. Where their tables are counted, they are set.
        """
        counted, observed = {name for name, _ in self._known}, self._observed
        rest = [name for name in relevant(self.structure, self.totals.seen) if name not in counted]
        parents = {parent for name in rest for parent in self.structure.parents(name)}
        hard = [name for name in observed if name not in counted]
        soft = [name for name in self.totals.certain if name in self.totals.seen and name not in observed]
        options = replace(DEFAULTS, do=tuple(name for name in observed if name in counted and name in parents))
        query = compiled(Query, self.structure, None, soft, hard, options)
        engine = engine_for_many_passes(query.program, self.totals.count)
        return self.scanned.broadcast(query.with_network(query.network, engine=engine))


def _known_in_part(rows: ScannedRows, number: int | None, *, structure: Network, names: list[str]) -> Tables:
    """The weight of the incomplete rows of a part in the entries of some tables."""
    families, counts = Families(structure, names), dict[Key, Floats]()
    for batch in rows.buffer:
        codes = [codes_of(batch.columns[name], batch.rows) for name in families.variables]
        own = families.counts(codes, batch.weights)
        counts = added(counts, {(name, "table"): table for name, table in zip(names, own, strict=True)})
    return counts


@dataclass(eq=False)
class Block:
    """Some rows, and the same for an engine, once it is known what density their numbers have."""

    batch: RowBatch
    data: WeightedRows | None = None


class IncompleteRows:
    """The incomplete rows of a part in blocks: in memory those that are few, or were there, once if they are equal."""

    def __init__(self, rows: ScannedRows, names: frozenset[str]) -> None:
        self.rows, self._names = rows, names
        self._merged = self._in_memory()
        self._kept: list[Block] | None = None

    def _in_memory(self) -> list[RowBatch] | None:
        """The rows with the columns that count; None where there are too many."""
        if isinstance(self.rows.buffer, list):
            return [merged(batch.only(self._names)) for batch in self.rows.buffer]
        kept: list[RowBatch] = []
        for batch in self.rows.buffer:
            kept.append(merged(batch.only(self._names)))
            if sum(own.rows for own in kept) > MAX_KEPT_ROWS:
                kept = [merged(own) for own in gathered(kept, MAX_KEPT_ROWS)]
                if sum(own.rows for own in kept) > MAX_KEPT_ROWS:
                    return None
        return kept

    def blocks(self, size: int) -> Iterable[Block]:
        """Blocks of at most so many rows."""
        if self._kept is None and self._merged is not None:
            self._kept = [Block(some) for batch in self._merged for some in batch.blocks(size)]
        if self._kept is not None:
            return self._kept
        return (Block(some) for batch in self.rows.buffer for some in batch.only(self._names).blocks(size))


def _incomplete(rows: ScannedRows, number: int | None, *, names: frozenset[str]) -> IncompleteRows:
    return IncompleteRows(rows, names)


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
        counted = weights > 0

        def seeds_of(result: Results) -> Floats:
            mantissa = result.joint[0]
            where = counted & (mantissa > 0)
            seeds: Floats = np.divide(weights, mantissa, out=np.zeros(block.rows), where=where)
            return seeds

        least = _trusted_from(engine.program, weights)
        result, gradients = engine.trusting_gradients(columns, block.rows, least, seeds_of)
        bad = np.flatnonzero((result.joint[0] <= 0) & counted)
        for row in bad[[block.numbers[bad].argmin()]].tolist() if bad.size else ():
            return ExpectedCounts({}, np.array([-math.inf]), [{}], {0: block.impossible(row)})
        logs = np.log(result.joint[0], out=np.zeros(block.rows), where=counted) + result.exponent * np.log(2.0)
        logs += scale_of(columns, block.rows)
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

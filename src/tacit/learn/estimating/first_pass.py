"""The first pass over all rows: it counts those that are complete, and keeps the others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.compiler.prune import relevant
from tacit.evidence.column import Column
from tacit.evidence.density_column import DensityColumn
from tacit.evidence.frames import MAX_INT8
from tacit.learn.checkpoint import fingerprint
from tacit.learn.estimating.density_forms import log_base, statistic
from tacit.learn.estimating.density_totals import DensityTotals, RowSample, no_sample
from tacit.learn.estimating.expected_counts import Tables, added
from tacit.learn.estimating.families import Families
from tacit.learn.estimating.moments import Moments, by_column, grouped
from tacit.learn.estimating.sources import RowBatch, RowBuffer
from tacit.learn.estimating.units import Key
from tacit.model.cpt import CPT
from tacit.query.network import Network


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
    densities: Mapping[str, DensityTotals] = field(default_factory=dict)  # of those to be learned
    sample: RowSample = field(default_factory=no_sample)
    fixed: float = 0.0  # the log-likelihood of the other densities in complete rows

    def __add__(self, other: RowTotals) -> RowTotals:
        with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
            rows = self.rows + other.rows
        count, batches, digests = self.count + other.count, self.batches + other.batches, self.digests + other.digests
        complete, certain = added(self.complete, other.complete), added(self.certain, other.certain)
        seen, densities = self.seen | other.seen, added(self.densities, other.densities)
        sample, fixed = self.sample + other.sample, self.fixed + other.fixed
        return RowTotals(count, rows, complete, seen, batches, certain, digests, densities, sample, fixed)


@dataclass(frozen=True)
class ScannedRows:
    """Some rows after a first pass: a complete row counts the same in every pass, so only the others are kept."""

    totals: RowTotals
    buffer: RowBuffer


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
        counted = batch if not len(rest) else batch.take(whole)
        counts = self._counts(counted, before) if len(whole) else {}
        certain = {}
        if len(rest):
            left = batch if not len(whole) else batch.take(rest)
            buffer.append(left)
            certain = {name: int(column.fully_observed) for name, column in left.columns.items()}
        with np.errstate(over="ignore"):
            rows = float(batch.weights.sum())
        seen = frozenset(name for name, column in batch.columns.items() if not column.empty)
        densities = {name: self._moments(name, batch, counted) for name in self._learned(batch)}
        fixed = self._fixed_log_likelihood(counted)
        sample = self._sample(batch)
        return RowTotals(batch.rows, rows, counts, seen, int(len(rest) > 0), certain, (), densities, sample, fixed)

    def _is_complete(self, batch: RowBatch) -> NDArray[np.bool_]:
        """The rows in which every variable that takes part is observed, if its CPT is a plain table."""
        complete = np.ones(batch.rows, dtype=np.bool_)
        for name in relevant(self.structure, batch.columns):
            column = batch.columns.get(name)
            if isinstance(column, DensityColumn):  # a row without any of its numbers says nothing about the density
                complete &= column.observed | np.isnan(column.values).all(axis=1)
            elif column is None or not isinstance(self.structure.cpt(name), CPT):
                return np.zeros(batch.rows, dtype=np.bool_)
            else:
                complete &= column.observed
        return complete

    def _counts(self, batch: RowBatch, before: int) -> dict[Key, Floats]:
        names = [n for n in relevant(self.structure, batch.columns) if not self.structure.variable(n).continuous]
        if not names:
            return {}
        families = Families(self.structure, names)
        codes = [codes_of(batch.columns[name], batch.rows) for name in names]
        weights = np.zeros(0) if (batch.weights == 1).all() else batch.weights
        tables = {}
        for name, counts in zip(names, families.counts(codes, weights, before), strict=True):
            table = self.structure.table(name)
            if (counts[table == 0] > 0).any():
                raise batch.impossible(families.first_impossible(name, table, codes, batch.weights))
            tables[name, "table"] = counts
        return tables

    def _learned(self, batch: RowBatch) -> list[str]:
        """The densities to be learned that the batch has numbers of."""
        return [name for name in self.structure.continuous if name in batch.columns and self.structure.cpt(name).learn]

    def _moments(self, name: str, batch: RowBatch, complete: RowBatch) -> DensityTotals:
        density = self.structure.density(name)
        values, known = self._values(name, complete)
        whole = by_column(statistic(density, self._values(name, batch)[0]), batch.weights)
        if not known.any():
            return DensityTotals(whole, Moments.none(density.components, density.dimension))
        components, weights = self._components(name, complete)[known], complete.weights[known]
        moments = grouped(statistic(density, values[known]).T, components, weights, density.components)
        base = float((weights * log_base(density, values[known])).sum())
        return DensityTotals(whole, replace(moments, log_base=base))

    def _fixed_log_likelihood(self, complete: RowBatch) -> float:
        """The log-likelihood of the densities that are not learned, in complete rows."""
        total, learned = 0.0, self._learned(complete)
        for name in self.structure.continuous:
            if name in learned or name not in complete.columns or not complete.rows:
                continue
            values, known = self._values(name, complete)
            logs = self.structure.density(name).logs_by_component(values)
            logs = logs[self._components(name, complete), np.arange(complete.rows)]
            for row in np.flatnonzero(np.isneginf(logs) & (complete.weights > 0))[:1].tolist():
                raise complete.impossible(row)
            total += float((complete.weights * logs)[known].sum())
        return total

    def _sample(self, batch: RowBatch) -> RowSample:
        counted = np.flatnonzero(batch.weights > 0)
        return RowSample.of(
            batch.numbers[counted], {name: self._values(name, batch)[0][counted] for name in self._learned(batch)}
        )

    def _values(self, name: str, batch: RowBatch) -> tuple[Floats, NDArray[np.bool_]]:
        """The numbers (rows, columns) of a density, and in which rows all of them are known."""
        column = batch.columns[name]
        assert isinstance(column, DensityColumn)
        values = np.broadcast_to(column.values, (batch.rows, column.values.shape[1]))
        return values, np.asarray(~np.isnan(values).any(axis=1))

    def _components(self, name: str, batch: RowBatch) -> NDArray[np.int64]:
        """The joint state of the parents in complete rows."""
        components = np.zeros(batch.rows, dtype=np.int64)
        for parent in self.structure.parents(name):
            components = components * self.structure.variable(parent).card + codes_of(batch.columns[parent], batch.rows)
        return components


def codes_of(column: Column, rows: int) -> NDArray[Any]:
    """The states of all rows, which are known, in a byte where they fit."""
    codes = column.states() if column.codes is None else column.codes
    small = codes.astype(np.int8 if column.variable.card <= MAX_INT8 else np.int64, copy=False)
    return np.broadcast_to(small, rows)

"""A table on a cluster as codes on this machine, for `discover`: workers code their rows and count equal ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

from tacit.base.errors import EvidenceError
from tacit.clusters.learning import ClusterTable, Tables, batches, check_weights
from tacit.clusters.plan import Columns
from tacit.evidence.summaries.column_summary import ColumnSummary
from tacit.evidence.tables.columns import Source
from tacit.evidence.tables.csv_parquet import repeated
from tacit.learn.discovering.coded_table import (
    Bins,
    CodedTable,
    GatheredRows,
    Table,
    network_of,
    summaries_of,
    table_of,
)
from tacit.learn.discovering.excluding import checked_exclude, require_columns
from tacit.learn.estimating.sources import row_batches
from tacit.learn.partitions import Broadcast
from tacit.query.network import Network

Summaries = dict[str, ColumnSummary]


def coded(table: ClusterTable, weights: str | None, bins: Bins, exclude: Iterable[str] = ()) -> CodedTable:
    """Read a table twice: to find out what its columns hold, and to code its rows."""
    check_weights(table, weights, ())
    unwanted = checked_exclude(exclude, weights)
    require_columns(unwanted, table.columns)
    names = [name for name in table.columns if name != weights and name not in unwanted]
    for name in repeated(list(table.columns)):
        raise EvidenceError(f"the table has two columns {name!r}; expected one")
    summaries = table.parts(Columns((), frozenset()), names).sum(Summary(names), _both)
    net = network_of(summaries, bins)
    columns = Columns(
        tuple(Source(net.variable(name), (name,), per_state=False) for name in names if name in net), frozenset()
    )
    parts = table.parts(columns, [] if weights is None else [weights])
    return table_of(net, parts.sum(Coder(parts.broadcast(net), columns, weights), add))


@dataclass(frozen=True)
class Summary:
    """What the columns of a partition hold."""

    names: Sequence[Any]

    def __call__(self, tables: Tables, number: int | None) -> Summaries:
        found = summaries_of(Table({name: rows[name] for name in self.names}) for rows in tables if len(rows))
        return found if number is None else {name: one.at(f"partition {number}") for name, one in found.items()}


@dataclass(frozen=True)
class Coder:
    """Codes the rows of a partition, and counts equal ones together."""

    network: Broadcast[Network]
    columns: Columns
    weights: str | None

    def __call__(self, tables: Tables, number: int | None) -> GatheredRows:
        net = self.network.get()
        gathered = GatheredRows(self.weights is not None)
        for batch in row_batches(net, batches(tables, self.columns, self.weights), self.weights):
            gathered.add(net, batch)
        return gathered.merged()


def _both(first: Summaries, second: Summaries) -> Summaries:
    """The summaries of two parts; one that has no rows says nothing of any column."""
    return {name: first[name] + summary for name, summary in second.items()} if first and second else first or second

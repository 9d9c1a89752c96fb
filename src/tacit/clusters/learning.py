"""Learning from a table on a cluster: each partition is read once, and all else is sums over the partitions."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.base.errors import EvidenceError, TacitError
from tacit.clusters.plan import Columns, floats, has, hinting, planned
from tacit.learn.estimating.estimation import Estimate, Estimation
from tacit.learn.estimating.first_pass import FirstPass, ScannedRows
from tacit.learn.estimating.sources import one_column, row_batches
from tacit.learn.fitting.data import Data, checked_weights, read_labels
from tacit.learn.fitting.labelled import LabelledRows, Part, some_rows
from tacit.learn.partitions import Broadcast, Distributed
from tacit.model.elements.variable import similar
from tacit.query.tac import TAC

Tables = Iterable[Any]  # pandas frames or pyarrow tables, one after the other: the rows of a partition


@dataclass(frozen=True)
class ClusterTable:
    """A table on a cluster: the names of its columns, and its partitions with the columns of evidence and others."""

    columns: Sequence[Any]
    parts: Callable[[Columns, list[str]], Distributed[Tables]]


def estimated(table: ClusterTable, estimation: Estimation, weights: str | None, likelihoods: Sequence[str]) -> Estimate:
    """Estimate the tables of a network from the rows of a table."""
    net = estimation.network
    check_weights(table, weights, net)
    variables = [net.variable(name) for name in net]
    others = [] if weights is None else [weights]
    columns = planned(variables, table.columns, likelihoods, others)
    parts = table.parts(columns, others)
    return estimation.estimate(parts.map(Scan(parts.broadcast(estimation.first_pass), columns, weights)))


@dataclass(frozen=True)
class Scan:
    """Reads the rows of a partition, counts those that are complete, and keeps the others."""

    first_pass: Broadcast[FirstPass]
    columns: Columns
    weights: str | None

    def __call__(self, tables: Tables, number: int | None) -> ScannedRows:
        first_pass = self.first_pass.get()
        rows = batches(tables, self.columns, self.weights)
        with hinting():
            return first_pass.scan(row_batches(first_pass.structure, rows, self.weights), [])


def batches(tables: Tables, columns: Columns, weights: str | None) -> Iterator[dict[str, Any]]:
    """The evidence of a partition, with its weights."""
    for rows in tables:
        if len(rows):
            own = {} if weights is None else {weights: floats(weights, rows[weights])}
            yield {**columns.of(rows), **own}


@dataclass(frozen=True)
class Roles:
    """The columns of a table to learn from: the label, the weights, and those that hold likelihoods."""

    label: str | None
    weights: str | None
    likelihoods: Sequence[str]

    def scattered(self, table: ClusterTable, tac: TAC) -> LabelledRows:
        """The labelled rows of a table."""
        tac.require_no_tables("learning on a cluster")
        label = tac.variable.name if self.label is None else self.label
        if label not in table.columns:
            raise EvidenceError(f"the table has no column {label!r} of labels; {has(table.columns)}")
        if label in tac.evidence:
            raise TacitError(f"label is {label!r}, which is evidence; expected a column of labels of {tac.query!r}")
        check_weights(table, self.weights, tac.network)
        names = (self.likelihoods,) if isinstance(self.likelihoods, str) else tuple(self.likelihoods)
        others = [label, *([] if self.weights is None else [self.weights])]
        variables = [tac.network.variable(name) for name in tac.evidence]
        columns = planned(variables, table.columns, [name for name in names if name != label], others)
        columns.warn_missing(tac.evidence)
        parts = table.parts(columns, others)
        return LabelledRows(parts.map(LabelReader(parts.broadcast(tac), columns, label, label in names, self.weights)))


@dataclass(frozen=True)
class LabelReader:
    """Reads the labelled rows of a partition. `soft`: the labels are probabilities of the first of two states."""

    tac: Broadcast[TAC]
    columns: Columns
    label: str
    soft: bool
    weights: str | None

    def __call__(self, tables: Tables, number: int | None) -> Part:
        batches: list[Data] = []
        first = 0
        for rows in tables:
            if len(rows):
                try:
                    batches.append(self._data(rows))
                except EvidenceError as error:
                    raise error.moved(first) from None
            first += len(rows)
        if not batches:
            return None
        data = batches[0] if len(batches) == 1 else _joined(batches)
        return some_rows(data, np.flatnonzero(data.weights))

    def _data(self, rows: Any) -> Data:
        tac = self.tac.get()
        with hinting():
            evidence = tac.read(self.columns.of(rows))
        labels = floats(self.label, rows[self.label]) if self.soft else rows[self.label]  # no frame: no codes
        targets = read_labels(tac.variable, labels)
        weights = np.ones(len(rows))
        if self.weights is not None:
            weights = checked_weights(floats(self.weights, rows[self.weights]), len(rows))
        return Data(evidence.columns, targets, weights)


def _joined(batches: Sequence[Data]) -> Data:
    names = {name for data in batches for name in data.columns}
    columns = {name: one_column([(data.columns[name], data.rows) for data in batches]) for name in names}
    if len({len(data.targets) for data in batches}) > 1:
        raise EvidenceError("labels are of different kinds in one partition")
    targets = np.concatenate([data.targets for data in batches], axis=1)
    return Data(columns, targets, np.concatenate([data.weights for data in batches]))


def check_weights(table: ClusterTable, weights: Any, net: Container[str]) -> None:
    """An error about weights that are no column of their own."""
    if weights is None:
        return
    if not isinstance(weights, str):
        raise TacitError("rows are on a cluster; then weights are the name of one of their columns")
    if weights in net:
        raise TacitError(f"weights name {weights!r}, which is a variable; expected a column of numbers")
    if weights not in table.columns:
        hint = similar(weights, [name for name in table.columns if isinstance(name, str)])
        raise EvidenceError(f"the table has no column {weights!r} of weights{hint}")

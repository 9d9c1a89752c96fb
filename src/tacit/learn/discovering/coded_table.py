"""Rows as a table of codes, in an order of columns and rows that only their content decides.

Rows are gone through twice, batch by batch: to find out what the columns hold, and to write each value as the place of
its state, a byte for up to 255 of them. Equal rows are counted together.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError, TacitError
from tacit.evidence.column import Column, Evidence
from tacit.evidence.read import named_columns
from tacit.evidence.summaries.column_summary import ColumnSummary, summary_of
from tacit.evidence.summaries.discretizing import METHODS, How, warn_of_default_bins
from tacit.evidence.tables.csv_parquet import CSV, FileTable, open_table
from tacit.learn.discovering.excluding import checked_exclude, without
from tacit.learn.estimating.sources import RowBatch, Spooled, is_stream, row_batches
from tacit.model.elements.intervals import Edges
from tacit.model.elements.variable import similar
from tacit.query.network import Network

MAX_SHARE_DISTINCT = 0.6  # of the rows, up to which it pays to count equal rows together
SAMPLE_ROWS = 4096
HIGH_BITS = np.uint64(40)  # of a hash: its low bits depend on the last column more than on others
MIN_MERGED_ROWS = 2**21  # that are waiting, before equal rows are counted together
ROWS_PER_BATCH = 2**20  # of a table that is given to an estimation
MAX_EXPLAINED = 20  # columns of which an error says why they make no variable
MIXER = np.uint64(0x9E3779B97F4A7C15)
DEFAULT_BINS = "quantile"
Bins = How | Mapping[str, How] | None


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Codes (variables, rows) with a weight for each row; no weights at all where each row counts once.

    The variables are in an order that the data decide: by the entropy of a column, and by name where two are equal.
    Where a value is missing, the code is `gap`, which is -1 among signed numbers.
    """

    network: Network  # the variables, without edges
    names: tuple[str, ...]
    cards: NDArray[np.int64]
    codes: NDArray[np.unsignedinteger[Any]]
    weights: NDArray[Any]
    rows: float  # the sum of the weights

    @property
    def gap(self) -> int:
        return int(np.iinfo(self.codes.dtype).max)

    @cached_property
    def complete(self) -> bool:
        """Whether no value is missing."""
        return not any((column == self.gap).any() for column in self.codes)

    def counts(self, name: str) -> NDArray[Any]:
        """How many rows have each state of a column; the sums of their weights."""
        place = self.names.index(name)
        return _counts(self.codes[place], self.weights, self.gap)[: self.cards[place]]

    def drawn(self, rng: np.random.Generator) -> CodedTable:
        """A bootstrap sample: as many rows, drawn with replacement, as weights of the rows here."""
        weights = self.weights if len(self.weights) else np.ones(self.codes.shape[1])
        draws = rng.multinomial(round(self.rows), weights / weights.sum())
        drawn = np.flatnonzero(draws)
        kept = drawn if len(self.weights) else self._order[drawn]
        counted = draws[drawn].astype(np.uint32 if self.rows < 2**32 else np.float64)
        return replace(
            self, codes=np.ascontiguousarray(self.codes[:, kept]), weights=counted, rows=float(counted.sum())
        )

    @cached_property
    def _order(self) -> NDArray[np.intp]:
        """The rows in an order that only their content decides."""
        return np.argsort(_hashes(self.codes), kind="stable")

    def evidence(self, net: Network, rows: slice = slice(None)) -> Evidence:
        """Some rows as evidence on a network with these variables."""
        signed = np.dtype(f"i{self.codes.itemsize}")
        wide = np.dtype(f"i{2 * self.codes.itemsize}")
        columns = {}
        for name, card, codes in zip(self.names, self.cards, self.codes, strict=True):
            own = codes[rows]
            if card > np.iinfo(signed).max:  # as signed numbers, the last states would be negative
                own = np.where(own == self.gap, -1, own.astype(wide))
            columns[name] = Column(net.variable(name), codes=own.view(signed) if own.dtype != wide else own)
        return Evidence(len(own), columns)

    def batches(self, net: Network) -> Iterator[Evidence]:
        """All rows as evidence, some at a time."""
        for start in range(0, self.codes.shape[1], ROWS_PER_BATCH):
            yield self.evidence(net, slice(start, start + ROWS_PER_BATCH))


def coded_table(rows: Any, weights: Any = None, bins: Bins = None, exclude: Iterable[str] = ()) -> CodedTable:
    """Read rows as `tacit.estimate` takes them; states and intervals are those that the columns suggest, or `bins`."""
    unwanted = checked_exclude(exclude, weights)
    spooled: AbstractContextManager[Spooled[Any] | None] = nullcontext()
    if isinstance(rows, Iterator):
        spooled = closing(Spooled())
    with spooled as spool:
        source = without(open_table(Path(rows)) if isinstance(rows, str | os.PathLike) else rows, unwanted)
        try:
            net = network_of(summaries_of(_tables(source, spool), weights), bins)
        except EvidenceError as error:
            raise error.at(source.name) if isinstance(source, FileTable) else error from None
        gathered = GatheredRows(weights is not None)
        for batch in row_batches(net, source if spool is None else iter(spool), weights):
            gathered.add(net, batch)
        return table_of(net, gathered)


def _tables(rows: Any, spool: Spooled[Any] | None) -> Iterator[Table]:
    """All rows as tables with named columns; those of an iterator are kept, since they come but once."""
    if isinstance(rows, FileTable):
        for batch in rows.batches(rows.names):
            yield Table({name: batch.rows.column(name) for name in rows.names}, isinstance(rows, CSV), counted_from=1)
    elif is_stream(rows):
        for rows_of_batch in rows:
            if spool is not None:
                spool.append(rows_of_batch)
            yield _named(rows_of_batch)
    else:
        yield _named(rows)


@dataclass(frozen=True, eq=False)
class Table:
    """Some rows: columns by name, whether they are cells of a file of text, and the number of the first row of all."""

    columns: Mapping[Any, Any]
    text: bool = False
    counted_from: int = 0


def _named(rows: Any) -> Table:
    columns, kind = named_columns(rows), type(rows).__name__
    if columns is None and not (isinstance(rows, list | tuple) and not rows):
        raise EvidenceError(f"rows of type {kind} have no named columns; expected a frame, or columns by name")
    if not columns:
        raise EvidenceError(f"the {kind} of rows has no columns; expected one for each variable")
    return Table(columns)


def summaries_of(tables: Iterable[Table], weights: Any = None) -> dict[str, ColumnSummary]:
    """What the columns of some tables hold, but for the one of weights."""
    summaries: dict[str, ColumnSummary] = {}
    rows = 0
    for table in tables:
        first = rows
        if isinstance(weights, str) and weights not in table.columns:
            raise EvidenceError(f"the rows have no column {weights!r} of weights{similar(weights, table.columns)}")
        for name, values in table.columns.items():
            if not isinstance(name, str):
                raise EvidenceError(
                    f"a column has the name {name!r}; expected names of text (in pandas: frame.columns.map(str))"
                )
            if isinstance(weights, str) and name == weights:
                continue
            summary = summary_of(name, values, table.text, table.counted_from + first)
            rows = max(rows, first + summary.rows)
            summaries[name] = summaries[name] + summary if name in summaries else summary
    return summaries


def network_of(summaries: Mapping[str, ColumnSummary], bins: Bins) -> Network:
    """The variables of columns, without edges: intervals where they hold measurements, else states that occur."""
    if not any(summary.rows for summary in summaries.values()):
        raise EvidenceError("there are no rows; expected a frame, columns by name, a path, or batches of rows")
    chosen = dict(bins) if isinstance(bins, Mapping) else {}
    for name in chosen:
        if name not in summaries:
            raise EvidenceError(f"bins= names {name!r}, which is not a column{similar(name, summaries)}")
    word: How = DEFAULT_BINS if bins is None or isinstance(bins, Mapping) else bins
    if isinstance(word, str) and word not in METHODS:
        expected = "a number of intervals, or a dictionary from columns to any of these or to edges"
        raise TacitError(f"bins is {word!r}; expected {', '.join(map(repr, METHODS))}, {expected}")
    net, unchosen, wrong = Network(), [], dict[str, EvidenceError]()
    for name in sorted(filter(str.strip, summaries)):  # no variable is called "", as the index of a frame is in a file
        summary = summaries[name]
        try:
            if name in chosen:
                net.add(name, bins=summary.edges(name, chosen[name]))
            elif summary.measured:
                net.add(name, bins=_measured_edges(name, summary, word))
                unchosen.append(name)
            else:
                net.add(name, states=summary.states(name))
        except EvidenceError as error:
            wrong[name] = error
    if wrong:
        remedy = f"to leave out what makes no variable: exclude={list(wrong)}" if len(net) else None
        raise _unusable(wrong).changed(remedy=remedy)
    if bins is None or isinstance(bins, Mapping):
        warn_of_default_bins(unchosen)
    return net


def _measured_edges(name: str, summary: ColumnSummary, how: How) -> Edges:
    """The edges of the intervals of measurements; an error if they seem to number the rows."""
    if summary.numbers_rows:
        remedy = "leave it out, or name it in bins= if it is a measurement"
        raise EvidenceError(f"column {name!r} seems to number the rows, from one to the next; {remedy}")
    return summary.edges(name, how)


def _unusable(wrong: Mapping[str, EvidenceError]) -> EvidenceError:
    """One error about all columns that make no variable."""
    if len(wrong) == 1:
        return next(iter(wrong.values())).changed(columns=tuple(wrong))
    lines = "".join(f"\n  {error}" for error in list(wrong.values())[:MAX_EXPLAINED])
    more = "\n  ..." if len(wrong) > MAX_EXPLAINED else ""
    problem = f"{len(wrong):,} columns make no variable: {', '.join(map(repr, wrong))}{lines}{more}"
    return EvidenceError(problem, columns=tuple(wrong), others=tuple(wrong.values()))


class GatheredRows:
    """Rows as codes, a byte for each state where that is enough; equal ones are counted together as they come."""

    def __init__(self, weighted: bool) -> None:
        self.weighted = weighted
        self._blocks: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self._waiting, self._limit = 0, MIN_MERGED_ROWS

    def add(self, net: Network, batch: RowBatch) -> None:
        """Add some rows that were read for a network."""
        dtype = np.uint8 if max(len(net.states(name)) for name in net) < 2**8 else np.uint16
        block = np.full((len(net), batch.rows), -1).astype(dtype) if len(batch.columns) < len(net) else None
        codes = np.empty((len(net), batch.rows), dtype) if block is None else block
        for place, name in enumerate(net):
            if name in batch.columns:
                column = batch.columns[name]
                if column.codes is None:
                    raise EvidenceError(f"column {name!r} holds likelihoods; discover takes states and numbers only")
                codes[place] = column.codes
        self.append(codes, batch.weights if self.weighted else np.empty(0, np.uint32))

    def append(self, codes: NDArray[Any], weights: NDArray[Any]) -> None:
        """Add some rows of codes, with a weight each or without weights."""
        self._blocks.append((codes, weights))
        self._waiting += codes.shape[1]
        if self._waiting >= self._limit:
            merged = merged_rows(*self.joined())
            self._blocks, self._waiting = [merged], merged[0].shape[1]
            self._limit = max(MIN_MERGED_ROWS, 2 * self._waiting)

    def __add__(self, other: GatheredRows) -> GatheredRows:
        """The rows of both, neither of which changes."""
        both = GatheredRows(self.weighted)
        both._blocks, both._waiting, both._limit = list(self._blocks), self._waiting, max(self._limit, other._limit)
        for block in other._blocks:
            both.append(*block)
        return both

    def merged(self) -> GatheredRows:
        """The same with equal rows together, but for few equal ones, which `table_of` leaves alone, too."""
        if not self._blocks:
            return self
        codes, weights = self.joined()
        block = merged_rows(codes, weights)
        few = not len(weights) and block[0].shape[1] > MAX_SHARE_DISTINCT * codes.shape[1]
        merged = GatheredRows(self.weighted)
        merged.append(*((codes, weights) if few else block))
        return merged

    def joined(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """All rows as one block; what was gathered is given up on the way, so that it is not in memory twice."""
        blocks, self._blocks = self._blocks, []
        if len(blocks) == 1:
            return blocks[0]
        weighted = any(len(weights) for _, weights in blocks)
        total = sum(codes.shape[1] for codes, _ in blocks)
        whole = np.empty((blocks[0][0].shape[0], total), blocks[0][0].dtype)
        weights = np.empty(total if weighted else 0, np.result_type(*(own.dtype for _, own in blocks)))
        stop = total
        while blocks:
            codes, own = blocks.pop()
            start = stop - codes.shape[1]
            whole[:, start:stop] = codes
            if weighted:
                weights[start:stop] = own if len(own) else 1
            stop = start
        return whole, weights


def table_of(net: Network, gathered: GatheredRows) -> CodedTable:
    """The table with columns by entropy, and equal rows together."""
    codes, weights = gathered.joined()
    if not (total := float(weights.sum()) if len(weights) else float(codes.shape[1])):
        raise EvidenceError("all weights are 0; at least one row must count")
    if total < 2 <= codes.shape[1]:
        meaning = "a weight says how many rows its row counts as; multiply all of them by the number of rows"
        raise EvidenceError(f"the weights of {codes.shape[1]:,} rows sum to {total:g}: {meaning}")
    gap = np.iinfo(codes.dtype).max
    codes, weights = merged_rows(codes, weights, always=any((column == gap).any() for column in codes))
    cards = np.array([len(net.states(name)) for name in net], dtype=np.int64)
    surprises = [_surprise(_counts(column, weights, gap)) for column in codes]
    names = list(net)
    order = sorted(range(len(names)), key=lambda i: (surprises[i], cards[i], names[i]))
    return CodedTable(net, tuple(names[i] for i in order), cards[order], codes[order], weights, total)


def _counts(codes: NDArray[Any], weights: NDArray[Any], gap: int) -> NDArray[Any]:
    """How many rows of a column have each code, but for gaps."""
    return np.bincount(codes, weights if len(weights) else None, minlength=gap + 1)[:gap]


def _surprise(counts: NDArray[Any]) -> float:
    """The entropy of a column, summed from its smallest count so that the order of states does not matter."""
    counts = np.sort(counts[counts > 0])
    shares = counts / counts.sum()
    return round(float(-(shares * np.log(shares)).sum()), 9)  # the order of rows matters to sums of fractions


def merged_rows(codes: NDArray[Any], weights: NDArray[Any], always: bool = False) -> tuple[NDArray[Any], NDArray[Any]]:
    """Equal rows as one with the sum of their weights, in an order of their own; all rows where few are equal.

    Without weights that is not tried if a sample says that it does not pay, unless it is to be done `always`.
    """
    rows, hashes = codes.shape[1], _hashes(codes)
    if not len(weights) and not always and rows > SAMPLE_ROWS:
        some = hashes[(hashes >> HIGH_BITS) % np.uint64(rows // SAMPLE_ROWS) == 0]  # equal rows: all of them, or none
        if len(np.unique(some)) > MAX_SHARE_DISTINCT * len(some):
            return codes, weights
    if weights.dtype.kind == "f":  # sums of fractions in an order that does not depend on that of the rows
        order = np.lexsort((weights, hashes))
        codes, weights, hashes = codes[:, order], weights[order], hashes[order]
    _, first, places = np.unique(hashes, return_index=True, return_inverse=True)
    if any((column[first][places] != column).any() for column in codes):  # two different rows with one hash
        return codes, weights
    if not len(weights):
        summed: NDArray[Any] = np.bincount(places).astype(np.uint32)
    elif (weights == np.rint(weights)).all() and weights.sum() < 2**32:
        summed = np.bincount(places, weights).astype(np.uint32)
    else:
        summed = np.bincount(places, weights)
    return np.ascontiguousarray(codes[:, first]), summed


def _hashes(codes: NDArray[Any]) -> NDArray[np.uint64]:
    """A number for every row; different rows hardly ever have the same."""
    numbers = np.zeros(codes.shape[1], np.uint64)
    for column in codes:
        numbers *= MIXER
        numbers ^= numbers >> np.uint64(29)
        numbers += column
    return numbers

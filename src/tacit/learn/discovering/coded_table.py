"""Rows as a table of codes, in an order of columns and rows that only their content decides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.text import listed
from tacit.evidence.read import named_columns, read, without_column
from tacit.learn.fitting.data import checked_weights
from tacit.model.variable import similar
from tacit.query.network import Network

MAX_SHARE_DISTINCT = 0.6  # of the rows, up to which it pays to count equal rows together
SAMPLE_ROWS = 4096
MIXER = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class CodedTable:
    """Codes (variables, rows) with a weight for each row; no weights at all where each row counts once.

    The variables are in an order that the data decide: by the entropy of a column, and by name where two are equal.
    """

    network: Network  # the variables, without edges
    names: tuple[str, ...]
    cards: NDArray[np.int64]
    codes: NDArray[np.integer]
    weights: NDArray[Any]
    rows: float  # the sum of the weights

    def drawn(self, rng: np.random.Generator) -> CodedTable:
        """A bootstrap sample: as many rows, drawn with replacement, as weights of the rows here."""
        weights = self.weights if len(self.weights) else np.ones(self.codes.shape[1])
        draws = rng.multinomial(round(self.rows), weights / weights.sum())
        kept = np.flatnonzero(draws)
        codes = np.ascontiguousarray(self.codes[:, kept])
        counted = draws[kept].astype(np.uint32)
        return CodedTable(self.network, self.names, self.cards, codes, counted, float(counted.sum()))


def coded_table(rows: Any, weights: Any = None) -> CodedTable:
    """Read a table without gaps; the states of each column are those that occur."""
    columns = named_columns(rows)
    if columns is None or not len(columns):
        kind = type(rows).__name__
        raise EvidenceError(f"rows of type {kind} have no named columns; expected a frame, or columns by name")
    if isinstance(weights, str):
        if weights not in columns:
            raise EvidenceError(f"the rows have no column {weights!r} of weights{similar(weights, columns)}")
        weights, rows = columns[weights], without_column(rows, weights)
        columns = named_columns(rows) or {}
    net = Network.from_edges([], rows=rows, nodes=sorted(map(str, columns)))
    evidence = read(rows, [net.variable(name) for name in net])
    codes = {name: column.codes for name, column in evidence.columns.items()}
    if gaps := [name for name, one in codes.items() if one is None or (one < 0).any()]:
        raise EvidenceError(f"values are missing in {listed(gaps)}; discover needs complete rows, so drop the others")
    counted = np.empty(0, np.uint32) if weights is None else checked_weights(weights, evidence.rows)
    return _in_canonical_order(net, {name: np.asarray(one) for name, one in codes.items()}, counted)


def _in_canonical_order(net: Network, codes: dict[str, NDArray[Any]], weights: NDArray[Any]) -> CodedTable:
    """The table with columns by entropy, and equal rows together."""
    cards = {name: len(net.states(name)) for name in codes}
    names = sorted(codes, key=lambda name: (_surprise(codes[name], weights), cards[name], name))
    dtype = np.uint8 if max(cards.values()) <= 2**8 else np.uint16 if max(cards.values()) <= 2**16 else np.uint32
    table = np.stack([codes[name].astype(dtype) for name in names])
    total = float(weights.sum()) if len(weights) else float(table.shape[1])
    table, weights = _merged(table, weights)
    sizes = np.array([cards[name] for name in names], dtype=np.int64)
    return CodedTable(net, tuple(names), sizes, table, weights, total)


def _surprise(codes: NDArray[Any], weights: NDArray[Any]) -> float:
    """The entropy of a column, summed from its smallest count so that the order of states does not matter."""
    counts = np.sort(np.bincount(codes, weights if len(weights) else None))
    shares = counts[counts > 0] / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def _merged(codes: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Equal rows as one with the sum of their weights, in an order of their own; all rows where few are equal."""
    rows = codes.shape[1]
    step = max(1, rows // SAMPLE_ROWS)
    if not len(weights):
        counts = np.unique(_hashes(codes[:, ::step]), return_counts=True)[1]
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        distinct = len(counts) + once * (once - 1) / (2 * (twice + 1))  # Chao's estimate
        if distinct > MAX_SHARE_DISTINCT * rows and rows > SAMPLE_ROWS:
            return codes, weights
    _, first, places = np.unique(_hashes(codes), return_index=True, return_inverse=True)
    if (codes[:, first[places]] != codes).any():  # two different rows with one hash
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

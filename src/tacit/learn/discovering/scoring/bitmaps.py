"""Rows as bitmaps, one for each state of each column: 64 rows are counted by one AND and one population count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.learn.discovering.coded_table import CodedTable

WORD = 64  # bits
Words = NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Bitmaps:
    """The states of all columns as bits, and the weights of rows as binary digits.

    Rows come with the largest weight first. Plane b has bit b of every weight, so a count is the sum over planes of
    2**b times the rows in it; only the first rows have high digits, and `lengths` says how many words have any.
    """

    states: Words  # (states of all columns, words)
    firsts: NDArray[np.int64]  # of each column, the place of its first state
    planes: Words  # (digits, words)
    lengths: NDArray[np.int64]  # of each plane, in words

    @property
    def words(self) -> int:
        """How many words a count of one state reads."""
        return int(self.lengths.sum())


def bitmaps(table: CodedTable) -> Bitmaps | None:
    """A table as bitmaps; None where weights are fractions."""
    if table.weights.dtype.kind == "f":
        return None
    rows = table.codes.shape[1]
    weights = np.ones(rows, np.uint64) if not len(table.weights) else table.weights.astype(np.uint64)
    order = np.argsort(weights, kind="stable")[::-1]
    weights = weights[order]
    digits = max(1, int(weights[0]).bit_length())
    planes = [_packed((weights >> np.uint64(b)) & np.uint64(1)) for b in range(digits)]
    heavy = np.array([np.count_nonzero(weights >= 2**b) for b in range(digits)])
    states = []
    for codes, card in zip(table.codes, table.cards, strict=True):
        own = codes[order]
        states += [_packed(own == state) for state in range(card)]
    firsts = np.concatenate([[0], np.cumsum(table.cards)[:-1]])
    return Bitmaps(np.stack(states), firsts, np.stack(planes), -(-heavy // WORD))


def _packed(bits: NDArray[np.bool_] | Words) -> Words:
    """Bits as 64-bit words, with zeros behind the last one."""
    packed = np.packbits(bits.astype(np.bool_))
    return np.pad(packed, (0, -len(packed) % 8)).view(np.uint64)

"""Scores of families, a child with its parents, counted once each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.learn.discovering.coded_table import CodedTable
from tacit.learn.discovering.scoring.bitmaps import bitmaps
from tacit.learn.discovering.scoring.kinds import BDEU, K2, LIKELIHOOD

SCORES = ("bic", "aic", "bdeu", "k2")
EQUIVALENT_SAMPLES = 1.0  # the strength of the prior of BDeu
MAX_CELLS = 2**26  # of the table of one family
MAX_KEPT_SCORES = 2**25  # the oldest ones are counted again if need be
WORDS_PER_ROW = 2  # of bitmaps that are read in the time in which one row is counted; four with AVX-512
MIN_THREADED_ROWS = 8_000_000  # to count, below which one thread is faster
Parents = tuple[int, ...]  # ascending


@dataclass(frozen=True)
class Score:
    """A score by name: the kernel's kind of it, and what each free number costs."""

    kind: int
    penalty: float


def score_by_name(name: str, rows: float) -> Score:
    """One of `SCORES`, for so many rows."""
    if name not in SCORES:
        raise TacitError(f"score is {name!r}, expected one of {', '.join(map(repr, SCORES))}")
    if name in ("bdeu", "k2"):
        return Score(BDEU if name == "bdeu" else K2, 0.0)
    return Score(LIKELIHOOD, math.log(rows) / 2 if name == "bic" else 1.0)


LOG_LIKELIHOOD = Score(LIKELIHOOD, 0.0)


class FamilyScores:
    """The scores of all families that were asked for. A family is a child and its parents, as numbers of columns."""

    def __init__(self, table: CodedTable, score: Score, max_parents: int | None = None) -> None:
        self.table, self._score = table, score
        self.max_parents = len(table.names) if max_parents is None else max_parents
        self._alone = self._without_parents()
        self._bitmaps = bitmaps(table)
        self._words = 0 if self._bitmaps is None else self._bitmaps.words
        self._most_bitmaps = WORDS_PER_ROW * table.codes.shape[1] // self._words if self._words else -1
        self._extended: dict[tuple[int, Parents], Floats] = {}
        self.evaluated: list[tuple[int, Parents]] = []  # what was extended so far, in this order

    def family(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents."""
        if not len(parents):
            return float(self._alone[child])
        *rest, last = sorted(parents)
        return float(self.extended(child, tuple(rest))[last])

    def bound(self, child: int, parents: Sequence[int]) -> float:
        """What the score of a child with these parents is at most: its penalty, where it is a likelihood with one."""
        if self._score.kind != LIKELIHOOD:
            return np.inf
        return -self._score.penalty * float(self.table.cards[child] - 1) * self._configurations(tuple(parents))

    def graph(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a graph: the sum over its families."""
        return math.fsum(self.family(child, own) for child, own in enumerate(parents))

    def extended(self, child: int, parents: Parents) -> Floats:
        """The scores with each column as one more parent; minus infinity where it cannot be one."""
        key = child, parents
        if (scores := self._extended.get(key)) is None:
            scores = self._counted(child, parents)
            if len(self._extended) * len(scores) >= MAX_KEPT_SCORES:
                del self._extended[next(iter(self._extended))]
            self._extended[key] = scores
            self.evaluated.append(key)
        return scores

    def _counted(self, child: int, parents: Parents) -> Floats:
        scores = np.full(len(self.table.names), -np.inf)
        if len(parents) >= self.max_parents:
            return scores
        cards = self.table.cards
        others = np.array([y for y in range(len(cards)) if y != child and y not in parents], dtype=np.int64)
        if len(candidates := self.small_enough(child, parents, others)):
            scores[candidates] = self.of_candidates(child, parents, candidates)
            numbers = (cards[child] - 1) * self._configurations(parents) * cards[candidates]
            scores[candidates] -= self._score.penalty * numbers
        return scores

    def small_enough(self, child: int, parents: Parents, candidates: NDArray[np.int64]) -> NDArray[np.int64]:
        """The candidates whose tables, as one more parent, fit into memory."""
        cells = self._configurations(parents) * int(self.table.cards[child])
        return candidates[self.table.cards[candidates] <= MAX_CELLS // cells]

    def of_candidates(self, child: int, parents: Parents, candidates: NDArray[np.int64]) -> Floats:
        """Scores with some columns as one more parent, without penalties; they are not kept.

        Candidates with few states are counted by bitmaps, the others row by row.
        """
        cells = self._configurations(parents) * int(self.table.cards[child])
        scores = np.empty(len(candidates))
        few = cells * (self.table.cards[candidates] - 1) <= self._most_bitmaps
        if few.any():
            by_bitmaps = partial(self._by_bitmaps, (*parents, child))
            words = self._words * int((self.table.cards[candidates[few]] - 1).sum()) * cells
            scores[few] = _in_parts(by_bitmaps, candidates[few], words // WORDS_PER_ROW)
        if not few.all():
            by_rows = partial(self._by_rows, child, self.places((*parents, child)), cells)
            scores[~few] = _in_parts(by_rows, candidates[~few], self.table.codes.shape[1] * int((~few).sum()))
        return scores

    def _configurations(self, parents: Parents) -> int:
        return math.prod(int(self.table.cards[p]) for p in parents)

    def _by_bitmaps(self, family: Parents, candidates: NDArray[np.int64]) -> Floats:
        from tacit.learn.discovering.scoring.score_kernels import bitmap_scores

        bits, scores = self._bitmaps, np.empty(len(candidates))
        assert bits is not None
        columns = np.array(family, dtype=np.int64)
        kind, strength = self._score.kind, EQUIVALENT_SAMPLES
        bitmap_scores(
            bits.states, bits.firsts, bits.planes, bits.lengths, self.table.cards, columns, candidates, kind, strength,
            scores,
        )  # fmt: skip
        return scores

    def _by_rows(self, child: int, places: NDArray[np.int32], cells: int, candidates: NDArray[np.int64]) -> Floats:
        from tacit.learn.discovering.scoring.score_kernels import extended_scores

        table, scores = self.table, np.empty(len(candidates))
        card, cards = int(table.cards[child]), table.cards
        strength = EQUIVALENT_SAMPLES
        extended_scores(
            places, cells, card, table.codes, cards, candidates, table.weights, self._score.kind, strength, scores
        )
        return scores

    def places(self, columns: Parents) -> NDArray[np.int32]:
        """The states of some columns, the last one fastest, as one number for each row."""
        places = np.zeros(self.table.codes.shape[1], dtype=np.int32)
        for column in columns:
            places *= np.int32(self.table.cards[column])
            places += self.table.codes[column]
        return places

    def _without_parents(self) -> Floats:
        """The scores of all columns without parents."""
        weights = self.table.weights if len(self.table.weights) else None
        scores = np.empty(len(self.table.names))
        for i, (codes, card) in enumerate(zip(self.table.codes, self.table.cards, strict=True)):
            counts = np.bincount(codes, weights, minlength=int(card)).astype(np.float64)
            scores[i] = _of_counts(counts, self._score.kind) - self._score.penalty * (int(card) - 1)
        return scores


def _in_parts(run: Callable[[NDArray[np.int64]], Floats], candidates: NDArray[np.int64], rows: int) -> Floats:
    """Scores of all candidates, on several threads where that many rows have to be counted."""
    if rows < MIN_THREADED_ROWS or (count := machine.threads()) == 1:
        return run(candidates)
    with ThreadPoolExecutor(count) as pool:
        return np.concatenate(list(pool.map(run, np.array_split(candidates, count))))


def _of_counts(counts: Floats, kind: int) -> float:
    """The score of one row of counts, without a penalty: the kernel's for a child without parents."""
    present = counts[counts > 0]
    total = float(present.sum())
    if kind == LIKELIHOOD:
        return math.fsum(present * np.log(present)) - total * math.log(total)
    entry = 1.0 if kind == K2 else EQUIVALENT_SAMPLES / len(counts)
    gamma: Callable[[float], float] = math.lgamma
    row = entry * len(counts)
    return math.fsum(gamma(entry + count) - gamma(entry) for count in present) - gamma(row + total) + gamma(row)

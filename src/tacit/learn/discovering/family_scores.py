"""Scores of families, a child with its parents, counted once each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.learn.discovering.coded_table import CodedTable
from tacit.learn.discovering.kinds import BDEU, K2, LIKELIHOOD

SCORES = ("bic", "aic", "bdeu", "k2")
EQUIVALENT_SAMPLES = 1.0  # the strength of the prior of BDeu
MAX_CELLS = 2**26  # of the table of one family
MIN_THREADED_WORK = 2_000_000  # rows times candidates, below which one thread is faster
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


class FamilyScores:
    """The scores of all families that were asked for. A family is a child and its parents, as numbers of columns."""

    def __init__(self, table: CodedTable, score: str, max_parents: int | None = None) -> None:
        self.table, self._score = table, score_by_name(score, table.rows)
        self.max_parents = len(table.names) if max_parents is None else max_parents
        self._alone = self._without_parents()
        self._extended: dict[tuple[int, Parents], Floats] = {}

    def family(self, child: int, parents: Sequence[int]) -> float:
        """The score of a child with these parents."""
        if not len(parents):
            return float(self._alone[child])
        *rest, last = sorted(parents)
        return float(self.extended(child, tuple(rest))[last])

    def graph(self, parents: Sequence[Sequence[int]]) -> float:
        """The score of a graph: the sum over its families."""
        return math.fsum(self.family(child, own) for child, own in enumerate(parents))

    def extended(self, child: int, parents: Parents) -> Floats:
        """The scores with each column as one more parent; minus infinity where it cannot be one."""
        key = child, parents
        if (scores := self._extended.get(key)) is None:
            scores = self._extended[key] = self._counted(child, parents)
        return scores

    def _counted(self, child: int, parents: Parents) -> Floats:
        scores = np.full(len(self.table.names), -np.inf)
        if len(parents) >= self.max_parents:
            return scores
        cards = self.table.cards
        configurations = math.prod(int(cards[p]) for p in parents)
        cells = configurations * int(cards[child])
        may = [y for y in range(len(cards)) if y != child and y not in parents and cells * int(cards[y]) <= MAX_CELLS]
        candidates = np.array(may, dtype=np.int64)
        if len(candidates):
            scores[candidates] = self._of_candidates(child, parents, cells, candidates)
            numbers = (cards[child] - 1) * configurations * cards[candidates]
            scores[candidates] -= self._score.penalty * numbers
        return scores

    def _of_candidates(self, child: int, parents: Parents, cells: int, candidates: NDArray[np.int64]) -> Floats:
        places = self._places(child, parents)
        work = len(places) * len(candidates)
        count = machine.threads() if work >= MIN_THREADED_WORK else 1
        if count == 1:
            return self._run(child, places, cells, candidates)
        with ThreadPoolExecutor(count) as pool:
            parts = pool.map(
                lambda part: self._run(child, places, cells, part), np.array_split(candidates, min(count * 4, 16))
            )
            return np.concatenate(list(parts))

    def _run(self, child: int, places: NDArray[np.int32], cells: int, candidates: NDArray[np.int64]) -> Floats:
        from tacit.learn.discovering.score_kernels import extended_scores

        table, scores = self.table, np.empty(len(candidates))
        card, cards = int(table.cards[child]), table.cards
        strength = EQUIVALENT_SAMPLES
        extended_scores(
            places, cells, card, table.codes, cards, candidates, table.weights, self._score.kind, strength, scores
        )
        return scores

    def _places(self, child: int, parents: Parents) -> NDArray[np.int32]:
        """The states of the parents and the child, which comes last, as one number for each row."""
        places = np.zeros(self.table.codes.shape[1], dtype=np.int32)
        for column in (*parents, child):
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

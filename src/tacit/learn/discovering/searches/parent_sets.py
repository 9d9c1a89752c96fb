"""Sets of parents worth considering: every set that was scored, unless a better one lies within it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.scoring.family_scores import FamilyScores

WORD = 64  # bits
Sets = NDArray[np.uint64]  # (sets, words): column p is bit p % 64 of word p // 64


class ParentSets:
    """For every column, its sets of parents with their scores, the best one first.

    The sets of column c are at places `begins[c]` to `begins[c + 1]`. They obey the constraints, and the required
    parents alone are always one of them.
    """

    def __init__(self, scores: FamilyScores, limits: Constraints) -> None:
        self._families, self._limits = scores, limits
        self._read = 0  # families that were looked at already
        columns = range(len(limits.allowed))
        required = [np.flatnonzero(limits.required[:, child]).tolist() for child in columns]
        self._required = [_as_set(own, len(columns)) for own in required]
        self._forbidden = [_as_set(np.flatnonzero(~limits.allowed[:, child]), len(columns)) for child in columns]
        self._own: list[tuple[Sets, Floats]] = [
            (self._required[child][None], np.array([scores.family(child, required[child])])) for child in columns
        ]
        self.sets, self.scores, self.begins = self._joined()

    def refresh(self) -> None:
        """Take in all families that have been scored since."""
        from tacit.learn.discovering.searches.order_kernels import undominated

        fresh: dict[int, list[tuple[Sets, Floats]]] = {}
        for child, parents in self._families.evaluated[self._read :]:
            fresh.setdefault(child, []).append(self._improvements(child, parents))
        self._read = len(self._families.evaluated)
        for child, parts in fresh.items():
            sets = np.concatenate([self._own[child][0], *(sets for sets, _ in parts)])
            scores = np.concatenate([self._own[child][1], *(scores for _, scores in parts)])
            best_first = np.lexsort((*sets.T, -scores))
            sets, scores = sets[best_first], scores[best_first]
            kept = undominated(sets)
            self._own[child] = sets[kept], scores[kept]
        self.sets, self.scores, self.begins = self._joined()

    def graph(self, order: Sequence[int]) -> Mask:
        """The best graph of an order: every column with its best parents among those before it."""
        from tacit.learn.discovering.searches.order_kernels import first_subset

        edges = np.zeros_like(self._limits.required)
        seen = np.zeros(self.sets.shape[1], np.uint64)
        for child in order:
            place = first_subset(self.sets, self.begins[child], self.begins[child + 1], seen)
            edges[_members(self.sets[place]), child] = True
            seen |= _as_set([child], len(edges))
        return edges

    def _improvements(self, child: int, parents: Sequence[int]) -> tuple[Sets, Floats]:
        """The sets of one more column than `parents` that are better than these, and obey the constraints."""
        scores = self._families.extended(child, tuple(parents))
        better = np.flatnonzero(self._limits.allowed[:, child] & (scores > self._families.family(child, parents)))
        base = _as_set(parents, len(scores))
        sets = np.repeat(base[None], len(better), axis=0)
        sets[np.arange(len(better)), better // WORD] |= np.uint64(1) << (better % WORD).astype(np.uint64)
        required, forbidden = self._required[child], self._forbidden[child]
        legal = ((sets & required == required) & (sets & forbidden == 0)).all(axis=1)
        return sets[legal], scores[better[legal]]

    def _joined(self) -> tuple[Sets, Floats, NDArray[np.int64]]:
        begins = np.cumsum([0, *(len(scores) for _, scores in self._own)])
        return np.concatenate([s for s, _ in self._own]), np.concatenate([s for _, s in self._own]), begins


def _as_set(members: Sequence[int] | NDArray[np.integer], size: int) -> Sets:
    """Columns as one row of words."""
    words = np.zeros(-(-size // WORD), np.uint64)
    for member in members:
        words[member // WORD] |= np.uint64(1) << np.uint64(member % WORD)
    return words


def _members(words: Sets) -> NDArray[np.int64]:
    """The columns of a set."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))

"""The graph with the best score of all: dynamic programming over sets of columns (Silander and Myllymäki)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.learn.discovering.constraints import Constraints, Mask
from tacit.learn.discovering.scoring.family_scores import FamilyScores

MAX_COLUMNS = 16  # 2**15 families for each of them


def best_graph(scores: FamilyScores, limits: Constraints) -> Mask:
    """The best graph, with certainty; an error where there are too many columns."""
    size = len(scores.table.names)
    if size > MAX_COLUMNS:
        limit = f"search='exact' looks at all sets of columns, of at most {MAX_COLUMNS} columns"
        raise TooLargeError(f"{limit}; the rows have {size}; search='orders' comes close for many")
    chosen = [_best_subsets(scores, limits, child) for child in range(size)]
    last = _best_sinks([best for best, _ in chosen])
    edges = np.zeros((size, size), dtype=bool)
    left = 2**size - 1
    while left:
        child = int(last[left])
        left ^= 1 << child
        subset = int(chosen[child][1][left])
        edges[[p for p in range(size) if subset >> p & 1], child] = True
    return edges


def _best_subsets(scores: FamilyScores, limits: Constraints, child: int) -> tuple[Floats, NDArray[np.int64]]:
    """For every set of columns, as bits: the best score of the child with parents in it, and these parents."""
    size = len(scores.table.names)
    required = sum(1 << int(p) for p in np.flatnonzero(limits.required[:, child]))
    allowed = sum(1 << int(p) for p in np.flatnonzero(limits.allowed[:, child]))
    best, parents = np.full(2**size, -np.inf), np.arange(2**size)
    least = scores.family(child, [p for p in range(size) if required >> p & 1])
    for subset in range(2**size):
        if not subset & ~allowed and subset & required == required:
            members = [p for p in range(size) if subset >> p & 1]
            if len(members) <= scores.max_parents and scores.bound(child, members) >= least:
                best[subset] = scores.family(child, members)
    for column in range(size):  # from smaller sets to larger ones, one column at a time
        with_it = np.flatnonzero(np.arange(2**size) >> column & 1)
        without = with_it ^ (1 << column)
        better = best[without] >= best[with_it]
        best[with_it[better]], parents[with_it[better]] = best[without[better]], parents[without[better]]
    return best, parents


def _best_sinks(best: list[Floats]) -> NDArray[np.int64]:
    """For every set of columns: the one that comes last in the best graph of this set."""
    size = len(best)
    total, last = np.full(2**size, -np.inf), np.zeros(2**size, dtype=np.int64)
    total[0] = 0.0
    for subset in range(1, 2**size):
        for child in range(size):
            rest = subset ^ (1 << child)
            if subset >> child & 1 and total[rest] + best[child][rest] > total[subset]:
                total[subset], last[subset] = total[rest] + best[child][rest], child
    return last

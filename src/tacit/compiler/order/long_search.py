"""A long search for problems whose plans are dear: compiled annealing from many starts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.order.tree import ROWS, STEP_COST, WRITE_COST, Path, Problem, Tree

WORD = 64
COOL = 1e-7  # where annealing ends, relative to the cost
SHORT, LONG = 500_000, 1_000_000  # moves: of each start, and of each run from the best of them
FIRST_HEATS = (0.03, 0.1)  # where annealing of a start begins; the better result counts
HEATS = (0.03, 0.1, 0.3, 0.01)  # of a round of runs, each from the best so far
KEPT, ROUNDS = 3, 4  # the best starts that are followed up, and how often


def long_search(problem: Problem, paths: Sequence[Path], enough: float) -> tuple[float, Path]:
    """The cheapest plan that annealing makes of some, and its cost, of which a certain one ends the search.

    The problem has no axis of hard evidence.
    """
    seeds = count()
    starts = [min(annealed(problem, path, SHORT, heat, next(seeds)) for heat in FIRST_HEATS) for path in paths]
    best = sorted(starts)[:KEPT]
    for _, k in product(range(ROUNDS), range(len(best))):
        if min(best)[0] <= enough:
            break
        for heat in HEATS:
            best[k] = min(best[k], annealed(problem, best[k][1], LONG, heat, next(seeds)))
    return min(best)


def annealed(problem: Problem, path: Path, moves: int, heat: float, seed: int) -> tuple[float, Path]:
    """What annealing makes of a plan: its cost, and the plan. The problem has no axis of hard evidence."""
    from tacit.compiler.order.anneal_kernels import rotate  # loads numba

    assert not problem.hard, "hard evidence is indexed where tables meet it"
    tree = Tree(problem, path)
    words = -(-len(problem.sizes) // WORD)
    nodes = (
        np.array(tree.left),
        np.array(tree.right),
        np.array([_words(mask, words) for mask in tree.out]),
        np.array(tree.soft),
    )
    sizes = np.ones((words, WORD))
    sizes.flat[: len(problem.sizes)] = problem.sizes
    rates, heats = np.array([ROWS, WRITE_COST, STEP_COST]), np.array([heat, COOL])
    rotate(nodes, _words(problem.keep, words), sizes, rates, moves, heats, np.array([2 * seed + 1], dtype=np.uint64))
    tree.left, tree.right = nodes[0].tolist(), nodes[1].tolist()
    path = tree.path()
    return Tree(problem, path).total, path


def _words(mask: int, words: int) -> NDArray[np.uint64]:
    """A set of axes as words, the first axes first."""
    return np.frombuffer(mask.to_bytes(8 * words, "little"), dtype="<u8").astype(np.uint64)

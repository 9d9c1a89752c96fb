"""Sweep orders: axes one after the other along the longest way through the graph of the factors."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from tacit.compiler.tree import Problem, bits


def sweep_order(problem: Problem) -> list[int]:
    """The axes to be summed in reverse Cuthill-McKee order, which keeps what is open at a time narrow."""
    live = ~(problem.hard | problem.keep)
    present = 0
    rows: list[int] = []
    columns: list[int] = []
    for mask in problem.masks:
        axes = bits(mask & live)
        present |= mask & live
        rows += [a for a in axes for _ in axes]
        columns += axes * len(axes)
    count = len(problem.sizes)
    graph = csr_array(coo_array((np.ones(len(rows), dtype=np.int8), (rows, columns)), shape=(count, count)))
    order = reverse_cuthill_mckee(graph, symmetric_mode=True)
    return [int(axis) for axis in order if present >> int(axis) & 1]

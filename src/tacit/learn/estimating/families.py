"""Counts of the states of families: by NumPy, or for many rows by a kernel, with the same digits."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base import machine
from tacit.base.floats import Floats
from tacit.base.jit import is_compiled
from tacit.learn.estimating.tiles import LANES
from tacit.query.network import Network

Ints = NDArray[np.integer]

ROWS_PER_BLOCK = 2**16  # that a thread counts at a time
ROWS_PER_NUMPY_BLOCK = 2**14
KERNEL = "tacit.learn.estimating.count_kernels"
# Rows, times families, from which the kernel repays what it takes: to load, and to compile. It is four times as fast.
LOADING_WORK, COMPILING_WORK = 30_000_000, 300_000_000


class Families:
    """The tables of some nodes, one after the other, and the `variables` that they are about."""

    def __init__(self, net: Network, names: Sequence[str]) -> None:
        self.variables = list(dict.fromkeys((*names, *(parent for name in names for parent in net.parents(name)))))
        self.place = {name: i for i, name in enumerate(self.variables)}
        self.members = [[self.place[n] for n in (*net.parents(name), name)] for name in names]
        self.shapes = [net.table(name).shape for name in names]

    def counts(self, codes: Sequence[NDArray[Any]], weights: Floats, before: int = 0) -> list[Floats]:
        """The weight of the rows in each entry of each table, or their number; `before` is how many came before."""
        first = np.cumsum([0, *(math.prod(shape) for shape in self.shapes)])
        members, ends = np.concatenate(self.members), np.cumsum([len(family) for family in self.members])
        sizes: Ints = np.concatenate(self.shapes)
        rows = len(codes[0])
        threads = min(machine.threads(), math.ceil(rows / ROWS_PER_BLOCK))
        tables, count_families = np.zeros((threads, LANES, first[-1])), count_for((before + rows) * len(self.shapes))

        def count(thread: int) -> None:
            for start in range(thread * ROWS_PER_BLOCK, rows, threads * ROWS_PER_BLOCK):
                block = slice(start, min(start + ROWS_PER_BLOCK, rows))
                some = np.stack([states[block] for states in codes])
                count_families(some, weights[block], members, sizes, ends, first[:-1], tables[thread])

        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(count, range(threads)))
        total = tables.sum(axis=(0, 1))
        return [total[a:b].reshape(shape) for a, b, shape in zip(first, first[1:], self.shapes, strict=False)]

    def first_impossible(self, name: str, table: Floats, codes: Sequence[NDArray[Any]], weights: Floats) -> int:
        """The first row that weighs something and whose entry of a table is 0."""
        entries = table[tuple(codes[m] for m in self.members[self.place[name]])]
        return int(((entries == 0) & (weights > 0)).argmax())


def count_for(work: int) -> Callable[..., None]:
    """The function to count with, given the number of rows times families."""
    if KERNEL in sys.modules or work >= (LOADING_WORK if is_compiled(f"{KERNEL}.count_families") else COMPILING_WORK):
        from tacit.learn.estimating.count_kernels import count_families  # loads numba

        return count_families  # type: ignore[no-any-return]
    return count_by_numpy


def count_by_numpy(
    codes: Ints, weights: Floats, members: Ints, sizes: Ints, ends: Ints, first: Ints, totals: Floats
) -> None:
    """Add the weights of all rows to the entries of all tables, or 1 for each if there are none.

    `codes` (variables, rows) are states. A family is a run of `members`, the axes of its table with their `sizes`, up
    to its place in `ends`; its table begins at `first`. `totals` is (lanes, entries), of which one is used.
    """
    families = list(zip(np.split(members, ends[:-1]), np.split(sizes, ends[:-1]), first.tolist(), strict=True))
    for start in range(0, codes.shape[1], ROWS_PER_NUMPY_BLOCK):
        stop = start + ROWS_PER_NUMPY_BLOCK
        wide = codes[:, start:stop].astype(np.intp)
        for axes, shape, begin in families:
            place: Any = wide[axes[0]]
            for member, size in zip(axes[1:], shape[1:], strict=True):
                place = place * size + wide[member]
            if len(weights):  # one after the other, as the kernel does: sums of weights have the same digits
                with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
                    np.add.at(totals[0], begin + place, weights[start:stop])
            else:
                counts = np.bincount(place, minlength=int(shape.prod()))
                totals[0, begin : begin + len(counts)] += counts

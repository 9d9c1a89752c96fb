"""How often the states of families occur together: by NumPy, or for many rows by a kernel, which counts the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.base.jit import is_compiled

Ints = NDArray[np.integer]
Count = Callable[..., None]

BLOCK = 2**14  # rows that NumPy looks at at a time
KERNEL = "tacit.learn.estimating.count_kernels"
# Rows, times families, from which the kernel repays what it takes: to load, and to compile. It is four times as fast.
LOADED, COMPILED = 30_000_000, 300_000_000


def count_for(work: int) -> Count:
    """The function that counts, given how many rows there are times how many families."""
    if KERNEL in sys.modules or work >= (LOADED if is_compiled(f"{KERNEL}.count_families") else COMPILED):
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
    for start in range(0, codes.shape[1], BLOCK):
        wide = codes[:, start : start + BLOCK].astype(np.intp)
        for own, shape, begin in families:
            place: Any = wide[own[0]]
            for member, size in zip(own[1:], shape[1:], strict=True):
                place = place * size + wide[member]
            if len(weights):  # one after the other, as the kernel does: sums of weights have the same digits
                with np.errstate(over="ignore"):  # an infinite sum is refused by those who ask for it
                    np.add.at(totals[0], begin + place, weights[start : start + BLOCK])
            else:
                counts = np.bincount(place, minlength=int(shape.prod()))
                totals[0, begin : begin + len(counts)] += counts

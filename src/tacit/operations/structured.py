"""Sums of products of single entries: what structured elimination leaves of a part of a network.

Where a contraction runs over whole tables, this operation is a list of instructions on numbers. It stands for as many
contractions as the elimination had steps, without the entries that are 0 or that come out equal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.operations.base import Axes, Operation, Setting


@dataclass(frozen=True, slots=True, eq=False)
class Structured(Operation):
    """A list of instructions, each the sum (or the largest) of products of two numbers.

    References count the entries of the inputs, one input after the other, then the literals, then the results of the
    instructions. The terms of instruction k are the rows of `terms` from `starts[k]` on: pairs of references. Of a
    *linear* instruction, the first of each pair is the same for all rows (a literal, or an entry of an input without
    rows) and the second is not; of any other, neither is, or the whole operation is without rows. Literals are
    `mantissas` * 2**`exponents`, since products of many tables may leave the range of floats; the first one is 1.
    `index`, over `axes`, refers to the entries of the result, ZERO and ONE among them.

    If inputs were rescaled, every product that adds to an entry of the result has one factor of each of them, so that
    their exponents add up.
    """

    inputs: tuple[int, ...]
    mantissas: NDArray[np.float64]
    exponents: NDArray[np.int64]
    starts: NDArray[np.int64]
    terms: NDArray[np.int64]
    linear: NDArray[np.bool_]
    index: NDArray[np.int64]
    axes: Axes
    largest: bool = False

    def multiply_adds(self, setting: Setting) -> int:
        return len(self.terms)

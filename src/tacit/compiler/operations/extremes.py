"""Extremes of conditional probabilities: how large, and how small, P(x | b) can be for any possible state b.

A posterior P(x | evidence) is a mixture of the P(x | b) over the states b of variables beside it, whatever is beyond
these. So their extremes bound it. All of it is free of scale: each b may be multiplied by a number of its own.

`Corners` makes a table of these bounds, by which the bounds of one part of a network enter those of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.base.errors import TacitError
from tacit.compiler.operations.arrangement import View
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Setting
from tacit.compiler.operations.operation import Operation, Target

PARTS = 3  # the smallest, the largest, the mixture
LEAST_CORNER = 1e-6  # of the weight of a corner, so that none is left out
NO_DERIVATIVES = "an interval has no derivatives: it is taken from the extremes of a table"


@dataclass(frozen=True, slots=True)
class Extremes(Operation):
    """Of a table T(x, b), the smallest and the largest T(x, b) / sum T(., b), and the mixture of all b by their weight.

    They are the entries of the first axis, before those of x, the axes in `of`; other axes are kept. States b whose
    entries are all 0 are left out; where that are all of them, the smallest is 1, the largest 0, and so is the mixture.
    With a `side`, an axis of two entries, T lies between a low table and a high one, and so do the ratios; the mixture
    is that of the high one.
    """

    inputs: tuple[int]
    of: Axes
    axes: Axes
    side: Axis | None = None

    @property
    def detail(self) -> str:
        return f"v{self.inputs[0]} of {' '.join(self.of)}"

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        own = set(setting.axes[0])
        assert setting.sizes[self.axes[0]] == PARTS, "the parts of extremes"
        assert self.axes[1 : 1 + len(self.of)] == self.of, "the axes of extremes"
        assert own >= set(self.axes[1:]), "the axes of extremes"
        assert self.side is None or (self.side in own and setting.sizes[self.side] == 2), "low and high"

    def union(self, setting: Setting) -> Axes:
        return setting.axes[0]

    def multiply_adds(self, setting: Setting) -> int:
        return PARTS * setting.size(setting.axes[0])

    def live(self, setting: Setting) -> int:
        return PARTS * setting.size(setting.axes[0])  # ratios of all entries, for libraries of arrays

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _ExtremesStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.extremes(self, setting)

    def arranged(self, setting: Setting) -> Axes:
        """The axes of T in the order of the rules: the side, those of x, those that are kept, and those of b."""
        first = (*([self.side] if self.side else []), *self.axes[1:])
        return (*first, *(a for a in setting.axes[0] if a not in first))

    def shape(self, setting: Setting) -> list[int]:
        """The lengths of these: how many sides, states of x, states that are kept, and states b."""
        kept = self.axes[1 + len(self.of) :]
        sizes = [1 + (self.side is not None), setting.size(self.of), setting.size(kept)]
        return [*sizes, setting.size(setting.axes[0]) // math.prod(sizes)]


class _ExtremesStep(ArrayStep):
    def __init__(self, operation: Extremes, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, (self._source,), (self._batched,) = xp, operation.inputs, setting.batched
        self._view = View(xp, setting, setting.axes[0], self._batched, operation.arranged(setting))
        rows = [-1] * self._batched
        self._shape, self._result = [*operation.shape(setting), *rows], [*setting.shape(operation.axes), *rows]
        _, self._states, self._kept, _ = operation.shape(setting)

    def forward(self, frame: Frame) -> Value:
        xp = self._xp
        tables = xp.reshape(self._view.aligned(frame.values[self._source].array), self._shape)
        low, high = tables[0], tables[-1]  # (x, kept, b, rows)
        every = range(self._states)
        smallest = [xp.smallest(self._ratio(low[x], high, x, 1.0), 1) for x in every]
        largest = [xp.largest(self._ratio(high[x], low, x, 0.0), 1) for x in every]
        weights = [xp.sum(high[x], (1,)) for x in every]
        total = sum(weights[1:], start=weights[0])
        mixture = [xp.ratio(weight, total, 0.0) for weight in weights]
        numbers = [xp.reshape(number, [self._kept, -1]) for number in (*smallest, *largest, *mixture)]
        array = xp.reshape(xp.cast(xp.concatenate(numbers)), self._result)
        return Value(array, floor=xp.extremes_floor(frame.floor(self._source)) if self._batched else None)

    def _ratio(self, own: Array, others: Array, x: int, otherwise: float) -> Array:
        """The share of an entry beside the entries of other states, (kept, b, rows)."""
        total = own
        for other in range(self._states):
            total = total if other == x else total + others[other]
        return self._xp.ratio(own, total, otherwise)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        raise TacitError(NO_DERIVATIVES)


@dataclass(frozen=True, slots=True)
class Corners(Operation):
    """A table R(s, x) from the extremes of x: every distribution that they allow is a mixture of its rows, but scaled.

    Distributions p with p(x) >= low(x) are a simplex, and its corners are low + (1 - sum low) at one state s each.
    Rows are scaled so that they add up to the mixture. Those of what is impossible are 0. `slack` is by how much a low
    number may be too large, as a part of it. Axes of the extremes that were kept are kept here, too.
    """

    inputs: tuple[int]
    slack: float
    axes: Axes

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert setting.sizes[setting.axes[0][0]] == PARTS, "corners are made of extremes"
        assert self.axes[1:] == setting.axes[0][1:], "the axes of corners"

    def multiply_adds(self, setting: Setting) -> int:
        return setting.size(self.axes)

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _CornersStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.corners(self, setting)


class _CornersStep(ArrayStep):
    def __init__(self, operation: Corners, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, (self._source,), rows = xp, operation.inputs, [-1] * setting.batched[0]
        states = setting.sizes[operation.axes[0]]
        self._shape = [PARTS, states, setting.size(operation.axes) // states**2, *rows]
        self._result, self._over = [*setting.shape(operation.axes), *rows], tuple(range(len(operation.axes)))
        self._at_corner = xp.constant(np.eye(states).reshape([states, states, 1, *[1] * len(rows)]))
        self._whole, self._batched = 1 + operation.slack, bool(rows)

    def forward(self, frame: Frame) -> Value:
        xp, parts = self._xp, self._xp.reshape(frame.values[self._source].array, self._shape)
        low, mixture = parts[0], parts[2]  # (x, kept, rows)
        left = xp.sum(low, (0,)) * -1.0 + self._whole
        left = xp.maximum(left, left * 0.0)
        least = xp.sum(mixture, (0,)) * LEAST_CORNER  # 0 where all is impossible
        weights = xp.maximum(mixture - low, least + low * 0.0)
        corners = low[None] + self._at_corner * left  # (s, x, kept, rows)
        array = xp.reshape(corners * weights[:, None], self._result)
        if not self._batched:
            return Value(array)
        return Value(array, floor=xp.rescaled_floor(frame.floor(self._source), array, self._over))

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        raise TacitError(NO_DERIVATIVES)

"""Extremes of conditional probabilities: how large, and how small, P(x | b) can be for any possible state b.

A posterior P(x | evidence) is a mixture of the P(x | b) over the states b of variables beside it, whatever is beyond
these. So their extremes bound it. All of it is free of scale: each b may be multiplied by a number of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tacit.base.errors import TacitError
from tacit.compiler.operations.arrangement import View
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Key, Setting
from tacit.compiler.operations.operation import Operation, Support, Target

PARTS = 3  # the smallest, the largest, the mixture
NO_DERIVATIVES = "an interval has no derivatives: it is taken from the extremes of a table"


@dataclass(frozen=True, slots=True)
class Extremes(Operation):
    """Of a table T(x, b), the smallest and the largest T(x, b) / sum T(., b), and the mixture of all b by their weight.

    They are the entries of the first axis, before the one of x. States b whose entries are all 0 are left out; where
    that are all of them, the smallest is 1, the largest 0, and so is the mixture. With a `side`, an axis of two
    entries, T lies between a low table and a high one, and so do the ratios; the mixture is that of the high one.
    """

    inputs: tuple[int]
    axes: Axes  # of the three parts, and of x
    side: Axis | None = None

    @property
    def detail(self) -> str:
        return f"v{self.inputs[0]} of {self.axes[1]}"

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        parts, own = self.axes
        assert setting.sizes[parts] == PARTS, "the parts of extremes"
        assert own in setting.axes[0], "the axis of extremes"
        assert self.side is None or (self.side in setting.axes[0] and setting.sizes[self.side] == 2), "low and high"

    def union(self, setting: Setting) -> Axes:
        return setting.axes[0]

    def multiply_adds(self, setting: Setting) -> int:
        return PARTS * setting.size(setting.axes[0])

    def live(self, setting: Setting) -> int:
        return PARTS * setting.size(setting.axes[0])  # ratios of all entries, for libraries of arrays

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        return Support.unknown(setting.shape(self.axes))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _ExtremesStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.extremes(self, setting)

    def arranged(self, setting: Setting) -> Axes:
        """The axes of T in the order of the rules: the side, x, and then those of b."""
        first = (*([self.side] if self.side else []), self.axes[1])
        return (*first, *(a for a in setting.axes[0] if a not in first))


class _ExtremesStep(ArrayStep):
    def __init__(self, operation: Extremes, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, (self._source,), (rows,) = xp, operation.inputs, setting.batched
        order = operation.arranged(setting)
        self._view = View(xp, setting, setting.axes[0], rows, order)
        self._states, self._sided = setting.sizes[operation.axes[1]], operation.side is not None
        others = setting.size(order[1 + self._sided :])
        self._shape = [1 + self._sided, self._states, others, *[-1] * rows]
        self._result = [PARTS, self._states, *[-1] * rows]
        self._rows = rows

    def forward(self, frame: Frame) -> Value:
        xp, value = self._xp, frame.values[self._source]
        tables = xp.reshape(self._view.aligned(value.array), self._shape)  # (side, x, b, rows)
        low, high = tables[0], tables[-1]
        every = range(self._states)
        smallest = [xp.smallest(self._ratio(low[x], high, x, 1.0), 0) for x in every]
        largest = [xp.largest(self._ratio(high[x], low, x, 0.0), 0) for x in every]
        weights = [xp.sum(high[x], (0,)) for x in every]
        total = sum(weights[1:], start=weights[0])
        mixture = [xp.ratio(weight, total, 0.0) for weight in weights]
        numbers = [xp.reshape(number, [1, -1]) for number in (*smallest, *largest, *mixture)]
        array = xp.reshape(xp.cast(xp.concatenate(numbers)), self._result)
        return Value(array, floor=xp.extremes_floor(frame.floor(self._source)) if self._rows else None)

    def _ratio(self, own: Array, others: Array, x: int, otherwise: float) -> Array:
        """The share of an entry beside the entries of other states, (b, rows)."""
        total = own
        for other in range(self._states):
            total = total if other == x else total + others[other]
        return self._xp.ratio(own, total, otherwise)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        raise TacitError(NO_DERIVATIVES)

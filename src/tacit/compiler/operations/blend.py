"""Shares and sums: what the flattening of more than two tables takes besides selections between two.

Of k tables with thresholds T_1, ..., T_(k-1), in the order in which tests come to hold, table i weighs s_i - s_(i+1),
where s_j is the sigmoid of threshold j. Given that one of the first j + 1 tables is meant, table j weighs (1 - e) s_j,
where e = exp(-gamma |T_(j+1) - T_j|) tells how much its sigmoid and the next one overlap. So selections between two mix
in one table after the other: F_j = select(T_j; (1 - e) t_j + e F_(j-1), F_(j-1)), and nothing is ever subtracted. With
tests, e is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.compiler.operations.arrangement import aligned, spread, views
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value, total_exponent
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Key, Setting
from tacit.compiler.operations.operation import Operation, Support, Target


@dataclass(frozen=True, slots=True)
class Share(Operation):
    """A table t in the sum (1 - e) t + e F, where e = exp(-gamma (upper - lower)), or 0 with tests.

    That is (1 - e) t itself if it is the table's `own` share; else e, for every entry of the table, and 0 where it is
    nothing beside the entry.
    """

    node: str
    inputs: tuple[int, int, int]  # the lower and the upper threshold, the table
    own: bool
    axes: Axes

    @property
    def detail(self) -> str:
        return f"{self.node}: {'own' if self.own else 'rest'} {' '.join(f'v{i}' for i in self.inputs)}"

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        lower, upper, table = map(set, setting.axes)
        assert lower == upper <= table == set(self.axes), "the thresholds of a share"
        assert not any(setting.batched), "shares depend on numbers alone"

    def multiply_adds(self, setting: Setting) -> int:
        return setting.size(self.axes)

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        nothing = np.zeros(setting.shape(self.axes), dtype=np.bool_)
        nonzero = spread(inputs[2].nonzero, setting.axes[2], self.axes) if self.own else ~nothing
        return Support(nonzero, nothing)

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _ShareStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.shares(self, setting)


class _ShareStep(ArrayStep):
    def __init__(self, operation: Share, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, self._node, self._inputs, self._own = xp, operation.node, operation.inputs, operation.own
        self._batched = any(setting.batched)  # where tables count as rows, so that derivatives by them do
        self._views = views(xp, setting, operation.axes)
        self._over = tuple(k for k, a in enumerate(operation.axes) if a not in setting.axes[0])

    def forward(self, frame: Frame) -> Value:
        lower, upper, table = aligned(self._views, frame, self._inputs)
        gamma = frame.gamma(self._node)
        if gamma is None:
            share = table if self._own else table * 0.0
        else:
            x = gamma * (upper - lower)
            e, rest = self._xp.decays(x if frame.through else self._xp.fixed(x), table)
            share = rest * table if self._own else self._xp.noticed(e, table)
        return Value(share, floor=self._xp.likelihood_floor(share) if self._batched else None)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        frame, gamma = backward.frame, backward.frame.gamma(self._node)
        lower, upper, table = aligned(self._views, frame, self._inputs)
        if gamma is None:
            if self._own:
                backward.add(self._inputs[2], self._views[2].back(adjoint))
            return
        e, rest = self._xp.decays(gamma * (upper - lower), table)
        if self._own:
            backward.add(self._inputs[2], self._views[2].back(adjoint * rest))
        if not frame.through:
            return
        by_e = (adjoint * (table if self._own else -1.0)).sum(axis=self._over, keepdims=True)
        by_x = by_e * e  # of x = gamma (upper - lower)
        backward.add(self._inputs[0], self._views[0].back(by_x * -gamma))
        backward.add(self._inputs[1], self._views[1].back(by_x * gamma))
        backward.add_slope(self._node, (by_x * (upper - lower)).sum())


@dataclass(frozen=True, slots=True)
class Add(Operation):
    """The sum of two values over the same axes, neither of which was rescaled."""

    inputs: tuple[int, int]
    axes: Axes

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert {frozenset(own) for own in setting.axes} == {frozenset(self.axes)}, "the axes of a sum"

    def multiply_adds(self, setting: Setting) -> int:
        return setting.size(self.axes)

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        a, b = (spread(known.nonzero, own, self.axes) for known, own in zip(inputs, setting.axes, strict=True))
        return Support(np.asarray(a | b), np.zeros(setting.shape(self.axes), dtype=np.bool_))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        return _AddStep(self, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.added(self, setting)


class _AddStep(ArrayStep):
    def __init__(self, operation: Add, setting: Setting, xp: ArrayLibrary) -> None:
        self._xp, self._inputs, self._batched = xp, operation.inputs, any(setting.batched)
        self._views = views(xp, setting, operation.axes)

    def forward(self, frame: Frame) -> Value:
        assert total_exponent(frame, self._inputs) is None, "a sum of values that were rescaled"
        a, b = aligned(self._views, frame, self._inputs)
        return Value(a + b, floor=self._xp.sum_floor(frame, self._inputs) if self._batched else None)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        for i, view in zip(self._inputs, self._views, strict=True):
            backward.add(i, view.back(adjoint))

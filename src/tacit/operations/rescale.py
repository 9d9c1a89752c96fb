"""Powers of two that are taken out of the rows, so that long products stay in the range of floats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.operations.base import (
    Array,
    Arrays,
    Axes,
    Axis,
    Frame,
    Ids,
    Operation,
    Setting,
    Step,
    Sweep,
    Target,
    Value,
)


@dataclass(frozen=True, slots=True)
class Rescale(Operation):
    """Divide each row by a power of two that brings its largest entry near 1, and keep the exponent."""

    inputs: tuple[int]
    axes: Axes

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert set(self.axes) == set(setting.axes[0]), "rescaling changes axes"
        assert setting.batched[0], "rescaling of a value that is the same for all rows"

    def step(self, setting: Setting, xp: Arrays) -> Step:
        return _Rescale(self.inputs[0], len(self.axes), xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        return target.rescaled(i, self.inputs[0])


class _Rescale(Step):
    def __init__(self, source: int, axes: int, xp: Arrays) -> None:
        self._xp, self._source, self._over = xp, source, tuple(range(axes))

    def forward(self, frame: Frame) -> Value:
        value = frame.values[self._source]
        scaled, exponent = self._xp.rescaled(value.array, self._over)
        if value.exponent is not None and exponent is not None:
            exponent = exponent + value.exponent
        return Value(scaled, exponent, self._xp.rescaled_floor(frame.floor(self._source), scaled, self._over))

    def reverse(self, sweep: Sweep, adjoint: Array) -> None:
        """The scale itself needs no derivative: what is asked of a joint does not depend on its scale."""
        values = sweep.frame.values
        before, after = values[self._source].exponent, values[self.place].exponent
        if after is not None:  # numbers with an exponent each are not scaled
            power = (0 if before is None else before) - after
            adjoint = adjoint * np.ldexp(adjoint.dtype.type(1), power.astype(np.int32))
        sweep.add(self._source, adjoint)

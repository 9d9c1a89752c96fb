"""Axes, and where an operation stands in a program: the words that all rules share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Axis = str
Axes = tuple[Axis, ...]
Key = tuple[str, str]  # the node and the part of a parameter
Ids = NDArray[np.int64]
Mask = NDArray[np.bool_]
Array = Any  # of NumPy, torch, or an ONNX graph

ZERO, ONE = -1, -2  # what a Gather may take besides entries of its input


class Setting(NamedTuple):
    """Where an operation stands in a program: the axes of its inputs, which of these have rows, the lengths of axes."""

    axes: tuple[Axes, ...]
    batched: tuple[bool, ...]
    sizes: Mapping[Axis, int]

    def size(self, axes: Sequence[Axis]) -> int:
        """The number of entries over some axes."""
        return math.prod(self.sizes[a] for a in axes)

    def shape(self, axes: Sequence[Axis]) -> list[int]:
        """The lengths of some axes."""
        return [self.sizes[a] for a in axes]

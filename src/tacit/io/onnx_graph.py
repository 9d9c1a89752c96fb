"""An ONNX graph under construction: nodes, tables, and values over named axes, arranged as their readers need them.

Axes are as in the engines: a value that depends on evidence is (axes..., rows), rows last; one that does not is an
array, which is arranged here and now and becomes part of the model.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.program import Axes, Axis
from tacit.errors import TooLargeError

Array = NDArray[Any]

MAX_BYTES = 2**31 - 2**20  # the most a protobuf message can hold, less some room for the nodes


class Tensor(NamedTuple):
    """A value and the order of its axes: the name of one that has rows, or an array that has none."""

    axes: Axes
    held: str | Array

    @property
    def rows(self) -> bool:
        """Whether the value depends on evidence."""
        return isinstance(self.held, str)


class Graph:
    """Nodes and tables; names are given out once, and equal tables are written once."""

    def __init__(self, onnx: Any, dtype: str, sizes: Mapping[Axis, int], taken: Iterable[str]) -> None:
        self.onnx, self.dtype, self.sizes = onnx, np.dtype(dtype), sizes
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self._taken = set(taken)
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._bytes = 0

    def fresh(self, text: str) -> str:
        """`text`, with primes where that is a name already."""
        while text in self._taken:
            text += "'"
        self._taken.add(text)
        return text

    def add(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """A node with one output, whose name is returned."""
        name = name or self.fresh(f"{kind}_{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    # tables -----------------------------------------------------------------------------------------------

    def table(self, array: Array) -> str:
        """An array that is part of the model."""
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._bytes += array.nbytes
            if self._bytes > MAX_BYTES:
                raise TooLargeError("the tables of the query need more than 2 GiB, the most an ONNX file can hold")
            self._known[key] = self.fresh(f"table_{len(self.tables)}")
            self.tables.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), self._known[key]))
        return self._known[key]

    def number(self, value: float) -> str:
        """A number of the model's own type."""
        return self.table(np.array(value, dtype=self.dtype))

    def integers(self, values: Sequence[int]) -> str:
        """A list of places, lengths or indices."""
        return self.table(np.array(values, dtype=np.int64))

    # values -----------------------------------------------------------------------------------------------

    def size(self, axes: Axes) -> int:
        """How many entries there are over some axes."""
        return math.prod(self.sizes[a] for a in axes)

    def shape(self, axes: Axes) -> list[int]:
        """The lengths of some axes."""
        return [self.sizes[a] for a in axes]

    def transposed(self, value: str, order: Sequence[int]) -> str:
        """A value with its axes, rows included, in another order."""
        return value if list(order) == sorted(order) else self.add("Transpose", value, perm=list(order))

    def reshaped(self, value: str, shape: Sequence[int]) -> str:
        """A value in another shape; -1 where the rows are."""
        return self.add("Reshape", value, self.integers(shape))

    def summed(self, value: str, places: Sequence[int], keepdims: bool = False) -> str:
        """A value summed over the axes at some places."""
        if not places:  # for ONNX, no places are all places
            return value
        return self.add("ReduceSum", value, self.integers(places), keepdims=int(keepdims))

    def sum_out(self, tensor: Tensor, keep: Collection[Axis]) -> Tensor:
        """Sum out all axes but some."""
        places = tuple(k for k, a in enumerate(tensor.axes) if a not in keep)
        axes = tuple(a for a in tensor.axes if a in keep)
        if isinstance(tensor.held, str):
            return Tensor(axes, self.summed(tensor.held, places))
        return Tensor(axes, tensor.held.sum(axis=places))

    def arranged(self, tensor: Tensor, axes: Axes, shape: Sequence[int], last: int | None = None) -> str:
        """A value with its axes in another order, then in another shape.

        Rows follow: as an axis of their own, or together with what `shape` leaves over. A value without rows gets an
        axis of length `last` in their place, or none.
        """
        order = [tensor.axes.index(a) for a in axes]
        if not isinstance(tensor.held, str):
            return self.table(tensor.held.transpose(order).reshape([*shape, *([] if last is None else [last])]))
        moved = self.transposed(tensor.held, [*order, len(order)])
        return moved if list(shape) == self.shape(axes) else self.reshaped(moved, [*shape, -1])

    def aligned(self, tensor: Tensor, axes: Axes) -> str:
        """A value over (axes..., rows), of length 1 where it has none: ready to broadcast."""
        shape = [self.sizes[a] if a in tensor.axes else 1 for a in axes]
        return self.arranged(tensor, tuple(a for a in axes if a in tensor.axes), shape, last=1)

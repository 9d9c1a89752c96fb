"""An ONNX graph as an array library of the operations' rules: what they compute is traced as nodes.

Values that depend on evidence are names of the graph. What does not is a NumPy array, which is arranged here and now
and becomes part of the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partialmethod
from typing import Any

import numpy as np

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import Floats
from tacit.base.text import fresh_name
from tacit.compiler.operations.axes import Ids
from tacit.compiler.operations.contract import AxisRoles
from tacit.engines.arrays.numpy_arrays import PlainArrays

COMPARE = {">=": "GreaterOrEqual", ">": "Greater", "<=": "LessOrEqual", "<": "Less"}
MAX_BYTES = 2**31 - 2**20  # the most a protobuf message can hold, less some room for the nodes


class Graph:
    """Nodes and tables; names are given out once, and equal tables are written once."""

    def __init__(self, onnx: Any, dtype: str, taken: Iterable[str]) -> None:
        self.onnx, self.dtype = onnx, np.dtype(dtype)
        self.nodes: list[Any] = []
        self.tables: list[Any] = []
        self._taken = set(taken)
        self._known: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._bytes = 0

    def fresh(self, text: str) -> str:
        """`text`, with primes where that is a name already."""
        name = fresh_name(text, self._taken)
        self._taken.add(name)
        return name

    def add(self, kind: str, *inputs: Any, name: str = "", **attributes: Any) -> Traced:
        """A node with one output. Inputs are values of the graph, arrays, or numbers."""
        name = name or self.fresh(f"{kind}_{len(self.nodes)}")
        self.nodes.append(self.onnx.helper.make_node(kind, [self.name(x) for x in inputs], [name], **attributes))
        return Traced(self, name)

    def name(self, value: Any) -> str:
        """The name of a value; an array or a number becomes part of the model."""
        if isinstance(value, Traced):
            return value.name
        array = np.array(value, dtype=np.int64) if isinstance(value, int | list) else np.asarray(value)
        array = array.astype(self.dtype) if array.dtype.kind == "f" else array
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._known:
            self._bytes += array.nbytes
            if self._bytes > MAX_BYTES:
                raise TooLargeError("the tables of the query need more than 2 GiB, the most an ONNX file can hold")
            self._known[key] = self.fresh(f"table_{len(self.tables)}")
            self.tables.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), self._known[key]))
        return self._known[key]

    def with_rows(self, array: Any, rows: Any) -> Traced:
        """A value of the graph; an array of one row is repeated."""
        if isinstance(array, Traced):
            return array
        return self.add("Expand", array, self.add("Concat", [len(array)], rows, axis=0))


class Traced:
    """A value of a graph. Arithmetic on it adds nodes."""

    __array_ufunc__ = None  # NumPy leaves arithmetic with arrays to this class

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _apply(self, kind: str, *others: Any) -> Traced:
        return self.graph.add(kind, self, *others)

    def __rsub__(self, other: Any) -> Traced:
        return self.graph.add("Sub", other, self)

    __add__ = __radd__ = partialmethod(_apply, "Add")
    __mul__ = __rmul__ = partialmethod(_apply, "Mul")
    __sub__ = partialmethod(_apply, "Sub")
    __truediv__ = partialmethod(_apply, "Div")
    __neg__ = partialmethod(_apply, "Neg")


class OnnxArrays(PlainArrays):
    """NumPy for what does not depend on evidence, and nodes of a graph for what does.

    A model cannot compute a row again, so it does not watch how small numbers become.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.dtype)
        self._graph = graph

    def cast(self, array: Any) -> Any:
        return array if isinstance(array, Traced) else super().cast(array)

    def permute(self, array: Any, order: Sequence[int]) -> Any:
        if not isinstance(array, Traced):
            return super().permute(array, order)
        return array if list(order) == sorted(order) else self._graph.add("Transpose", array, perm=list(order))

    def reshape(self, array: Any, shape: Sequence[int]) -> Any:
        if not isinstance(array, Traced):
            return super().reshape(array, shape)
        return self._graph.add("Reshape", array, list(shape))

    def in_order(self, array: Any) -> Any:
        return array

    def take(self, array: Any, index: Any, axis: int) -> Any:
        if not isinstance(array, Traced) and not isinstance(index, Traced):
            return super().take(array, index, axis)
        return self._graph.add("Gather", array, index, axis=axis)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        if any(isinstance(x, Traced) for x in (condition, a, b)):
            return self._graph.add("Where", condition, a, b)
        return super().where(condition, a, b)

    def matmul(self, a: Any, b: Any) -> Any:
        return self._graph.add("MatMul", a, b)

    def sum(self, array: Any, over: Sequence[int], keepdims: bool = False) -> Any:
        if not isinstance(array, Traced) or not over:  # for ONNX, no places are all places
            return super().sum(array, over, keepdims)
        return self._graph.add("ReduceSum", array, list(over), keepdims=int(keepdims))

    def concatenate(self, arrays: Sequence[Any]) -> Any:
        with_rows = next((array for array in arrays if isinstance(array, Traced)), None)
        if with_rows is None or len(arrays) == 1:
            return super().concatenate(arrays) if with_rows is None else with_rows
        rows = self._graph.add("Shape", with_rows, start=1, end=2)
        return self._graph.add("Concat", *(self._graph.with_rows(array, rows) for array in arrays), axis=0)

    def literals(self, mantissas: Floats, exponents: Ids) -> tuple[Any, bool]:
        numbers, fit = super().literals(mantissas, exponents)
        if not fit:
            raise TacitError(
                f"the query has a number out of the range of {self.dtype}, which an ONNX model cannot hold"
            )
        return numbers, fit

    def compare(self, test: str, a: Any, b: Any) -> Any:
        if any(isinstance(x, Traced) for x in (a, b)):
            return self._graph.add(COMPARE[test], a, b)
        return super().compare(test, a, b)

    def either(self, a: Any, b: Any) -> Any:
        return self._graph.add("Or", a, b)

    def both(self, a: Any, b: Any) -> Any:
        return self._graph.add("And", a, b)

    def ratio(self, part: Any, total: Any, otherwise: Any) -> Any:
        possible = self.compare(">", total, 0.0)
        return self.where(possible, part / self.where(possible, total, 1.0), otherwise)

    def sigmoids(self, x: Any, like: Any) -> tuple[Any, Any]:
        if not isinstance(x, Traced):
            return super().sigmoids(x, like)
        return self._graph.add("Sigmoid", x), self._graph.add("Sigmoid", -x)

    def rescaled(self, array: Any, over: Sequence[int]) -> tuple[Any, Any]:
        """Each row divided by its largest entry, and its logarithm: ONNX cannot read the exponent of a number."""
        top = self._graph.add("ReduceMax", array, axes=list(over), keepdims=0) if over else array
        divisor = self.where(self.compare(">", top, 0.0), top, 1.0)
        return array / divisor, self._graph.add("Log", divisor)

    def algorithm(self, layout: AxisRoles | None, tables: int) -> str:
        if layout is None or not layout.summed:
            return "alone" if layout is None else "spread"
        return "matrix" if tables else "rows" if layout.wide else "spread"

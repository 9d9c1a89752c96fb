"""A compiled query as an ONNX model: a few nodes for every operation of its program."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tacit.atomic import write_atomically
from tacit.compiler.program import (
    ONE,
    Axes,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Normalise,
    Operation,
    Parameter,
    Rescale,
    Select,
    Slice,
)
from tacit.cpt import TEST_CODES
from tacit.engines.numpy import NumpyEngine
from tacit.errors import TacitError
from tacit.io.onnx_graph import Graph, Tensor
from tacit.io.peers import require
from tacit.query import Query

OPSET, IR_VERSION = 17, 8  # of 2022: ONNX Runtime 1.12 and later
COMPARE = {">=": "GreaterOrEqual", ">": "Greater", "<=": "LessOrEqual", "<": "Less"}
NOWHERE = 2**40  # an index outside of every table
WIDE = 6  # so many multiply-adds per entry read or written make one matrix product per row worth its copies


def write_onnx(tac: Query, path: str | os.PathLike[str]) -> None:
    """Write a compiled query as an ONNX file; see `TAC.to_onnx`."""
    data = onnx_model(tac).SerializeToString()
    write_atomically(path, lambda file: file.write(data), binary=True)


def onnx_model(tac: Query) -> Any:
    """A compiled query as an `onnx.ModelProto`, checked."""
    onnx = require("onnx", "onnx")
    for name in tac.evidence:
        if "\0" in name or any("\ud800" <= c <= "\udfff" for c in name):
            raise TacitError(f"evidence on {name!r}: an input's name cannot hold a NUL or a lone surrogate; rename it")
    model = onnx.helper.make_model(
        _Export(tac, onnx).graph(),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tacit",
        doc_string=f"The posterior of {json.dumps(tac.query)}, one row per row of evidence.",
    )
    about = {
        "query": tac.query,
        "states": tac.network.states(tac.query),
        "evidence": {name: tac.network.states(name) for name in tac.evidence},
        "hard": tac.program.hard,
    }
    onnx.helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
    onnx.checker.check_model(model)
    return model


class _Roles(NamedTuple):
    """What a contraction does with the axes of its two operands: both have `kept` and `summed`, one has the others."""

    kept: Axes
    left: Axes
    summed: Axes
    right: Axes

    @classmethod
    def of(cls, a: Axes, b: Axes, out: Axes) -> _Roles:
        return cls(
            kept=tuple(x for x in a if x in b and x in out),
            left=tuple(x for x in a if x not in b),
            summed=tuple(x for x in a if x in b and x not in out),
            right=tuple(x for x in b if x not in a),
        )


class _Export:
    """The translation of one program with its numbers."""

    def __init__(self, tac: Query, onnx: Any) -> None:
        self._program, self._evidence = tac.program, tac.evidence
        self._cards = {name: len(tac.network.states(name)) for name in (tac.query, *tac.evidence)}
        self._tables, self._gammas = tac.numbers()
        self._engine = NumpyEngine(tac.program, self._tables, self._gammas, tac.dtype)
        self._to = Graph(onnx, tac.dtype, tac.program.sizes, tac.evidence)
        self._values: dict[int, Tensor] = {}
        self._scales: dict[int, str] = {}  # the logarithm (rows,) of what a value was divided by
        self._places: dict[Axes, str] = {}  # the observed states of several variables as one index

    def graph(self) -> Any:
        """Inputs in the order of the query's evidence; outputs `posterior` and `log_evidence`."""
        posterior, log_evidence = self._to.fresh("posterior"), self._to.fresh("log_evidence")
        for i in _needed(self._program.operations, self._program.joint):
            operation = self._program.operations[i]
            if self._program.batched[i]:
                self._values[i] = self._value(i, operation)
            else:
                self._values[i] = Tensor(operation.axes, self._engine.static(i))
        self._finish(posterior, log_evidence)
        card = self._cards[self._program.query]
        outputs = [self._described(posterior, ["rows", card]), self._described(log_evidence, ["rows"])]
        inputs = [self._input(name) for name in self._evidence]
        return self._to.onnx.helper.make_graph(self._to.nodes, "tacit", inputs, outputs, self._to.tables)

    def _input(self, name: str) -> Any:
        if name in self._program.hard:
            return self._described(name, ["rows"], np.dtype(np.int64))
        return self._described(name, ["rows", self._cards[name]])

    def _described(self, name: str, shape: list[str | int], dtype: np.dtype[Any] | None = None) -> Any:
        helper = self._to.onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype or self._to.dtype), shape)

    def _finish(self, posterior: str, log_evidence: str) -> None:
        joint = self._with_rows(self._values[self._program.joint])  # (states, rows)
        total = self._to.summed(joint, [0])
        self._to.add("Transpose", self._to.add("Div", joint, total), perm=[1, 0], name=posterior)  # 0/0 is NaN
        scale = self._scales.get(self._program.joint) or self._to.number(0.0)
        self._to.add("Add", self._to.add("Log", total), scale, name=log_evidence)

    def _with_rows(self, joint: Tensor) -> str:
        if isinstance(joint.held, str):
            return joint.held
        rows = self._to.integers([1])
        if self._evidence:  # on variables of a single state only
            rows = self._to.add("Shape", self._evidence[0], start=0, end=1)
        shape = self._to.add("Concat", self._to.integers(joint.held.shape), rows, axis=0)
        return self._to.add("Expand", self._to.table(joint.held[:, None]), shape)

    # operations -------------------------------------------------------------------------------------------

    def _value(self, i: int, operation: Operation) -> Tensor:
        match operation:
            case Likelihood():
                return Tensor(operation.axes, self._to.add("Transpose", operation.variable, perm=[1, 0]))
            case Slice():
                return self._slice(operation)
            case Gather():
                self._carry_scales(i, operation.inputs)
                return self._gather(operation)
            case Contract():
                self._carry_scales(i, operation.inputs)
                return self._contract(operation)
            case Select():
                return self._select(operation)
            case Rescale():
                return self._rescale(i, operation)
            case Parameter() | Constant() | Normalise():
                raise AssertionError("neither depends on evidence nor makes the joint")

    def _slice(self, operation: Slice) -> Tensor:
        table = self._values[operation.inputs[0]]
        shape = [*self._to.shape(operation.axes), self._to.size(operation.variables)]
        arranged = self._to.arranged(table, (*operation.axes, *operation.variables), shape)
        place = self._place(operation.variables)
        return Tensor(operation.axes, self._to.add("Gather", arranged, place, axis=len(operation.axes)))

    def _place(self, variables: Axes) -> str:
        """The observed states of some variables as one index into their joint states, the last fastest."""
        if variables not in self._places:
            *others, last = variables
            place = self._code(last)
            if others:
                card = self._to.integers([self._to.sizes[last]])
                place = self._to.add("Add", self._to.add("Mul", self._place(tuple(others)), card), place)
            self._places[variables] = place
        return self._places[variables]

    def _code(self, variable: str) -> str:
        """The observed states. One that does not exist must not pass for another, so it becomes an error."""
        lowest = self._to.add("GreaterOrEqual", variable, self._to.integers([0]))
        highest = self._to.add("Less", variable, self._to.integers([self._to.sizes[variable]]))
        return self._to.add("Where", self._to.add("And", lowest, highest), variable, self._to.integers([NOWHERE]))

    def _gather(self, operation: Gather) -> Tensor:
        source, index = operation.inputs[0], operation.index
        axes = self._program.operations[source].axes
        flat = self._to.arranged(self._values[source], axes, [self._to.size(axes)])
        taken = self._to.add("Gather", flat, self._to.integers(np.maximum(index, 0).ravel().tolist()), axis=0)
        if (index < 0).any():
            real, one = (index >= 0).reshape(-1, 1), (index == ONE).reshape(-1, 1)
            taken = self._to.add("Where", self._to.table(real), taken, self._to.table(one.astype(self._to.dtype)))
        return Tensor(operation.axes, self._to.reshaped(taken, [*index.shape, -1]))

    # contractions -----------------------------------------------------------------------------------------

    def _contract(self, operation: Contract) -> Tensor:
        values = [self._values[j] for j in operation.inputs]
        if len(values) == 1:
            return self._to.sum_out(values[0], operation.axes)
        a = self._to.sum_out(values[0], {*operation.axes, *values[1].axes})
        b = self._to.sum_out(values[1], {*operation.axes, *values[0].axes})
        a, b = (b, a) if a.rows and not b.rows else (a, b)  # a table comes first
        roles = _Roles.of(a.axes, b.axes, operation.axes)
        if roles.summed and not a.rows:
            return self._table_product(a, b, roles)
        if roles.summed and self._is_wide(roles):
            return self._row_products(a, b, roles)
        every = (*roles.summed, *operation.axes)
        product = self._to.add("Mul", self._to.aligned(a, every), self._to.aligned(b, every))
        return Tensor(operation.axes, self._to.summed(product, range(len(roles.summed))))

    def _table_product(self, table: Tensor, batch: Tensor, roles: _Roles) -> Tensor:
        """One or more matrix products: (kept, left, summed) @ (kept, summed, right * rows)."""
        kept, left, summed, right = roles
        side = [self._to.size(kept)] * bool(kept)
        matrix = self._to.arranged(table, (*kept, *left, *summed), [*side, self._to.size(left), self._to.size(summed)])
        columns = self._to.arranged(batch, (*kept, *summed, *right), [*side, self._to.size(summed)])
        product, axes = self._to.add("MatMul", matrix, columns), (*kept, *left, *right)
        return Tensor(axes, self._to.reshaped(product, [*self._to.shape(axes), -1]))

    def _is_wide(self, roles: _Roles) -> bool:
        height, depth, width = self._to.size(roles.left), self._to.size(roles.summed), self._to.size(roles.right)
        return height * depth * width > WIDE * (height * depth + depth * width + height * width)

    def _row_products(self, a: Tensor, b: Tensor, roles: _Roles) -> Tensor:
        """A matrix product per row: (kept, rows, left, summed) @ (kept, rows, summed, right)."""
        kept, left, summed, right = roles
        first, second = self._by_row(a, kept, left, summed), self._by_row(b, kept, summed, right)
        product, axes = self._to.add("MatMul", first, second), (*kept, *left, *right)
        shape = [*self._to.shape(kept), -1, *self._to.shape((*left, *right))]
        rows_last = [*range(len(kept)), *range(len(kept) + 1, len(shape)), len(kept)]
        return Tensor(axes, self._to.transposed(self._to.reshaped(product, shape), rows_last))

    def _by_row(self, tensor: Tensor, kept: Axes, down: Axes, across: Axes) -> str:
        assert isinstance(tensor.held, str)
        order = [tensor.axes.index(x) for x in (*kept, *down, *across)]
        order.insert(len(kept), len(tensor.axes))  # the rows
        moved = self._to.transposed(tensor.held, order)
        return self._to.reshaped(moved, [self._to.size(kept), -1, self._to.size(down), self._to.size(across)])

    # selections -------------------------------------------------------------------------------------------

    def _select(self, operation: Select) -> Tensor:
        *inputs, code = (self._values[j] for j in operation.inputs)
        n_u, plus, minus, threshold = (self._to.aligned(value, operation.axes) for value in inputs)
        parents = [k for k, a in enumerate(operation.axes) if a in inputs[0].axes]
        n = self._to.summed(n_u, parents, keepdims=True)
        where, gamma = self._where(operation, code), self._gammas[operation.node]
        if gamma is None:
            holds = self._holds(n_u, self._to.add("Mul", n, threshold), where)
            return Tensor(operation.axes, self._to.add("Where", holds, plus, minus))
        x = self._argument(n_u, n, threshold, where, gamma)
        # taken from 1, the weight of minus would lose its digits
        tau, rest = self._to.add("Sigmoid", x), self._to.add("Sigmoid", self._to.add("Neg", x))
        mixed = self._to.add("Add", self._to.add("Mul", tau, plus), self._to.add("Mul", rest, minus))
        return Tensor(operation.axes, mixed)

    def _where(self, operation: Select, code: Tensor) -> dict[str, str]:
        """The operators of a testing node, and where each applies; "" where there is only one."""
        codes = self._tables[operation.node, "test"]
        used = [test for test, number in TEST_CODES.items() if (codes == number).any()]
        if len(used) == 1:
            return {used[0]: ""}
        aligned = self._to.aligned(code, operation.axes)
        return {test: self._to.add("Equal", aligned, self._to.number(TEST_CODES[test])) for test in used}

    def _holds(self, n_u: str, limit: str, where: Mapping[str, str]) -> str:
        """Whether a parent state passes its test; n_u is compared with n * threshold, so that nothing is divided."""
        found = []
        for test, applies in where.items():
            passes = self._to.add(COMPARE[test], n_u, limit)
            found.append(self._to.add("And", applies, passes) if applies else passes)
        while len(found) > 1:
            found.append(self._to.add("Or", found.pop(), found.pop()))
        return found[0]

    def _argument(self, n_u: str, n: str, threshold: str, where: Mapping[str, str], gamma: float) -> str:
        """What the sigmoid that weighs `plus` is taken of, mirrored for "<=" and "<"; any number where n is 0."""
        add = self._to.add
        divisor = add("Where", add("Greater", n, self._to.number(0.0)), n, self._to.number(1.0))
        x = add("Mul", self._to.number(gamma), add("Sub", add("Div", n_u, divisor), threshold))
        for test in [t for t in ("<=", "<") if t in where]:
            x = add("Where", where[test], add("Neg", x), x) if where[test] else add("Neg", x)
        return x

    # scales -----------------------------------------------------------------------------------------------

    def _rescale(self, i: int, operation: Rescale) -> Tensor:
        """Divide each row by its largest entry: ONNX cannot read the exponent of a number."""
        source = operation.inputs[0]
        axes, value = self._values[source]
        assert isinstance(value, str)
        top = self._to.add("ReduceMax", value, axes=list(range(len(axes))), keepdims=0) if axes else value
        positive = self._to.add("Greater", top, self._to.number(0.0))
        divisor = self._to.add("Where", positive, top, self._to.number(1.0))
        self._scales[i] = self._to.add("Log", divisor)
        self._carry_scales(i, (i, source))
        return Tensor(axes, self._to.add("Div", value, divisor))

    def _carry_scales(self, i: int, inputs: Iterable[int]) -> None:
        scales = [self._scales[j] for j in inputs if j in self._scales]
        if scales:
            self._scales[i] = scales[0] if len(scales) == 1 else self._to.add("Add", *scales)


def _needed(operations: Sequence[Operation], last: int) -> list[int]:
    """What a value is made of, in order."""
    found, stack = {last}, [last]
    while stack:
        for j in operations[stack.pop()].inputs:
            if j not in found:
                found.add(j)
                stack.append(j)
    return sorted(found)

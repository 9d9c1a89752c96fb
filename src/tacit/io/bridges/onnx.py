"""A compiled query as an ONNX model: the rules of its operations, traced."""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

import numpy as np

from tacit.base.atomic import write_atomically
from tacit.base.errors import TacitError
from tacit.compiler.operations.array_rules import Value
from tacit.engines.arrays.evaluation import ArrayEvaluation, Fixed, Sources, Steps
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.io.bridges.onnx_densities import log_densities, scaled
from tacit.io.bridges.onnx_graph import Graph, OnnxArrays, Traced
from tacit.io.bridges.peers import is_safe, require
from tacit.model.elements.variable import row_table
from tacit.query.query import Query

OPSET, IR_VERSION = 17, 8  # of 2022: ONNX Runtime 1.12 and later
NO_INDEX = 2**40  # an index outside of every table


def write_onnx(tac: Query, path: str | os.PathLike[str]) -> None:
    """Write a compiled query as an ONNX file; see `TAC.to_onnx`."""
    data = onnx_model(tac).SerializeToString()
    write_atomically(path, lambda file: file.write(data), binary=True)


def onnx_model(tac: Query) -> Any:
    """A compiled query as an `onnx.ModelProto`, checked."""
    if tac.asks_for_numbers:
        tac.require_query("ONNX model")
    onnx, query = require("onnx"), tac.variable
    for name in (*tac.evidence, *tac.per_row):
        if not is_safe(name):
            raise TacitError(f"evidence on {name!r}: an input's name cannot hold a NUL or a lone surrogate; rename it")
    model = onnx.helper.make_model(
        _Export(tac, onnx).graph(),
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="tacit",
        doc_string=f"The posterior of {json.dumps(query.name)}, one row per row of evidence.",
    )
    about: dict[str, Any] = {
        "query": query.name,
        "states": query.states,
        "evidence": {name: tac.network.states(name) for name in tac.evidence},
        "hard": sorted(tac.always_known),
    }
    if numbers := _continuous(tac):
        about["columns"] = {name: tac.network.variable(name).columns for name in numbers}
    if tac.per_row:
        about["tables"] = {name: tac.network.parents(name) for name in tac.per_row}
    onnx.helper.set_model_props(model, {key: json.dumps(value) for key, value in about.items()})
    onnx.checker.check_model(model)
    return model


class _Numbers(NamedTuple):
    """Observed numbers in a graph: how many columns, their likelihoods, and the logarithm that was taken out."""

    columns: int
    likelihoods: Traced
    scale: Traced


def _continuous(tac: Query) -> list[str]:
    """The variables whose evidence is numbers."""
    return [name for name in tac.evidence if tac.network.variable(name).continuous]


def _shape(tac: Query, name: str) -> tuple[int, ...]:
    """The shape of a variable's table."""
    return tuple(tac.network.variable(member).card for member in (*tac.network.parents(name), name))


class _Export:
    """The translation of one program with its numbers."""

    def __init__(self, tac: Query, onnx: Any) -> None:
        self._program, self._onnx = tac.program, onnx
        # these come as states, also where the program has likelihoods of them
        self._certain = frozenset(tac.always_known)
        self._cards = {name: len(tac.network.states(name)) for name in tac.evidence}
        self._tables = {row_table(name): _shape(tac, name) for name in tac.per_row}
        self._inputs = (*tac.evidence, *self._tables)
        self._graph = Graph(onnx, tac.dtype, self._inputs)
        self._numbers = self._densities(tac)
        tables, gammas = tac.numbers()
        engine = NumpyEngine(tac.program, tables, gammas, tac.dtype)
        fixed = {i: Value(engine.static(i)) for i in range(len(tac.program)) if not tac.program.batched[i]}
        arrays = OnnxArrays(self._graph)
        self._frame = ArrayEvaluation(
            Steps(tac.program, arrays, arrays),
            Fixed(fixed),
            Sources(lambda node, part: tables[node, part], gammas, self._likelihoods, self._code),
        )

    def _densities(self, tac: Query) -> dict[str, _Numbers]:
        """The observed numbers as likelihoods, by variable."""
        names = _continuous(tac)
        tac.network.require_numbers(names)
        densities = {name: tac.network.density(name) for name in names}
        logs = {name: log_densities(self._graph, name, density) for name, density in densities.items()}
        return {name: _Numbers(densities[name].dimension, *scaled(self._graph, own)) for name, own in logs.items()}

    def graph(self) -> Any:
        """Inputs in the order of the query's evidence, then tables; outputs `posterior` and `log_evidence`."""
        posterior, log_evidence = self._graph.fresh("posterior"), self._graph.fresh("log_evidence")
        needed = {self._program.joint}
        for i in range(self._program.joint, -1, -1):
            if i in needed:
                needed.update(self._program.operations[i].inputs)
        self._frame.follow([i for i in sorted(needed) if self._program.batched[i]])
        value, add = self._frame.values[self._program.joint], self._graph.add
        joint: Any = value.array  # (states, rows)
        if not isinstance(joint, Traced):
            rows: Any = [1]
            if self._inputs:  # on variables of a single state only
                rows = add("Shape", Traced(self._graph, self._inputs[0]), start=0, end=1)
            joint = self._graph.with_rows(joint[:, None], rows)
        total = add("ReduceSum", joint, [0], keepdims=0)
        add("Transpose", joint / total, perm=[1, 0], name=posterior)  # 0/0 is NaN
        exponent: Any = 0.0 if value.exponent is None else value.exponent
        for numbers in self._numbers.values():
            exponent = numbers.scale + exponent
        add("Add", add("Log", total), exponent, name=log_evidence)
        outputs = [self._described(posterior, ["rows", self._program.outputs]), self._described(log_evidence, ["rows"])]
        inputs = [self._input(name) for name in self._inputs]
        return self._onnx.helper.make_graph(self._graph.nodes, "tacit", inputs, outputs, self._graph.tables)

    def _input(self, name: str) -> Any:
        if name in self._tables:
            return self._described(name, ["rows", *self._tables[name]])
        if name in self._certain:
            return self._described(name, ["rows"], np.dtype(np.int64))
        if name in self._numbers:
            columns = self._numbers[name].columns
            return self._described(name, ["rows", columns] if columns > 1 else ["rows"])
        return self._described(name, ["rows", self._cards[name]])

    def _described(self, name: str, shape: list[str | int], dtype: np.dtype[Any] | None = None) -> Any:
        helper = self._onnx.helper
        return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype or self._graph.dtype), shape)

    def _likelihoods(self, variable: str) -> Traced:
        """The likelihoods (states, rows) of a variable, or the entries (entries, rows) of tables."""
        if variable in self._tables:
            by_row = self._graph.add("Reshape", Traced(self._graph, variable), [0, -1])
            return self._graph.add("Transpose", by_row, perm=[1, 0])
        if variable in self._numbers:
            return self._numbers[variable].likelihoods
        if variable in self._certain:
            return self._graph.add("Gather", np.eye(self._cards[variable]), self._code(variable), axis=1)
        return self._graph.add("Transpose", Traced(self._graph, variable), perm=[1, 0])

    def _code(self, variable: str) -> Traced:
        """The observed states. One that does not exist must not pass for another, so it becomes an error."""
        add, codes = self._graph.add, Traced(self._graph, variable)
        exists = add("And", add("GreaterOrEqual", codes, [0]), add("Less", codes, [self._cards[variable]]))
        return add("Where", exists, codes, [NO_INDEX])

"""Log-densities of observed numbers as nodes of an ONNX graph.

A number that is missing, NaN, says nothing, and one that the density cannot have is impossible.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.base.errors import TacitError
from tacit.io.bridges.onnx_graph import Graph, Traced
from tacit.model.densities import AnyDensity, Gaussian, LogNormal, Poisson
from tacit.model.densities.normal import HALF_LOG_TAU

FEW = 16  # counts from which on Stirling's series is exact to rounding
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)  # of 1/x, 1/x^3, ...


def log_densities(graph: Graph, name: str, density: AnyDensity) -> Traced:
    """The log-densities (components, rows) of the numbers of the input of that name."""
    match density:
        case Gaussian() if density.cov is None:
            return _normal(graph, density, Traced(graph, name))
        case Gaussian():
            return _joint(graph, density, Traced(graph, name))
        case LogNormal():
            return _log_normal(graph, density, Traced(graph, name))
        case Poisson():
            return _counts(graph, density, Traced(graph, name))
    raise TacitError(f"{name!r} has the density of a Python function, which an ONNX model cannot hold")


def scaled(graph: Graph, logs: Traced) -> tuple[Traced, Traced]:
    """Likelihoods whose largest of each row is 1, and the logarithm of what they were divided by."""
    top = graph.add("ReduceMax", logs, axes=[0], keepdims=0)
    top = graph.add("Where", graph.add("Greater", top, -np.inf), top, 0.0)
    return graph.add("Exp", logs - top), top


def _normal(graph: Graph, density: Gaussian | LogNormal, column: Traced, seen: Traced | None = None) -> Traced:
    """Log-densities of a column (rows,); 0 where it is missing, or not among those that are `seen`."""
    mean, sd = (density.flat(part)[:, None] for part in ("mean", "sd"))
    seen = _seen(graph, column) if seen is None else seen
    off = (graph.add("Where", seen, column, 0.0) - mean) / sd
    return graph.add("Where", seen, (off * off) * -0.5 - (np.log(sd) + HALF_LOG_TAU), 0.0)


def _log_normal(graph: Graph, density: LogNormal, column: Traced) -> Traced:
    exponent = graph.add("Log", graph.add("Where", graph.add("Greater", column, 0.0), column, 1.0))
    logs = _normal(graph, density, exponent, _seen(graph, column)) - exponent
    return _impossible(graph, graph.add("LessOrEqual", column, 0.0), logs)


def _counts(graph: Graph, density: Poisson, column: Traced) -> Traced:
    add, rate = graph.add, density.flat("rate")[:, None]
    floor = add("Floor", column)
    outside = add("Or", add("Less", column, 0.0), add("Less", floor, column))
    seen = _seen(graph, column)
    counts = add("Where", add("And", seen, add("Not", outside)), column, 0.0)
    logs = counts * np.log(rate) - rate - _log_factorials(graph, counts)
    return _impossible(graph, outside, add("Where", seen, logs, 0.0))


def _log_factorials(graph: Graph, counts: Traced) -> Traced:
    """log k!, which opset 17 has no operation for."""
    add = graph.add
    table = np.cumsum(np.log(np.maximum(np.arange(FEW), 1.0)))
    few = add("Less", counts, float(FEW))
    place = add("Cast", add("Where", few, counts, 0.0), to=graph.onnx.TensorProto.INT64)
    k = add("Where", few, float(FEW), counts)
    square = add("Div", 1.0, k * k)
    series: Any = STIRLING[-1]
    for term in STIRLING[-2::-1]:
        series = square * series + term
    many = (k + 0.5) * add("Log", k) - k + series / k + HALF_LOG_TAU
    return add("Where", few, add("Gather", table, place, axis=0), many)


def _joint(graph: Graph, density: Gaussian, values: Traced) -> Traced:
    """Log-densities of rows (rows, columns); NaN where some columns are missing, and others are not."""
    add, mean, factors = graph.add, density.flat("mean"), np.linalg.cholesky(density.flat("cov"))
    log_scale = np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    gaps = add("ReduceSum", add("Where", _seen(graph, values), 0.0, 1.0), [1], keepdims=1)
    seen = add("Less", gaps, float(density.dimension))  # some of it
    off = add("Transpose", add("Where", seen, values, 0.0), perm=[1, 0]) - mean[:, :, None]
    solved = add("MatMul", np.linalg.inv(factors), off)  # (components, columns, rows)
    squares = add("ReduceSum", solved * solved, [1], keepdims=0)
    logs = squares * -0.5 - (log_scale + density.dimension * HALF_LOG_TAU)[:, None]
    return add("Where", add("Squeeze", seen, [1]), logs, 0.0)


def _seen(graph: Graph, numbers: Traced) -> Traced:
    return graph.add("Not", graph.add("IsNaN", numbers))


def _impossible(graph: Graph, outside: Traced, logs: Traced) -> Traced:
    return graph.add("Where", outside, -np.inf, logs)

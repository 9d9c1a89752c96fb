"""Compiled programs as plain data, for a page that runs them: `web/engine.js` has the rules of the operations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tacit.base.errors import TooLargeError
from tacit.base.floats import Floats
from tacit.compiler.operations import (
    Add,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Operation,
    Parameter,
    Rescale,
    Select,
    Share,
    Structured,
)
from tacit.compiler.program import Program
from tacit.model.cpt import CPT, TESTS, THRESHOLDS, TestingCPT
from tacit.model.model import Model

Key = tuple[str, str]


class PageTables:
    """The tables that programs read, each written once."""

    def __init__(self, net: Model) -> None:
        self._net, self._places = net, {name: i for i, name in enumerate(net.variables)}
        self._numbers: dict[Key, int] = {}
        self.tables: list[dict[str, Any]] = []

    def place(self, node: str, part: str) -> int:
        """Where a table is in the list."""
        key = (node, part)
        if key not in self._numbers:
            self._numbers[key] = len(self.tables)
            self.tables.append(self._table(node, part))
        return self._numbers[key]

    def _table(self, node: str, part: str) -> dict[str, Any]:
        cpt = self._net.cpt(node)
        table = cpt.parts()[part]
        smooth = isinstance(cpt, TestingCPT) and cpt.gamma is not None
        varies = isinstance(cpt, CPT | TestingCPT) and (part != THRESHOLDS or smooth)
        return {
            "node": self._places[node],
            "part": part,
            "shape": list(table.shape),
            "varies": varies,
            "values": table.ravel().tolist(),
        }


def plain_program(
    net: Model, program: Program, tables: PageTables, slopes: Mapping[str, float | None]
) -> dict[str, Any]:
    """The operations of a program; axes are numbered."""
    axes = {axis: i for i, axis in enumerate(program.sizes)}
    places = {name: i for i, name in enumerate(net.variables)}

    def written(operation: Operation, rows: bool) -> dict[str, Any]:
        own: dict[str, Any] = {"axes": [axes[a] for a in operation.axes], "rows": rows}
        if operation.inputs:
            own["inputs"] = list(operation.inputs)
        match operation:
            case Parameter():
                return {"kind": "parameter", "table": tables.place(operation.node, operation.part), **own}
            case Constant():
                return {"kind": "constant", "values": operation.table.ravel().tolist(), **own}
            case Likelihood():
                return {"kind": "likelihood", "variable": places[operation.variable], **own}
            case Gather():
                return {"kind": "gather", "index": operation.index.ravel().tolist(), **own}
            case Contract():
                return {"kind": "contract", **({"largest": True} if operation.largest else {}), **own}
            case Select():
                tests = [TESTS[code] for code in operation.tests.ravel().tolist()]
                return {"kind": "select", "gamma": slopes[operation.node], "tests": tests, **own}
            case Share():
                return {"kind": "share", "gamma": slopes[operation.node], "own": operation.own, **own}
            case Add():
                return {"kind": "add", **own}
            case Rescale():
                return {"kind": "rescale", **own}
            case Structured():
                raise TooLargeError("too wide for a page, which works on whole tables; `tacit serve` answers it")
        raise AssertionError(f"{type(operation).__name__} indexes tables: pages have likelihoods only")

    return {
        "sizes": list(program.sizes.values()),
        "cards": [net.variable(name).card for name in net.variables],
        "joint": program.joint,
        "operations": [written(*pair) for pair in zip(program.operations, program.batched, strict=True)],
    }


def plain_decisions(net: Model, program: Program) -> dict[str, Any]:
    """The way down from a maximum, and where the state of each variable is found there."""
    axes = {axis: i for i, axis in enumerate(program.sizes)}
    axis_of = {name: axis for axis, name in program.owners.items()}
    return {
        "decisions": [
            {"inputs": list(decision.inputs), "chosen": [axes[a] for a in decision.chosen]}
            for decision in program.decisions
        ],
        "axes": [_states_on_axis(net, program, name, axis_of.get(name), axes) for name in net.variables],
    }


def _states_on_axis(
    net: Model, program: Program, name: str, axis: str | None, axes: Mapping[str, int]
) -> dict[str, Any]:
    if axis is None:
        return {"axis": None, "possible": [program.states[name][0]]}
    states: Sequence[int] = range(net.variable(name).card) if axis == name else program.states[name]
    return {"axis": axes[axis], "possible": list(states)}


def plain_tests(net: Model, program: Program) -> list[dict[str, Any]]:
    """For every testing node, its tests, and where the posteriors of its parents are found.

    Of more than two tables, each state of the parents has several tests, in the order in which they come to hold.
    """
    tests = []
    for node in program.selections:
        cpt = net.cpt(node)
        assert isinstance(cpt, TestingCPT)
        tests.append({
            "node": net.variables.index(node),
            "operations": list(program.selects[node]),
            "gamma": cpt.gamma,
            "thresholds": np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1).ravel().tolist(),
            "operators": cpt.test.ravel().tolist(),
            "places": _places(net, program, node).ravel().astype(int).tolist(),
        })  # fmt: skip
    return tests


def _places(net: Model, program: Program, node: str) -> Floats:
    """Where each state of the parents is in their marginal; -1 where it is impossible."""
    selection, parents = program.selections[node], net.parents(node)
    axes = program.operations[selection.marginal].axes
    sizes = [program.sizes[a] for a in axes]
    full = np.full([net.variable(p).card for p in parents], -1.0)
    order = [axes.index(a) for a in selection.axes if a is not None]
    flat = np.arange(math.prod(sizes)).reshape(sizes).transpose(order)
    possible = [list(program.states[p]) for p in parents]
    full[np.ix_(*possible)] = flat.reshape([len(own) for own in possible])
    return full

"""Compiled programs as plain data, for a page that runs them: `web/run.js` has the rules of the operations."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tacit.base.errors import NetworkError, TooLargeError
from tacit.base.floats import Floats
from tacit.compiler import operations as ops
from tacit.compiler.program import Program
from tacit.model.cpt import CPT, TESTS, THRESHOLDS, AnyCPT, TestingCPT
from tacit.model.densities import BaseDensity, Density, Gaussian
from tacit.model.model import Model
from tacit.model.rules import Mux, NoisyOr

MIN_LITERAL = 1e-290  # products of smaller numbers would leave the range of floats
MAX_SHOWN = 2000  # entries of a table that is sent to be looked at, not to be computed with


class PageTables:
    """The tables that programs read, each written once."""

    def __init__(self, net: Model) -> None:
        self._net, self.number = net, {name: i for i, name in enumerate(net.variables)}
        self._places: dict[tuple[str, str], int] = {}
        self.tables: list[dict[str, Any]] = []

    def place(self, node: str, part: str) -> int:
        """Where a table is in the list."""
        if (node, part) not in self._places:
            self._places[node, part] = len(self.tables)
            cpt = self._net.cpt(node)
            table = cpt.parts()[part]
            smooth = isinstance(cpt, TestingCPT) and cpt.gamma is not None
            described = {
                "node": self.number[node],
                "part": part,
                "shape": list(table.shape),
                "own": part in own_parts(cpt),
                "varies": isinstance(cpt, CPT | TestingCPT) and (part != THRESHOLDS or smooth),
                "values": table.ravel().tolist(),
            }
            self.tables.append(described)
        return self._places[node, part]


def own_parts(cpt: AnyCPT) -> tuple[str, ...]:
    """The parts of a CPT whose rows are sure of a state where the node is set to it: then no parent matters."""
    match cpt:
        case NoisyOr():
            return (list(cpt.parts())[-1],)  # the last cause has the last word
        case Mux():
            return ()
    return tuple(part for part in cpt.parts() if part != THRESHOLDS)


def why_not_set(net: Model, name: str) -> str | None:
    """Why a page cannot set a variable to a state, as a sentence; None if it can.

    It computes interventions with the program of the network as it is, and tables in which nothing depends on the
    parents. The program fixes the evidence that testing nodes see, which changes where a testing node is cut off.
    """
    if net.variable(name).continuous:
        return f"{name} is a number, and nothing is below it: setting it would change nothing else."
    if isinstance(net.cpt(name), Mux):
        return f"A page cannot set {name}, which copies one of its parents. In Python, net.do can."
    above = {own for own in (name, *net.ancestors(name)) if net.cpt(own).testing}
    if net.selection == "ancestral" or not above or above == {name} == set(net.testing_nodes):
        return None
    return f"A page cannot set {name}, since testing nodes would see other evidence then. In Python, net.do can."


def add_small_tables(net: Model, tables: PageTables) -> PageTables:
    """With the tables that a page can show, also if its programs do not read them."""
    for name in net.variables:
        cpt = net.cpt(name)
        parts = cpt.parts() if isinstance(cpt, CPT | TestingCPT) else {}
        if all(table.size <= MAX_SHOWN for table in parts.values()):
            for part in parts:
                tables.place(name, part)
    return tables


def rule_table(net: Model, name: str) -> list[float] | None:
    """The entries of a node whose CPT is a rule, such as a noisy-or; None for other nodes, and where they are many."""
    if isinstance(net.cpt(name), CPT | TestingCPT | BaseDensity):
        return None
    entries = math.prod(net.variable(own).card for own in (name, *net.parents(name)))
    return net.table(name).ravel().tolist() if entries <= MAX_SHOWN else None


def plain_density(net: Model, name: str) -> dict[str, Any] | None:
    """The density of a continuous variable; None of others. `web/densities.js` computes with it."""
    if not net.variable(name).continuous:
        return None
    density = net.density(name)
    if isinstance(density, Density):
        remedy = "a page computes Gaussian, LogNormal and Poisson, and bins= makes a variable one of intervals"
        raise NetworkError(f"node {name!r} has a Density, a function of Python that no page can run; {remedy}")
    joint = isinstance(density, Gaussian) and density.cov is not None
    parts = {part: density.flat(part).ravel().tolist() for part in density.parts()}
    return {"kind": "joint" if joint else density.kind, "columns": list(net.variable(name).columns), **parts}


def plain_program(
    net: Model, program: Program, tables: PageTables, slopes: Mapping[str, float | None]
) -> dict[str, Any]:
    """The operations of a program, and the decisions of its traceback; axes are numbered."""
    axes = {axis: i for i, axis in enumerate(program.sizes)}
    operations = []
    for operation, rows in zip(program.operations, program.batched, strict=True):
        detail = _detail(operation, tables, slopes)
        inputs = {"inputs": list(operation.inputs)} if operation.inputs else {}
        kind = {"kind": type(operation).__name__.lower()}
        operations.append(kind | detail | {"axes": [axes[a] for a in operation.axes], "rows": rows} | inputs)
    return {
        "sizes": list(program.sizes.values()),
        "cards": [net.variable(name).card for name in net.variables],
        "joint": program.joint,
        "operations": operations,
        "decisions": [
            {"inputs": list(decision.inputs), "chosen": [axes[a] for a in decision.chosen]}
            for decision in (() if program.structured else program.decisions)
        ],
        "axes": list(_axes_of_variables(net, program, axes)),
    }


def _detail(operation: ops.Operation, tables: PageTables, slopes: Mapping[str, float | None]) -> dict[str, Any]:
    match operation:
        case ops.Parameter():
            return {"table": tables.place(operation.node, operation.part)}
        case ops.Constant():
            return {"values": operation.table.ravel().tolist()}
        case ops.Likelihood():
            return {"variable": tables.number[operation.variable]}
        case ops.Gather():
            return {"index": operation.index.ravel().tolist()}
        case ops.Contract():
            return {"largest": True} if operation.largest else {}
        case ops.Select():
            tests = [TESTS[code] for code in operation.tests.ravel().tolist()]
            return {"gamma": slopes[operation.node], "tests": tests}
        case ops.Share():
            return {"gamma": slopes[operation.node], "own": operation.own}
        case ops.Add() | ops.Rescale():
            return {}
        case ops.Structured():
            return _structured(operation)
    raise AssertionError(f"{type(operation).__name__} indexes tables: pages have likelihoods only")


def _structured(operation: ops.Structured) -> dict[str, Any]:
    """Instructions on single numbers, flat: where the terms of each begin, and the pairs that they multiply."""
    literals = np.ldexp(operation.mantissas, operation.exponents)
    if ((operation.mantissas != 0) & (np.abs(literals) < MIN_LITERAL)).any():
        raise TooLargeError("too wide for a page: numbers of the program are below 1e-290; `tacit serve` answers it")
    return {
        "literals": literals.tolist(),
        "bounds": operation.bounds.tolist(),
        "terms": operation.terms.ravel().tolist(),
        "index": operation.index.ravel().tolist(),
        **({"largest": True} if operation.largest else {}),
    }


def _axes_of_variables(net: Model, program: Program, axes: Mapping[str, int]) -> Iterator[dict[str, Any] | None]:
    """Which axis gives the state of each variable in the traceback, if it has several, and which states these are."""
    axis_of = {name: axis for axis, name in program.owners.items()}
    for name in net.variables:
        axis = axis_of.get(name)
        if net.variable(name).continuous:
            yield None  # it has a number in place of a state
            continue
        states = range(net.variable(name).card) if axis == name else program.states[name]
        yield {"axis": None if axis is None else axes[axis], "possible": list(states[:1] if axis is None else states)}


def plain_tests(net: Model, program: Program) -> list[dict[str, Any]]:
    """The tests of every testing node, in the order in which they come to hold, and where to find their posteriors."""
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

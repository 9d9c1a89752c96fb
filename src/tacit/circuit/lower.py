"""From a program to the scalar circuit: every value becomes an array of circuit nodes."""

from __future__ import annotations

import numpy as np

from tacit.circuit import builder
from tacit.circuit.builder import CircuitBuilder
from tacit.circuit.circuit import Circuit
from tacit.circuit.nodes import Ids
from tacit.compiler.program import (
    ONE,
    ZERO,
    Axes,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Normalise,
    Operation,
    Parameter,
    Program,
    Rescale,
    Select,
    Slice,
    spread,
)
from tacit.cpt import TestingCPT
from tacit.errors import TooLargeError
from tacit.model import Model
from tacit.words import large

MAX_STEP = 100_000_000


def lower(program: Program, net: Model, fold: bool = True) -> Circuit:
    """The circuit that computes the joint of a program, with the numbers of `net`."""
    if not fold:
        _check_size(program)
    return _Lowering(program, net, fold).run()


def _check_size(program: Program) -> None:
    """Refuse a circuit that would be too large, before any of it is made: without folding its size is known."""
    nodes = sum(_nodes_of(program, i, operation) for i, operation in enumerate(program))
    if nodes > builder.MAX_NODES:
        raise TooLargeError(
            f"the circuit would have about {large(nodes)} nodes (limit {builder.MAX_NODES:,}); evaluate the query "
            "instead, or take the folded circuit"
        )


def _nodes_of(program: Program, i: int, operation: Operation) -> int:
    """How many nodes an operation becomes, if none of them is known already."""
    size = program.size(operation.axes)
    match operation:
        case Contract():
            union = program.size(program.union(i))
            return union * (len(operation.inputs) > 1) + size * (union > size)
        case Select():
            return size + program.size(program.operations[operation.inputs[0]].axes)
        case Parameter() | Likelihood() | Slice():
            return size
    return 0


class _Lowering:
    def __init__(self, program: Program, net: Model, fold: bool) -> None:
        self.program, self.net = program, net
        self.build = CircuitBuilder(fold)
        self.values: dict[int, Ids] = {}

    def run(self) -> Circuit:
        for name in (*self.program.soft, *self.program.hard):
            self.build.declare(self.net.variable(name))
        ends = self.program.last_uses()
        for i, operation in enumerate(self.program):
            if not isinstance(operation, Normalise):
                self.values[i] = self._nodes(i, operation)
            for j in ends[i]:
                self.values.pop(j, None)
        return self.build.finish(self.values[self.program.joint])

    def _nodes(self, i: int, operation: Operation) -> Ids:
        match operation:
            case Parameter():
                return self._parameter(operation)
            case Constant():
                return self.build.constants(operation.table)
            case Likelihood():
                return self.build.inputs(self.net.variable(operation.variable))
            case Slice():
                return self._slice(operation)
            case Gather():
                return self._gather(operation)
            case Contract():
                return self._contract(i, operation)
            case Select():
                return self._select(operation)
            case Rescale():
                return self.values[operation.inputs[0]]
            case Normalise():
                raise AssertionError("the circuit ends with the joint")

    def _parameter(self, operation: Parameter) -> Ids:
        table = self.net.cpt(operation.node).parts()[operation.part]
        if operation.part == "test":
            return table.astype(np.int64)  # operators: positions in TESTS, not nodes
        ids = self.build.parameters(operation.node, operation.part, table)
        if self.build.fold:
            ids = np.where(table == 0, self.build.zero, np.where(table == 1, self.build.one, ids))
        return ids

    def _slice(self, operation: Slice) -> Ids:
        ids = self.values[operation.inputs[0]]
        if self._holds_operators(operation.inputs[0]):
            return ids  # kept over all states: see _select
        axes = self.program.operations[operation.inputs[0]].axes
        for name in operation.variables:
            ids = self.build.slices(self.net.variable(name), np.moveaxis(ids, axes.index(name), -1))
            axes = tuple(a for a in axes if a != name)
        return ids

    def _gather(self, operation: Gather) -> Ids:
        flat = self.values[operation.inputs[0]].ravel()
        index = operation.index
        return np.where(
            index == ZERO, self.build.zero, np.where(index == ONE, self.build.one, flat[np.maximum(index, 0)])
        )

    def _contract(self, i: int, operation: Contract) -> Ids:
        union = self.program.union(i)
        if self.program.size(union) > MAX_STEP:
            raise TooLargeError(
                f"the circuit would need {self.program.size(union):,} nodes for one step (limit {MAX_STEP:,}); "
                "evaluate the program instead"
            )
        summed = tuple(a for a in union if a not in operation.axes)
        order = (*operation.axes, *summed)
        terms = [spread(self.values[j], self.program.operations[j].axes, order) for j in operation.inputs]
        product = terms[0] if len(terms) == 1 else self.build.products(terms[0], terms[1])
        if not summed:
            return product
        shape = [self.program.sizes[a] for a in operation.axes]
        return self.build.sums(product.reshape(*shape, -1))

    def _select(self, operation: Select) -> Ids:
        marginal, plus, minus, thresholds, test = operation.inputs
        cpt = self.net.cpt(operation.node)
        assert isinstance(cpt, TestingCPT)
        parents = self.program.operations[marginal].axes
        n_u = self.values[marginal]
        n = self.build.sums(n_u.reshape(1, -1))[0]
        t = spread(self.values[thresholds], self.program.operations[thresholds].axes, parents)
        x, limit = (n_u, self.build.products(t, n)) if cpt.gamma is None else (self.build.quotients(n_u, n), t)
        operator, observed = self._operators(test, parents)
        out: Axes = (*operation.axes, *observed)

        def over(ids: Ids, axes: Axes) -> Ids:
            return spread(ids, axes, out)

        sides = [over(self.values[j], self.program.operations[j].axes) for j in (plus, minus)]
        choice = (over(x, parents), over(limit, parents), *sides)
        code = over(operator, (*parents, *observed))
        if cpt.gamma is None:
            made = self.build.tests(choice[0], choice[1], choice[2], choice[3], code)
        else:
            made = self.build.sigmoids(choice[0], choice[1], choice[2], choice[3], code, cpt.gamma)
        for name in reversed(observed):
            made = self.build.slices(self.net.variable(name), made)
        return made

    def _holds_operators(self, i: int) -> bool:
        """Whether value i holds the operators of tests, which are no nodes."""
        operation = self.program.operations[i]
        if isinstance(operation, Gather):
            return self._holds_operators(operation.inputs[0])
        return isinstance(operation, Parameter) and operation.part == "test"

    def _operators(self, test: int, parents: Axes) -> tuple[Ids, Axes]:
        """The operators per parent state, and the observed parents on which they depend."""
        operation = self.program.operations[test]
        codes = self.values[test]
        axes = self.program.operations[operation.inputs[0]].axes if isinstance(operation, Slice) else operation.axes
        observed: Axes = ()
        for name in operation.variables if isinstance(operation, Slice) else ():
            moved = np.moveaxis(codes, axes.index(name), -1)
            axes = (*(a for a in axes if a != name), name)
            if (moved == moved[..., :1]).all():
                codes, axes = moved[..., 0], axes[:-1]
            else:
                codes, observed = moved, (*observed, name)
        return spread(codes, axes, (*parents, *observed)), observed

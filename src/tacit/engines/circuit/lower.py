"""From a program to the scalar circuit: every value becomes an array of circuit nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tacit.base.errors import TacitError, TooLargeError
from tacit.base.floats import representable
from tacit.base.text import large
from tacit.compiler import operations as ops
from tacit.compiler.operations.structured import terms_of
from tacit.compiler.program import Program
from tacit.engines.circuit import node_builder
from tacit.engines.circuit.circuit import Circuit
from tacit.engines.circuit.node_builder import CircuitBuilder
from tacit.engines.circuit.nodes import Ids
from tacit.model.cpt import THRESHOLDS, TestingCPT
from tacit.model.elements.distributions import structural_ones
from tacit.model.model import Model

MAX_STEP = 100_000_000


def lower(program: Program, net: Model, fold: bool = True) -> Circuit:
    """The circuit that computes the joint of a program, with the numbers of `net`."""
    if not fold:  # its size is known before any of it is made
        nodes = sum(_nodes_of(program, i, operation) for i, operation in enumerate(program))
        if nodes > node_builder.MAX_NODES:
            raise TooLargeError(
                f"the circuit would have about {large(nodes)} nodes (limit {node_builder.MAX_NODES:,}); evaluate the "
                "query instead, or take the folded circuit"
            )
    return _Lowering(program, net, fold).run()


def _nodes_of(program: Program, i: int, operation: ops.Operation) -> int:
    """How many nodes an operation becomes, if none of them is known already."""
    size = program.size(operation.axes)
    match operation:
        case ops.Contract():
            union = program.size(program.union(i))
            return union * (len(operation.inputs) > 1) + size * (union > size)
        case ops.Structured():
            return len(operation.terms) + len(operation.linear)
        case ops.Select():
            return size + program.size(program.operations[operation.inputs[0]].axes)
        case ops.Parameter() | ops.Likelihood() | ops.Slice() | ops.Add():
            return size
        case ops.Share():
            return 3 * program.size(program.operations[operation.inputs[0]].axes) + size * operation.own
    return 0


class _Lowering:
    """What the scalar rules of a program's operations write to: nodes of a circuit."""

    def __init__(self, program: Program, net: Model, fold: bool) -> None:
        self.program, self.net = program, net
        self.build = CircuitBuilder(fold)
        self.zero, self.one, self.constants = self.build.zero, self.build.one, self.build.constants
        self.values: dict[int, Ids] = {}
        self.value = self.values.__getitem__

    def run(self) -> Circuit:
        for name in (*self.program.soft, *self.program.hard):
            self.build.declare(self.net.variable(name))
        ends = self.program.last_uses()
        for i, operation in enumerate(self.program):
            self.values[i] = operation.scalar(self, i, self.program.setting(i))
            for j in ends[i]:
                self.values.pop(j, None)
        return self.build.finish(self.values[self.program.joint].ravel())

    def parameters(self, operation: ops.Parameter) -> Ids:
        table = self.net.cpt(operation.node).parts()[operation.part]
        ids = self.build.parameters(operation.node, operation.part, table)
        if not self.build.fold:
            return ids
        ones = table == 1 if operation.part == THRESHOLDS else structural_ones(table)
        return np.where(table == 0, self.zero, np.where(ones, self.one, ids))

    def likelihoods(self, variable: str) -> Ids:
        return self.build.inputs(self.net.variable(variable))

    def slices(self, operation: ops.Slice, setting: ops.Setting) -> Ids:
        ids, axes = self.values[operation.inputs[0]], setting.axes[0]
        for name in operation.variables:
            ids = self.build.slices(self.net.variable(name), np.moveaxis(ids, axes.index(name), -1))
            axes = tuple(a for a in axes if a != name)
        return ids

    def same_scale(self, i: int, inputs: Sequence[int]) -> None:
        """A circuit is not scaled."""

    def rescaled(self, i: int, source: int) -> Ids:
        return self.values[source]

    def sums(self, i: int, operation: ops.Contract, order: ops.Axes, setting: ops.Setting) -> Ids:
        if setting.size(order) > MAX_STEP:
            raise TooLargeError(
                f"the circuit would need {setting.size(order):,} nodes for one step (limit {MAX_STEP:,}); "
                "evaluate the program instead"
            )
        terms = self._spread(operation, setting, order)
        product = terms[0] if len(terms) == 1 else self.build.products(terms[0], terms[1])
        if len(order) == len(operation.axes):
            return product
        return self.build.sums(product.reshape(*setting.shape(operation.axes), -1))

    def _spread(self, operation: ops.Operation, setting: ops.Setting, order: ops.Axes) -> list[Ids]:
        operands = zip(operation.inputs, setting.axes, strict=True)
        return [ops.spread(self.values[j], axes, order) for j, axes in operands]

    def structured(self, operation: ops.Structured, setting: ops.Setting) -> Ids:
        """Level by level, and of a level, those instructions together that have the same number of terms."""
        assert not operation.largest, "a circuit has no largest product"
        outside = ~representable(operation.mantissas, operation.exponents, np.dtype(np.float64))
        if outside.any():
            raise TooLargeError(
                f"the circuit would need a constant out of the range of floats, about "
                f"2**{int(operation.exponents[outside][0])}; evaluate the query instead"
            )
        bounds, first = operation.bounds, operation.first_result(setting)
        literals = self.build.constants(np.ldexp(operation.mantissas, operation.exponents.astype(np.int32)))
        nothing = np.full(len(bounds) - 1, self.zero)
        ids = np.concatenate([*(self.values[j].ravel() for j in operation.inputs), literals, nothing])
        counts = np.diff(bounds)
        for level in operation.levels(setting):
            for count in sorted(set(counts[level].tolist())):
                alike = level[counts[level] == count]
                terms = ids[operation.terms[terms_of(bounds, alike)]].reshape(len(alike), count, 2)
                ids[first + alike] = self.build.sums(self.build.products(terms[..., 0], terms[..., 1]))
        index = operation.index
        return np.where(index >= 0, ids[np.maximum(index, 0)], np.where(index == ops.ONE, self.one, self.zero))

    def extremes(self, operation: ops.Extremes, setting: ops.Setting) -> Ids:
        raise TacitError("an interval has no circuit: it is taken from the extremes of a table")

    corners = extremes

    def shares(self, operation: ops.Share, setting: ops.Setting) -> Ids:
        cpt = self.net.cpt(operation.node)
        assert isinstance(cpt, TestingCPT)
        lower, upper, table = self._spread(operation, setting, operation.axes)
        if cpt.gamma is None:
            return table if operation.own else np.full(table.shape, self.zero)
        one, zero, rising = np.array(self.one), np.array(self.zero), np.zeros((), dtype=np.int64)
        likely = self.build.tests(upper, lower, one, zero, rising, cpt.gamma)
        rest = self.build.quotients(self.build.tests(upper, lower, zero, one, rising, cpt.gamma), likely)
        if not operation.own:
            return np.array(np.broadcast_to(rest, table.shape))
        return self.build.products(self.build.complements(rest), table)

    def added(self, operation: ops.Add, setting: ops.Setting) -> Ids:
        terms = self._spread(operation, setting, operation.axes)
        return self.build.sums(np.stack(np.broadcast_arrays(*terms), axis=-1))

    def choices(self, operation: ops.Select, setting: ops.Setting) -> Ids:
        cpt = self.net.cpt(operation.node)
        assert isinstance(cpt, TestingCPT)
        parents, out = setting.axes[0], (*operation.axes, *operation.observed)
        n_u, plus, minus, thresholds = (self.values[j] for j in operation.inputs)
        n = self.build.sums(n_u.reshape(1, -1))[0]
        t = ops.spread(thresholds, setting.axes[3], parents)
        x, limit = (n_u, self.build.products(t, n)) if cpt.gamma is None else (self.build.quotients(n_u, n), t)
        sides = (plus, setting.axes[1]), (minus, setting.axes[2])
        a, b, c, d = (ops.spread(ids, axes, out) for ids, axes in ((x, parents), (limit, parents), *sides))
        operators = operation.operators(setting, out)
        selected = self.build.tests(a, b, c, d, operators, cpt.gamma)
        for name in reversed(operation.observed):
            selected = self.build.slices(self.net.variable(name), selected)
        return selected

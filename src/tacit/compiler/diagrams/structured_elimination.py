"""Structured elimination: factors as decision diagrams, and what is left of them as one operation.

A table of which most entries are 0, 1 or equal is far smaller as a diagram, and so are the products and sums on the
way to the answer. The numbers at the ends of the diagrams are numbers of a circuit: those of tables that never change
are built in, those of tables that may be learned and of evidence are symbols.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.compiler.builder import Builder
from tacit.compiler.diagrams import fingerprints, listing_kernels
from tacit.compiler.diagrams.diagram_kernels import CONSTANT, SUM
from tacit.compiler.diagrams.elimination import Alphabet, DiagramElimination, DiagramFactor, OutOfBudgetError, Result
from tacit.compiler.operations import ONE, ZERO, Axis, Constant, Gather, Parameter, Select, Structured
from tacit.compiler.operations.arrangement import distinct, gathered, order_of
from tacit.compiler.operations.axes import Ids, Mask
from tacit.compiler.order.sweep import sweep_order
from tacit.compiler.order.tree import Problem
from tacit.model.elements.distributions import structural_ones
from tacit.model.model import Model


class Symbols:
    """The numbers of a program's values: built in, or symbols that refer to their entries."""

    def __init__(self, net: Model, builder: Builder) -> None:
        self._net, self._builder = net, builder
        self.alphabet = Alphabet()
        self.sources: dict[int, tuple[int, int]] = {}  # symbol -> value, entry
        self.fixed: dict[str, None] = {}  # nodes whose numbers are built in
        self._known: dict[int, Ids] = {}
        self._equal: dict[tuple[tuple[int, ...], bytes], Ids] = {}  # tables that are the same

    def of(self, value: int) -> Ids:
        """The numbers of all entries of a value, over its axes."""
        if value not in self._known:
            self._known[value] = self._numbers(value)
        return self._known[value]

    def _numbers(self, value: int) -> Ids:
        operation = self._builder.operations[value]
        match operation:
            case Parameter():
                return self._table(value, operation)
            case Constant():
                return np.where(operation.table == 1, 1, 0)
            case Gather():
                return gathered(self.of(operation.inputs[0]).ravel(), operation.index, 0, 1)
        return self._symbols(value, self._support(value))

    def _table(self, value: int, parameter: Parameter) -> Ids:
        cpt = self._net.cpt(parameter.node)
        table = cpt.parts()[parameter.part]
        if getattr(cpt, "learn", False) or np.isnan(table).any():
            return np.where(structural_ones(table), 1, self._symbols(value, table != 0))
        self.fixed[parameter.node] = None
        key = table.shape, table.tobytes()
        if key not in self._equal:
            self._equal[key] = self.alphabet.literals(table, fingerprints.of_rows(table))
        return self._equal[key]

    def _support(self, value: int) -> Mask:
        """Which entries of a value may differ from 0, as far as selected tables tell."""
        operation, build = self._builder.operations[value], self._builder
        match operation:
            case Parameter():
                return np.asarray(self._net.cpt(operation.node).parts()[operation.part] != 0)
            case Gather():
                return gathered(self._support(operation.inputs[0]).ravel(), operation.index, False, True)
            case Select():
                sides = operation.inputs[1:3]
                plus, minus = (self._support(v).transpose(order_of(build.axes(v), operation.axes)) for v in sides)
                return np.asarray(plus | minus)
        return np.ones(build.shape(operation.axes), dtype=np.bool_)

    def _symbols(self, value: int, possible: Mask) -> Ids:
        """A symbol for every entry that may differ from 0."""
        numbers, places = np.zeros(possible.size, dtype=np.int64), np.flatnonzero(possible)
        numbers[places] = symbols = self.alphabet.symbols(len(places), int(self._builder.batched[value]))
        self.sources |= zip(symbols.tolist(), ((value, i) for i in places.tolist()), strict=True)
        return numbers.reshape(possible.shape)


@dataclass
class Attempt:
    """An order of elimination, and the order of the levels that goes with it, the topmost first."""

    order: Sequence[int]
    levels: Sequence[int]
    reached: float = 0.0  # which part of the axes was eliminated when the budget was spent


@dataclass
class StructuredElimination:
    """The structured elimination of a problem: sums down to the axes in `keep`, maxima over those in `best`.

    `most_factors` that depend on evidence are multiplied without rescaling. It gives up at once where diagrams end in
    more than `max_numbers` for each node.
    """

    net: Model
    builder: Builder
    problem: Problem
    keep: Sequence[int]
    best: set[int]
    most_factors: int
    max_numbers: float
    fixed: dict[str, None] = field(default_factory=dict)  # nodes whose numbers are built in
    gave_up: tuple[Axis | None, int, float] | None = None  # the axis, nodes, and numbers per node of the last failure

    def run(self, values: Sequence[int], fill: Sequence[int], budgets: Sequence[int]) -> int | None:
        """The result of the first attempt within its budget, in the order `fill` or in sweeps, if there is one."""
        names, build = self.problem.names, self.builder
        symbols, place = Symbols(self.net, build), {axis: i for i, axis in enumerate(names)}
        factors = [DiagramFactor(symbols.of(v), tuple(place[a] for a in build.axes(v))) for v in values]
        most_factors = self.most_factors if sum(build.batched[v] for v in values) > self.most_factors else 0
        for attempt, budget in self._attempts(fill, budgets):
            elimination = DiagramElimination(symbols.alphabet, self.problem.sizes, attempt.levels, budget, most_factors)
            try:
                result = elimination.run(factors, attempt.order, self.keep, self.best)
            except OutOfBudgetError as error:
                axis, nodes, numbers, attempt.reached = error.args
                self.gave_up = None if axis < 0 else names[axis], nodes, numbers / max(1, nodes)
                if self.gave_up[2] > self.max_numbers:
                    return None
            else:
                self.fixed = symbols.fixed
                axes = tuple(names[i] for i in self.keep)
                return Emission(build, symbols.sources, result, bool(self.best)).run(axes)
        return None

    def _attempts(self, fill: Sequence[int], budgets: Sequence[int]) -> Iterator[tuple[Attempt, int]]:
        """Attempts with their budgets; between the first and the last, only the best of those in the order `fill`."""
        keep, sweep = self.keep, sweep_order(self.problem)
        # the first axis at the bottom; children on top; the first axis on top
        levels = [(*keep, *reversed(fill)), (*keep, *sorted(fill, reverse=True)), (*fill, *keep)]
        fills = [Attempt(fill, each) for each in levels]
        orders = [sorted(order, key=self.best.__contains__) for order in (sweep, sweep[::-1])]
        sweeps = [Attempt(order, (*keep, *reversed(order))) for order in orders]
        for i, budget in enumerate(budgets):
            fills.sort(key=lambda attempt: -attempt.reached)
            later = [fills[0], *sweeps, *(fills[1:] if i == len(budgets) - 1 else ())]
            for attempt in later if i else [*fills, *sweeps]:
                yield attempt, budget


class Emission:
    """From the numbers of a result to operations of a program."""

    def __init__(self, builder: Builder, sources: dict[int, tuple[int, int]], result: Result, largest: bool) -> None:
        self._builder, self._result, self._largest = builder, result, largest
        self._sources, numbers = dict(sources), result.numbers
        batched = np.zeros(len(numbers.kind), dtype=np.bool_)
        for symbol, (value, _) in sources.items():
            batched[symbol] = builder.batched[value]
        # what is rescaled depends on evidence; sums below a maximum, which come after all of that, may not
        for rescaled in (True, False):
            reached = listing_kernels.reached(numbers, batched)
            for boundary in result.boundaries:
                if boundary.rescaled == rescaled:
                    batched[boundary.symbols] = rescaled or reached[boundary.numbers].any()
        self._static = ~listing_kernels.reached(numbers, batched)

    def run(self, axes: tuple[Axis, ...]) -> int:
        """The value over the axes that were kept."""
        for boundary in self._result.boundaries:
            axis = self._builder.fresh_axis(len(boundary.numbers))
            value = self._operation(boundary.numbers, (axis,), boundary.largest)
            if boundary.rescaled:
                value = self._builder.rescale(value)
            self._refer(boundary.symbols, value)
        return self._operation(self._result.table, axes, self._largest)

    def _refer(self, numbers: Ids, value: int) -> None:
        """Let numbers stand for the entries of a value from now on."""
        self._sources |= {number: (value, i) for i, number in enumerate(numbers.tolist())}

    def _operation(self, table: Ids, axes: tuple[Axis, ...], largest: bool) -> int:
        """A value of some numbers: what does not depend on rows is made apart, if anything else does."""
        leaves, rows = np.zeros_like(self._static), not self._static[table].all()
        if rows:
            shared = self._shared_static(table)
            if len(shared):
                axis = self._builder.fresh_axis(len(shared))
                self._refer(shared, self._built(shared, (axis,), leaves, largest, rows=False))
            leaves = self._static
        return self._built(table, axes, leaves, largest, rows)

    def _shared_static(self, table: Ids) -> Ids:
        """The static sums and products that others, or the table, use; symbols and constants are at hand."""
        kind = self._result.numbers.kind
        _, _, _, terms, _ = self._listing(table, self._static, rows=True)
        used = distinct(np.concatenate([terms.ravel(), table.ravel()]))
        used = used[used < len(kind)]
        inner = used[self._static[used] & (kind[used] >= SUM)]
        return np.array([n for n in inner.tolist() if n not in self._sources], dtype=np.int64)

    def _listing(self, table: Ids, leaves: Mask, rows: bool) -> tuple[Ids, Ids, Mask, Ids, int]:
        numbers, roots = self._result.numbers, distinct(table)
        inner = roots[~leaves[roots] & (numbers.kind[roots] >= SUM)]
        return listing_kernels.listing(numbers, leaves, inner, rows)  # type: ignore[no-any-return]

    def _built(self, table: Ids, axes: tuple[Axis, ...], leaves: Mask, largest: bool, rows: bool) -> int:
        """An operation that makes the numbers of a table."""
        numbers, build = self._result.numbers, self._builder
        made, ends, linear, terms, parts = self._listing(table, leaves, rows)
        used = distinct(np.concatenate([terms.ravel(), table.ravel()]))
        used = used[~np.isin(used, made)]
        constants = used[(numbers.kind[used] == CONSTANT) & (used > 1)]
        symbols = used[numbers.kind[used] != CONSTANT].tolist()
        inputs = sorted({self._sources[n][0] for n in symbols})
        sizes = [math.prod(build.shape(build.axes(value))) for value in inputs]
        *starts, size = np.cumsum([0, *sizes]).tolist()
        first = dict(zip(inputs, starts, strict=True))
        # references as `Structured` counts them: entries of inputs, literals, results
        reference = np.full(len(numbers.kind) + parts, ZERO, dtype=np.int64)
        reference[symbols] = [first[value] + entry for value, entry in map(self._sources.__getitem__, symbols)]
        literals = np.append(1, constants)
        reference[literals] = size + np.arange(len(literals))
        reference[made] = size + len(literals) + np.arange(len(made))
        operation = Structured(
            inputs=tuple(inputs),
            mantissas=numbers.mantissa[literals],
            exponents=numbers.exponent[literals],
            starts=np.append(0, ends),
            terms=reference[terms],
            linear=linear,
            index=np.where(table == 1, ONE, reference[table]),
            axes=axes,
            largest=largest,
        )
        return build.structured(operation, int(numbers.degree[table].max(initial=0)))

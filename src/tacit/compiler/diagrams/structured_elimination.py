"""Structured elimination: factors as decision diagrams, and what is left of them as one operation.

A table of which most entries are 0, 1 or equal is far smaller as a diagram, and so are the products and sums on the
way to the answer. The numbers at the ends of the diagrams are numbers of a circuit: those of tables that never change
are built in, those of tables that may be learned and of evidence are symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.builder import Builder
from tacit.compiler.diagrams import diagram_kernels, fingerprints, listing_kernels
from tacit.compiler.diagrams.elimination import Alphabet, Elimination, Factor, Ids, OutOfBudgetError, Result
from tacit.compiler.operations import ONE, ZERO, Axis, Constant, Gather, Parameter, Select, Structured
from tacit.compiler.order.sweep import sweep_order
from tacit.compiler.order.tree import Problem
from tacit.compiler.structure_budget import Failure, Structure
from tacit.model.distributions import structural_ones
from tacit.model.model import Model

Mask = NDArray[np.bool_]


@dataclass
class Attempt:
    """An order of elimination, and the order of the levels that goes with it, the topmost first."""

    order: Sequence[int]
    levels: Sequence[int]
    reached: float = 0.0  # which part of the axes was eliminated when the budget was spent


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
                taken = self.of(operation.inputs[0]).ravel()[np.maximum(operation.index, 0)]
                return np.where(operation.index >= 0, taken, np.where(operation.index == ONE, 1, 0))
            case Select():
                return self._symbols(value, self._possible(operation))
        return self._symbols(value)

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

    def _possible(self, selection: Select) -> Mask:
        """Which entries of a selected table may differ from 0."""
        made = []
        for side in selection.inputs[1:3]:
            known = self._support(side)
            axes = self._builder.axes(side)
            made.append(known.transpose([axes.index(a) for a in selection.axes]))
        return np.asarray(made[0] | made[1])

    def _support(self, value: int) -> Mask:
        operation = self._builder.operations[value]
        match operation:
            case Parameter():
                return np.asarray(self._net.cpt(operation.node).parts()[operation.part] != 0)
            case Select():
                return self._possible(operation)
            case Gather():
                taken = self._support(operation.inputs[0]).ravel()[np.maximum(operation.index, 0)]
                return np.asarray(np.where(operation.index >= 0, taken, operation.index == ONE))
        return np.ones([self._builder.sizes[a] for a in operation.axes], dtype=np.bool_)

    def _symbols(self, value: int, possible: Mask | None = None) -> Ids:
        """A symbol for every entry that may differ from 0."""
        shape = [self._builder.sizes[a] for a in self._builder.axes(value)]
        found = np.zeros(shape, dtype=np.int64).ravel()
        places = np.arange(len(found)) if possible is None else np.flatnonzero(possible)
        found[places] = made = self.alphabet.symbols(len(places), int(self._builder.batched[value]))
        self.sources |= zip(made.tolist(), ((value, int(i)) for i in places), strict=True)
        return found.reshape(shape)


@dataclass
class Search:
    """The structured elimination of some values of a program under construction."""

    net: Model
    builder: Builder
    structure: Structure
    fixed: dict[str, None] = field(default_factory=dict)
    failure: Failure | None = None

    def run(
        self,
        values: Sequence[int],
        problem: Problem,
        keep: Sequence[Axis],
        best: frozenset[Axis],
        fill: Sequence[int],
        budgets: Sequence[int],
    ) -> int | None:
        """Their product, summed down to the axes in `keep`, in the order `fill`; the largest over those in `best`.

        None where diagrams are too large.
        """
        numbers = Symbols(self.net, self.builder)
        place = {axis: i for i, axis in enumerate(problem.names)}
        factors = [Factor(numbers.of(v), tuple(place[a] for a in self.builder.axes(v))) for v in values]
        kept, last = [place[a] for a in keep if a in place], {place[a] for a in best if a in place}
        evidence = sum(self.builder.batched[v] for v in values)
        most = self.structure.most_factors if evidence > self.structure.most_factors else 0
        result = self._search(numbers.alphabet, factors, problem, kept, fill, most, last, budgets)
        if result is None:
            return None
        self.fixed = numbers.fixed
        axes = tuple(problem.names[i] for i in kept)
        return Emission(self.builder, numbers.sources, result, bool(best)).run(axes)

    def _search(
        self,
        alphabet: Alphabet,
        factors: Sequence[Factor],
        problem: Problem,
        keep: Sequence[int],
        fill: Sequence[int],
        most_factors: int,
        best: set[int],
        budgets: Sequence[int],
    ) -> Result | None:
        """The first attempt that ends within its budget.

        The first budget goes to all attempts, unless the first one shows that there is little structure.
        After that, of those that differ in their levels alone, the one that came farthest goes on, and the others only
        come back in the end.
        """
        sweep, back = (sorted(order, key=best.__contains__) for order in _sweeps(problem))
        # the first axis at the bottom; children on top; the first axis on top
        levels = [(*keep, *reversed(fill)), (*keep, *sorted(fill, reverse=True)), (*fill, *keep)]
        fills = [Attempt(fill, each) for each in levels]
        sweeps = [Attempt(order, (*keep, *reversed(order))) for order in (sweep, back)]
        for i, budget in enumerate(budgets):
            fills.sort(key=lambda attempt: -attempt.reached)
            later = [fills[0], *sweeps, *(fills[1:] if i == len(budgets) - 1 else ())]
            for attempt in later if i else [*fills, *sweeps]:
                elimination = Elimination(alphabet, problem.sizes, attempt.levels, budget, most_factors)
                try:
                    return elimination.run(factors, attempt.order, keep, best)
                except OutOfBudgetError as error:
                    axis = None if error.axis < 0 else problem.names[error.axis]
                    self.failure = Failure(axis, error.nodes, error.numbers / max(1, error.nodes))
                    attempt.reached = error.reached
                    if self.failure.numbers > self.structure.numbers:
                        return None
        return None


def _sweeps(problem: Problem) -> tuple[list[int], list[int]]:
    order = sweep_order(problem)
    return order, order[::-1]


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
            reached = listing_kernels.reached(numbers.kind, numbers.left, numbers.right, batched)
            for boundary in result.boundaries:
                if boundary.rescaled == rescaled:
                    batched[boundary.symbols] = rescaled or reached[boundary.numbers].any()
        self._static = ~listing_kernels.reached(numbers.kind, numbers.left, numbers.right, batched)

    def run(self, axes: tuple[Axis, ...]) -> int:
        """The value over the axes that were kept."""
        for boundary in self._result.boundaries:
            axis = self._builder.fresh_axis(len(boundary.numbers))
            value = self._operation(boundary.numbers, (axis,), boundary.largest)
            if boundary.rescaled:
                value = self._builder.rescale(value)
            self._sources |= zip(
                boundary.symbols.tolist(), ((value, i) for i in range(len(boundary.symbols))), strict=True
            )
        return self._operation(self._result.table, axes, self._largest)

    def _operation(self, table: Ids, axes: tuple[Axis, ...], largest: bool) -> int:
        """A value of some numbers: what does not depend on rows is made apart, if anything else does."""
        if not self._static[table].all():
            needed = self._used_static(table)
            if len(needed):
                axis = self._builder.fresh_axis(len(needed))
                value = self._built(needed, (axis,), np.zeros_like(self._static), largest, rows=False)
                self._sources |= zip(needed.tolist(), ((value, i) for i in range(len(needed))), strict=True)
            return self._built(table, axes, self._static, largest, rows=True)
        return self._built(table, axes, np.zeros_like(self._static), largest, rows=False)

    def _used_static(self, table: Ids) -> Ids:
        """The static sums and products that others, or the table, use; symbols and constants are at hand."""
        numbers = self._result.numbers
        _, _, _, terms, _ = self._listing(table, self._static, rows=True)
        used = np.unique(np.concatenate([terms.ravel(), table.ravel()]))
        used = used[used < len(numbers.kind)]
        inner = self._static[used] & (numbers.kind[used] >= diagram_kernels.SUM)
        fresh = [n for n in used[inner].tolist() if n not in self._sources]
        return np.array(fresh, dtype=np.int64)

    def _listing(self, table: Ids, leaves: Mask, rows: bool) -> tuple[Ids, Ids, Mask, Ids, int]:
        numbers = self._result.numbers
        roots = np.unique(table)
        inner = ~leaves[roots] & (numbers.kind[roots] >= diagram_kernels.SUM)
        return listing_kernels.listing(numbers.kind, numbers.left, numbers.right, leaves, roots[inner], rows)  # type: ignore[no-any-return]

    def _built(self, table: Ids, axes: tuple[Axis, ...], leaves: Mask, largest: bool, rows: bool) -> int:
        numbers = self._result.numbers
        made, ends, linear, terms, parts = self._listing(table, leaves, rows)
        count = len(numbers.kind)
        reference = np.full(count + parts, -3, dtype=np.int64)
        reference[made] = -4  # made here
        used = np.unique(np.concatenate([terms.ravel(), table.ravel()]))
        used = used[reference[used] == -3]
        constants = used[(numbers.kind[used] == diagram_kernels.CONSTANT) & (used > 1)]
        symbols = [int(n) for n in used if numbers.kind[n] != diagram_kernels.CONSTANT]
        inputs = sorted({self._sources[n][0] for n in symbols})
        first: dict[int, int] = {}
        size = 0
        for value in inputs:
            first[value] = size
            size += int(np.prod([self._builder.sizes[a] for a in self._builder.axes(value)]))
        for n in symbols:
            value, entry = self._sources[n]
            reference[n] = first[value] + entry
        reference[1] = size
        reference[constants] = size + 1 + np.arange(len(constants))
        reference[made] = size + 1 + len(constants) + np.arange(len(made))
        index = np.where(table == 0, ZERO, np.where(table == 1, ONE, reference[table]))
        literals = np.concatenate([[1], constants])
        operation = Structured(
            tuple(inputs),
            numbers.mantissa[literals],
            numbers.exponent[literals],
            np.concatenate([[0], ends]),
            reference[terms],
            linear,
            index,
            axes,
            largest,
        )
        return self._builder.structured(operation, int(numbers.degree[table].max(initial=0)))

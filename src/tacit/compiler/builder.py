"""Programs under construction: equal operations are the same operation, and scales stay in range."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.base.text import fresh_name
from tacit.compiler import operations as ops
from tacit.compiler.factors import AxisNames, IndexedFactor, places
from tacit.compiler.operations import Axes, Axis
from tacit.compiler.program import ParentMarginal, Program
from tacit.compiler.prune import Pruned
from tacit.compiler.question import Question
from tacit.model.elements.variable import row_table
from tacit.model.model import Model


class Builder:
    """Adds operations with a unique table, keyed by type and inputs.

    `axis` gives the axis of each variable: none if one state is possible, one of another name if not all are.
    `evidence_per_scale` bounds how many evidence-dependent factors are multiplied without rescaling: 8 keep float64
    above 2^-1022 as long as no single one shrinks a row's largest entry below 2^-120. A table that observed states
    will index counts, too; products of more of them than that are indexed first, since only rows can be rescaled.
    Hard evidence on a variable of one state indexes nothing: its axis is dropped, and it does not count.
    """

    def __init__(self, net: Model, pruned: Pruned, hard: frozenset[str], evidence_per_scale: int) -> None:
        self.names = AxisNames(net)
        self.hard, self.evidence_per_scale = hard, evidence_per_scale
        self._net, self._states = net, pruned.states
        self.axis: dict[str, Axis | None] = {}
        for name, states in pruned.states.items():
            whole = len(states) == net.variable(name).card
            self.axis[name] = None if len(states) == 1 else name if whole else self.names.fresh(f"{name}'")
        self.owners = {axis: name for name, axis in self.axis.items() if axis is not None}
        self.sizes: dict[Axis, int] = {name: net.variable(name).card for name in pruned.nodes}
        self.sizes |= {axis: len(pruned.states[name]) for axis, name in self.owners.items()}
        self.operations: list[ops.Operation] = []
        self.batched: list[bool] = []
        self._factors: list[int] = []  # evidence-dependent factors in a value since it was last rescaled
        self._table: dict[Hashable, int] = {}
        self.selections: dict[str, ParentMarginal] = {}

    def axes(self, value: int) -> Axes:
        return self.operations[value].axes

    def shape(self, axes: Iterable[Axis]) -> list[int]:
        return [self.sizes[a] for a in axes]

    def _add(self, operation: ops.Operation, key: Hashable, factors: int) -> int:
        """The value of an operation: batched if it reads evidence itself or through its inputs."""
        value = self._table.get(key)
        if value is None:
            value = self._table[key] = len(self.operations)
            self.operations.append(operation)
            self.batched.append(operation.reads_evidence or any(self.batched[v] for v in operation.inputs))
            self._factors.append(factors)
        return value

    def factor(self, factor: IndexedFactor) -> int:
        """A factor over the possible states only, without axes of one state."""
        self._note_sizes(factor)
        possible = [self._states.get(a, range(n)) for a, n in zip(factor.axes, factor.index.shape, strict=True)]
        axes = tuple(axis for a in factor.axes if (axis := self.axis.get(a, a)) is not None)
        index = factor.index[np.ix_(*possible)].reshape(self.shape(axes)).copy()
        if factor.source is None:
            table = np.where(index == ops.ONE, 1.0, 0.0)
            return self._add(ops.Constant(table, axes), ("constant", axes, table.tobytes()), 0)
        source = self._add(factor.source, factor.source, self._evidence_in(factor.source, factor.source.axes))
        if axes == factor.source.axes and np.array_equal(index.ravel(), np.arange(index.size)):
            return source
        return self._gather(source, index, axes, self._evidence_in(factor.source, axes))

    def _note_sizes(self, factor: IndexedFactor) -> None:
        """Learn the lengths of auxiliary axes: of the factor, and of the part that its numbers are from."""
        for axis, size in zip(factor.axes, factor.index.shape, strict=True):
            self.sizes.setdefault(axis, size)
        source = factor.source
        if isinstance(source, ops.Likelihood):
            self.sizes.setdefault(source.variable, factor.index.size)
        if isinstance(source, ops.Parameter) and not self.sizes.keys() >= set(source.axes):
            for axis, size in zip(source.axes, self._net.cpt(source.node).parts()[source.part].shape, strict=True):
                self.sizes.setdefault(axis, size)

    def _evidence_in(self, source: ops.Parameter | ops.Likelihood, axes: Axes) -> int:
        """1 if the entries that a row sees of `source`, arranged over `axes`, depend on the row; else 0."""
        return int(isinstance(source, ops.Likelihood) or not self.hard.isdisjoint(axes))

    def _gather(self, value: int, index: NDArray[np.int64], axes: Axes, factors: int) -> int:
        return self._add(ops.Gather((value,), index, axes), ("gather", value, axes, index.tobytes()), factors)

    def embed(self, value: int, names: Axes) -> int:
        """A value over the possible states of some variables as one over all of them, in the order of `names`."""
        axes = self.axes(value)
        if axes == names:
            return value
        index = np.full(self.shape(names), ops.ZERO, dtype=np.int64)
        possible = ops.spread(places(self.shape(axes)), axes, tuple(self.axis[n] or n for n in names))
        index[np.ix_(*(self._states[n] for n in names))] = possible
        return self._gather(value, index, names, self._factors[value])

    def renamed(self, value: int, names: Mapping[Axis, Axis]) -> int:
        """A value with other names for some of its axes."""
        axes = tuple(names.get(axis, axis) for axis in self.axes(value))
        if axes == self.axes(value):
            return value
        self.sizes.update({new: self.sizes[old] for old, new in names.items()})
        return self._gather(value, places(self.shape(axes)), axes, self._factors[value])

    def slice(self, value: int) -> int:
        """Index the axes of hard evidence, if the value has any."""
        observed = tuple(a for a in self.axes(value) if a in self.hard)
        if not observed:
            return value
        axes = tuple(a for a in self.axes(value) if a not in self.hard)
        return self._add(ops.Slice((value,), observed, axes), ("slice", value), self._factors[value])

    def contract(self, values: tuple[int, ...], keep: Iterable[Axis], largest: bool = False) -> int:
        """The product of one or two values, summed down to the axes in `keep`, or the largest over the others."""
        if len(values) == 2 and sum(self._factors[v] for v in values) > self.evidence_per_scale:
            values = tuple(self.rescale(v) if self._factors[v] > 1 else v for v in map(self.slice, values))
        batched = any(self.batched[v] for v in values)
        inputs = tuple(sorted(self.slice(v) if batched else v for v in values))
        kept = set(keep)
        axes = tuple(dict.fromkeys(a for v in inputs for a in self.axes(v) if a in kept))
        if len(inputs) == 1 and len(axes) == len(self.axes(inputs[0])):
            return inputs[0]
        factors = sum(self._factors[v] for v in inputs)
        largest = largest and any(a not in kept for v in inputs for a in self.axes(v))
        return self._add(ops.Contract(inputs, axes, largest), ("contract", inputs, frozenset(axes), largest), factors)

    def rescale(self, value: int) -> int:
        assert self.batched[value], "only rows can be rescaled"
        return self._add(ops.Rescale((value,), self.axes(value)), ("rescale", value), 1)

    def select(self, node: str, inputs: tuple[int, int, int, int], tests: NDArray[np.int64], observed: Axes) -> int:
        """The table that a testing node selects; `tests` as in `Select`."""
        batched = any(self.batched[v] for v in inputs)
        axes = (*self.axes(inputs[0]), *(a for a in self.axes(inputs[1]) if a not in self.axes(inputs[0])))
        return self._add(ops.Select(node, inputs, tests, observed, axes), ("select", node, inputs), int(batched))

    def share(self, node: str, inputs: tuple[int, int, int], own: bool) -> int:
        """How a table counts beside those before it; as in `Share`."""
        axes = self.axes(inputs[2])
        factors = int(not self.hard.isdisjoint(axes))
        return self._add(ops.Share(node, inputs, own, axes), ("share", node, inputs, own), factors)

    def add(self, values: tuple[int, int]) -> int:
        """The sum of two tables, of which one may depend on evidence."""
        batched = any(self.batched[v] for v in values)
        a, b = (self.slice(v) if batched else v for v in values)
        return self._add(ops.Add((a, b), self.axes(a)), ("add", a, b), max(self._factors[v] for v in (a, b)))

    def structured(self, operation: ops.Structured, factors: int) -> int:
        """Sums of products of single entries; `factors` as in a product of so many that depend on evidence."""
        return self._add(operation, ("structured", len(self.operations)), factors)

    def fresh_axis(self, size: int) -> Axis:
        """An axis that only numbers the entries of a value."""
        axis = fresh_name(f"#{len(self.operations)}", self.sizes)
        self.sizes[axis] = size
        return axis

    def _in_order(self, used: Iterable[int]) -> list[int]:
        """Operations as they were made, but densities just before what reads them: few of these large ones live."""
        reader: dict[int, int] = {}
        for i in sorted(used):
            for j in self.operations[i].inputs:
                reader.setdefault(j, i)
        numbered = [(i, self.operations[i]) for i in used]
        late = {i: reader.get(i, i) for i, op in numbered if isinstance(op, ops.Likelihood) and op.of_density}
        return sorted(used, key=lambda i: (late.get(i, i), i))

    def finish(self, question: Question, joint: int, fixed: Iterable[str], traced: bool) -> Program:
        """The program that computes `joint` and what the selections need, without operations nobody uses."""
        used = {joint, *(selection.marginal for selection in self.selections.values())}
        for i, operation in reversed(list(enumerate(self.operations))):
            if i in used or isinstance(operation, ops.Select):
                used.update((i, *operation.inputs))
        place = {old: new for new, old in enumerate(self._in_order(used))}
        used_operations: list[Any] = [self.operations[i] for i in place]
        operations = tuple(
            replace(op, inputs=tuple(place[j] for j in op.inputs)) if op.inputs else op for op in used_operations
        )
        axes = {a for op in operations for a in (*op.axes, *(op.observed if isinstance(op, ops.Select) else ()))}
        axes.update(op.variable for op in operations if isinstance(op, ops.Likelihood))
        beside = (*map(row_table, question.per_row), *sorted(self.hard))  # of known states, where tables are of rows
        return Program(
            operations=operations,
            sizes={a: self.sizes[a] for a in self.sizes if a in axes},
            batched=tuple(self.batched[i] for i in place),
            query=question.query,
            joint=place[joint],
            selections={n: ParentMarginal(place[s.marginal], s.axes) for n, s in self.selections.items()},
            states=self._states,
            owners=self.owners,
            largest=bool(question.best),
            soft=(*question.soft, *(beside if question.per_row else ())),
            hard=tuple(sorted(self.hard)),
            fixed=tuple(fixed),
            traced=traced,
        )

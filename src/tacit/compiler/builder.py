"""Programs under construction: equal operations are the same operation, and scales stay in range."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.factors import Factor
from tacit.compiler.operations import (
    ONE,
    ZERO,
    Add,
    Axes,
    Axis,
    Constant,
    Contract,
    Gather,
    Likelihood,
    Operation,
    Parameter,
    Rescale,
    Select,
    Share,
    Slice,
    Structured,
    spread,
)
from tacit.compiler.program import ParentMarginal, Program
from tacit.compiler.question import Question


class Builder:
    """Adds operations with a unique table, keyed by type and inputs.

    `evidence_per_scale` bounds how many evidence-dependent factors are multiplied without rescaling: 8 keep float64
    above 2^-1022 as long as no single one shrinks a row's largest entry below 2^-120. A table that observed states
    will index counts, too; products of more of them than that are indexed first, since only rows can be rescaled.
    Hard evidence on a variable of one state indexes nothing: its axis is dropped, and it does not count.
    """

    def __init__(self, sizes: Mapping[Axis, int], hard: frozenset[str], evidence_per_scale: int) -> None:
        self.sizes = dict(sizes)
        self.hard = hard
        self.evidence_per_scale = evidence_per_scale
        self.operations: list[Operation] = []
        self.batched: list[bool] = []
        self._factors: list[int] = []  # evidence-dependent factors in a value since it was last rescaled
        self._table: dict[Hashable, int] = {}

    def axes(self, value: int) -> Axes:
        return self.operations[value].axes

    def _add(self, operation: Operation, key: Hashable, factors: int) -> int:
        """The value of an operation: batched if it reads evidence itself or through its inputs."""
        found = self._table.get(key)
        if found is None:
            found = self._table[key] = len(self.operations)
            self.operations.append(operation)
            self.batched.append(operation.reads_evidence or any(self.batched[v] for v in operation.inputs))
            self._factors.append(factors)
        return found

    def factor(self, factor: Factor, axes: Axes) -> int:
        """A factor over `axes` (the names its axes have in the program)."""
        if factor.source is None:
            table = np.where(factor.index == ONE, 1.0, 0.0)
            return self._add(Constant(table, axes), ("constant", axes, table.tobytes()), 0)
        source = self._add(factor.source, factor.source, self._evidence_in(factor.source, factor.source.axes))
        if axes == factor.source.axes and _is_arange(factor.index):
            return source
        key = ("gather", source, axes, factor.index.tobytes())
        return self._add(Gather((source,), factor.index, axes), key, self._evidence_in(factor.source, axes))

    def _evidence_in(self, source: Parameter | Likelihood, axes: Axes) -> int:
        """1 if the entries that a row sees of `source`, arranged over `axes`, depend on the row; else 0."""
        return int(isinstance(source, Likelihood) or any(a in self.hard for a in axes))

    def embed(self, value: int, names: Axes, states: Sequence[Sequence[int]], axis: Mapping[str, Axis | None]) -> int:
        """A value over some states of variables as a value over all of them, in the order of `names`.

        `axis` gives the axis of each variable, none where one state is possible.
        """
        own = self.axes(value)
        if own == names and all(len(s) == self.sizes[n] for s, n in zip(states, names, strict=True)):
            return value
        places = np.arange(math.prod(self.sizes[a] for a in own)).reshape([self.sizes[a] for a in own])
        places = spread(places, own, tuple(axis[name] or name for name in names))
        index = np.full([self.sizes[name] for name in names], ZERO, dtype=np.int64)
        index[np.ix_(*states)] = places
        return self._add(
            Gather((value,), index, names), ("gather", value, names, index.tobytes()), self._factors[value]
        )

    def renamed(self, value: int, names: Mapping[Axis, Axis]) -> int:
        """A value with other names for some of its axes."""
        axes = tuple(names.get(axis, axis) for axis in self.axes(value))
        if axes == self.axes(value):
            return value
        self.sizes.update({new: self.sizes[old] for old, new in names.items()})
        shape = [self.sizes[axis] for axis in axes]
        index = np.arange(math.prod(shape)).reshape(shape)
        return self._add(Gather((value,), index, axes), ("gather", value, axes, b""), self._factors[value])

    def slice(self, value: int) -> int:
        """Index the axes of hard evidence, if the value has any."""
        observed = tuple(a for a in self.axes(value) if a in self.hard)
        if not observed:
            return value
        axes = tuple(a for a in self.axes(value) if a not in self.hard)
        return self._add(Slice((value,), observed, axes), ("slice", value), self._factors[value])

    def contract(self, values: tuple[int, ...], keep: Iterable[Axis], largest: bool = False) -> int:
        """The product of one or two values, summed down to the axes in `keep`, or the largest over the others."""
        if len(values) == 2 and sum(self._factors[v] for v in values) > self.evidence_per_scale:
            values = tuple(self._rescaled(v) for v in values)
        batched = any(self.batched[v] for v in values)
        inputs = tuple(sorted(self.slice(v) if batched else v for v in values))
        kept = set(keep)
        axes = tuple(dict.fromkeys(a for v in inputs for a in self.axes(v) if a in kept))
        if len(inputs) == 1 and len(axes) == len(self.axes(inputs[0])):
            return inputs[0]
        factors = sum(self._factors[v] for v in inputs)
        largest = largest and any(a not in kept for v in inputs for a in self.axes(v))
        return self._add(Contract(inputs, axes, largest), ("contract", inputs, frozenset(axes), largest), factors)

    def _rescaled(self, value: int) -> int:
        """The value with its rows scaled, as far as it depends on evidence."""
        value = self.slice(value)
        return self.rescale(value) if self._factors[value] > 1 else value

    def rescale(self, value: int) -> int:
        assert self.batched[value], "only rows can be rescaled"
        return self._add(Rescale((value,), self.axes(value)), ("rescale", value), 1)

    def select(self, node: str, inputs: tuple[int, int, int, int], tests: NDArray[np.int64], observed: Axes) -> int:
        """The table that a testing node selects; `tests` as in `Select`."""
        batched = any(self.batched[v] for v in inputs)
        axes = (*self.axes(inputs[0]), *(a for a in self.axes(inputs[1]) if a not in self.axes(inputs[0])))
        return self._add(Select(node, inputs, tests, observed, axes), ("select", node, inputs), int(batched))

    def share(self, node: str, inputs: tuple[int, int, int], own: bool) -> int:
        """How a table counts beside those before it; as in `Share`."""
        axes = self.axes(inputs[2])
        factors = int(any(a in self.hard for a in axes))
        return self._add(Share(node, inputs, own, axes), ("share", node, inputs, own), factors)

    def add(self, values: tuple[int, int]) -> int:
        """The sum of two tables, of which one may depend on evidence."""
        batched = any(self.batched[v] for v in values)
        a, b = (self.slice(v) if batched else v for v in values)
        return self._add(Add((a, b), self.axes(a)), ("add", a, b), max(self._factors[v] for v in (a, b)))

    def structured(self, operation: Structured, factors: int) -> int:
        """Sums of products of single entries; `factors` as in a product of so many that depend on evidence."""
        return self._add(operation, ("structured", len(self.operations)), factors)

    def fresh_axis(self, size: int) -> Axis:
        """An axis that only numbers the entries of a value."""
        axis = f"#{len(self.operations)}"
        while axis in self.sizes:
            axis += "'"
        self.sizes[axis] = size
        return axis

    def finish(
        self,
        question: Question,
        joint: int,
        selections: Mapping[str, ParentMarginal],
        states: Mapping[str, tuple[int, ...]],
        owners: Mapping[Axis, str],
        fixed: tuple[str, ...] = (),
        traced: bool = False,
    ) -> Program:
        """The program that computes `joint` and what the selections need, without operations nobody uses."""
        selected = (i for i, operation in enumerate(self.operations) if isinstance(operation, Select))
        used = self._reachable([joint, *selected, *(s.marginal for s in selections.values())])
        place = {old: new for new, old in enumerate(used)}
        operations = tuple(_moved(self.operations[i], place) for i in used)
        axes = {a for op in operations for a in (*op.axes, *(op.observed if isinstance(op, Select) else ()))}
        return Program(
            operations=operations,
            sizes={a: self.sizes[a] for a in self.sizes if a in axes},
            batched=tuple(self.batched[i] for i in used),
            query=question.query,
            joint=place[joint],
            selections={n: ParentMarginal(place[s.marginal], s.axes) for n, s in selections.items()},
            states=states,
            owners=owners,
            largest=bool(question.best),
            soft=question.soft,
            hard=tuple(sorted(self.hard)),
            fixed=fixed,
            traced=traced,
        )

    def _reachable(self, wanted: Iterable[int]) -> list[int]:
        used: set[int] = set()
        stack = list(wanted)
        while stack:
            i = stack.pop()
            if i not in used:
                used.add(i)
                stack.extend(self.operations[i].inputs)
        return sorted(used)


def _moved(operation: Any, place: Mapping[int, int]) -> Any:
    if not operation.inputs:
        return operation
    changed: dict[str, Any] = {"inputs": tuple(place[i] for i in operation.inputs)}
    return replace(operation, **changed)


def _is_arange(index: np.ndarray[Any, np.dtype[np.int64]]) -> bool:
    return bool((index.ravel() == np.arange(math.prod(index.shape))).all())

"""The program: the trace of factor elimination, a list of tensor operations over named axes.

A program holds structure only, never a learned number: parameters are named by node and part, evidence by
variable. Every operation defines one value, known by its position in the list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Axis = str
Axes = tuple[Axis, ...]

ZERO, ONE = -1, -2  # what a Gather may take besides entries of its input


@dataclass(frozen=True, slots=True)
class Parameter:
    """One table of a node's CPT: "table", "plus", "minus", "thresholds", ..."""

    node: str
    part: str
    axes: Axes
    inputs: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A table of known 0s and 1s that stands for a rule."""

    table: NDArray[np.float64]
    axes: Axes
    inputs: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The soft evidence on a variable: one likelihood per state."""

    variable: str
    axes: Axes
    inputs: ClassVar[tuple[int, ...]] = ()


@dataclass(frozen=True, slots=True)
class Slice:
    """Index the axes of `variables` with their observed states, row by row."""

    inputs: tuple[int]
    variables: Axes
    axes: Axes


@dataclass(frozen=True, slots=True, eq=False)
class Gather:
    """Rearrange: each entry is an entry of the flattened input, or the constant 0 or 1."""

    inputs: tuple[int]
    index: NDArray[np.int64]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Contract:
    """Multiply one or two values and sum out the axes that are not in `axes`."""

    inputs: tuple[int, ...]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Select:
    """Flatten a testing CPT.

    From the marginal p*(u) of the parents, the tables plus and minus, the thresholds and the operators: the
    table that the evidence selects, by tests or, where the node has a slope, by sigmoids.
    """

    node: str
    inputs: tuple[int, int, int, int, int]  # marginal, plus, minus, thresholds, test
    axes: Axes


@dataclass(frozen=True, slots=True)
class Rescale:
    """Divide each row by a power of two that brings its largest entry near 1, and keep the exponent."""

    inputs: tuple[int]
    axes: Axes


@dataclass(frozen=True, slots=True)
class Normalise:
    """Divide by the sum over all axes: a joint becomes a posterior."""

    inputs: tuple[int]
    axes: Axes


Operation = Parameter | Constant | Likelihood | Slice | Gather | Contract | Select | Rescale | Normalise


def reads_evidence(operation: Operation) -> bool:
    """Whether an operation takes something from the rows of evidence itself, not only through its inputs."""
    return isinstance(operation, Likelihood | Slice)


@dataclass(frozen=True)
class Selection:
    """Where to find the marginal of a testing node's parents, and which axis each parent has there.

    None: the parent is indexed (hard evidence) or has one possible state.
    """

    marginal: int
    axes: tuple[Axis | None, ...]


@dataclass(frozen=True)
class Program:
    """Operations in the order they run, parents before children.

    `sizes` gives the length of every axis, `batched[i]` whether value i depends on evidence and so has one
    entry per row. `joint` and `posterior` are the outputs, over the query's states; `selections` says, for
    every testing node, where the marginal of its parents is. `states` gives the possible states of the
    variables, `hard` names those whose observed state indexes tables, `soft` those that have likelihoods.
    """

    operations: tuple[Operation, ...]
    sizes: Mapping[Axis, int]
    batched: tuple[bool, ...]
    query: str
    joint: int
    posterior: int
    selections: Mapping[str, Selection]
    states: Mapping[str, tuple[int, ...]]
    soft: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def size(self, axes: Sequence[Axis]) -> int:
        """The number of entries of a value with these axes (per row, if it is batched)."""
        return math.prod(self.sizes[a] for a in axes)

    def union(self, i: int) -> Axes:
        """The axes an operation runs over: those of its result and those it sums out."""
        operation = self.operations[i]
        seen = dict.fromkeys(operation.axes)
        if isinstance(operation, Contract):
            for j in operation.inputs:
                inner = self.operations[j]
                seen.update(dict.fromkeys(inner.axes))
        return tuple(seen)

    def multiply_adds(self, i: int) -> int:
        """Multiply-adds of operation i, for one row if it is batched."""
        operation = self.operations[i]
        if isinstance(operation, Contract):
            return self.size(self.union(i))
        if isinstance(operation, Select):
            return self.size(operation.axes)
        return 0

    @cached_property
    def cost(self) -> Cost:
        """What one row costs, and what is computed once for all rows."""
        work = [self.multiply_adds(i) for i in range(len(self))]
        sizes = [self.size(op.axes) for op in self.operations]
        largest = max(range(len(self)), key=lambda i: self.size(self.union(i)))
        return Cost(
            width=max(len(self.union(i)) for i in range(len(self))) - 1,
            multiply_adds=sum(w for w, b in zip(work, self.batched, strict=True) if b),
            static_multiply_adds=sum(w for w, b in zip(work, self.batched, strict=True) if not b),
            elements=sum(s for s, b in zip(sizes, self.batched, strict=True) if b),
            peak=max((s for s, b in zip(sizes, self.batched, strict=True) if b), default=0),
            live=self._live(sizes),
            static_elements=sum(s for s, b in zip(sizes, self.batched, strict=True) if not b),
            operations=len(self),
            cluster=self.union(largest),
        )

    def _live(self, sizes: Sequence[int]) -> int:
        """The most entries per row that exist at one time, if each value is dropped after its last use."""
        last = self.last_uses()
        alive = most = 0
        for i, ends in enumerate(last):
            alive += sizes[i] if self.batched[i] else 0
            most = max(most, alive)
            alive -= sum(sizes[j] for j in ends if self.batched[j])
        return most

    def last_uses(self, wanted: Iterable[int] = ()) -> list[list[int]]:
        """For every operation, the values that are not needed after it: all but the outputs and those wanted."""
        kept = {self.joint, self.posterior, *wanted}
        last: dict[int, int] = {}
        for i, operation in enumerate(self.operations):
            last[i] = i
            for j in operation.inputs:
                last[j] = i
        ends: list[list[int]] = [[] for _ in self.operations]
        for j, i in last.items():
            if j not in kept:
                ends[i].append(j)
        return ends

    def __str__(self) -> str:
        return program_table(self)


@dataclass(frozen=True)
class Cost:
    """What a compiled query costs.

    Per row: `multiply_adds`, `elements` written, `peak` (the largest value) and `live` (the most entries at one
    time). Once for all rows: `static_multiply_adds`, `static_elements`. `width` is the number of variables of
    the largest `cluster` less one. `circuit_nodes` is the size of the folded scalar circuit, where it was counted.
    """

    width: int
    multiply_adds: int
    static_multiply_adds: int
    elements: int
    peak: int
    live: int
    static_elements: int
    operations: int
    cluster: Axes
    circuit_nodes: int | None = None

    @property
    def bytes(self) -> int:
        """Bytes written per row in float64."""
        return 8 * self.elements


def program_table(program: Program, limit: int = 200) -> str:
    """A program as a table of steps: what is made, over which axes, at what cost, for each row or once."""
    body = [
        (
            f"v{i}",
            _operation(operation),
            " ".join(operation.axes) or "-",
            f"{program.size(operation.axes):,}",
            f"{program.multiply_adds(i):,}",
            "row" if program.batched[i] else "query",
        )
        for i, operation in enumerate(program)
    ]
    hidden = len(body) - limit
    if hidden > 0:
        first = limit // 2
        body = [*body[:first], ("...", f"{hidden:,} more", "", "", "", ""), *body[first + hidden :]]
    rows = [("value", "operation", "axes", "entries", "multiply-adds", "per"), *body]
    widths = [max(len(row[c]) for row in rows) for c in range(6)]
    right = (False, False, False, True, True, False)
    lines = [
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(row, widths, right, strict=True)).rstrip()
        for row in rows
    ]
    cost = program.cost
    lines.append(
        f"width {cost.width}; per row: {cost.multiply_adds:,} multiply-adds, {cost.bytes:,} bytes written, "
        f"largest value {cost.peak:,}; once: {cost.static_multiply_adds:,} multiply-adds"
    )
    return "\n".join(lines)


def _operation(operation: Operation) -> str:
    inputs = " ".join(f"v{i}" for i in operation.inputs)
    match operation:
        case Parameter():
            detail = f"{operation.node}.{operation.part}"
        case Likelihood():
            detail = operation.variable
        case Slice():
            detail = f"{inputs} at {' '.join(operation.variables)}"
        case Select():
            detail = f"{operation.node}: {inputs}"
        case _:
            detail = inputs
    return f"{type(operation).__name__.lower()} {detail}".rstrip()


def spread(array: NDArray[Any], axes: Axes, order: Axes) -> NDArray[Any]:
    """An array with its axes in a given order, length-1 axes where it has none: ready to broadcast."""
    present = [a for a in order if a in axes]
    moved = array.transpose([axes.index(a) for a in present])
    return moved.reshape([moved.shape[present.index(a)] if a in axes else 1 for a in order])


def check(program: Program) -> None:
    """Raise AssertionError unless every operation is legal: inputs before uses, axes that fit, batches that follow."""
    hard = frozenset(program.hard)
    for i, operation in enumerate(program.operations):
        assert all(0 <= j < i for j in operation.inputs), f"operation {i} uses a later value"
        assert len(set(operation.axes)) == len(operation.axes), f"operation {i} repeats an axis"
        assert all(a in program.sizes for a in operation.axes), f"operation {i} has an axis of unknown length"
        _check_batch(program, i, operation, hard)
        _check_axes(program, i, operation, hard)
    uncalled = {op.variable for op in program.operations if isinstance(op, Likelihood)} - set(program.soft)
    assert not uncalled, f"likelihoods of variables without soft evidence: {uncalled}"
    _check_outputs(program)


def _check_batch(program: Program, i: int, operation: Operation, hard: frozenset[Axis]) -> None:
    """What depends on evidence is batched, nothing else is, and its axes of hard evidence are indexed."""
    depends = reads_evidence(operation) or any(program.batched[j] for j in operation.inputs)
    assert program.batched[i] == depends, f"operation {i} is marked as batched: {program.batched[i]}"
    if depends:
        assert hard.isdisjoint(operation.axes), f"operation {i} is batched and keeps an observed axis"


def _check_outputs(program: Program) -> None:
    outputs = program.operations[program.joint], program.operations[program.posterior]
    assert all(output.axes == (program.query,) for output in outputs), "outputs are over the query's states"
    assert isinstance(outputs[1], Normalise), "the posterior is normalised"
    assert outputs[1].inputs == (program.joint,), "the posterior is that of the joint"
    for node, selection in program.selections.items():
        axes = [a for a in selection.axes if a is not None]
        assert sorted(axes) == sorted(program.operations[selection.marginal].axes), f"selection of {node!r}"


def _check_axes(program: Program, i: int, operation: Operation, hard: frozenset[Axis]) -> None:
    of = [set(program.operations[j].axes) for j in operation.inputs]
    match operation:
        case Contract():
            assert 1 <= len(of) <= 2, f"contraction {i} has {len(of)} inputs"
            union, kept = set().union(*of), set(operation.axes)
            assert kept <= union, f"contraction {i} makes an axis"
            assert hard.isdisjoint(union - kept), f"contraction {i} sums over observed states"
        case Slice():
            assert set(operation.variables) <= of[0], f"slice {i} indexes an axis that is not there"
            assert hard.issuperset(operation.variables), f"slice {i} indexes what is not observed"
            assert set(operation.axes) == of[0] - set(operation.variables), f"slice {i}"
        case Gather():
            source = program.size(program.operations[operation.inputs[0]].axes)
            assert operation.index.shape == tuple(program.sizes[a] for a in operation.axes), f"gather {i}"
            assert ONE <= operation.index.min() <= operation.index.max() < source, f"gather {i} reaches outside"
        case Select():
            marginal, plus, minus, thresholds, test = of
            assert plus == minus == set(operation.axes), f"select {i}: tables"
            assert thresholds == test == marginal <= plus, f"select {i}: marginal"
        case Rescale():
            assert set(operation.axes) == of[0], f"rescaling {i} changes axes"
            assert program.batched[operation.inputs[0]], f"rescaling {i} is of a value that is the same for all rows"
        case Normalise():
            assert set(operation.axes) == of[0], f"normalisation {i} changes axes"
        case Constant():
            assert operation.table.shape == tuple(program.sizes[a] for a in operation.axes), f"constant {i}"

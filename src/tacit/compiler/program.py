"""The program: the trace of factor elimination, a list of tensor operations over named axes.

A program holds structure only, never a learned number: parameters are named by node and part, evidence by
variable. Every operation defines one value, known by its position in the list; what it means is said in `operations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.grid import Grid
from tacit.base.html import table
from tacit.base.text import plural
from tacit.compiler import operations as ops
from tacit.compiler.operations import Axes, Axis, Operation, Setting
from tacit.model.cpt import THRESHOLDS, AnyCPT
from tacit.model.densities import BaseDensity
from tacit.model.elements.distributions import structural
from tacit.model.model import Model


@dataclass(frozen=True)
class ParentMarginal:
    """Where to find the marginal of a testing node's parents, and which axis each parent has there."""

    marginal: int
    axes: tuple[Axis | None, ...]  # None: the parent is indexed (hard evidence) or has one possible state


@dataclass(frozen=True)
class Decision:
    """One step of the traceback from the joint, in which every axis that was summed out gets a state.

    Given the states of all other axes, those of the axes in `chosen` count as much as the product of `inputs` there: a
    sample draws them with these weights. Of a program that maximises, the largest is taken.
    """

    inputs: tuple[int, ...]
    chosen: Axes


@dataclass(frozen=True)
class Program:
    """Operations in the order they run, parents before children.

    `sizes` gives the length of every axis, `batched[i]` whether value i depends on evidence and so has one
    entry per row. `joint` is the output, over the states of the query variables; `selections` says, for every testing
    node, where the marginal of its parents is. `states` gives the possible states of the variables, `owners` the
    variable that an axis stands for, `hard` names those whose observed state indexes tables, `soft` those that have
    likelihoods. `largest` says that the joint is a maximum over the states of some variables. The numbers of the
    nodes in `fixed`, which are never learned, are built into structured operations.

    `traced` says that every variable whose state is wanted has likelihoods, of which every product that adds to the
    joint has exactly one: the traceback follows single instructions (`traced_operations`), since structured operations
    do not say what they sum.
    """

    operations: tuple[Operation, ...]
    sizes: Mapping[Axis, int]
    batched: tuple[bool, ...]
    query: tuple[str, ...]
    joint: int
    selections: Mapping[str, ParentMarginal]
    states: Mapping[str, tuple[int, ...]]
    owners: Mapping[Axis, str]
    soft: tuple[str, ...] = ()
    hard: tuple[str, ...] = ()
    largest: bool = False
    fixed: tuple[str, ...] = ()
    traced: bool = False

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def setting(self, i: int) -> Setting:
        """What operation i must know of its inputs."""
        inputs = self.operations[i].inputs
        axes, batched = tuple(self.operations[j].axes for j in inputs), tuple(self.batched[j] for j in inputs)
        return Setting(axes, batched, self.sizes)

    @cached_property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The tables that the program reads, by node and part."""
        return tuple(dict.fromkeys((op.node, op.part) for op in self if isinstance(op, ops.Parameter)))

    @cached_property
    def selects(self) -> Mapping[str, tuple[int, ...]]:
        """For every testing node, its selections, one for each test, in the order in which these come to hold."""
        selects: dict[str, tuple[int, ...]] = {}
        for i, operation in enumerate(self):
            if isinstance(operation, ops.Select):
                selects[operation.node] = (*selects.get(operation.node, ()), i)
        return selects

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """How to choose states for all variables, from the joint down: see `Decision`."""
        assert not self.traced, "the traceback follows instructions, not decisions"
        return tuple(_decisions(self))

    @property
    def structured(self) -> bool:
        """Whether some operation is structured: then known numbers are built in, not only the 0s and 1s among them."""
        return any(isinstance(operation, ops.Structured) for operation in self)

    @property
    def draws(self) -> int:
        """How many random numbers a sample takes: one for each decision; a traced one makes its own from a first."""
        return 1 if self.traced else len(self.decisions)

    @cached_property
    def nodes(self) -> tuple[str, ...]:
        """The nodes whose numbers the program reads."""
        return tuple(dict.fromkeys(node for node, _ in self.parameters))

    @cached_property
    def observed(self) -> tuple[str, ...]:
        """The variables whose observed states the program reads: a query may declare more."""
        return tuple(dict.fromkeys(name for op in self if isinstance(op, ops.Slice) for name in op.variables))

    @cached_property
    def likelihoods(self) -> tuple[str, ...]:
        """The variables whose likelihoods the program reads."""
        return tuple(dict.fromkeys(op.variable for op in self if isinstance(op, ops.Likelihood)))

    def require_derivatives(self) -> None:
        """An error where the joint is not a sum of products."""
        if isinstance(self.operations[self.joint], ops.Extremes):
            raise TacitError(ops.extremes.NO_DERIVATIVES)

    @property
    def roundings(self) -> int:
        """At most so many roundings are between the numbers of tables and rows and an entry of the joint.

        A product that adds to it has one number of each table, and each axis is summed over once.
        """
        tables = sum(not operation.inputs for operation in self) + len(self.fixed)
        return 2 * tables + sum(size - 1 for size in self.sizes.values())

    @property
    def outputs(self) -> int:
        """The number of entries of the joint."""
        return self.size(self.query)

    def size(self, axes: Sequence[Axis]) -> int:
        """The number of entries of a value with these axes (per row, if it is batched)."""
        return math.prod(self.sizes[a] for a in axes)

    def union(self, i: int) -> Axes:
        """The axes that operation i runs over: those of its result and those that it sums out."""
        return self.operations[i].union(self.setting(i))

    def multiply_adds(self, i: int) -> int:
        """Multiply-adds of operation i, for one row if it is batched."""
        return self.operations[i].multiply_adds(self.setting(i))

    @cached_property
    def largest_product(self) -> int:
        """The most multiply-adds that one contraction takes for a row."""
        products = (i for i in range(len(self)) if self.batched[i] and isinstance(self.operations[i], ops.Contract))
        return max(map(self.multiply_adds, products), default=0)

    @cached_property
    def cost(self) -> Cost:
        """What one row costs, and what is computed once for all rows."""
        every = range(len(self))
        work, unions = [self.multiply_adds(i) for i in every], [self.union(i) for i in every]
        sizes = [self.size(op.axes) for op in self]
        written = [op.elements(self.setting(i)) for i, op in enumerate(self)]
        rows, once = self.batched, [not b for b in self.batched]
        return Cost(
            width=max(1, *map(len, unions)) - 1,
            multiply_adds=sum(compress(work, rows)),
            static_multiply_adds=sum(compress(work, once)),
            elements=sum(compress(written, rows)),
            peak=max(compress(sizes, rows), default=0),
            live=self._live(sizes),
            static_elements=sum(compress(written, once)),
            operations=len(self),
            cluster=max(unions, key=self.size),
        )

    def _live(self, sizes: Sequence[int]) -> int:
        """The most entries per row that exist at one time, if each value is dropped after its last use."""
        live = most = 0
        for i, ends in enumerate(self.last_uses()):
            if self.batched[i]:
                most = max(most, live + self.operations[i].live(self.setting(i)))
                live += sizes[i]
            live -= sum(sizes[j] for j in ends if self.batched[j])
        return most

    def last_uses(self, wanted: Iterable[int] = ()) -> list[list[int]]:
        """For every operation, the values that are not needed after it: all but the joint and those wanted."""
        kept = {self.joint, *wanted}
        last: dict[int, int] = {}
        for i, operation in enumerate(self):
            last |= dict.fromkeys((i, *operation.inputs), i)
        ends: list[list[int]] = [[] for _ in self.operations]
        for j, i in last.items():
            if j not in kept:
                ends[i].append(j)
        return ends

    def __repr__(self) -> str:
        width, work = self.cost.width, self.cost.multiply_adds
        return f"Program({plural(len(self), 'operation')}, width {width}, {work:,} multiply-adds per row)"

    def __str__(self) -> str:
        return program_table(self)

    def _repr_html_(self) -> str:
        return table(HEAD, _steps(self, limit=60), title=repr(self), notes=[_summary(self)])


def _decisions(program: Program) -> Iterator[Decision]:
    """The contractions that make the joint, last ones first, down to selected tables and to sums below a maximum."""
    wanted = {program.joint}
    for i in reversed(range(len(program))):
        operation = program.operations[i]
        if i not in wanted or isinstance(operation, ops.Select):
            continue
        assert not isinstance(operation, ops.Structured), "a structured program that is not traced has no traceback"
        chosen = tuple(a for a in program.union(i) if a not in operation.axes)
        if chosen and isinstance(operation, ops.Contract):
            if operation.largest != program.largest:
                continue
            yield Decision(operation.inputs, chosen)
        wanted.update(operation.inputs)


def traced_operations(program: Program) -> frozenset[int]:
    """What the traceback of a traced program visits, down to selected tables and to sums below a maximum."""
    wanted = {program.joint}
    for i in reversed(range(len(program))):
        operation = program.operations[i]
        passed = isinstance(operation, ops.Structured) and operation.largest == program.largest
        if i in wanted and (passed or isinstance(operation, ops.Rescale | ops.Gather)):
            wanted.update(operation.inputs)
    return frozenset(wanted)


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


CONSTANT_MASKS = {ops.ZERO: None, ops.ONE: 0}  # for `_check_traced`: no product at all, and one of nothing
HEAD = ("value", "operation", "axes", "entries", "multiply-adds", "per")


def program_table(program: Program, limit: int = 200) -> str:
    """A program as a table of steps: what is made, over which axes, at what cost, for each row or once."""
    lines = [
        (*(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells), str(per).ljust(len("query")))
        for *cells, per in (HEAD, *_steps(program, limit))
    ]
    return str(Grid(lines[:1], lines[1:], stubs=3, note=_summary(program)))


def _steps(program: Program, limit: int) -> list[tuple[str | int, ...]]:
    """A row of a table for every operation; of many, for the first and the last ones."""
    body: list[tuple[str | int, ...]] = []
    for i, op in enumerate(program):
        per = "row" if program.batched[i] else "query"
        body.append((f"v{i}", str(op), " ".join(op.axes) or "-", program.size(op.axes), program.multiply_adds(i), per))
    hidden = len(body) - limit
    if hidden <= 0:
        return body
    first = limit // 2
    return [*body[:first], ("...", f"{hidden:,} more", "", "", "", ""), *body[first + hidden :]]


def _summary(program: Program) -> str:
    cost = program.cost
    return (
        f"width {cost.width}; per row: {cost.multiply_adds:,} multiply-adds, {cost.bytes:,} bytes written, "
        f"largest value {cost.peak:,}; once: {cost.static_multiply_adds:,} multiply-adds"
    )


def holds_for(program: Program, old: Model, new: Model) -> bool:
    """Whether a program that is right for one network is right for another one of the same structure.

    A structured program has the numbers of some nodes built in (`Program.fixed`), and of all others where they are
    structural. In any program, what was copied as a function is among the `fixed` nodes. Numbers that are to be
    learned from now on must not be built in.
    """
    fixed = frozenset(program.fixed)
    names = program.states if program.structured else fixed
    return all(_same_numbers(old.cpt(name), new.cpt(name), name in fixed) for name in names)


def _same_numbers(old: AnyCPT, new: AnyCPT, fixed: bool) -> bool:
    """Whether all numbers are the same, or only the structural 0s and 1s."""
    if old is new:
        return True
    if fixed and getattr(new, "learn", False):
        return False
    now = new.parts()
    if isinstance(old, BaseDensity):
        return True  # whose numbers make likelihoods, and are in no program
    for part, before in old.parts().items():
        built_in = np.full(before.shape, fixed) | structural(before)
        if part != THRESHOLDS and (before[built_in] != now[part][built_in]).any():
            return False
    return True


def check(program: Program) -> None:
    """Raise AssertionError unless every operation is legal: inputs before uses, axes that fit, batches that follow."""
    hard = frozenset(program.hard)
    for i, operation in enumerate(program.operations):
        assert all(0 <= j < i for j in operation.inputs), f"operation {i} uses a later value"
        assert len(set(operation.axes)) == len(operation.axes), f"operation {i} repeats an axis"
        assert all(a in program.sizes for a in operation.axes), f"operation {i} has an axis of unknown length"
        depends = operation.reads_evidence or any(program.batched[j] for j in operation.inputs)
        assert program.batched[i] == depends, f"operation {i} is marked as batched: {program.batched[i]}"
        assert not depends or hard.isdisjoint(operation.axes), f"operation {i} is batched and keeps an observed axis"
        operation.check(program.setting(i), hard)
    unknown = {op.variable for op in program if isinstance(op, ops.Likelihood)} - set(program.soft)
    assert not unknown, f"likelihoods of variables without soft evidence: {unknown}"
    assert program.operations[program.joint].axes == program.query, "the joint is over the states of the query"
    if program.traced:
        _check_traced(program)
    for node, selection in program.selections.items():
        axes = [a for a in selection.axes if a is not None]
        assert sorted(axes) == sorted(program.operations[selection.marginal].axes), f"selection of {node!r}"


def _check_traced(program: Program) -> None:
    """Every product that adds to the joint has exactly one likelihood of each variable that the traceback visits."""
    bit: dict[str, int] = {}
    below: dict[int, list[int | None]] = {}  # of every entry, the variables below it as a bit mask; None where it is 0
    for i in sorted(traced_operations(program)):
        operation, size = program.operations[i], program.size(program.operations[i].axes)
        sources = [mask for j in operation.inputs for mask in below.get(j, ())]  # selected tables are the end
        if isinstance(operation, ops.Likelihood):
            below[i] = [bit.setdefault(operation.variable, 1 << len(bit))] * size
        elif isinstance(operation, ops.Rescale):
            below[i] = sources
        elif isinstance(operation, ops.Gather):
            below[i] = [sources[k] if k >= 0 else CONSTANT_MASKS[k] for k in operation.index.ravel().tolist()]
        elif isinstance(operation, ops.Structured) and operation.largest == program.largest:
            masks = _variables_below(operation, sources)
            below[i] = [masks[k] if k >= 0 else CONSTANT_MASKS[k] for k in operation.index.ravel().tolist()]
        else:
            dense = isinstance(operation, ops.Contract) and operation.largest == program.largest
            assert not (dense and program.batched[i]), f"operation {i} is dense and on a path that is to be traced"
            below[i] = [0] * size
    assert {*below[program.joint]} <= {sum(bit.values()), None}, "a product without a likelihood of some variable"


def _variables_below(operation: ops.Structured, masks: list[int | None]) -> list[int | None]:
    """For every reference, the variables whose likelihoods its products have, given those of the inputs."""
    masks = masks + [0 if mantissa else None for mantissa in operation.mantissas]
    for terms in np.split(operation.terms, operation.bounds[1:-1]) if len(operation.linear) else ():
        products = set()
        for a, b in terms.tolist():
            left, right = masks[a], masks[b]
            if left is not None and right is not None:
                assert not left & right, "a product with two likelihoods of a variable"
                products.add(left | right)
        assert len(products) <= 1, "products that have likelihoods of other variables than those beside them"
        masks.append(products.pop() if products else None)
    return masks

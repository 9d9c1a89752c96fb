"""How every operation of a program is done with torch: which axes move where is settled once, not per run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from tacit.compiler.program import (
    ONE,
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
)
from tacit.engines.numpy_steps import Array

Key: TypeAlias = tuple[str, str]
Slope: TypeAlias = "float | Tensor | None"
Move: TypeAlias = Callable[[Tensor], Tensor]
Sources: TypeAlias = tuple[int, ...]

WIDE = 6  # so many multiply-adds per entry read or written make a matrix product of every row worth its copies
# Matrices side by side are one block-diagonal matrix of at most so many entries. Its zeros cost a GPU next to nothing,
# while the gradient of many narrow products by their tables, a sum over all rows for each of them, leaves it idle.
BLOCK_DIAGONAL = {"cuda": 2**12}

COMPARE: dict[float, Callable[[Tensor, Tensor], Tensor]] = {0.0: torch.ge, 1.0: torch.gt, 2.0: torch.le, 3.0: torch.lt}


@dataclass
class Frame:
    """One evaluation: its inputs, and what has been computed so far.

    `ready` holds tables already arranged for the operation that reads them, `places` the observed states of several
    variables as one index. `bounds` are lower bounds of the logarithms (base 2) of a table's entries that are not 0,
    `floors` (rows,) those of values that depend on evidence: minus infinity where digits may be lost. `decided` takes
    the marginal and the weights of every selection, if it is there; `through` lets gradients into the weights.
    """

    likelihoods: Mapping[str, Tensor]
    codes: Mapping[str, Tensor]
    tables: Mapping[Key, Tensor]
    gammas: Mapping[str, Slope]
    values: dict[int, Tensor]
    ready: dict[int, Tensor]
    bounds: Mapping[int, Tensor]
    exponents: dict[int, Tensor] = field(default_factory=dict)
    places: dict[Axes, Tensor] = field(default_factory=dict)
    floors: dict[int, Tensor] = field(default_factory=dict)
    decided: dict[str, tuple[Tensor, Tensor]] | None = None
    through: bool = True


Step: TypeAlias = Callable[[Frame], Tensor]


class Steps:
    """A program as functions from a frame to the next value, with all rearrangements of axes worked out.

    `arrange` says, for an operation that reads a table in another arrangement, which value it is and how to move it;
    `largest` is the most entries per row of a product that is written out before it is summed.
    """

    def __init__(
        self, program: Program, parameters: Mapping[Key, Array], dtype: torch.dtype, device: torch.device
    ) -> None:
        self._program, self._parameters, self._dtype, self._device = program, parameters, dtype, device
        self.arrange: dict[int, tuple[int, Move]] = {}
        self.largest = 0
        self._scaled: list[bool] = []
        self.steps: list[Step] = []
        self._limit = math.log2(torch.finfo(dtype).smallest_normal)
        # what the floor of a value is the sum of: bounds of tables, and floors of values that have one of their own
        self.bounded: list[tuple[Sources, Sources]] = []
        self.bounding: set[int] = set()  # the tables whose bounds are asked for
        for i, operation in enumerate(program):
            self._scaled.append(self._has_exponent(operation))
            self.bounded.append(self._sources(i, operation))
            self.steps.append(self._step(i, operation))

    def _sources(self, i: int, operation: Operation) -> tuple[Sources, Sources]:
        if not self._program.batched[i]:
            return (i,), ()
        match operation:
            case Slice((table,)):
                return (table,), ()
            case Gather() | Contract() | Normalise():
                parts = [self.bounded[j] for j in operation.inputs]
                return tuple(t for tables, _ in parts for t in tables), tuple(v for _, own in parts for v in own)
            case _:
                return (), (i,)

    def floor(self, i: int) -> Step:
        """A lower bound of the logarithms of a value's entries in each row: (rows,), or () for all of them."""
        tables, values = self.bounded[i]
        self.bounding.update(tables)

        def step(frame: Frame) -> Tensor:
            found = [frame.bounds[t] for t in tables] + [frame.floors[v] for v in values]
            bound = sum(found[1:], start=found[0])
            return torch.where(bound < self._limit, -math.inf, bound)

        return step

    def _has_exponent(self, operation: Operation) -> bool:
        carries = isinstance(operation, Contract | Gather) and any(self._scaled[j] for j in operation.inputs)
        return carries or isinstance(operation, Rescale)

    def _axes(self, value: int) -> Axes:
        return self._program.operations[value].axes

    def _step(self, i: int, operation: Operation) -> Step:
        match operation:
            case Parameter(node, part):
                return lambda frame: frame.tables[node, part]
            case Constant():
                table = torch.tensor(operation.table, dtype=self._dtype, device=self._device)
                return lambda frame: table
            case Likelihood(variable):
                return self._likelihood(i, variable)
            case Slice():
                return self._slice(i, operation)
            case Gather():
                return self._carrying(i, operation.inputs, self._gather(operation))
            case Contract():
                return self._carrying(i, operation.inputs, self._contract(i, operation))
            case Select():
                return self._select(i, operation)
            case Rescale():
                return self._rescale(i, operation)
            case Normalise((joint,)):
                return lambda frame: frame.values[joint] / frame.values[joint].sum(dim=0, keepdim=True)

    def _likelihood(self, i: int, variable: str) -> Step:
        nothing = torch.ones((self._program.sizes[variable], 1), dtype=self._dtype, device=self._device)

        def step(frame: Frame) -> Tensor:
            value = frame.likelihoods.get(variable, nothing)
            frame.floors[i] = lowest(value, (0,))
            return value

        return step

    def _carrying(self, i: int, inputs: Iterable[int], step: Step) -> Step:
        """`step`, with the exponents of its inputs added up."""
        scaled = [j for j in inputs if self._scaled[j]]
        if not scaled:
            return step
        first, *others = scaled

        def stepped(frame: Frame) -> Tensor:
            exponent = frame.exponents[first]
            for j in others:
                exponent = exponent + frame.exponents[j]
            frame.exponents[i] = exponent
            return step(frame)

        return stepped

    def _slice(self, i: int, operation: Slice) -> Step:
        (source,), variables, sizes = operation.inputs, operation.variables, self._program.sizes
        order = _order(self._axes(source), (*operation.axes, *variables))
        cards = [sizes[v] for v in variables]
        self.arrange[i] = source, lambda table: table.permute(order).reshape(-1, math.prod(cards))
        shape = (*(sizes[a] for a in operation.axes), -1)

        def step(frame: Frame) -> Tensor:
            if variables not in frame.places:
                place = frame.codes[variables[0]]
                for name, card in zip(variables[1:], cards[1:], strict=True):
                    place = place * card + frame.codes[name]
                frame.places[variables] = place
            return frame.ready[i].index_select(1, frame.places[variables]).view(shape)

        return step

    def _gather(self, operation: Gather) -> Step:
        (source,), index = operation.inputs, operation.index
        assert not (self._scaled[source] and (index == ONE).any()), "a rescaled value has no constant 1"
        batched = self._program.batched[source]
        taken = torch.tensor(index.ravel(), device=self._device).clamp(min=0)
        shape = [*index.shape, *[-1] * batched]
        flat = [self._program.size(self._axes(source)), *[-1] * batched]
        constant = index.reshape([*index.shape, *[1] * batched])
        one = torch.tensor(constant == ONE, dtype=self._dtype, device=self._device)
        real = torch.tensor(constant >= 0, device=self._device)
        complete = bool((index >= 0).all())

        def step(frame: Frame) -> Tensor:
            made = frame.values[source].reshape(flat).index_select(0, taken).view(shape)
            return made if complete else torch.where(real, made, one)

        return step

    def _contract(self, i: int, operation: Contract) -> Step:
        axes = [self._axes(j) for j in operation.inputs]
        batched = [self._program.batched[j] for j in operation.inputs]
        if len(axes) == 1:
            (j,), move = operation.inputs, _reduced(axes[0], operation.axes, batched[0])
            return lambda frame: move(frame.values[j])
        j, k = operation.inputs
        if batched[0] and not batched[1]:  # a table comes first
            j, k, axes, batched = k, j, axes[::-1], batched[::-1]
        pair = Pair(axes[0], axes[1], operation.axes, self._program.sizes)
        if not batched[0]:
            return self._table_product(i, j, k, pair, batched[1])
        return self._batch_product(j, k, pair)

    def _table_product(self, i: int, j: int, k: int, pair: Pair, batched: bool) -> Step:
        """A table times a table or a batch: one matrix product, or several side by side."""
        if not pair.summed:
            return _multiplied(j, k, pair.aligned(pair.a, False, batched), pair.aligned(pair.b, batched, batched))
        table = pair.as_matrices(pair.a, (pair.kept, pair.left, pair.summed))
        entries = pair.size(pair.kept, pair.left) * pair.size(pair.kept, pair.summed)
        if batched and pair.kept and entries <= BLOCK_DIAGONAL.get(self._device.type, 0):
            self.arrange[i] = j, self._block_diagonal(table, pair.size(pair.kept))
            right = pair.as_matrices(pair.b, ((), pair.kept + pair.summed, pair.right), batched)
        else:
            self.arrange[i] = j, table
            right = pair.as_matrices(pair.b, (pair.kept, pair.summed, pair.right), batched)
        shape = [pair.sizes[a] for a in (*pair.kept, *pair.left, *pair.right)] + [-1] * batched
        order = _order((*pair.kept, *pair.left, *pair.right), pair.out, batched)
        return lambda frame: torch.matmul(frame.ready[i], right(frame.values[k])).reshape(shape).permute(order)

    def _block_diagonal(self, table: Move, blocks: int) -> Move:
        eye = torch.eye(blocks, dtype=self._dtype, device=self._device)[:, None, :, None]
        # (block, height, 1, width) by (block, 1, block, 1)
        return lambda tensor: (table(tensor).unsqueeze(2) * eye).flatten(2).flatten(0, 1)

    def _batch_product(self, j: int, k: int, pair: Pair) -> Step:
        """Two values that both have rows."""
        if pair.wide:
            return _row_products(j, k, pair)
        step = _multiplied(j, k, pair.aligned(pair.a, True, True), pair.aligned(pair.b, True, True))
        if not pair.summed:
            return step
        self.largest = max(self.largest, pair.size(pair.summed, pair.out))
        over = tuple(range(len(pair.summed)))
        return lambda frame: step(frame).sum(dim=over)

    def _select(self, i: int, operation: Select) -> Step:
        node, inputs, batched = operation.node, operation.inputs, self._program.batched
        any_batch = any(batched[j] for j in inputs)
        sizes = self._program.sizes
        moves = [_aligned(self._axes(j), operation.axes, sizes, batched[j], any_batch) for j in inputs]
        parents = self._axes(inputs[0])
        over = tuple(k for k, a in enumerate(operation.axes) if a in parents)
        operators = set(np.unique(self._parameters[node, "test"]).tolist())
        keep = [k for k, a in enumerate(operation.axes) if a in parents]
        order = _order([a for a in operation.axes if a in parents], parents, any_batch)
        floors = [self.floor(j) for j in inputs[:4]]
        entries = tuple(range(len(operation.axes)))

        def step(frame: Frame) -> Tensor:
            n_u, plus, minus, threshold, code = (move(frame.values[j]) for move, j in zip(moves, inputs, strict=True))
            n = n_u.sum(dim=over, keepdim=True) if over else n_u  # a sum over no axes would be one over all
            gamma = frame.gammas[node]
            if gamma is None:
                tau = _holds(n_u, n * threshold, code, operators)
                table = torch.where(tau, plus, minus)
            else:
                x = _argument(n_u, n, threshold, code, operators, gamma)
                x = x if frame.through else x.detach()
                # taken from 1, the weight of minus would lose its digits
                tau = torch.sigmoid(x)
                table = tau * plus + torch.sigmoid(-x) * minus
            if frame.decided is not None:
                shape = [tau.shape[k] for k in keep] + [-1] * any_batch
                frame.decided[node] = frame.values[inputs[0]], tau.reshape(shape).permute(order).to(self._dtype)
            if any_batch:
                frame.floors[i] = floor(frame, gamma is None, table, plus, minus)
            return table

        def floor(frame: Frame, tests: bool, table: Tensor, plus: Tensor, minus: Tensor) -> Tensor:
            marginal, high, low, limits = (floor(frame) for floor in floors)
            found = torch.minimum(high, low)
            if tests:  # a test multiplies the sum of the marginal by the threshold
                return torch.where(marginal + limits < self._limit, -math.inf, found)
            hanging = (plus.detach() > 0) | (minus.detach() > 0)
            lost = hanging & (table.detach() < torch.finfo(self._dtype).smallest_normal)
            doubt = torch.isneginf(marginal + found) | (lost.sum(dim=entries) > 0 if entries else lost)
            return torch.where(doubt, -math.inf, lowest(table, entries))

        return step

    def _rescale(self, i: int, operation: Rescale) -> Step:
        (source,) = operation.inputs
        over = tuple(range(len(operation.axes)))
        before, floor = self._scaled[source], self.floor(source)

        def step(frame: Frame) -> Tensor:
            value = frame.values[source]
            top = value.detach().amax(dim=over) if over else value.detach()
            mantissa, exponent = torch.frexp(top)
            # an exact power of two, by an exact division; nothing is gained by scaling zeros
            power = torch.where(top > 0, top / mantissa, 1.0)
            frame.exponents[i] = exponent + frame.exponents[source] if before else exponent
            scaled = value / power
            frame.floors[i] = torch.where(torch.isneginf(floor(frame)), -math.inf, lowest(scaled, over))
            return scaled

        return step


class Pair:
    """Two values to multiply and sum: axes that both have and keep or sum out, and those that one has.

    Axes that only one of the two has and that are summed out disappear before anything else happens.
    """

    def __init__(self, a: Axes, b: Axes, out: Axes, sizes: Mapping[str, int]) -> None:
        self.a, self.b, self.out, self.sizes = a, b, out, sizes
        self.kept = tuple(x for x in a if x in b and x in out)
        self.summed = tuple(x for x in a if x in b and x not in out)
        self.left = tuple(x for x in a if x not in b and x in out)
        self.right = tuple(x for x in b if x not in a and x in out)

    def size(self, *axes: Axes) -> int:
        return math.prod(self.sizes[a] for own in axes for a in own)

    @property
    def wide(self) -> bool:
        """Whether every row is a matrix product with far more multiply-adds than entries."""
        moved = self.size(self.kept) * (
            self.size(self.left, self.summed) + self.size(self.summed, self.right) + self.size(self.left, self.right)
        )
        return bool(self.summed) and self.size(self.summed, self.out) > WIDE * moved

    def _own(self, axes: Axes) -> Axes:
        return tuple(x for x in axes if x in self.summed or x in self.out)

    def aligned(self, axes: Axes, batched: bool, any_batch: bool) -> Move:
        """Ready to be multiplied by broadcasting over (summed, out)."""
        own = self._own(axes)
        summed = _reduced(axes, own, batched)
        move = _aligned(own, (*self.summed, *self.out), self.sizes, batched, any_batch)
        return move if own == axes else lambda tensor: move(summed(tensor))

    def as_matrices(self, axes: Axes, groups: tuple[Axes, Axes, Axes], batched: bool = False) -> Move:
        """As (kept, rows of the matrix, columns of the matrix); the batch is part of the columns."""
        ordered = tuple(x for group in groups for x in group)
        own = self._own(axes)
        summed, order = _reduced(axes, own, batched), _order(own, ordered, batched)
        shape = [self.size(group) for group in groups[not groups[0] : -1]] + [-1]
        if own == axes:
            return lambda tensor: tensor.permute(order).reshape(shape)
        return lambda tensor: summed(tensor).permute(order).reshape(shape)

    def as_matrices_by_row(self, axes: Axes, groups: tuple[Axes, Axes, Axes]) -> Move:
        """As (kept, batch, rows of the matrix, columns of the matrix)."""
        own = self._own(axes)
        summed = _reduced(axes, own, True)
        first, *rest = ([own.index(x) for x in group] for group in groups)
        order = [*first, len(own), *(place for group in rest for place in group)]
        kept, height, width = (self.size(group) for group in groups)
        return lambda tensor: summed(tensor).permute(order).reshape(kept, -1, height, width)


def _row_products(j: int, k: int, pair: Pair) -> Step:
    """One matrix product per row of the batch."""
    left = pair.as_matrices_by_row(pair.a, (pair.kept, pair.left, pair.summed))
    right = pair.as_matrices_by_row(pair.b, (pair.kept, pair.summed, pair.right))
    made = (*pair.kept, "", *pair.left, *pair.right)  # "" is the batch
    shape = [-1 if not a else pair.sizes[a] for a in made]
    order = [*_order(made, pair.out), made.index("")]
    return lambda frame: torch.matmul(left(frame.values[j]), right(frame.values[k])).reshape(shape).permute(order)


def _multiplied(j: int, k: int, left: Move, right: Move) -> Step:
    return lambda frame: left(frame.values[j]) * right(frame.values[k])


def _holds(n_u: Tensor, limit: Tensor, code: Tensor, operators: set[float]) -> Tensor:
    """Where n_u passes its test; n_u is compared with n * threshold, so that nothing is divided."""
    if len(operators) == 1:
        (number,) = operators
        return COMPARE[number](n_u, limit)
    found = [(code == number) & COMPARE[number](n_u, limit) for number in sorted(operators)]
    return reduce(torch.logical_or, found)


def _argument(
    n_u: Tensor, n: Tensor, threshold: Tensor, code: Tensor, operators: set[float], gamma: float | Tensor
) -> Tensor:
    """What the sigmoid that weighs `plus` is taken of: 0 where n is 0, and no gradient there."""
    possible = n > 0
    # the division must be harmless also where its result is not taken, or its gradient would be NaN
    posterior = torch.where(possible, n_u / torch.where(possible, n, 1.0), threshold)
    x = gamma * (posterior - threshold)
    if max(operators) < 2:
        return x
    return -x if min(operators) >= 2 else torch.where(code < 2, x, -x)


def lowest(value: Tensor, over: tuple[int, ...]) -> Tensor:
    """The logarithm (base 2) of the smallest entry over some axes, if it is neither 0 nor above 1; else 0."""
    value = value.detach()
    smallest = torch.where((value > 0) & (value < 1), value, 1.0)
    return (smallest.amin(dim=over) if over else smallest).log2()


def _order(axes: Sequence[str], wanted: Sequence[str], batched: bool = False) -> list[int]:
    """The permutation that brings `axes` into the order of `wanted`, the batch last."""
    return [*(axes.index(a) for a in wanted), *([len(axes)] if batched else [])]


def _reduced(axes: Axes, out: Axes, batched: bool) -> Move:
    """Sum out what is not in `out`, and arrange the rest like it."""
    over = tuple(k for k, a in enumerate(axes) if a not in out)
    order = _order([a for a in axes if a in out], out, batched)
    if not over:  # a sum over no axes would be one over all
        return lambda tensor: tensor.permute(order)
    return lambda tensor: tensor.sum(dim=over).permute(order)


def _aligned(axes: Axes, out: Axes, sizes: Mapping[str, int], batched: bool, any_batch: bool) -> Move:
    """Arrange axes like `out`, with length 1 where there is none, ready to broadcast."""
    if axes == out and batched == any_batch:
        return lambda tensor: tensor
    order = _order(axes, [a for a in out if a in axes], batched)
    shape = [sizes[a] if a in axes else 1 for a in out]
    if any_batch:
        shape.append(-1 if batched else 1)
    return lambda tensor: tensor.permute(order).view(shape)


def keys_of(program: Program) -> list[Key]:
    return list(dict.fromkeys((op.node, op.part) for op in program if isinstance(op, Parameter)))


def from_numpy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
    """Without a copy where that is safe: torch does not know arrays that must not be written to."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())

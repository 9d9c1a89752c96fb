"""Products that are summed: the one operation that does arithmetic on tables.

There are several algorithms for it, all planned from `AxisRoles`; which one suits is the choice of the array library.
Those that NumPy takes, "product", "matrix" (without axes that are kept) and "einsum", also have their reverse; torch
has its own. Large tables of one row are contracted by `dense`, whatever the algorithm for more rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from tacit.compiler.operations.arrangement import View, aligned, order_of, views
from tacit.compiler.operations.array_rules import ArrayLibrary, ArrayStep, BackwardPass, Frame, Value, total_exponent
from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Key, Setting
from tacit.compiler.operations.dense import Dense
from tacit.compiler.operations.operation import Operation, Support, Target

MIN_DENSE = 2**15  # multiply-adds of a row from which it is worth loading kernels
WIDE_WORK = 6  # multiply-adds per entry moved from which a matrix product for each row is worth its copies


@dataclass(frozen=True, slots=True)
class Contract(Operation):
    """Multiply one or two values and sum out the axes that are not in `axes`, or take the largest over them."""

    inputs: tuple[int, ...]
    axes: Axes
    largest: bool = False

    def check(self, setting: Setting, hard: frozenset[Axis]) -> None:
        assert 1 <= len(self.inputs) <= 2, f"a contraction has {len(self.inputs)} inputs"
        union, kept = set(self.union(setting)), set(self.axes)
        assert kept <= set().union(*setting.axes), "a contraction makes an axis"
        assert hard.isdisjoint(union - kept), "a contraction sums over observed states"

    def union(self, setting: Setting) -> Axes:
        return tuple(dict.fromkeys((*self.axes, *(a for own in setting.axes for a in own))))

    def multiply_adds(self, setting: Setting) -> int:
        return setting.size(self.union(setting))

    def support(self, setting: Setting, inputs: Sequence[Support], tables: Mapping[Key, Array]) -> Support:
        counts = [known.nonzero.astype(np.float64) for known in inputs]
        nonzero = np.einsum(_subscripts(setting.axes, [False] * len(counts), self.axes), *counts) > 0
        return Support(np.asarray(nonzero), np.zeros(setting.shape(self.axes), dtype=np.bool_))

    def step(self, setting: Setting, xp: ArrayLibrary) -> ArrayStep:
        inputs, axes, batched = self.inputs, setting.axes, setting.batched
        if len(inputs) == 2 and batched[0] and not batched[1]:  # a table comes first
            inputs, axes, batched = inputs[::-1], axes[::-1], batched[::-1]
        setting = Setting(axes, batched, setting.sizes)
        roles = AxisRoles.of(setting, self.axes)
        both = roles if len(inputs) == 2 else None
        algorithm = "largest" if self.largest else xp.algorithm(both, batched.count(False))
        return _ALGORITHMS[algorithm](inputs, roles, setting, xp)

    def scalar(self, target: Target, i: int, setting: Setting) -> Ids:
        target.same_scale(i, self.inputs)
        return target.sums(i, self, self.union(setting), setting)


class AxisRoles(NamedTuple):
    """What a contraction does with the axes of its two operands.

    Both have `kept` and `summed`, of which the latter disappear; `left` and `right` stay, and only one has them. An
    axis that only one has and that does not stay is `lone`: it is summed out before anything is multiplied.
    """

    setting: Setting
    a: Axes
    b: Axes
    out: Axes
    kept: Axes
    left: Axes
    summed: Axes
    right: Axes
    lone: Axes

    @classmethod
    def of(cls, setting: Setting, out: Axes) -> AxisRoles:
        """The roles of two operands; one alone is multiplied by a number."""
        a, b = (*setting.axes, ())[:2]
        kept = tuple(x for x in a if x in b and x in out)
        left = tuple(x for x in a if x not in b and x in out)
        summed = tuple(x for x in a if x in b and x not in out)
        right = tuple(x for x in b if x not in a and x in out)
        lone = tuple(x for x in (*a, *b) if x not in out and not (x in a and x in b))
        return cls(setting, a, b, out, kept, left, summed, right, lone)

    def own(self, axes: Axes) -> Axes:
        """The axes of an operand that are left when the lone ones are summed out."""
        return tuple(a for a in axes if a not in self.lone)

    def lone_places(self, axes: Axes) -> tuple[int, ...]:
        """The positions of the lone axes of an operand."""
        return tuple(k for k, a in enumerate(axes) if a in self.lone)

    def size(self, *axes: Axes) -> int:
        """How many entries there are over some axes."""
        return self.setting.size([a for own in axes for a in own])

    @property
    def wide(self) -> bool:
        """Whether every row is a matrix product with far more multiply-adds than entries."""
        kept, left, summed, right = self.kept, self.left, self.summed, self.right
        moved = self.size(kept) * (self.size(left, summed) + self.size(summed, right) + self.size(left, right))
        return bool(summed) and self.size(summed, kept, left, right) > WIDE_WORK * moved

    @property
    def is_matrix(self) -> bool:
        """Whether the contraction is one matrix product and nothing else."""
        return bool(self.summed) and not self.kept and not self.lone

    @property
    def is_product(self) -> bool:
        """Whether two values with rows and the same axes are multiplied entry by entry."""
        return all(self.setting.batched) and self.a == self.b == self.out


class _Contraction(ArrayStep):
    """Any algorithm: exponents add up, and so do the bounds of what is multiplied."""

    def __init__(self, inputs: Sequence[int], roles: AxisRoles, setting: Setting, xp: ArrayLibrary) -> None:
        self._inputs, self._xp, self._batched = tuple(inputs), xp, any(setting.batched)
        work = setting.size(tuple({a for own in setting.axes for a in own}))
        self._dense = Dense(setting, roles.out) if xp.dense and work >= MIN_DENSE else None
        self._plan(roles, setting)

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        raise NotImplementedError

    def _multiplied(self, frame: Frame) -> Array:
        raise NotImplementedError

    def _hand_on(self, backward: BackwardPass, adjoint: Array) -> None:
        raise NotImplementedError

    def forward(self, frame: Frame) -> Value:
        floor = self._xp.product_floor(frame, self._inputs) if self._batched else None
        arrays = [frame.values[i].array for i in self._inputs]
        if self._dense is not None and self._dense.takes(arrays):
            array = self._dense.contracted(arrays)
        else:
            array = self._multiplied(frame)
        return Value(array, total_exponent(frame, self._inputs), floor)

    def reverse(self, backward: BackwardPass, adjoint: Array) -> None:
        arrays = [backward.frame.values[i].array for i in self._inputs]
        if self._dense is not None and self._dense.takes(arrays, adjoint):
            for k, i in enumerate(self._inputs):
                backward.add(i, self._dense.adjoint(k, arrays, adjoint))
        else:
            self._hand_on(backward, adjoint)

    def floor(self, frame: Frame, value: Value) -> Any:
        return self._xp.product_floor(frame, self._inputs)


class _Alone(_Contraction):
    """One value, summed."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        self._over = roles.lone_places(roles.a)
        self._order = order_of(roles.own(roles.a), roles.out, setting.batched[0])

    def _multiplied(self, frame: Frame) -> Array:
        array = frame.values[self._inputs[0]].array
        return self._xp.permute(self._xp.sum(array, self._over), self._order)


class _Einsum(_Contraction):
    """One or two values. A value of one row speaks for as many as the other has."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        self._shapes = [setting.shape(own) for own in setting.axes]
        self._forward = _subscripts(setting.axes, setting.batched, roles.out)

    def _multiplied(self, frame: Frame) -> Array:
        # asked for this order itself, einsum loops over memory in a bad one
        return self._xp.in_order(np.einsum(self._forward, *(frame.values[i].array for i in self._inputs)))

    def _hand_on(self, backward: BackwardPass, adjoint: Array) -> None:
        arrays = [backward.frame.values[i].array for i in self._inputs]
        for k, i in enumerate(self._inputs):
            subscripts, lost = self._reverse[k]
            by_input = np.einsum(subscripts, adjoint, *arrays[:k], *arrays[k + 1 :])
            if lost:  # an axis that was summed out, and that the other one lacks, takes the same derivative everywhere
                by_input = np.expand_dims(by_input, lost)
                by_input = np.broadcast_to(by_input, (*self._shapes[k], *by_input.shape[len(self._shapes[k]) :]))
            backward.add(i, by_input)

    @cached_property
    def _reverse(self) -> list[tuple[str, tuple[int, ...]]]:
        """For each operand, the subscripts of its adjoint and the places of axes that these cannot reach."""
        terms, _, result = self._forward.partition("->")
        operands, adjoints = terms.split(","), []
        for k, own in enumerate(operands):
            sources = ",".join([result, *operands[:k], *operands[k + 1 :]])
            reached = "".join(letter for letter in own if letter in sources)
            adjoints.append((f"{sources}->{reached}", tuple(i for i, x in enumerate(own) if x not in sources)))
        return adjoints


def _subscripts(axes: Sequence[Axes], batched: Sequence[bool], out: Axes) -> str:
    """What einsum calls a contraction; "a" stands for the rows."""
    letters = {a: ascii_letters[i + 1] for i, a in enumerate(dict.fromkeys(a for own in axes for a in own))}
    terms = ["".join(letters[a] for a in own) + "a" * rows for own, rows in zip(axes, batched, strict=True)]
    return ",".join(terms) + "->" + "".join(letters[a] for a in out) + "a" * any(batched)


class _Product(_Contraction):
    """Two values of the same shape, entry by entry; one of a single row speaks for as many as the other has."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        assert roles.is_product

    def _multiplied(self, frame: Frame) -> Array:
        a, b = (frame.values[i].array for i in self._inputs)
        return a * b

    def _hand_on(self, backward: BackwardPass, adjoint: Array) -> None:
        a, b = self._inputs
        backward.add(a, adjoint * backward.frame.values[b].array)
        backward.add(b, adjoint * backward.frame.values[a].array)


class _Largest(_Contraction):
    """One or two values, multiplied entry by entry: the largest over the axes that disappear, state by state."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        gone = (*roles.summed, *roles.lone)
        self._views = views(self._xp, setting, (*gone, *roles.out))
        self._states = setting.shape(gone)

    def _multiplied(self, frame: Frame) -> Array:
        arrays = aligned(self._views, frame, self._inputs)
        largest = None
        for place in np.ndindex(*self._states):
            parts = [a[tuple(min(p, n - 1) for p, n in zip(place, a.shape, strict=False))] for a in arrays]
            product = parts[0] if len(parts) == 1 else parts[0] * parts[1]
            largest = product if largest is None else self._xp.maximum(largest, product)
        return self._xp.in_order(largest)


class _Spread(_Contraction):
    """Both values over all axes, multiplied entry by entry and summed."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        over = (*roles.summed, *roles.out)
        self._lone = [roles.lone_places(axes) for axes in setting.axes]
        self._views = [
            View(self._xp, setting, roles.own(axes), rows, over)
            for axes, rows in zip(setting.axes, setting.batched, strict=True)
        ]
        self._over = tuple(range(len(roles.summed)))
        self.scratch = setting.size(over) if self._over else 0

    def _multiplied(self, frame: Frame) -> Array:
        inputs = zip(self._views, self._inputs, self._lone, strict=True)
        a, b = (view.aligned(self._xp.sum(frame.values[i].array, lone)) for view, i, lone in inputs)
        return self._xp.sum(a * b, self._over)


class _Matrices:
    """A value as a matrix over two groups of its axes, or as several `side` by side; rows go across, innermost."""

    def __init__(self, xp: ArrayLibrary, axes: Axes, groups: Sequence[Axes], rows: bool, setting: Setting) -> None:
        side, down, _ = groups
        arranged = tuple(a for group in groups for a in group)
        own = tuple(a for a in axes if a in arranged)
        self._xp, self._lone = xp, tuple(k for k, a in enumerate(axes) if a not in arranged)
        self._order, self._back = order_of(own, arranged, rows), order_of(arranged, own, rows)
        self._shape = [*[setting.size(side)] * bool(side), setting.size(down), -1]
        self._entries = [*setting.shape(arranged), *[-1] * rows]

    def matrix(self, array: Array) -> Array:
        return self._xp.reshape(self._xp.permute(self._xp.sum(array, self._lone), self._order), self._shape)

    def array(self, matrix: Array) -> Array:
        return self._xp.permute(self._xp.reshape(matrix, self._entries), self._back)


class _Matrix(_Contraction):
    """A table times a table or a batch: one matrix product, or one for every entry of the kept axes."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        kept, left, summed, right = roles[4:8]
        self.table, rows = self._inputs[0], setting.batched[1]
        self._table = _Matrices(self._xp, roles.a, (kept, left, summed), False, setting)
        self._batch = _Matrices(self._xp, roles.b, (kept, summed, right), rows, setting)
        self._out = _Matrices(self._xp, roles.out, (kept, left, right), rows, setting)

    def arranged(self, table: Array) -> Array:
        return self._table.matrix(table)

    def _multiplied(self, frame: Frame) -> Array:
        batch = self._batch.matrix(frame.values[self._inputs[1]].array)
        product = self._xp.matmul(frame.ready(self), batch)
        return self._xp.in_order(self._out.array(product))

    def _hand_on(self, backward: BackwardPass, adjoint: Array) -> None:
        """The product that makes the adjoint of the table also sums over rows."""
        (table, i), batch = self._inputs, backward.frame.values[self._inputs[1]].array
        batch = np.broadcast_to(batch, (*batch.shape[:-1], adjoint.shape[-1]))
        by_out = self._out.matrix(adjoint)
        backward.add(table, self._table.array(by_out @ self._batch.matrix(batch).T))
        backward.add(i, self._batch.array(backward.frame.ready(self).T @ by_out))


class _BlockDiagonal(_Matrix):
    """Matrices side by side as one block-diagonal matrix: its zeros cost a GPU next to nothing."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        super()._plan(roles, setting)
        kept, summed = roles.kept, roles.summed
        self._batch = _Matrices(self._xp, roles.b, ((), kept + summed, roles.right), setting.batched[1], setting)
        blocks = setting.size(kept)
        self._eye = self._xp.constant(np.eye(blocks)[:, None, :, None])
        self._height = blocks * setting.size(roles.left)

    def arranged(self, table: Array) -> Array:
        matrices = super().arranged(table)  # (block, height, width); then (block, height, block, width)
        blocks, height, width = matrices.shape
        spread = self._xp.reshape(matrices, [blocks, height, 1, width]) * self._eye
        return self._xp.reshape(spread, [self._height, -1])


class _RowProducts(_Contraction):
    """One matrix product for each row: (kept, rows, left, summed) @ (kept, rows, summed, right)."""

    def _plan(self, roles: AxisRoles, setting: Setting) -> None:
        kept, left, summed, right = roles[4:8]
        self._sides = []
        for axes, down, across in ((roles.a, left, summed), (roles.b, summed, right)):
            order = order_of((*roles.own(axes), ""), (*kept, "", *down, *across))  # "" are the rows
            shape = [setting.size(kept), -1, setting.size(down), setting.size(across)]
            self._sides.append((roles.lone_places(axes), order, shape))
        product = (*kept, "", *left, *right)
        self._shape = [setting.sizes[a] if a else -1 for a in product]
        self._order = order_of(product, (*roles.out, ""))

    def _multiplied(self, frame: Frame) -> Array:
        xp = self._xp
        a, b = (
            xp.reshape(xp.permute(xp.sum(frame.values[i].array, lone), order), shape)
            for i, (lone, order, shape) in zip(self._inputs, self._sides, strict=True)
        )
        return xp.permute(xp.reshape(xp.matmul(a, b), self._shape), self._order)


_ALGORITHMS: Mapping[str, type[_Contraction]] = {
    "alone": _Alone,
    "product": _Product,
    "einsum": _Einsum,
    "largest": _Largest,
    "spread": _Spread,
    "matrix": _Matrix,
    "block diagonal": _BlockDiagonal,
    "rows": _RowProducts,
}

"""Products of large tables that are summed, without rows: in one pass over memory, or as matrix products.

einsum, which is made for few axes, goes through memory two entries at a time where all axes have two states. Here axes
keep the order that they have in memory: results have theirs in whatever order is made fastest, as arrays with strides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tacit.compiler.operations.axes import Array, Axes, Axis, Ids, Setting

TILE = 2**11  # entries of a result that one set of offsets serves
LINE = 2**4  # entries that follow one another in memory, of which a tile has all
MIN_RUN = 2**5  # entries that follow one another from which they are worth a loop of their own
# Seconds, measured: of a multiply-add in a pass and in a matrix product, of an entry brought into order, of a product
PASSED, MULTIPLIED, MOVED, CALLED = 1.0e-9, 0.12e-9, 1.5e-9, 1e-6

Sizes = Mapping[Axis, int]


class Table(NamedTuple):
    """A table as it lies in memory: its entries one after the other, and its axes, slowest first."""

    entries: Array
    axes: Axes
    strides: Mapping[Axis, int]

    @classmethod
    def of(cls, array: Array, axes: Axes) -> Table:
        """An array with its axes in any order."""
        order = sorted(range(array.ndim), key=lambda k: -array.strides[k])
        lying = np.ascontiguousarray(array.transpose(order))
        own = tuple(axes[k] for k in order)
        return cls.lying(lying.reshape(-1), own, dict(zip(own, lying.shape, strict=False)))

    @classmethod
    def lying(cls, entries: Array, axes: Axes, sizes: Sizes) -> Table:
        """Entries one after the other, over some axes."""
        strides, step = dict[Axis, int](), 1
        for axis in reversed(axes):
            strides[axis], step = step, step * sizes[axis]
        return cls(entries, axes, strides)

    @classmethod
    def empty(cls, axes: Axes, sizes: Sizes, dtype: np.dtype[np.floating]) -> Table:
        """A table to be filled."""
        return cls.lying(np.empty(size(axes, sizes), dtype=dtype), axes, sizes)

    def offsets(self, axes: Axes, sizes: Sizes) -> Ids:
        """Where entries are along some axes, the last fastest."""
        offsets = np.zeros(1, dtype=np.int64)
        for axis in axes:
            steps = self.strides.get(axis, 0) * np.arange(sizes[axis])
            offsets = (offsets[:, None] + steps).reshape(-1)
        return offsets

    def array(self, axes: Axes, sizes: Sizes) -> Array:
        """The table as an array with its axes in some order, not moved in memory."""
        shape = [sizes[a] for a in self.axes]
        return self.entries.reshape(shape).transpose([self.axes.index(a) for a in axes])


class Dense:
    """A contraction, and its reverse, of tables and of values that have one row."""

    def __init__(self, setting: Setting, out: Axes) -> None:
        self._axes, self._batched, self._sizes, self._out = setting.axes, setting.batched, setting.sizes, out

    def takes(self, arrays: Sequence[Array], adjoint: Array | None = None) -> bool:
        """Whether these are plain arrays, and those with rows have but one."""
        rows = [array for array, batched in zip(arrays, self._batched, strict=True) if batched]
        rows += [adjoint] if adjoint is not None and any(self._batched) else []
        every = arrays if adjoint is None else [*arrays, adjoint]
        return all(type(array) is np.ndarray for array in every) and all(array.shape[-1] == 1 for array in rows)

    def contracted(self, arrays: Sequence[Array]) -> Array:
        """The result."""
        tables = [array[..., 0] if rows else array for array, rows in zip(arrays, self._batched, strict=True)]
        result = contracted(tables, self._axes, self._out, self._sizes)
        return result[..., None] if any(self._batched) else result

    def adjoint(self, k: int, arrays: Sequence[Array], adjoint: Array) -> Array:
        """The adjoint of the k-th array, from that of the result: the same everywhere along axes that it alone has."""
        own, others = self._axes[k], [j for j in range(len(arrays)) if j != k]
        tables = [array[..., 0] if self._batched[j] else array for j, array in enumerate(arrays)]
        upper = adjoint[..., 0] if any(self._batched) else adjoint
        axes = (self._out, *(self._axes[j] for j in others))
        reached = tuple(a for a in own if any(a in some for some in axes))
        result = contracted([upper, *(tables[j] for j in others)], axes, reached, self._sizes)
        if len(reached) < len(own):
            places = tuple(i for i, a in enumerate(own) if a not in reached)
            shape = [self._sizes[a] for a in own]
            result = np.broadcast_to(np.expand_dims(result, places), shape)
        return result[..., None] if self._batched[k] else result


def size(axes: Sequence[Axis], sizes: Sizes) -> int:
    """The number of entries over some axes."""
    return math.prod([sizes[a] for a in axes])


def contracted(arrays: Sequence[Array], axes: Sequence[Axes], out: Axes, sizes: Sizes) -> Array:
    """One array, or the product of two, summed down to the axes in `out`, each of which one of them has."""
    tables = [Table.of(array, own) for array, own in zip(arrays, axes, strict=True)]
    tables.sort(key=lambda table: -table.entries.size)
    for k, table in enumerate(tables):  # what one alone has and the result lacks is summed before all else
        others = {a for other in tables if other is not table for a in other.axes}
        stay = tuple(a for a in table.axes if a in out or a in others)
        if len(stay) < len(table.axes):
            tables[k] = _summed(table, stay, sizes)
    if len(tables) == 1:
        return tables[0].array(out, sizes)
    a, b = tables
    product = _matrices(a, b, out, sizes) or _passed(a, b, out, sizes)
    return product.array(out, sizes)


def _tiles(axes: Axes, tables: Sequence[Table], sizes: Sizes) -> tuple[Axes, Axes]:
    """The axes of a result in two groups: those between tiles and those within one, which has whole cache lines."""
    inside = set[Axis]()
    for order in (axes, *(table.axes for table in tables)):
        line = 1
        for axis in reversed([a for a in order if a in axes]):
            if line >= LINE:
                break
            line *= sizes[axis]
            inside.add(axis)
    for axis in reversed(axes):
        if size([*inside, axis], sizes) > TILE and axis not in inside:
            break
        inside.add(axis)
    return tuple(a for a in axes if a not in inside), tuple(a for a in axes if a in inside)


def _summed(table: Table, axes: Axes, sizes: Sizes) -> Table:
    """The sum over all axes but these, which come in this order."""
    from tacit.compiler.operations.dense_kernels import sums  # loads numba

    out = Table.empty(axes, sizes, table.entries.dtype)
    gone = tuple(a for a in table.axes if a not in axes)
    tiles, places = _tiles(axes, [table], sizes)
    own = (table.offsets(group, sizes) for group in (tiles, places, gone))
    sums(table.entries, *own, out.entries, out.offsets(tiles, sizes), out.offsets(places, sizes))
    return out


def _in_order(table: Table, axes: Axes, sizes: Sizes) -> Array:
    """The entries of a table with its axes in some order."""
    return table.entries if table.axes == axes else _summed(table, axes, sizes).entries


def _passed(a: Table, b: Table, out: Axes, sizes: Sizes) -> Table:
    """The product in one pass over the result, whose axes keep the order of `a`, the larger table."""
    from tacit.compiler.operations.dense_kernels import products, products_in_runs  # loads numba

    summed = tuple(x for x in a.axes if x not in out)
    axes = (*(x for x in b.axes if x in out and x not in a.axes), *(x for x in a.axes if x in out))
    result = Table.empty(axes, sizes, np.result_type(a.entries, b.entries))
    run, step = _run(a, b, axes, sizes)
    length = size(run, sizes)
    if length >= MIN_RUN:
        before = axes[: len(axes) - len(run)]
        sides = [(t.entries, t.offsets(before, sizes), t.offsets(summed, sizes)) for t in (a, b)]
        products_in_runs(*sides[0], *sides[1], step, length, result.entries)
    else:
        tiles, places = _tiles(axes, (a, b), sizes)
        sides = [(t.entries, *(t.offsets(group, sizes) for group in (tiles, places, summed))) for t in (a, b)]
        products(*sides[0], *sides[1], result.entries, *(result.offsets(group, sizes) for group in (tiles, places)))
    return result


def _run(a: Table, b: Table, axes: Axes, sizes: Sizes) -> tuple[Axes, int]:
    """The last axes of a result along which the entries of `a` follow one another, as do those of `b`, or it has one.

    The number says which: how far apart those of `b` are.
    """
    runs = []
    for step in (0, 1):
        length, count = 1, 0
        for axis in reversed(axes):
            if a.strides.get(axis, 0) != length or b.strides.get(axis, 0) != step * length:
                break
            length *= sizes[axis]
            count += 1
        runs.append((count, step))
    count, step = max(runs)
    return axes[len(axes) - count :], step


def _matrices(a: Table, b: Table, out: Axes, sizes: Sizes) -> Table | None:
    """The product as matrix products, one for each state of the axes that all have; None where a pass is faster."""
    kept = tuple(x for x in a.axes if x in b.axes and x in out)
    left = tuple(x for x in a.axes if x not in b.axes)
    summed = tuple(x for x in a.axes if x in b.axes and x not in out)
    right = tuple(x for x in b.axes if x not in a.axes)
    count, height, depth, width = (size(group, sizes) for group in (kept, left, summed, right))
    work, moved = count * height * depth * width, a.entries.size + b.entries.size
    if not summed or MULTIPLIED * work + MOVED * moved + CALLED * count > PASSED * work:
        return None
    x = _in_order(a, (*kept, *left, *summed), sizes).reshape(count, height, depth)
    y = _in_order(b, (*kept, *summed, *right), sizes).reshape(count, depth, width)
    return Table.lying((x @ y).reshape(-1), (*kept, *left, *right), sizes)

"""How arrays are arranged: axes in another order, or ready to broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.compiler.operations.array_rules import ArrayLibrary, Frame
from tacit.compiler.operations.axes import ONE, Array, Axes, Axis, Ids, Setting


def spread(array: NDArray[Any], axes: Axes, order: Axes) -> NDArray[Any]:
    """An array with its axes in a given order, length-1 axes where it has none: ready to broadcast."""
    present = [a for a in order if a in axes]
    moved = array.transpose([axes.index(a) for a in present])
    return moved.reshape([moved.shape[present.index(a)] if a in axes else 1 for a in order])


def gathered(entries: NDArray[Any], index: Ids, zero: Any, one: Any) -> NDArray[Any]:
    """Entries of a flat array by their places, `zero` and `one` where the index says so."""
    return np.where(index >= 0, entries[np.maximum(index, 0)], np.where(index == ONE, one, zero))


def distinct(ids: Ids) -> Ids:
    """The different ids, in order: as `np.unique`, which takes ten times as long for many."""
    ordered = np.sort(ids, axis=None)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def order_of(axes: Sequence[Axis], wanted: Sequence[Axis], rows: bool = False) -> list[int]:
    """The permutation that brings `axes` into the order of `wanted`, rows last."""
    return [*(axes.index(a) for a in wanted), *([len(axes)] if rows else [])]


class View:
    """A value over other axes: length-1 axes where it has none, ready to broadcast; and back."""

    def __init__(self, xp: ArrayLibrary, setting: Setting, axes: Axes, batched: bool, out: Axes) -> None:
        present, rows, any_batch = [a for a in out if a in axes], [-1] * batched, any(setting.batched)
        self._xp, self._same = xp, axes == out and batched == any_batch
        self._order, self._back = order_of(axes, present, batched), order_of(present, axes, batched)
        self._aligned = [setting.sizes[a] if a in axes else 1 for a in out] + (rows or [1]) * any_batch
        self._present = [*setting.shape(present), *rows]
        self._sum_rows = any_batch and not batched

    def aligned(self, array: Array) -> Array:
        return array if self._same else self._xp.reshape(self._xp.permute(array, self._order), self._aligned)

    def back(self, array: Array) -> Array:
        """An aligned array over the axes of the value, summed over the rows that the value does not have."""
        array = array.sum(axis=-1) if self._sum_rows else array
        return array.reshape(self._present).transpose(self._back)


def views(xp: ArrayLibrary, setting: Setting, out: Axes) -> list[View]:
    """Views of all inputs of an operation over the same axes."""
    return [View(xp, setting, axes, rows, out) for axes, rows in zip(setting.axes, setting.batched, strict=True)]


def aligned(views: Sequence[View], frame: Frame, inputs: Sequence[int]) -> list[Array]:
    """The inputs of an operation over the same axes, ready to broadcast."""
    return [view.aligned(frame.values[i].array) for view, i in zip(views, inputs, strict=True)]

"""torch as an array library of the operations' rules, on a CPU or a GPU.

Permuted results stay views, since every operation reads strides. Bounds of products are lists of what they are the sum
of, added up only where they are asked for: on a GPU every sum is a launch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tacit.base.floats import Floats, representable, scaled
from tacit.compiler.operations.array_rules import ArrayLibrary, Frame
from tacit.compiler.operations.axes import Ids, Mask
from tacit.compiler.operations.contract import AxisRoles

# The gradient of many narrow products by their tables, a sum over all rows for each of them, leaves a GPU idle; one
# block-diagonal matrix of at most so many entries does not.
BLOCK_DIAGONAL = {"cuda": 2**12}
COMPARE: dict[str, Callable[[Tensor, Tensor], Tensor]] = {">=": torch.ge, ">": torch.gt, "<=": torch.le, "<": torch.lt}

Bound = Tensor | tuple[Tensor, ...]


class TorchArrays(ArrayLibrary):
    """Tensors of one type on one device."""

    def __init__(self, dtype: torch.dtype, device: torch.device) -> None:
        self.dtype, self.device = dtype, device
        self.limit = math.log2(torch.finfo(dtype).smallest_normal)

    def constant(self, table: NDArray[Any]) -> Tensor:
        return torch.tensor(table, dtype=self.dtype, device=self.device)

    def index(self, places: Ids) -> Tensor:
        return torch.tensor(places, device=self.device)

    def truth(self, mask: Mask) -> Tensor:
        return torch.tensor(mask, device=self.device)

    def ones(self, states: int) -> Tensor:
        return torch.ones((states, 1), dtype=self.dtype, device=self.device)

    def fixed(self, array: Tensor) -> Tensor:
        return array.detach()

    def permute(self, array: Tensor, order: Sequence[int]) -> Tensor:
        return array.permute(*order) if order else array

    def reshape(self, array: Tensor, shape: Sequence[int]) -> Tensor:
        return array.reshape(tuple(shape))

    def take(self, array: Tensor, index: Tensor, axis: int) -> Tensor:
        return array.index_select(axis, index)

    def where(self, condition: Tensor, a: Any, b: Any) -> Tensor:
        return torch.where(condition, a, b)

    def sum(self, array: Tensor, over: Sequence[int], keepdims: bool = False) -> Tensor:
        return array.sum(dim=tuple(over), keepdim=keepdims) if over else array  # over no axes would be over all

    def maximum(self, a: Tensor, b: Tensor) -> Tensor:
        return torch.maximum(a, b)

    def smallest(self, array: Tensor, axis: int) -> Tensor:
        return array.amin(dim=axis)

    def largest(self, array: Tensor, axis: int) -> Tensor:
        return array.amax(dim=axis)

    def compare(self, test: str, a: Tensor, b: Tensor) -> Tensor:
        return COMPARE[test](a, b)

    def ratio(self, part: Tensor, total: Tensor, otherwise: Tensor | float) -> Tensor:
        possible = total > 0
        # the division must be harmless also where its result is not taken, or its gradient would be NaN
        return torch.where(possible, part / torch.where(possible, total, 1.0), otherwise)

    def sigmoids(self, x: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        return torch.sigmoid(x), torch.sigmoid(-x)  # taken from 1, the weight of minus would lose its digits

    def decays(self, x: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
        smallest = torch.finfo(x.dtype).smallest_normal / 2  # says that a number is too small, where 0 would not
        return torch.exp(-x).clamp(min=smallest), -torch.expm1(-x)

    def rescaled(self, array: Tensor, over: Sequence[int]) -> tuple[Tensor, Tensor]:
        top = array.detach().amax(dim=tuple(over)) if over else array.detach()
        mantissa, exponent = torch.frexp(top)
        # an exact power of two, by an exact division; nothing is gained by scaling zeros
        return array / torch.where(top > 0, top / mantissa, 1.0), exponent

    def concatenate(self, arrays: Sequence[Tensor]) -> Tensor:
        rows = max(array.shape[-1] for array in arrays)
        return torch.cat([array.expand(-1, rows) for array in arrays])

    def literals(self, mantissas: Floats, exponents: Ids) -> tuple[Tensor, bool]:
        dtype = np.dtype(str(self.dtype).removeprefix("torch."))
        fit = bool(representable(mantissas, exponents, dtype).all())
        return self.constant(scaled(mantissas, exponents, dtype)[:, None]), fit

    def algorithm(self, layout: AxisRoles | None, tables: int) -> str:
        if layout is None or not layout.summed:
            return "alone" if layout is None else "spread"
        if not tables:
            return "rows" if layout.wide else "spread"
        kept, left, summed, _ = layout[4:8]
        entries = layout.size(kept, left) * layout.size(kept, summed)
        narrow = tables == 1 and kept and entries <= BLOCK_DIAGONAL.get(self.device.type, 0)
        return "block diagonal" if narrow else "matrix"

    def likelihood_floor(self, array: Tensor) -> Tensor:
        return lowest(array, (0,))

    def product_floor(self, frame: Frame, inputs: Sequence[int]) -> tuple[Tensor, ...]:
        bounds = [frame.floor(i) for i in inputs]
        return tuple(b for bound in bounds for b in (bound if isinstance(bound, tuple) else (bound,)))

    def sum_floor(self, frame: Frame, inputs: Sequence[int]) -> Tensor:
        a, b = (self.settled(frame.floor(i)) for i in inputs)
        return torch.minimum(a, b)

    def selected_floor(
        self, frame: Frame, inputs: Sequence[int], tests: bool, table: Tensor, sides: tuple[Tensor, Tensor], rows: bool
    ) -> Tensor:
        marginal, high, low, limits = (self.settled(frame.floor(i)) for i in inputs)
        floor = torch.minimum(high, low)
        if tests:  # a test multiplies the sum of the marginal by the threshold
            return torch.where(marginal + limits < self.limit, -math.inf, floor)
        entries = tuple(range(table.dim() - rows))
        hanging = (sides[0].detach() > 0) | (sides[1].detach() > 0)
        lost = hanging & (table.detach() < torch.finfo(self.dtype).smallest_normal)
        doubt = torch.isneginf(marginal + floor) | (lost.sum(dim=entries) > 0 if entries else lost)
        return torch.where(doubt, -math.inf, lowest(table, entries))

    def times(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        product = a * b
        lost = product.detach() < torch.finfo(self.dtype).smallest_normal
        lost &= a.detach() > 0
        lost &= b.detach() > 0
        return product, lost.flatten(0, -2).sum(dim=0) > 0  # `any` takes five times as long

    def listed_floor(
        self, frame: Frame, inputs: Sequence[int], array: Tensor, lost: Sequence[Tensor], in_range: bool
    ) -> Tensor:
        floor = lowest(array, (0,))
        for doubt in (*(torch.isneginf(self.settled(frame.floor(i))) for i in inputs), *lost):
            floor = torch.where(doubt, -math.inf, floor)
        return floor if in_range else torch.full_like(floor, -math.inf)

    def rescaled_floor(self, floor: Bound, array: Tensor, over: Sequence[int]) -> Tensor:
        return torch.where(torch.isneginf(self.settled(floor)), -math.inf, lowest(array, over))

    def extremes_floor(self, floor: Bound) -> Tensor:
        return torch.where(torch.isneginf(self.settled(floor)), -math.inf, 0.0)

    def settled(self, bound: Bound) -> Tensor:
        """A bound as one number for each row; minus infinity where it leaves the range of floats."""
        total = sum(bound[1:], start=bound[0]) if isinstance(bound, tuple) else bound
        return torch.where(total < self.limit, -math.inf, total)


def lowest(value: Tensor, over: Sequence[int]) -> Tensor:
    """The logarithm (base 2) of the smallest entry over some axes, if it is neither 0 nor above 1; else 0."""
    value = value.detach()
    smallest = torch.where((value > 0) & (value < 1), value, 1.0)
    return (smallest.amin(dim=tuple(over)) if over else smallest).log2()


def from_numpy(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> Tensor:
    """Without a copy where that is safe: torch does not know arrays that must not be written to."""
    return torch.from_numpy(array if array.flags.writeable else array.copy())

"""Plans of long, thin networks, made window by window: what a chain of any length needs is found on a piece of it.

All other searches look at the whole network with every axis, so that they take longer than in proportion to its length.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tacit.compiler.order.exact import neighbours
from tacit.compiler.order.sweep import sweep_order, widest_front
from tacit.compiler.order.tree import Path, Planner, Problem, Tree, bits, mask_of

WINDOW_AXES = 120  # summed in a window: a multiple of most numbers of axes in a step, so that windows are equal
MAX_FRONT = 2.0**12  # entries over the axes that are open at a time, up to which a problem is thin
HUB_NEIGHBOURS = 100  # beyond which an axis is left open: what all steps share

_Factor = tuple[int, bool]  # its axes, and whether it is soft


def by_windows(problem: Problem, plan: Planner) -> Path | None:
    """A plan that sums the axes of a window before those of the next, along a sweep; None if the problem is not thin.

    In each window, what is linked by its axes is planned by itself, with `plan`, and its result is a factor of later
    windows. Equal windows have the same plan.
    """
    hubs = {axis for axis, around in neighbours(problem).items() if len(around) > HUB_NEIGHBOURS}
    order = sweep_order(problem, hubs)
    open_always = math.prod(float(problem.sizes[axis]) for axis in hubs)
    if widest_front(problem, order) * open_always > MAX_FRONT:
        return None
    windows = _Windows(problem, plan)
    for start in range(0, len(order), WINDOW_AXES):
        windows.sum_out(order[start : start + WINDOW_AXES])
    windows.merge(sorted(windows.factors), None)
    return windows.path


class _Windows:
    """Factors that are still there while the windows are planned."""

    def __init__(self, problem: Problem, plan: Planner) -> None:
        self.problem, self.plan = problem, plan
        self.path: Path = []
        self.factors: dict[int, _Factor] = {}
        self.holders: dict[int, set[int]] = {}
        self._plans: dict[tuple[object, ...], tuple[Path, int, bool]] = {}
        for i, factor in enumerate(zip(problem.masks, problem.soft, strict=True)):
            self._put(i, factor)

    def _put(self, i: int, factor: _Factor) -> None:
        self.factors[i] = factor
        for axis in bits(factor[0] & ~self.problem.hard):
            self.holders.setdefault(axis, set()).add(i)

    def sum_out(self, axes: Sequence[int]) -> None:
        """Plan the sums over some axes, together where factors link them."""
        left = dict.fromkeys(axes)
        while left:
            linked, group, waiting = set[int](), set[int](), [next(iter(left))]
            while waiting:
                axis = waiting.pop()
                if axis not in linked:
                    linked.add(axis)
                    del left[axis]
                    new = self.holders.get(axis, set()) - group
                    group |= new
                    waiting += [a for i in new for a in bits(self.factors[i][0]) if a in left]
            self.merge(sorted(group), linked)

    def merge(self, group: Sequence[int], summed: set[int] | None) -> None:
        """Plan the product of a group, summed over some axes; over all that do not stay, if None are named."""
        if len(group) < 2:
            return
        taken = [self.factors.pop(i) for i in group]
        axes = list(dict.fromkeys(axis for mask, _ in taken for axis in bits(mask)))
        for axis in axes:
            self.holders.get(axis, set()).difference_update(group)
        stay = [a for a in axes if (self.problem.keep >> a & 1 if summed is None else a not in summed)]
        path, out, soft = self._planned(taken, axes, stay)
        first = len(self.problem.masks) + len(self.path)
        nodes = [*group, *range(first, first + len(path))]
        self.path += [(nodes[i], nodes[j]) for i, j in path]
        self._put(nodes[-1], (mask_of(axes[i] for i in bits(out)), soft))

    def _planned(self, taken: Sequence[_Factor], axes: Sequence[int], stay: Sequence[int]) -> tuple[Path, int, bool]:
        """The plan of a group with axes numbered anew, and the axes and softness of its result."""
        place = {axis: i for i, axis in enumerate(axes)}
        masks = [mask_of(place[a] for a in bits(mask)) for mask, _ in taken]
        soft, sizes = [s for _, s in taken], [self.problem.sizes[a] for a in axes]
        hard = mask_of(place[a] for a in axes if self.problem.hard >> a & 1)
        keep = mask_of(place[a] for a in stay) & ~hard
        key = (tuple(masks), tuple(soft), tuple(sizes), keep, hard)
        if key not in self._plans:
            part = Problem(masks, soft, [self.problem.names[a] for a in axes], sizes, keep, hard)
            tree = Tree(part, self.plan(part))
            self._plans[key] = tree.path(), tree.out[tree.root], tree.soft[tree.root]
        return self._plans[key]

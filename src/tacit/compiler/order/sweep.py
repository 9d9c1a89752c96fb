"""Sweeps from one end of a network to the other, which suit grids and everything else that is long and even.

Long, thin networks are planned window by window along a sweep: what a chain of any length needs is found on a piece of
it. All other searches look at the whole network with every axis, and take longer than in proportion to its length.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence

from tacit.compiler.order.exact import neighbours
from tacit.compiler.order.tree import Path, Planner, Problem, Tree, bits, mask_of

WINDOW_AXES = 120  # summed in a window: a multiple of most numbers of axes in a step, so that windows are equal
MAX_FRONT = 2.0**12  # entries over the axes that are open at a time, up to which a problem is thin
HUB_NEIGHBOURS = 100  # beyond which an axis is left open: what all steps share

_Factor = tuple[int, bool]  # its axes, and whether it is soft


def sweep_order(problem: Problem, without: Collection[int] = ()) -> list[int]:
    """The axes to be summed, layer by layer from an end of the graph of the factors (Cuthill and McKee, 1969).

    Each axis is followed by its neighbours that come first in no earlier layer, those with few neighbours first. So
    neighbours are close to each other in the order, and what is open at any time is about one layer. Axes in `without`
    are no part of the graph.
    """
    around = neighbours(problem)
    if without:
        around = {axis: others.difference(without) for axis, others in around.items() if axis not in without}
    order: list[int] = []
    seen: set[int] = set()
    for axis in sorted(around, key=lambda a: (len(around[a]), a)):
        if axis not in seen:
            far = _layers(around, axis)[-1]  # an end, or close to one
            layers = _layers(around, far)
            order += layers
            seen.update(layers)
    kept = set(bits(problem.keep))
    return [axis for axis in order if axis not in kept]


def widest_front(problem: Problem, order: list[int]) -> float:
    """The most entries over the axes that are open at a time, seen but not summed yet: a sweep costs that at least."""
    around = neighbours(problem)
    place = {axis: i for i, axis in enumerate(order)}
    opened: list[list[int]] = [[] for _ in order]
    for axis in order:
        opened[min([place[axis], *(place[other] for other in around[axis] if other in place)])].append(axis)
    front = widest = 0.0
    for axis, new in zip(order, opened, strict=True):
        front += sum(math.log2(problem.sizes[other]) for other in new)
        widest = max(widest, front)
        front -= math.log2(problem.sizes[axis])
    return math.pow(2.0, min(widest, 1000.0))


def _layers(around: Mapping[int, set[int]], start: int) -> list[int]:
    """All axes that can be reached, nearest first."""
    reached, waiting = {start: None}, deque([start])
    while waiting:
        near = [axis for axis in around[waiting.popleft()] if axis not in reached]
        near.sort(key=lambda a: (len(around[a]), a))
        reached.update(dict.fromkeys(near))
        waiting.extend(near)
    return list(reached)


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

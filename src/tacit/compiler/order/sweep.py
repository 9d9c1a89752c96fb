"""Sweep orders: from one end of a network to the other, which suits grids and everything else that is long and even."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping

from tacit.compiler.order.exact import neighbours
from tacit.compiler.order.tree import Problem, bits


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

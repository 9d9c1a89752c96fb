"""The greatest value of a query over a box of evidence, by branch and bound.

A node of the search is a box with the sides that some tests are assumed to be on. It is bounded by its vertices (see
`boxes`), and by a linear program that takes the inequalities of the assumed sides into account (see `relax`). A node
is branched by the outcomes of a test that is open, or its box is cut in two. Close to the solutions of the linear
programs, values of the query are met.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from tacit.floats import Floats
from tacit.theory import relax
from tacit.theory.boxes import Bounded, bounded, halves, interiors
from tacit.theory.frozen import TIE, Frozen, Sides, normalised

BATCH = 32  # nodes bounded at a time
BRANCHED = 4  # open tests of a group up to which a node is branched by an outcome rather than cut
NARROW = 1e-11  # a box of which no side is wider is not cut any more
STEPS = np.append(0.25 ** np.arange(22), 0.0)  # of the way from a border point into its region: down to 2e-13, and 0


@dataclass(order=True)
class Node:
    """A box, the sides assumed or decided there, and along which input to cut it; the best bound comes first."""

    rank: float  # minus the bound
    low: Floats = field(compare=False)
    high: Floats = field(compare=False)
    sides: Sides = field(compare=False)
    axis: int = field(compare=False, default=0)

    @property
    def bound(self) -> float:
        """No value in the box, where tests are on their sides, is greater."""
        return -self.rank


class Kind(IntEnum):
    """What a value that was met is: what the circuit says, what it would say but for rounding at a tie, or a limit."""

    LIMIT = 0
    TIE = 1
    VALUE = 2


@dataclass(frozen=True)
class Best:
    """The greatest value met, where, and of which kind."""

    value: float
    point: Floats
    kind: Kind


@dataclass(frozen=True)
class Maximum:
    """No value in the box is greater than `bound`; `best` is the greatest met, None if all evidence is impossible."""

    bound: float
    best: Best | None
    boxes: int


def maximise(
    frozen: Frozen,
    low: Floats,
    high: Floats,
    objective: Floats,
    tolerance: float,
    budget: int,
    level: float | None = None,
) -> Maximum:
    """The maximum of sum_q objective[q] P*(q) over the box low..high, to within `tolerance`, or what `budget` allows.

    With a `level`, the search ends as soon as a value above it is met, or the bound is not above it.
    """
    return _Search(frozen, objective, tolerance, level).run(low, high, budget)


class _Search:
    def __init__(self, frozen: Frozen, objective: Floats, tolerance: float, level: float | None) -> None:
        self.frozen, self.objective, self.tolerance, self.level = frozen, objective, tolerance, level
        self.best: Best | None = None
        self.heap: list[Node] = []
        self.dropped = -np.inf  # the greatest bound of a node that was not pursued

    def run(self, low: Floats, high: Floats, budget: int) -> Maximum:
        sides = np.where(self.frozen.tests.hard, 0, 1).astype(np.int8)
        self._take([Node(-np.inf, low, high, sides)])
        boxes = 1
        while self.heap and boxes < budget and not self._done():
            children: list[Node] = []
            while self.heap and len(children) < BATCH and self._promising(self.heap[0].bound):
                children.extend(self._branched(heapq.heappop(self.heap)))
            boxes += len(children)
            self._take(children)
        return Maximum(self._bound(), self.best, boxes)

    def _bound(self) -> float:
        """The bound of all that was looked at."""
        waiting = self.heap[0].bound if self.heap else -np.inf
        return max(self._met(), waiting, self.dropped)

    def _met(self) -> float:
        return -np.inf if self.best is None else self.best.value

    def _done(self) -> bool:
        answered = self.level is not None and not self._met() <= self.level < self._bound()
        return answered or not self._promising(self.heap[0].bound)

    def _promising(self, bound: float) -> bool:
        """Whether a node with this bound is worth pursuing; with minus infinity, it holds no point.

        Half the tolerance is left for a smaller value of a better kind.
        """
        return bound > self._met() + self.tolerance / 2

    def _branched(self, node: Node) -> Iterator[Node]:
        open_tests = self._open_tests(node)
        width = node.high - node.low
        narrow = width.max(initial=0.0) <= NARROW
        if len(open_tests) and (narrow or len(open_tests) <= BRANCHED):
            for side in (1, -1):
                sides = node.sides.copy()
                sides[open_tests[0]] = side
                yield Node(node.rank, node.low, node.high, sides)
        elif narrow:
            self.dropped = max(self.dropped, node.bound)
        else:
            axis = node.axis if width[node.axis] > NARROW else int(np.argmax(width))
            for low, high in halves(node.low, node.high, axis):
                yield Node(node.rank, low, high, node.sides)

    def _open_tests(self, node: Node) -> NDArray[np.intp]:
        """The open tests of the first group that has any: others may only be open because of them."""
        for group in self.frozen.groups:
            found = node.sides[group.tests] == 0
            if found.any():
                return np.asarray(group.tests[found])
        return np.empty(0, dtype=np.intp)

    # bounds -----------------------------------------------------------------------------------------------

    def _take(self, nodes: Sequence[Node]) -> None:
        """Bound some nodes, look for values near their bounds, and queue those that may hold a greater one."""
        if not nodes:
            return
        low, high = np.stack([n.low for n in nodes], axis=1), np.stack([n.high for n in nodes], axis=1)
        boxes = bounded(self.frozen, low, high, np.stack([n.sides for n in nodes]), self.objective)
        bounds = np.minimum(self._by_vertices(boxes), [n.bound for n in nodes])
        self._tighten(boxes, bounds)
        axes = _axes(boxes)
        for i, bound in enumerate(bounds.tolist()):
            if self._promising(bound):
                heapq.heappush(self.heap, Node(-bound, low[:, i], high[:, i], boxes.sides[i], int(axes[i])))
            else:
                self.dropped = max(self.dropped, bound)

    def _by_vertices(self, boxes: Bounded) -> Floats:
        """Bounds by vertices alone; the value of the most promising vertex of each box is met."""
        quotients = boxes.quotients()
        bounds = np.where(boxes.possible, quotients.max(axis=1), -np.inf)
        chosen = np.flatnonzero(np.isfinite(bounds))
        if len(chosen):
            points = boxes.corners[:, chosen, quotients[chosen].argmax(axis=1)]
            self._meet(points, self._values(points, self.frozen.select(points)[0]), Kind.VALUE)
        return bounds

    def _tighten(self, boxes: Bounded, bounds: Floats) -> None:
        """Lower bounds by the inequalities of assumed sides; values near the solutions are met."""
        active = boxes.active(i for i, bound in enumerate(bounds) if self._promising(bound))
        quotients = [relax.Quotient(boxes.value[i], boxes.total[i], boxes.conditions[i, t]) for i, t in active.items()]
        nothing = float(self.objective.min()) - 1  # less than any value
        borders: dict[int, Floats] = {}
        for i, (bound, weights) in zip(active, relax.greatest(quotients, max(self._met(), nothing)), strict=True):
            bounds[i] = min(bounds[i], bound if bound > nothing + 0.5 else -np.inf)
            if self._promising(bounds[i]) and (boxes.sides[i] != 0).all():
                borders[i] = boxes.corners[:, i] @ weights
        insides = interiors(boxes, {i: active[i] for i in borders})
        bounds[[i for i, point in insides.items() if point is None]] = -np.inf
        inside = {i: point for i, point in insides.items() if point is not None}
        if inside:
            border = np.stack([borders[i] for i in inside], axis=1)
            self._meet_borders(border, np.stack(list(inside.values()), axis=1), boxes.sides[list(inside)].T)

    # values -----------------------------------------------------------------------------------------------

    def _meet_borders(self, borders: Floats, insides: Floats, sides: Sides) -> None:
        """Values at border points, and on the way from there into their regions."""
        hard = self.frozen.tests.hard
        fixed, margins = self.frozen.select(borders, np.where(hard[:, None], sides, 0).astype(np.int8))
        holding = (sides * np.nan_to_num(margins))[hard]
        owned = ~(self.frozen.tests.rejects_ties(sides)[hard] & (holding <= TIE)).any(axis=0)
        path = (borders[..., None] + STEPS * (insides - borders)[..., None]).reshape(len(borders), -1)
        weights, _ = self.frozen.select(path)
        values = self._values(path, weights)
        within = ((weights > 0) == np.repeat(sides > 0, len(STEPS), axis=1))[hard].all(axis=0)
        approaching = within & ~np.repeat(owned, len(STEPS))
        self._meet(path, np.where(approaching, np.nan, values), Kind.VALUE)
        self._meet(path, np.where(approaching, values, np.nan), Kind.LIMIT)
        tied = owned & (holding >= -TIE).all(axis=0)
        self._meet(borders, np.where(tied, self._values(borders, fixed), np.nan), Kind.TIE)

    def _values(self, points: Floats, weights: Floats) -> Floats:
        return np.asarray(self.objective @ normalised(self.frozen.joint(points, weights)[0]))

    def _meet(self, points: Floats, values: Floats, kind: Kind) -> None:
        """Remember the greatest value, NaN counting as none; a better kind makes up for a little less."""
        if not np.isfinite(values).any():
            return
        i = int(np.nanargmax(values))
        new, old = Best(float(values[i]), points[:, i], kind), self.best
        if old is None or new.value > old.value + self.tolerance / 4 * (old.kind - new.kind):
            self.best = new


def _axes(boxes: Bounded) -> NDArray[np.intp]:
    """The input of each box along which the undecided margins, and, if no test is open, the objective change most."""
    low, high = boxes.setting.low, boxes.setting.high
    inputs, count = low.shape
    if not inputs:
        return np.zeros(count, dtype=np.intp)
    settled = (boxes.sides != 0).all(axis=1)[:, None]
    quotients = boxes.quotients()[:, : 2**inputs]
    quotients = np.where(settled & np.isfinite(quotients), quotients, 0.0)
    functions = np.concatenate([quotients[:, None], boxes.undecided], axis=1)  # (boxes, functions, vertices)
    cubes = functions.reshape(*functions.shape[:2], *[2] * inputs)
    changes = [np.abs(np.diff(cubes, axis=-1 - i)).reshape(*functions.shape[:2], -1).max(axis=2) for i in range(inputs)]
    return np.asarray(np.argmax(np.sum(changes, axis=2) + 1e-6 * (high - low), axis=0))

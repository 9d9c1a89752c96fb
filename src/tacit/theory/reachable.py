"""The selections that occur: a search through the testing nodes in order.

Under a fixed selection of the tests above it, the margin of a test is multilinear in the inputs. Every selection so
far is continued by the outcomes that the next test has somewhere. Selections are (selections, tests), 1 for plus and
-1 for minus; margins are (selections, tests, vertices of the unit box), divided by the largest p*, which makes them as
large as posteriors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats, divide
from tacit.theory.boxes import halves
from tacit.theory.linear_programs import interior
from tacit.theory.multilinear import at_point, restricted, unit_vertices, vertices
from tacit.theory.scope import TIE, Bools, Group, Sides
from tacit.theory.selectable import SelectableQuery

SAMPLED_POINTS = 2**11  # before anything is solved


class Reachable(NamedTuple):
    """Selections of positive measure, the margins that define them, a point of each, and how many more there may be."""

    sides: Sides
    margins: Floats
    points: Floats  # (inputs, selections)
    unknown: int


def reachable_selections(query: SelectableQuery, budget: int) -> Reachable:
    """The selections that occur for some inputs: all of them for one input, as the budget allows for several."""
    return _cells(query) if len(query.inputs) <= 1 else _SelectionSearch(query, budget).run()


def _cells(query: SelectableQuery) -> Reachable:
    """For at most one input: each test cuts the cells, where all tests above it are decided, at its margin's zero."""
    ends, tests = unit_vertices(len(query.inputs)), len(query.tests)
    low, high = np.zeros(1), np.ones(1)
    sides, margins = np.ones((1, tests), dtype=np.int8), np.zeros((1, tests, ends.shape[1]))
    for group in query.groups:
        margins[:, group.tests] = _group_margins(query, group, sides, ends)
        hard = group.tests[query.tests.hard[group.tests]]
        cuts = [_cuts(margins[i, hard], low[i], high[i]) for i in range(len(low))]
        cell = np.repeat(np.arange(len(low)), [len(c) - 1 for c in cuts])
        low, high = np.concatenate([c[:-1] for c in cuts]), np.concatenate([c[1:] for c in cuts])
        sides, margins = sides[cell], margins[cell]
        middle = (low + high)[:, None] / 2
        sides[:, hard] = _side(query, hard, (1 - middle) * margins[:, hard, 0] + middle * margins[:, hard, -1])
    return Reachable(sides, margins, np.tile((low + high) / 2, (len(query.inputs), 1)), 0)


def _cuts(margins: Floats, low: float, high: float) -> Floats:
    """low, high, and between them the zeros of linear functions given by their values at 0 and 1."""
    first, last = margins[:, 0], margins[:, -1]
    crossing = first * last < 0
    zeros = np.sort(first[crossing] / (first - last)[crossing])
    zeros = zeros[(zeros > low + TIE) & (zeros < high - TIE)]
    return np.concatenate([[low], zeros[np.diff(zeros, prepend=low) > TIE], [high]])


class _SelectionSearch:
    """For several inputs.

    `seen` (points, tests) holds the sides of some points, 0 for a tie: what occurs there needs no solving. A test is
    `open` in a selection if it has both outcomes somewhere, so that it is one of the region's conditions.
    """

    def __init__(self, query: SelectableQuery, budget: int) -> None:
        self.query, self.left, self.unknown = query, budget, 0
        self.seen = np.empty((0, len(query.tests)), dtype=np.int8)
        self.points = np.empty((len(query.inputs), 0))
        self._meet(np.random.default_rng(0).random((len(query.inputs), SAMPLED_POINTS)))

    def run(self) -> Reachable:
        tests, corners = self.query.tests, unit_vertices(len(self.query.inputs))
        sides, margins = np.ones((1, len(tests)), dtype=np.int8), np.zeros((1, len(tests), corners.shape[1]))
        opened = np.zeros((1, len(tests)), dtype=bool)
        remaining = int(tests.hard.sum())
        for group in self.query.groups:
            margins[:, group.tests] = _group_margins(self.query, group, sides, corners)
            for test in group.tests[tests.hard[group.tests]].tolist():
                remaining -= 1
                outcomes = self._outcomes(sides, margins, opened, test, remaining)
                parent = np.array([i for i, _ in outcomes], dtype=np.intp)
                sides, margins, opened = sides[parent], margins[parent], opened[parent]
                sides[:, test] = [side for _, side in outcomes]
                opened[:, test] = _changes_sign(margins[:, test])
        met = [int(np.argmax(self._like(*one))) for one in zip(sides, opened, strict=True)]
        return Reachable(sides, margins, self.points[:, met], self.unknown)

    def _outcomes(
        self, sides: Sides, margins: Floats, opened: Bools, test: int, remaining: int
    ) -> list[tuple[int, int]]:
        """For every selection of the tests before, by number, the sides that a test has somewhere in its region."""
        sure: list[tuple[int, int]] = []
        asked: list[tuple[int, int]] = []
        open_here = _changes_sign(margins[:, test])
        for i, values in enumerate(margins[:, test]):
            if not open_here[i]:
                sure.append((i, int(_side(self.query, np.array(test), values[np.argmax(np.abs(values))]))))
                continue
            met = self.seen[self._like(sides[i], opened[i]), test]
            for side in (1, -1):
                (sure if (met == side).any() else asked).append((i, side))
        systems = [
            np.vstack([sides[i, opened[i], None] * margins[i, opened[i]], side * margins[i, test]]) for i, side in asked
        ]
        occurring = self._occur(systems, remaining)
        return sorted([*sure, *(one for one, occurs in zip(asked, occurring, strict=True) if occurs)])

    def _like(self, sides: Sides, opened: Bools) -> Bools:
        """The points seen that have the same outcomes of the open tests."""
        return np.asarray((self.seen[:, opened] == sides[opened]).all(axis=1))

    def _occur(self, systems: Sequence[Floats], remaining: int) -> list[bool]:
        """Of which systems all conditions are positive somewhere; where the budget ends, no, but counted as unknown."""
        count = len(self.query.inputs)
        occurs = [False] * len(systems)
        boxes = [(k, np.zeros(count), np.ones(count)) for k in range(len(systems))]
        while boxes:
            open_boxes = [(k, low, high, restricted(systems[k], low, high)) for k, low, high in boxes if not occurs[k]]
            open_boxes = [box for box in open_boxes if box[-1].max(axis=1).min() > TIE]
            if len(open_boxes) > self.left:
                self.unknown += 2**remaining * len({k for k, *_ in open_boxes})
                self.left = 0
                break
            self.left -= len(open_boxes)
            solved = interior([here for *_, here in open_boxes])
            boxes = []
            for (k, low, high, _), (weights, most) in zip(open_boxes, solved, strict=True):
                if occurs[k] or most <= TIE:
                    continue
                point = vertices(low[:, None], high[:, None])[:, 0] @ weights
                occurs[k] = bool(at_point(systems[k], point).min() > TIE)
                if occurs[k]:
                    self._meet(point[:, None])
                else:
                    boxes += [(k, *half) for half in halves(low, high, int(np.argmax(high - low)))]
        return occurs

    def _meet(self, points: Floats) -> None:
        _, margins = self.query.select(points)
        sides = np.where(np.abs(margins) <= TIE, 0, np.sign(margins)).T.astype(np.int8)
        self.seen, first = np.unique(np.concatenate([self.seen, sides]), axis=0, return_index=True)
        self.points = np.concatenate([self.points, points], axis=1)[:, first]


def _group_margins(query: SelectableQuery, group: Group, sides: Sides, corners: Floats) -> Floats:
    """The margins of a group's tests under some selections: (selections, nodes, parent states, vertices)."""
    count, size = len(sides), corners.shape[1]
    weights = np.repeat(np.where(sides > 0, 1.0, 0.0).T, size, axis=1)
    marginal, _ = query.joint(np.tile(corners, count), weights, group)
    top = marginal.sum(axis=0).reshape(count, size).max(axis=1, keepdims=True)
    margins = query.margins(group, marginal).reshape(*group.tests.shape, count, size)
    return np.moveaxis(divide(margins, top, otherwise=0.0), 2, 0)


def _changes_sign(margins: Floats) -> Bools:
    """Whether functions, by their values at the vertices (..., vertices), are clearly on both sides of 0."""
    return np.asarray((margins.min(axis=-1) < -TIE) & (margins.max(axis=-1) > TIE))


def _side(query: SelectableQuery, tests: NDArray[np.intp], margins: Floats) -> Sides:
    """The side of each test by its margin (..., tests)."""
    tie = np.where(query.tests.closed[tests], 1, -1)
    return np.where(np.abs(margins) <= TIE, tie, np.sign(margins)).astype(np.int8)

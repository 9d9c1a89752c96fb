"""What is true of a query all over a box of evidence: which tests are decided, and what bounds the answer.

Over a box, p* is multilinear in the inputs and in the weights of plus, and a quotient of such functions is greatest at
a vertex. If all tests are decided, the vertices with that selection bound the query exactly. If not, weights lie
between two ends; as every p* grows with all likelihoods and weights, ends of the weights give ends of p*.

Axes: boxes (inputs, boxes); sides (boxes, tests); vertices last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from tacit.base.floats import Floats
from tacit.theory.derivatives import upper_model
from tacit.theory.linear_programs import interior
from tacit.theory.multilinear import vertices
from tacit.theory.scope import TIE, Group, Sides, Tests
from tacit.theory.selectable import Ranges, SelectableQuery


class BoxBounds:
    """Boxes with their tests decided as far as possible, and what bounds an objective sum_q c_q P*(q) there.

    `sides` are those assumed and those decided, 0 where a test is still open. `strict` says whether a tie would put a
    test on the other side, `possible` whether no test is plainly on the other side than the one assumed.

    At a point where all tests are on their sides, the objective is at most the quotient of the means, weighted by
    products of coordinates, of `value` and `total` (boxes, corners). A corner is a vertex, several times over if there
    is a choice between lower and upper ends; `corners` are (inputs, boxes, corners).

    `conditions` are margins on the assumed sides, (boxes, tests, corners), positive where a test can be on its side,
    NaN if it is open; `undecided` are margins, (boxes, tests, vertices), of the tests that have both signs in the box,
    0 for others. `ranges` are the boxes with the ends of the weights.
    """

    def __init__(self, query: SelectableQuery, low: Floats, high: Floats, sides: Sides, objective: Floats) -> None:
        self._query, self.sides, self.corners = query, sides.copy(), vertices(low, high)
        _, count, size = self.corners.shape
        self.possible = np.ones(count, dtype=bool)
        self.conditions = np.full((count, len(query.tests), size), np.nan)
        self.undecided = np.zeros(self.conditions.shape)
        self.ranges = Ranges(low, high, np.where(sides > 0, 1.0, 0.0).T, np.where(sides >= 0, 1.0, 0.0).T)
        for group in query.groups:  # each test from the ends of its parents' posterior
            self._decide(group)
        self.strict = query.tests.rejects_ties(self.sides.T).T
        self.value, self.total = self._fractions(objective)
        choices = self.value.shape[1] // size
        self.conditions, self.corners = np.tile(self.conditions, choices), np.tile(self.corners, choices)

    def quotients(self) -> Floats:
        """The objective's bound at every corner, (boxes, corners); minus infinity where the evidence is impossible."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.nan_to_num(self.value / self.total, nan=-np.inf)

    def cutting_tests(self, boxes: Iterable[int]) -> dict[int, NDArray[np.intp]]:
        """The tests of each box that are not on their sides all over it, but cut it; boxes without any are left out."""
        limits = np.where(self.strict, TIE, -TIE)
        cutting = {i: np.flatnonzero(self.conditions[i].min(axis=1) < limits[i]) for i in boxes}  # NaN is never less
        return {i: tests for i, tests in cutting.items() if len(tests)}

    def _decide(self, group: Group) -> None:
        """Decide the tests of a group, those of earlier groups being decided as far as possible."""
        marginals = [end.reshape(-1, *self.corners.shape[1:]) for end in self._ends(group)]
        tests, (_, _, least, most) = self._query.tests, self.ranges
        for which in group.tests:  # the tests of one node
            lower, upper = _margins(marginals, tests.thresholds[which], tests.sign[which])
            hard, soft = tests.hard[which], tests.soft[which]
            self._decide_hard(which[hard], lower[hard], upper[hard])
            least[which[soft]], most[which[soft]] = _sigmoids(tests, marginals, which)

    def _fractions(self, objective: Floats) -> tuple[Floats, Floats]:
        """Numerators and denominators of the objective, (boxes, corners)."""
        _, count, size = self.corners.shape
        lower, upper = self._ends()
        if lower is upper:
            return (objective @ lower).reshape(count, size), lower.sum(axis=0).reshape(count, size)
        value, total = _choices(objective, lower, upper, (count, size))
        if self._query.tests.soft.any():
            self._by_derivatives(objective, value, total)
        return value, total

    def _ends(self, group: Group | None = None) -> tuple[Floats, Floats]:
        """Ends of p*(q), or of p*(u) of a group's parents, (states, boxes * vertices): one array if all is decided."""
        inputs, count, size = self.corners.shape
        points = self.corners.reshape(inputs, count * size)
        least, most = (np.repeat(end, size, axis=1) for end in (self.ranges.least, self.ranges.most))
        if (least == most).all():
            joint, _ = self._query.joint(points, least, group)
            return joint, joint
        return self._query.joint_ends(Ranges(points, points, least, most), group)

    def _decide_hard(self, which: NDArray[np.intp], lower: Floats, upper: Floats) -> None:
        """Some hard tests by the ends of their margins, (tests, boxes, vertices)."""
        bottom, top = lower.min(axis=-1), upper.max(axis=-1)
        closed = self._query.tests.closed[which, None]  # ties belong to the side that owns them
        plus, minus = np.where(closed, bottom >= -TIE, bottom > TIE), np.where(closed, top < -TIE, top <= TIE)
        old = self.sides[:, which].T
        side = np.where(old != 0, old, np.where(plus, 1, np.where(minus, -1, 0))).astype(np.int8)
        self.sides[:, which] = side.T
        self.ranges.least[which], self.ranges.most[which] = side > 0, side >= 0
        holding = np.where((side > 0)[..., None], upper, np.where((side < 0)[..., None], -lower, np.nan))
        self.conditions[:, which] = holding.swapaxes(0, 1)
        both = (bottom < -TIE) & (top > TIE)
        self.undecided[:, which] = np.where(both[..., None], lower, 0.0).swapaxes(0, 1)
        most = np.where(side > 0, top, -bottom)
        rejects = np.where(side > 0, ~closed, closed)
        self.possible &= ~((side != 0) & ((most < -TIE) | (rejects & (most <= TIE)))).any(axis=0)

    def _by_derivatives(self, objective: Floats, value: Floats, total: Floats) -> None:
        """Where all hard tests are decided, bound a query with sigmoids by its derivatives, if that is better."""
        hard = np.where(self._query.tests.hard[:, None], self.sides.T, 0).astype(np.int8)
        model = upper_model(self._query, self.ranges, hard, objective)
        with np.errstate(divide="ignore", invalid="ignore"):
            plain = np.fmax.reduce(value / total, axis=1)
        better = (model.max(axis=1) < plain) & (self.sides != 0).all(axis=1)
        value[better] = np.tile(model[better], value.shape[1] // model.shape[1])
        total[better] = 1.0


def interiors(boxes: BoxBounds, cutting: Mapping[int, NDArray[np.intp]]) -> dict[int, Floats | None]:
    """A point of each box well inside the conditions of the tests that cut it, by their relaxation.

    None: no point satisfies them, or only ties that are decided otherwise.
    """
    points: dict[int, Floats | None] = {}
    systems = {i: boxes.conditions[i, tests] for i, tests in cutting.items()}
    thin = []
    for i, (weights, most) in zip(cutting, interior(list(systems.values())), strict=True):
        points[i] = boxes.corners[:, i] @ weights if most >= -TIE else None
        if -TIE <= most <= TIE and boxes.strict[i, cutting[i]].any():
            thin.append(i)
    strict = [boxes.strict[i, cutting[i]] for i in thin]
    for i, (_, most) in zip(thin, interior([systems[i] for i in thin], strict), strict=True):
        points[i] = points[i] if most > TIE else None
    return points


def halves(low: Floats, high: Floats, axis: int) -> list[tuple[Floats, Floats]]:
    """A box (inputs,), (inputs,) cut in two."""
    top, bottom = high.copy(), low.copy()
    top[axis] = bottom[axis] = (low[axis] + high[axis]) / 2
    return [(low, top), (bottom, high)]


def _margins(marginals: list[Floats], threshold: Floats, sign: Floats) -> tuple[Floats, Floats]:
    """Ends of sign * (p*(u) - T p*), (parent states, boxes, vertices), divided by the largest p* of each box."""
    (lower, upper), (fewer, more) = marginals, _others(marginals)
    threshold, sign = threshold[:, None, None], sign[:, None, None]
    scale = upper.sum(axis=0).max(axis=-1, keepdims=True)
    scale = np.where(scale > 0, scale, 1.0)
    least = ((1 - threshold) * lower - threshold * more) / scale
    most = ((1 - threshold) * upper - threshold * fewer) / scale
    return np.where(sign > 0, least, -most), np.where(sign > 0, most, -least)


def _sigmoids(tests: Tests, marginals: list[Floats], which: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Ends of the weights of one node's sigmoid tests, (tests, boxes), from those of its parents' posterior."""
    soft = tests.soft[which]
    (lower, upper), (fewer, more) = marginals, _others(marginals)
    with np.errstate(invalid="ignore"):  # a vertex with no mass says nothing
        least = np.fmin.reduce(lower[soft] / (lower + more)[soft], axis=-1)
        most = np.fmax.reduce(upper[soft] / (upper + fewer)[soft], axis=-1)
    which, posteriors = which[soft], (np.nan_to_num(least, nan=0.0), np.nan_to_num(most, nan=1.0))
    threshold, sign = tests.thresholds[which, None], tests.sign[which, None]
    ends = [tests.weights(sign * (end - threshold), which) for end in posteriors]
    return np.minimum(*ends), np.maximum(*ends)


def _others(marginals: list[Floats]) -> list[Floats]:
    """Ends of p* less p*(u), for every u."""
    return [np.maximum(end.sum(axis=0) - end, 0) for end in marginals]


def _choices(objective: Floats, lower: Floats, upper: Floats, shape: tuple[int, int]) -> tuple[Floats, Floats]:
    """Numerators and denominators, (boxes, choices * vertices), from ends of p*(q), (states, boxes * vertices).

    The objective is greatest with upper ends for the states that it values most, and lower ends for the others.
    """
    order = np.argsort(-objective)
    values, totals = [], []
    for count in range(len(objective) + 1):
        joint = lower.copy()
        joint[order[:count]] = upper[order[:count]]
        values.append((objective @ joint).reshape(shape))
        totals.append(joint.sum(axis=0).reshape(shape))
    return np.concatenate(values, axis=1), np.concatenate(totals, axis=1)

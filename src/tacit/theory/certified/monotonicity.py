"""Whether a query only rises, or only falls, with one of its inputs, whatever the others are.

Within a region a query is a quotient N / D of multilinear functions. Along an input it rises everywhere if it rises
from one end of the box to the other: if N1 D0 - N0 D1 >= 0, by the values at both ends. From one selection to the next
it must not jump down: N' D - N D' >= 0. Both are polynomials of degree 2 in each input, and not negative in a box if
none of their Bernstein coefficients is. Boxes are cut until this is so of all selections that may occur there, or a
counterexample is met. With sigmoids, ends of the derivative take the place of the first, and ends of the values that
of the second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.query.query import Query
from tacit.theory.arguments import checked_inputs, state_of
from tacit.theory.boxes import BoxBounds, halves, interiors
from tacit.theory.derivatives import derivative_ends
from tacit.theory.multilinear import bernstein, faces, vertices
from tacit.theory.scope import Sides
from tacit.theory.selectable import SelectableQuery, make_selectable

BUDGET = 5_000
BOXES_PER_BATCH = 16
SAMPLED_LINES, POINTS_PER_LINE = 256, 33  # sampled at first: values of the other inputs, and of the one in question
BOX_LINES, POINTS_PER_BOX_LINE = 8, 9  # sampled in every box that is to be cut
MAX_OPEN_TESTS = 4  # up to which all outcomes in a box are listed
MIN_WIDTH = 1e-9  # a box of which no side is wider is not cut any more
ROUNDING = 1e-12  # a smaller change is none


class InputStep(NamedTuple):
    """The value of a query at two values of one input, all else equal."""

    before: Mapping[str, float]
    after: Mapping[str, float]
    change: float


@dataclass(frozen=True)
class Monotonicity:
    """How a query depends on one input, over all values of the others.

    Attributes
    ----------
    direction
        "increasing", "decreasing", "constant" (each proven, for changes of more than 1e-12), "neither" (`rise` and
        `fall` show it), or "undecided": the budget ended first.
    rise, fall
        Where the query rises and where it falls with the input, if that was met.
    """

    input: str
    direction: str
    rise: InputStep | None
    fall: InputStep | None

    def __str__(self) -> str:
        if self.direction == "neither":
            return f"neither increasing nor decreasing in {self.input}"
        return f"{self.direction} in {self.input}"


def monotone(
    tac: Query,
    input: str,
    state: Label | None = None,
    others: Sequence[str] | None = None,
    given: EvidenceLike | None = None,
    budget: int = BUDGET,
) -> Monotonicity:
    """Whether P*(query = state) rises or falls with the likelihood of an input's first state.

    Parameters
    ----------
    tac
        A compiled query.
    input
        A binary evidence variable.
    state
        The state of the query whose probability is meant; the first, if left out.
    others
        The other binary evidence variables to vary, each over [0, 1]; if left out, all that are not given.
    given
        One row of evidence that stays fixed. Evidence variables that are neither given nor varied have no evidence.
    budget
        How many boxes to look at.

    >>> import tacit
    >>> net = tacit.examples.noisy_or_classifier()
    >>> tac = tacit.compile(net, query="Y", evidence=["X1", "X2", "X3"])
    >>> print(monotone(tac, "X1"))
    increasing in X1
    """
    checked_inputs(tac, [input], {})
    query = make_selectable(tac, None if others is None else [input, *others], given, posterior_only=True)
    if input not in query.inputs:
        raise EvidenceError(f"{input!r} is an input, but its evidence is given as well; leave one of them out")
    objective = np.eye(tac.variable.card)[state_of(tac, state)]
    search = _MonotonicitySearch(query, query.inputs.index(input), objective)
    search.run(budget)
    return Monotonicity(input, search.direction(), search.steps.get(1), search.steps.get(-1))


class _MonotonicitySearch:
    """A search that refutes, or shows of every box, two claims: that the query never falls (1), never rises (-1)."""

    def __init__(self, query: SelectableQuery, axis: int, objective: Floats) -> None:
        self.query, self.axis, self.objective = query, axis, objective
        self.steps: dict[int, InputStep] = {}  # the greatest change met in either direction
        self.proven = False

    @property
    def claims(self) -> list[int]:
        return [claim for claim in (1, -1) if -claim not in self.steps]

    def direction(self) -> str:
        if not self.claims:
            return "neither"
        if not self.proven:
            return "undecided"
        return {1: "increasing", -1: "decreasing"}[self.claims[0]] if len(self.claims) == 1 else "constant"

    def run(self, budget: int) -> None:
        """Look at boxes until the claims left are shown of all of them."""
        count = len(self.query.inputs)
        boxes = [(np.zeros(count), np.ones(count))]
        self._meet(*boxes[0], SAMPLED_LINES, POINTS_PER_LINE)
        while boxes and budget > 0 and self.claims:
            batch, boxes = boxes[-BOXES_PER_BATCH:], boxes[:-BOXES_PER_BATCH]
            budget -= len(batch)
            for (low, high), done in zip(batch, self._shown(batch), strict=True):
                if not done and self.claims:
                    self._meet(low, high, BOX_LINES, POINTS_PER_BOX_LINE)
                    if (high - low).max() <= MIN_WIDTH:
                        return
                    boxes += halves(low, high, int(np.argmax(high - low)))
        self.proven = not boxes

    def _meet(self, low: Floats, high: Floats, lines: int, places: int) -> None:
        """Evaluate lines along the input in a box, and remember the greatest changes."""
        rng = np.random.default_rng(lines)
        rest = low[:, None] + (high - low)[:, None] * rng.choice([0.0, 1.0, *rng.random(14)], (len(low), lines))
        points = np.repeat(rest[:, :, None], places, axis=2)
        points[self.axis] = np.linspace(low[self.axis], high[self.axis], places)
        values = (self.objective @ self.query.posterior(points.reshape(len(low), -1))).reshape(lines, places)
        for sign in (1, -1):
            change = np.nan_to_num(sign * np.diff(values, axis=1))
            line, place = np.unravel_index(change.argmax(), change.shape)
            greatest = float(change[line, place])
            if greatest > max(ROUNDING, abs(self.steps[sign].change) if sign in self.steps else 0.0):
                before, after = (self.query.evidence(points[:, line, p]) for p in (place, place + 1))
                self.steps[sign] = InputStep(before, after, sign * greatest)

    def _shown(self, boxes: Sequence[tuple[Floats, Floats]]) -> list[bool]:
        """Of which boxes all claims are shown."""
        low, high = (np.stack(ends, axis=1) for ends in zip(*boxes, strict=True))
        sides = np.tile(self.query.tests.open_sides, (len(boxes), 1))
        sides = BoxBounds(self.query, low, high, sides, self.objective).sides
        listed = [i for i in range(len(boxes)) if (sides[i] == 0).sum() <= MAX_OPEN_TESTS]
        shown = [False] * len(boxes)
        if not listed:
            return shown
        each = [_outcomes(sides[i]) for i in listed]
        box = np.repeat(listed, [len(outcomes) for outcomes in each])
        selections = _Selections(self.query, self.axis, self.objective, low[:, box], high[:, box], np.concatenate(each))
        for i in listed:
            here = [k for k in np.flatnonzero(box == i).tolist() if selections.possible[k]]
            shown[i] = all(self._holds(selections, here, claim) for claim in self.claims)
        return shown

    def _holds(self, selections: _Selections, here: Sequence[int], claim: int) -> bool:
        """Whether a claim holds within every selection of a box, and from each to every other that may follow it."""
        return all(selections.never_falls(k, claim) for k in here) and all(
            selections.never_jumps_down(before, after, claim)
            for before, after in permutations(here, 2)
            if selections.may_follow(before, after)
        )


class _Selections:
    """The selections that may occur in some boxes, a box and a selection for each k."""

    def __init__(
        self, query: SelectableQuery, axis: int, objective: Floats, low: Floats, high: Floats, sides: Sides
    ) -> None:
        self.query, self.axis, self.sides = query, axis, sides
        bounds = BoxBounds(query, low, high, sides, objective)
        inside = interiors(bounds, bounds.cutting_tests(np.flatnonzero(bounds.possible).tolist()))
        self.possible = [bool(p) and inside.get(k, low) is not None for k, p in enumerate(bounds.possible)]
        self.value, self.total = bounds.value, bounds.total  # (k, vertices), if there are no sigmoids
        self.soft = bool(query.tests.soft.any())
        if self.soft:
            self.slopes = [end[axis] for end in derivative_ends(query, bounds.ranges, objective)]
            other = BoxBounds(query, low, high, sides, -objective)
            self.most, self.least = bounds.quotients().max(axis=1), -other.quotients().max(axis=1)
        self.rising, self.falling = self._trends(low, high)

    def never_falls(self, k: int, claim: int) -> bool:
        """Whether the query does not fall (claim 1) or rise (claim -1) along the input, under selection k."""
        if self.soft:
            return bool(self.slopes[0][k] >= -ROUNDING if claim > 0 else self.slopes[1][k] <= ROUNDING)
        (value0, value1), (total0, total1) = faces(self.value[k], self.axis), faces(self.total[k], self.axis)
        rise = bernstein(value1, total0) - bernstein(value0, total1)
        return bool((claim * rise >= -ROUNDING * bernstein(total0, total1)).all())

    def never_jumps_down(self, before: int, after: int, claim: int) -> bool:
        """Whether the query is not smaller (claim 1) or greater (claim -1) under one selection than under another."""
        if self.soft:
            a, b = (before, after) if claim > 0 else (after, before)
            return bool(self.least[b] >= self.most[a] - ROUNDING)
        jump = bernstein(self.value[after], self.total[before]) - bernstein(self.value[before], self.total[after])
        return bool((claim * jump >= -ROUNDING * bernstein(self.total[after], self.total[before])).all())

    def may_follow(self, before: int, after: int) -> bool:
        """Whether one selection may come after another as the input grows: by the first tests in which they differ."""
        for group in self.query.groups:
            tests = group.tests.ravel()
            up = self.sides[after, tests] > self.sides[before, tests]
            down = self.sides[after, tests] < self.sides[before, tests]
            if (up | down).any():
                return not ((up & ~self.rising[before, tests]) | (down & ~self.falling[before, tests])).any()
        return False

    def _trends(self, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Whether each test's margin may rise, and may fall, with the input: (k, tests)."""
        corners = vertices(low, high)
        count, boxes, size = corners.shape
        rising = np.ones((boxes, len(self.query.tests)), dtype=bool)
        falling = rising.copy()
        weights = np.repeat((self.sides > 0).T.astype(np.float64), size, axis=1)
        settled = True
        for group in self.query.groups:
            tests = group.tests.ravel()
            if settled:
                marginal, _ = self.query.joint(corners.reshape(count, -1), weights, group)
                margin = self.query.margins(group, marginal).reshape(len(tests), boxes, size)
                mass = marginal.sum(axis=0).reshape(boxes, size)
                (margin0, margin1), (mass0, mass1) = faces(margin, self.axis), faces(mass, self.axis)
                trend = bernstein(margin1, mass0) - bernstein(margin0, mass1)
                slack = ROUNDING * bernstein(mass0, mass1)
                rising[:, tests] = (trend > slack).any(axis=-1).T
                falling[:, tests] = (trend < -slack).any(axis=-1).T
            settled &= not self.query.tests.soft[tests].any()  # what is below a sigmoid has no fixed weights
        return rising, falling


def _outcomes(sides: Sides) -> Sides:
    """All ways to decide the tests that are open: (selections, tests)."""
    open_tests = np.flatnonzero(sides == 0)
    selections = np.tile(sides, (2 ** len(open_tests), 1))
    selections[:, open_tests] = list(product((1, -1), repeat=len(open_tests)))
    return selections

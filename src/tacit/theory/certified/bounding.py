"""Bounds of a query over a box of soft evidence, certified, by branch and bound.

The search looks at boxes, each with the sides that some tests are assumed to be on. A box is bounded by its vertices
(see `boxes`), and by a linear program that takes the inequalities of the assumed sides into account (see
`linear_programs`). It is then branched by the outcomes of a test that is open, or cut in two. Close to the solutions of
the linear programs, values of the query are met.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.base.errors import EvidenceError
from tacit.base.floats import Floats
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.query.query import Query
from tacit.theory.arguments import state_of
from tacit.theory.boxes import BoxBounds, halves, interiors
from tacit.theory.linear_programs import Quotient, greatest
from tacit.theory.scope import TIE, Sides
from tacit.theory.selectable import SelectableQuery, make_selectable, normalised

Box = tuple[Floats, Floats]  # the least and the greatest inputs, (inputs,)

TOLERANCE = 1e-9
BUDGET = 20_000
BOXES_PER_BATCH = 32
MAX_OPEN_TESTS = 4  # of a group, up to which a box is branched by an outcome rather than cut
MIN_WIDTH = 1e-11  # a box of which no side is wider is not cut any more
# fractions of the way from a border point into its region: down to 2e-13, and 0
PATH_FRACTIONS = np.append(0.25 ** np.arange(22), 0.0)


@dataclass(frozen=True)
class Extreme:
    """The least or the greatest value of a query over a box.

    Attributes
    ----------
    bound
        No evidence in the box gives a value beyond this one.
    value, evidence
        The most extreme value met, and the inputs that give it.
    attained
        Whether `value` stands for a value of the function, or for a limit at a border that belongs to another region,
        which is approached near `evidence` but not reached. At a tie, where a circuit may round to the other side, the
        value is that of exact arithmetic.
    """

    bound: float
    value: float
    evidence: Mapping[str, float]
    attained: bool

    @property
    def gap(self) -> float:
        """How far the bound may be from the truth."""
        return abs(self.bound - self.value)

    def __str__(self) -> str:
        place = ", ".join(f"{name}={value:.6g}" for name, value in self.evidence.items())
        how = "at" if self.attained else "approached near"
        sure = "" if self.gap <= TOLERANCE else f" (certified: {self.bound:.6g})"
        return f"{self.value:.6g} {how} {place or 'the evidence given'}{sure}"


@dataclass(frozen=True)
class Bounds:
    """The range of P*(query = state) over a box of evidence; iterates over the certified bounds, low and high.

    `exact` says whether both are within the tolerance of a value that was met, `boxes` how many boxes it took.
    """

    query: str
    state: Label
    minimum: Extreme
    maximum: Extreme
    exact: bool
    boxes: int

    @property
    def low(self) -> float:
        """No value in the box is less."""
        return self.minimum.bound

    @property
    def high(self) -> float:
        """No value in the box is greater."""
        return self.maximum.bound

    def __iter__(self) -> Iterator[float]:
        return iter((self.low, self.high))

    def __str__(self) -> str:
        return f"P*({self.query}={self.state}): minimum {self.minimum}; maximum {self.maximum}"


def bounds(
    tac: Query,
    box: Mapping[str, tuple[float, float]],
    state: Label | None = None,
    given: EvidenceLike | None = None,
    tolerance: float = TOLERANCE,
    budget: int = BUDGET,
) -> Bounds:
    """The minimum and maximum of P*(query = state) over a box of soft evidence, with evidence that gives them.

    By branch and bound over boxes and over the outcomes of tests. The bounds are certified whenever the search ends,
    up to rounding of about 1e-12. With hard tests they are exact, that is within `tolerance` of a value that is met,
    unless there are very many regions. With sigmoids the budget may end first, with a gap that the result states.

    Parameters
    ----------
    tac
        A compiled query.
    box
        For at most 10 binary evidence variables, the least and greatest likelihood of their first state.
    state
        The state of the query whose probability is meant; the first, if left out.
    given
        One row of evidence on other variables, which stays fixed; variables left out have no evidence.
    tolerance
        How close a value must come to its bound.
    budget
        How many boxes to look at for each of the two, about a millisecond each.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> result = bounds(tac, {"A": (0.2, 0.9)}, given={"C": "lo"})
    >>> print(result)
    P*(B=true): minimum 0.442857 approached near A=0.777778; maximum 0.785714 at A=0.777778
    >>> low, high = result
    """
    query, ends = make_selectable(tac, box, given, posterior_only=True), _box(box)
    states, which = tac.variable.states, state_of(tac, state)
    of_state = np.eye(len(states))[which]
    least, most = (maximise(query, ends, sign * of_state, tolerance, budget) for sign in (-1.0, 1.0))
    minimum, maximum = _extreme(tac, query, least, -1.0), _extreme(tac, query, most, 1.0)
    exact, boxes = max(minimum.gap, maximum.gap) <= tolerance, least.boxes + most.boxes
    return Bounds(query.query, states[which], minimum, maximum, exact, boxes)


def _box(box: Mapping[str, tuple[float, float]]) -> Box:
    ends: list[tuple[float, float]] = []
    for name, pair in box.items():
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError):
            problem = f"the box of {name!r} is {pair!r}, expected its least and greatest likelihood"
            raise EvidenceError(problem) from None
        if not 0 <= low <= high <= 1:
            raise EvidenceError(f"the box of {name!r} is ({low:g}, {high:g}), expected 0 <= low <= high <= 1")
        ends.append((low, high))
    return np.array([low for low, _ in ends]), np.array([high for _, high in ends])


def _extreme(tac: Query, query: SelectableQuery, maximum: Maximum, sign: float) -> Extreme:
    if maximum.best is None or not query.possible(tac, maximum.best.point):
        raise EvidenceError("the evidence has probability 0 all over the box, so there is no posterior to bound")
    bound, value = sign * maximum.bound + 0.0, sign * maximum.best.value + 0.0  # not -0.0
    return Extreme(bound, value, query.evidence(maximum.best.point), maximum.best.kind > ValueKind.LIMIT)


@dataclass(frozen=True, eq=False)
class SearchBox:
    """A box, the sides assumed or decided there, and along which input to cut it; the best bound comes first.

    No value in the box, where tests are on their sides, is greater than `bound`.
    """

    bound: float
    low: Floats
    high: Floats
    sides: Sides
    axis: int = 0

    def __lt__(self, other: SearchBox) -> bool:
        return self.bound > other.bound


class ValueKind(IntEnum):
    """What a value that was met is: what the circuit says, what it would say but for rounding at a tie, or a limit."""

    LIMIT = 0
    TIE = 1
    VALUE = 2


class Best(NamedTuple):
    """The greatest value met, where, and of which kind."""

    value: float
    point: Floats
    kind: ValueKind


class Maximum(NamedTuple):
    """No value in the box is greater than `bound`; `best` is the greatest met, None if all evidence is impossible."""

    bound: float
    best: Best | None
    boxes: int


def maximise(
    query: SelectableQuery, box: Box, objective: Floats, tolerance: float, budget: int, level: float | None = None
) -> Maximum:
    """The maximum of sum_q objective[q] P*(q) over a box, to within `tolerance`, or what `budget` allows.

    With a `level`, the search ends as soon as a value above it is met, or the bound is not above it. Inputs that the
    query does not depend on stay in the middle, where they are possible if they are anywhere.
    """
    idle = np.array([name not in query.scope.bearing for name in query.inputs], dtype=bool)
    middle = (box[0] + box[1]) / 2
    low, high = (np.where(idle, middle, end) for end in box)
    return _BoxSearch(query, objective, tolerance, level).run(low, high, budget)


class _BoxSearch:
    def __init__(self, query: SelectableQuery, objective: Floats, tolerance: float, level: float | None) -> None:
        self.query, self.objective, self.tolerance, self.level = query, objective, tolerance, level
        self.best: Best | None = None
        self.heap: list[SearchBox] = []
        self.dropped = -np.inf  # the greatest bound of a box that was not pursued

    def run(self, low: Floats, high: Floats, budget: int) -> Maximum:
        self._take([SearchBox(np.inf, low, high, self.query.tests.open_sides)])
        boxes = 1
        while self.heap and boxes < budget and self._promising(self.heap[0].bound):
            if self.level is not None and not self._met() <= self.level < self._bound():
                break  # it is answered
            children: list[SearchBox] = []
            while self.heap and len(children) < BOXES_PER_BATCH and self._promising(self.heap[0].bound):
                children.extend(self._branched(heapq.heappop(self.heap)))
            boxes += len(children)
            self._take(children)
        return Maximum(self._bound(), self.best, boxes)

    def _bound(self) -> float:
        return max(self._met(), self.dropped, self.heap[0].bound if self.heap else -np.inf)

    def _met(self) -> float:
        return -np.inf if self.best is None else self.best.value

    def _promising(self, bound: float) -> bool:
        """Whether a box is worth pursuing; half the tolerance is left for a smaller value of a better kind."""
        return bound > self._met() + self.tolerance / 2

    def _branched(self, box: SearchBox) -> Iterator[SearchBox]:
        # of the first group that has open tests: those of others may only be open because of them
        groups = (group.tests[box.sides[group.tests] == 0] for group in self.query.groups)
        open_tests = next(filter(len, groups), np.empty(0, dtype=np.intp))
        width = box.high - box.low
        narrow = width.max(initial=0.0) <= MIN_WIDTH
        if len(open_tests) and (narrow or len(open_tests) <= MAX_OPEN_TESTS):
            for side in (1, -1):
                sides = box.sides.copy()
                sides[open_tests[0]] = side
                yield SearchBox(box.bound, box.low, box.high, sides)
        elif narrow:
            self.dropped = max(self.dropped, box.bound)
        else:
            axis = box.axis if width[box.axis] > MIN_WIDTH else int(np.argmax(width))
            for low, high in halves(box.low, box.high, axis):
                yield SearchBox(box.bound, low, high, box.sides)

    def _take(self, boxes: Sequence[SearchBox]) -> None:
        """Bound some boxes, look for values near their bounds, and queue those that may hold a greater one."""
        if not boxes:
            return
        low, high = np.stack([b.low for b in boxes], axis=1), np.stack([b.high for b in boxes], axis=1)
        bounded = BoxBounds(self.query, low, high, np.stack([b.sides for b in boxes]), self.objective)
        bounds = np.minimum(self._by_vertices(bounded), [b.bound for b in boxes])
        self._tighten(bounded, bounds)
        axes = _axes(bounded)
        for i, bound in enumerate(bounds.tolist()):
            if self._promising(bound):
                heapq.heappush(self.heap, SearchBox(bound, low[:, i], high[:, i], bounded.sides[i], int(axes[i])))
            else:
                self.dropped = max(self.dropped, bound)

    def _by_vertices(self, bounded: BoxBounds) -> Floats:
        """Bounds by vertices alone; the value of the most promising vertex of each box is met."""
        quotients = bounded.quotients()
        bounds = np.where(bounded.possible, quotients.max(axis=1), -np.inf)
        chosen = np.flatnonzero(np.isfinite(bounds))
        if len(chosen):
            points = bounded.corners[:, chosen, quotients[chosen].argmax(axis=1)]
            self._meet(points, self._values(points, self.query.select(points)[0]), ValueKind.VALUE)
        return bounds

    def _tighten(self, bounded: BoxBounds, bounds: Floats) -> None:
        """Lower bounds by the inequalities of assumed sides; values near the solutions are met."""
        cutting = bounded.cutting_tests(i for i, bound in enumerate(bounds) if self._promising(bound))
        quotients = [Quotient(bounded.value[i], bounded.total[i], bounded.conditions[i, t]) for i, t in cutting.items()]
        nothing = float(self.objective.min()) - 1  # less than any value
        borders: dict[int, Floats] = {}
        for i, (bound, weights) in zip(cutting, greatest(quotients, max(self._met(), nothing)), strict=True):
            bounds[i] = min(bounds[i], bound if bound > nothing + 0.5 else -np.inf)
            if self._promising(bounds[i]) and (bounded.sides[i] != 0).all():
                borders[i] = bounded.corners[:, i] @ weights
        insides = interiors(bounded, {i: cutting[i] for i in borders})
        bounds[[i for i, point in insides.items() if point is None]] = -np.inf
        inside = {i: point for i, point in insides.items() if point is not None}
        if inside:
            border = np.stack([borders[i] for i in inside], axis=1)
            self._meet_borders(border, np.stack(list(inside.values()), axis=1), bounded.sides[list(inside)].T)

    def _meet_borders(self, borders: Floats, insides: Floats, sides: Sides) -> None:
        """Values at border points, and on the way from there into their regions."""
        hard = self.query.tests.hard
        fixed, margins = self.query.select(borders, np.where(hard[:, None], sides, 0).astype(np.int8))
        holding = (sides * np.nan_to_num(margins))[hard]
        owned = ~(self.query.tests.rejects_ties(sides)[hard] & (holding <= TIE)).any(axis=0)
        path = (borders[..., None] + PATH_FRACTIONS * (insides - borders)[..., None]).reshape(len(borders), -1)
        weights, _ = self.query.select(path)
        values = self._values(path, weights)
        within = ((weights > 0) == np.repeat(sides > 0, len(PATH_FRACTIONS), axis=1))[hard].all(axis=0)
        approaching = within & ~np.repeat(owned, len(PATH_FRACTIONS))
        self._meet(path, np.where(approaching, np.nan, values), ValueKind.VALUE)
        self._meet(path, np.where(approaching, values, np.nan), ValueKind.LIMIT)
        tied = owned & (holding >= -TIE).all(axis=0)
        self._meet(borders, np.where(tied, self._values(borders, fixed), np.nan), ValueKind.TIE)

    def _values(self, points: Floats, weights: Floats) -> Floats:
        return np.asarray(self.objective @ normalised(self.query.joint(points, weights)[0]))

    def _meet(self, points: Floats, values: Floats, kind: ValueKind) -> None:
        """Remember the greatest value, NaN counting as none; a better kind makes up for a little less."""
        if not np.isfinite(values).any():
            return
        i = int(np.nanargmax(values))
        new, old = Best(float(values[i]), points[:, i], kind), self.best
        if old is None or new.value > old.value + self.tolerance / 4 * (old.kind - new.kind):
            self.best = new


def _axes(boxes: BoxBounds) -> NDArray[np.intp]:
    """The input of each box along which the undecided margins, and, if no test is open, the objective change most."""
    low, high = boxes.ranges.low, boxes.ranges.high
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

"""Certified bounds of a query over boxes of soft evidence, and whether a decision survives every change in a box."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.errors import EvidenceError, TacitError
from tacit.evidence import Column, EvidenceLike
from tacit.floats import Floats
from tacit.query import Query
from tacit.theory.frozen import Frozen, checked_inputs, freeze, read_given
from tacit.theory.search import Kind, Maximum, maximise
from tacit.variable import Label, similar

TOLERANCE = 1e-9
BUDGET = 20_000
ROUNDING = 1e-12  # a margin this small is a tie


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


@dataclass(frozen=True)
class Robustness:
    """Whether a decision survives every change of the evidence within a radius.

    Attributes
    ----------
    robust
        True, False (there is a counterexample), or None: the budget ended first.
    decision
        The most probable state; with a threshold, whether the probability reaches it.
    margin
        Certified: how far at least the decision is from being another one, everywhere within the radius.
    counterexample
        Inputs that lead to another decision.
    """

    robust: bool | None
    decision: Label
    margin: float
    counterexample: Mapping[str, float] | None

    def __str__(self) -> str:
        if self.counterexample is not None:
            place = ", ".join(f"{name}={value:.6g}" for name, value in self.counterexample.items())
            return f"{self.decision!r} changes at {place}"
        return f"{self.decision!r} {'is robust' if self.robust else 'is undecided'}, margin {self.margin:.6g}"


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
    >>> found = bounds(tac, {"A": (0.2, 0.9)}, given={"C": "lo"})
    >>> print(found)
    P*(B=true): minimum 0.442857 approached near A=0.777778; maximum 0.785714 at A=0.777778
    >>> low, high = found
    """
    low, high = _box(box)
    frozen = freeze(tac, box, given, posterior_only=True)
    _fix_idle(frozen, low, high)
    of_state = np.eye(len(tac.network.states(tac.query)))[state_of(tac, state)]
    least, most = (maximise(frozen, low, high, sign * of_state, tolerance, budget) for sign in (-1.0, 1.0))
    minimum, maximum = _extreme(tac, frozen, least, -1.0), _extreme(tac, frozen, most, 1.0)
    return Bounds(
        query=tac.query,
        state=tac.network.states(tac.query)[state_of(tac, state)],
        minimum=minimum,
        maximum=maximum,
        exact=max(minimum.gap, maximum.gap) <= tolerance,
        boxes=least.boxes + most.boxes,
    )


def robust(
    tac: Query,
    evidence: EvidenceLike,
    radius: float,
    inputs: Iterable[str] | None = None,
    state: Label | None = None,
    threshold: float | None = None,
    budget: int = BUDGET,
) -> list[Robustness]:
    """Whether the decision of each row survives every change of its soft evidence by at most `radius`.

    Parameters
    ----------
    tac, evidence
        A compiled query and rows of evidence.
    radius
        How far the likelihood of an input's first state may move, within [0, 1].
    inputs
        The binary variables whose evidence changes; if left out, all whose evidence is soft. Other evidence is fixed,
        and a row without evidence on an input has none to change.
    state, threshold
        With a threshold, the decision is whether P*(query = state) >= threshold, of the first state if left out.
        Without, it is the most probable state.
    budget
        How many boxes to look at for each row and each other decision.

    >>> import tacit
    >>> tac = tacit.compile(tacit.examples.abc(), query="B", evidence=["A", "C"])
    >>> for row in robust(tac, {"A": [0.2, 0.75], "C": "lo"}, radius=0.1):
    ...     print(row)
    'true' is robust, margin 0.315888
    'true' changes at A=0.777778
    """
    if not radius >= 0:
        raise TacitError(f"radius is {radius!r}, expected a number >= 0")
    rule, known = _rule(tac, state, threshold), read_given(tac, evidence)
    soft = [n for n, c in known.columns.items() if c.soft is not None and tac.network.variable(n).card == 2]
    names = checked_inputs(tac, soft if inputs is None else inputs, {})
    fixed = {n: c for n, c in known.columns.items() if n not in names}
    frozen = Frozen(tac, names, fixed, posterior_only=True)
    points = np.array([_first_states(known.columns.get(n), known.rows) for n in names]).reshape(-1, known.rows)
    for row in np.flatnonzero(np.isneginf(tac.log_evidence(evidence)))[:1].tolist():
        raise EvidenceError(f"row {row}: the evidence has probability 0, so that there is no decision to change")
    found = []
    for row in range(known.rows):
        here = frozen.with_fixed({n: c.block(row, row + 1) for n, c in fixed.items()})
        found.append(_survives(here, points[:, row], radius, rule, budget))
    return found


Rule = tuple[int, float] | None  # a state and a threshold; None: the most probable state


def _survives(frozen: Frozen, point: Floats, radius: float, rule: Rule, budget: int) -> Robustness:
    low = np.where(np.isnan(point), 0.5, np.clip(point - radius, 0, 1))  # no evidence is as good as even evidence
    high = np.where(np.isnan(point), 0.5, np.clip(point + radius, 0, 1))
    _fix_idle(frozen, low, high)
    posterior = frozen.posterior(np.nan_to_num(point, nan=0.5)[:, None])[:, 0]
    decision, others = _others(frozen, posterior, rule)
    margin, undecided = np.inf, False
    for other in others:
        found = maximise(frozen, low, high, other, TOLERANCE, budget, level=ROUNDING)
        margin = min(margin, -found.bound)
        if found.best is not None and found.best.value > ROUNDING:
            return Robustness(False, decision, min(margin, -found.best.value), frozen.evidence(found.best.point))
        undecided |= found.bound > ROUNDING
    return Robustness(None if undecided else True, decision, margin, None)


def _others(frozen: Frozen, posterior: Floats, rule: Rule) -> tuple[Label, list[Floats]]:
    """The decision, and for every other one the function of the posterior that is positive where it is taken."""
    every = np.eye(len(posterior))
    if rule is None:
        decided = int(posterior.argmax())
        states = frozen.network.states(frozen.query)
        return states[decided], [every[q] - every[decided] for q in range(len(posterior)) if q != decided]
    state, threshold = rule
    holds = bool(posterior[state] >= threshold)
    excess = every[state] - threshold
    return holds, [-excess if holds else excess]


def _rule(tac: Query, state: Label | None, threshold: float | None) -> Rule:
    if threshold is None:
        if state is not None:
            raise TacitError("a state is given without a threshold; the decision is the most probable state")
        return None
    return state_of(tac, state), float(threshold)


def _first_states(column: Column | None, rows: int) -> Floats:
    """The likelihood of the first state in every row, NaN where there is no evidence."""
    if column is None:
        return np.full(rows, np.nan)
    likelihoods = column.likelihoods()
    return np.broadcast_to(np.where(likelihoods.sum(axis=0) > 1.5, np.nan, likelihoods[0]), (rows,))


def _box(box: Mapping[str, tuple[float, float]]) -> tuple[Floats, Floats]:
    ends: list[tuple[float, float]] = []
    for name, pair in box.items():
        try:
            low, high = (float(end) for end in pair)
        except (TypeError, ValueError):
            raise EvidenceError(
                f"the box of {name!r} is {pair!r}, expected its least and greatest likelihood"
            ) from None
        if not 0 <= low <= high <= 1:
            raise EvidenceError(f"the box of {name!r} is ({low:g}, {high:g}), expected 0 <= low <= high <= 1")
        ends.append((low, high))
    return np.array([e[0] for e in ends]), np.array([e[1] for e in ends])


def state_of(tac: Query, state: Label | None) -> int:
    """The position of a state of the query; the first, if left out."""
    if state is None:
        return 0
    variable = tac.network.variable(tac.query)
    if state not in variable.codes:
        hint = similar(state, [str(s) for s in variable.states])
        raise TacitError(f"{state!r} is not a state of {tac.query!r}; expected one of {list(variable.states)}{hint}")
    return variable.codes[state]


def _fix_idle(frozen: Frozen, low: Floats, high: Floats) -> None:
    """Leave inputs that the query does not depend on in the middle, where they are possible if they are anywhere."""
    idle = [n not in frozen.frame.bearing for n in frozen.inputs]
    low[idle] = high[idle] = (low[idle] + high[idle]) / 2


def _extreme(tac: Query, frozen: Frozen, found: Maximum, sign: float) -> Extreme:
    if found.best is None or not frozen.possible(tac, found.best.point):
        raise EvidenceError("the evidence has probability 0 all over the box, so that there is no posterior to bound")
    bound, value = sign * found.bound + 0.0, sign * found.best.value + 0.0  # not -0.0
    return Extreme(bound, value, frozen.evidence(found.best.point), found.best.kind > Kind.LIMIT)

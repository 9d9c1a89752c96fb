"""Whether a decision survives every change of the evidence within a radius."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.base.errors import EvidenceError, TacitError
from tacit.base.floats import Floats
from tacit.evidence.read import EvidenceLike
from tacit.model.elements.variable import Label
from tacit.query.query import Query
from tacit.theory.arguments import checked_inputs, first_state, read_given, state_of
from tacit.theory.certified.bounding import BUDGET, TOLERANCE, maximise
from tacit.theory.selectable import SelectableQuery

ROUNDING = 1e-12  # a margin this small is a tie


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
    if threshold is None and state is not None:
        raise TacitError("a state is given without a threshold; the decision is the most probable state")
    rule = None if threshold is None else (state_of(tac, state), float(threshold))
    checked = read_given(tac, evidence)
    soft = [n for n, c in checked.columns.items() if c.soft is not None and len(tac.network.states(n)) == 2]
    names = checked_inputs(tac, soft if inputs is None else inputs, {})
    fixed = {n: c for n, c in checked.columns.items() if n not in names}
    query = SelectableQuery(tac, names, fixed, posterior_only=True)
    points = np.array([first_state(checked, n) for n in names]).reshape(-1, checked.rows)
    for row in np.flatnonzero(np.isneginf(tac.log_evidence(evidence)))[:1].tolist():
        raise EvidenceError(f"row {row}: the evidence has probability 0, so there is no decision to change")
    decisions = []
    for row in range(checked.rows):
        here = query.with_fixed({n: c.block(row, row + 1) for n, c in fixed.items()})
        decisions.append(_survives(here, points[:, row], radius, rule, budget))
    return decisions


Rule = tuple[int, float] | None  # a state and a threshold; None: the most probable state


def _survives(query: SelectableQuery, point: Floats, radius: float, rule: Rule, budget: int) -> Robustness:
    low, high = (np.nan_to_num(np.clip(end, 0, 1), nan=0.5) for end in (point - radius, point + radius))
    posterior = query.posterior(np.nan_to_num(point, nan=0.5)[:, None])[:, 0]  # no evidence: both states are as likely
    decision, others = _others(query, posterior, rule)
    margin, undecided = np.inf, False
    for other in others:
        maximum = maximise(query, (low, high), other, TOLERANCE, budget, level=ROUNDING)
        margin = min(margin, -maximum.bound)
        if maximum.best is not None and maximum.best.value > ROUNDING:
            return Robustness(False, decision, min(margin, -maximum.best.value), query.evidence(maximum.best.point))
        undecided |= maximum.bound > ROUNDING
    return Robustness(None if undecided else True, decision, margin, None)


def _others(query: SelectableQuery, posterior: Floats, rule: Rule) -> tuple[Label, list[Floats]]:
    """The decision, and for every other one the function of the posterior that is positive where it is taken."""
    units = np.eye(len(posterior))
    if rule is None:
        decided = int(posterior.argmax())
        states = query.network.states(query.query)
        return states[decided], [units[q] - units[decided] for q in range(len(posterior)) if q != decided]
    state, threshold = rule
    holds = bool(posterior[state] >= threshold)
    excess = units[state] - threshold
    return holds, [-excess if holds else excess]

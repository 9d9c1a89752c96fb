"""Filtering: every step of a variable, from what was known by then.

A testing node knows the posterior of its parents. So each step gets one that selects nothing, but reports: on the
variable, and jointly on all that the next step depends on, from which the compiler makes the next posterior.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tacit.base.errors import TacitError
from tacit.base.floats import Floats
from tacit.base.text import fresh_name
from tacit.evidence.read import EvidenceLike
from tacit.model.cpt import TestingCPT
from tacit.model.model import Model
from tacit.model.unrolling import step_of, steps_of
from tacit.query.answers.answer import warn_impossible
from tacit.query.query import Query


def filtered(query: Query, name: str, evidence: EvidenceLike | None) -> Floats:
    """P*(x) of every step `name[t]` given the evidence of steps up to t: (rows, steps, states)."""
    query.require_no_do()
    if query.question.given:
        raise TacitError("filtered is not offered for queries with given=; name these variables in evidence= or hard=")
    _check_selections(query.network, query.question.evidence)
    steps = steps_of(query.network, name)
    for own in (own for own in steps if query.network.variable(own).continuous):
        problem = f"{own!r} is continuous, and filtered answers with states"
        raise TacitError(f"{problem}; ask about the variables above it")
    reports = _reports(query.network, steps)
    by_step: dict[int, list[str]] = {}
    for observed in query.question.evidence:
        by_step.setdefault(_known_at(observed), []).append(observed)
    left = sorted(by_step, reverse=True)
    told = []
    for report, (own, *_) in reports.items():
        new: list[str] = []
        while left and left[-1] <= _known_at(own):
            new += by_step[left.pop()]
        told.append((report, tuple(new)))
    question = replace(query.question, query=(), reports=tuple(told))
    tac = query.companion(question, lambda net: _extended(net, reports))
    decided = tac.ask(query.read(evidence), selected=True).selected
    joints = [decided[report].posterior for report in reports]  # (rows, states of the variable, of what leads on...)
    posteriors = np.stack([joint.reshape(*joint.shape[:2], -1).sum(axis=2) for joint in joints], axis=1)
    warn_impossible(np.isnan(posteriors[:, -1, 0]), "their posteriors are NaN from the step on where it became so")
    return posteriors


def _check_selections(net: Model, evidence: tuple[str, ...]) -> None:
    """No testing node may see evidence of later steps: what it selects would change from step to step.

    Evidence below a testing node of its own step is seen only below that node, and so not earlier.
    """
    first = min((_known_at(name) for name in net.testing_nodes), default=None)
    latest: dict[str, int] = {}  # the step of the latest testing node at or above a node
    for name in net.variables if first is not None else ():
        above = [latest[parent] for parent in net.parents(name)]
        latest[name] = max([*above, _known_at(name) if net.cpt(name).testing else -1])
        for parent in net.parents(name):
            if _known_at(parent) > _known_at(name):
                raise TacitError(f"{name!r} cannot be filtered: its parent {parent!r} belongs to a later step")
    for name in evidence if net.selection == "general" else ():
        if first is not None and latest[name] < _known_at(name) > first:
            problem = f"testing nodes of earlier steps may see the evidence on {name!r} (selection='general')"
            remedy = "ask for posterior(...) with the evidence that is known at a step"
            raise TacitError(f"filtered is not offered here: {problem}; {remedy}")


def _reports(net: Model, steps: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """For every step, the name of a node, and what it reports on: the variable, and what later steps depend on."""
    leading_on: dict[int, dict[str, None]] = {}
    for name in net.variables:
        for parent in net.parents(name):
            step = step_of(parent)
            if step is not None and _known_at(name) > step:
                leading_on.setdefault(step, {})[parent] = None
    return {
        fresh_name(f"filtered {own}", net): (own, *(n for n in leading_on.get(_known_at(own), ()) if n != own))
        for own in steps
    }


def _extended(net: Model, reports: dict[str, tuple[str, ...]]) -> Model:
    extended = net.copy()
    for report, parents in reports.items():
        shape = [net.variable(parent).card for parent in parents]
        same = np.ones((*shape, 1))
        extended.add(report, parents, 1, TestingCPT(same, same, np.zeros(shape)))
    return extended


def _known_at(name: str) -> int:
    """The step from which on evidence is known: all steps, if it has no number."""
    return step_of(name) or 0

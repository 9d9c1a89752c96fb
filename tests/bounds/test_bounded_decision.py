"""Decisions of networks that are too wide: what actions are worth lies inside, and certain ones are best."""

import numpy as np
import pytest

import tacit
from tacit import TooLargeError
from tacit.bounds.querying.bounded_decision import BoundedDecisionQuery
from tacit.query.asking.options import CompileOptions, Limits
from tacit.query.decisions.decision_query import DecisionQuery
from tests.bounds.test_bounded_query import wide

SEEN = ["0,0", "3,0", "0,3", "3,3"]


def clinic():
    """A wide network in which an action costs something, and what it is good for depends on two variables."""
    net = wide(5)
    net.add("Treat", states=["yes", "no", "wait"])
    rng = np.random.default_rng(3)
    net.value("Health", ["2,2", "Treat"], rng.normal(size=(2, 3)) * 10)
    net.value("Price", ["1,2", "Treat"], rng.normal(size=(2, 3)))
    return net


def rows(count=200):
    rng = np.random.default_rng(1)
    return {name: rng.choice(["true", "false", None], count) for name in SEEN}


@pytest.mark.parametrize("multiply_adds", [4, 1024])
def test_worth_lies_inside(multiply_adds):
    net, known = clinic(), rows()
    exact = tacit.compile(net, decide="Treat", evidence=SEEN).decide(known)
    limits = Limits(1e-9, 10.0, multiply_adds)
    tac = BoundedDecisionQuery(net, "Treat", SEEN, (), CompileOptions(), limits, TooLargeError("too wide"))
    decision = tac.decide(known)
    assert (decision.low <= exact.expected).all()
    assert (exact.expected <= decision.high).all()
    assert (decision.low <= decision.expected).all()
    assert (decision.expected <= decision.high).all()
    best = exact.expected.max(axis=1)
    chosen = exact.expected[np.arange(len(best)), decision.expected.argmax(axis=1)]
    assert (chosen[decision.certain] == best[decision.certain]).all()
    assert decision.certain.any() == (multiply_adds == 1024)
    assert decision.to_pandas()["certain"].tolist() == decision.certain.tolist()


def test_where_an_exact_decision_is_possible_it_is_made():
    tac = tacit.compile(clinic(), decide="Treat", evidence=SEEN, within=0.1)
    assert tac.exact


def test_a_decision_that_is_too_wide_gets_intervals(monkeypatch):
    monkeypatch.setattr(DecisionQuery, "_refusals", [TooLargeError("too wide")])
    tac = tacit.compile(clinic(), decide="Treat", evidence=SEEN, within=0.5, seconds=1)
    assert not tac.exact
    assert repr(tac) == "BoundedDecisionQuery(decide='Treat', 4 evidence variables, within=0.5)"
    assert tac.decide(rows(3)).certain.all()  # windows hold all of so small a network

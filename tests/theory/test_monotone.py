"""Whether a query only rises or only falls with an input."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import EvidenceError
from tacit.theory import monotone
from tests.helpers import impossible, posterior, tries
from tests.theory.support import evidence, queries


def agrees(tac, inputs, found):
    """No sampled step of the first input goes against what was proven."""
    rng = np.random.default_rng(3)
    before = rng.random((4000, len(inputs)))
    before[::3] = before[::3].round()
    after = before.copy()
    after[:, 0] += rng.random(4000) * (1 - after[:, 0])
    change = posterior(tac, evidence(inputs, after))[:, 0] - posterior(tac, evidence(inputs, before))[:, 0]
    if found.direction in ("increasing", "constant"):
        assert np.nanmin(change, initial=0) >= -1e-11
    if found.direction in ("decreasing", "constant"):
        assert np.nanmax(change, initial=0) <= 1e-11
    for step, sign in ((found.rise, 1), (found.fall, -1)):
        if step is not None:
            rows = np.array([[end[n] for n in inputs] for end in (step.before, step.after)])
            first, last = tac.posterior(evidence(inputs, rows))[:, 0]
            assert sign * (last - first) > 0
            assert last - first == pytest.approx(step.change, abs=1e-12)


@given(queries(most=3))
@tries(40)
@impossible
def test_no_sample_goes_against_what_is_proven(query):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(None), tac.query, inputs)
    if inputs:
        agrees(tac, inputs, monotone(tac, inputs[0], budget=200))


@given(queries(most=2), st.sampled_from([0.0, 4.0, 16.0]))
@tries(25)
@impossible
def test_nor_with_sigmoids(query, gamma):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(gamma), tac.query, inputs)
    if inputs:
        agrees(tac, inputs, monotone(tac, inputs[0], budget=60))


def test_a_classifier_rises_with_its_causes():
    tac = tacit.compile(tacit.examples.noisy_or_classifier(), "Y", ["X1", "X2", "X3"])
    up, down = monotone(tac, "X2"), monotone(tac, "X2", state="false")
    assert (up.direction, down.direction) == ("increasing", "decreasing")
    assert up.rise is not None
    assert up.fall is None
    assert str(down) == "decreasing in X2"


def test_a_staircase_rises_with_its_input():
    net, names, query = tacit.theory.approximate(lambda x: x**2, error=0.1)
    assert monotone(tacit.compile(net, query, names), names[0]).direction == "increasing"


def test_neither_is_shown_by_two_steps():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    found = monotone(tac, "A", others=[], given={"C": "lo"})
    assert str(found) == "neither increasing nor decreasing in A"
    for step in (found.rise, found.fall):
        first, last = tac.posterior({"A": [step.before["A"], step.after["A"]], "C": "lo"})[:, 0]
        assert step.before["A"] < step.after["A"]
        assert last - first == pytest.approx(step.change, abs=1e-12)


def test_jumps_count_at_borders():
    """P*(t) falls with E on both sides of 0.25, and jumps there: down is decreasing, up is neither."""

    def tac(above):
        net = tacit.Network()
        net.add("E", cpt=[0.5, 0.5])
        cpt = tacit.TestingCPT([[above, 1 - above], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]], [0.25, 0.0])
        net.add("T", ["E"], cpt=cpt)
        return tacit.compile(net, "T", ["E"])

    assert monotone(tac(0.05), "E").direction == "decreasing"
    assert monotone(tac(0.2), "E").direction == "neither"


def test_independence_is_constant():
    net = tacit.examples.abc()
    net.add("X", cpt=[0.5, 0.5])
    tac = tacit.compile(net, "B", ["A", "X"])
    assert monotone(tac, "X").direction == "constant"


def test_sigmoids_are_proven_too():
    net = tacit.examples.noisy_or_classifier().with_gamma(2.0)
    tac = tacit.compile(net, "Y", ["X1", "X2"])
    assert monotone(tac, "X1").direction == "increasing"


def test_a_budget_leaves_it_undecided():
    net = tacit.examples.noisy_or_classifier().with_gamma(16.0)
    tac = tacit.compile(net, "Y", ["X1", "X2", "X3"])
    found = monotone(tac, "X1", budget=1)
    assert found.direction == "undecided"
    assert found.rise is not None


def test_what_cannot_be():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    with pytest.raises(EvidenceError, match="'A' is an input, but its evidence is given as well"):
        monotone(tac, "A", given={"A": 0.2})
    with pytest.raises(EvidenceError, match="'Z' is not an evidence variable"):
        monotone(tac, "Z")

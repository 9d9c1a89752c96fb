"""Certified bounds over boxes of evidence, and decisions that survive them."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import EvidenceError, TacitError, TooLargeError
from tacit.theory import bounds, pieces, robust
from tacit.theory.certified.bounding import TOLERANCE
from tests.conformance_files import network, read
from tests.helpers import close, impossible, posterior, tries
from tests.theory.support import clear, evidence, queries

ROUNDING = 1e-12


def box_of(inputs, seed):
    """A random box, some of whose sides are the unit interval."""
    ends = np.sort(np.random.default_rng(seed).random((len(inputs), 2)), axis=1)
    ends = np.where(np.arange(len(inputs))[:, None] % 2 == seed % 2, [0.0, 1.0], ends)
    return {name: tuple(pair) for name, pair in zip(inputs, ends.tolist(), strict=True)}


def samples(inputs, box, rows=10_000):
    """Points of a box, many of them on its faces."""
    low, high = np.array([box[n] for n in inputs]).reshape(-1, 2).T
    share = np.random.default_rng(1).random((rows, len(inputs)))
    share[: rows // 4] = share[: rows // 4].round()
    return evidence(inputs, low + share * (high - low))


def contains(tac, inputs, box, found):
    values = posterior(tac, samples(inputs, box))[:, 0]
    assert np.nanmin(values) >= found.low - ROUNDING
    assert np.nanmax(values) <= found.high + ROUNDING


# hard tests ----------------------------------------------------------------------------------------------


@given(queries(most=3), st.integers(0, 99))
@tries(40)
@impossible
def test_bounds_hold_all_samples_and_are_met(query, seed):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(None), tac.query, inputs)
    box = box_of(inputs, seed)
    assume(inputs and not np.isnan(posterior(tac, samples(inputs, box, 200))).all())
    found = bounds(tac, box, budget=3_000)
    contains(tac, inputs, box, found)
    assert found.exact
    for extreme in (found.minimum, found.maximum):
        assert extreme.gap <= TOLERANCE
        assert all(low <= extreme.evidence[n] <= high for n, (low, high) in box.items())
        row = evidence(inputs, np.array([[extreme.evidence[n] for n in inputs]]))
        if clear(tac, row, margin=1e-11).all():  # at a tie, rounding decides what the circuit says
            close(tac.posterior(row)[0, 0], extreme.value, 1e-9)


def test_one_input_is_extreme_at_the_ends_of_its_regions():
    case = read("regions.json")["one_input"]
    tac = tacit.compile(network(case["network"]), case["query"], [case["evidence"]])
    ends = []
    for region in pieces(tac):
        c1, c0 = region.coefficients["E",], region.coefficients[()]
        ends += [(c1[0] * x + c0[0]) / (c1.sum() * x + c0.sum()) for x in region.interval[:2]]
    found = bounds(tac, {"E": (0.0, 1.0)})
    close([found.low, found.high], [min(ends), max(ends)])


def test_two_inputs_meet_a_maximum_on_a_curved_border():
    """The maximum of this query is a point where a level line touches the border of a region."""
    case = read("regions.json")["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    found = bounds(tac, {"E1": (0.0, 1.0), "E2": (0.0, 1.0)})
    assert found.exact
    near = np.array(list(found.maximum.evidence.values()))
    assert 0.5 < near.min() < near.max() < 0.9
    fine = near + np.random.default_rng(0).normal(0, 1e-4, (100_000, 2))
    values = tac.posterior(fine)[:, 0]
    assert found.maximum.value - 1e-7 < values.max() <= found.high + ROUNDING


def step_down(test):
    """E -> T, where P*(t) = 0.9 - 0.8 E below 0.25, and 0.9 - 0.7 E above: it falls, but for a jump up at 0.25."""
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    plus, minus = [[0.2, 0.8], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]]
    net.add("T", ["E"], cpt=tacit.TestingCPT(plus, minus, [0.25, 0.0], [test, ">="]))
    return tacit.compile(net, "T", ["E"])


@pytest.mark.parametrize(("test", "attained"), [(">=", True), (">", False)])
def test_a_limit_at_a_border_says_whether_it_is_attained(test, attained):
    found = bounds(step_down(test), {"E": (0.24, 0.5)})
    close(found.high, 0.725)
    assert found.maximum.attained == attained
    assert found.maximum.evidence["E"] == pytest.approx(0.25, abs=1e-9)
    assert ("approached near" in str(found.maximum)) != attained
    close(found.low, 0.55)
    assert found.minimum.attained


def test_a_tie_of_its_own_counts():
    """At E = 0.5, both tests hold, and nowhere else: the maximum is the value of a single point."""

    def tac(test):
        net = tacit.Network()
        net.add("E", cpt=[0.5, 0.5])
        net.add("T", ["E"], cpt=tacit.TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.5, 0.5], test))
        return tacit.compile(net, "T", ["E"])

    found = bounds(tac(">="), {"E": (0.25, 0.75)})
    close([found.low, found.high], [0.55, 0.9])
    assert found.maximum.attained
    assert found.maximum.evidence == {"E": 0.5}
    strict = bounds(tac(">"), {"E": (0.25, 0.75)})
    close([strict.low, strict.high], [0.2, 0.725])
    assert strict.minimum.evidence == {"E": 0.5}


def test_a_tie_that_no_test_accepts_does_not_count():
    tac = tacit.compile(tacit.examples.noisy_or_classifier(), "Y", ["X1", "X2", "X3"])
    unit = dict.fromkeys(("X1", "X2", "X3"), (0.0, 1.0))
    assert tuple(bounds(tac, unit)) == (0.0, 1.0)
    high = bounds(tac, {**unit, "X1": (0.9, 1.0)})
    assert tuple(high) == (1.0, 1.0)


def test_complementary_tests_decide_a_tie_once():
    """At E = 0.5 one test accepts the tie and the other does not: they never hold together, which would give 0.9."""
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("T", ["E"], cpt=tacit.TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.5, 0.5], [">=", ">"]))
    found = bounds(tacit.compile(net, "T", ["E"]), {"E": (0.25, 0.75)})
    close([found.low, found.high], [0.55, 0.725])
    assert found.exact


@pytest.mark.parametrize(
    ("test", "low", "least_attained", "high", "most_attained"),
    [
        ("<", 0.2, False, 0.9, True),  # plus below 1: 0.3 - 0.1 E, but 0.9 at 1
        ("<=", 0.2, True, 0.3, True),  # plus
        (">=", 0.2, True, 0.9, False),  # minus below 1: 0.3 + 0.6 E, but 0.2 at 1
        (">", 0.3, True, 0.9, True),  # minus
    ],
)
def test_a_tie_on_a_face_counts(test, low, least_attained, high, most_attained):
    """P*(e) meets its threshold 1 only at E = 1, where `minus` gives 0.9 and `plus` 0.2."""
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    plus, minus = [[0.2, 0.8], [0.3, 0.7]], [[0.9, 0.1], [0.3, 0.7]]
    net.add("T", ["E"], cpt=tacit.TestingCPT(plus, minus, [1.0, 0.0], [test, ">="]))
    found = bounds(tacit.compile(net, "T", ["E"]), {"E": (0.0, 1.0)})
    close([found.low, found.high], [low, high])
    assert (found.minimum.attained, found.maximum.attained) == (least_attained, most_attained)


def test_many_tests_one_input():
    net, names, query = tacit.theory.approximate(lambda x: x * x, error=0.05)
    tac = tacit.compile(net, query, names)
    found = bounds(tac, {names[0]: (0.2, 0.71)})
    close([found.low, found.high], [0.0, 0.5])
    assert found.exact


def test_given_evidence_and_other_states():
    tac = tacit.compile(tacit.examples.abc(), "C", ["A", "C"], hard=["A"])
    found = bounds(tac, {"C": (0.3, 0.6)}, state="hi", given={"A": "true"})
    rows = {"A": "true", "C": np.linspace(0.3, 0.6, 50)}
    values = tac.posterior(rows)[:, 1]
    close(sorted(found), [values.min(), values.max()])
    assert found.state == "hi"
    assert str(found).startswith("P*(C=hi): minimum ")


def test_evidence_that_does_not_bear_on_the_query_costs_nothing():
    net = tacit.examples.abc()
    net.add("X", cpt=[0.5, 0.5])
    net.add("Y", ["X"], cpt=tacit.TestingCPT([[1, 0], [0.5, 0.5]], [[0.2, 0.8], [0, 1]], [0.4, 0.3]))
    net.add("Z", ["Y"], cpt=[[0.9, 0.1], [0.3, 0.7]])
    tac = tacit.compile(net, "C", ["X", "Y", "Z"])
    found = bounds(tac, dict.fromkeys("XYZ", (0.0, 1.0)))
    close([found.low, found.high], [tac.posterior()[0, 0]] * 2)
    assert found.boxes == 2


def test_a_budget_ends_with_bounds_that_hold():
    case = read("regions.json")["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    box = {"E1": (0.0, 1.0), "E2": (0.0, 1.0)}
    exact = bounds(tac, box)
    loose = [bounds(tac, box, budget=budget) for budget in (1, 10, 50)]
    assert not loose[0].exact
    assert "certified" in str(loose[0])
    for found in loose:
        assert found.low <= exact.low + ROUNDING
        assert found.high >= exact.high - ROUNDING
    assert loose[0].high >= loose[1].high >= loose[2].high


def test_a_coarse_tolerance_still_certifies():
    case = read("regions.json")["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    box = {"E1": (0.0, 1.0), "E2": (0.0, 1.0)}
    exact, coarse = bounds(tac, box), bounds(tac, box, tolerance=0.05)
    assert coarse.low <= exact.low
    assert exact.high <= coarse.high
    assert coarse.boxes < exact.boxes


def test_evidence_behind_certain_evidence_costs_nothing():
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("T", ["X"], cpt=tacit.TestingCPT([[1, 0], [0.5, 0.5]], [[0.2, 0.8], [0, 1]], [0.4, 0.3]))
    net.add("H", ["T"], cpt=[[0.9, 0.1], [0.3, 0.7]])
    net.add("Q", ["H"], cpt=[[0.6, 0.4], [0.2, 0.8]])
    tac = tacit.compile(net, "Q", ["X", "T"], hard=["H"])
    found = bounds(tac, {"X": (0.0, 1.0), "T": (0.0, 1.0)}, given={"H": "true"})
    assert (found.low, found.high, found.boxes) == (0.6, 0.6, 2)


# sigmoids ------------------------------------------------------------------------------------------------


@given(queries(most=2), st.integers(0, 99), st.sampled_from([0.0, 4.0, 30.0]))
@tries(25)
@impossible
def test_bounds_of_sigmoids_hold_all_samples(query, seed, gamma):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(gamma), tac.query, inputs)
    box = box_of(inputs, seed)
    assume(inputs and not np.isnan(posterior(tac, samples(inputs, box, 200))).all())
    found = bounds(tac, box, budget=200)
    contains(tac, inputs, box, found)
    row = evidence(inputs, np.array([[found.maximum.evidence[n] for n in inputs]]))
    close(tac.posterior(row)[0, 0], found.maximum.value, 1e-11)


def test_sigmoids_and_tests_in_one_network():
    rng = np.random.default_rng(5)
    net = tacit.examples.diamond(seed=2)
    soft = net.with_cpts({"B": net.cpt("B").with_gamma(6.0)})
    tac = tacit.compile(soft, "D", ["A", "C", "D"])
    box = {"A": (0.1, 0.8), "C": (0.0, 1.0), "D": (0.5, 0.5)}
    found = bounds(tac, box, tolerance=1e-6)
    contains(tac, list(box), box, found)
    assert found.exact
    values = tac.posterior(np.array([0.1, 0, 0.5]) + rng.random((50_000, 3)) * [0.7, 1, 0])[:, 0]
    assert found.high - values.max() < 0.01
    assert values.min() - found.low < 0.01


# robustness ----------------------------------------------------------------------------------------------


@given(queries(most=3), st.integers(0, 99), st.sampled_from([0.0, 0.05, 0.3]))
@tries(30)
@impossible
def test_robust_decisions_survive_samples_and_others_have_a_counterexample(query, seed, radius):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(None), tac.query, inputs)
    point = np.random.default_rng(seed).random(len(inputs))
    row = evidence(inputs, point[None])
    assume(inputs and not np.isnan(posterior(tac, row)).any())
    before = tac.posterior(row)[0]
    (found,) = robust(tac, row, radius)
    assert found.decision == tac.network.states(tac.query)[int(before.argmax())]
    if found.robust:
        box = {n: (max(0, p - radius), min(1, p + radius)) for n, p in zip(inputs, point.tolist(), strict=True)}
        near = posterior(tac, samples(inputs, box, 2000))
        assert np.nanmin(near[:, before.argmax()] - near.max(axis=1)) >= -1e-11
    elif found.robust is False:
        other = np.array([[found.counterexample[n] for n in inputs]])
        assert np.abs(other - point).max() <= radius + 1e-15
        if clear(tac, evidence(inputs, other), 1e-11).all():
            assert tac.posterior(evidence(inputs, other))[0].argmax() != before.argmax()


def test_rows_thresholds_and_missing_values():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    rows = {"A": [0.2, 0.75, None], "C": "lo"}
    kept = robust(tac, rows, 0.1)
    assert [one.robust for one in kept] == [True, False, True]
    changed = kept[1].counterexample
    assert 0.65 <= changed["A"] <= 0.85
    assert tac.posterior({**changed, "C": "lo"})[0].argmax() == 1
    assert "changes at A=" in str(kept[1])
    assert "is robust, margin" in str(kept[0])
    (least,) = (bounds(tac, {"A": (0.1, 0.3)}, given={"C": "lo"}).low,)
    (above,) = robust(tac, {"A": 0.2, "C": "lo"}, 0.1, threshold=least - 1e-6)
    (below,) = robust(tac, {"A": 0.2, "C": "lo"}, 0.1, threshold=least + 1e-6)
    assert (above.robust, above.decision, below.robust) == (True, True, False)
    assert 0 <= above.margin <= 1.1e-6
    (never,) = robust(tac, {"A": 0.2, "C": "lo"}, 0.1, state="false", threshold=0.99)
    assert (never.robust, never.decision) == (True, False)


def test_named_inputs_may_have_hard_evidence():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    fixed, moved = (robust(tac, {"A": "true", "C": 0.5}, 0.4, inputs=names)[0] for names in (["C"], ["A"]))
    assert fixed.robust
    assert moved.counterexample is not None
    assert 0.6 <= moved.counterexample["A"] <= 1


def test_a_budget_leaves_a_decision_undecided():
    case = read("regions.json")["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    limit = bounds(tac, {"E1": (0.0, 1.0), "E2": (0.0, 1.0)}).low
    (found,) = robust(tac, {"E1": 0.5, "E2": 0.5}, 1.0, threshold=limit - 1e-7, budget=1)
    assert found.robust is None
    assert "undecided" in str(found)
    (sure,) = robust(tac, {"E1": 0.5, "E2": 0.5}, 1.0, threshold=limit - 1e-7)
    assert sure.robust


# errors --------------------------------------------------------------------------------------------------


def test_what_cannot_be():
    net = tacit.examples.abc()
    net.add("M", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("N", cpt=[1.0, 0.0])
    tac = tacit.compile(net, "B", ["A", "M", "N"])
    for box, message in [
        ({"M": (0, 1)}, "'M' has 3 states"),
        ({"A": (0.5, 0.2)}, "the box of 'A' is (0.5, 0.2), expected 0 <= low <= high <= 1"),
        ({"A": (0.5, 1.2)}, "expected 0 <= low <= high <= 1"),
        ({"A": (0.5, float("nan"))}, "expected 0 <= low <= high <= 1"),
        ({"A": 0.5}, "the box of 'A' is 0.5, expected its least and greatest likelihood"),
        ({"D": (0, 1)}, "'D' is not an evidence variable"),
    ]:
        with pytest.raises(EvidenceError) as caught:
            bounds(tac, box)
        assert message in str(caught.value)
    with pytest.raises(TacitError, match="'maybe' is not a state of 'B'"):
        bounds(tac, {"A": (0, 1)}, state="maybe")
    with pytest.raises(TacitError, match="radius is -1"):
        robust(tac, {"A": 0.5}, -1)
    with pytest.raises(TacitError, match="a state is given without a threshold"):
        robust(tac, {"A": 0.5}, 0.1, state="true")
    sure = tacit.compile(net, "N", ["N"])
    with pytest.raises(EvidenceError, match="probability 0 all over the box"):
        bounds(sure, {"N": (0.0, 0.0)})
    with pytest.raises(EvidenceError, match="probability 0"):
        robust(sure, {"N": 0.0}, 0.1)
    wide = tacit.Network()
    for i in range(11):
        wide.add(f"X{i}", cpt=[0.5, 0.5])
    with pytest.raises(TooLargeError, match="11 inputs"):
        bounds(tacit.compile(wide, "X0", wide.variables), dict.fromkeys(wide.variables, (0, 1)))

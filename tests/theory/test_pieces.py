"""Pieces: regions of soft evidence, their borders, and the multilinear function in each."""

from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import semantics
from tacit.base.errors import EvidenceError, NetworkError, TooLargeError
from tacit.theory import pieces, reachable
from tests.conformance_files import network, read
from tests.helpers import close, tries
from tests.theory.support import clear, evidence, points, queries

REGIONS = read("regions.json")


def fan(thresholds, tests=">=", prior=0.5):
    """E -> T1, ..., Tk -> Q, with a pair of thresholds for each T."""
    net = tacit.Network("fan")
    net.add("E", cpt=[prior, 1 - prior])
    names = [f"T{i + 1}" for i in range(len(thresholds))]
    for i, (name, pair) in enumerate(zip(names, thresholds, strict=True)):
        low, high = 0.1 + 0.02 * i, 0.9 - 0.02 * i
        net.add(name, ["E"], cpt=tacit.TestingCPT([[high, 1 - high]] * 2, [[low, 1 - low]] * 2, pair, tests))
    rng = np.random.default_rng(0)
    net.add("Q", names, cpt=rng.dirichlet([1, 1], [2] * len(names)))
    return tacit.compile(net, "Q", ["E"])


def signatures(tac, rows):
    how = tac.selected(rows)
    return np.concatenate([one.weight.reshape(len(one.weight), -1) for one in how.values()], axis=1)


# the conformance files -------------------------------------------------------------------------------------


def test_one_input():
    case = REGIONS["one_input"]
    found = pieces(tacit.compile(network(case["network"]), case["query"], [case["evidence"]]))
    assert found.granularity == case["granularity"] == len(found)
    assert found.exact
    close(found.borders, case["breakpoints"])
    for region, expected in zip(found, case["regions"], strict=True):
        close(region.interval[:2], [expected["from"], expected["to"]])
        assert region.selection["T"].tolist() == [bool(s) for s in expected["selected_plus"]]
        joint = [region.coefficients[names][case["state"]] for names in [("E",), ()]]
        close(joint, [expected["joint_f"][k] for k in "ab"])
        quotient = [*joint, *(region.coefficients[names].sum() for names in [("E",), ()])]
        close(quotient, [expected["conditional_F"][k] for k in "abcd"])


def test_two_inputs():
    case = REGIONS["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    found = pieces(tac)
    assert found.exact
    assert found.granularity >= case["distinct_selections_on_12x12_probe"]
    for point in case["points"]:
        row = dict(zip(case["evidence"], point["lambda"], strict=True))
        region = found.region(row)
        assert {n: s.ravel().tolist() for n, s in region.selection.items()} == {
            n: [bool(x) for x in s] for n, s in point["selected_plus"].items()
        }
        for names, value in point["C"].items():
            close(region.coefficients[() if names == "1" else tuple(names.split("*"))][case["state"]], value)
        close(found.joint(row)[0, case["state"]], point["joint_q"])


def test_two_inputs_have_as_many_regions_as_a_fine_grid():
    case = REGIONS["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    grid = np.stack(np.meshgrid(*[np.linspace(0.001, 0.999, 300)] * 2), axis=-1).reshape(-1, 2)
    found = pieces(tac)
    assert (found.granularity, found.most) == (len(np.unique(signatures(tac, grid), axis=0)),) * 2


def test_evidence_on_a_non_ancestor_moves_no_border():
    case = REGIONS["non_ancestor"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    both = pieces(tac)
    assert both.exact
    assert both.granularity == case["granularity"]
    zeros = set()
    for condition in (condition for region in both for condition in region.conditions):
        c = condition.coefficients
        close([c["E2",], c["E1", "E2"]], [0, 0])
        zeros.add(round(-c[()] / c["E1",], 12))
    assert sorted(zeros) == case["breakpoints_in_lambda1"]
    for value in (0.0, 0.4, 1.0):
        close(pieces(tac, inputs=["E1"], given={"E2": value}).borders, case["breakpoints_in_lambda1"])


# against the circuit and against enumeration ---------------------------------------------------------------


@given(queries(most=4))
@tries(40)
def test_coefficients_reproduce_the_circuit(query):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(None), tac.query, inputs)
    found = pieces(tac, budget=100)
    rows = evidence(inputs, points(inputs, 40))
    if not inputs:
        close(sum(c for c in found[0].coefficients.values()), tac.joint()[0])
        return
    far = clear(tac, rows)
    close(found.joint(rows)[far], tac.joint(rows)[far])
    one = evidence(inputs, points(inputs, 40)[far][:1])
    if far.any():
        close(found.joint(one), semantics.joint(tac.network, tac.query, one))


@given(queries(most=3, factored=False), st.integers(0, 1000))
@tries(25)
def test_every_point_away_from_ties_lies_in_a_region_that_was_found(query, seed):
    tac, inputs = query
    tac = tacit.compile(tac.network.with_gamma(None), tac.query, inputs)
    found = pieces(tac)
    some = np.random.default_rng(seed).random((20, len(inputs)))
    for point in some if inputs else []:
        one = evidence(inputs, point[None])
        if found.exact and clear(tac, one, margin=1e-6).all():
            region = found.region(one)
            assert region is not None
            assert all(_value(c.coefficients, inputs, point) > 0 for c in region.conditions)


def _value(coefficients, inputs, point):
    at = dict(zip(inputs, point, strict=True))
    return sum(c * np.prod([at[n] for n in names]) for names, c in coefficients.items())


@given(queries(most=3, factored=False))
@tries(25)
def test_a_region_holds_its_own_point(query):
    tac, inputs = query
    found = pieces(tacit.compile(tac.network.with_gamma(None), tac.query, inputs), budget=200)
    for region in found if inputs else []:
        point = np.array([region.inside[n] for n in inputs])
        assert found.region(evidence(inputs, point[None])) is region
        assert all(_value(c.coefficients, inputs, point) > 0 for c in region.conditions)


def test_coefficients_are_sums_over_the_instantiations_of_the_network():
    """The identity in the proof of Theorem 2: C_I sums P(x), -P(x) or 0 over all instantiations x."""
    net = tacit.examples.diamond(seed=3)
    inputs, query = ["A", "C"], "D"
    found = pieces(tacit.compile(net, query, inputs))
    for region in found:
        chosen = semantics.select(net, region.inside).network
        expected = {names: np.zeros(2) for names in region.coefficients}
        for x in product(range(2), repeat=len(chosen)):
            state = dict(zip(chosen.variables, x, strict=True))
            p = np.prod([chosen.table(n)[(*(state[u] for u in chosen.parents(n)), state[n])] for n in chosen])
            for names, total in expected.items():
                positive = {n for n in inputs if state[n] == 0}
                if positive <= set(names):
                    total[state[query]] += p * (-1) ** len(set(names) - positive)
        for names, total in expected.items():
            close(region.coefficients[names], total)


def test_given_evidence_is_fixed_and_everything_else_is_absent():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"], hard=["C"])
    found = pieces(tac, given={"C": "hi"})
    assert found.inputs == ("A",)
    close(found.joint({"A": [0.2, 0.9]}), tac.joint({"A": [0.2, 0.9], "C": "hi"}))
    loose = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    close(pieces(loose, inputs=["A"]).joint({"A": 0.3}), loose.joint({"A": 0.3}))


# how many, and where ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_granularity_of_a_fan_is_at_most_2k_plus_1(count):
    spread = np.linspace(0.55, 0.9, count)
    tac = fan([(t, t + 0.03) for t in spread])
    found = pieces(tac)
    assert found.granularity == 2 * count + 1
    assert len(np.unique(signatures(tac, {"E": np.linspace(0.0005, 0.9995, 4000)}), axis=0)) == 2 * count + 1


@given(st.lists(st.tuples(*[st.floats(0, 1)] * 2), min_size=1, max_size=4), st.sampled_from([">=", ">", "<=", "<"]))
@tries(30)
def test_a_fan_has_one_region_between_neighbouring_thresholds(thresholds, test):
    tac = fan(thresholds, test)
    borders = sorted({t for e, not_e in thresholds for t in (e, 1 - not_e) if 0 < t < 1})
    assume(np.diff([0.0, *borders, 1.0]).min() > 1e-6)
    found = pieces(tac)
    close(found.borders, borders, 1e-11)
    assert found.granularity == len(borders) + 1


def test_one_query_has_functions_of_different_granularity():
    """E -> T -> Q as a step: T decides like a copy of a threshold, whatever E is (paper, Figure 8d)."""

    def chain(thresholds, plus, minus):
        net = tacit.Network()
        net.add("E", cpt=[0.5, 0.5])
        net.add("T", ["E"], cpt=tacit.TestingCPT(plus, minus, thresholds))
        net.add("Q", ["T"], cpt=[[0.9, 0.1], [0.3, 0.7]])
        return tacit.compile(net, "Q", ["E"])

    step = chain([0.25, 0.5], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    found = pieces(step)
    assert [str(region.interval) for region in found] == ["[0, 0.25)", "[0.25, 0.5]", "(0.5, 1]"]
    for region, expected in ((found[0], 0.3), (found[2], 0.9)):
        for c in region.coefficients.values():
            close(c[0], expected * c.sum())  # P*(q) is the same all over the region
    smooth = chain([0.4, 1.0], [[0.8, 0.2], [0.3, 0.7]], [[0.2, 0.8], [0.6, 0.4]])
    assert pieces(smooth).granularity == 2


@pytest.mark.parametrize(("test", "owner"), [(">=", "right"), (">", "left"), ("<=", "left"), ("<", "right")])
def test_a_border_belongs_to_the_side_that_the_operator_says(test, owner):
    tac = fan([(0.25, 0.0)], [test, ">="])
    left, right = pieces(tac)
    assert left.interval == (0.0, 0.25, True, owner == "left")
    assert right.interval == (0.25, 1.0, owner == "right", True)
    assert (signatures(tac, {"E": 0.25}) == [left, right][owner == "right"].selection["T1"].ravel()).all()


def test_a_tie_that_both_sides_leave_out_is_a_border_and_not_a_region():
    tac = fan([(0.5, 0.5)])  # at 0.5, both tests hold
    found = pieces(tac)
    assert found.granularity == 2
    assert [str(region.interval) for region in found] == ["[0, 0.5)", "(0.5, 1]"]
    assert found.region({"E": 0.5}) is None
    close(found.joint({"E": [0.25, 0.5, 0.75]}), tac.joint({"E": [0.25, 0.5, 0.75]}))


def test_tests_whose_rows_are_equal_make_no_regions():
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    net.add("T", ["E"], cpt=tacit.TestingCPT([[0.3, 0.7]] * 2, [[0.3, 0.7]] * 2, [0.2, 0.6]))
    assert pieces(tacit.compile(net, "T", ["E"])).granularity == 1


def test_nodes_with_the_same_parents_need_not_follow_each_other():
    net = tacit.Network()
    for name in ("A", "B"):
        net.add(name, cpt=[0.5, 0.5])
    for name, parent, thresholds in (("X", "A", [0.3, 0.6]), ("Y", "B", [0.45, 0.7]), ("Z", "A", [0.5, 0.35])):
        net.add(name, [parent], cpt=tacit.TestingCPT([[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.3, 0.7]], thresholds))
    table = np.arange(1, 9).reshape(2, 2, 2) / 10
    net.add("Q", ["X", "Y", "Z"], cpt=np.stack([table, 1 - table], axis=-1))
    tac = tacit.compile(net, "Q", ["A", "B"])
    found, rows = pieces(tac), evidence(["A", "B"], points(["A", "B"], 200))
    close(found.posterior(rows), tac.posterior(rows))
    assert all(found.region(region.inside) is region for region in found)


def test_complementary_tests_are_one_border_in_many_dimensions():
    tac = tacit.compile(tacit.examples.noisy_or_classifier(), "Y", ["X1", "X2", "X3"])
    found = pieces(tac)
    assert (found.granularity, found.exact) == (2, True)
    assert {tuple(region.selection["Y"].tolist()) for region in found} == {(True, False), (False, True)}


def test_a_budget_leaves_a_bound_on_the_number_of_regions(monkeypatch):
    case = REGIONS["two_inputs"]
    tac = tacit.compile(network(case["network"]), case["query"], case["evidence"])
    every = pieces(tac)
    monkeypatch.setattr(reachable, "SAMPLED_POINTS", 3)
    few = pieces(tac, budget=0)
    assert few.granularity <= 3
    assert not few.exact
    assert few.most >= every.granularity
    assert "regions found of at most" in repr(few)
    assert pieces(tac).granularity == every.granularity  # what sampling does not meet, solving does


# errors and texts -------------------------------------------------------------------------------------------


def test_what_cannot_be():
    net = tacit.examples.abc()
    net.add("M", states=3, cpt=[0.2, 0.3, 0.5])
    tac = tacit.compile(net, "B", ["A", "C", "M"], hard=["C"])
    for inputs, given_row, message in [
        (["M"], {"C": "lo"}, "'M' has 3 states"),
        (["C"], {"C": "lo"}, "'C' takes hard evidence only"),
        (["A"], {"C": "lo", "A": 0.3}, "'A' is an input, but its evidence is given as well"),
        (["B"], {"C": "lo"}, "'B' is not an evidence variable of the query; expected some of ['A', 'C', 'M']"),
        ("A", {"C": "lo"}, "inputs must be a sequence of names"),
        (["A"], {}, "there is no evidence on 'C'"),
        (["A"], {"C": ["lo", "hi"]}, "given fixes one row of evidence, got 2 rows"),
    ]:
        with pytest.raises(EvidenceError) as caught:
            pieces(tac, inputs, given_row)
        assert message in str(caught.value)
    with pytest.raises(NetworkError, match="'B' is selected by a sigmoid"):
        pieces(tacit.compile(net.with_gamma(16), "B", ["A"]))
    wide = tacit.Network()
    for i in range(11):
        wide.add(f"X{i}", cpt=[0.5, 0.5])
    with pytest.raises(TooLargeError, match="11 inputs make boxes of 2,048 vertices"):
        pieces(tacit.compile(wide, "X0", wide.variables))


def test_evidence_of_points_is_complete():
    found = pieces(tacit.compile(tacit.examples.abc(), "B", ["A", "C"]))
    with pytest.raises(EvidenceError, match="'C', row 0: there is none"):
        found.joint({"A": [0.1, 0.2]})
    with pytest.raises(EvidenceError, match="region takes one row of evidence, got 2 rows"):
        found.region({"A": [0.1, 0.2], "C": 0.5})


def test_text_and_html_say_where_and_what():
    net = tacit.Network()
    net.add("<E>", cpt=[0.5, 0.5])
    net.add("F", cpt=[0.5, 0.5])
    cpt = tacit.TestingCPT([[1, 0], [1, 0]], [[0, 1], [0, 1]], [0.5, 0.5], test=[">=", "<"])
    net.add("T", ["<E>"], cpt=cpt)
    tac = tacit.compile(net, "T", ["<E>", "F"])
    text = str(pieces(tac))
    assert text.startswith("Pieces(2 regions of T over <E>, F)\n1. ")
    assert "1. 0.5 - <E> > 0\n   T: minus\n   p*(T=true) = 0\n   p*(T=false) = 0.25\n2. -0.5 + <E> > 0\n" in text
    html = pieces(tac)._repr_html_()
    assert "<E>" not in html
    assert html.count("<tr>") == 3
    one = str(pieces(tac, inputs=["<E>"]))
    assert "1. <E> in [0, 0.5)" in one


def test_long_lists_are_cut():
    many = pieces(fan([(t, t + 0.03) for t in np.linspace(0.5, 0.9, 11)]))
    assert len(many) == 23
    assert str(many).endswith("... and 3 more")
    assert "... and 3 more" in many._repr_html_()
    assert many[:2] == tuple(many)[:2]

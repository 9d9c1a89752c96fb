"""The explanation of one row: its tests, what they select, and the function that applies there."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tacit
from tacit import semantics
from tacit.base.errors import EvidenceError, TooLargeError
from tacit.query.network import Network
from tests import strategies
from tests.helpers import close, tries
from tests.theory.support import clear, evidence, points, queries


@given(queries(most=3))
@tries(40)
def test_tests_are_those_of_the_semantics(query):
    tac, inputs = query
    row = evidence(inputs, points(inputs, 2)[1:]) if inputs else {}
    assume(semantics.joint(tac.network, tac.query, row).sum() > 0 and (not inputs or clear(tac, row).all()))
    found = tac.explain(row)
    selection = semantics.select(tac.network, row)
    close(found.posterior, semantics.posterior(tac.network, tac.query, row)[0])
    for node in {test.node for test in found.tests}:
        own = [test for test in found.tests if test.node == node]
        cpt = tac.network.cpt(node)
        limits = np.take_along_axis(cpt.limits, cpt.in_turn(), axis=-1)  # (parents..., tests)
        posterior = np.broadcast_to(selection.nodes[node].posterior[..., None], limits.shape)
        holding = selection.nodes[node].weights[..., ::-1].cumsum(axis=-1)[..., -2::-1]
        close([t.posterior for t in own], posterior.ravel())
        close([t.weight for t in own], holding.ravel())
        close([t.margin for t in own], (posterior - limits).ravel())
        assert [t.operator for t in own] == np.broadcast_to(cpt.test[..., None], limits.shape).ravel().tolist()
        close(found.network.table(node), selection.network.table(node))


@given(queries(most=3))
@tries(40)
def test_coefficients_give_the_joint_of_the_row(query):
    tac, inputs = query
    assume(inputs)
    point = points(inputs, 2)[1]
    assume(tac.joint(evidence(inputs, point[None])).sum() > 0)
    found = tac.explain(evidence(inputs, point[None]))
    at = dict(zip(inputs, point, strict=True))
    value = sum(c * np.prod([at[n] for n in names]) for names, c in found.coefficients.items())
    close(value, tac.joint(evidence(inputs, point[None]))[0])


def test_crossing_a_flip_changes_the_test():
    net = tacit.examples.diamond(seed=1)
    tac = tacit.compile(net, "D", ["A", "C"])
    row = {"A": 0.45, "C": 0.3}
    found = tac.explain(row)
    flips = [(test, name, value) for test in found.tests for name, value in test.flips.items()]
    assert len(flips) >= 3
    for test, name, value in flips:
        outcomes = set()
        for moved in (value - 1e-9, value + 1e-9):
            chosen = semantics.select(net, {**row, name: moved}).nodes[test.node]
            where = [t for t in found.tests if t.node == test.node].index(test)
            outcomes.add(float(chosen.weight.ravel()[where]))
            close(chosen.posterior.ravel()[where], test.threshold, 1e-7)
        if test.node == "B" or all(t.flips.get(name) != value for t in found.tests if t.node == "B"):
            assert outcomes == {0.0, 1.0}


def test_the_closest_test_comes_first_when_there_are_many():
    net = tacit.Network()
    net.add("E", cpt=[0.5, 0.5])
    for i in range(12):
        net.add(f"T{i}", ["E"], cpt=tacit.TestingCPT([[1, 0]] * 2, [[0, 1]] * 2, [0.3 + 0.02 * i, 0.9]))
    net.add("Q", [f"T{i}" for i in range(12)], cpt=np.full((2,) * 13, 0.5))
    found = tacit.compile(net, "Q", ["E"]).explain({"E": 0.421})
    assert len(found.tests) == 24
    assert (found.closest.node, found.closest.parent_state) == ("T6", "E='true'")
    text, html = str(found), found._repr_html_()
    assert "... and 4 more, with larger margins" in text
    assert "... and 4 more, with larger margins" in html
    assert html.count("<tr>") == 2 + 1 + 20
    assert "T6 at E='true'" in text


def test_text_and_html():
    net = tacit.Network()
    net.add("<A>", states=["no", "yes"], cpt=[0.7, 0.3])
    net.add("M", states=["a", "b", "c"], cpt=[0.2, 0.3, 0.5])
    cpt = tacit.TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.5, 0.4], test=["<", ">"])
    net.add("B", ["<A>"], cpt=cpt)
    net.add("C", ["B", "M"], cpt=np.random.default_rng(0).dirichlet([1, 1], (2, 3)))
    tac = tacit.compile(net, "C", ["<A>", "M", "B"])
    found = tac.explain({"<A>": 0.25, "M": [[2, 1, 1]], "B": "true"})
    assert "\n\nP*(C | <A>: no 0.25, M: a 0.5 b 0.25 c 0.25, B: true)\n" in str(found)
    assert ["B", "at", "<A>='no'", "0.4375", "<", "0.5", "-0.0625", "plus"] in [
        line.split()[:8] for line in str(found).splitlines()
    ]
    assert "With this selection, as a function of the likelihoods of <A> = no:" in str(found)
    html = found._repr_html_()
    assert "<A>" not in html
    assert "&lt;A&gt;" in html
    assert "plus" in html
    soft = tacit.compile(net.with_gamma(8), "C", ["<A>", "M", "B"]).explain({"<A>": 0.25})
    assert "62.2% plus" in str(soft)
    assert soft.tests[0].flips == {}


def test_without_tests_or_inputs():
    plain = tacit.compile(tacit.examples.abc(testing=False), "B", ["A"]).explain()
    assert plain.tests == ()
    assert plain.closest is None
    assert str(plain).endswith("p*(B=true) = 0.76\np*(B=false) = 0.24")
    many = tacit.Network()
    for i in range(7):
        many.add(f"X{i}", cpt=[0.5, 0.5])
    names = list(many.variables)
    wide = tacit.compile(many, "X0", names).explain(dict.fromkeys(names, 0.3))
    assert wide.coefficients is None
    assert "No coefficients are shown for more than 6 inputs." in str(wide)


def test_one_row_at_a_time():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    with pytest.raises(EvidenceError, match="explain takes one row of evidence, got 2 rows"):
        tac.explain({"A": [0.1, 0.2]})


def test_impossible_evidence_has_no_explanation():
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    with pytest.raises(EvidenceError, match="probability 0, so there is no answer to explain"):
        tacit.compile(net, "A", ["A"]).explain({"A": "false"})


def test_missing_values_say_nothing():
    tac = tacit.compile(tacit.examples.abc(), "B", ["A", "C"])
    assert tac.explain({"A": [None], "C": "lo"}).evidence == {"C": "lo"}


# what findings add ----------------------------------------------------------------------------------------


@given(strategies.queries(testing=False), st.data())
@settings(max_examples=25, deadline=None)
def test_findings_are_weighed_against_the_definition(case, data):
    net, query, row = case
    hard = [name for name, column in row.items() if isinstance(column, list) and None not in column]
    hard = hard if data.draw(st.booleans()) else []
    tac = tacit.compile(net, query, [name for name in row if name not in hard], hard, engine="numpy")
    assume(not np.isneginf(tac.log_evidence(row)[0]))
    found = tac.explain(row)
    whole = semantics.posterior(net, query, row)[0]
    assert [one.name for one in found.findings] == list(found.evidence)
    for one in found.findings:
        rest = {name: column for name, column in row.items() if name != one.name}
        without = semantics.posterior(net, query, rest)[0]
        close(one.without, without)
        for q, weight in enumerate(one.weight):
            if 1e-9 < whole[q] < 1 - 1e-9 and 1e-9 < without[q] < 1 - 1e-9:
                expected = np.log(whole[q] / (1 - whole[q])) - np.log(without[q] / (1 - without[q]))
                assert abs(weight - expected) < 1e-5


def test_a_weight_is_the_ratio_of_likelihoods():
    net = tacit.Network()
    net.add("ill", states=["yes", "no"], cpt=[0.01, 0.99])
    net.add("test", ["ill"], ["positive", "negative"], [[0.9, 0.1], [0.05, 0.95]])
    net.add("sure", ["ill"], ["a", "b"], [[1, 0], [0, 1]])
    tac = tacit.compile(net, "ill", ["test"], hard=["sure"])
    found = tacit.compile(net, "ill", ["test"]).explain({"test": "positive"})
    (one,) = found.findings
    assert (one.name, one.value) == ("test", "positive")
    close(one.without, [0.01, 0.99])
    close(one.weight, [np.log(0.9 / 0.05), -np.log(0.9 / 0.05)])
    text = str(found)
    assert (
        "log-odds of ill=no, given the others (nats)\n"
        "finding         without it  weight\ntest: positive    0.990000   -2.89" in text
    )
    assert "selection" not in text
    assert "p*" not in text
    decided = tac.explain({"test": "positive", "sure": "a"})
    assert decided.findings[1].weight.tolist() == [np.inf, -np.inf]
    assert (decided.findings[0].weight == 0).all()  # the other one decides
    assert "nan" not in str(decided)
    assert "+inf" in str(decided)


def test_of_many_states_the_most_probable_one_is_shown():
    net = tacit.Network()
    net.add("Q", states=["a", "b", "c"], cpt=[0.2, 0.3, 0.5])
    net.add("E", ["Q"], cpt=[[0.9, 0.1], [0.5, 0.5], [0.1, 0.9]])
    found = tacit.compile(net, "Q", ["E"]).explain({"E": 0.9})
    assert "log-odds of Q=a, given the others (nats)\n" in str(found)
    assert "As a function of the likelihoods of E = true:\np*(Q=a) = " in str(found)
    assert "<b>What each finding adds" in found._repr_html_()


def test_what_is_given_is_no_finding():
    net = tacit.examples.kidney_stones()
    tac = tacit.compile(net, "recovery", ["size"], given={"treatment": "A"})
    assert [one.name for one in tac.explain({"size": "small"}).findings] == ["size"]


def test_a_chosen_state_is_explained():
    net = tacit.examples.kidney_stones()
    row = {"size": "small", "treatment": "B"}
    tac = tacit.compile(net, "recovery", ["size", "treatment"])
    assert "log-odds of recovery=yes" in str(tac.explain(row))
    why = tac.explain(row, state="no")
    assert why.state == 1
    assert "log-odds of recovery=no" in str(why)
    assert "log-odds of recovery=no" in why._repr_html_()
    with pytest.raises(tacit.TacitError, match="'maybe' is not a state of 'recovery'"):
        tac.explain(row, state="maybe")
    tested = str(tacit.compile(tacit.examples.abc(), "B", ["A"]).explain({"A": 0.8}, state="false"))
    assert "p*(B=false) = " in tested
    assert "p*(B=true)" not in tested


@pytest.mark.parametrize("hard", [(), ("C",)])
def test_an_intervention_is_explained_as_the_network_after_it(hard):
    net = tacit.examples.diamond(seed=1)
    why = tacit.compile(net, "D", [] if hard else ["C"], hard, do=["B"]).explain({"B": "true", "C": "false"})
    same = tacit.compile(net.do({"B": "true"}), "D", ["C"]).explain({"C": "false"})
    close(why.posterior, same.posterior)
    assert str(why).replace("do(B): true, ", "") == str(same)
    assert why.evidence == {"do(B)": "true", "C": "false"}


def test_what_is_set_is_no_finding():
    net = tacit.examples.kidney_stones()
    tac = tacit.compile(net, "size", ["recovery"], do=["treatment"])
    (one,) = tac.explain({"treatment": "A", "recovery": "no"}).findings
    assert one.name == "recovery"
    close(one.without, net.posterior("size")[0])


# what would change the answer -----------------------------------------------------------------------------


@given(strategies.queries(testing=False))
@settings(max_examples=25, deadline=None)
def test_changes_are_those_that_flip_the_answer(case):
    net, query, row = case
    tac = tacit.compile(net, query, list(row), engine="numpy")
    assume(not np.isneginf(tac.log_evidence(row)[0]))
    found = tac.explain(row)
    best = int(found.posterior.argmax())
    assume((np.delete(found.posterior, best) < found.posterior[best] - 1e-9).all())
    expected = set()
    for name in found.evidence:
        for to in (None, *net.states(name)):
            changed = {**row, name: to}
            if np.isneginf(tac.log_evidence(changed)[0]):
                continue
            posterior = semantics.posterior(net, query, changed)[0]
            assume(abs(posterior.max() - posterior[best]) > 1e-9 or posterior.argmax() == best)
            if posterior.argmax() != best:
                expected.add((name, to))
    assert found.all_changes
    assert {(change.name, change.to) for change in found.changes} == expected
    assert [change.to is None for change in found.changes] == sorted(
        (c.to is None for c in found.changes), reverse=True
    )


@given(strategies.queries(testing=False), st.floats(0.05, 0.95))
@settings(max_examples=15, deadline=None)
def test_changes_across_a_threshold(case, threshold):
    net, query, row = case
    tac = tacit.compile(net, query, list(row), engine="numpy")
    assume(not np.isneginf(tac.log_evidence(row)[0]))
    state = net.states(query)[-1]
    why = tac.explain(row, state, threshold)
    assume(abs(why.posterior[-1] - threshold) > 1e-9)
    expected = set()
    for name in why.evidence:
        for to in (None, *net.states(name)):
            posterior = semantics.posterior(net, query, {**row, name: to})[0][-1]
            assume(not abs(posterior - threshold) < 1e-9)
            if not np.isnan(posterior) and (posterior >= threshold) != (why.posterior[-1] >= threshold):
                expected.add((name, to))
    assert {(change.name, change.to) for change in why.changes} == expected


def test_a_threshold_is_told_in_words():
    net = tacit.examples.asia()
    text = str(net.explain("lung", {"xray": "yes", "smoke": "no"}, state="yes", threshold=0.1))
    assert "One change that takes lung=yes below 10%" in text
    assert "xray: yes -> no           0.000215" in text
    text = str(net.explain("lung", {"smoke": "no"}, state="yes", threshold=0.5))
    assert "No change of a single finding takes lung=yes to or above 50%." in text
    with pytest.raises(tacit.TacitError, match="of which state"):
        net.explain("lung", {"smoke": "no"}, threshold=0.5)
    with pytest.raises(tacit.TacitError, match="threshold is 10, expected a probability"):
        net.explain("lung", {"smoke": "no"}, state="yes", threshold=10)


def screened(copies=3):
    """An illness, and findings that all say the same."""
    net = tacit.Network()
    net.add("ill", states=["yes", "no"], cpt=[0.1, 0.9])
    net.add("sign", ["ill"], ["seen", "unseen"], [[0.99, 0.01], [0.02, 0.98]])
    for i in range(copies):
        net.add(f"note{i}", ["sign"], ["seen", "unseen"], [[0.999, 0.001], [0.001, 0.999]])
    return net


def test_findings_that_say_the_same_are_told_together():
    names = ["note0", "note1", "note2"]
    found = tacit.compile(screened(), "ill", names).explain(dict.fromkeys(names, "seen"))
    assert max(abs(one.weight[0]) for one in found.findings) < 0.1
    assert found.together.weight[0] > 3.5
    close(found.together.without, [0.1, 0.9])
    text = str(found)
    assert "all together    0.100000      +3.9" in text
    assert "No change of a single finding makes another state than ill=yes the most probable." in text
    assert "No change of a single finding" in found._repr_html_()


def test_findings_that_weigh_nothing_are_counted():
    net = screened(copies=1)
    for i in range(6):
        net.add(f"idle{i}", cpt=[0.5, 0.5])
    text = str(net.explain("ill", {"note0": "seen", **{f"idle{i}": "true" for i in range(6)}}))
    assert "idle3: true " not in text
    assert text.splitlines()[text.splitlines().index("6 more findings weigh 0") - 1].startswith("all together")
    text = str(net.explain("ill", {"note0": "seen", **{f"idle{i}": "true" for i in range(3)}}))
    assert text.splitlines().count("idle0, idle1, idle2 weigh 0") == 1
    assert "idle0: true " in str(net.explain("ill", {"idle0": "true"}))


def test_the_smallest_change_comes_first(monkeypatch):
    net = screened(copies=2)
    tac = tacit.compile(net, "ill", ["note0", "note1", "sign"])
    found = tac.explain({"note0": "seen", "note1": "seen"})
    assert [(c.text, c.state) for c in found.changes] == [
        ("note0: seen -> unseen", "no"),
        ("note1: seen -> unseen", "no"),
    ]
    text = str(found)
    assert "One change that makes another state the most probable\nchange" in text
    assert "Removing any one finding leaves ill=yes the most probable." in text
    alone = tac.explain({"sign": "seen"})
    assert [c.text for c in alone.changes] == ["without sign: seen", "sign: seen -> unseen"]
    close(alone.changes[0].posterior, [0.1, 0.9])
    assert "Removing" not in str(alone)
    assert "without sign: seen" in alone._repr_html_()
    monkeypatch.setattr("tacit.theory.explain_changes.MAX_WORK", 0)
    few = tac.explain({"note0": "seen", "note1": "seen"})
    assert (few.changes, few.all_changes) == ((), False)
    assert "No change" not in str(few)
    assert "Removing any one finding leaves" in str(few)


def test_explanations_are_frames():
    net = screened(copies=1)
    found = net.explain("ill", {"note0": "seen"})
    assert found.to_pandas().to_dict("records") == [
        {
            "finding": "note0",
            "value": "seen",
            "without": found.findings[0].without[0],
            "weight": found.findings[0].weight[0],
        }
    ]
    assert found.to_polars().columns == ["finding", "value", "without", "weight"]
    tested = tacit.compile(tacit.examples.abc(), "B", ["A"]).explain({"A": 0.8})
    assert tested.to_pandas()["margin"].tolist() == [test.margin for test in tested.tests]
    assert tested.to_polars()["selected"].to_list() == [test.selected for test in tested.tests]


# two rows compared ----------------------------------------------------------------------------------------


@given(strategies.queries(testing=False), st.data())
@settings(max_examples=25, deadline=None)
def test_differences_lead_from_one_row_to_the_other(case, data):
    net, query, first = case
    assume(first)
    second = {n: data.draw(st.sampled_from([None, *net.states(n)])) for n in first}
    tac = tacit.compile(net, query, list(first), engine="numpy")
    assume(not any(np.isneginf(tac.log_evidence(row)[0]) for row in (first, second)))
    found = tac.compare(first, second)
    close(found.posterior[0], semantics.posterior(net, query, first)[0])
    close(found.posterior[1], semantics.posterior(net, query, second)[0])
    row = dict(first)
    for one in found.differences:
        row[one.name] = second[one.name]
        if not np.isneginf(tac.log_evidence(row)[0]):
            close(one.posterior, semantics.posterior(net, query, row)[0])
    close(tac.posterior(row), found.posterior[1:])


def test_two_rows_of_a_frame_are_compared():
    net = tacit.examples.kidney_stones()
    frame = pd.DataFrame({"size": ["small", "large"], "treatment": ["B", None]}, index=["Ann", "Bob"])
    tac = tacit.compile(net, "recovery", ["treatment"], hard=["size"])
    found = tac.compare(frame.loc["Ann"], frame.loc["Bob"])
    assert [(one.name, one.first, one.second) for one in found.differences] == [
        ("size", "small", "large"),
        ("treatment", "B", "-"),
    ]
    close(found.posterior, tac.posterior(frame))
    odds = np.log(found.posterior[:, 0] / found.posterior[:, 1])
    close(sum(one.weight[0] for one in found.differences), odds[1] - odds[0])
    assert found.conclusion.endswith("from 86.7% to 72.0%, mainly because size changes from small to large.")
    title, head = str(found).splitlines()[3:5]
    assert (title, head.split()) == ("P*(recovery) of two rows", ["recovery", "Ann", "Bob", "difference"])
    assert "log-odds of recovery=yes, set in turn (nats)" in str(found)
    assert found.to_pandas().columns.tolist() == found.to_polars().columns
    assert tac.compare(frame.loc["Ann"], frame.loc["Bob"], state="no").to_pandas()["weight"][0] > 0
    assert "treatment" in found._repr_html_()
    assert str(tac.compare(frame.loc["Ann"], frame.loc["Ann"])).endswith("No findings differ.")
    with pytest.raises(EvidenceError, match="compare takes one row of evidence, got 2 rows"):
        tac.compare(frame, frame.loc["Bob"])


def test_values_that_differ_are_told_apart():
    net = tacit.Network()
    net.add("S", cpt=[0.5, 0.5])
    net.add("G", ["S"], cpt=tacit.Gaussian([1234566.0, 1234574.0], [9.0, 9.0]))
    net.add("H", ["S"], cpt=[[0.9, 0.1], [0.1, 0.9]])
    why = net.compare("S", {"G": 1234566.0, "H": 0.5}, {"G": 1234574.0, "H": 0.5000001})
    assert {one.text for one in why.differences} == {
        "G changes from 1234566 to 1234574",
        "H changes from true 0.5 to true 0.5000001",
    }
    assert net.explain("S", {"G": 1234566.0}).evidence == {"G": "1234566"}


def test_a_network_compares_rows_without_a_compiled_query():
    net = tacit.examples.kidney_stones()
    rows = {"size": "small", "treatment": "B"}, {"size": "large"}
    tac = tacit.compile(net, "recovery", ["size", "treatment"])
    assert str(net.compare("recovery", *rows)) == str(tac.compare(*rows))
    assert str(net.compare("recovery", *rows, state="no")) == str(tac.compare(*rows, state="no"))
    with pytest.raises(EvidenceError, match="compare takes one row of evidence, got 2 rows"):
        net.compare("recovery", {"size": ["small", "large"]}, {})


def test_rows_are_compared_by_their_states_where_all_states_are_too_many(monkeypatch):
    net, kept = tacit.examples.kidney_stones(), Network._kept
    rows = {"size": "small", "treatment": "B"}, {"size": "large", "treatment": None}
    expected = str(net.compare("recovery", *rows))

    def refusing(self, asked, soft, hard, given):
        if not hard:
            raise TooLargeError("too large")
        assert (soft, hard) == (("treatment",), ("size",))
        return kept(self, asked, soft, hard, given)

    monkeypatch.setattr(Network, "_kept", refusing)
    assert str(net.compare("recovery", *rows)) == expected


def test_an_impossible_row_cannot_be_compared():
    net = tacit.Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("B", ["A"], cpt=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(EvidenceError, match="second row: the evidence has probability 0"):
        tacit.compile(net, "B", ["A"]).compare({}, {"A": "false"})


def test_errors_say_which_of_two_rows_is_wrong():
    frame = pd.DataFrame({"size": ["small", "huge"]}, index=["Ann", "Bob"])
    net = tacit.examples.kidney_stones()
    with pytest.raises(EvidenceError, match="Bob: evidence on 'size': 'huge' is not a state"):
        net.compare("recovery", frame.loc["Ann"], frame.loc["Bob"])
    with pytest.raises(EvidenceError, match="second row: evidence on 'size': 'huge' is not a state"):
        tacit.compile(net, "recovery", ["size"]).compare({}, {"size": "huge"})


# asked of the network -------------------------------------------------------------------------------------


def test_a_network_explains_as_its_query_does():
    net = tacit.examples.diamond(seed=1)
    row = {"C": "false", "A": 0.45}
    same = tacit.compile(net, "D", ["A", "C"]).explain(row, state="false")
    why = net.explain("D", row, state="false")
    assert str(why) == str(same)
    assert str(net.explain("D")) == str(tacit.compile(net, "D").explain())


def test_a_network_leaves_the_query_out_of_a_frame():
    net = tacit.examples.kidney_stones()
    frame = pd.DataFrame({"size": ["small"], "recovery": ["yes"]})
    with pytest.warns(tacit.UnusedColumnWarning, match="recovery"):
        why = net.explain("recovery", frame)
    assert why.evidence == {"size": "small"}


def test_where_all_states_are_too_many_a_network_explains_the_row_alone(monkeypatch):
    net = tacit.examples.kidney_stones()
    usual = Network._kept

    def refused(self, asked, soft, hard, given):
        if not given:
            raise TooLargeError("too wide")
        return usual(self, asked, soft, hard, given)

    monkeypatch.setattr(Network, "_kept", refused)
    why = net.explain("recovery", {"size": "small"})
    close(why.posterior, semantics.posterior(net, "recovery", {"size": "small"})[0])
    assert why.findings == ()  # states that are given are no findings


@pytest.mark.parametrize(
    ("query", "row", "message"),
    [
        ("D", {"A": [0.1, 0.2]}, "explain takes one row of evidence, got 2 rows"),
        ("E", {}, "'E'"),
        (["A", "B"], {}, "a query of one variable is needed here"),
        (None, {}, "a query of one variable is needed here"),
    ],
)
def test_what_a_network_cannot_explain(query, row, message):
    with pytest.raises(tacit.TacitError, match=message):
        tacit.examples.diamond().explain(query, row)


@pytest.mark.parametrize(
    ("row", "state", "expected"),
    [
        ({}, None, "S=yes is the most probable with 60.0%, without any evidence."),
        ({"X": "no"}, None, "S=no is the most probable with 57.1%, because of X: no (40.0% without it)."),
        ({"X": "no"}, "yes", "S=yes has 42.9%, less than no with 57.1%, because of X: no (60.0% without it)."),
        ({"Y": "no"}, None, "S=yes is the most probable with 60.0%, and no finding changes that."),
        (
            {"X": 0.25},
            "no",
            "S=no has 50.0%, and no other state is more probable, because of X: yes 0.25 (40.0% without it).",
        ),
    ],
)
def test_an_explanation_begins_with_its_conclusion(row, state, expected):
    net = Network()
    net.add("S", states=["yes", "no"], cpt=[0.6, 0.4])
    net.add("X", ["S"], states=["yes", "no"], cpt=[[0.5, 0.5], [0.0, 1.0]])
    net.add("Y", states=["yes", "no"], cpt=[0.5, 0.5])
    assert net.explain("S", row, state=state).conclusion == expected


def test_the_number_of_a_row_is_told_with_its_interval():
    net = tacit.Network()
    net.add("Age", bins=[0, 40, 65, 100], cpt=[0.3, 0.4, 0.3])
    net.add("Sex", cpt=[0.5, 0.5])
    net.add("Ill", ["Age"], cpt=[[0.1, 0.9], [0.2, 0.8], [0.5, 0.5]])
    tac = tacit.compile(net, "Ill", ["Age", "Sex"])
    for age in (52, 52.0, np.float32(52), [52], pd.Series([52]), pd.DataFrame({"Age": [52]})["Age"]):
        for explained in (net, tac):
            query = ["Ill"] if explained is net else []
            text = str(explained.explain(*query, {"Age": age, "Sex": "true"}))
            assert "Age: 52 in [40, 65)" in text
            assert "Sex weighs 0" in text
            assert "+0\n" not in text
    why = net.compare("Ill", {"Age": 70.25, "Sex": "true"}, {"Age": "[0, 40)", "Sex": "false"})
    assert next((one.first, one.second) for one in why.differences) == ("70.25 in [65, 100]", "[0, 40)")
    assert "Sex weighs 0" in str(why)
    assert "+0\n" not in str(why)
    assert net.explain("Ill", {"Age": [[0.2, 0.3, 0.5]]}).evidence["Age"].startswith("[0, 40) 0.2")
    assert tac.explain(tac.read({"Age": 52})).evidence["Age"] == "52 in [40, 65)"

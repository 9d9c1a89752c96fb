"""What would have been: equal to an enumeration of all that is random, on every engine."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import NetworkError, TacitError, examples
from tests.causal.worlds import counterfactual, functional_networks
from tests.helpers import ENGINES_OF_MANY, close, impossible, tries

ROWS = 4


@st.composite
def questions(draw):
    """A functional network, what is asked, what is set, and rows of evidence, soft and hard."""
    net, rng = draw(functional_networks())
    names = list(net)
    x = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    query = draw(st.sampled_from([name for name in names if name not in x] or names))
    seen = [name for name in names if rng.random() < 0.6]
    rows = {}
    for name in seen:
        card = net.variable(name).card
        hard = np.eye(card)[rng.integers(0, card, ROWS)]
        rows[name] = np.where(rng.random((ROWS, 1)) < 0.5, hard, rng.random((ROWS, card)) + 0.01)
    would = {name: rng.integers(0, net.variable(name).card, ROWS) for name in x}
    return net, query, rows, would


@impossible
@pytest.mark.parametrize("engine", ENGINES_OF_MANY)
def test_answers_are_those_of_the_enumeration(engine):
    @tries(30)
    @given(case=questions())
    def check(case):
        net, query, rows, would = case
        if query in would:
            with pytest.raises(TacitError, match="is in would="):
                tacit.compile(net, query, list(rows), would=list(would))
            return
        tac = tacit.compile(net, query, list(rows), would=list(would), engine=engine)
        set_to = {f"{name}.would": states for name, states in would.items()}
        found = tac.posterior({**rows, **set_to})
        for i in range(ROWS):
            of_row = {name: likelihoods[i] for name, likelihoods in rows.items()}
            close(found[i], counterfactual(net, query, of_row, {n: int(s[i]) for n, s in would.items()}))

    check()


def coins(rule):
    """Two fair coins, and what they and D make of Y."""
    net = tacit.Network()
    for name in ("U1", "U2", "D"):
        net.add(name, states=2, cpt=[0.5, 0.5])
    net.add("Y", ["D", "U1", "U2"], 2, tacit.CPT.from_function(lambda d, a, b: int(rule(d, a, b))))
    return net


@pytest.mark.parametrize(
    ("rule", "d", "y", "would", "expected"),
    [
        (lambda d, a, b: d and a != b, 1, 1, 1, 1.0),  # marginals of the coins would say 0.5
        (lambda d, a, b: d and a != b, 1, 1, 0, 0.0),
        (lambda d, a, b: d and a != b, 0, 0, 1, 0.5),
        (lambda d, a, b: (a != b) != d, 0, 1, 1, 0.0),
        (lambda d, a, b: (a != b) != d, 1, 0, 0, 1.0),
        (lambda d, a, b: (a and b) or d, 1, 1, 0, 0.25),
        (lambda d, a, b: (a and b) or d, 0, 0, 1, 1.0),
        (lambda d, a, b: (a or b) and d, 0, 0, 1, 0.75),
        (lambda d, a, b: a == b if d else a, 0, 1, 1, 0.5),
        (lambda d, a, b: a == b if d else a and b, 0, 1, 1, 1.0),
        (lambda d, a, b: a == b if d else a and b, 0, 0, 1, 1 / 3),
        (lambda d, a, b: a == b if d else a and b, 1, 1, 0, 0.5),
    ],
)
def test_evidence_couples_roots(rule, d, y, would, expected):
    tac = tacit.compile(coins(rule), "Y", ["D", "Y"], would=["D"])
    close(tac.posterior({"D": d, "Y": y, "D.would": would})[0, 1], expected)


def test_what_is_set_to_what_it_was_changes_nothing():
    rng = np.random.default_rng(0)
    net = examples.kidney_stones().mechanisms()
    rows, n = dict(net.sample(20_000, seed=1)), 20_000
    seen = {name: rows[name] for name in ("size", "treatment", "recovery")}
    tac = tacit.compile(net, "recovery", list(seen), would=["treatment"])
    same = tac.posterior({**seen, "treatment.would": seen["treatment"]})
    assert (same.argmax(axis=1) == (seen["recovery"] == "no")).all()  # consistency
    close(same.max(axis=1), np.ones(n))
    other = tacit.compile(net, "size", list(seen), would=["treatment"])  # exclusion: what X does not reach
    drawn = rng.choice(["A", "B"], n)
    close(other.posterior({**seen, "treatment.would": drawn})[:, 0], (seen["size"] == "small").astype(float))


def test_composition():
    """Setting Z, too, to what it would have been changes nothing."""
    net = tacit.Network()
    net.add("U", states=3, cpt=[0.2, 0.5, 0.3])
    net.add("X", cpt=[0.4, 0.6])
    net.add("Z", ["X", "U"], 3, tacit.CPT.from_function(lambda x, u: (u + (x == "true")) % 3))
    net.add("Y", ["Z", "X", "U"], 3, tacit.CPT.from_function(lambda z, x, u: (z * u + (x == "true")) % 3))
    alone = tacit.compile(net, ["Z", "Y"], ["U"], would=["X"])
    joint = alone.posterior({"U": [0, 1, 2], "X.would": "true"})
    z = joint.sum(axis=2).argmax(axis=1)
    together = tacit.compile(net, "Y", ["U"], would=["X", "Z"])
    close(together.posterior({"U": [0, 1, 2], "X.would": "true", "Z.would": z}), joint.sum(axis=1))


def test_other_questions_are_about_both_worlds():
    net = coins(lambda d, a, b: d and a != b)
    tac = tacit.compile(net, None, ["D", "Y"], would=["D"])
    row = {"D": 1, "Y": 1, "D.would": 0}
    best = tac.mpe(row)
    assert (best.states["Y"][0], best.states["Y.would"][0]) == (1, 0)
    drawn = tac.sample(row, n=50)
    assert (drawn["Y.would"] == 0).all()
    assert (drawn["U1"] != drawn["U2"]).all()
    close(tac.marginals(row)["Y.would"], [[1.0, 0.0]])


def test_what_is_random_below_is_refused_with_two_ways_out():
    net = examples.kidney_stones()
    with pytest.raises(
        NetworkError,
        match=r"'recovery' is below 'treatment'.*random.*mechanisms\(would=\['treatment'\]\).*causal.bounds",
    ):
        tacit.compile(net, "recovery", ["size"], would=["treatment"])
    close(tacit.compile(net, "size", ["recovery"], would=["treatment"]).posterior(
        {"recovery": "yes", "treatment.would": "A"}), net.posterior("size", {"recovery": "yes"}))  # fmt: skip


def test_testing_nodes_are_shared_or_refused_with_a_reason():
    net = examples.abc()  # A -> B (testing), A -> C
    net.add("D", ["C", "A"], 2, tacit.CPT.from_function(lambda c, a: int(c == "lo" and a == "true")))
    with pytest.raises(NetworkError, match="'B' is below 'A', and it is testing"):
        tacit.compile(net, "B", ["C"], would=["A"])
    tac = tacit.compile(net, ["B", "D"], ["A", "C"], would=["C"])
    found = tac.posterior({"A": 0.8, "C.would": ["lo", "hi"]})
    plain = tacit.compile(net.do({"C": "lo"}), ["B", "D"], ["A"]).posterior({"A": 0.8})
    close(found[0], plain[0])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"would": ["Z"]}, "'Z' is not a variable"),
        ({"would": "D"}, "would must be a sequence of names"),
        ({"would": ["D"], "do": ["Y"]}, "'Y' is in do=, and 'D' in would= may change it"),
    ],
)
def test_what_cannot_be_asked(settings, message):
    with pytest.raises(TacitError, match=message):
        tacit.compile(coins(lambda d, a, b: d), "Y", ["U1"], **settings)


def test_every_row_says_what_would_have_been():
    tac = tacit.compile(coins(lambda d, a, b: d), "Y", ["U1"], would=["D"])
    with pytest.raises(tacit.EvidenceError, match=r"'D\.would'"):
        tac.posterior({"U1": 0})


def test_other_numbers_are_those_of_networks_of_two_worlds():
    net = coins(lambda d, a, b: d ^ a)
    other = net.with_cpts({"U1": [0.9, 0.1]})
    tac, moved = (tacit.compile(one, "Y", ["Y", "D"], would=["D"]) for one in (net, other))
    row = {"D.would": 1}
    for take in (tac.set_parameters, lambda one: tac.posterior(row, tables=tacit.Ensemble.of([one]))):
        with pytest.raises(NetworkError, match=r"no variable '.*\.would', and would= asks networks of two worlds"):
            take(other)
    close(tac.posterior(row, tables=tacit.Ensemble.of([moved.network])), [moved.posterior(row)])
    tac.set_parameters(moved.network)
    close(tac.posterior(row), moved.posterior(row))


def test_a_variable_with_the_name_of_a_counterpart_is_refused():
    net = tacit.Network()
    for name in ("X", "B", "B.would"):
        net.add(name, cpt=[0.5, 0.5])
    with pytest.raises(NetworkError, match=r"'B.would' is what the counterpart of 'B'.*another name"):
        tacit.compile(net, "B", would=["X"])


def test_what_would_have_been_may_be_the_same_in_all_rows():
    net = coins(lambda d, a, b: d and a != b)
    tac = tacit.compile(net, "Y", ["D", "Y"], would=["D"], given={"D.would": 1})
    close(tac.posterior({"D": 1, "Y": [1, 0]})[:, 1], [1.0, 0.0])

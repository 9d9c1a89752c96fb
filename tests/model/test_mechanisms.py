"""Networks with mechanisms answer as before, and all that is random in them are roots."""

import numpy as np
import pytest
from hypothesis import assume, given

import tacit
from tacit import NetworkError, TooLargeError, examples
from tacit.model.twin import is_function
from tests.helpers import close, impossible, tries
from tests.strategies import queries


@impossible
@tries(40)
@given(case=queries(rows=2, testing=False, max_nodes=4))
def test_answers_stay(case):
    net, query, columns = case
    for kind in ("response", "monotone"):
        try:
            functional = net.mechanisms(kind)
        except TooLargeError:
            continue
        except NetworkError:
            if kind == "response":
                raise
            continue
        assert all(is_function(functional.cpt(name)) for name in functional if functional.parents(name))
        close(functional.posterior(query, columns), net.posterior(query, columns))


def test_responses_answer_each_parent_state_by_itself():
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("Y", ["X"], cpt=[[0.9, 0.1], [0.4, 0.6]])
    net.add("Z", ["X"], cpt=[[1.0, 0.0], [0.0, 1.0]])  # a function already
    found = net.mechanisms()
    assert found.variables == ("X", "Y.response", "Y", "Z")
    close(found.table("Y.response"), [0.36, 0.54, 0.04, 0.06])


def test_a_monotone_mechanism_never_turns_against_its_direction():
    net = tacit.Network()
    net.add("X", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("Y", ["X"], 3, [[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.1, 0.2, 0.7]])
    found = net.mechanisms("monotone")
    codes = found.table("Y").argmax(axis=-1)
    assert (np.diff(codes, axis=0) >= 0).all()
    assert len(found.table("Y.response")) == 7


@impossible
@tries(25)
@given(case=queries(rows=1, testing=False, max_nodes=4))
def test_parents_that_do_not_change_need_no_answers(case):
    """Nodes below what is set are functions of fewer parents, and what would have been is the same."""
    net, query, _ = case
    cause = next((name for name in net if net.children(name)), None)
    assume(cause is not None)
    below = next(name for name in net if cause in net.parents(name))
    row = {f"{cause}.would": [net.states(cause)[0]], query: np.linspace(0.2, 1, net.variable(query).card)[None]}
    for kind in ("response", "monotone"):
        try:
            full = net.mechanisms(kind)
        except (TooLargeError, NetworkError):
            continue
        small = net.mechanisms(kind, would=[cause])
        close(small.posterior(query), net.posterior(query))
        answers = [tacit.compile(own, below, [query], would=[cause]).posterior(row) for own in (small, full)]
        close(*answers)


def two_strata(states=10):
    """X -> Y <- S: 2^20 functions of X and S, and in each S another direction."""
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("S", states=states, cpt=np.full(states, 1 / states))
    p = np.stack([np.linspace(0.1, 0.9, states), np.linspace(0.9, 0.1, states)])
    net.add("Y", ["X", "S"], cpt=np.stack([p, 1 - p], axis=-1))
    return net


def test_messages_advise_what_is_possible():
    net = two_strata()
    with pytest.raises(TooLargeError, match=r"^node 'Y' has 1,048,576 response.*would=\[...\], the variables[^;]*$"):
        net.mechanisms()
    with pytest.raises(NetworkError, match=r"^node 'Y' has no monotone.*as 'X' goes.*leaves out parents .* change$"):
        net.mechanisms("monotone")
    for kind in ("response", "monotone", {"Y": "monotone"}):
        close(net.mechanisms(kind, would=["X"]).posterior("Y"), net.posterior("Y"))
    tacit.causal.bounds(net, ("X", "true", "false"), ("Y", "true"))
    with pytest.raises(TooLargeError, match=r"kind=\{'Y': None\} leaves out what the question does not need"):
        net.mechanisms(would=["X", "S"])
    assert net.mechanisms({"Y": None}, would=["X", "S"]) == net
    zigzag = np.tile([[0.4, 0.6], [0.7, 0.3]], (2, 10, 1))
    with pytest.raises(TooLargeError, match=r"; merge states of the parents, or leave out edges$"):
        tacit.causal.bounds(two_strata(20).with_cpts({"Y": zigzag}), ("S", 0, 1), ("Y", "true"))
    with pytest.raises(NetworkError, match="kind names 'X', of which no mechanism is asked; expected some of 'Y'"):
        net.mechanisms({"X": "response"})


def test_where_no_monotone_mechanism_exists():
    net = examples.kidney_stones().with_cpts({"recovery": [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.6, 0.4]]]})
    said = (
        r"^node 'recovery' has no monotone mechanism: as 'size'.* or net.mechanisms\(\{'treatment': 'monotone'\}\) is"
    )
    with pytest.raises(NetworkError, match=said):
        net.mechanisms("monotone")
    net.mechanisms({"treatment": "monotone"})
    net.add("relapse", ["size", "treatment"], cpt=[[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.6, 0.4]]])
    with pytest.raises(NetworkError, match=r"^nodes 'recovery', 'relapse' have no monotone mechanism: as 'size' goes"):
        net.mechanisms("monotone")


def test_what_has_none():
    with pytest.raises(NetworkError, match="expected one of 'response', 'monotone'"):
        examples.abc().mechanisms("other")
    with pytest.raises(NetworkError, match="'B' is testing"):
        examples.abc().mechanisms()
    with pytest.raises(TooLargeError, match="response functions"):
        examples.alarm().mechanisms()


@pytest.mark.parametrize("p", [1e-8, 5e-15, 1e-40])
def test_small_probabilities_keep_their_digits(p):
    net = tacit.Network()
    net.add("X", cpt=[0.5, 0.5])
    net.add("Y", ["X"], ["no", "yes"], [[1 - 2 * p, 2 * p], [1 - p, p]])
    net.value("Worth", ["Y"], [1, 0])
    found = net.mechanisms("monotone")
    close(found.posterior("Y", {"X": ["true", "false"]})[:, 1] / p, [2.0, 1.0])
    assert found.value_nodes == net.value_nodes

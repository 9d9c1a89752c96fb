"""Networks with mechanisms answer as before, and all that is random in them are roots."""

import numpy as np
import pytest
from hypothesis import given

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


def test_where_no_monotone_mechanism_exists():
    net = examples.kidney_stones().with_cpts({"recovery": [[[0.9, 0.1], [0.5, 0.5]], [[0.2, 0.8], [0.6, 0.4]]]})
    said = r"^node 'recovery' has no monotone mechanism: as 'size'.*; 'treatment' has one; tacit.causal.bounds needs no"
    with pytest.raises(NetworkError, match=said):
        net.mechanisms("monotone")
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

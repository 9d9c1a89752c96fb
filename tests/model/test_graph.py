"""Descendants, Markov blankets and d-separation, and what they mean for posteriors (peers: test_causal_peers.py)."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit import CPT, Network, NetworkError, examples, semantics
from tests.helpers import close
from tests.strategies import networks, rngs, tie_margin


def settled(net, row):
    """Whether the row is possible above testing nodes, and rounding selects no other tables."""
    return not net.testing_nodes or tie_margin(net, row) > 1e-9


@pytest.mark.parametrize("testing", [False, True])
@given(data=st.data())
def test_where_the_graph_says_independent_no_evidence_on_one_changes_the_posterior_of_the_other(testing, data):
    net = data.draw(networks(max_nodes=5, testing=testing))
    rng = data.draw(rngs)
    known = data.draw(st.lists(st.sampled_from(net.variables), unique=True, max_size=3))
    row = {name: [data.draw(st.sampled_from(net.states(name)))] for name in known}
    free = [name for name in net if name not in known]
    for a, b in itertools.permutations(free, 2):
        if net.independent(a, b, known) and settled(net, row):
            before = semantics.posterior(net, a, row)
            card = len(net.states(b))
            for likelihoods in [*np.eye(card), *rng.random((2, card))]:
                more = row | {b: [likelihoods]}
                after = semantics.posterior(net, a, more)
                if settled(net, more) and not np.isnan(after).any():
                    close(after, before, 1e-12)


@given(networks(unset=True))
def test_a_variable_is_independent_of_all_others_given_its_blanket_and_of_none_in_it_given_the_rest(net):
    for name in net:
        blanket = net.markov_blanket(name)
        assert net.independent(name, [n for n in net if n != name and n not in blanket], blanket)
        for other in blanket:
            assert not net.independent(name, other, [n for n in net if n not in (name, other)])


@given(networks(unset=True))
def test_a_variable_is_independent_of_what_is_not_below_given_its_parents(net):
    for name in net:
        parents, below = net.parents(name), net.descendants(name)
        assert net.independent(name, [n for n in net if n not in (name, *parents, *below)], parents)


def test_evidence_may_select_other_tables_but_none_that_matters():
    net = examples.diamond()
    assert net.independent("B", "C", given="A")
    assert not net.independent("B", "C")
    assert not net.independent("B", "C", given=["A", "D"])
    alone = semantics.posterior(net, "B", {"A": "true"})
    close(semantics.posterior(net, "B", {"A": "true", "C": [1.0, 0.3, 0.0]}), np.repeat(alone, 3, axis=0))


def test_the_graph_does_not_know_the_numbers():
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=[[0.2, 0.8], [0.2, 0.8]])
    net.add("C", ["A"], cpt=CPT.from_function(lambda a: a))
    net.add("D", ["A"], cpt=[[0.9, 0.1], [0.3, 0.7]])
    assert not net.independent("A", "B")  # though the rows are equal
    assert not net.independent("A", "D", given="C")  # though C tells A


def test_blankets_and_descendants_come_in_the_order_of_the_network():
    net = Network()
    for name, parents in {"Z": "", "A": "Z", "Y": "", "M": "AY", "B": "M", "X": ""}.items():
        net.add(name, list(parents))
    assert net.markov_blanket("A") == ("Z", "Y", "M")
    assert net.descendants("Z") == ("A", "M", "B")
    assert net.markov_blanket("X") == net.descendants("X") == ()


@pytest.mark.parametrize("ask", [Network.descendants, Network.markov_blanket])
def test_an_unknown_variable_is_an_error_that_suggests_a_name(ask):
    with pytest.raises(NetworkError, match="'Size' is not a variable of the network; did you mean 'size'"):
        ask(examples.kidney_stones(), "Size")


@pytest.mark.parametrize(
    ("sets", "message"),
    [
        (("size", "treatmen"), "'treatmen' is not a variable of the network; did you mean 'treatment'"),
        (("size", "small"), "'small' is not a variable of the network; it is a state of 'size'"),
        ((["size", "treatmen"], "recovery"), "'treatmen' is not a variable"),
        (("size", "recovery", "treatmen"), "'treatmen' is not a variable"),
        (("size", 3), "3 is not a variable"),
        (("size", [["recovery"]]), r"expected the name of one variable, got \['recovery'\]"),
        (("size", ["recovery", "size"]), "'size' is both in a and in b; a variable may be in one of them only"),
        (("size", "recovery", ["treatment", "size"]), "'size' is both in a and in given"),
        (("size", "recovery", "recovery"), "'recovery' is both in b and in given"),
    ],
)
def test_sets_that_make_no_sense_are_refused(sets, message):
    with pytest.raises(NetworkError, match=message):
        examples.kidney_stones().independent(*sets)


def test_nothing_is_independent_of_everything():
    net = examples.kidney_stones()
    assert net.independent([], net.variables)
    assert net.independent("size", [], "treatment")


def test_long_chains_and_wide_stars_take_linear_time():
    chain, star, nodes, table = Network(), Network(), 20_000, CPT([[0.9, 0.1], [0.2, 0.8]])
    for i in range(nodes):
        chain.add(f"X{i}", [f"X{i - 1}"] if i else [], cpt=table if i else [0.5, 0.5])
        star.add(f"X{i}", ["X0"] if i else [], cpt=table if i else [0.5, 0.5])
    last = f"X{nodes - 1}"
    assert not chain.independent("X0", last)
    assert chain.independent("X0", last, given="X10000")
    assert not star.independent(star.variables[1:10_000], star.variables[10_000:])
    assert star.independent(star.variables[1:10_000], star.variables[10_000:], given="X0")
    assert len(chain.descendants("X0")) == len(star.markov_blanket("X0")) == nodes - 1

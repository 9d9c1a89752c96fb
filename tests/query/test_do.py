"""Interventions: published examples, and what they mean on random networks (peers: test_causal_peers.py)."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tacit import CPT, Mux, Network, NetworkError, NoisyOr, examples, semantics
from tests.helpers import close
from tests.strategies import networks, tie_margin, tied_networks

MARGIN = 1e-9  # a posterior this near to its threshold may fall on either side of it by rounding


def effect(net, cause, outcome):
    """P(outcome | do(cause)), for every state of the cause: (states of the cause, states of the outcome)."""
    return np.concatenate([net.do({cause: state}).posterior(outcome) for state in net.states(cause)])


# published examples ---------------------------------------------------------------------------------------


def smoking(hidden):
    """Pearl, Glymour and Jewell, Causal Inference in Statistics: A Primer (2016), Table 3.1: 800 subjects.

    With the genotype `hidden`, smoking tells all of it: the simplest confounder that makes these numbers. Without it,
    smoking takes its place, and the network holds what is observed.
    """
    cancer = [[[0.15, 0.85], [0.10, 0.90]], [[0.95, 0.05], [0.90, 0.10]]]  # of smokers with and without tar, of others
    net = Network("smoking")
    if hidden:
        net.add("genotype", cpt=[0.5, 0.5])
        net.add("smoking", ["genotype"], cpt=[[1, 0], [0, 1]])
    else:
        net.add("smoking", cpt=[0.5, 0.5])
    net.add("tar", ["smoking"], cpt=[[0.95, 0.05], [0.05, 0.95]])
    net.add("cancer", ["genotype" if hidden else "smoking", "tar"], cpt=cancer)
    return net


def front_door(net, cause, mediator, outcome):
    """P(outcome | do(cause)) from observations of the three alone, by front-door adjustment."""
    causes, mediators = net.states(cause), net.states(mediator)
    by_cause = net.posterior(mediator, {cause: list(causes)})  # (cause, mediator)
    rows = {cause: list(causes) * len(mediators), mediator: [m for m in mediators for _ in causes]}
    by_both = net.posterior(outcome, rows).reshape(len(mediators), len(causes), -1)
    return np.einsum("cm,mdo,d->co", by_cause, by_both, net.posterior(cause)[0])


def test_the_better_treatment_of_kidney_stones_looks_worse():
    net = examples.kidney_stones()
    small, large = 357 / 700, 343 / 700
    expected = [small * 81 / 87 + large * 192 / 263, small * 234 / 270 + large * 55 / 80]
    close(effect(net, "treatment", "recovery")[:, 0], expected, 1e-15)
    seen = net.posterior("recovery", {"treatment": ["A", "B"]})[:, 0]
    close(seen, [273 / 350, 289 / 350], 1e-15)
    assert seen[0] < seen[1]
    assert expected[0] > expected[1]


def test_smoking_by_the_hidden_genotype_is_smoking_through_the_front_door():
    ours = effect(smoking(hidden=True), "smoking", "cancer")
    close(ours[:, 0], [0.5475, 0.5025], 1e-15)  # as the book has it
    close(ours, front_door(smoking(hidden=False), "smoking", "tar", "cancer"), 1e-15)


@given(seed=st.integers(0, 2**32 - 1))
def test_the_front_door_needs_no_hidden_numbers(seed):
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("U", states=3, cpt=rng.dirichlet(np.ones(3)))
    net.add("X", ["U"], ["a", "b"], rng.dirichlet(np.ones(2), 3))
    net.add("M", ["X"], ["p", "q", "r"], rng.dirichlet(np.ones(3), 2))
    net.add("Y", ["U", "M"], cpt=rng.dirichlet(np.ones(2), (3, 3)))
    close(effect(net, "X", "Y"), front_door(net, "X", "M", "Y"), 1e-9)


# meaning --------------------------------------------------------------------------------------------------


@given(tied_networks(max_nodes=5, unset=True), st.data())
def test_an_intervention_cuts_the_edges_into_a_variable_and_changes_nothing_else(net, data):
    names = data.draw(st.lists(st.sampled_from(net.variables), unique=True))
    states = {name: data.draw(st.sampled_from(net.states(name))) for name in names}
    done = net.do(states)
    assert (type(done), done.name, done.variables) == (type(net), net.name, net.variables)
    for name in net:
        if name in states:
            assert done.parents(name) == ()
            assert done.states(name) == net.states(name)
            assert done.table(name).tolist() == [float(label == states[name]) for label in net.states(name)]
        else:
            assert done.node(name) == net.node(name)
    assert Network.from_dict(done.to_dict()) == done


@pytest.mark.parametrize("testing", [False, True])
@given(data=st.data())
def test_nothing_flows_up_from_an_intervention_and_what_flows_down_is_the_truncated_product(testing, data):
    net = data.draw(networks(max_nodes=5, testing=testing))
    name = data.draw(st.sampled_from(net.variables))
    state = data.draw(st.sampled_from(net.states(name)))
    done = net.do({name: state})
    assume(min(tie_margin(net, {}), tie_margin(done, {})) > MARGIN)
    below = net.descendants(name)
    for other in net:
        after = done.posterior(other)
        close(after, semantics.posterior(done, other))
        if other != name and other not in below:
            close(after, semantics.posterior(net, other))
    if not testing:
        factors = [net.table(n) for n in net if n != name]
        families = [(*net.parents(n), n) for n in net if n != name]
        place = {n: i for i, n in enumerate(net)}
        fixed = (np.array(net.states(name), dtype=object) == state).astype(float)
        operands = [x for t, f in zip(factors, families, strict=True) for x in (t, [place[n] for n in f])]
        for other in net:
            close(done.posterior(other)[0], np.einsum(*operands, fixed, [place[name]], [place[other]]))


@given(networks(max_nodes=5), st.data())
def test_of_a_root_doing_is_seeing(net, data):
    root = data.draw(st.sampled_from([n for n in net if not net.parents(n)]))
    state = data.draw(st.sampled_from(net.states(root)))
    assume(net.table(root)[net.states(root).index(state)] > 0)
    assume(min(tie_margin(net, {root: [state]}), tie_margin(net.do({root: state}), {})) > MARGIN)
    for other in net:
        close(net.do({root: state}).posterior(other), net.posterior(other, {root: [state]}))


def test_a_test_below_is_selected_by_what_is_done_and_one_above_by_nothing():
    net = examples.diamond()
    done = net.do({"C": "true"})
    assert done.testing_nodes == net.testing_nodes
    selected, alone = semantics.select(done).nodes, semantics.select(net).nodes
    close(selected["B"].posterior, alone["B"].posterior)
    close(selected["D"].posterior[:, 1], [0, 0])
    assert net.do({"B": "true"}).testing_nodes == ("D",)


def test_every_kind_of_node_can_be_set():
    net = Network("kinds")
    for name in "ABC":
        net.add(name, cpt=[0.5, 0.5])
    net.add("or", ["A", "B"], cpt=NoisyOr({"A": 0.5, "B": 0.5}))
    net.add("and", ["A", "B"], cpt=CPT.from_function(lambda a, b: "true" if a == b == "true" else "false"))
    net.add("mux", ["A", "B", "C"], cpt=Mux("A", ["B", "C"]))
    net.add("unknown", ["A", "B"], testing=True)
    done = net.do(dict.fromkeys(["or", "and", "mux", "unknown"], "false"))
    assert all(done.posterior(name).tolist() == [[0.0, 1.0]] for name in ("or", "and", "mux", "unknown"))
    assert done.counts().edges == 0


def test_parents_of_factored_nodes_can_be_set():
    net = Network()
    for name in "ABC":
        net.add(name, cpt=[0.5, 0.5])
    net.add("mux", cpt=Mux("A", ["B", "C"]))
    net.add("or", cpt=NoisyOr({"mux": 0.8}, leak=0.1))
    done = net.do({"A": "false", "C": "true"})
    assert done.posterior("mux").tolist() == [[1.0, 0.0]]
    close(net.do({"mux": "true"}).posterior("or"), [[0.82, 0.18]])


def test_one_node_leaves_its_tie_and_the_others_keep_it():
    net = examples.hmm(5)
    done = net.do({"H3": 0, "E5": 1})
    assert done.ties == {"emission": ("E1", "E2", "E3", "E4"), "transition": ("H2", "H4", "H5")}
    assert (net.parents("H3"), net.ties["transition"]) == (("H2", "E2"), ("H2", "H3", "H4", "H5"))  # as it was
    assert done.with_gamma(4.0).ties == done.ties


def test_of_nothing_it_is_a_copy():
    net = Network("plain")
    net.add("A", cpt=[0.5, 0.5])
    assert net.do({}) == net
    assert net.do({}) is not net


# which state is meant -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "state", "place"),
    [
        (None, "false", 1),
        (None, True, 0),
        (None, np.False_, 1),
        (None, 1, 0),
        (None, 0.0, 1),
        (["lo", "hi"], np.str_("hi"), 1),
        (["lo", "hi"], np.array("hi"), 1),
        (["lo", "hi"], 1.0, 0),
        (3, 2, 2),
        (3, np.int8(2), 2),
        (3, 2.0, 2),
        ([0, 1], 1, 1),
        ([1, 0], 1, 0),
        ([False, True], True, 1),
        ([False, True], np.True_, 1),
        ([0.5, 1.5], np.float32(1.5), 1),
        ([0.1, 0.2], np.float32(0.2), 1),
        (["only"], "only", 0),
        (["lo", "HI"], "hi", 1),
        (["TRUE", "FALSE"], False, 1),
    ],
)
def test_states_are_named_as_in_evidence(states, state, place):
    net = Network()
    net.add("X", states=states, cpt=np.full(len(states) if isinstance(states, list) else states or 2, np.nan))
    expected = np.eye(len(net.states("X")))[place]
    assert net.do({"X": state}).table("X").tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ({"Treatment": "A"}, "'Treatment' is not a variable of the network; did you mean 'treatment'"),
        ({3: "A"}, "3 is not a variable of the network"),
        ({"treatment": "C"}, "do cannot set 'treatment' to 'C'; expected one of 'A', 'B'"),
        ({"size": "small", "treatment": "AB"}, "do cannot set 'treatment' to 'AB'; expected one of 'A', 'B'"),
        ({"treatment": None}, "do cannot set 'treatment' to None"),
        ({"treatment": np.nan}, "do cannot set 'treatment' to nan"),
        ({"treatment": 0.5}, "do cannot set 'treatment' to 0.5"),
        ({"treatment": 1}, "do cannot set 'treatment' to 1"),
        ({"treatment": ["A"]}, r"do cannot set 'treatment' to \['A'\]"),
        ({"treatment": [[1.0, 0.0]]}, "do cannot set 'treatment' to"),
        ({"treatment": {"A": 1}}, "do cannot set 'treatment' to"),
        ("treatment", "do takes a mapping from variables to states, got 'treatment'"),
        (None, "do takes a mapping from variables to states, got None"),
    ],
)
def test_what_is_no_state_is_refused(states, message):
    with pytest.raises(NetworkError, match=message):
        examples.kidney_stones().do(states)

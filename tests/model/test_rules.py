"""Functions, noisy-ors and multiplexers against the tables they stand for."""

import itertools

import numpy as np
import pytest

from tacit import CPT, Mux, Network, NetworkError, NoisyOr, TooLargeError


def roots(**cards):
    net = Network()
    for name, card in cards.items():
        net.add(name, states=card, cpt=np.full(card, 1 / card))
    return net


def test_a_function_may_return_labels_distributions_or_mappings():
    net = roots(A=3)
    answers = {0: "hi", 1: [0.25, 0.75], 2: {"lo": 1}}
    net.add("B", ["A"], ["lo", "hi"], CPT.from_function(answers.get))
    assert net.table("B").tolist() == [[0, 1], [0.25, 0.75], [1, 0]]


def test_a_function_is_called_with_labels_in_the_order_of_the_parents():
    net = roots(A=2, B=3)
    net.add("S", ["B", "A"], 4, CPT.from_function(lambda b, a: np.int64(a + b)))
    for b, a in itertools.product(range(3), range(2)):
        assert net.table("S")[b, a].argmax() == a + b


def test_a_function_of_no_parents_is_a_prior():
    net = Network()
    net.add("A", cpt=CPT.from_function(lambda: [0.25, 0.75]))
    assert net.table("A").tolist() == [0.25, 0.75]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("mid", "node 'B': from_function, row A=0 is wrong: 'mid' is not a state; expected one of 'true', 'false'"),
        (0.5, "0.5 is not a state"),
        (None, "None is not a distribution over 2 states"),
        ([1.0], r"row A=0 is wrong: \[1.0\] is not a distribution over 2 states"),
        ([0.5, 0.6], "node 'B': from_function, row A=0 sums to 1.1, expected 1"),
        ([np.nan, 0.6], "is not a distribution"),
        ({"mid": 1}, "'mid' is not a state of the node"),
        (object, r"row A=0 is wrong: <class 'object'> is not a distribution"),
    ],
)
def test_a_bad_answer_of_a_function_is_named_with_the_parent_state(answer, message):
    with pytest.raises(NetworkError, match=message):
        roots(A=2).add("B", ["A"], cpt=CPT.from_function(lambda a: answer))


def test_a_function_of_too_many_parent_states_is_refused_before_it_is_called():
    net = roots(**{f"A{i}": 2 for i in range(60)})
    with pytest.raises(TooLargeError, match=r"node 'B': the function would be called for about 10\^18 parent states"):
        net.add("B", list(net), cpt=CPT.from_function(pytest.fail))


def test_bound_functions_are_equal_by_outcome_and_can_be_bound_again():
    first, second = roots(A=2), roots(A=2)
    first.add("B", ["A"], cpt=CPT.from_function(lambda a: "true" if a else "false"))
    second.add("B", ["A"], cpt=CPT.from_function(lambda a: ["false", "true"][a]))
    assert first == second
    second.add("C", ["A"], cpt=CPT.from_function(lambda a: "true"))
    assert second.cpt("C") != first.cpt("B")
    first.add("C", ["A"], cpt=first.cpt("B"))
    with pytest.raises(
        NetworkError, match=r"node 'D': the rule is for parents \(2,\) and 2 states, expected \(\) and 2"
    ):
        first.add("D", cpt=first.cpt("B"))


def test_a_noisy_or_is_one_minus_the_product_of_what_inhibits():
    net = roots(A=2, B=3)
    net.add("E", cpt=NoisyOr({"A": 0.6, "B": [0.1, 0.2, 0.0]}, leak=0.05))
    assert net.parents("E") == ("A", "B")
    for a, b in itertools.product(range(2), range(3)):
        absent = 0.95 * (1 - [0.6, 0.0][a]) * (1 - [0.1, 0.2, 0.0][b])
        np.testing.assert_allclose(net.table("E")[a, b], [1 - absent, absent], rtol=1e-15)


def test_named_causes_follow_their_parents_whatever_the_order():
    net = roots(A=2, B=3)
    net.add("E", ["B", "A"], cpt=NoisyOr({"A": 0.6, "B": [0.1, 0.2, 0.0]}))
    net.add("F", ["B", "A"], cpt=NoisyOr([[0.1, 0.2, 0.0], 0.6]))
    assert net.cpt("E") == net.cpt("F")


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 2, 2, 2), (1, 4)])
def test_a_mux_copies_the_selected_input(sizes):
    card = sizes[-1]
    net = roots(**{f"P{i}": k for i, k in enumerate(sizes)})
    parents = [*net][::-1]  # any order of the parents
    net.add("Y", parents, card, Mux("P0", [*net][1:]))
    for state in itertools.product(*map(range, sizes[::-1])):
        of = dict(zip(parents, state, strict=True))
        assert net.table("Y")[state].tolist() == np.eye(card)[of[f"P{of['P0'] + 1}"]].tolist()


@pytest.mark.parametrize(
    ("cpt", "message"),
    [
        (lambda: NoisyOr({"A": 1.5}), "NoisyOr, cause 'A': 1.5 is not a probability, or one per parent state"),
        (lambda: NoisyOr([0.5, [0.1, -0.1]]), r"NoisyOr, cause 1: \[0.1, -0.1\] is not a probability"),
        (lambda: NoisyOr({}, leak=2), r"NoisyOr: leak 2 is not a probability in \[0, 1\]"),
        (lambda: NoisyOr({}, leak="x"), "NoisyOr, leak is not an array of numbers"),
        (lambda: NoisyOr({"Z": 0.5}), "node 'Y': parent 'Z' is not in the network"),
        (lambda: NoisyOr([0.5, 0.5]), "node 'Y': NoisyOr has 2 causes for 0 parents"),
        (lambda: NoisyOr({"A": [0.1, 0.2]}), "node 'Y': NoisyOr, cause 'A': 2 probabilities for 3 states"),
        (lambda: Mux("A", "BC"), "Mux needs a sequence of input names, got 'BC'"),
        (lambda: Mux("A", []), "Mux needs a sequence of input names"),
        (lambda: Mux("A", [1, 2, 3]), "Mux: 1 is not the name of a variable"),
        (lambda: Mux("A", ["A", "B"]), "Mux: the selector and the inputs must all be different variables"),
        (lambda: Mux("A", ["B", "C"]), "node 'Y': Mux: selector 'A' has 3 states for 2 inputs"),
        (lambda: Mux("B", ["A", "C"]), "node 'Y': Mux: input 'A' has 3 states, expected 2 as the node itself"),
        (lambda: CPT.from_function(5), "from_function needs a function of the parents' labels, got 5"),
    ],
)
def test_a_bad_factored_cpt_is_refused(cpt, message):
    with pytest.raises(NetworkError, match=message):
        roots(A=3, B=2, C=2).add("Y", cpt=cpt())


@pytest.mark.parametrize(
    ("parents", "states", "cpt", "message"),
    [
        (["B"], None, NoisyOr({"A": 0.5}), r"NoisyOr names the causes \['A'\], but the parents are \['B'\]"),
        (["A"], 3, NoisyOr([0.5]), "NoisyOr needs a binary node, this one has 3 states"),
        (["B", "C"], None, Mux("B", ["C", "D"]), "exactly the selector and the inputs; 'D' is only one of them"),
    ],
)
def test_a_factored_cpt_must_fit_the_parents_and_states(parents, states, cpt, message):
    with pytest.raises(NetworkError, match=f"node 'Y': .*{message}"):
        roots(A=3, B=2, C=2).add("Y", parents, states, cpt)


def test_a_wide_factored_cpt_is_small_until_its_table_is_asked_for():
    net = roots(I=200, **{f"Y{i}": 2 for i in range(200)})
    net.add("Y", cpt=Mux("I", [f"Y{i}" for i in range(200)]))
    net.add("E", cpt=NoisyOr({f"Y{i}": 0.1 for i in range(200)}))
    for name in "YE":
        with pytest.raises(TooLargeError, match=f"node '{name}': its table would have about 10.* compile the query"):
            net.table(name)


@pytest.mark.parametrize(
    ("cpt", "text"),
    [
        (CPT.from_function(max), "CPT.from_function(max)"),
        (NoisyOr([0.5], leak=0.1), "NoisyOr([0.5], leak=0.1)"),
        (NoisyOr([0.5] * 9), "NoisyOr(9 causes, leak=0)"),
        (Mux("I", [f"Y{i}" for i in range(9)]), "Mux(selector='I', inputs=<9 variables>)"),
    ],
)
def test_repr(cpt, text):
    assert repr(cpt) == text


def test_repr_of_a_bound_function_says_what_it_is():
    net = roots(A=2)
    net.add("B", ["A"], cpt=CPT.from_function(lambda a: "true"))
    net.add("C", ["A"], cpt=CPT.from_function(lambda a: [0.5, 0.5] if a else [1, 0]))
    assert repr(net.cpt("B")) == "FunctionCPT(deterministic, 2 parent states, 1 distinct rows)"
    assert repr(net.cpt("C")) == "FunctionCPT(function, 2 parent states, 2 distinct rows)"

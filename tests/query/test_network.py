"""Building, reading, comparing and copying networks."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import tacit
from tacit import CPT, Mux, Network, NetworkError, NoisyOr, TacitError, TestingCPT, TooLargeError, UnsetError, examples
from tests.helpers import close
from tests.strategies import networks, tied_networks

nan = np.nan
TESTING = TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.5, 0.4])


@pytest.fixture
def net():
    net = Network("small")
    net.add("A", states=["yes", "no"], cpt=[0.3, 0.7])
    net.add("B", states=3, cpt=[0.5, 0.25, 0.25])
    return net


def test_states_default_to_true_and_false_and_a_number_labels_them_with_integers(net):
    net.add("C", cpt=[0.5, 0.5])
    net.add("D", states=np.array(["lo", "hi"]), cpt=[0.5, 0.5])
    assert [net.states(n) for n in "ABCD"] == [("yes", "no"), (0, 1, 2), ("true", "false"), ("lo", "hi")]


def test_what_was_added_can_be_read(net):
    net.add("C", parents=("B", "A"), cpt=np.full((3, 2, 2), 0.5))
    net.add("D", parents=["A"], cpt=TESTING)
    assert net.variables == tuple(net) == ("A", "B", "C", "D")
    assert len(net) == 4
    assert "C" in net
    assert "Z" not in net
    assert net.parents("C") == ("B", "A")
    assert net.cpt("D") == TESTING
    assert net.testing_nodes == ("D",)
    assert net.table("A").tolist() == [0.3, 0.7]


@pytest.mark.parametrize("ask", ["node", "variable", "parents", "states", "cpt", "table", "ancestors"])
def test_an_unknown_variable_is_an_error_that_suggests_a_name(ask):
    net = Network()
    net.add("Weather", cpt=[0.5, 0.5])
    with pytest.raises(NetworkError, match="'weather' is not a variable of the network; did you mean 'Weather'"):
        getattr(net, ask)("weather")


def test_ancestors_are_proper_and_come_parents_first():
    net = examples.diamond()
    assert net.ancestors("D") == ("A", "B", "C")
    assert net.ancestors("A") == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": ""}, "a node's name must be a non-empty string, got ''"),
        ({"name": 5}, "a node's name must be a non-empty string, got 5"),
        ({"name": "A"}, "node 'A' is in the network already; names must be unique"),
        ({"parents": "A"}, "node 'C': parents must be a sequence of names, got 'A'"),
        ({"parents": None}, "node 'C': parents must be a sequence of names, got None"),
        ({"parents": ["Z"]}, "node 'C': parent 'Z' is not in the network; add parents before their children"),
        ({"parents": ["C"]}, "node 'C': parent 'C' is not in the network"),
        ({"parents": [["A"]]}, r"node 'C': parent \['A'\] is not in the network"),
        ({"parents": ["A", "A"]}, "node 'C': parent 'A' is listed twice"),
        ({"states": "ab"}, "node 'C': states must be a sequence of labels or a number, got 'ab'"),
        ({"states": 2.5}, "node 'C': states must be a sequence of labels or a number, got 2.5"),
        ({"states": []}, "node 'C' has no states; give at least one label"),
        ({"states": 0}, "node 'C' has no states"),
        ({"states": [1, True]}, "node 'C': state True is listed twice; labels must differ"),
        ({"states": ["a", None]}, "node 'C': state None is not a label; use strings, integers"),
        ({"states": [nan, 1]}, "node 'C': state nan is not a label"),
        ({"cpt": [0.3, 0.4]}, "node 'C': table sums to 0.7, expected 1"),
        (
            {"parents": ["A"], "cpt": [[0.5, 0.5], [0.5, 0.47]]},
            "node 'C': table, row A='no' sums to 0.97, expected 1",
        ),
        (
            {"parents": ["B", "A"], "cpt": [[[1, 0], [1, 0]], [[1, 0], [0, 2]], [[1, 0], [1, 0]]]},
            r"node 'C': table, row B=1, A='no' is wrong: 2 is not a probability in \[0, 1\]",
        ),
        (
            {"parents": ["A"], "cpt": [0.5, 0.5]},
            r"node 'C': table has shape \(2,\), expected \(2, 2\) = \(states of A, states of C\); is it the "
            "probability of the first state only",
        ),
        # the third row is bad, but A has no third state to name it by
        ({"parents": ["A"], "cpt": [[1, 0], [1, 0], [1, 1]]}, r"node 'C': table has shape \(3, 2\), expected \(2, 2\)"),
        (
            {"parents": ["A", "B"], "cpt": [[0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]]},
            r"node 'C': table has shape \(2, 6\), expected \(2, 3, 2\) = \(states of A, states of B, states of C\); "
            r".*pgmpy\? Then give np.transpose\(table\).reshape\(2, 3, 2\)$",
        ),
        (
            {"parents": ["B"], "cpt": [[0.1, 0.2, 0.3], [0.9, 0.8, 0.7]]},
            r"has shape \(2, 3\), expected \(3, 2\) .*as in pgmpy\? Then give np.transpose\(table\)$",
        ),
        (
            {"parents": ["A"], "cpt": [[0.1, 0.2], [0.9, 0.8]]},
            "row A='yes' sums to 0.3, expected 1; its columns sum to 1: is it transposed",
        ),
        (
            {"parents": ["A"], "cpt": [0.1, 0.9, 0.2, 0.8]},
            r"shape \(4,\), .*is it flat, .* give np.reshape\(table, \(2, 2\)\)",
        ),
        ({"parents": ["B"], "cpt": [0.1, 0.2, 0.7]}, r"first state only\? Give both: np.stack\(\[table, 1 - table\]"),
        ({"cpt": 0.25}, r"shape \(\), expected \(2,\) = .* first state only\? Give both: \[0.25, 0.75\]"),
        ({"cpt": [[0.3], [0.7]]}, r"shape \(2, 1\), expected \(2,\) = \(states of C\); is it a row or a column"),
        ({"parents": ["A", "B"], "cpt": np.full((2, 2, 3), 1 / 3)}, r"come first\? .*np.moveaxis\(table, 0, -1\)"),
        ({"parents": ["A", "B"], "cpt": np.full((3, 2, 2), 1 / 2)}, r"\(3, 2, 2\), expected .*states of C\)$"),
        ({"cpt": ["0.3", "0.7"]}, "table is not an array of numbers: it holds text, such as '0.3'"),
        ({"states": {"a": 1}}, "node 'C': states must be a sequence of labels or a number, got {'a': 1}"),
        ({"states": {"a"}}, "node 'C': states must be a sequence of labels or a number, got {'a'}"),
        ({"cpt": TESTING}, "node 'C': a testing node needs parents to test; roots are always regular"),
        ({"testing": True}, "node 'C': a testing node needs parents"),
        ({"parents": ["B"], "cpt": TESTING}, r"node 'C': plus and minus has shape \(2, 2\), expected \(3, 2\)"),
        ({"cpt": [0.5, 0.5], "testing": True}, "node 'C': testing=True, but the CPT given is a regular one"),
        ({"cpt": [0.5, 0.5], "gamma": 1}, "node 'C': gamma is given, but the CPT is a regular one"),
        ({"gamma": 1}, "node 'C': gamma is given without testing=True"),
        ({"parents": ["A"], "testing": True, "gamma": -1}, "node 'C': gamma is -1, expected None"),
        ({"cpt": "often"}, "node 'C': table is not an array of numbers"),
        ({"tie": ""}, "node 'C': tie is '', expected None or a non-empty string"),
        ({"cpt": [0.5, 0.5], "tie": 5}, "node 'C': tie is 5, expected None or a non-empty string"),
        ({"cpt": CPT([0.5, 0.5]), "tie": "t"}, r"node 'C': tie is given beside a CPT; write CPT\(..., tie='t'\)"),
    ],
)
def test_a_bad_node_is_refused_and_the_network_stays_as_it_was(net, arguments, message):
    before = net.copy()
    with pytest.raises(NetworkError, match=message):
        net.add(**{"name": "C"} | arguments)
    assert net == before


def test_a_networks_name_is_a_string_or_none():
    assert Network().name is None
    with pytest.raises(NetworkError, match="a network's name must be a string or None, got 5"):
        Network(5)


def test_what_is_left_out_is_to_be_learned(net):
    net.add("C", ["A"])
    net.add("D", ["A", "B"], testing=True, gamma=4)
    assert np.isnan(net.table("C")).all()
    cpt = net.cpt("D")
    assert (cpt.plus.shape, cpt.thresholds.shape, cpt.gamma) == ((2, 3, 2), (2, 3), 4.0)
    assert np.isnan([*cpt.plus.flat, *cpt.minus.flat, *cpt.thresholds.flat]).all()


def test_a_table_to_learn_that_is_too_large_is_refused_before_it_is_allocated():
    net = Network()
    for i in range(80):
        net.add(f"A{i}", cpt=[0.5, 0.5])
    with pytest.raises(TooLargeError, match=r"node 'B': a table to learn would have about 10\^24 entries"):
        net.add("B", list(net))


def test_a_testing_nodes_table_depends_on_the_evidence():
    with pytest.raises(NetworkError, match="node 'B' is testing: its table depends on the evidence"):
        examples.abc().table("B")


@pytest.mark.parametrize("part", ["table", "plus", "minus", "thresholds"])
def test_unset_numbers_are_named_where_numbers_are_required(net, part):
    holes = {"plus": [[nan, nan], [1, 0]], "minus": [[0.5, nan], [1, 0]], "thresholds": [nan, 0.5]}
    parts = {"plus": TESTING.plus, "minus": TESTING.minus, "thresholds": TESTING.thresholds}
    cpt = [[nan, 0.5], [1, 0]] if part == "table" else TestingCPT(**parts | {part: holes[part]})
    net.add("C", ["A"], cpt=cpt)
    with pytest.raises(UnsetError, match=rf"node 'C': {part} has unset numbers \(NaN\); give them, or learn them"):
        net.require_numbers()


def test_counts_are_the_papers_and_a_factored_cpt_counts_its_own_numbers(net):
    net.add("T", ["A"], cpt=TESTING)
    net.add("F", ["A", "B"], cpt=CPT.from_function(lambda a, b: "true"))
    net.add("N", ["A", "B"], cpt=NoisyOr([0.5, 0.5], leak=0.1))
    net.add("M", cpt=Mux("A", ["T", "F"]))
    counts = net.counts()
    assert (counts.nodes, counts.edges, counts.testing_nodes) == (6, 8, 1)
    assert (counts.static, counts.dynamic, counts.thresholds) == (2 + 3 + 2 + 6, 8, 2)
    assert counts["parameters"] == counts.parameters == 21
    with pytest.raises(KeyError):
        counts["colours"]


def test_a_copy_is_equal_and_independent(net):
    for other in (net.copy(), copy.copy(net), copy.deepcopy(net)):
        assert other == net
        other.add("C", ["A"])
        assert other != net
        assert "C" not in net


def test_networks_differ_if_name_states_parents_or_numbers_do(net):
    def build(name="n", states=None, cpt=(0.3, 0.7), parents=()):
        other = Network(name)
        other.add("A", states=states, cpt=cpt)
        other.add("B", cpt=[0.5, 0.5])
        other.add("C", parents, cpt=np.full((2,) * (len(parents) + 1), 0.5))
        return other

    assert build() == build()
    changes = ({"name": "m"}, {"states": ["a", "b"]}, {"cpt": [0.4, 0.6]}, {"parents": ["A"]})
    different = [build(**change) for change in changes] + [build(parents=["A", "B"]), build(parents=["B", "A"])]
    for i, one in enumerate([build(), *different]):
        assert all(one != other for other in different[i:])
    assert build() != "a network"


def test_with_cpts_replaces_only_what_is_given(net):
    other = net.with_cpts({"A": [0.5, 0.5]})
    assert other.table("A").tolist() == [0.5, 0.5]
    assert other.cpt("B") is net.cpt("B")
    assert net.table("A").tolist() == [0.3, 0.7]
    with pytest.raises(NetworkError, match="'Z' is not a variable"):
        net.with_cpts({"Z": [0.5, 0.5]})
    with pytest.raises(NetworkError, match=r"node 'A': table has shape \(3,\)"):
        net.with_cpts({"A": [0.5, 0.25, 0.25]})


def test_with_cpts_leaves_states_and_numbers_what_they_are(net):
    net.add("x", ["A"], cpt=tacit.Gaussian([0.0, 1.0], 1.0))
    with pytest.raises(NetworkError, match="node 'x' has a density, and a list cannot take its place"):
        net.with_cpts({"x": [0.5, 0.5]})
    with pytest.raises(NetworkError, match="node 'A' has states, and a Gaussian has numbers"):
        net.with_cpts({"A": tacit.Gaussian(0.0, 1.0)})


def test_with_gamma_changes_every_testing_node_and_nothing_else():
    net = examples.diamond()
    soft = net.with_gamma(8)
    assert [soft.cpt(n).gamma for n in soft.testing_nodes] == [8.0, 8.0]
    assert soft.cpt("A") is net.cpt("A")
    assert soft.with_gamma(None) == net
    with pytest.raises(NetworkError, match="gamma is -1"):
        net.with_gamma(-1)


@given(networks(unset=True) | tied_networks(unset=True))
def test_copies_and_pickles_of_any_network_are_equal(net):
    for other in (net.copy(), pickle.loads(pickle.dumps(net))):
        assert other == net
        assert other.ties == net.ties


# ties ------------------------------------------------------------------------------------------------------


@pytest.fixture
def tied(net):
    """A and A2 share a tie, T and T2 another."""
    net.add("A2", cpt=CPT([0.3, 0.7], tie="coin"))
    net = net.with_cpts({"A": CPT([0.3, 0.7], tie="coin")})
    for name in ("T", "T2"):
        net.add(name, ["A"], cpt=testing(tie="test"))
    return net


def testing(**changes):
    parts = {"plus": TESTING.plus, "minus": TESTING.minus, "thresholds": TESTING.thresholds}
    return TestingCPT(**(parts | changes))


testing.__test__ = False


def test_ties_are_read_from_cpts_arrays_and_nodes_to_learn(tied):
    tied.add("A3", cpt=[0.3, 0.7], tie="coin")
    tied.add("U", ["A"], tie="unset")
    tied.add("U2", ["A2"], tie="unset")
    tied.add("V", ["A"], testing=True, gamma=4, tie="unset test")
    assert tied.ties == {
        "coin": ("A", "A2", "A3"),
        "test": ("T", "T2"),
        "unset": ("U", "U2"),
        "unset test": ("V",),
    }
    assert tied.cpt("V").gamma == 4
    assert Network().ties == examples.abc().ties == {}


@pytest.mark.parametrize(
    ("parents", "cpt", "message"),
    [
        ([], CPT([0.25, 0.75], tie="coin"), "'A' are tied ('coin') but differ in table[0]: 0.25 and 0.3"),
        ([], CPT([0.3, nan], tie="coin"), "'A' are tied ('coin') but differ in table[1]: nan and 0.7"),
        ([], CPT([0.3, 0.7], True, "coin"), "'A' are tied ('coin') but differ in learn: True and False"),
        (["A"], CPT([[0.3, 0.7]] * 2, tie="coin"), "tied ('coin') but differ in shape of table: (2, 2) and (2,)"),
        (["A"], testing(tie="coin"), "'A' are tied ('coin') but differ in kind: TestingCPT and CPT"),
        (["A"], CPT([[0.3, 0.7]] * 2, tie="test"), "'T' are tied ('test') but differ in kind: CPT and TestingCPT"),
        (["A"], testing(tie="test", plus=TESTING.minus), "'T' are tied ('test') but differ in plus[0, 0]: 0.2 and 0.9"),
        (
            ["A"],
            testing(tie="test", minus=TESTING.plus),
            "'T' are tied ('test') but differ in minus[0, 0]: 0.9 and 0.2",
        ),
        (["A"], testing(tie="test", thresholds=[0.5, 0]), "tied ('test') but differ in thresholds[1]: 0.0 and 0.4"),
        (["A"], testing(tie="test", test=[">=", ">"]), "tied ('test') but differ in test[1]: '>' and '>='"),
        (["A"], testing(tie="test", gamma=2), "'T' are tied ('test') but differ in gamma: 2.0 and None"),
        (["A"], testing(tie="test", learn=True), "'T' are tied ('test') but differ in learn: True and False"),
        (["A"], None, "are tied ('test') but differ in plus[0, 0]: nan and 0.9"),
    ],
)
def test_tied_nodes_that_differ_are_refused_with_both_names_and_the_difference(tied, parents, cpt, message):
    before = tied.copy()
    how = {"testing": True, "tie": "test"} if cpt is None else {"cpt": cpt}
    with pytest.raises(NetworkError) as error:
        tied.add("X", parents, **how)
    assert str(error.value).startswith("nodes 'X' and ")
    assert message in str(error.value)
    assert str(error.value).endswith("; tied nodes must have equal CPTs")
    assert tied == before
    tied.add("X", cpt=[0.5, 0.5])  # a refused node leaves nothing behind


def test_tied_nodes_may_have_other_states_and_parents(tied):
    tied.add("A3", states=["heads", "tails"], cpt=CPT([0.3, 0.7], tie="coin"))
    tied.add("T3", ["A3"], states=2, cpt=testing(tie="test"))
    assert tied.ties == {"coin": ("A", "A2", "A3"), "test": ("T", "T2", "T3")}


def test_with_cpts_changes_all_nodes_of_a_tie_alike(tied):
    for new in (CPT([0.5, 0.5], tie="coin"), [0.5, 0.5]):
        changed = tied.with_cpts({"A": new, "A2": new})
        assert changed.ties == tied.ties
        assert changed.table("A2").tolist() == [0.5, 0.5]
        for name, other in (("A", "A2"), ("A2", "A")):
            with pytest.raises(NetworkError, match=r"nodes 'A2' and 'A' are tied \('coin'\) but differ in table"):
                tied.with_cpts({name: new})
            with pytest.raises(NetworkError, match=r"nodes 'A2' and 'A' are tied \('coin'\) but differ in table"):
                tied.with_cpts({name: new, other: CPT([0.75, 0.25], tie="coin")})


def test_with_cpts_takes_a_tie_from_all_its_nodes_or_from_none(tied):
    free = tied.with_cpts({"A": CPT([0.5, 0.5]), "A2": CPT([0.25, 0.75])})
    assert free.ties == {"test": ("T", "T2")}
    for name, other in (("A", "A2"), ("A2", "A")):
        with pytest.raises(NetworkError, match=f"node '{name}' would leave the tie 'coin', which node '{other}' keeps"):
            tied.with_cpts({name: CPT([0.3, 0.7])})


def test_a_copy_goes_on_checking_ties(tied):
    for other in (tied.copy(), copy.deepcopy(tied), pickle.loads(pickle.dumps(tied))):
        with pytest.raises(NetworkError, match="nodes 'A3' and 'A' are tied"):
            other.add("A3", cpt=CPT([0.5, 0.5], tie="coin"))


@given(tied_networks(unset=True))
def test_with_gamma_keeps_ties(net):
    assert net.with_gamma(3.0).ties == net.ties


@given(tied_networks())
def test_selected_tables_are_free_and_regular_ties_stay(net):
    kept = {tie: names for tie, names in net.ties.items() if not net.cpt(names[0]).testing}
    assert net.select().ties == kept


def test_selection_by_compiling_frees_the_selected_tables_too():
    net = examples.hmm(30)
    assert net.select().ties == {"emission": net.ties["emission"]}


# many parents ----------------------------------------------------------------------------------------------


def with_constants(count):
    net = Network()
    for i in range(count):
        net.add(f"P{i}", states=1, cpt=[1.0])
    return net


@pytest.mark.parametrize("cpt", [None, CPT.from_function(lambda *labels: "true")])
def test_a_table_of_more_parents_than_an_array_has_axes_is_refused(cpt):
    net = with_constants(64)
    with pytest.raises(TooLargeError, match=r"^node 'B': a table of 64 parents cannot be made \(limit 63\); use Mux"):
        net.add("B", list(net), cpt=cpt)
    net.add("B", list(net)[1:], cpt=cpt)
    assert len(net.parents("B")) == 63


def test_the_table_of_a_noisy_or_of_too_many_parents_is_refused_and_the_query_is_not():
    net = with_constants(70)
    net.add("B", cpt=NoisyOr(dict.fromkeys(net, 0.01)))
    with pytest.raises(TooLargeError, match=r"^node 'B': a table of 70 parents cannot be made .*compile the query"):
        net.table("B")
    close(net.posterior("B")[0, 1], 0.99**70)


class Counted(str):
    """A name that counts how often names are compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_repeated_parents_and_labels_are_found_in_one_pass():
    count = 2_000
    names = [Counted(f"P{i}") for i in range(count)]
    net = Network()
    for name in names:
        net.add(name, states=1, cpt=[1.0])
    Counted.compared = 0
    with pytest.raises(NetworkError, match="node 'B': parent 'P1999' is listed twice"):
        net.add("B", [*names, names[-1]], cpt=NoisyOr([0.5] * (count + 1)))
    with pytest.raises(NetworkError, match="node 'C': state 'P1999' is listed twice; labels must differ"):
        net.add("C", states=[*names, Counted("P1999")])
    assert Counted.compared < 10 * count


def test_several_names_are_not_taken_for_one_that_is_misspelt():
    net = examples.abc()
    with pytest.raises(TacitError, match="query must be a sequence of names, got"):
        net.posterior([["A", "B"]])
    with pytest.raises(TacitError, match="query is a mapping"):
        net.posterior({"B": "true"}, {"A": 0.8})
    with pytest.raises(TacitError, match=r"expected the name of one variable, got \['A', 'B'\]"):
        net.cpt(["A", "B"])


# printing CPTs --------------------------------------------------------------------------------------------


def test_the_cpt_of_a_network_prints_with_labels():
    net = examples.abc()
    assert str(net.cpt("A")) == "P(A)\ntrue  false\n 0.3    0.7"
    assert "A      test    true  false   true  false" in str(net.cpt("B"))
    assert repr(net.cpt("A")) == "CPT([0.3, 0.7])"
    assert net.cpt("A")._repr_html_().startswith("<b>P(A)</b><table>")
    bare = CPT([0.3, 0.7])
    assert (str(bare), bare._repr_html_()) == (repr(bare), None)
    assert bare == net.cpt("A")
    assert "with slope 16" in str(net.with_gamma(16).cpt("B"))


def test_every_kind_of_cpt_prints_and_unset_numbers_have_a_sign():
    net = Network()
    net.add("A")
    net.add("B", ["A"], testing=True)
    net.add("or", cpt=NoisyOr({"A": 0.5, "B": 0.25}))
    net.add("rule", ["A", "B"], cpt=CPT.from_function(lambda a, b: a))
    net.add("I", states=2, cpt=[0.5, 0.5])
    net.add("mux", cpt=Mux("I", ["A", "B"]))
    assert str(net.cpt("A")).splitlines() == ["P(A)", "true  false", "   ?      ?", "?: to be learned"]
    assert ">= ?" in str(net.cpt("B"))
    assert str(net.cpt("or")).splitlines()[2] == "true   true   0.625  0.375"
    assert str(net.cpt("rule")).splitlines()[1] == "A      B      true  false"
    assert str(net.cpt("mux")).startswith("P(mux | I, A, B)")


def test_large_cpts_are_shortened_and_huge_ones_are_only_named():
    net = Network()
    for i in range(20):
        net.add(f"X{i}", states=3, cpt=[0.5, 0.25, 0.25])
    net.add("some", [f"X{i}" for i in range(5)], 30, np.full((*[3] * 5, 30), 1 / 30))
    lines = str(net.cpt("some")).splitlines()
    assert len(lines) == 2 + 25
    assert len(lines[0]) < 200
    net.add("huge", cpt=NoisyOr({f"X{i}": 0.1 for i in range(20)}))
    assert str(net.cpt("huge")) == repr(net.cpt("huge"))


def test_a_cpt_that_moves_prints_with_the_names_of_its_new_place():
    net = examples.abc()
    other = Network()
    other.add("X", states=["up", "down"], cpt=net.cpt("A"))
    assert str(other.cpt("X")) == "P(X)\n up  down\n0.3   0.7"
    assert str(net.cpt("A")).startswith("P(A)")
    assert str(pickle.loads(pickle.dumps(other)).cpt("X")) == str(other.cpt("X"))
    assert str(net.do({"A": "true"}).cpt("A")) == "P(A)\ntrue  false\n   1      0"


# questions asked of the network ---------------------------------------------------------------------------

FRAME = pd.DataFrame({"A": ["true", "false"], "C": ["lo", "hi"]}, index=["Ann", "Bob"])


@pytest.mark.parametrize("rows", [FRAME, {"A": 0.8, "C": ["lo", None]}, {"C": "lo"}, None])
def test_a_network_answers_as_its_compiled_query(rows):
    net = tacit.examples.abc()
    tac = tacit.compile(net, "B", ["A", "C"])
    for ours, theirs in (
        (net.marginals(rows), tac.marginals(rows)),
        (net.information("B", rows), tac.information(rows)),
        (net.sensitivity("B", rows).derivatives, tac.sensitivity(rows).derivatives),
    ):
        assert list(ours) == list(theirs)
        for name, value in ours.items():
            np.testing.assert_allclose(value, theirs[name], rtol=0, atol=1e-12)
    assert str(net.predict("B", rows)) == str(tac.predict(rows))
    assert str(net.mpe(rows)) == str(tac.mpe(rows))
    assert str(net.marginals(rows, labels=True)) == str(tac.marginals(rows, labels=True))
    told = net.information("B", rows, labels=True, variables=["A"])
    assert list(told) == ["A"]
    assert str(told) == str(tac.information(rows, labels=True, variables=["A"]))


def test_queries_of_a_network_are_kept(monkeypatch):
    net = tacit.examples.abc()
    net.mpe(FRAME)
    monkeypatch.setattr("tacit.query.network.compiled", None)
    assert net.mpe(FRAME).to_pandas().index.tolist() == ["Ann", "Bob"]
    assert net.marginals(FRAME, labels=True).to_pandas().index.tolist() == ["Ann", "Bob"]
    with pytest.raises(tacit.TacitError):
        tacit.examples.abc().predict("D", FRAME)

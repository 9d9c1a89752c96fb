"""The bridge to pyAgrum: what goes over and comes back is the same, and both sides then give the same answers."""

import sys

import numpy as np
import pyagrum
import pytest
from hypothesis import given

import tacit
from tacit import NetworkError, TacitError, TooLargeError, UnsetError, semantics
from tacit.io.bridges.pyagrum import from_pyagrum, to_pyagrum
from tacit.io.parsing.draft import RoundingWarning
from tests.helpers import close
from tests.pyagrum_peer import posteriors
from tests.strategies import networks


def binary(*names):
    bn = pyagrum.BayesNet()
    for name in names:
        bn.add(pyagrum.LabelizedVariable(name, "", ["no", "yes"]))
    return bn


def expected_labels(states):
    """Strings stay, and so do ascending numbers; what is mixed or out of order becomes strings."""
    numbers = all(isinstance(s, int | float) for s in states)
    return states if numbers and list(states) == sorted(states) else tuple(map(str, states))


def texts(net):
    return [net.name or "", *net, *(str(s) for n in net for s in net.states(n))]


# both ways ------------------------------------------------------------------------------------------------


@given(networks(testing=False))
def test_what_comes_back_is_the_same_to_the_bit(net):
    if any("\0" in text for text in texts(net)):
        with pytest.raises(NetworkError, match="a NUL or a lone surrogate"):
            to_pyagrum(net)
        return
    if any(len(set(map(str, net.states(n)))) < len(net.states(n)) for n in net):
        with pytest.raises(NetworkError, match="not all different as strings"):
            to_pyagrum(net)
        return
    back = from_pyagrum(to_pyagrum(net))
    assert back.name == net.name
    assert set(back) == set(net)
    for name in net:
        assert back.parents(name) == net.parents(name)
        assert back.states(name) == expected_labels(net.states(name))
        np.testing.assert_array_equal(back.cpt(name).table, net.table(name))


@given(networks(testing=False))
def test_pyagrum_gives_the_answers_of_enumeration(net):
    plain = tacit.Network()
    for name in net:
        plain.add(hex(net.variables.index(name)), [hex(net.variables.index(p)) for p in net.parents(name)],
                  len(net.states(name)), net.table(name))  # fmt: skip
    rng, query = np.random.default_rng(len(plain)), plain.variables[-1]
    row = {n: rng.uniform(0.1, 1, len(plain.states(n))) for n in plain}
    (found,) = posteriors(to_pyagrum(plain), query, [row])
    # pyAgrum leaves the likelihood of a single state as it is
    close(found / found.sum(), semantics.posterior(plain, query, {n: [values] for n, values in row.items()})[0])


# from pyAgrum ---------------------------------------------------------------------------------------------


def test_every_kind_of_variable_keeps_its_labels():
    bn = pyagrum.BayesNet()
    bn.add(pyagrum.LabelizedVariable("labelized", "", ["x", "y z"]))
    bn.add(pyagrum.RangeVariable("range", "", -1, 1))
    bn.add(pyagrum.IntegerVariable("integer", "", [2, 30, 5]))
    bn.add(pyagrum.NumericalDiscreteVariable("numerical", "", [0.1234567891, 2.5]))
    bn.add(pyagrum.DiscretizedVariable("discretized", "", [0, 1.5, 3]))
    for name in bn.names():
        size = bn.variable(name).domainSize()
        bn.cpt(name).fillWith([1 / size] * size)
    net = from_pyagrum(bn)
    assert {name: net.states(name) for name in net} == {
        "labelized": ("x", "y z"),
        "range": (-1, 0, 1),
        "integer": (2, 5, 30),
        "numerical": (0.1234567891, 2.5),
        "discretized": ("[0, 1.5)", "[1.5, 3]"),
    }
    assert net.bins("discretized") == (0, 1.5, 3)
    assert from_pyagrum(to_pyagrum(net)).bins("discretized") == (0, 1.5, 3)
    assert all(type(label) is int for label in (*net.states("range"), *net.states("integer")))


def test_parents_and_their_states_keep_their_order():
    bn = pyagrum.fastBN("C[2]<-B[3];A[4]->C")
    net = from_pyagrum(bn)
    parents = net.parents("C")
    assert parents == bn.cpt("C").names[1:]
    for a in range(4):
        for b in range(3):
            place = {"A": a, "B": b}
            np.testing.assert_array_equal(
                net.cpt("C").table[tuple(place[p] for p in parents)], bn.cpt("C").extract(place).tolist()
            )


def aggregators():
    """A noisy-or, its net and compound kinds, a noisy-and and a logistic model over the same causes, and a maximum."""
    bn = binary("c1", "c2")
    for make, leak in ((bn.addNoisyOR, 0.1), (bn.addNoisyORNet, 0.2), (bn.addNoisyAND, 0.3), (bn.addLogit, -0.5)):
        effect = f"e{bn.size()}"
        make(pyagrum.LabelizedVariable(effect, "", ["no", "yes"]), leak)
        bn.addWeightedArc("c1", effect, 0.7)
        bn.addWeightedArc("c2", effect, 0.4)
    for name in ("r1", "r2"):
        bn.add(pyagrum.RangeVariable(name, "", 0, 2))
        bn.cpt(name).fillWith([0.2, 0.3, 0.5])
    bn.addMAX(pyagrum.RangeVariable("max", "", 0, 2))
    bn.addArc("r1", "max")
    bn.addArc("r2", "max")
    bn.cpt("c1").fillWith([0.25, 0.75])
    bn.cpt("c2").fillWith([0.6, 0.4])
    return bn


@pytest.mark.parametrize(
    "bn",
    [
        aggregators(),
        pyagrum.fastBN("A[3]->B{x|y|z}->C[0,1,2,3];A->D{1|5}<-B;E->D"),
        pyagrum.randomBN(n=9, ratio_arc=1.5),
    ],
    ids=["aggregators", "kinds", "random"],
)
def test_both_give_the_same_answers(bn):
    net, rng = from_pyagrum(bn), np.random.default_rng(0)
    for query in net:
        rows = [{n: rng.uniform(0.05, 1, len(net.states(n))) for n in net if rng.random() < 0.5} for _ in range(3)]
        for row, expected in zip(rows, posteriors(bn, query, rows), strict=True):
            close(net.posterior(query, {n: [values] for n, values in row.items()})[0], expected)


def test_hard_evidence_by_label_is_the_same_in_both():
    bn = pyagrum.fastBN("A{yes|no}->B[2,4]->C{u|v|w}")
    net = from_pyagrum(bn)
    engine = pyagrum.LazyPropagation(bn)
    engine.setEvidence({"C": "v", "B": "4"})
    engine.makeInference()
    close(net.posterior("A", {"C": "v", "B": 4})[0], engine.posterior("A").toarray())


def test_rows_of_four_digits_are_scaled():
    bn = pyagrum.BayesNet()
    bn.add(pyagrum.LabelizedVariable("A", "", 3))
    bn.cpt("A").fillWith([0.3333] * 3)
    with pytest.warns(RoundingWarning, match="1 row missed the sum 1"):
        net = from_pyagrum(bn)
    close(net.cpt("A").table, np.full(3, 1 / 3))


def test_tables_that_are_wrong_are_named():
    bn = binary("A", "B")
    bn.addArc("A", "B")
    bn.cpt("A").fillWith([0.5, 0.5])
    bn.cpt("B").fillWith([0.5, 0.5, 0.7, 0.2])
    with pytest.raises(NetworkError, match=r"node 'B': table, row A='yes' sums to 0\.9, expected 1"):
        from_pyagrum(bn)


def test_a_noisy_or_too_large_for_a_table_is_refused():
    bn = binary()
    bn.addNoisyOR(pyagrum.LabelizedVariable("effect", "", ["no", "yes"]), 0.1)
    for i in range(40):
        bn.add(pyagrum.LabelizedVariable(f"c{i}", "", 2))
        bn.addWeightedArc(f"c{i}", "effect", 0.5)
    with pytest.raises(TooLargeError, match=r"node 'effect': its table has .* entries"):
        from_pyagrum(bn)


@pytest.mark.parametrize("what", [None, "A->B", pyagrum.InfluenceDiagram()])
def test_anything_else_is_refused(what):
    with pytest.raises(NetworkError, match=r"expected a pyagrum\.BayesNet, got "):
        from_pyagrum(what)


# to pyAgrum -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("states", "kind", "labels"),
    [
        (["a", "b"], "LABELIZED", ("a", "b")),
        (3, "RANGE", ("0", "1", "2")),
        ([False, True], "RANGE", ("0", "1")),
        ([7], "RANGE", ("7",)),
        ([1, 5, 9], "INTEGER", ("1", "5", "9")),
        ([0, 0.5, 1], "NUMERICAL", ("0", "0.5", "1")),
        ([2**31 - 2, 2**31 - 1], "RANGE", ("2147483646", "2147483647")),
        ([1, 2**40], "NUMERICAL", ("1", "1.099512e+12")),
        ([0, 10**400], "LABELIZED", ("0", str(10**400))),
        ([2, 1], "LABELIZED", ("2", "1")),
        ([True, False], "LABELIZED", ("True", "False")),
        ([1, "x"], "LABELIZED", ("1", "x")),
    ],
)
def test_labels_become_the_nearest_kind_of_variable(states, kind, labels):
    net = tacit.Network()
    count = states if isinstance(states, int) else len(states)
    net.add("A", states=states, cpt=np.full(count, 1 / count))
    bn = to_pyagrum(net)  # must outlive its variables
    variable = bn.variable("A")
    assert (variable.varType(), variable.labels()) == (getattr(pyagrum, f"VarType_{kind}"), labels)


@pytest.mark.parametrize(
    ("name", "states", "message"),
    [
        ("a\0b", ["x", "y"], r"node 'a\\x00b' holds a NUL or a lone surrogate, which pyAgrum cannot; rename it"),
        ("a", ["x", "y\ud800"], r"node 'a', state 'y\\ud800' holds a NUL"),
        ("a", [2, 1, "1"], r"node 'a': \[2, 1, '1'\] are not all different as strings"),
    ],
)
def test_words_that_pyagrum_cannot_hold_are_refused(name, states, message):
    net = tacit.Network()
    net.add(name, states=states, cpt=np.full(len(states), 1 / len(states)))
    with pytest.raises(NetworkError, match=message):
        to_pyagrum(net)


def test_testing_nodes_are_refused_with_the_way_out():
    net = tacit.examples.abc()
    with pytest.raises(NetworkError, match=r"node 'B' is testing, which pyAgrum cannot hold; net\.select\(evidence\)"):
        to_pyagrum(net)
    selected = net.select({"A": 0.8, "C": [[0.6, 0.4]]})
    (found,) = posteriors(to_pyagrum(selected), "B", [{"A": [0.8, 0.2], "C": [0.6, 0.4]}])
    close(found, net.posterior("B", {"A": 0.8, "C": [[0.6, 0.4]]})[0])


def test_unset_numbers_are_refused():
    net = tacit.Network()
    net.add("A")
    with pytest.raises(UnsetError, match="node 'A': table has unset numbers"):
        to_pyagrum(net)


def test_only_networks_go_over():
    with pytest.raises(TacitError, match="expected a Network, got dict"):
        to_pyagrum(tacit.examples.abc().to_dict())


def test_without_pyagrum_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyagrum", None)
    for call in (from_pyagrum, to_pyagrum):
        with pytest.raises(TacitError, match=r"pyagrum is needed.*pip install 'pyagrum>="):
            call(tacit.Network())

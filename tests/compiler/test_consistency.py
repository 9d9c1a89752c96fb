"""What given states leave possible elsewhere, and what need not be computed then."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Mux, Network, NetworkError, NoisyOr, TestingCPT, semantics
from tacit.compiler.program import check
from tacit.compiler.prune import possible_states, prune
from tacit.compiler.question import Question
from tests.helpers import close, decided, impossible, one_row, selected, tries
from tests.strategies import evidence, networks, rngs, tie_margin

pytestmark = impossible
ROWS = 3


@st.composite
def sparse(draw, max_nodes=6):
    """A random network most of whose table entries are 0: one state in two of every row, and often all but one."""
    net, rng = draw(networks(max_nodes)), draw(rngs)

    def thinned(table):
        largest = np.eye(table.shape[-1])[table.argmax(axis=-1)]
        kept = table * ((rng.random(table.shape) < 0.4) | (largest > 0))
        return kept / kept.sum(axis=-1, keepdims=True)

    cpts = {}
    for name in net:
        cpt = net.cpt(name)
        if isinstance(cpt, CPT):
            cpts[name] = CPT(thinned(cpt.table))
        elif isinstance(cpt, TestingCPT):
            tables = [thinned(table) for table in cpt.tables]
            cpts[name] = TestingCPT(tables=tables, thresholds=cpt.thresholds, test=cpt.test, gamma=cpt.gamma)
    return net.with_cpts(cpts)


@st.composite
def cases(draw):
    """A network, a query, states that are given, and rows of evidence on others."""
    net = draw(sparse())
    names = draw(st.lists(st.sampled_from(net.variables), min_size=1, max_size=3, unique=True))
    known = {name: draw(st.sampled_from(net.states(name))) for name in names}
    others = [name for name in net if name not in known]
    rows = draw(evidence(net, others, rows=ROWS)) if others else {}
    return net, draw(st.sampled_from(net.variables)), known, rows


@tries(60)
@given(case=cases())
def test_answers_are_those_of_the_definition(case):
    net, query, known, columns = case
    tac = tacit.compile(net, query, list(columns), given=known, engine="numpy")
    check(tac.program)
    whole = {**columns, **{name: [state] * ROWS for name, state in known.items()}}
    rows = decided(net, whole)
    picked = rows if columns else [0] * len(rows)
    joint = semantics.joint(net, query, whole)
    close(tac.joint(columns)[picked], joint[rows])
    close(tac.posterior(columns)[picked], semantics.posterior(net, query, whole)[rows])
    with np.errstate(divide="ignore"):
        close(tac.log_evidence(columns)[picked], np.log(joint.sum(axis=1))[rows], 1e-10)
    for name, found in tac.marginals(columns).items():
        close(found[picked], semantics.posterior(net, name, whole)[rows])
    best = tac.mpe(columns).log_probability
    close(np.exp(best[picked]), semantics.most_probable(net, net.variables, whole)[rows])
    ways = selected(tac, columns)
    for i, place in zip(rows, picked, strict=True):
        if tie_margin(net, row := one_row(whole, i)) > 1e-9:
            decided_by = semantics.select(net, row).nodes
            for name, how in ways.items():
                close(how.weight[place], decided_by[name].weight)
                close(how.posterior[place], decided_by[name].posterior)


@tries(60)
@given(case=cases(), data=st.data())
def test_interventions_and_indexed_evidence_beside_given_states(case, data):
    net, query, known, _ = case
    others = [name for name in net if name not in known]
    hard = data.draw(st.lists(st.sampled_from(others), unique=True, max_size=2)) if others else []
    do = (
        data.draw(st.lists(st.sampled_from(left), max_size=1)) if (left := [n for n in others if n not in hard]) else []
    )
    states = {name: data.draw(st.sampled_from(net.states(name))) for name in (*hard, *do)}
    tac = tacit.compile(net, query, hard=hard, do=do, given=known, engine="numpy")
    check(tac.program)
    cut = net.do({name: states[name] for name in do})
    row = {**known, **{name: states[name] for name in hard}}
    columns = {name: [state] for name, state in row.items()}
    if decided(cut, columns):
        close(tac.joint({name: [state] for name, state in states.items()}), semantics.joint(cut, query, columns))


def arc_consistent(net, known):
    """The definition, by enumeration of every family until nothing changes; of a network without testing nodes."""
    left = {n: {known[n]} if n in known else set(range(net.variable(n).card)) for n in net}
    while True:
        new = {n: set(states) for n, states in left.items()}
        for name in net:
            family = (*net.parents(name), name)
            table = net.table(name)
            rows = [c for c in itertools.product(*(sorted(left[n]) for n in family)) if table[c] != 0]
            for n, states in zip(family, zip(*rows, strict=True), strict=True) if rows else ((n, ()) for n in family):
                new[n] &= set(states)
        if new == left:
            return {n: tuple(sorted(states)) for n, states in left.items()}
        left = new


@tries(150)
@given(net=networks(testing=False), data=st.data())
def test_every_family_allows_what_is_left(net, data):
    names = data.draw(st.lists(st.sampled_from(net.variables), min_size=1, unique=True))
    known = {n: data.draw(st.integers(0, net.variable(n).card - 1)) for n in names}
    expected, found = arc_consistent(net, known), possible_states(net, net.variables, (), known)
    if all(expected.values()):
        assert found == expected
    else:
        assert found == {n: (known.get(n, 0),) for n in net}


def chained(selects=False):
    """A -> T (testing, if so) and A -> C, where C tells A."""
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.25, 0.25])
    table = [[0.9, 0.1], [0.5, 0.5], [0.2, 0.8]]
    net.add("T", ["A"], cpt=TestingCPT(table, table[::-1], [0.4, 0.4, 0.4]) if selects else table)
    net.add("C", ["A"], cpt=[[1, 0], [0.5, 0.5], [0, 1]])
    return net


def test_evidence_that_a_selection_does_not_know_of_rules_nothing_out_above_it():
    assert possible_states(chained(), chained().variables, (), {"C": 0})["A"] == (0, 1)
    net = chained(selects=True)
    assert possible_states(net, net.variables, (), {"C": 0})["A"] == (0, 1, 2)
    net.add("U", ["C"], cpt=TestingCPT([[0.5, 0.5]] * 2, [[0.1, 0.9]] * 2, [0.5, 0.5]))
    assert possible_states(net, net.variables, (), {"C": 0})["A"] == (0, 1, 2)  # U knows of it, and T does not
    net.add("V", ["T", "C"], cpt=np.full((2, 2, 2), 0.5))
    assert possible_states(net, net.variables, (), {"V": 0, "C": 0})["A"] == (0, 1, 2)


def test_evidence_above_a_selection_rules_out_what_is_beside_it():
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.25, 0.25])
    net.add("C", ["A"], cpt=[[1, 0], [0.5, 0.5], [0, 1]])
    net.add("T", ["A", "C"], cpt=TestingCPT(np.full((3, 2, 2), 0.5), np.full((3, 2, 2), 0.5), np.full((3, 2), 0.4)))
    assert possible_states(net, net.variables, (), {"C": 0})["A"] == (0, 1)


def test_rules_pass_on_what_is_left_without_their_tables():
    net = Network()
    for i in range(40):
        net.add(f"X{i}", cpt=[0.5, 0.5])
    net.add("or", [f"X{i}" for i in range(40)], cpt=NoisyOr([1.0] * 20 + [0.5] * 20))
    found = possible_states(net, net.variables, (), {"or": 1})
    assert [found[f"X{i}"] for i in range(40)] == [(1,)] * 20 + [(0, 1)] * 20
    known = {"or": 0, **{f"X{i}": 1 for i in range(39)}}
    assert possible_states(net, net.variables, (), known)["X39"] == (0,)
    net = Network()
    net.add("I", states=30, cpt=np.full(30, 1 / 30))
    for i in range(30):
        net.add(f"X{i}", states=3, cpt=[0, 0.5, 0.5] if i % 2 else [0.5, 0.5, 0])
    net.add("Y", states=3, cpt=Mux("I", [f"X{i}" for i in range(30)]))
    assert possible_states(net, net.variables, (), {"Y": 0})["I"] == tuple(range(0, 30, 2))
    assert possible_states(net, net.variables, (), {"Y": 0, "I": 4})["X4"] == (0,)


@pytest.mark.parametrize("known", [{"Y": "b"}, {"Y": "b", "X3": "a"}, {"X0": "a", "Y": "a"}])
def test_a_selector_of_which_some_states_are_left(known):
    net = Network()
    net.add("I", states=5, cpt=[0.1, 0.2, 0.3, 0.3, 0.1])
    for i in range(5):
        net.add(f"X{i}", states=list("abc"), cpt=[0.5, 0, 0.5] if i == 2 else [0.2, 0.3, 0.5])
    net.add("Y", states=list("abc"), cpt=Mux("I", [f"X{i}" for i in range(5)]))
    for query in ("I", "X1"):
        close(tacit.compile(net, query, given=known).joint(), semantics.joint(net, query, known))


def test_what_is_sure_needs_no_factor_and_its_parents_need_not_know():
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.25, 0.25])
    net.add("B", ["A"], cpt=[[1, 0], [0.3, 0.7], [0, 1]])
    net.add("C", ["A"], cpt=[[1, 0], [1, 0], [0, 1]])
    net.add("D", ["B", "C"], cpt=[[[0.5, 0.5], [0.1, 0.9]], [[0.4, 0.6], [0.9, 0.1]]])
    pruned = prune(net, Question(("D",), given=(("A", 0),)))
    assert pruned.states == {"A": (0,), "B": (0,), "C": (0,), "D": (0, 1)}
    assert (pruned.nodes, pruned.determined) == (("A", "B", "C", "D"), {"B", "C"})
    pruned = prune(net, Question(("A",), given=(("C", 0),)))  # C says that A is not 2, and no more
    assert (pruned.nodes, pruned.states["A"]) == (("A",), (0, 1))
    tac = tacit.compile(net, "A", given={"C": "true"})
    close(tac.joint(), [[0.5, 0.25, 0]])


def test_new_numbers_may_not_contradict_what_was_left_out():
    net = Network()
    net.add("A", states=3, cpt=[0.5, 0.25, 0.25])
    net.add("C", ["A"], cpt=[[1, 0], [1, 0], [0, 1]])
    tac = tacit.compile(net, "A", given={"C": "true"})
    tac.set_parameters(net.with_cpts({"A": [0.2, 0.4, 0.4]}))
    close(tac.joint(), [[0.2, 0.4, 0]])
    for table, message in (
        ([[1, 0], [1, 0], [0.5, 0.5]], "state 2 was impossible"),
        ([[1, 0], [0.5, 0.5], [0, 1]], "'C': its known 0s and 1s said nothing"),
        ([[1, 0], [0, 1], [0, 1]], "'C': its known 0s and 1s said nothing"),
    ):
        with pytest.raises(NetworkError, match=message):
            tac.set_parameters(net.with_cpts({"C": table}))


def test_what_is_impossible_is_compiled_at_once():
    net = Network()
    for i in range(30):
        for j in range(30):
            above = [f"{a},{b}" for a, b in ((i - 1, j), (i, j - 1)) if a >= 0 and b >= 0]
            net.add(f"{i},{j}", above, cpt=np.full((2,) * len(above) + (2,), 0.5))
    net.add("A", ["29,29"], cpt=[[1, 0], [0, 1]])
    net.add("B", ["29,29"], cpt=[[1, 0], [0, 1]])
    tac = tacit.compile(net, "0,0", given={"A": "true", "B": "false"})
    assert np.isneginf(tac.log_evidence()).all()
    assert np.isnan(tac.posterior()).all()


def test_thousands_of_nodes_take_a_moment():
    net = Network()
    net.add("X0", cpt=[0.5, 0.5])
    for i in range(1, 4000):
        net.add(f"X{i}", [f"X{i - 1}"], cpt=[[1, 0], [0, 1]])
    start = time.process_time()
    found = possible_states(net, net.variables, (), {"X3999": 1})
    assert time.process_time() - start < 5
    assert set(found.values()) == {(1,)}

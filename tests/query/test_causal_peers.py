"""D-separation and interventions against networkx, pgmpy and pyAgrum, which know nothing of this library."""

import warnings

import networkx as nx
import pyagrum
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import Network, examples
from tests.helpers import close
from tests.query.test_do import effect, smoking
from tests.strategies import MAX_PARENTS

with warnings.catch_warnings(action="ignore", category=FutureWarning):  # of pgmpy's parts among themselves
    # its files may be there without the packages they need
    pytest.importorskip("pgmpy.models", exc_type=ImportError)
    from pgmpy.base import DAG
    from pgmpy.inference import CausalInference, VariableElimination

TOLERANCE = 1e-9


@st.composite
def structures(draw, max_nodes=8):
    """A network without numbers, and three disjoint sets of its variables, of which the first two are not empty."""
    net = Network()
    for i in range(draw(st.integers(2, max_nodes))):
        count = draw(st.integers(0, min(MAX_PARENTS, i)))
        net.add(f"X{i}", draw(st.permutations(net.variables))[:count])
    names = draw(st.permutations(net.variables))
    place = draw(st.lists(st.sampled_from(["a", "b", "given", "none"]), min_size=len(net) - 2, max_size=len(net) - 2))
    placed = list(zip(names, ["a", "b", *place], strict=True))
    return net, *({name for name, p in placed if p == which} for which in ("a", "b", "given"))


def edges(net):
    return [(parent, name) for name in net for parent in net.parents(name)]


def as_networkx(net):
    dag = nx.DiGraph(edges(net))
    dag.add_nodes_from(net)
    return dag


@given(structures())
def test_independence_is_the_d_separation_of_networkx_and_pyagrum(case):
    net, a, b, known = case
    found = net.independent(a, b, known)
    assert net.independent(list(b), tuple(a), frozenset(known)) == found
    assert nx.is_d_separator(as_networkx(net), a, b, known) == found
    peer = pyagrum.BayesNet()
    for name in net:
        peer.add(name, 2)
    for parent, name in edges(net):
        peer.addArc(parent, name)
    assert peer.isIndependent(a, b, known) == found


@given(structures(max_nodes=6))
def test_independence_and_blankets_are_those_of_pgmpy(case):
    net, a, b, known = case
    dag = DAG(edges(net))
    dag.add_nodes_from(net)
    reached = dag.active_trail_nodes(sorted(a), sorted(known))
    assert net.independent(a, b, known) == all(not (reached[start] & b) for start in a)
    for name in net:
        assert set(net.markov_blanket(name)) == set(dag.get_markov_blanket(name))


@given(structures())
def test_ancestors_and_descendants_are_those_of_networkx(case):
    net, *_ = case
    dag = as_networkx(net)
    for name in net:
        for ours, theirs in ((net.ancestors, nx.ancestors), (net.descendants, nx.descendants)):
            expected = theirs(dag, name)
            assert ours(name) == tuple(n for n in net if n in expected)


def impact(model, cause, outcome):
    """The effect by pyAgrum, which first finds a formula without hidden variables."""
    _, found, _ = pyagrum.causalImpact(model, on=outcome, doing=cause)
    return found.toarray() if found.names[0] == outcome else found.toarray().T


def test_the_effect_of_a_treatment_is_that_of_pyagrum_and_pgmpy():
    net = examples.kidney_stones()
    ours = effect(net, "treatment", "recovery")
    close(ours, impact(pyagrum.CausalModel(tacit.to_pyagrum(net)), "treatment", "recovery"), TOLERANCE)
    peer = CausalInference(tacit.to_pgmpy(net))
    for state, row in zip(net.states("treatment"), ours, strict=True):
        theirs = peer.query(["recovery"], do={"treatment": state}, show_progress=False)
        close(row, [theirs.get_value(recovery=label) for label in net.states("recovery")], TOLERANCE)


def test_the_effect_of_smoking_is_that_of_pyagrum_by_the_front_door_and_of_pgmpy_by_the_genotype():
    ours = effect(smoking(hidden=True), "smoking", "cancer")
    observed = tacit.to_pyagrum(smoking(hidden=False))
    latent = pyagrum.CausalModel(observed, [("genotype", ["smoking", "cancer"])])
    close(ours, impact(latent, "smoking", "cancer"), TOLERANCE)
    mutilated = tacit.to_pgmpy(smoking(hidden=True)).do("smoking")
    for state, row in zip(("true", "false"), ours, strict=True):
        theirs = VariableElimination(mutilated).query(["cancer"], {"smoking": state}, show_progress=False)
        close(row, [theirs.get_value(cancer=label) for label in ("true", "false")], TOLERANCE)

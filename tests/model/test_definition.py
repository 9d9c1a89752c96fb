"""What no engine has a say in: circuits, what is pruned, what is refused, and the queries of a network itself."""

import numpy as np
import pytest
from hypothesis import given

import tacit
from tacit import Network, TooLargeError
from tacit import semantics as definition
from tacit.compiler.prune import relevant
from tests.helpers import always_hard, close, decided, impossible, tries
from tests.strategies import queries

ROWS = 3


@tries(100)
@given(case=queries(rows=ROWS))
def test_circuits_agree_with_the_definition(case):
    net, query, columns = case
    rows = decided(net, columns)
    expected = definition.joint(net, query, columns)[rows]
    hard = always_hard(net, columns)
    for indexed in ([], hard) if hard else ([],):
        tac = tacit.compile(net, query, [n for n in columns if n not in indexed], indexed)
        for fold in (True, False):
            close(tac.circuit(fold).evaluate(columns)[rows], expected)


@impossible
@tries(60)
@given(case=queries(rows=ROWS))
def test_a_network_compiles_its_queries_itself(case):
    net, query, columns = case
    rows = decided(net, columns)
    close(net.posterior(query, columns)[rows], definition.posterior(net, query, columns)[rows])
    assert len(net._compiled) == 1
    net.posterior(query, columns)
    assert len(net._compiled) == 1


@tries(60)
@given(case=queries(rows=1))
def test_barren_nodes_leave_no_trace(case):
    net, query, columns = case
    kept = relevant(net, [query, *columns])
    small = Network(net.name, net.selection)
    for name in kept:
        small.add(name, net.parents(name), net.states(name), net.cpt(name))
    whole, part = (tacit.compile(n, query, list(columns)) for n in (net, small))
    assert str(whole.program) == str(part.program)
    for fold in (True, False):
        assert whole.circuit(fold).to_text() == part.circuit(fold).to_text()


def wide(roots=30, parents=8):
    """Two layers: every child depends on many three-valued roots."""
    rng = np.random.default_rng(0)
    net = Network()
    for i in range(roots):
        net.add(f"R{i}", states=3, cpt=np.full(3, 1 / 3))
    for i in range(roots):
        above = [f"R{j}" for j in rng.permutation(roots)[:parents]]
        net.add(f"C{i}", above, cpt=rng.dirichlet(np.ones(2), (3,) * parents))
    return net


def test_a_query_that_is_too_wide_is_refused_and_harms_no_other():
    net = wide()
    with pytest.raises(TooLargeError, match=r"width \d\d, the cluster \(.*R\d+.*\) has .* bytes per row .*hard="):
        tacit.compile(net, "R0", [f"C{i}" for i in range(30)])
    tac = tacit.compile(net, "R0", ["C0"])
    close(tac.posterior({"C0": [0.2, 0.7]}).sum(axis=1), 1)
    assert 8 <= tac.cost().width <= 12

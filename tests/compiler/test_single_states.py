"""Variables of one state lose their axis, whatever part they play: nothing about them depends on the row."""

import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import ImpossibleEvidenceWarning, Network, TestingCPT, semantics
from tacit.compiler import strategy
from tacit.compiler.operations import Rescale, Slice
from tacit.compiler.program import check
from tests.helpers import ENGINES, always_hard, close, tries
from tests.strategies import queries, tie_margin

engines = pytest.mark.parametrize("engine", ENGINES)


def below_a_constant(count):
    """H has one state and is a parent of everything: H -> X1; X1, H -> X2; ..."""
    net = Network()
    net.add("H", states=["only"], cpt=[1.0])
    net.add("X1", ["H"], cpt=[[0.3, 0.7]])
    for i in range(2, count + 1):
        net.add(f"X{i}", [f"X{i - 1}", "H"], cpt=[[[0.9, 0.1]], [[0.2, 0.8]]])
    return net


@engines
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("count", [3, 14])
def test_tables_below_an_observed_constant_are_the_same_for_all_rows(engine, dtype, count):
    net, query = below_a_constant(count), f"X{count}"
    rows = {"H": ["only"] * 3, "X2": [0.25, 0.5, 0.9]}
    tac = tacit.compile(net, query, ["X2"], hard=["H"], engine=engine, dtype=dtype)
    assert not any(isinstance(op, Slice | Rescale) for op in tac.program)
    close(tac.posterior(rows), semantics.posterior(net, query, rows), 1e-6 if dtype == "float32" else 1e-12)


def test_a_network_that_compiles_its_query_itself_takes_an_observed_constant():
    net = below_a_constant(14)
    rows = {"H": ["only"] * 2, "X9": ["true", "false"]}
    close(net.posterior("X14", rows), semantics.posterior(net, "X14", rows))


def test_an_observed_constant_above_a_testing_node():
    net = Network()
    net.add("H", states=["only"], cpt=[1.0])
    net.add("A", cpt=[0.3, 0.7])
    tables = [[[0.9, 0.1]], [[0.2, 0.8]]], [[[0.4, 0.6]], [[0.7, 0.3]]]
    net.add("T", ["A", "H"], cpt=TestingCPT(*tables, [[0.5], [0.5]]))
    rows = {"H": ["only"] * 2, "A": [0.2, 0.9]}
    tac = tacit.compile(net, "T", ["A"], hard=["H"], dtype="float32", engine="numpy")
    assert tac.program.selections["T"].axes == ("A", None)
    close(tac.posterior(rows), semantics.posterior(net, "T", rows), 1e-6)


@engines
@tries(80)
@given(case=queries(rows=3, max_nodes=8, singles=True), scale=st.sampled_from([1, 2]), data=st.data())
def test_networks_full_of_single_states_agree_with_the_definition(engine, case, scale, data):
    """With rescaling as often as can be, so that every value that may be marked as batched is."""
    net, query, columns = case
    count = 3 if columns else 1
    rows = [i for i in range(count) if tie_margin(net, {n: c[i : i + 1] for n, c in columns.items()}) > 1e-9]
    assume(rows)
    hard = [n for n in always_hard(net, columns) if data.draw(st.booleans())]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(strategy.EVIDENCE_PER_SCALE, "float64", scale)
        tac = tacit.compile(net, query, [n for n in columns if n not in hard], hard, engine=engine)
    check(tac.program)
    with warnings.catch_warnings(action="ignore", category=ImpossibleEvidenceWarning):
        close(tac.joint(columns)[rows], semantics.joint(net, query, columns)[rows])
        close(tac.posterior(columns)[rows], semantics.posterior(net, query, columns)[rows])

"""Circuits of compiled queries: the paper's counts, and what must or must not be in them."""

import numpy as np
import pytest

import tacit
from tacit import CPT, Network, TestingCPT, TooLargeError, examples, semantics
from tacit.compiler import trace
from tacit.compiler.operations import Contract
from tacit.engines.circuit import lower as lowering
from tacit.engines.circuit.lower import lower
from tacit.engines.circuit.nodes import CODE, LEAVES
from tacit.evidence.read import read
from tests.conformance_files import queries
from tests.conformance_files import read as read_file
from tests.helpers import close

COUNTS = read_file("counts.json")
EVIDENCE = ["A", "C"]


def unfolded(testing):
    net = examples.abc(testing)
    return lower(trace(net, ["B"], EVIDENCE), net, fold=False)


def test_the_arithmetic_circuit_of_the_appendix():
    circuit, expected = unfolded(testing=False), COUNTS["abc_ac"]
    assert (circuit.count("product"), circuit.count("sum")) == (expected["product"], expected["sum"]) == (12, 4)
    assert (circuit.internal, circuit.size, len(circuit)) == (16, expected["edges"], 30) == (16, 32, 30)
    assert (circuit.count("input"), circuit.count("parameter"), len(circuit.outputs)) == (4, 10, 2)


def test_the_testing_arithmetic_circuit_of_the_appendix():
    circuit, expected = unfolded(testing=True), COUNTS["abc_tac"]
    kinds = {kind: circuit.count(kind) for kind in ("product", "sum", "test")}
    assert kinds == {kind: expected[kind] for kind in kinds} == {"product": 14, "sum": 5, "test": 4}
    assert circuit.internal == expected["internal_nodes_with_unique_table"] == 23
    assert circuit.size == expected["edges_test_with_4_children"] == 54
    assert len(circuit) == expected["total_nodes_with_leaves"] == 43
    assert len(circuit.outputs) == expected["outputs"] == 2
    assert (circuit.count("input"), circuit.count("parameter")) == (4, 16)
    by_table = {part: n for (node, part), n in _parameters(circuit).items() if node == "B"}
    assert by_table == {"plus": 4, "minus": 4, "thresholds": 2}
    assert circuit.binary_operations == 19


def test_both_phases_use_the_same_nodes():
    """A's table with its evidence, n1 and n2, is made once: 23 nodes, where two phases by themselves would have 25."""
    program = trace(examples.abc(), ["B"], EVIDENCE)
    weighted = program.selections["B"].marginal
    assert any(weighted in op.inputs for op in program if isinstance(op, Contract))
    assert COUNTS["abc_tac"]["internal_nodes_without_unique_table"] - 2 == unfolded(testing=True).internal


def _parameters(circuit):
    owners = circuit.owner[circuit.kind == CODE["parameter"]]
    return {table: int((owners == i).sum()) for i, table in enumerate(circuit.tables)}


@pytest.mark.parametrize(("case", "key"), [("hand-abc-ac", "n1_to_n16"), ("hand-abc-tac", "n1_to_n21")])
def test_every_node_of_the_appendix_has_its_value(case, key):
    q = next(q for q in queries() if q.case == case)
    circuit = tacit.compile(q.net, q.query, q.evidence_vars).circuit(fold=False)
    known = read(q.evidence, circuit.inputs)
    values = circuit.values(dict(known.columns), known.rows, circuit.number)
    internal = ~np.isin(circuit.kind, [CODE[k] for k in LEAVES])
    for i, row in enumerate(q.rows):
        expected = list(row[key])
        if case == "hand-abc-tac":  # the two products n3 * T have no name
            expected += [expected[2] * t for t in q.net.cpt("B").thresholds]
        close(np.sort(values[internal, i]), np.sort(expected))


def test_tests_divide_nothing_and_sigmoids_do():
    tests = tacit.compile(examples.diamond(), "D", ["A", "B"])
    for fold in (True, False):
        circuit = tests.circuit(fold)
        assert circuit.count("divide") == circuit.count("normalise") == circuit.count("sigmoid") == 0
        assert circuit.count("test") > 0
    tests.set_parameters(examples.diamond().with_gamma(16))
    for fold in (True, False):
        circuit = tests.circuit(fold)
        assert circuit.count("divide") > 0
        assert circuit.count("sigmoid") > 0
        assert circuit.count("test") == 0


def test_the_tests_of_one_parent_state_share_its_marginal():
    circuit = unfolded(testing=True)
    tests = np.flatnonzero(circuit.kind == CODE["test"])
    assert len(set(circuit.children[circuit.start[tests]].tolist())) == 2  # one n_u per state of A
    assert len(set(circuit.children[circuit.start[tests] + 1].tolist())) == 2


def deterministic():
    """Y free, X and W noisy through a deterministic node: four free parameters beside many 0s and 1s."""
    net = Network()
    net.add("Y", cpt=[0.3, 0.7])
    net.add("V", cpt=[0.25, 0.75])
    net.add("H", ["Y", "V"], cpt=CPT.from_function(lambda y, v: "true" if "true" in (y, v) else "false"))
    net.add("G", ["H"], cpt=[[1, 0], [0, 1]])
    net.add("X", ["H"], cpt=[[0.9, 0.1], [0, 1]])
    net.add("W", ["G"], cpt=[[1, 0], [0.4, 0.6]])
    return net


def test_known_zeros_and_ones_leave_no_leaf():
    """Spec A6: the 0/1 parameters are folded into the structure."""
    net = deterministic()
    tac = tacit.compile(net, "Y", ["X", "W"])
    circuit = tac.circuit()
    numbers = circuit.number[np.isin(circuit.kind, (CODE["parameter"], CODE["constant"]))]
    assert len(numbers)
    assert not np.isin(numbers, (0.0, 1.0)).any()
    rows = {"X": [0.2, 1.0, 0.0, 0.6], "W": [0.7, 1.0, 0.3, 0.0]}
    close(circuit.evaluate(rows), semantics.joint(net, "Y", rows))
    whole = tac.circuit(fold=False)
    assert np.isin(whole.number[whole.kind == CODE["parameter"]], (0.0, 1.0)).any()
    close(whole.evaluate(rows), semantics.joint(net, "Y", rows))
    assert len(circuit) < len(whole)


def test_hard_evidence_becomes_slices_and_unfolded_a_likelihood():
    tac = tacit.compile(examples.abc(), "B", ["A"], hard=["C"])
    assert tac.circuit().count("slice") > 0
    assert tac.circuit(fold=False).count("slice") == 0
    rows = {"A": [0.8, 0.1], "C": ["lo", "hi"]}
    close(tac.circuit().evaluate(rows), tac.circuit(fold=False).evaluate(rows))


def test_a_circuit_takes_evidence_in_the_order_in_which_it_was_declared():
    tac = tacit.compile(examples.diamond(), "D", ["C", "A"])
    x = np.random.default_rng(0).random((4, 2))
    for fold in (True, False):
        close(tac.circuit(fold).evaluate(x), tac.joint(x))
        assert [v.name for v in tac.circuit(fold).inputs] == ["C", "A"]


def test_evidence_that_changes_nothing_is_still_accepted():
    net = Network()
    net.add("one", states=["only"], cpt=[1.0])
    net.add("B", ["one"], cpt=[[0.2, 0.8]])
    for names, hard in ((["one"], []), ([], ["one"])):
        circuit = tacit.compile(net, "B", names, hard).circuit()
        close(circuit.evaluate({"one": "only"}), [[0.2, 0.8]])


def test_operators_may_depend_on_an_observed_parent():
    rng = np.random.default_rng(3)
    net = Network()
    net.add("A", states=3, cpt=[0.2, 0.3, 0.5])
    net.add("B", ["A"], 3, rng.dirichlet(np.ones(3), 3))
    plus, minus = rng.dirichlet(np.ones(2), (2, 3, 3))
    tests = rng.choice([">=", ">", "<=", "<"], (3, 3))
    for gamma in (None, 6.0):
        cpt = TestingCPT(plus, minus, rng.random((3, 3)), tests, gamma)
        made = net.copy()
        made.add("T", ["A", "B"], cpt=cpt)
        rows = {"A": [0, 1, 2], "B": rng.random((3, 3))}
        for hard in (["A"], ["B"], ["A", "B"]):
            observed = rows | ({"B": [2, 0, 1]} if "B" in hard else {})
            tac = tacit.compile(made, "T", [n for n in rows if n not in hard], hard)
            close(tac.circuit().evaluate(observed), semantics.joint(made, "T", observed))


def test_a_step_too_large_for_a_circuit_is_refused(monkeypatch):
    monkeypatch.setattr(lowering, "MAX_STEP", 3)
    with pytest.raises(TooLargeError, match="nodes for one step"):
        tacit.compile(examples.diamond(), "D", ["A"]).circuit()
    monkeypatch.undo()
    monkeypatch.setattr("tacit.engines.circuit.node_builder.MAX_NODES", 20)
    with pytest.raises(TooLargeError, match="more than 20 nodes"):
        tacit.compile(examples.diamond(), "D", ["A"]).circuit()


def wide(parents):
    """A node with many parents, and a table of random numbers."""
    net = Network()
    for i in range(parents):
        net.add(f"P{i}", cpt=[0.5, 0.5])
    table = np.random.default_rng(0).random((2,) * parents)
    net.add("B", list(net), cpt=np.stack([table, 1 - table], axis=-1))
    return net


def test_a_trace_too_large_for_a_circuit_is_refused_before_it_is_made(monkeypatch):
    tac = tacit.compile(wide(12), "B", ["P0"], effort="low")
    monkeypatch.setattr("tacit.engines.circuit.node_builder.MAX_NODES", 10_000)
    monkeypatch.setattr(lowering.CircuitBuilder, "_add", lambda *_: pytest.fail("nodes were made"))
    with pytest.raises(TooLargeError, match=r"would have about 32,7\d\d nodes \(limit 10,000\); evaluate the query"):
        tac.circuit(fold=False)


@pytest.mark.parametrize("net", [examples.abc(), examples.diamond(), examples.diamond().with_gamma(4), wide(8)])
def test_the_size_of_a_trace_is_known_before_it_is_made(net, monkeypatch):
    """Up to the two constants, and nodes that are made once for several uses."""
    names = [name for name in net if name in ("A", "P0", "P5")]
    tac = tacit.compile(net, list(net)[-1], names)
    nodes = len(tac.circuit(fold=False))
    monkeypatch.setattr("tacit.engines.circuit.node_builder.MAX_NODES", nodes // 2)
    with pytest.raises(TooLargeError) as error:
        tac.circuit(fold=False)
    expected = int(str(error.value).split("about ")[1].split(" ")[0].replace(",", ""))
    assert nodes <= expected + 4 <= 2 * nodes


def test_a_block_of_too_many_nodes_is_refused_before_they_are_looked_up(monkeypatch):
    monkeypatch.setattr("tacit.engines.circuit.node_builder.MAX_NODES", 20)
    build = lowering.CircuitBuilder()
    monkeypatch.setattr(build, "_look_up", lambda *_: pytest.fail("nodes were looked up"))
    with pytest.raises(TooLargeError, match="more than 20 nodes"):
        build.parameters("A", "table", np.linspace(0, 1, 21))

"""Elimination: phases share what they can, sizes grow as they should."""

import numpy as np
import pytest
from hypothesis import given, settings

import tacit
from tacit import CPT, Network, TestingCPT, TooLargeError, examples, semantics
from tacit.compiler import compile_program, eliminate, trace
from tacit.compiler.program import Contract, Rescale, Select, check
from tests.helpers import ENGINES, close
from tests.strategies import queries


def chain(length, seed=0):
    """E1, E2 -> T1 -> ... -> Tn -> Q with testing T's and known numbers."""
    rng = np.random.default_rng(seed)
    net = examples.chain(length)
    cpts = {"E1": [0.3, 0.7], "E2": [0.6, 0.4], "Q": rng.dirichlet(np.ones(2), 2)}
    for i in range(1, length + 1):
        shape = (2, 2) if i == 1 else (2,)
        plus, minus = rng.dirichlet(np.ones(2), (2, *shape))
        cpts[f"T{i}"] = TestingCPT(plus, minus, rng.random(shape))
    return net.with_cpts(cpts)


@pytest.mark.parametrize("everywhere", [False, True], ids=["evidence on top", "evidence everywhere"])
def test_a_chain_of_testing_nodes_costs_linearly(everywhere):
    sizes = []
    for length in (100, 200):
        net = chain(length)
        names = [n for n in net if n != "Q"] if everywhere else ["E1", "E2"]
        tac = tacit.compile(net, "Q", names)
        sizes.append((len(tac.program), len(tac.circuit()), tac.cost().multiply_adds, len(tac.circuit(fold=False))))
    assert all(large <= 2.2 * small for small, large in zip(*sizes, strict=True))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_long_chain_still_agrees_with_the_definition_step_by_step(engine):
    net = chain(9)
    columns = {n: np.random.default_rng(0).random(3) for n in net if n != "Q"}
    tac = tacit.compile(net, "Q", list(columns), engine=engine)
    close(tac.joint(columns), semantics.joint(net, "Q", columns))


def test_testing_nodes_with_the_same_parents_share_one_marginal():
    tac = tacit.compile(examples.layer(8), "Q", ["E1", "E2"])
    assert len({s.marginal for s in tac.program.selections.values()}) == 1
    assert sum(isinstance(op, Select) for op in tac.program) == 8
    split = tacit.compile(examples.split_layer(8), "Q", ["E1", "E2"])
    assert len({s.marginal for s in split.program.selections.values()}) == 2


def test_the_cost_of_a_testing_hmm_is_linear_in_its_length():
    short, long = (tacit.compile(examples.hmm(n), f"H{n}", [f"E{i}" for i in range(1, n)]) for n in (40, 80))
    assert long.cost().multiply_adds <= 2.2 * short.cost().multiply_adds
    assert len(long.program) <= 2.2 * len(short.program)


def test_equal_operations_are_one():
    program = tacit.compile(examples.diamond(), "D", ["A"]).program
    contractions = [(op.inputs, frozenset(op.axes)) for op in program if isinstance(op, Contract)]
    assert len(set(contractions)) == len(contractions)


def test_compilation_is_repeatable_and_ignores_the_numbers():
    first, again, other = (compile_program(examples.diamond(s), "D", ["A", "C"])[0] for s in (0, 0, 1))
    assert str(first) == str(again) == str(other)


@settings(max_examples=60)
@given(queries(factored=False))
def test_the_trace_stays_within_the_papers_bound(case):
    """O((m + 1) n exp(w)): internal nodes against the number of nodes and the largest cluster."""
    net, query, row = case
    program = trace(net, query, list(row))
    check(program)
    tests, nodes = len(program.selections), len(program.states)
    cluster = program.size(program.cost.cluster)
    circuit = tacit.compile(net, query, list(row)).circuit(fold=False)
    assert circuit.internal <= 4 * (tests + 1) * nodes * cluster


def test_an_order_of_its_own_for_each_phase_pays_where_selection_needs_little():
    """A selection step that concerns a small ancestral network must not cost as much as the whole."""
    rng = np.random.default_rng(0)
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("T", ["A"], cpt=TestingCPT([[0.9, 0.1], [0.3, 0.7]], [[0.2, 0.8], [0.4, 0.6]], [0.4, 0.5]))
    for i in range(10):
        net.add(f"X{i}", ["T"], cpt=rng.dirichlet(np.ones(2), 2))
    net.add("Q", [f"X{i}" for i in range(10)], cpt=rng.dirichlet(np.ones(2), (2,) * 10))
    program = tacit.compile(net, "Q", ["A"]).program
    marginal = program.selections["T"].marginal
    assert sum(program.multiply_adds(i) for i in range(marginal + 1)) < 50


def test_rescaling_follows_the_number_of_evidence_variables():
    def rescales(count, dtype="float64", hard=False):
        net = Network()
        net.add("R", cpt=[0.5, 0.5])
        for i in range(count):
            net.add(f"X{i}", ["R"], cpt=[[0.9, 0.1], [0.2, 0.8]])
        names = [f"X{i}" for i in range(count)]
        tac = tacit.compile(net, "R", () if hard else names, names if hard else (), dtype=dtype)
        return sum(isinstance(op, Rescale) for op in tac.program)

    assert rescales(8) == 0
    assert rescales(40) > 0
    assert rescales(40, hard=True) > 0
    assert rescales(8, "float32") > 0


def test_rules_that_hard_evidence_indexes_count_as_their_dense_tables_do():
    net = Network()
    net.add("X0", cpt=[0.5, 0.5])
    rule = CPT.from_function(lambda p, x: [0.9, 0.1] if p == x else [0.2, 0.8])
    for i in range(1, 21):
        net.add(f"P{i}", cpt=[0.5, 0.5])
        net.add(f"X{i}", [f"P{i}", f"X{i - 1}"], cpt=rule)
    dense = net.with_cpts({n: net.table(n) for n in net})
    hard = [f"P{i}" for i in range(1, 21)]
    rules, tables = (
        sum(isinstance(op, Rescale) for op in tacit.compile(n, "X20", (), hard).program) for n in (net, dense)
    )
    assert rules == tables > 0


def wide_problem(monkeypatch, limit):
    monkeypatch.setattr(eliminate, "memory_limit", lambda: limit)
    rng = np.random.default_rng(0)
    net = Network()
    names = [f"R{i}" for i in range(6)]
    for name in names:
        net.add(name, states=4, cpt=np.full(4, 0.25))
    net.add("C", names, cpt=rng.dirichlet(np.ones(2), (4,) * 6))
    return net, names


def test_the_error_names_width_cluster_and_bytes(monkeypatch):
    net, names = wide_problem(monkeypatch, limit=1000)
    with pytest.raises(TooLargeError) as error:
        tacit.compile(net, "C", names)
    for text in ("width 6", "R0", "bytes per row (limit 1e+03)", "hard=", "effort='high'"):
        assert text in str(error.value)


def test_the_limit_is_on_what_one_row_needs(monkeypatch):
    net, names = wide_problem(monkeypatch, limit=8 * 4**6 * 2)
    tac = tacit.compile(net, "C", names)
    close(tac.posterior().sum(), 1)


def test_one_way_to_plan_that_does_not_fit_does_not_spoil_the_other(monkeypatch):
    net = examples.diamond()
    first = tacit.compile(net, "D", ["A"])
    original, calls = eliminate.check_size, []

    def refuse_the_second_elimination(tree):
        calls.append(tree)
        original(tree)
        if len(calls) > 3:
            raise TooLargeError("too wide")

    monkeypatch.setattr(eliminate, "check_size", refuse_the_second_elimination)
    close(tacit.compile(net, "D", ["A"]).joint({"A": 0.3}), first.joint({"A": 0.3}))
    assert len(calls) > 3

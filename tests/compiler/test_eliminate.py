"""Elimination: phases share what they can, sizes grow as they should."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import CPT, Network, TestingCPT, TooLargeError, examples, semantics
from tacit.compiler import compile_program, contraction, eliminate, price, trace
from tacit.compiler import operations as ops
from tacit.compiler.order.tree import ROWS, STEP_COST, Problem, Tree
from tacit.compiler.planners import global_order, quick
from tacit.compiler.program import check
from tacit.compiler.prune import Pruned, possible_states, prune
from tacit.compiler.question import Question
from tacit.compiler.strategy import EVIDENCE_PER_SCALE
from tests.helpers import ENGINES, always_hard, close, tries
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


@pytest.mark.slow
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
    assert sum(isinstance(op, ops.Select) for op in tac.program) == 8
    split = tacit.compile(examples.split_layer(8), "Q", ["E1", "E2"])
    assert len({s.marginal for s in split.program.selections.values()}) == 2


def test_the_last_marginal_stands_for_all_that_it_covers():
    net, question = chain(6), Question(("Q",), ("E1", "E2"))
    made = eliminate.Elimination(net, prune(net, question), question, eliminate.Approach(quick, 8))
    made.run()
    names = made.pruned.nodes
    (marginal,) = made._reusable((1 << len(names)) - 1, ("Q",))
    assert [n for i, n in enumerate(names) if not marginal.covers >> i & 1] == ["T6", "Q"]
    assert [n for i, n in enumerate(names) if marginal.parents >> i & 1] == ["T5"]
    summed_out = made._reusable((1 << len(names)) - 1, ("T3",))
    assert [names[i] for m in summed_out for i in range(len(names)) if m.parents >> i & 1] == ["T3"]


def test_the_cost_of_a_testing_hmm_is_linear_in_its_length():
    short, long = (tacit.compile(examples.hmm(n), f"H{n}", [f"E{i}" for i in range(1, n)]) for n in (40, 80))
    assert long.cost().multiply_adds <= 2.2 * short.cost().multiply_adds
    assert len(long.program) <= 2.2 * len(short.program)


def test_equal_operations_are_one():
    program = tacit.compile(examples.diamond(), "D", ["A"]).program
    contractions = [(op.inputs, frozenset(op.axes)) for op in program if isinstance(op, ops.Contract)]
    assert len(set(contractions)) == len(contractions)


def test_compilation_is_repeatable_and_ignores_the_numbers():
    first, again, other = (compile_program(examples.diamond(s), Question(("D",), ("A", "C")))[0] for s in (0, 0, 1))
    assert str(first) == str(again) == str(other)


@tries(60)
@given(queries(factored=False))
def test_the_trace_stays_within_the_papers_bound(case):
    """O((m + 1) n exp(w)): internal nodes against the number of nodes and the largest cluster."""
    net, query, row = case
    program = trace(net, [query], list(row))
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


@pytest.mark.parametrize(
    ("part", "price_of_one"),
    [
        ("multiply_adds", ROWS),
        ("elements", ROWS),
        ("static_multiply_adds", 1),
        ("static_elements", 1),
        ("operations", STEP_COST),
    ],
)
def test_a_program_is_priced_for_a_batch_of_rows(part, price_of_one):
    program = tacit.compile(examples.diamond(), "D", ["A"]).program
    more = SimpleNamespace(cost=replace(program.cost, **{part: getattr(program.cost, part) + 1}))
    assert price(more) - price(program) == price_of_one


SMALLEST = {"float64": 1022, "float32": 126}  # the least normal number is 2 to minus this
SHRINKS = {"float64": 120, "float32": 60}  # a factor may make a row's largest entry smaller by 2 to minus this


def evidence_in(program):
    """For every value, how many factors that depend on the row have been multiplied since it was last rescaled."""
    counts = []
    for operation in program:
        observed = not set(operation.axes).isdisjoint(program.hard)
        below = [counts[j] for j in operation.inputs]
        match operation:
            case ops.Likelihood():
                counts.append(1)
            case ops.Parameter() | ops.Select() | ops.Share():
                counts.append(int(observed or program.batched[len(counts)]))
            case ops.Gather() if isinstance(program.operations[operation.inputs[0]], ops.Parameter):
                counts.append(int(observed))
            case ops.Gather() | ops.Slice():
                counts.append(below[0])
            case ops.Contract():
                counts.append(sum(below))
            case ops.Add():
                counts.append(max(below))
            case ops.Rescale():
                counts.append(1)
            case ops.Constant():
                counts.append(0)
    return counts


def sensors(count):
    """A root with `count` children."""
    net = Network()
    net.add("R", cpt=[0.5, 0.5])
    for i in range(count):
        net.add(f"X{i}", ["R"], cpt=[[0.9, 0.1], [0.2, 0.8]])
    return net


def steps(count):
    """A chain of hidden variables, each with one child."""
    net = Network()
    net.add("H0", cpt=[0.5, 0.5])
    for i in range(count):
        net.add(f"H{i + 1}", [f"H{i}"], cpt=[[0.9, 0.1], [0.2, 0.8]])
        net.add(f"X{i}", [f"H{i + 1}"], 3, [[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]])
    return net


def test_one_order_for_all_phases_has_every_variable_in_a_good_place():
    net = steps(20)
    order = global_order(net, Pruned(net.variables, possible_states(net, net.variables)), Question(("H0",)))
    assert sorted(order) == sorted(net)
    program, _ = compile_program(net, Question(("H0",), tuple(n for n in net if n.startswith("X"))), order=order)
    assert program.cost.width == 2  # the chain, and H0 wherever it stands in the order


def test_as_many_factors_are_multiplied_as_cannot_underflow():
    limit = EVIDENCE_PER_SCALE["float64"]
    assert limit * SHRINKS["float64"] <= SMALLEST["float64"] < (limit + 1) * SHRINKS["float64"]


def test_float32_multiplies_as_many_factors_as_hardly_ever_underflow():
    """Rows that do are computed again: half of what a factor may make smaller is enough of a distance."""
    assert EVIDENCE_PER_SCALE["float32"] * SHRINKS["float32"] / 2 <= SMALLEST["float32"]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("kind", ["soft", "hard", "mixed"])
@pytest.mark.parametrize("make", [sensors, steps])
def test_no_product_has_more_evidence_than_cannot_underflow(dtype, kind, make):
    net = make(41)
    names = [n for n in net if n.startswith("X")]
    hard = {"soft": [], "hard": names, "mixed": names[::2]}[kind]
    program = tacit.compile(net, net.variables[0], names, hard, dtype=dtype).program
    counts = evidence_in(program)
    products = [counts[i] for i, op in enumerate(program) if isinstance(op, ops.Contract) and len(op.inputs) == 2]
    assert 1 < max(products) <= EVIDENCE_PER_SCALE[dtype]
    assert counts[program.joint] <= EVIDENCE_PER_SCALE[dtype]
    assert max(counts[j] for op in program if isinstance(op, ops.Rescale) for j in op.inputs) > 1


@pytest.mark.parametrize("kind", ["soft", "hard"])
def test_products_that_cannot_underflow_are_not_rescaled(kind):
    for dtype, limit in EVIDENCE_PER_SCALE.items():
        for count in (limit, limit + 1):
            names = [f"X{i}" for i in range(count)]
            soft, hard = (names, ()) if kind == "soft" else ((), names)
            program = tacit.compile(sensors(count), "R", soft, hard, dtype=dtype).program
            assert any(isinstance(op, ops.Rescale) for op in program) == (count > limit)


@tries(60)
@given(queries(rows=2, max_nodes=8), st.sampled_from([2, 3, 8]), st.booleans())
def test_random_products_have_no_more_evidence_than_allowed(case, limit, indexed):
    net, query, columns = case
    hard = [n for n in always_hard(net, columns) if indexed and n != query]
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(EVIDENCE_PER_SCALE, "float64", limit)
        program = tacit.compile(net, query, [n for n in columns if n not in hard], hard).program
    counts = evidence_in(program)
    assert all(
        counts[i] <= limit for i, op in enumerate(program) if isinstance(op, ops.Contract) and program.batched[i]
    )


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
        sum(isinstance(op, ops.Rescale) for op in tacit.compile(n, "X20", (), hard).program) for n in (net, dense)
    )
    assert rules == tables > 0


def wide_problem(monkeypatch, limit):
    monkeypatch.setattr(contraction, "memory_limit", lambda: limit)
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


def test_the_limits_are_the_largest_that_is_accepted(monkeypatch):
    p = Problem([0b011, 0b110], [True, True], ["A", "B", "C"], [2, 3, 5], keep=0b101)
    tree = Tree(p, [(0, 1)])  # a step of 30 multiply-adds that writes 10 entries; 15 are the most that one value has
    monkeypatch.setattr(contraction, "MAX_STEP", 30)
    contraction.check_size(tree, 8 * 15)
    monkeypatch.setattr(contraction, "MAX_STEP", 29)
    with pytest.raises(TooLargeError, match=r"width 2, the cluster \(A, B, C\) has 30 states"):
        contraction.check_size(tree, 8 * 15)
    monkeypatch.setattr(contraction, "MAX_STEP", 30)
    with pytest.raises(TooLargeError, match=r"would need 120 bytes per row \(limit 119\)"):
        contraction.check_size(tree, 8 * 15 - 1)


@pytest.mark.parametrize(("axes", "dots"), [(12, False), (13, True)])
def test_a_long_cluster_is_cut_in_the_message(axes, dots):
    names = [f"v{i}" for i in range(axes)]
    p = Problem([2**axes - 1, 1], [True, True], names, [2] * axes, keep=2**axes - 1)
    with pytest.raises(TooLargeError) as error:
        contraction.check_size(Tree(p, [(0, 1)]), 1)
    assert f"({', '.join(names[:12])}{', ...' if dots else ''})" in str(error.value)


def test_one_way_to_plan_that_does_not_fit_does_not_spoil_the_other(monkeypatch):
    net = examples.diamond()
    first = tacit.compile(net, "D", ["A"])
    original, calls = contraction.check_size, []

    def refuse_the_second_elimination(tree, limit):
        calls.append(tree)
        original(tree, limit)
        if len(calls) > 3:
            raise TooLargeError("too wide")

    monkeypatch.setattr(contraction, "check_size", refuse_the_second_elimination)
    close(tacit.compile(net, "D", ["A"]).joint({"A": 0.3}), first.joint({"A": 0.3}))
    assert len(calls) > 3

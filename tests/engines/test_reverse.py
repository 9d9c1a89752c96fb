"""Derivatives, from every engine that has them: by tables, thresholds, slopes and likelihoods."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import Network, TestingCPT, examples
from tacit.compiler.operations import Gather, Rescale, Select, Slice
from tacit.engines.arrays.numpy_engine import NumpyEngine
from tacit.evidence.column import Column
from tests.conformance_files import network, read
from tests.helpers import ENGINES, always_hard, close
from tests.strategies import evidence as evidence_for
from tests.strategies import networks, tie_margin

engines = pytest.mark.parametrize("engine", ENGINES)


def compiled(net, query, evidence, engine="numpy", hard=()):
    """A compiled query and its checked evidence."""
    tac = tacit.compile(net, query, [n for n in evidence if n not in hard], hard, engine=engine)
    return tac, tac.read(evidence)


def squared_error(joint, target):
    """The mean squared error of P*(first state), and its derivatives by the joint."""
    total = joint.sum(axis=0)
    p = joint[0] / total
    by_p = 2 * (p - target) / p.size
    seeds = np.zeros_like(joint) - p * by_p / total
    seeds[0] += by_p / total
    return float(((p - target) ** 2).mean()), seeds


def loss_and_gradients(engine, known, target):
    found = engine.run(known.columns, known.rows)
    loss, seeds = squared_error(found.joint, target)
    return loss, engine.gradients(known.columns, known.rows, seeds, found.exponent)


def agree(found, *others, tolerance=1e-10):
    """Equal derivatives; what one of them leaves out is 0."""
    for expected, kind in product(others, ("tables", "slopes", "likelihoods")):
        a, b = getattr(found, kind), getattr(expected, kind)
        for key in {*a, *b}:
            close(a.get(key, 0.0), b.get(key, 0.0), tolerance)


# engines agree --------------------------------------------------------------------------------------------


def only_learnable(found, parameters):
    """Without the derivatives by exact 0s and 1s, which never change and which a tape leaves out."""
    tables = {}
    for key, by_entry in found.tables.items():
        fixed = (parameters[key] == 0) | (parameters[key] == 1)
        tables[key] = by_entry if key[1] == "thresholds" else np.where(fixed, 0.0, by_entry)
    return replace(found, tables={key: table for key, table in tables.items() if key[1] != "test"})


def without_ties(net, columns, rows):
    return all(tie_margin(net, {n: c[r : r + 1] for n, c in columns.items()}) > 1e-9 for r in range(rows))


@given(st.data(), st.booleans(), st.booleans())
def test_engines_agree(data, compile_hard, through_selection):
    rows = 3
    net = data.draw(networks())
    query, evidence = data.draw(st.sampled_from(net.variables)), data.draw(evidence_for(net, rows=rows))
    assume(without_ties(net, evidence, rows))
    hard = always_hard(net, evidence) if compile_hard else []
    weights = np.random.default_rng(0).random((len(net.states(query)), 1))
    found = []
    for name in ENGINES:
        tac, known = compiled(net, query, evidence, name, hard)
        by = tac.engine().gradients(known.columns, known.rows, weights, 0, through_selection)
        found.append(only_learnable(by, tac.numbers()[0]))
        assert all(a.shape == (len(net.states(n)), known.rows) for n, a in by.likelihoods.items())
    agree(*found)


def long_chain(length, rng):
    """Sigmoids below sigmoids, more than can be multiplied without scaling; soft evidence everywhere."""
    net = Network()
    net.add("T0", cpt=rng.dirichlet(np.ones(2)))
    for i in range(1, length):
        net.add(f"T{i}", [f"T{i - 1}"], cpt=sigmoid(rng, (2,), 2))
    return net, {n: rng.dirichlet(np.ones(2), 4) for n in net}


def test_engines_agree_on_a_chain_that_is_rescaled():
    rng = np.random.default_rng(0)
    net, evidence = long_chain(400, rng)
    target, found = rng.random(4), []
    for name in ENGINES:
        tac, known = compiled(net, "T399", evidence, name)
        assert any(isinstance(op, Rescale) for op in tac.program)
        found.append(loss_and_gradients(tac.engine(), known, target)[1])
    assert any(np.abs(table).max() > 1e-3 for table in found[0].tables.values())
    agree(*found)


@pytest.mark.parametrize("make", [examples.layer, examples.split_layer])
def test_engines_agree_on_wide_matrix_products(make):
    rng = np.random.default_rng(0)
    net = make(8)
    tables = {n: sigmoid(rng, [2] * len(net.parents(n)), 2) for n in net.testing_nodes}
    tables |= {"E1": [0.5, 0.5], "E2": [0.3, 0.7], "Q": rng.dirichlet(np.ones(2), size=(2,) * 8)}
    evidence, target = {"E1": rng.random(50), "E2": rng.random(50)}, rng.random(50)
    found = []
    for name in ENGINES:
        tac, known = compiled(net.with_cpts(tables), "Q", evidence, name)
        found.append(loss_and_gradients(tac.engine(), known, target)[1])
    agree(*found)


# references -----------------------------------------------------------------------------------------------


@engines
@pytest.mark.parametrize("case", read("grads.json")["cases"], ids=lambda c: c["id"])
def test_reference_gradients(case, engine):
    assert case["state"] == 0
    evidence = {n: np.array([d["evidence"][n] for d in case["data"]]) for n in case["data"][0]["evidence"]}
    tac, known = compiled(network(case["network"]), case["query"], evidence, engine)
    loss, found = loss_and_gradients(tac.engine(), known, np.array([d["label"] for d in case["data"]]))
    assert abs(loss - case["loss"]) < 1e-12
    for node in case["logits"]:
        name = node["name"]
        for key, part in (("z", "table"), ("z_plus", "plus"), ("z_minus", "minus")):
            if key in node:
                weights = np.exp(np.array(node[key]))
                theta = weights / weights.sum(axis=-1, keepdims=True)
                by_theta = found.tables[name, part].reshape(theta.shape)
                by_logit = theta * (by_theta - (by_theta * theta).sum(axis=-1, keepdims=True))
                close(by_logit, case["grad"][name][key], 1e-8)
        if "thresholds" in node:
            close(found.tables[name, "thresholds"].ravel(), case["grad"][name]["thresholds"], 1e-8)


def sigmoid(rng, parents, k):
    plus, minus = rng.dirichlet(np.ones(k), size=(2, *parents))
    test = np.where(np.arange(np.prod(parents)) % 3 < 2, ">=", "<").reshape(parents)
    return TestingCPT(plus, minus, rng.random(parents), test, gamma=float(rng.uniform(1, 20)))


def sigmoid_network(seed):
    """Selections below selections, above and beside evidence; rules that are no tables; an impossible state."""
    rng = np.random.default_rng(seed)
    net = Network()
    net.add("A", cpt=rng.dirichlet(np.ones(2)))
    net.add("B", ["A"], 3, sigmoid(rng, (2,), 3))
    net.add("C", ["A", "B"], cpt=sigmoid(rng, (2, 3), 2))
    net.add("S", states=2, cpt=rng.dirichlet(np.ones(2)))
    net.add("D", ["S", "A", "C"], cpt=tacit.Mux("S", ["A", "C"]))
    net.add("E", cpt=tacit.NoisyOr({"C": 0.3, "D": 0.8}, leak=0.1))
    net.add("F", ["A"], 3, [[0.4, 0.0, 0.6], [0.5, 0.0, 0.5]])
    net.add("Q", ["B", "E", "F"], cpt=sigmoid(rng, (3, 2, 3), 2))
    return net


def difference(function, step=1e-6):
    """The derivative of a function of a small change, numerically."""
    return (function(step) - function(-step)) / (2 * step)


def changed(array, index, by):
    copy = array.copy()
    copy[index] += by
    return copy


OBSERVED = {"A": "soft", "B": "hard", "C": "soft", "D": "soft", "E": "hard", "F": "soft"}


@engines
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
@pytest.mark.parametrize("names", ["", "A", "B", "AF", "BE", "ABCDEF"])
def test_derivatives_are_finite_differences(engine, seed, names):
    net, rng = sigmoid_network(seed), np.random.default_rng(seed)
    hard = [n for n in names if OBSERVED[n] == "hard"]
    evidence = {n: rng.dirichlet(np.ones(len(net.states(n))), 4) for n in names if n not in hard}
    evidence |= {n: rng.choice(np.array(net.states(n), dtype=object), 4) for n in hard}
    tac, known = compiled(net, "Q", evidence, engine, hard)
    target = rng.random(known.rows)
    _, found = loss_and_gradients(tac.engine(), known, target)
    (tables, gammas), reference = tac.numbers(), NumpyEngine(tac.program, *tac.numbers())

    def loss(some_tables, some_gammas, columns=known.columns):
        reference.update(tables | some_tables, gammas | some_gammas)
        return squared_error(reference.run(columns, known.rows).joint, target)[0]

    for key, by_entry in only_learnable(found, tables).tables.items():
        learnable = (tables[key] != 0) & (tables[key] != 1)
        for index in zip(*np.nonzero(learnable), strict=True):
            numeric = difference(lambda d, key=key, index=index: loss({key: changed(tables[key], index, d)}, {}))
            assert abs(numeric - by_entry[index]) < 1e-6
    for node, slope in found.slopes.items():
        assert abs(difference(lambda d, node=node: loss({}, {node: gammas[node] + d})) - slope) < 1e-6
    for name, by_state in found.likelihoods.items():
        if name not in known.columns:
            continue
        column = known.columns[name]
        for index in np.ndindex(by_state.shape):
            numeric = difference(
                lambda d, c=column, i=index: loss(
                    {}, {}, known.columns | {c.variable.name: Column(c.variable, soft=changed(c.soft, i, d))}
                )
            )
            assert abs(numeric - by_state[index]) < 1e-6


def test_the_finite_differences_reach_every_kind_of_operation():
    kinds = set()
    for names in ("", "A", "AF", "ABCDEF"):
        hard = [n for n in names if OBSERVED[n] == "hard"]
        program = tacit.compile(sigmoid_network(0), "Q", list(names), hard).program
        kinds |= {(type(op), batched) for op, batched in zip(program, program.batched, strict=True)}
    assert {(Slice, True), (Select, True), (Select, False), (Gather, True), (Gather, False)} <= kinds


@engines
def test_hard_tests_pass_derivatives_to_the_selected_rows_alone(engine):
    net = Network()
    net.add("A", cpt=[0.5, 0.5])
    net.add("B", ["A"], cpt=TestingCPT([[0.9, 0.1], [0.7, 0.3]], [[0.2, 0.8], [0.1, 0.9]], [0.6, 0.6]))
    tac, known = compiled(net, "B", {"A": [[0.7, 0.3]]}, engine)
    found = tac.engine().gradients(known.columns, 1, np.array([[1.0], [0.0]]), 0)
    close(found.tables["B", "plus"], [[0.35, 0], [0, 0]])  # 0.7 >= 0.6
    close(found.tables["B", "minus"], [[0, 0], [0.15, 0]])  # 0.3 < 0.6
    close(found.tables["B", "thresholds"], [0, 0])
    close(found.likelihoods["A"], [[0.5 * 0.9], [0.5 * 0.1]])  # none through the comparison
    assert not any(found.slopes.values())


@engines
@pytest.mark.parametrize("gamma", [0.0, 8.0])
def test_impossible_evidence_above_a_sigmoid_passes_no_derivative_through_it(engine, gamma):
    net = Network()
    net.add("A", cpt=[1.0, 0.0])
    net.add("T", ["A"], cpt=TestingCPT([[0.9, 0.1]] * 2, [[0.2, 0.8]] * 2, [0.6, 0.6], gamma=gamma))
    tac, known = compiled(net, "T", {"A": [[0.0, 1.0], [0.5, 0.5]]}, engine)
    found = tac.engine().gradients(known.columns, 2, np.ones((2, 2)), 0)
    alone = tac.engine().gradients({"A": known.columns["A"].block(1, 2)}, 1, np.ones((2, 1)), 0)
    assert np.isfinite(found.tables["T", "thresholds"]).all()
    close(found.tables["T", "thresholds"], alone.tables["T", "thresholds"])
    close(found.slopes.get("T", 0.0), alone.slopes.get("T", 0.0))


# rows -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", [None, 6.0])
def test_a_row_that_speaks_for_all(gamma):
    net, rng = sigmoid_network(0).with_gamma(gamma), np.random.default_rng(1)
    evidence = {"A": 0.3, "C": rng.dirichlet(np.ones(2), 5), "B": 2, "E": "true"}
    repeated = evidence | {n: [evidence[n]] * 5 for n in "ABE"}
    tac, known = compiled(net, "Q", evidence, hard=["B", "E"])
    assert known.columns["A"].rows == known.columns["B"].rows == 1
    seeds = rng.random((2, 5))
    found = tac.engine().gradients(known.columns, 5, seeds, 0)
    assert found.likelihoods["A"].shape == (2, 5)
    agree(found, tac.engine().gradients(tac.read(repeated).columns, 5, seeds, 0), tolerance=1e-12)


@engines
def test_rows_without_evidence_add_up(engine):
    tac, _ = compiled(examples.abc(), "B", {"A": None}, engine)
    seeds = np.random.default_rng(0).random((2, 3))
    found = tac.engine().gradients({}, 3, seeds, 0)
    alone = tac.engine().gradients({}, 1, seeds.sum(1)[:, None], 0)
    agree(replace(found, likelihoods={}), replace(alone, likelihoods={}))
    static, _ = compiled(examples.abc(), "B", {}, engine)
    agree(static.engine().gradients({}, 3, seeds, 0), replace(found, likelihoods={}))


def test_blocks_of_rows_add_up():
    net, rng = sigmoid_network(0), np.random.default_rng(1)
    tac, known = compiled(net, "Q", {"A": rng.random(7), "C": rng.random(7), "B": rng.integers(0, 3, 7)}, hard=["B"])
    engine, seeds = tac.engine(), rng.random((2, 7))
    whole = engine.gradients(known.columns, 7, seeds, 0)
    parts = [
        engine.gradients({n: c.block(a, b) for n, c in known.columns.items()}, b - a, seeds[:, a:b], 0)
        for a, b in ((0, 3), (3, 7))
    ]
    for key, table in whole.tables.items():
        close(parts[0].tables[key] + parts[1].tables[key], table)
    for name, by_state in whole.likelihoods.items():
        close(np.concatenate([part.likelihoods[name] for part in parts], axis=1), by_state)


def test_long_programs_are_given_fewer_rows():
    net, evidence = long_chain(400, np.random.default_rng(0))
    engine = compiled(net, "T399", evidence)[0].engine()
    assert engine.gradient_chunk * engine.program.cost.elements <= 2**24
    assert engine.gradient_chunk < engine.chunk


# the NumPy engine -----------------------------------------------------------------------------------------


def test_value_and_gradients_are_one_pass():
    net, rng = sigmoid_network(2), np.random.default_rng(1)
    tac, known = compiled(net, "Q", {"A": rng.random(6), "D": rng.random(6)})
    target = rng.random(6)
    expected = loss_and_gradients(tac.engine(), known, target)
    value, found = tac.engine().value_and_gradients(known.columns, 6, lambda joint: squared_error(joint, target))
    assert value == expected[0]
    agree(found, expected[1], tolerance=0)


def test_update_is_a_new_engine():
    rng = np.random.default_rng(1)
    old, new = sigmoid_network(0), sigmoid_network(1)
    tac, known = compiled(old, "Q", {"A": rng.random(6), "B": rng.integers(0, 3, 6)}, hard=["B"])
    engine, target = tac.engine(), rng.random(6)
    clone = engine.clone()
    before = loss_and_gradients(engine, known, target)
    tac.set_parameters(new)
    expected = loss_and_gradients(tac.engine(), known, target)
    assert expected[0] != before[0]
    engine.update(*tac.numbers())
    loss, found = loss_and_gradients(engine, known, target)
    assert loss == expected[0]
    agree(found, expected[1], tolerance=0)
    assert loss_and_gradients(clone, known, target)[0] == before[0]


def test_update_takes_some_numbers_and_hardens():
    net = sigmoid_network(0)
    tac, known = compiled(net, "Q", {"A": np.array([0.2, 0.9])})
    engine = tac.engine()
    table = np.array([0.25, 0.75])
    engine.update({("A", "table"): table}, {"B": None})
    tac.set_parameters(net.with_cpts({"A": table, "B": net.cpt("B").with_gamma(None)}))
    np.testing.assert_array_equal(engine.run(known.columns, 2).joint, tac.engine().run(known.columns, 2).joint)


def test_float32():
    net, rng = sigmoid_network(0), np.random.default_rng(1)
    evidence, target = {"A": rng.random(6), "C": rng.random(6), "B": rng.integers(0, 3, 6)}, rng.random(6)
    exact, known = compiled(net, "Q", evidence, hard=["B"])
    tac = tacit.compile(net, "Q", ["A", "C"], ["B"], engine="numpy", dtype="float32")
    found = loss_and_gradients(tac.engine(), known, target)[1]
    agree(found, loss_and_gradients(exact.engine(), known, target)[1], tolerance=1e-5)
    assert {a.dtype.name for a in found.likelihoods.values()} == {"float32"}
    assert {a.dtype.name for a in found.tables.values()} == {"float64"}

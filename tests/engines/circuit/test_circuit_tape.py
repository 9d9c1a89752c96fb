"""Circuits on the tape: the same outputs as node-by-node evaluation, on any circuit that it accepts."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tacit
from tacit import TacitError, UnsetError, examples
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.node_builder import CircuitBuilder
from tacit.model.cpt import CPT, TESTS
from tacit.model.elements.variable import Variable
from tests.helpers import close, impossible
from tests.strategies import queries, tie_margin


@impossible
@given(queries())
def test_circuits_of_queries(case):
    net, query, evidence = case
    net = net.with_gamma(None)
    assume(tie_margin(net, evidence) > 1e-9)
    tac = tacit.compile(net, query, list(evidence))
    for fold in (True, False):
        circuit = tac.circuit(fold)
        close(circuit.tape().evaluate(evidence), circuit.evaluate(evidence))


@st.composite
def circuits(draw):
    """A random circuit of all kinds that the tape runs, with few different numbers, so that nodes are shared."""
    build = CircuitBuilder(fold=draw(st.booleans()))
    numbers = draw(st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0, 3.0]), min_size=1, max_size=4))
    pool = [*build.constants(np.array(numbers)).tolist(), *build.parameters("P", "table", np.array(numbers)).tolist()]
    for i in range(draw(st.integers(1, 3))):
        pool += build.inputs(Variable(f"x{i}", ())).tolist()
    pick = st.integers(0, 10**6).map(lambda i: np.array(pool[i % len(pool)]))
    for _ in range(draw(st.integers(1, 12))):
        match draw(st.sampled_from(["sum", "product", "test", "complement"])):
            case "sum":
                made = build.sums(np.array(draw(st.lists(pick, min_size=2, max_size=5))))
            case "product":
                made = build.products(draw(pick), draw(pick))
            case "test":
                made = build.tests(*(draw(pick) for _ in range(4)), np.array(draw(st.integers(0, 3))))
            case _:
                made = build.complements(draw(pick))
        pool.append(int(made))
    return build.finish(np.array([pool[-1], *(int(draw(pick)) for _ in range(draw(st.integers(0, 2))))]))


@given(circuits(), st.integers(0, 10**6))
def test_random_circuits(circuit, seed):
    # small multiples of 1/4: sums and products are exact, and ties are common
    x = np.random.default_rng(seed).integers(-8, 9, (9, max(1, len(circuit.inputs)))) / 4
    rows = x if circuit.inputs else None
    expected = circuit.evaluate(rows)
    for again in (circuit, Circuit.from_text(circuit.to_text())):
        np.testing.assert_allclose(again.tape().evaluate(rows), expected, rtol=1e-12)


def test_products_of_many_factors():
    text = '# inputs {"x": [], "y": []}\nn0 = input "x" 0\nn1 = input "y" 0\nn2 = constant 3.0\n'
    for factors, expected in {"n0": 2, "n0 n0 n1": 20, "n2 n0 n2 n1 n0": 180, "n0 n1": 10, "n1 n2": 15}.items():
        circuit = Circuit.from_text(f"{text}n3 = product {factors}\nn4 = sum n3 n0\noutputs n3 n4\n")
        assert circuit.tape().evaluate([[2.0, 5.0]]).tolist() == [[expected, expected + 2.0]]


@pytest.mark.parametrize("operator", TESTS)
def test_tests_at_their_limits(operator):
    build = CircuitBuilder()
    x, y = (build.inputs(Variable(name, ()))[0] for name in "xy")
    half, seven, minus = build.constants(np.array([0.5, 7.0, -3.0]))
    code = np.array(TESTS.index(operator))
    tests = [
        build.tests(x, half, seven, minus, code),
        build.tests(x, build.products(half, y), seven, minus, code),
        build.tests(x, half, y, minus, code),
        build.tests(x, y, x, build.complements(y), code),
        build.tests(half, y, x, y, code),
    ]
    circuit = build.finish(np.array(tests))
    x, y = (v.ravel() for v in np.meshgrid([-0.5, 0.25, 0.5, 1.0], [-1.0, 0.5, 1.0]))
    limits = [np.full_like(x, 0.5), y / 2, np.full_like(x, 0.5), y, y]
    plus, minus = [7.0, 7.0, y, x, x], [-3.0, -3.0, -3.0, 1 - y, y]
    compare = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}[operator]
    expected = [
        np.where(compare(v, t), a, b) for v, t, a, b in zip([x, x, x, x, 0.5], limits, plus, minus, strict=True)
    ]
    assert circuit.tape().evaluate(np.stack([x, y], axis=1)).tolist() == np.stack(expected, axis=1).tolist()


def test_the_tape_multiplies_within_sums_and_uses_slots_again():
    build = CircuitBuilder()
    x = np.array([build.inputs(Variable(f"x{i}", ()))[0] for i in range(8)])
    weights = np.random.default_rng(0).normal(size=(30, 8, 8))
    nodes = x
    for i, w in enumerate(weights):
        nodes = build.sums(build.products(build.parameters(f"W{i}", "weights", w), nodes))
    tape = build.finish(nodes).tape()
    assert len(tape.instructions) == 8 + 30 * 8 + 8  # inputs, sums, outputs: no product
    assert tape.slots <= 17
    x = np.random.default_rng(1).normal(size=(5, 8))
    expected = x
    for w in weights:
        expected = expected @ w.T
    np.testing.assert_allclose(tape.evaluate(x), expected, rtol=1e-9)


def test_products_that_one_sum_uses_are_multiplied_within_it():
    build = CircuitBuilder()
    x, y, z = (build.inputs(Variable(name, ()))[0] for name in "xyz")
    three = build.constants(np.array(3.0))
    pairs = [build.products(x, y), build.products(y, z)]
    outputs = [build.sums(np.array(pairs)), build.sums(np.array([build.products(x, z), build.products(three, y), z]))]
    tape = build.finish(np.array(outputs)).tape()
    close(tape.evaluate([[2.0, 3.0, 5.0]]), [[21.0, 24.0]])
    assert len(tape.instructions) == 3 + 3 + 2


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 64, 65, 1000, 20_000])
def test_any_number_of_rows(rows):
    circuit = tacit.compile(examples.abc(), "B", ["A", "C"]).circuit()
    a = np.random.default_rng(0).random(rows)
    close(circuit.tape().evaluate({"A": a, "C": "lo"}), circuit.evaluate({"A": a, "C": "lo"}))
    close(circuit.tape().evaluate({"A": a}), circuit.evaluate({"A": a}))


def test_threads_give_the_same_answer():
    net = examples.hmm(300)
    names = [f"E{t}" for t in range(1, 301)]
    tape = tacit.compile(net, "H300", names).circuit().tape()
    evidence = {n: np.random.default_rng(t).dirichlet(np.ones(2), 4000) for t, n in enumerate(names)}
    tape.threads = 1
    alone = tape.evaluate(evidence)
    tape.threads = 3
    np.testing.assert_array_equal(tape.evaluate(evidence), alone)


def test_nodes_that_the_tape_lacks_are_named():
    soft = tacit.compile(examples.abc().with_gamma(4.0), "B", ["A"]).circuit()
    with pytest.raises(
        TacitError, match=r"'divide' nodes \(n\d+ is one\) does not run on the tape; use circuit.evaluate"
    ):
        soft.tape()
    hard = tacit.compile(examples.abc(), "B", hard=["A"]).circuit()
    with pytest.raises(TacitError, match="'slice' nodes"):
        hard.tape()


def test_unset_numbers_are_refused():
    net = examples.abc().with_cpts({"C": CPT([[0.25, 0.75], [0.5, 0.5]])})
    net = net.with_cpts({"A": CPT([np.nan, np.nan])})
    with pytest.raises(UnsetError, match="node 'A': table has unset numbers"):
        tacit.compile(net, "B", ["A"]).circuit().tape()

"""Circuits built by hand: the units, folding, counting, evaluating."""

import numpy as np
import pytest

from tacit import EvidenceError, TacitError, UnsetError
from tacit.engines.circuit.node_builder import SEEDS, CircuitBuilder
from tacit.engines.circuit.nodes import KINDS
from tacit.model.cpt import TESTS
from tacit.model.elements.variable import Variable
from tests.helpers import close

X, W = Variable("X"), Variable("W")
X_LIKELIHOOD, W_LIKELIHOOD = np.array([0.0, 0.3, 1.0, 0.55]), np.array([0.2, 0.9, 0.0, 0.4])


def theta(build, *values):
    return build.parameters("Y", "theta", np.array(values))


def all_five_units(build):
    """P(y | x, w) = alpha / (alpha + beta) with adders, multipliers, both inverters and a normalising unit."""
    x, w = build.inputs(X)[:1], build.inputs(W)[:1]
    t = theta(build, 0.3, 0.8, 0.15, 0.6)
    not_x, not_w, not_t = build.complements(x), build.complements(w), build.complements(t)

    def agree(unit, not_unit, p, not_p):  # lambda p + (1 - lambda)(1 - p)
        return build.sums(np.stack([build.products(unit, p), build.products(not_unit, not_p)], axis=-1))

    alpha = build.products(
        build.products(t[:1], agree(x, not_x, t[1:2], not_t[1:2])), agree(w, not_w, t[3:], not_t[3:])
    )
    beta = build.products(
        build.products(not_t[:1], agree(x, not_x, t[2:3], not_t[2:3])), agree(w, not_w, not_t[3:], t[3:])
    )
    return alpha, beta


def test_all_five_units_and_their_emulation_by_adders_and_multipliers():
    """Spec A5: an AC is what remains after removing the normalising unit and emulating the inverters by adders."""
    build = CircuitBuilder()
    outputs = build.normalised(np.concatenate(all_five_units(build)))
    circuit = build.finish(outputs)
    assert {k for k in KINDS if circuit.count(k)} == {
        "parameter", "input", "sum", "product", "complement", "normalise",
    }  # fmt: skip
    emulated = CircuitBuilder()
    minus_one = emulated.constants(np.array([-1.0]))

    def adder(x):  # 1 - x = 1 + (-1) x
        return emulated.sums(np.stack([np.full_like(x, emulated.one), emulated.products(minus_one, x)], axis=-1))

    emulated.complements = adder
    ac = emulated.finish(np.concatenate(all_five_units(emulated)))
    assert {k for k in KINDS if ac.count(k)} == {"constant", "parameter", "input", "sum", "product"}
    rows = {"X": X_LIKELIHOOD, "W": W_LIKELIHOOD}
    joint = ac.evaluate(rows)
    close(circuit.evaluate(rows), joint / joint.sum(axis=1, keepdims=True))
    y, x_y, x_n, w_y = 0.3, 0.8, 0.15, 0.6
    x, w = X_LIKELIHOOD, W_LIKELIHOOD
    alpha = y * (x * x_y + (1 - x) * (1 - x_y)) * (w * w_y + (1 - w) * (1 - w_y))
    beta = (1 - y) * (x * x_n + (1 - x) * (1 - x_n)) * (w * (1 - w_y) + (1 - w) * w_y)
    close(joint, np.stack([alpha, beta], axis=1))


@pytest.mark.parametrize("operator", TESTS)
def test_testing_units(operator):
    build = CircuitBuilder()
    x = build.inputs(X)
    limit, plus, minus = (build.constants(np.array([v])) for v in (0.5, 7.0, -3.0))
    circuit = build.finish(build.tests(x[:1], limit, plus, minus, np.array([TESTS.index(operator)])))
    holds = [eval(f"{value} {operator} 0.5") for value in (0.25, 0.5, 0.75)]
    assert circuit.evaluate({"X": [0.25, 0.5, 0.75]})[:, 0].tolist() == [7.0 if h else -3.0 for h in holds]


@pytest.mark.parametrize("operator", TESTS)
def test_sigmoid_units_are_mirrored_for_the_lower_tests_and_never_overflow(operator):
    build = CircuitBuilder()
    x = build.inputs(X)
    t, plus, minus = (build.constants(np.array([v])) for v in (0.5, 1.0, 0.0))
    for gamma in (0.0, 4.0, 1e300):
        made = build.tests(x[:1], t, plus, minus, np.array([TESTS.index(operator)]), gamma)
        found = build.finish(made).evaluate({"X": [0.2, 0.5, 0.9]})[:, 0]
        sign = 1 if operator in (">=", ">") else -1
        exponent = np.clip(-sign * gamma * np.array([-0.3, 0.0, 0.4]), -700, 700)
        close(found, 1 / (1 + np.exp(exponent)))


def test_division_by_zero_is_undefined_and_a_sigmoid_of_it_is_a_half():
    build = CircuitBuilder()
    zero, t, plus, minus = (build.constants(np.array([v])) for v in (0.0, 0.3, 1.0, 0.0))
    quotient = build.quotients(zero, build.inputs(X)[:1])
    outputs = np.concatenate([quotient, build.tests(quotient, t, plus, minus, np.array([0]), 8.0)])
    found = build.finish(outputs).evaluate({"X": [0.0, 0.5]})
    assert np.isnan(found[0, 0])
    close(found[0, 1], 0.5)
    close(found[1], [0.0, 1 / (1 + np.exp(8 * 0.3))])


def test_slices_pick_the_observed_state():
    build = CircuitBuilder()
    numbers = build.constants(np.array([[2.0, 3.0], [5.0, 5.0]]))
    circuit = build.finish(build.slices(X, numbers))
    assert circuit.count("slice") == 1  # the second row has nothing to pick
    assert circuit.evaluate({"X": ["true", "false"]}).tolist() == [[2.0, 5.0], [3.0, 5.0]]
    with pytest.raises(TacitError, match="no evidence on 'X'"):
        circuit.evaluate()


def test_folding_removes_known_zeros_and_ones():
    build = CircuitBuilder()
    x = build.inputs(X)
    assert build.products(x, np.array(build.one)).tolist() == x.tolist()
    assert build.products(np.array(build.zero), x).tolist() == [build.zero] * 2
    assert build.sums(np.array([[x[0], build.zero], [build.zero, build.zero]])).tolist() == [x[0], build.zero]
    assert build.tests(x[:1], x[1:], x[:1], x[:1], np.array([0])).tolist() == [x[0]]
    plain = CircuitBuilder(fold=False)
    y = plain.inputs(X)
    kept = plain.finish(plain.sums(np.stack([plain.products(y, np.array(plain.one)), np.full(2, plain.zero)], axis=1)))
    assert (kept.count("product"), kept.count("sum"), kept.count("constant")) == (2, 2, 2)


def test_nodes_are_unique_up_to_the_order_of_sums_and_products():
    build = CircuitBuilder()
    x, w = build.inputs(X), build.inputs(W)
    assert build.products(x, w).tolist() == build.products(w, x).tolist()
    assert build.sums(np.array([[x[0], w[0]]])) == build.sums(np.array([[w[0], x[0]]]))
    assert build.quotients(x[:1], w[:1]) != build.quotients(w[:1], x[:1])
    assert build.constants(np.array([0.25])) == build.constants(np.array([0.25]))
    first, second = theta(build, 0.25, 0.25)
    assert first != second  # parameters are never merged, even where their values are equal


def test_leaves_whose_first_hash_collides_are_told_apart_by_the_second(monkeypatch):
    build = CircuitBuilder()
    monkeypatch.setattr(
        "tacit.engines.circuit.node_builder.SEEDS", (np.uint64(0), SEEDS[1])
    )  # blind to node, part and kind
    build.parameters("Y", "plus", np.array([0.25]))
    with pytest.raises(AssertionError, match="two different nodes have the same hash"):
        build.parameters("Y", "minus", np.array([0.25]))


def test_counts_depth_and_size():
    build = CircuitBuilder()
    x = build.inputs(X)
    total = build.sums(np.stack([build.products(x, theta(build, 0.2, 0.7))], axis=0))
    circuit = build.finish(total)
    assert (len(circuit), circuit.internal, circuit.size, circuit.depth) == (7, 3, 6, 2)
    assert circuit.binary_operations == 3
    assert repr(circuit) == "Circuit(7 nodes: 2 parameter, 2 input, 1 sum, 2 product; 6 edges, depth 2)"
    with pytest.raises(TacitError, match="unknown kind of node 'plus', expected one of constant, parameter"):
        circuit.count("plus")


def test_nodes_that_nobody_uses_are_dropped():
    build = CircuitBuilder()
    x = build.inputs(X)
    build.products(x, build.inputs(W))
    assert len(build.finish(x[:1])) == 1


def test_other_numbers_may_be_given():
    build = CircuitBuilder()
    circuit = build.finish(build.products(build.inputs(X), theta(build, 0.2, 0.7)))
    numbers = np.where(circuit.kind == KINDS.index("parameter"), 2 * circuit.number, circuit.number)
    close(circuit.evaluate({"X": 0.5}, numbers), 2 * circuit.evaluate({"X": 0.5}))


def test_unset_parameters_are_refused_unless_other_numbers_are_given():
    build = CircuitBuilder()
    circuit = build.finish(build.products(build.inputs(X), theta(build, 0.2, np.nan)))
    with pytest.raises(UnsetError, match="node 'Y': theta has unset numbers"):
        circuit.evaluate({"X": 0.5})
    close(circuit.evaluate({"X": 0.5}, np.nan_to_num(circuit.number, nan=0.4)), [[0.1, 0.2]])


def test_an_unobserved_row_is_named_by_its_place_among_all_rows(monkeypatch):
    build = CircuitBuilder()
    circuit = build.finish(build.slices(X, build.constants(np.array([[2.0, 3.0]]))))
    monkeypatch.setattr("tacit.engines.circuit.nodes.CHUNK_NUMBERS", 2 * len(circuit))
    assert circuit.evaluate({"X": ["true", "false", "false"]})[:, 0].tolist() == [2.0, 3.0, 3.0]
    with pytest.raises(EvidenceError, match="evidence on 'X', row 5: a state is needed"):
        circuit.evaluate({"X": ["true"] * 5 + [None]})


def test_many_rows_are_evaluated_in_blocks(monkeypatch):
    build = CircuitBuilder()
    circuit = build.finish(build.products(build.inputs(X), theta(build, 0.2, 0.7)))
    x = np.linspace(0, 1, 101)
    whole = circuit.evaluate({"X": x})
    monkeypatch.setattr("tacit.engines.circuit.nodes.CHUNK_NUMBERS", 7 * len(circuit))
    close(circuit.evaluate({"X": x}), whole)

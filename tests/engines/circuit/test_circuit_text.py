"""Circuits as text, JSON and drawings."""

import json
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit import FormatError, TooLargeError, examples
from tacit.engines.circuit import Circuit
from tacit.engines.circuit.node_builder import CircuitBuilder
from tacit.model.elements.variable import Variable
from tests.helpers import always_hard, close, tries
from tests.strategies import queries


def abc(hard=()):
    return tacit.compile(examples.abc(), "B", [n for n in ("A", "C") if n not in hard], hard).circuit()


def all_kinds():
    """A circuit that has a node of every kind."""
    build = CircuitBuilder()
    x, t = build.inputs(Variable("X", ("a", 2, 0.5))), build.parameters('odd "name" n7 =', "plus", np.array([0.3]))
    sums = build.sums(np.stack([build.products(x, t), x], axis=-1))
    operator = np.array([1])
    sigmoid = build.tests(build.quotients(sums[:1], sums[1:2]), t, x[:1], x[1:2], operator, 16.0)
    test = build.tests(build.complements(sums[:1]), build.constants(np.array([0.1])), sigmoid, t, operator)
    sliced = build.slices(Variable("Z", ("u", "v")), np.stack([test, sigmoid], axis=-1))
    return build.finish(build.normalised(np.concatenate([sliced, sums])))


def same(a, b):
    return a.to_text() == b.to_text() and a.tables == b.tables and a.inputs == b.inputs


def test_text_shows_one_node_per_line():
    lines = abc().to_text().splitlines()
    assert lines[0] == '# inputs {"A": ["true", "false"], "C": ["lo", "hi"]}'
    assert len(lines) == len(abc()) + 2
    assert any(line.endswith('= parameter "A" "table" 0 0.3') for line in lines)
    assert any('= input "C" 1' in line for line in lines)
    assert any("= test >= n" in line for line in lines)
    assert lines[-1].startswith("outputs n")


@pytest.mark.parametrize("make", [abc, lambda: abc(hard=["C"]), all_kinds], ids=["soft", "hard", "all kinds"])
def test_text_and_json_come_back(make):
    circuit = make()
    assert same(Circuit.from_text(circuit.to_text()), circuit)
    back = Circuit.from_dict(json.loads(json.dumps(circuit.to_dict())))
    assert same(back, circuit)
    assert back.to_dict() == circuit.to_dict()


def test_a_circuit_of_every_kind_means_the_same_after_reading():
    circuit = all_kinds()
    rows = {"X": np.random.default_rng(0).random((5, 3)), "Z": ["u", "v", "v", "u", "u"]}
    expected = circuit.evaluate(rows)
    close(Circuit.from_text(circuit.to_text()).evaluate(rows), expected)
    close(Circuit.from_dict(circuit.to_dict()).evaluate(rows), expected)


@given(queries())
def test_circuits_of_any_network_come_back(case):
    net, query, row = case
    hard = always_hard(net, row)
    tac = tacit.compile(net, query, [n for n in row if n not in hard], hard)
    for fold in (True, False):
        circuit = tac.circuit(fold)
        assert same(Circuit.from_dict(json.loads(json.dumps(circuit.to_dict()))), circuit)
        read = Circuit.from_text(circuit.to_text())
        assert read.to_text() == circuit.to_text()
        close(read.evaluate(row), circuit.evaluate(row))


def test_unset_numbers_come_back():
    circuit = tacit.compile(examples.layer(2), "Q", ["E1"]).circuit()
    assert np.isnan(circuit.number).any()
    assert same(Circuit.from_text(circuit.to_text()), circuit)
    assert same(Circuit.from_dict(json.loads(json.dumps(circuit.to_dict(), allow_nan=False))), circuit)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no line 'outputs"),
        ("n0 = constant 1.0", "no line 'outputs"),
        ("n1 = constant 1.0\noutputs n1", "line 1.*begins 'n0 ='"),
        ("n0 = wheel\noutputs n0", "line 1"),
        ("n0 = constant one\noutputs n0", "line 1.*could not convert"),
        ("n0 = constant\noutputs n0", "line 1"),
        ("n0 = constant 1.0\nn1 = sum n0 n2\noutputs n1", "line 2.*'n2' is not an earlier node"),
        ("n0 = constant 1.0\nn1 = sum n0 x0\noutputs n1", "line 2"),
        ("n0 = constant 1.0\noutputs n7", "line 2.*'n7' is not an earlier node"),
        ('n0 = input "X" 0\noutputs n0', "line 1"),
        ('# inputs {"X": ["a", "b"]}\nn0 = input "X" 2\noutputs n0', "'input' has too few or too many parts"),
        ('# inputs {"X": ["a"]\nn0 = constant 1.0\noutputs n0', "line 1"),
        ("# inputs [3]\nn0 = constant 1.0\noutputs n0", "line 1"),
        ('# inputs {"X": 3}\nn0 = constant 1.0\noutputs n0', "line 1"),
        ("n0 = constant 1.0\nn1 = test >= n0 n0 n0\noutputs n1", "'test' has too few or too many parts"),
        ("n0 = constant 1.0\nn1 = test == n0 n0 n0 n0\noutputs n1", "line 2"),
        ("n0 = constant 1.0\nn1 = sum\noutputs n1", "'sum' has too few"),
        ("n0 = constant 1.0\nn1 = normalise 2 n0 n0\noutputs n1", "'normalise' has too few"),
        ('n0 = parameter "A" "table 0 1.0\noutputs n0', "line 1"),
        (f'n0 = parameter "A" "table" {10**20} 0.5\noutputs n0', "line 1: .*is too large"),
        (f"n0 = constant 1\nn1 = normalise {-(2**63)} n0\noutputs n1", "line 2: .*is too large"),
        (f"n0 = constant {'9' * 400}\noutputs n0", "a number is not finite"),
        ("n0 = constant -inf\noutputs n0", "a number is not finite"),
        ("n0 = constant nan\noutputs n0", "a number is not finite"),
        ("n0 = constant 1\nn1 = sigmoid >= Infinity n0 n0 n0 n0\noutputs n1", "a number is not finite"),
        ('# inputs {"X": ["a", "a"]}\nn0 = constant 1.0\noutputs n0', "line 1: .*'a' is listed twice"),
        ('# inputs {"X": [[1]]}\nn0 = constant 1.0\noutputs n0', "line 1: .*is not a label"),
        ("# inputs " + "[" * 100_000, "line 1: .*recursion"),
        ("n0 = " + "x" * 10**6, r"^line 1: cannot read .{,500}$"),
    ],
)
def test_damaged_text_is_refused(text, message):
    with pytest.raises(FormatError, match=message):
        Circuit.from_text(text)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("format", "other"),
        ("version", 2),
        ("kinds", []),
        ("kind", [99] * 43),
        ("kind", "what"),
        ("start", [0]),
        ("start", None),
        ("children", [10**6] * 54),
        ("children", [-1] * 54),
        ("children", []),
        ("owner", [0]),
        ("owner", [77] * 43),
        ("entry", [5] * 43),
        ("number", ["x"] * 43),
        ("outputs", []),
        ("outputs", [43]),
        ("outputs", [-1]),
        ("blocks", [0, 43]),
        ("blocks", [0, 1]),
        ("blocks", []),
        ("tables", []),
        ("tables", [[1]]),
        ("inputs", []),
        ("inputs", [{"name": "A"}]),
        ("inputs", [{"name": "A", "states": ["x", "y"]}] * 2),
        ("inputs", [{"name": "A", "states": "xy"}, {"name": "C", "states": ["x", "y"]}]),
        ("inputs", [{"name": "A", "states": [[], {}]}, {"name": "C", "states": ["x", "y"]}]),
        ("kind", [10**20] * 43),
        ("kind", [256] * 43),
        ("entry", [0.5] * 43),
        ("entry", [float("inf")] * 43),
        ("entry", [[0]] * 43),
        ("owner", [10**400] * 43),
        ("number", [float("inf")] * 43),
        ("number", [None] * 43),
        ("number", [10**400] * 43),
        ("number", [[0.5]] * 43),
        ("start", [0, 10**15, *[0] * 41, 54]),
        ("start", [0, 2**63 - 1, -(2**63), *[0] * 40, 54]),
        ("blocks", [0, 2**63 - 1, -(2**63), 43]),
    ],
)
def test_damaged_json_is_refused(part, value):
    whole = tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False).to_dict()
    assert len(whole["kind"]) == 43
    with pytest.raises(FormatError):
        Circuit.from_dict(whole | {part: value})
    missing = {k: v for k, v in whole.items() if k != part}
    with pytest.raises(FormatError):
        Circuit.from_dict(missing)


def test_what_is_no_object_is_no_circuit():
    for data in (None, [], "circuit"):
        with pytest.raises(FormatError, match="not a tacit-circuit of version 1"):
            Circuit.from_dict(data)


ARRAYS = ["kind", "start", "children", "owner", "entry", "number", "blocks", "outputs"]
ODD = [-1, 0, 1, 255, 256, 2**31, 2**63, -(2**63), 10**30, 10**400, 0.5, float("inf"), float("nan"), None, "0", [], {}]


@pytest.fixture(scope="module")
def undamaged():
    return tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False).to_dict()


@tries(150)
@given(data=st.data())
def test_any_changed_number_gives_a_circuit_or_a_refusal(undamaged, data):
    whole = deepcopy(undamaged)
    for _ in range(data.draw(st.integers(1, 3))):
        values = whole[data.draw(st.sampled_from(ARRAYS))]
        values[data.draw(st.integers(0, len(values) - 1))] = data.draw(st.sampled_from(ODD))
    with suppress(FormatError):
        circuit = Circuit.from_dict(whole)
        circuit.evaluate({"A": 0.3, "C": 0.5}, np.nan_to_num(circuit.number))


def test_circuits_are_equal_node_by_node():
    tac = tacit.compile(examples.layer(2), "Q", ["E1", "E2"])
    circuit = tac.circuit()
    assert circuit == circuit
    assert circuit == Circuit.from_dict(circuit.to_dict())
    assert circuit != tac.circuit(fold=False)
    assert circuit != replace(circuit, number=np.zeros(len(circuit)))
    assert circuit != replace(circuit, inputs=circuit.inputs[::-1])
    assert circuit != replace(circuit, outputs=circuit.outputs[::-1])
    assert circuit != "circuit"
    with pytest.raises(TypeError, match="unhashable"):
        hash(circuit)


def test_drawings_have_a_shape_per_kind():
    dot = tacit.compile(examples.abc(), "B", ["A", "C"]).circuit(fold=False).to_dot()
    assert dot.startswith("digraph circuit {")
    assert dot.count("shape=box") == 4
    assert dot.count("peripheries=2") == 2
    assert dot.count(" -> ") == 54
    assert 'label="A=true"' in dot
    assert 'label="B.plus[0]"' in dot
    assert 'label="x >= T ? θ⁺ : θ⁻"' in dot
    assert "Σ=1" in all_kinds().to_dot()


def test_a_drawing_that_nobody_could_read_is_refused(monkeypatch):
    monkeypatch.setattr("tacit.engines.circuit.circuit_text.MAX_DRAWN", 10)
    with pytest.raises(TooLargeError, match="cannot be read"):
        abc().to_dot()

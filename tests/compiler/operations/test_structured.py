"""Sums of products of single entries, on every engine, against the same in Python's own numbers."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tacit
from tacit.base.errors import TacitError, TooLargeError
from tacit.compiler.operations import ONE, ZERO, Likelihood, Parameter, Rescale, Structured
from tacit.compiler.program import Program, check, program_table
from tacit.engines import build
from tacit.engines.arrays.by_row import ByRow
from tacit.engines.arrays.numpy_engine import WideEngine
from tacit.engines.circuit.lower import lower
from tacit.engines.tape.assemble import MAX_SUM_TERMS, assemble, knowledge
from tacit.evidence.column import Column
from tests.engines.test_device import check as check_kernels
from tests.helpers import ENGINES_OF_MANY, tries

ROWS = 5
FIRST = ("A", "B")  # variables with soft evidence
TABLE = np.array([[0.5, 0.0, 0.25], [1.0, 0.125, 0.75]])
NET = tacit.Network()
NET.add("A", states=3, cpt=[0.2, 0.3, 0.5])
NET.add("B", states=2, cpt=[0.5, 0.5])
NET.add("T", parents=["B"], states=3, cpt=TABLE / TABLE.sum(axis=1, keepdims=True))


def structured(inputs, instructions, index, axes=("Q",), literals=((1.0, 0),), linear=(), largest=False):
    """An operation from lists of pairs."""
    starts = np.cumsum([0, *(len(own) for own in instructions)])[:-1]
    return Structured(
        tuple(inputs),
        np.array([m for m, _ in literals]),
        np.array([e for _, e in literals], dtype=np.int64),
        starts.astype(np.int64),
        np.array([pair for own in instructions for pair in own], dtype=np.int64).reshape(-1, 2),
        np.array([k in linear for k in range(len(instructions))], dtype=np.bool_),
        np.array(index, dtype=np.int64),
        axes,
        largest,
    )


def program(operation, rescaled=False):
    """Likelihoods of A (3) and B (2), the table of T (2 x 3), both likelihoods rescaled, and then the operation."""
    sources = [Likelihood("A", ("A",)), Likelihood("B", ("B",)), Parameter("T", "table", ("B", "T"))]
    batched = [True, True, False]
    if rescaled:
        sources += [Rescale((0,), ("A",)), Rescale((1,), ("B",))]
        batched += [True, True]
    sizes = {"A": 3, "B": 2, "T": 3, "Q": operation.index.size}
    rows = any(batched[i] for i in operation.inputs)
    return Program((*sources, operation), sizes, (*batched, rows), ("Q",), len(sources), {}, {}, {}, ("A", "B"))


def columns(rows=ROWS, seed=0, tiny=0):
    """Likelihoods, those of some states tiny."""
    random = np.random.default_rng(seed)
    found = {}
    for name in FIRST:
        soft = 0.1 + random.random((NET.variable(name).card, rows))
        soft[0] *= 2.0**-tiny
        found[name] = Column(NET.variable(name), soft=soft)
    return found


def exactly(made, table, given, row, moved=None):
    """The result for one row in fractions; `moved` (name, entry) adds to some numbers."""
    operation, values = made.operations[-1], []
    arrays = {"A": given["A"].soft, "B": given["B"].soft, "T": np.repeat(table.ravel()[:, None], row + 1, axis=1)}
    for i in operation.inputs:
        name = ("A", "B", "T", "A", "B")[i]
        own = [Fraction(x) for x in arrays[name][:, row].tolist()]
        values += [x + (moved or {}).get((name, entry), 0) for entry, x in enumerate(own)]
    literals = zip(operation.mantissas.tolist(), operation.exponents.tolist(), strict=True)
    values += [Fraction(mantissa) * Fraction(2) ** exponent for mantissa, exponent in literals]
    for first, end in pairwise(operation.bounds.tolist()):
        products = [values[a] * values[b] for a, b in operation.terms[first:end].tolist()]
        values.append(max(products) if operation.largest else sum(products))
    known = {ZERO: Fraction(0), ONE: Fraction(1)}
    return [known[i] if i < 0 else values[i] for i in operation.index.ravel().tolist()]


def engine(name, made, table=TABLE, dtype="float64"):
    if name == "wide":
        return WideEngine(made, {("T", "table"): table}, {})
    return build(name, made, {("T", "table"): table}, {}, dtype)


def agrees(found, expected, tolerance):
    """Results (states, rows) with an exponent for each row, and fractions by row."""
    for row, numbers in enumerate(expected):
        for joint, number in zip(found.joint[:, row].tolist(), numbers, strict=True):
            value = Fraction(joint) * Fraction(2) ** int(found.exponent[row])
            assert abs(value - number) <= Fraction(tolerance) * number


SIZES = {0: 3, 1: 2, 2: 6}


@st.composite
def operations(draw, static=None, largest=None, most=12):
    """Legal operations: any order of inputs, any DAG, any mix of instructions, any references in the result."""
    static = draw(st.booleans()) if static is None else static
    inputs = draw(st.lists(st.sampled_from([2] if static else [0, 1, 2]), unique=True, max_size=3))
    if not static and not {0, 1} & set(inputs):
        inputs = [*inputs, draw(st.sampled_from([0, 1]))]
    entries = [(i, entry) for i in inputs for entry in range(SIZES[i])]
    literals = [(1.0, 0), *draw(st.lists(st.tuples(st.floats(0.5, 0.99), st.integers(-8, 3)), max_size=3))]
    fixed = [r for r, (i, _) in enumerate(entries) if i == 2] + [len(entries) + n for n in range(len(literals))]
    changing = [r for r, (i, _) in enumerate(entries) if i != 2]
    first = len(entries) + len(literals)
    instructions, linear = [], set()
    for k in range(draw(st.integers(0, most))):
        kinds = draw(st.booleans()) and not static
        results = list(range(first, first + k))
        a = fixed if kinds else (fixed if static else changing) + results
        b = (fixed if static else changing) + results
        count = draw(st.sampled_from([1, 2, 2, 3, 5, 9]))
        instructions.append([(draw(st.sampled_from(a)), draw(st.sampled_from(b))) for _ in range(count)])
        linear |= {k} if kinds else set()
    every = st.integers(0, first + len(instructions) - 1)
    index = draw(st.lists(st.one_of(st.sampled_from([ZERO, ONE]), every), min_size=1, max_size=5))
    largest = draw(st.booleans()) if largest is None else largest
    return structured(inputs, instructions, index, literals=literals, linear=linear, largest=largest)


@given(operations(), st.integers(0, 3))
@tries(45)
@pytest.mark.parametrize("name", [*ENGINES_OF_MANY, "wide"])
def test_any_operation_on_any_engine_is_what_python_makes_of_it(name, operation, seed):
    made, given = program(operation), columns(seed=seed)
    check(made)
    found = engine(name, made).run(given, ROWS)
    agrees(found, [exactly(made, TABLE, given, row) for row in range(ROWS)], 1e-12)


@given(operations(largest=False))
@tries(30)
@pytest.mark.parametrize("name", ["numpy", "tape", "torch", "wide"])
def test_derivatives_of_any_operation_are_those_of_its_polynomial(name, operation):
    """Differences of exact results over a tiny step are as good as derivatives."""
    made, given, step = program(operation), columns(3), Fraction(1, 2**200)
    seeds = np.random.default_rng(1).random((operation.index.size, 3))

    def by(source, entry):
        both = [
            [exactly(made, TABLE, given, row, moved) for row in range(3)] for moved in ({(source, entry): step}, {})
        ]
        return [
            float(sum(Fraction(s) * (x - y) / step for s, x, y in zip(seeds[:, row], *own, strict=True)))
            for row, own in enumerate(zip(*both, strict=True))
        ]

    found = engine(name, made).gradients(given, 3, seeds, exponent=np.zeros(3, dtype=np.int64))
    for source, own in found.likelihoods.items():
        expected = [by(source, entry) for entry in range(len(own))]
        np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-300)
    expected = [sum(by("T", entry)) if number else 0 for entry, number in enumerate(TABLE.ravel())]
    own = np.where(TABLE.ravel() == 0, 0, found.tables["T", "table"].ravel())  # known 0s may be left out
    np.testing.assert_allclose(own, expected, rtol=1e-11, atol=1e-300)


def chain(literal, length=6):
    """literal * A0 * B0 * B0 ..., of the inputs A, B and T: A0 has reference 0, B0 3, the literal 12."""
    instructions = [[(12, 0)], *([(13 + k, 3)] for k in range(length - 1))]
    return structured([0, 1, 2], instructions, [12 + length], literals=[(1.0, 0), literal], linear={0})


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", ["numpy", "tape", "torch"])
@pytest.mark.parametrize(
    ("literal", "tiny"), [((0.75, -3000), 0), ((0.75, -130), 0), ((0.5, 0), 300), ((0.5, 4000), 0)]
)
def test_what_is_too_small_or_too_large_for_floats_is_computed_again(literal, tiny, name, dtype):
    made, given = program(chain(literal)), columns(tiny=tiny)
    found = engine(name, made, dtype=dtype).run(given, ROWS)
    agrees(found, [exactly(made, TABLE, given, row) for row in range(ROWS)], 1e-12 if dtype == "float64" else 1e-5)


def test_numpy_tells_which_rows_lost_digits():
    made = program(chain((0.5, 0)))
    given = columns(rows=4)
    given["B"].soft[0, 2] = 2.0**-300
    np.testing.assert_array_equal(engine("numpy", made).attempt(given, 4).imprecise, [False, False, True, False])
    given["B"].soft[0, 2] = 0.0
    assert engine("numpy", made).attempt(given, 4).imprecise is None
    assert engine("tape", made).attempt(given, 4).imprecise is None


@pytest.mark.parametrize("name", ["numpy", "tape", "torch"])
def test_derivatives_survive_what_is_too_small_for_floats(name):
    made, given = program(chain((0.75, -1500))), columns(3)
    run = engine(name, made)
    exponent = run.run(given, 3).exponent
    found = run.gradients(given, 3, np.ones((1, 3)), exponent=exponent)
    for row in range(3):
        (number,) = exactly(made, TABLE, given, row)
        scaled = number / Fraction(2) ** int(exponent[row])
        for variable, factors in (("A", 1), ("B", 5)):
            expected = float(factors * scaled / Fraction(given[variable].soft[0, row]))
            np.testing.assert_allclose(found.likelihoods[variable][0, row], expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["numpy", "tape", "native", "torch", "wide"])
def test_exponents_of_rescaled_inputs_add_up(name):
    """A product has one factor of each of them: A0 B0 + A1 B1, times a table's entry."""
    operation = structured([3, 4, 2], [[(0, 3), (1, 4)], [(5, 12)], [(7, 12)]], [12, 13, 14], linear={1, 2})
    made, given = program(operation, rescaled=True), columns(tiny=400)
    given["B"].soft[:] *= 2.0**-700
    found = engine(name, made).run(given, ROWS)
    agrees(found, [exactly(made, TABLE, given, row) for row in range(ROWS)], 1e-12)


# A0 B0 + A1 B1, times 0.75/8, and A2 T5 + B1: with a literal, the results 13, 14 and 15
SMALL = structured(
    [0, 1, 2],
    [[(0, 3), (1, 4)], [(12, 13)], [(10, 2), (11, 4)]],
    [14, 15, 13],
    literals=[(1.0, 0), (0.75, -3)],
    linear={1, 2},
)


@given(operations(static=False))
@tries(30)
def test_long_sums_are_cut(operation):
    made, given = program(operation), columns(2)
    short = program(operation.shortened(made.setting(3), 2))
    check(short)
    assert np.diff(short.operations[-1].bounds).max(initial=0) <= 2
    for row in range(2):
        assert exactly(short, TABLE, given, row) == exactly(made, TABLE, given, row)


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("name", ["numpy", "tape", "torch", "wide"])
def test_a_sum_may_have_ten_thousand_terms(name, largest):
    count = 10_000
    instructions = [[(0, 3)], [(0 if k % 2 else 12, (1, 2, 4)[k % 3]) for k in range(count)]]
    operation = structured([0, 1, 2], instructions, [12, 13], largest=largest)
    made, given = program(operation), columns(2)
    assert len(assemble(made, knowledge(made, {("T", "table"): TABLE}, {})).instructions) > count // MAX_SUM_TERMS
    agrees(engine(name, made).run(given, 2), [exactly(made, TABLE, given, row) for row in range(2)], 1e-12)


@given(operations(largest=False))
@tries(30)
def test_any_operation_becomes_a_circuit(operation):
    made, given, table = program(operation), columns(2), NET.cpt("T").table
    evidence = {name: column.soft.T / column.soft.sum(axis=0)[:, None] for name, column in given.items()}
    given = {name: Column(NET.variable(name), soft=np.ascontiguousarray(own.T)) for name, own in evidence.items()}
    found = lower(made, NET).evaluate(evidence)
    expected = [[float(x) for x in exactly(made, table, given, row)] for row in range(2)]
    np.testing.assert_allclose(np.broadcast_to(found, (2, operation.index.size)), expected, rtol=1e-12)


def test_a_circuit_has_no_number_out_of_range():
    with pytest.raises(TooLargeError, match=r"about 2\*\*-3000"):
        lower(program(chain((0.75, -3000))), NET)


def queried(operation, engine="auto"):
    """A query of T whose program is another one."""
    tac = tacit.compile(NET, "T", evidence=FIRST, engine=engine)
    tac.program = program(operation)
    return tac


def test_onnx_runtime_gives_the_same_answers():
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    from tacit.io.bridges.onnx import onnx_model

    for operation in (SMALL, chain((0.5, 0)), structured([0, 1], [], [0, ONE, 4])):
        tac = queried(operation)
        given = columns(4)
        session = runtime.InferenceSession(onnx_model(tac).SerializeToString())
        posterior, log_evidence = session.run(None, {name: given[name].soft.T for name in FIRST})
        used = NET.cpt("T").table
        joint = np.array([[float(x) for x in exactly(tac.program, used, given, row)] for row in range(4)])
        np.testing.assert_allclose(posterior, joint / joint.sum(axis=1, keepdims=True), rtol=1e-12)
        np.testing.assert_allclose(log_evidence, np.log(joint.sum(axis=1)), rtol=1e-12, atol=1e-14)
    with pytest.raises(TacitError, match="out of the range of float64"):
        onnx_model(queried(chain((0.75, -3000))))


@pytest.mark.parametrize(
    "operation", [SMALL, structured([0, 1, 2], [[(0, 3)], [(5, 12), (10, 4)]], [13, 7, 11], linear={1})]
)
def test_kernels_for_gpus_are_made_from_the_same_tape(operation):
    rows = {"A": [[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]], "B": [[0.3, 0.7], [0.9, 0.1]]}
    assert not check_kernels(queried(operation, "tape"), rows).any()


@given(operations(static=False, largest=False))
@tries(20)
def test_derivatives_row_by_row(operation):
    """Where tables count as if they depended on evidence, and where a tape has slots for them."""
    made, given, rows = program(operation), columns(3), range(3)
    numbers = {("T", "table"): TABLE}, {}
    joint = np.array([[float(x) for x in exactly(made, TABLE, given, row)] for row in rows])
    if (joint.sum(axis=1) == 0).any() or 2 not in operation.inputs:
        return
    expected = np.zeros((operation.index.size, 6, 3))
    step = Fraction(1, 2**200)
    for row in rows:
        before = exactly(made, TABLE, given, row)
        for entry in range(6):
            after = exactly(made, TABLE, given, row, {("T", entry): step})
            expected[:, entry, row] = [float((x - y) / step) for x, y in zip(after, before, strict=True)]
    expected /= joint.sum(axis=1)
    found = ByRow(made, *numbers).derivatives(given, 3, lambda: None).by_table
    np.testing.assert_allclose(found["T", "table"].reshape(expected.shape), expected, rtol=1e-9, atol=1e-300)
    tape = engine("tape", made)
    if not tape.lacks_jacobian() and tape._tape(pin=True).constants:
        part, by = tape.jacobian(tape.pack(given, 3), 0, 1)
        np.testing.assert_allclose(part, joint[:, 0] / joint.sum(axis=1), rtol=1e-12)
        whole = expected[0] - part * expected.sum(axis=0)
        known = TABLE.ravel() != 0
        np.testing.assert_allclose(by["T", "table"][known], whole[known], rtol=1e-9, atol=1e-12)


@given(operations(static=True, largest=False))
@tries(30)
def test_known_zeros_and_ones_are_zeros_and_ones(operation):
    made = program(operation)
    known = knowledge(made, {("T", "table"): TABLE}, {}).supports[3]
    value = np.array([float(x) for x in exactly(made, TABLE, columns(1), 0)])
    np.testing.assert_array_equal(known.nonzero, value != 0)
    assert (value[known.ones] == 1).all()


@given(operations())
@tries(30)
def test_slots_are_used_again_as_the_cost_says(operation):
    """The tape needs no more slots than the program has numbers alive, besides 1, constants and what is 0."""
    made = program(operation)
    tape = assemble(made, knowledge(made, {("T", "table"): np.ones((2, 3))}, {}))
    assert made.cost.multiply_adds + made.cost.static_multiply_adds == len(operation.terms)
    assert tape.slots <= 1 + made.cost.live + len(tape.pinned) + 5


def test_it_says_what_it_is():
    assert str(SMALL) == "structured 5 terms of v0 v1 v2"
    many = structured(range(40), [[(0, 1)]], [0])
    assert many.detail == "1 terms of v0 v1 v2 v3 v4 v5 v6 v7 ... (40 inputs)"
    assert "structured 5 terms of v0 v1 v2" in program_table(program(SMALL))
    cost = program(SMALL).cost
    assert (cost.multiply_adds, cost.elements, cost.live) == (5, 5 + 6, 5 + 3)


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (structured([0], [[(3, 5)], [(0, 0)]], [0]), "a later one"),
        (structured([0], [[(0, -1)]], [0]), "not there"),
        (structured([0], [[(0, 1)], []], [0]), "without terms"),
        (structured([0], [[(0, 1)]], [5]), "reaches outside"),
        (structured([0], [[(0, 1)]], [-3]), "reaches outside"),
        (structured([0], [[(0, 1)]], [0], linear={0}), "first factor"),
        (structured([0], [[(3, 4)]], [0], linear={0}, literals=[(1.0, 0), (1.5, 0)]), "second factor"),
        (structured([0, 2], [[(3, 0)]], [0]), "the same for all rows"),
        (structured([2], [[(0, 1)]], [0], linear={0}), "second factor"),
        (structured([0], [], [0], literals=[(2.0, 0)]), "not 1"),
        (structured([0], [], [[0, 1]]), "shape"),
    ],
)
def test_illegal_operations_are_caught(operation, message):
    with pytest.raises(AssertionError, match=message):
        check(program(operation))
